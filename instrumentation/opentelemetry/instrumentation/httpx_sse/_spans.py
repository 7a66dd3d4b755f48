"""From verdicts to spans: `sse.stream`, `sse.probe` and `sse.answer`, their events and links.

No span of ours is ever current: user code that runs while a stream is read keeps its own.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
)

from ._containment import Containment
from ._dialect import version_name
from ._events import JsonId
from ._exchange import Exchange
from ._ledger import Table
from ._locker import Locker
from ._names import (
    ANSWER_OUTCOME,
    ANSWER_TIMING,
    DISPOSITION,
    ERROR_TYPE,
    FAILURE_POINT,
    FAILURE_REASON,
    GUARD_ACTION,
    GUARD_DRY_RUN,
    HTTP_METHOD,
    HTTP_STATUS_CODE,
    JSONRPC_REQUEST_ID,
    MCP_SESSION_ID,
    METHOD,
    OTHER,
    PROBE_CONTEXT,
    PROBE_KIND,
    PROBE_OUTCOME,
    PROMPT_LIVENESS,
    PROTOCOL_VERSION,
    RECONNECT_ATTEMPT,
    RECONNECT_CAUSE,
    RECONNECT_CURSOR,
    RECONNECT_OUTCOME,
    RECONNECT_RETRY_HINT,
    REPROMPT_TRIGGER,
    REQUEST_STATE,
    RESPONSE_DELIVERY,
    SESSION_HASH,
    SPAN_ANSWER,
    SPAN_EVENT_DUPLICATE,
    SPAN_EVENT_EMPTY_REPLAY,
    SPAN_EVENT_GUARD,
    SPAN_EVENT_REPROMPT,
    SPAN_EVENT_RETRY,
    SPAN_PROBE,
    SPAN_STREAM,
    STREAM_BYTES,
    STREAM_END,
    STREAM_EVENTS,
    STREAM_KIND,
    STREAM_LAST_EVENT_ID,
    STREAM_OPAQUE,
)
from ._verdicts import (
    AnswerSettled,
    AttemptBegun,
    AttemptEnded,
    Classified,
    EmptyReplay,
    GuardActed,
    Probed,
    ReconnectDelayed,
    Reconnected,
    ReconnectSettled,
    Reprompted,
    Responded,
    RetriedAfterTerminal,
    StreamEnded,
    StreamMoved,
    Verdict,
)

CaptureIds = Literal["hash", "raw", "off"]
VerdictHook = Callable[[Span, Verdict], None]

RAW_LIMIT: Final = 64
"""Characters of an identifier that is shown as it is; a longer one is hashed all the same."""

FULL_DETAIL: Final = 10
"""From this attempt of a stalled streak on, only those at powers of two get a span."""

HTTP_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
"""RFC 9110, RFC 5789 and the QUERY method, as the HTTP conventions list them."""

_ERRORS: Final = 400
"""Statuses from here on are classes of errors (HTTP conventions, `error.type`)."""

EVENT_LIMIT: Final = 100
"""Span events of one stream; the SDK keeps 128 of a span by default."""

ATTRIBUTES: Final[dict[type[Verdict], dict[str, str]]] = {
    Reconnected: {RECONNECT_CAUSE: "cause", RECONNECT_CURSOR: "cursor"},
    ReconnectDelayed: {RECONNECT_RETRY_HINT: "retry_hint"},
    ReconnectSettled: {RECONNECT_OUTCOME: "outcome", DISPOSITION: "disposition"},
    Classified: {FAILURE_POINT: "point", FAILURE_REASON: "reason", DISPOSITION: "disposition"},
    StreamEnded: {STREAM_END: "end"},
}
"""Which fields of a verdict become attributes of its stream's span."""

EVENTS: Final[dict[type[Verdict], tuple[str, dict[str, str]]]] = {
    Reprompted: (
        SPAN_EVENT_REPROMPT,
        {METHOD: "method", REPROMPT_TRIGGER: "trigger", PROMPT_LIVENESS: "liveness"},
    ),
    Responded: (SPAN_EVENT_DUPLICATE, {RESPONSE_DELIVERY: "delivery"}),
    EmptyReplay: (SPAN_EVENT_EMPTY_REPLAY, {REQUEST_STATE: "request_state"}),
    RetriedAfterTerminal: (SPAN_EVENT_RETRY, {FAILURE_POINT: "point"}),
    GuardActed: (SPAN_EVENT_GUARD, {GUARD_ACTION: "action", GUARD_DRY_RUN: "is_dry_run"}),
}
"""Which verdicts are marked as an event of a span, under which name, with which fields."""


class Identifiers:
    """How identifiers are shown on spans (design, section 4).

    Args:
        capture: `hash`, `raw` or `off`.
        key: the key of the hash; without one, a random key of this process.
    """

    def __init__(self, capture: CaptureIds = "hash", key: str | None = None) -> None:
        self._capture = capture
        self._key = key.encode() if key else secrets.token_bytes(32)

    def session(self, value: str | None) -> dict[str, str]:
        if not value or self._capture == "off":
            return {}
        if self._capture == "raw" and len(value) <= RAW_LIMIT:
            return {MCP_SESSION_ID: value}
        return {SESSION_HASH: self._hash(value)}

    def event(self, value: str) -> dict[str, str]:
        shown = self._show(value)
        return {STREAM_LAST_EVENT_ID: shown} if shown else {}

    def request(self, value: JsonId | None) -> dict[str, str]:
        """Integers are shown as they are: they count up from 0 in every client."""
        shown = str(value) if isinstance(value, int) else self._show(value or "")
        return {JSONRPC_REQUEST_ID: shown} if shown else {}

    def _show(self, value: str) -> str:
        if not value or self._capture == "off":
            return ""
        return value if self._capture == "raw" and len(value) <= RAW_LIMIT else self._hash(value)

    def _hash(self, value: str) -> str:
        return hmac.new(self._key, value.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:16]


_NOTHING: Final[Mapping[str, Any]] = {}


class _Trace:
    """What telemetry keeps of one exchange."""

    __slots__ = ("attributes", "events", "marks", "span")

    def __init__(self) -> None:
        self.span: Span | None = None
        # Of what waits for a span: nothing at most times, and a stream may be open for long.
        self.attributes: Mapping[str, Any] = _NOTHING
        self.marks: tuple[tuple[str, dict[str, Any], int], ...] = ()
        self.events = 0


class Spans(Locker):
    """Makes spans of verdicts.

    Args:
        tracer: where spans are started.
        identifiers: how ids are shown.
        server: names the server of a verdict.
        containment: takes the errors of `hook`.
        hook: called with the exchange's span and each verdict.
        clock: the observer's clock, seconds.
    """

    def __init__(
        self,
        tracer: Tracer,
        identifiers: Identifiers,
        server: Callable[[Any], dict[str, str | int]],
        containment: Containment,
        hook: VerdictHook | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._tracer = tracer
        self._identifiers = identifiers
        self._server = server
        self._containment = containment
        self._hook = hook
        self._clock = clock
        self._last: Table[int, SpanContext] = Table("spans")
        self._open: dict[int, _Trace] = {}
        """Traces with a span that has not ended, by exchange: as many as the ledger holds exchanges."""

    @property
    def evicted(self) -> int:
        """Logical streams whose newest span was forgotten, since others came."""
        return self._last.evicted

    def __call__(self, exchange: Exchange | None, verdicts: tuple[Verdict, ...]) -> None:
        for verdict in verdicts:
            if exchange is not None and verdict.exchange in (None, exchange.number):
                ended = self._see(exchange, verdict)
                trace: _Trace | None = exchange.trace
            else:
                # One exchange may push another out of its table, whose end is told with it.
                trace = self._open.get(verdict.exchange or 0)
                ended = self._see_pushed_out(trace, verdict)
            span = ended or (trace.span if trace is not None else None)
            if self._hook is not None:
                self._call(self._hook, span or INVALID_SPAN, verdict)
            if ended is not None:
                ended.end(self._now())

    def _call(self, hook: VerdictHook, span: Span, verdict: Verdict) -> None:
        try:
            hook(span, verdict)
        except Exception as error:  # noqa: BLE001 - the user's code
            self._containment.contain("hook", error)

    def _see(self, exchange: Exchange, verdict: Verdict) -> Span | None:
        """Returns what is to be ended now."""
        kind = type(verdict)
        if kind in ATTRIBUTES:
            self._annotate(exchange, _shown(verdict))
        elif kind in EVENTS:
            self._mark(exchange, verdict)
        elif isinstance(verdict, AttemptBegun):
            self._begin(exchange, verdict)
        elif isinstance(verdict, StreamMoved):
            self._move(exchange, verdict)
        elif isinstance(verdict, AttemptEnded):
            return self._end(exchange, verdict)
        elif isinstance(verdict, Probed):
            return self._probe(exchange, verdict)
        elif isinstance(verdict, AnswerSettled):
            return self._answer(exchange, verdict)
        return None

    def _see_pushed_out(self, trace: _Trace | None, verdict: Verdict) -> Span | None:
        """Same as _see, for an exchange of which nothing is at hand but its trace."""
        if trace is None or trace.span is None:
            return None
        if type(verdict) in ATTRIBUTES:
            trace.span.set_attributes(_shown(verdict))
        return self._closed(trace, verdict) if isinstance(verdict, AttemptEnded) else None

    # -------------------------------------------------------------- streams

    def _begin(self, exchange: Exchange, verdict: AttemptBegun) -> None:
        nth = verdict.streak + 1
        if nth >= FULL_DETAIL and nth & (nth - 1):
            return
        trace = _trace(exchange)
        attributes: dict[str, Any] = {
            **self._server(verdict.server),
            STREAM_KIND: verdict.kind,
            HTTP_METHOD: _method_name(exchange.http_method),
            RECONNECT_ATTEMPT: verdict.attempt,
            **self._identifiers.session(verdict.session),
            **self._identifiers.request(verdict.request_id),
        }
        attributes |= {PROTOCOL_VERSION: version_name(verdict.version)} if verdict.version else {}
        attributes |= {METHOD: verdict.method} if verdict.method else {}
        is_root = verdict.kind in ("standalone", "listen")
        trace.span = self._start(
            exchange,
            f"{SPAN_STREAM} {verdict.kind}",
            {**attributes, **trace.attributes},
            self._link(verdict.stream),
            is_root=is_root,
        )
        self._open[exchange.number] = trace
        if trace.span.get_span_context().is_valid:
            with self._lock:
                self._last.put(verdict.stream, trace.span.get_span_context())
        for name, shown, at in trace.marks:
            trace.span.add_event(name, shown, at)

    def _move(self, exchange: Exchange, verdict: StreamMoved) -> None:
        self._annotate(exchange, {STREAM_KIND: verdict.kind})
        trace: _Trace | None = exchange.trace
        if trace is not None and trace.span is not None:
            trace.span.update_name(f"{SPAN_STREAM} {verdict.kind}")

    def _end(self, exchange: Exchange, verdict: AttemptEnded) -> Span | None:
        trace: _Trace | None = exchange.trace
        if trace is None or trace.span is None:
            return None
        span = trace.span
        if exchange.status is not None:
            span.set_attribute(HTTP_STATUS_CODE, exchange.status)
        if exchange.is_stream:
            span.set_attribute(STREAM_EVENTS, exchange.events_read)
            span.set_attribute(STREAM_BYTES, exchange.bytes_read)
            span.set_attributes(self._identifiers.event(exchange.last_event_id))
        if exchange.is_opaque:
            span.set_attribute(STREAM_OPAQUE, value=True)
        return self._closed(trace, verdict, exchange.error_name)

    def _closed(self, trace: _Trace, verdict: AttemptEnded, error_name: str = "") -> Span | None:
        span, trace.span = trace.span, None
        self._open.pop(verdict.exchange or 0, None)
        if span is not None and verdict.failed:
            span.set_attribute(ERROR_TYPE, error_name or verdict.error_type or "")
            span.set_status(Status(StatusCode.ERROR))
        return span

    # -------------------------------------------------------------- probes and answers

    def _probe(self, exchange: Exchange, verdict: Probed) -> Span:
        attributes = {
            PROBE_KIND: verdict.kind,
            PROBE_OUTCOME: verdict.outcome,
            PROBE_CONTEXT: verdict.context,
            PROTOCOL_VERSION: version_name(verdict.version),
            **({METHOD: verdict.method} if verdict.method else {}),
            **self._identifiers.session(verdict.session),
            **self._identifiers.request(verdict.request_id),
        }
        error = verdict.outcome if verdict.outcome == "dead" else ""
        return self._whole(exchange, verdict, SPAN_PROBE, attributes, verdict.stream, error)

    def _answer(self, exchange: Exchange, verdict: AnswerSettled) -> Span:
        attributes = {
            METHOD: verdict.method,
            ANSWER_OUTCOME: verdict.outcome,
            ANSWER_TIMING: verdict.timing,
            DISPOSITION: verdict.disposition,
            PROTOCOL_VERSION: version_name(verdict.version),
            **self._identifiers.session(verdict.session),
            **self._identifiers.request(verdict.request_id),
        }
        error = verdict.outcome if verdict.outcome != "acknowledged" else ""
        return self._whole(exchange, verdict, SPAN_ANSWER, attributes, verdict.stream, error)

    def _whole(
        self,
        exchange: Exchange,
        verdict: Verdict,
        name: str,
        attributes: dict[str, Any],
        stream: int | None,
        error: str,
    ) -> Span:
        """A span of which all is known already: it covers the exchange up to now.

        `error` is the class of a failure that neither an exception nor a status names; empty if there was none.
        """
        trace = _trace(exchange)
        known = {
            **self._server(verdict.server),
            HTTP_METHOD: _method_name(exchange.http_method),
            **attributes,
            **trace.attributes,
        }
        if exchange.status is not None:
            known[HTTP_STATUS_CODE] = exchange.status
        span = self._start(exchange, name, known, self._link(stream))
        for mark, shown, at in trace.marks:
            span.add_event(mark, shown, at)
        if error:
            status = exchange.status or 0
            span.set_attribute(
                ERROR_TYPE, exchange.error_name or (str(status) if status >= _ERRORS else error)
            )
            span.set_status(Status(StatusCode.ERROR))
        return span

    # -------------------------------------------------------------- parts

    def _start(
        self,
        exchange: Exchange,
        name: str,
        attributes: dict[str, Any],
        links: list[Link],
        *,
        is_root: bool = False,
    ) -> Span:
        context: Any = exchange.context
        if is_root:
            around = get_current_span(context).get_span_context()
            links = [*links, *([Link(around)] if around.is_valid else [])]
            context = Context()
        return self._tracer.start_span(
            name,
            context=context,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            links=links,
            start_time=self._now() - int((self._clock() - exchange.started_at) * 1e9),
        )

    def _link(self, stream: int | None) -> list[Link]:
        """To the newest span of the logical stream."""
        with self._lock:
            before = self._last.get(stream) if stream is not None else None
        return [Link(before)] if before is not None else []

    def _annotate(self, exchange: Exchange, shown: dict[str, Any]) -> None:
        trace = _trace(exchange)
        if trace.span is not None:
            trace.span.set_attributes(shown)
        else:
            trace.attributes = {**trace.attributes, **shown}

    def _mark(self, exchange: Exchange, verdict: Verdict) -> None:
        if isinstance(verdict, Responded) and not verdict.delivery.startswith("duplicate"):
            return
        name, fields = EVENTS[type(verdict)]
        shown = {key: getattr(verdict, field) for key, field in fields.items()}
        trace = _trace(exchange)
        trace.events += 1
        if trace.events > EVENT_LIMIT:
            return
        if trace.span is not None:
            trace.span.add_event(name, shown)
        else:
            trace.marks += ((name, shown, self._now()),)

    @staticmethod
    def _now() -> int:
        return time.time_ns()


def _shown(verdict: Verdict) -> dict[str, Any]:
    """The fields of a verdict that are attributes of its stream's span."""
    return {name: getattr(verdict, field) for name, field in ATTRIBUTES[type(verdict)].items()}


def _method_name(method: str) -> str:
    """HTTP conventions: a method that is not known to them is `_OTHER`."""
    return method if method in HTTP_METHODS else OTHER


def _trace(exchange: Exchange) -> _Trace:
    if exchange.trace is None:
        exchange.trace = _Trace()
    trace: _Trace = exchange.trace
    return trace
