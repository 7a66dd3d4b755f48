"""From verdicts to metrics: one table says which verdict feeds which instrument.

Spans are made in `_spans`; what both share, the names of servers, in `_servers`.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from ._containment import Containment
from ._events import Origin
from ._exchange import Exchange, Observer
from ._names import (
    ERROR_TYPE,
    EVENT_TYPE,
    INSTRUMENTATION_SITE,
    INSTRUMENTATION_TABLE,
    MCP_METRICS,
    METHOD,
    METRICS,
    NETWORK_TRANSPORT,
    OPEN_ENDED_SERIES,
    OTHER,
    PROTOCOL_VERSION,
    REPROMPT_TRIGGER,
    RPC_STATUS_CODE,
    SERVER_ADDRESS,
    SERVER_PORT,
    STREAM_KIND,
    STREAM_STATE,
    TOOL_NAME,
    Metric,
)
from ._spans import Spans
from ._verdicts import (
    AnswerIneffective,
    AnswerSettled,
    Classified,
    DeadSessionEvents,
    DeadSessionRequest,
    EmptyReplay,
    FirstEvent,
    GuardActed,
    OperationEnded,
    Probed,
    ReconnectDelayed,
    Reconnected,
    ReconnectSettled,
    Reprompted,
    RequestLost,
    Responded,
    RetriedAfterTerminal,
    RoundsEnded,
    ServerRequested,
    SessionConfirmed,
    SessionEnded,
    SessionLost,
    SessionRevived,
    Snapshot,
    StreamEnded,
    StreamLost,
    StreamMoved,
    StreamOpened,
    Verdict,
)

Attributes = dict[str, str | int]


class Row(NamedTuple):
    """A verdict feeds an instrument.

    `labels` are the verdict's fields in the order of the metric's attributes; `value` is the field that is
    recorded, or 1 or -1.
    """

    metric: str
    labels: tuple[str, ...] = ()
    value: str | int = 1


TABLE: Final[dict[type[Verdict], tuple[Row, ...]]] = {
    StreamOpened: (Row("sse.client.active_streams", ("kind",)),),
    StreamMoved: (
        Row("sse.client.active_streams", ("before",), -1),
        Row("sse.client.active_streams", ("kind",)),
    ),
    FirstEvent: (Row("sse.client.stream.time_to_first_event", ("kind",), "seconds"),),
    StreamEnded: (
        Row("sse.client.active_streams", ("kind",), -1),
        Row("sse.client.stream.duration", ("kind", "end"), "seconds"),
        Row("sse.client.stream.silence", ("kind", "end"), "silence"),
    ),
    Reconnected: (Row("sse.client.reconnects", ("kind", "cause", "cursor")),),
    ReconnectDelayed: (Row("sse.client.reconnect.delay", ("retry_hint",), "seconds"),),
    ReconnectSettled: (Row("sse.client.reconnect.outcomes", ("kind", "outcome", "disposition")),),
    EmptyReplay: (Row("sse.client.empty_replays", ("kind", "request_state")),),
    StreamLost: (Row("sse.client.streams_lost", ("kind", "reason")),),
    RequestLost: (Row("sse.client.requests_lost", ("method", "reason")),),
    Classified: (Row("sse.client.classifications", ("point", "disposition", "reason")),),
    RetriedAfterTerminal: (Row("sse.client.retries_after_terminal", ("point",)),),
    Probed: (Row("sse.client.probes", ("kind", "outcome", "context")),),
    SessionConfirmed: (Row("sse.client.confirmation.duration", ("kind", "outcome"), "seconds"),),
    SessionLost: (Row("sse.client.sessions_lost", ("phase", "signal")),),
    SessionRevived: (Row("sse.client.sessions_revived"),),
    DeadSessionRequest: (Row("sse.client.dead_session_requests"),),
    DeadSessionEvents: (Row("sse.client.dead_session_events", (), "count"),),
    ServerRequested: (Row("sse.client.server_requests", ("method", "delivery", "liveness")),),
    Reprompted: (Row("sse.client.reprompts", ("method", "trigger", "liveness")),),
    AnswerSettled: (Row("sse.client.answers", ("method", "outcome", "disposition", "timing")),),
    AnswerIneffective: (Row("sse.client.ineffective_answers", ("method",)),),
    Responded: (Row("sse.client.responses", ("delivery",)),),
    RoundsEnded: (Row("sse.client.input_rounds", ("method",), "rounds"),),
    GuardActed: (Row("sse.client.guard.actions", ("action",)),),
}
"""Which verdict feeds which instrument; verdicts that only spans use are not here."""

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


class Servers:
    """Names of servers for attributes: the first `limit` by name, the rest as one (design, section 4)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._names: dict[tuple[str, int], Attributes] = {}
        self._other: Attributes = {SERVER_ADDRESS: OTHER, SERVER_PORT: 0}
        self._is_other_seen = False

    def name(self, origin: Origin) -> Attributes:
        """`server.address` and `server.port` of an origin; a name is given at its first sight."""
        key = (origin.host, origin.port)
        found = self._names.get(key)
        if found is not None:
            return found
        if len(self._names) >= self._limit:
            self._is_other_seen = True
            return self._other
        self._names[key] = {SERVER_ADDRESS: origin.host, SERVER_PORT: origin.port}
        return self._names[key]

    def known(self) -> list[Attributes]:
        """All names that were given out."""
        return [*self._names.values(), *([self._other] if self._is_other_seen else [])]


class Telemetry:
    """The sink of an installation.

    Args:
        meter: where instruments are made, once per meter.
        spans: takes the same verdicts.
        servers: names servers.
        containment: counts our own errors.
        semconv: also record the two metrics that the GenAI conventions define.
        tool_names: add `gen_ai.tool.name` to those.
    """

    def __init__(
        self,
        meter: Meter,
        spans: Spans,
        servers: Servers,
        containment: Containment,
        *,
        semconv: bool = True,
        tool_names: bool = False,
    ) -> None:
        self._spans = spans
        self._servers = servers
        self._containment = containment
        self._tool_names = tool_names
        self._observer: Observer | None = None
        self._attributes: dict[tuple[object, ...], Attributes] = {}
        self._zeroed: set[tuple[object, ...]] = set()
        self._reported: dict[str, int] = {}
        self._open_ended: dict[str, set[tuple[object, ...]]] = {}
        self._snapshot: Snapshot | None = None
        self._shown: set[str] = set()
        self._add = _instruments(meter, METRICS.values())
        self._mcp = _instruments(meter, MCP_METRICS.values() if semconv else ())
        _observables(meter, self)

    def observe_through(self, observer: Observer) -> None:
        """Where snapshots come from."""
        self._observer = observer

    # -------------------------------------------------------------- verdicts

    def __call__(self, exchange: Exchange | None, verdicts: tuple[Verdict, ...]) -> None:
        """Record verdicts of one exchange, or of none."""
        try:
            for verdict in verdicts:
                self._record(verdict)
            self._spans(exchange, verdicts)
        except Exception as error:  # noqa: BLE001 - whatever a meter or tracer raises
            self._containment.contain("telemetry", error)

    def _record(self, verdict: Verdict) -> None:
        for row in TABLE.get(type(verdict), ()):
            value = getattr(verdict, row.value) if isinstance(row.value, str) else row.value
            if value is None:
                continue
            values = tuple([getattr(verdict, label) for label in row.labels])
            self._add[row.metric](value, self._of(METRICS[row.metric], verdict.server, values))
        if self._mcp:
            self._record_mcp(verdict)

    def _of(self, metric: Metric, server: Origin, values: tuple[object, ...]) -> Attributes:
        """The attributes of one series; made once, since there are few."""
        return self._series(metric, self._servers.name(server), values)

    def _series(self, metric: Metric, server: Attributes, values: tuple[object, ...]) -> Attributes:
        key = (metric.name, server[SERVER_ADDRESS], server[SERVER_PORT], values)
        found = self._attributes.get(key)
        if found is None:
            labels = dict(zip(metric.attributes, values, strict=True))
            found = self._attributes[key] = {**server, **labels}  # type: ignore[dict-item]
        return found

    def _record_mcp(self, verdict: Verdict) -> None:
        if isinstance(verdict, OperationEnded):
            labels: dict[str, str | int | None] = {
                METHOD: verdict.method,
                RPC_STATUS_CODE: None if verdict.error_code is None else str(verdict.error_code),
                TOOL_NAME: verdict.name if self._tool_names and verdict.method == "tools/call" else None,
            }
            self._record_open("mcp.client.operation.duration", verdict, labels)
        elif isinstance(verdict, SessionEnded):
            self._record_open("mcp.client.session.duration", verdict, {})

    def _record_open(
        self,
        name: str,
        verdict: OperationEnded | SessionEnded,
        labels: Mapping[str, str | int | None],
    ) -> None:
        """A metric whose values others choose: past a bound of series, they are recorded as `_OTHER`."""
        server = self._servers.name(verdict.server)
        own: Attributes = {k: v for k, v in labels.items() if v is not None}
        own |= {NETWORK_TRANSPORT: "tcp"}
        if verdict.version:
            own[PROTOCOL_VERSION] = verdict.version
        if verdict.error_type is not None:
            own[ERROR_TYPE] = verdict.error_type
        seen = self._open_ended.setdefault(f"{name} {server[SERVER_ADDRESS]} {server[SERVER_PORT]}", set())
        key = tuple(own.items())
        if key not in seen:
            if len(seen) >= OPEN_ENDED_SERIES:
                own = dict.fromkeys(own, OTHER)
            else:
                seen.add(key)
        self._mcp[name](verdict.seconds, {**server, **own})

    # -------------------------------------------------------------- collection

    def show(self, name: str) -> Iterable[Observation]:
        """What an observable instrument shows now."""
        try:
            return self._show(name)
        except Exception as error:  # noqa: BLE001 - it would reach the reader's thread
            self._containment.contain("collect", error)
            return ()

    def _show(self, name: str) -> list[Observation]:
        snapshot = self._current(name)
        if snapshot is None:
            return []
        if name == "sse.client.instrumentation.evictions":
            return [Observation(n, {INSTRUMENTATION_TABLE: t}) for t, n in snapshot.evictions.items()]
        field, attributes = GAUGES[name]
        shown: dict[tuple[object, ...], tuple[Attributes, float]] = {}
        for server in self._servers.known() if name in FLOORED else ():
            shown[tuple(server.values())] = (server, 0)
        is_sum = name in (
            "sse.client.logical_streams",
            "sse.client.events",
            "sse.client.unconfirmed_sessions",
        )
        for key, value in getattr(snapshot, field).items():
            origin, values = (key[0], key[1:]) if attributes else (key, ())
            series = self._of(METRICS[name], origin, values)
            before = shown.get(tuple(series.values()), (series, 0))[1]
            # Servers past the limit share one series: counts add up, and of streaks the longest stands.
            shown[tuple(series.values())] = (series, before + value if is_sum else max(before, value))
        return [Observation(value, series) for series, value in shown.values()]

    def _current(self, name: str) -> Snapshot | None:
        """One snapshot for all instruments of a collection: a new one when an instrument asks again."""
        if self._observer is None:
            return None
        if self._snapshot is None or name in self._shown:
            self._shown = set()
            self._snapshot = self._observer.collect()
            self(None, self._snapshot.settled)
            self._zero()
            self._report_errors()
        self._shown.add(name)
        return self._snapshot

    def _zero(self) -> None:
        """Series that an alert reads exist from their server's first scrape on."""
        for server in self._servers.known():
            key = tuple(server.values())
            if key in self._zeroed:
                continue
            self._zeroed.add(key)
            for metric in METRICS.values():
                for values in metric.zeroed if metric.by_server else ():
                    self._add[metric.name](0, self._series(metric, server, values))

    def _report_errors(self) -> None:
        name = "sse.client.instrumentation.errors"
        for (site,) in METRICS[name].zeroed:
            fresh = self._containment.errors[site] - self._reported.get(site, 0)  # type: ignore[index]
            self._reported[site] = self._reported.get(site, 0) + fresh
            if fresh or (site,) not in self._zeroed:
                self._zeroed.add((site,))
                self._add[name](fresh, {INSTRUMENTATION_SITE: site})


Add = Callable[[Any, Attributes], None]


def _instruments(meter: Meter, metrics: Iterable[Metric]) -> dict[str, Add]:
    """The synchronous instruments, each as the one call that feeds it."""
    made: dict[str, Add] = {}
    for metric in metrics:
        about = {"name": metric.name, "unit": metric.unit, "description": metric.description}
        if metric.instrument == "counter":
            made[metric.name] = meter.create_counter(**about).add
        elif metric.instrument == "up_down_counter":
            made[metric.name] = meter.create_up_down_counter(**about).add
        elif metric.instrument == "histogram":
            bounds = list(metric.buckets)
            made[metric.name] = meter.create_histogram(
                **about, explicit_bucket_boundaries_advisory=bounds
            ).record
    return made


_SHOWING: Final["weakref.WeakKeyDictionary[Meter, weakref.ref[Telemetry]]"] = weakref.WeakKeyDictionary()
"""Observable instruments cannot be taken back: they show the telemetry that was installed last on their meter."""


def _observables(meter: Meter, telemetry: Telemetry) -> None:
    is_new = meter not in _SHOWING
    _SHOWING[meter] = weakref.ref(telemetry)
    if not is_new:
        return
    where = weakref.ref(meter)
    for metric in METRICS.values():
        about: dict[str, Any] = {
            "name": metric.name,
            "unit": metric.unit,
            "description": metric.description,
            "callbacks": [_callback(where, metric.name)],
        }
        if metric.instrument == "observable_gauge":
            meter.create_observable_gauge(**about)
        elif metric.instrument == "observable_counter":
            meter.create_observable_counter(**about)


def _callback(meter: "weakref.ref[Meter]", name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def show(_: CallbackOptions) -> Iterable[Observation]:
        alive = meter()
        telemetry = _SHOWING[alive]() if alive is not None and alive in _SHOWING else None
        return telemetry.show(name) if telemetry is not None else ()

    return show
