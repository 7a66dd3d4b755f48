"""From verdicts to metrics: one table says which verdict feeds which instrument.

Spans are made in `_spans`, of the same verdicts.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from ._containment import Containment
from ._dialect import version_name
from ._events import Origin
from ._exchange import Exchange
from ._gauges import FLOORED, GAUGES, Series, Showing, merged
from ._meters import Attributes
from ._names import (
    ERROR_TYPE,
    INSTRUMENTATION_SITE,
    INSTRUMENTATION_TABLE,
    METHOD,
    METRICS,
    NETWORK_TRANSPORT,
    OPEN_ENDED_SERIES,
    OTHER,
    PROTOCOL_VERSION,
    RPC_STATUS_CODE,
    SERVER_ADDRESS,
    SERVER_PORT,
    TOOL_NAME,
    Metric,
)
from ._observer import Observer
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


class Row(NamedTuple):
    """A verdict feeds an instrument.

    `labels` are the verdict's fields in the order of the metric's attributes; `value` is the field that is
    recorded, or 1 or -1. What `is_ordinary` comes with every call or stream: it is counted up to the next collection.
    """

    metric: str
    labels: tuple[str, ...] = ()
    value: str | int = 1
    is_ordinary: bool = False


TABLE: Final[dict[type[Verdict], tuple[Row, ...]]] = {
    StreamOpened: (Row("sse.client.active_streams", ("kind",), is_ordinary=True),),
    StreamMoved: (
        Row("sse.client.active_streams", ("before",), -1, is_ordinary=True),
        Row("sse.client.active_streams", ("kind",), is_ordinary=True),
    ),
    FirstEvent: (Row("sse.client.stream.time_to_first_event", ("kind",), "seconds"),),
    StreamEnded: (
        Row("sse.client.active_streams", ("kind",), -1, is_ordinary=True),
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
    Responded: (Row("sse.client.responses", ("delivery",), is_ordinary=True),),
    RoundsEnded: (Row("sse.client.input_rounds", ("method",), "rounds"),),
    GuardActed: (Row("sse.client.guard.actions", ("action",)),),
}
"""Which verdict feeds which instrument; verdicts that only spans use are not here."""

_OPEN_ENDED: Final = (PROTOCOL_VERSION, ERROR_TYPE, METHOD, RPC_STATUS_CODE, TOOL_NAME)
"""Attributes of the two metrics of the GenAI conventions, in the order in which their values are looked up."""


class Telemetry:
    """The sink of an installation.

    Args:
        showing: what there is once per meter.
        spans: takes the same verdicts.
        server: names the server of a verdict.
        containment: counts our own errors.
        semconv: also record the two metrics that the GenAI conventions define.
        tool_names: add `gen_ai.tool.name` to those.
    """

    def __init__(
        self,
        showing: Showing,
        spans: Spans,
        server: Callable[[Origin], Attributes],
        containment: Containment,
        *,
        semconv: bool = True,
        tool_names: bool = False,
    ) -> None:
        self._showing = showing
        self._spans = spans
        self._server = server
        self._containment = containment
        self._tool_names = tool_names
        self._observer: Observer | None = None
        self._attributes = showing.attributes
        self._zeroed = showing.zeroed
        self._reported: dict[str, int] = {}
        self._open_ended = showing.open_ended
        self._snapshot: Snapshot | None = None
        self._asked: set[str] = set()
        self._add = showing.add
        self._mcp = showing.mcp if semconv else {}
        self._counts = showing.join(self)

    def __del__(self) -> None:
        self._showing.leave(self)

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
            attributes = self._of(METRICS[row.metric], verdict.server, values)
            if row.is_ordinary and self._counts is not None:
                self._counts.count(self._add[row.metric], attributes, value)
            else:
                self._add[row.metric](value, attributes)
        if self._mcp and isinstance(verdict, OperationEnded | SessionEnded):
            self._record_mcp(verdict)

    def _of(self, metric: Metric, server: Origin, values: tuple[object, ...]) -> Attributes:
        """The attributes of one series; made once, since there are few."""
        return self._series(metric, self._server(server), values)

    def _series(self, metric: Metric, server: Attributes, values: tuple[object, ...]) -> Attributes:
        key = (metric.name, server[SERVER_ADDRESS], server[SERVER_PORT], values)
        found = self._attributes.get(key)
        if found is None:
            labels = dict(zip(metric.attributes, values, strict=True))
            found = self._attributes[key] = {**server, **labels}  # type: ignore[dict-item]
        return found

    def _record_mcp(self, verdict: OperationEnded | SessionEnded) -> None:
        name = "mcp.client.session.duration"
        said: tuple[str | int | None, ...] = (version_name(verdict.version), verdict.error_type)
        if isinstance(verdict, OperationEnded):
            tool = verdict.name if self._tool_names and verdict.method == "tools/call" else None
            name, said = "mcp.client.operation.duration", (*said, verdict.method, verdict.error_code, tool)
        server = self._server(verdict.server)
        attributes = self._open_ended[name, server[SERVER_ADDRESS], server[SERVER_PORT]].get(said)
        self._mcp[name](verdict.seconds, attributes or self._open(name, server, said))

    def _open(self, name: str, server: Attributes, said: tuple[str | int | None, ...]) -> Attributes:
        """A metric whose values others choose: past a bound of series, they are recorded as `_OTHER`."""
        shown = dict(zip(_OPEN_ENDED, said, strict=False))
        own: Attributes = {k: str(v) for k, v in shown.items() if v is not None and v != ""}
        own |= {NETWORK_TRANSPORT: "tcp"}
        series = self._open_ended[name, server[SERVER_ADDRESS], server[SERVER_PORT]]
        if len(series) >= OPEN_ENDED_SERIES:
            return {**server, **dict.fromkeys(own, OTHER)}
        return series.setdefault(said, {**server, **own})

    # -------------------------------------------------------------- collection

    def begin(self) -> None:
        """What was shown before is no longer now."""
        self._snapshot = None

    def shown(self, name: str) -> list[Series]:
        """What an observable instrument shows now."""
        try:
            return self._shown_now(name)
        except Exception as error:  # noqa: BLE001 - it would reach the reader's thread
            self._containment.contain("collect", error)
            return []

    def _shown_now(self, name: str) -> list[Series]:
        snapshot = self._current(name)
        if snapshot is None:
            return []
        if name == "sse.client.instrumentation.evictions":
            evictions = {**snapshot.evictions, "spans": self._spans.evicted}
            return [({INSTRUMENTATION_TABLE: table}, count) for table, count in evictions.items()]
        field, attributes = GAUGES[name]
        floor: list[Series] = [(server, 0) for server in self._showing.servers.known() if name in FLOORED]
        found: list[Series] = [
            (self._of(METRICS[name], key[0] if attributes else key, key[1:] if attributes else ()), value)
            for key, value in getattr(snapshot, field).items()
        ]
        # Servers past the limit share a series.
        return merged(name, [*floor, *found])

    def _current(self, name: str) -> Snapshot | None:
        """One snapshot for all instruments of a collection: a new one when an instrument asks again."""
        if self._observer is None:
            return None
        if self._snapshot is None or name in self._asked:
            self._asked = set()
            self._snapshot = self._observer.collect()
            self(None, self._snapshot.settled)
            self._zero()
            self._report_errors()
        self._asked.add(name)
        return self._snapshot

    def _zero(self) -> None:
        """Series that an alert reads exist from their server's first scrape on."""
        for server in self._showing.servers.known():
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
