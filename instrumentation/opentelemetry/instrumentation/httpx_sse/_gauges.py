"""Observable instruments: what a collection is shown, from the snapshots of all installations on one meter.

An observable instrument cannot be taken back from a meter, and a second one of its name is refused. So each meter
has one set of them, which outlives installations: those that are alive are shown together.
"""

import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from ._locker import Locker
from ._meters import Add, Attributes, Servers, meter_of, synchronous
from ._names import EVENT_TYPE, MCP_METRICS, METRICS, REPROMPT_TRIGGER, STREAM_KIND, STREAM_STATE

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

    def begin(self) -> None:
        """What was shown before is no longer now."""

    def shown(self, name: str) -> list[Series]:
        """What the instrument `name` shows of this installation now."""


def merged(name: str, parts: Iterable[Series], *, largest: bool = False) -> list[Series]:
    """Series of the same attributes as one: their sum, or the largest."""
    largest = largest or name in LONGEST
    found: dict[tuple[object, ...], Series] = {}
    for attributes, value in parts:
        key = tuple(attributes.values())
        before = found[key][1] if key in found else 0
        found[key] = (attributes, max(before, value) if largest else before + value)
    return list(found.values())


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


class Showing(Locker):
    """All that is shown on one meter. What a counter counted of a source that is gone still counts.

    Args:
        meter: on which instruments are made.

    Raises:
        Exception: whatever a broken meter raises.
    """

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.servers = Servers()
        self.attributes: dict[tuple[object, ...], Attributes] = {}
        """Of each series, by what tells it from others: made once, since there are few."""
        self.open_ended: defaultdict[tuple[object, ...], dict[tuple[object, ...], Attributes]]
        self.open_ended = defaultdict(dict)
        """Of metrics whose values others choose, by metric and server."""
        self.zeroed: set[tuple[object, ...]] = set()
        """Servers whose zero series were made, and sites."""
        self.add = synchronous(meter, METRICS.values())
        self.mcp = synchronous(meter, MCP_METRICS.values())
        self._counts = Counts()
        self._sources: weakref.WeakSet[Source] = weakref.WeakSet()
        self._left: deque[Source] = deque()
        self._gone: dict[str, list[Series]] = {}
        self._highest: dict[str, list[Series]] = {}
        self._is_asked = _make_instruments(meter, self)

    def join(self, source: Source) -> Counts | None:
        """From now on a collection is shown what `source` has.

        Where to count what is told at collections; None where no collection would ask, as with a meter that shares
        counters between processes.
        """
        self._see_off()
        with self._lock:
            self._sources.add(source)
        return self._counts if self._is_asked else None

    def leave(self, source: Source) -> None:
        """From the finalizer of a source: what it has counted since the last collection is looked at later."""
        self._left.append(source)

    def shown(self, name: str) -> list[Series]:
        """What the instrument `name` shows of all sources."""
        self._see_off()
        with self._lock:
            sources = list(self._sources)
        parts = [series for source in sources for series in source.shown(name)]
        self._counts.tell()
        if METRICS[name].instrument != "observable_counter":
            return merged(name, parts)
        with self._lock:
            now = merged(name, [*self._gone.get(name, []), *parts])
            # Of a source that is just being thrown away nobody knows for a moment: a counter must not fall for that.
            shown = self._highest[name] = merged(name, [*self._highest.get(name, []), *now], largest=True)
        return shown

    def _see_off(self) -> None:
        """A last look at those that have left."""
        while self._left:
            try:
                source = self._left.popleft()
            except IndexError:
                # Another thread has seen it off.
                return
            source.begin()
            for name in COUNTERS:
                last = source.shown(name)
                with self._lock:
                    self._gone[name] = merged(name, [*self._gone.get(name, []), *last])


COUNTERS: Final = tuple(m.name for m in METRICS.values() if m.instrument == "observable_counter")


class _All(Locker):
    """What is shown on each meter: one for all that comes to it, whichever thread is first."""

    def __init__(self) -> None:
        super().__init__()
        self._showing: weakref.WeakKeyDictionary[Meter, Showing] = weakref.WeakKeyDictionary()

    def of(self, provider: MeterProvider | None) -> Showing:
        with self._lock:
            meter = meter_of(provider)
            showing = self._showing.get(meter)
            if showing is None:
                showing = self._showing[meter] = Showing(meter)
            return showing


_ALL: Final = _All()


def showing_of(provider: MeterProvider | None) -> Showing:
    """What is shown on our meter of a provider, or of the global one.

    Raises:
        Exception: whatever a broken provider or meter raises.
    """
    return _ALL.of(provider)


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
