"""Observable instruments: what a collection is shown, from the snapshots of all installations on one meter.

An observable instrument cannot be taken back from a meter, and a second one of its name is refused. So each meter
has one set of them, which outlives installations: those that are alive are shown together.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from ._locker import Locker
from ._names import EVENT_TYPE, METRICS, REPROMPT_TRIGGER, STREAM_KIND, STREAM_STATE

Attributes = dict[str, str | int]
Series = tuple[Attributes, float]

GAUGES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "sse.client.logical_streams": ("logical_streams", (STREAM_KIND, STREAM_STATE)),
    "sse.client.stalled_streak": ("stalled_streak", ()),
    "sse.client.oldest_request.age": ("oldest_request_age", ()),
    "sse.client.unconfirmed_sessions": ("unconfirmed_sessions", ()),
    "sse.client.reprompt_streak": ("reprompt_streak", (REPROMPT_TRIGGER,)),
    "sse.client.events": ("events", (STREAM_KIND, EVENT_TYPE)),
}
"""Which field of a snapshot an observable instrument shows, and the attributes that its keys carry."""

FLOORED: Final = frozenset(
    {"sse.client.stalled_streak", "sse.client.unconfirmed_sessions", "sse.client.oldest_request.age"}
)
"""Gauges that show 0 for a known server that has nothing to show, so that an alert sees its fault end."""

LONGEST: Final = frozenset(
    {"sse.client.stalled_streak", "sse.client.reprompt_streak", "sse.client.oldest_request.age"}
)
"""Of these the largest stands where several share a series; all others add up."""


class Source(Protocol):
    """An installation's telemetry, as observable instruments see it."""

    def shown(self, name: str) -> list[Series]:
        """What the instrument `name` shows of this installation now."""


def merged(name: str, parts: Iterable[Series]) -> list[Series]:
    """Series of the same attributes as one."""
    found: dict[tuple[object, ...], Series] = {}
    for attributes, value in parts:
        key = tuple(attributes.values())
        before = found[key][1] if key in found else 0
        found[key] = (attributes, max(before, value) if name in LONGEST else before + value)
    return list(found.values())


Add = Callable[[Any, Attributes], None]


class Counts(Locker):
    """Counts that come with every call or stream, in plain ints until a collection asks: a counter's own call costs
    more than everything else that is done about one."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[int, tuple[Add, Attributes, int]] = {}

    def count(self, add: Add, attributes: Attributes, value: int) -> None:
        """So many more for the counter behind `add`; the attributes of a series are always the same object."""
        key = id(attributes)
        with self._lock:
            held = self._held.get(key)
            self._held[key] = (add, attributes, value if held is None else held[2] + value)

    def tell(self) -> None:
        """To the counters."""
        if not self._held:
            return
        with self._lock:
            held, self._held = self._held, {}
        for add, attributes, count in held.values():
            add(count, attributes)


class Showing:
    """The sources of one meter. What a counter showed of a source that is gone still counts."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.is_asked = True
        self._sources: weakref.WeakSet[Any] = weakref.WeakSet()
        self._gone: dict[str, list[Series]] = {}
        self._last: dict[tuple[str, int], list[Series]] = {}

    def add(self, source: Source) -> None:
        self._sources.add(source)

    def shown(self, name: str) -> list[Series]:
        """What the instrument `name` shows of all sources."""
        self.counts.tell()
        sources: dict[int, Source] = {id(source): source for source in self._sources}
        shown = {key: source.shown(name) for key, source in sources.items()}
        parts = [series for part in shown.values() for series in part]
        if METRICS[name].instrument != "observable_counter":
            return merged(name, parts)
        for key in [k for k in self._last if k[0] == name and k[1] not in sources]:
            self._gone[name] = merged(name, [*self._gone.get(name, []), *self._last.pop(key)])
        self._last.update({(name, key): part for key, part in shown.items()})
        return merged(name, [*self._gone.get(name, []), *parts])


_SHOWING: Final["weakref.WeakKeyDictionary[Meter, Showing]"] = weakref.WeakKeyDictionary()


def show_on(meter: Meter, source: Source) -> Counts | None:
    """From now on a collection of `meter` is shown what `source` has.

    Where to count what is told at collections; None where no collection would ask, as with a meter that shares
    counters between processes.
    """
    showing = _SHOWING.get(meter)
    if showing is None:
        showing = _SHOWING[meter] = Showing()
        showing.is_asked = _make_instruments(meter, showing)
    showing.add(source)
    return showing.counts if showing.is_asked else None


def _make_instruments(meter: Meter, showing: Showing) -> bool:
    """Whether the meter has observable instruments."""
    makers = {
        "observable_gauge": meter.create_observable_gauge,
        "observable_counter": meter.create_observable_counter,
    }
    for metric in METRICS.values():
        make: Callable[..., object] | None = makers.get(metric.instrument)
        if make is None:
            continue
        try:
            make(
                name=metric.name,
                unit=metric.unit,
                description=metric.description,
                callbacks=[_callback(showing, metric.name)],
            )
        except NotImplementedError:
            return False
    return True


def _callback(showing: Showing, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def show(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, attributes) for attributes, value in showing.shown(name)]

    return show
