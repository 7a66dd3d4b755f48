"""What there is once per meter, whoever comes and goes: the meter itself, its instruments, and the names of servers."""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from opentelemetry.metrics import Meter, MeterProvider, get_meter, get_meter_provider

from opentelemetry import metrics

from ._events import Origin
from ._locker import Locker
from ._names import OTHER, SCOPE, SERVER_ADDRESS, SERVER_PORT, Metric
from .version import __version__

Attributes = dict[str, str | int]
Add = Callable[[Any, Attributes], None]

_FORWARDING: Final[list[Meter]] = []


def meter_of(provider: MeterProvider | None) -> Meter:
    """Our one meter of a provider; of the global one for None.

    Until the program has set a provider, the API's own stands in, whose meters go on to work with that one afterwards.
    The first of them is kept for good: a second one would be refused its observable instruments, without a word.
    """
    current = get_meter_provider()
    if provider is not None and provider is not current:
        return provider.get_meter(SCOPE, __version__)
    if _FORWARDING:
        return _FORWARDING[0]
    meter = get_meter(SCOPE, __version__)
    if type(current).__module__.startswith(f"{metrics.__name__}."):
        _FORWARDING.append(meter)
    return meter


def synchronous(meter: Meter, wanted: Iterable[Metric]) -> dict[str, Add]:
    """The synchronous instruments, each as the one call that feeds it."""
    made: dict[str, Add] = {}
    for metric in wanted:
        about = {"name": metric.name, "unit": metric.unit, "description": metric.description}
        if metric.instrument == "counter":
            made[metric.name] = cast("Add", meter.create_counter(**about).add)
        elif metric.instrument == "up_down_counter":
            made[metric.name] = cast("Add", meter.create_up_down_counter(**about).add)
        elif metric.instrument == "histogram":
            bounds = list(metric.buckets)
            histogram = meter.create_histogram(**about, explicit_bucket_boundaries_advisory=bounds)
            made[metric.name] = cast("Add", histogram.record)
    return made


class Servers(Locker):
    """Names of servers for attributes: the first so many by name, the rest as one (design, section 4)."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[tuple[str, int], Attributes] = {}
        self._other: Attributes = {SERVER_ADDRESS: OTHER, SERVER_PORT: 0}
        self._is_other_seen = False

    def name(self, origin: Origin, limit: int) -> Attributes:
        """`server.address` and `server.port` of an origin; a name is given at its first sight, to `limit` at most."""
        key = (origin.host, origin.port)
        found = self._names.get(key)
        if found is not None:
            return found
        with self._lock:
            if len(self._names) >= limit:
                self._is_other_seen = True
                return self._other
            return self._names.setdefault(key, {SERVER_ADDRESS: origin.host, SERVER_PORT: origin.port})

    def known(self) -> list[Attributes]:
        """All names that were given out."""
        return [*list(self._names.values()), *([self._other] if self._is_other_seen else [])]
