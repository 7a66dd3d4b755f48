"""Attempts, streams and reconnects: design 3.1 and 3.2.

An *attempt* is one try to open a stream for a logical stream. Each goes through
begin, then opened or refused or failed, then events, then its end; the first decisive moment settles what it brought.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from .._dialect import DIALECTS
from .._events import Answered, Ended, ErrorKind, MessageKind, Received, Skimmed
from .._failure import Failure, Ruling, classify, classify_replay, refused_for_good
from .._names import (
    DROPS,
    Disposition,
    EventType,
    FailurePoint,
    LossReason,
    ReconnectCause,
    ReconnectCursor,
    ReconnectOutcome,
    RetryHint,
    StreamEnd,
    StreamKind,
)
from .._verdicts import (
    AttemptBegun,
    AttemptEnded,
    Classified,
    EmptyReplay,
    FirstEvent,
    ReconnectDelayed,
    Reconnected,
    ReconnectSettled,
    RequestLost,
    RetriedAfterTerminal,
    StreamEnded,
    StreamLost,
    StreamMoved,
    StreamOpened,
    Verdict,
)
from ._records import Attempt, Flight, Logical
from ._state import State
from ._tables import STREAM_MESSAGES

HONORED: Final = 0.9
"""The share of `retry` that a client must have waited to have honoured it: clocks jitter."""

Verdicts = Iterator[Verdict]

# ------------------------------------------------------------------ which logical stream


def by_cursor(flight: Flight) -> Logical | None:
    """The logical stream that a cursor names: of several, the newest that is not terminal (design 3.2)."""
    cursor = flight.sent.cursor
    named = [stream for stream in flight.place.newest_first() if cursor in stream.ids]
    return next((stream for stream in named if not stream.is_terminal), named[0] if named else None)


def standalone(flight: Flight) -> Logical | None:
    """The standalone stream of a place, if it has none open now."""
    newest = next((s for s in flight.place.newest_first() if s.kind == "standalone"), None)
    return newest if newest is not None and newest.is_idle else None


def listening(flight: Flight, subject: bytes) -> Logical | None:
    """The listen stream with this filter that ended without a graceful result."""
    newest = next(
        (s for s in flight.place.newest_first() if s.kind == "listen" and s.subject == subject), None
    )
    return newest if newest is not None and newest.is_idle and not newest.is_terminal else None


def plain(flight: Flight) -> Logical | None:
    """The stream of this URL, no MCP, that ended before it was complete or can be resumed."""
    newest = next(
        (
            s
            for s in flight.place.newest_first()
            if s.kind in ("other", "legacy") and s.target == flight.sent.target
        ),
        None,
    )
    if newest is None or not newest.is_idle or newest.attempt is None:
        return None
    is_over = newest.attempt.end == "complete" and not newest.has_cursor and newest.retry is None
    return None if is_over else newest


# ------------------------------------------------------------------ beginning


class _Cause(NamedTuple):
    cause: ReconnectCause
    fits: Callable[[Logical, Attempt, float], bool]


def _dropped_after_silence(stream: Logical, last: Attempt, idle: float) -> bool:
    return last.end in ("server_closed", "network_error", "complete") and last.silence >= idle


def _clean(last: Attempt) -> bool:
    return last.end in ("server_closed", "complete")


CAUSES: Final = (
    _Cause("after_terminal", lambda stream, last, idle: stream.is_terminal),
    _Cause("refused", lambda stream, last, idle: last.is_refused),
    _Cause("connect_error", lambda stream, last, idle: last.error is not None and last.opened_at is None
           and last.error != "cancelled"),
    _Cause("client_timeout", lambda stream, last, idle: last.end == "read_timeout"),
    _Cause("idle_timeout", _dropped_after_silence),
    _Cause("network_error", lambda stream, last, idle: last.end == "network_error"),
    _Cause("server_poll", lambda stream, last, idle: _clean(last)
           and (last.sent_poll or (last.outcome == "quiet" and stream.had_poll))),
    _Cause("server_close", lambda stream, last, idle: _clean(last)),
    _Cause("client_close", lambda stream, last, idle: last.ended_at is not None),
)  # fmt: skip
"""Why a client reconnects, first that fits; `unknown` when none does (design 3.2)."""


def begin(
    state: State, flight: Flight, stream: Logical, at: float, *, foreign: bool = False
) -> Verdicts:
    """The request of `flight` tries to open a stream for `stream`."""
    last = stream.attempt
    sent = flight.sent
    flight.stream, stream.touched_at = stream, at
    state.streams.get(stream.number)
    if last is not None and last.is_redirected:
        # A 3xx is no outcome, and the request that follows it is the same attempt.
        last.is_redirected, last.ended_at = False, None
        flight.attempt = last
        return
    stream.attempts += 1
    flight.attempt = stream.attempt = Attempt(
        is_reconnect=foreign or stream.attempts > 1,
        started_at=flight.at,
        has_cursor=bool(sent.cursor),
        credentials=sent.credentials,
        after_rejection=bool(sent.cursor) and stream.rejected_with == sent.credentials,
    )
    request = flight.requests[0] if flight.requests else None
    yield AttemptBegun(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        stream=stream.number,
        attempt=stream.attempts,
        streak=stream.streak,
        session=flight.session.id if flight.session else None,
        version=sent.version or stream.dialect.version if sent.mcp else "",
        method=request.method if request else "",
        request_id=request.id if request else None,
    )
    if flight.attempt.is_reconnect:
        yield from _reconnected(state, flight, stream, last, foreign=foreign)


def _reconnected(
    state: State, flight: Flight, stream: Logical, last: Attempt | None, *, foreign: bool
) -> Verdicts:
    idle = state.thresholds.idle_threshold
    causes = [c.cause for c in CAUSES if last is not None and c.fits(stream, last, idle)]
    cause: ReconnectCause = causes[0] if causes and not foreign else "unknown"
    cursor: ReconnectCursor = (
        "foreign" if foreign
        else "sent" if flight.sent.cursor
        else "dropped" if stream.has_cursor
        else "absent"
    )  # fmt: skip
    origin, exchange = stream.origin, flight.exchange
    yield Reconnected(
        server=origin,
        exchange=exchange,
        kind=stream.kind,
        cause=cause,
        cursor=cursor,
    )
    if last is not None and last.ended_at is not None:
        waited = max(flight.at - last.ended_at, 0.0)
        hint: RetryHint = (
            "absent" if stream.retry is None
            else "honored" if waited >= HONORED * stream.retry / 1000
            else "early"
        )  # fmt: skip
        yield ReconnectDelayed(server=origin, exchange=exchange, seconds=waited, retry_hint=hint)
    hopeless = stream.is_terminal or stream.refusal is not None
    if flight.sent.cursor and hopeless and stream.refused_with == flight.sent.credentials:
        yield RetriedAfterTerminal(server=origin, exchange=exchange, point="resume")


# ------------------------------------------------------------------ the head of the response


def opened(state: State, flight: Flight, event: Answered, at: float) -> Verdicts:
    """The event stream's headers came."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    attempt.opened_at = at
    attempt.is_opaque = event.opaque
    stream.had_stream, stream.is_lost, stream.refusal, stream.touched_at = True, False, None, at
    yield StreamOpened(server=stream.origin, exchange=flight.exchange, kind=stream.kind)


# ------------------------------------------------------------------ events

_TYPES: Final[dict[MessageKind, EventType]] = {
    MessageKind.REQUEST: "request",
    MessageKind.NOTIFICATION: "notification",
    MessageKind.RESPONSE: "response",
}

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


def skimmed(state: State, flight: Flight, event: Skimmed, at: float) -> Verdicts:
    """Events that decide nothing but progress."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    tally = state.tally(stream)
    tally[event.event_type] = tally.get(event.event_type, 0) + event.count
    if event.event_type == "comment":
        return
    stream.touched_at = at
    yield from _first_event(flight, stream, attempt, at)
    attempt.events += event.count
    fresh = sum([state.learn(stream, event_id) for event_id in event.event_ids])
    may_lack_id = event.event_type == "notification" or stream.kind == "other"
    if fresh or (may_lack_id and event.count > len(event.event_ids)):
        yield from _progress(flight, stream, attempt)


def received(state: State, flight: Flight, event: Received, at: float) -> Verdicts:
    """One event of a stream; what its messages mean to the dialogue is told elsewhere."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    stream.touched_at = at
    if event.retry is not None:
        stream.retry = event.retry
        attempt.sent_poll = stream.had_poll = True
    is_priming = bool(event.event_id) and event.is_empty
    if not event.has_data and not is_priming:
        return
    yield from _first_event(flight, stream, attempt, at)
    attempt.events += 1
    if event.endpoint and stream.kind == "other":
        yield from _moved_to_legacy(state, flight, stream, event)
    kind: EventType = (
        _TYPES.get(event.messages[0].kind, "other") if event.messages
        else "priming" if is_priming
        else "other"
    )  # fmt: skip
    tally = state.tally(stream)
    tally[kind] = tally.get(kind, 0) + 1
    known_id = not event.event_id or event.event_id in stream.ids
    is_new = _is_new(stream, event, is_priming=is_priming, known_id=known_id)
    if event.event_id:
        state.learn(stream, event.event_id)
    if is_priming:
        attempt.sent_poll = stream.had_poll = True
        attempt.primings += 1
        attempt.new_cursors += not known_id
    elif is_new:
        yield from _progress(flight, stream, attempt)


def _is_new(stream: Logical, event: Received, *, is_priming: bool, known_id: bool) -> bool:
    """Whether an event brings a message not seen before on the logical stream (design, Terms: progress)."""
    if event.messages:
        return any([_is_new_message(stream, event, m.kind, m.method, m.id) for m in event.messages])
    if is_priming or event.event_type == "endpoint":
        return False
    if event.event_id:
        return not known_id
    return stream.kind == "other"


def _is_new_message(
    stream: Logical, event: Received, kind: MessageKind, method: str, identifier: int | str | None
) -> bool:
    if kind is MessageKind.NOTIFICATION:
        return method != ACKNOWLEDGED and (not event.event_id or event.event_id not in stream.ids)
    key = (kind is MessageKind.REQUEST, identifier)
    if key in stream.known:
        return False
    if len(stream.known) >= STREAM_MESSAGES:
        stream.known.pop(next(iter(stream.known)))
    stream.known[key] = None
    return True


def _first_event(flight: Flight, stream: Logical, attempt: Attempt, at: float) -> Verdicts:
    if attempt.events == 0:
        yield FirstEvent(
            server=stream.origin,
            exchange=flight.exchange,
            kind=stream.kind,
            seconds=max(at - flight.at, 0.0),
        )


def _moved_to_legacy(state: State, flight: Flight, stream: Logical, event: Received) -> Verdicts:
    """MCP 2024-11-05, basic/transports: "When a client connects, the server MUST send an `endpoint` event"."""
    before, stream.kind = stream.kind, "legacy"
    stream.dialect = DIALECTS["2024-11-05"]
    stream.endpoint = event.endpoint
    state.endpoints.put(event.endpoint, stream)
    yield StreamMoved(server=stream.origin, exchange=flight.exchange, kind=stream.kind, before=before)


def _progress(flight: Flight, stream: Logical, attempt: Attempt) -> Verdicts:
    if not attempt.has_progress:
        attempt.has_progress = True
        yield from _settle(flight, stream, attempt, "progressed", "continue")


# ------------------------------------------------------------------ the end


def ended(state: State, flight: Flight, event: Ended, at: float) -> Verdicts:
    """The body of an open stream ended."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None or attempt.opened_at is None:
        return
    attempt.is_opaque = attempt.is_opaque or event.opaque
    attempt.end = _end(stream, attempt, event)
    attempt.ended_at = stream.touched_at = at
    attempt.error = event.error
    attempt.silence = max(at - (event.last_byte_at or attempt.opened_at), 0.0)
    yield StreamEnded(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        end=attempt.end,
        seconds=max(at - flight.at, 0.0),
        silence=attempt.silence if attempt.end in DROPS else None,
    )
    if attempt.is_opaque and event.last_byte_at is not None:
        yield from _progress(flight, stream, attempt)
    if not attempt.has_progress:
        yield from _settle_at_end(state, flight, stream, attempt, event)
    yield from _resume_after_rejection(flight, stream, attempt)
    yield from _lost_at_end(flight, stream, attempt)
    yield AttemptEnded(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        failed=attempt.end in ("network_error", "read_timeout"),
        error_type=event.error if attempt.end in ("network_error", "read_timeout") else None,
    )


def _end(stream: Logical, attempt: Attempt, event: Ended) -> StreamEnd:
    if stream.is_terminal:
        return "complete"
    if event.how == "exhausted":
        return "complete" if stream.kind == "other" or attempt.is_opaque else "server_closed"
    if event.how == "failed" and event.error != "cancelled":
        return "read_timeout" if event.error == "timeout" else "network_error"
    return "abandoned" if event.how == "abandoned" else "client_closed"


def outcome_at_end(
    attempt: Attempt, *, by_client: bool, is_clean: bool, held: float, quiet: float
) -> ReconnectOutcome:
    """What an accepted reconnect brought that ended before anything new (design 3.2)."""
    if attempt.new_cursors and attempt.primings == attempt.events:
        return "primed"
    if by_client:
        return "cancelled"
    if not attempt.events and held >= quiet:
        return "quiet"
    if not is_clean:
        return "interrupted"
    return "repeated" if attempt.events else "empty"


def _settle_at_end(
    state: State, flight: Flight, stream: Logical, attempt: Attempt, event: Ended
) -> Verdicts:
    by_client = event.how in ("closed", "abandoned") or event.error == "cancelled"
    outcome = outcome_at_end(
        attempt,
        by_client=by_client,
        is_clean=event.how == "exhausted",
        held=(attempt.ended_at or 0.0) - (attempt.opened_at or 0.0),
        quiet=state.thresholds.quiet_threshold,
    )
    if outcome == "interrupted":
        ruling = classify(Failure("resume", error=event.error))
        yield from _settle(flight, stream, attempt, outcome, "retryable")
        if ruling is not None:
            yield _classified(flight, stream, ruling)
    elif outcome in ("empty", "repeated"):
        ruling = classify_replay(empty=outcome == "empty", terminal=stream.is_terminal)
        yield from _settle(flight, stream, attempt, outcome, ruling.disposition)
        if attempt.is_reconnect and attempt.has_cursor:
            if outcome == "empty":
                yield EmptyReplay(
                    server=stream.origin,
                    exchange=flight.exchange,
                    kind=stream.kind,
                    request_state=stream.request_state,
                )
            yield _classified(flight, stream, ruling)
    else:
        yield from _settle(flight, stream, attempt, outcome, "continue")


_STREAK: Final[dict[ReconnectOutcome, Callable[[int, Disposition], int]]] = {
    "progressed": lambda streak, disposition: 0,
    "primed": lambda streak, disposition: 0,
    "quiet": lambda streak, disposition: streak,
    "empty": lambda streak, disposition: streak + 1,
    "repeated": lambda streak, disposition: streak + 1,
    "interrupted": lambda streak, disposition: streak + 1,
    "refused": lambda streak, disposition: streak + (disposition == "terminal"),
    "not_sse": lambda streak, disposition: streak + 1,
    "failed": lambda streak, disposition: streak,
    "cancelled": lambda streak, disposition: streak,
}
"""How an outcome changes the run of reconnects without progress (design 3.2)."""


def _settle(
    flight: Flight,
    stream: Logical,
    attempt: Attempt,
    outcome: ReconnectOutcome,
    disposition: Disposition,
) -> Verdicts:
    attempt.outcome = outcome
    if not attempt.is_reconnect or attempt.is_settled:
        return
    attempt.is_settled = True
    stream.streak = _STREAK[outcome](stream.streak, disposition)
    yield ReconnectSettled(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        outcome=outcome,
        disposition=disposition,
    )


def _resume_after_rejection(flight: Flight, stream: Logical, attempt: Attempt) -> Verdicts:
    """A resume cannot bring back a server request whose answer was refused for good (design 3.5)."""
    if attempt.after_rejection and not stream.is_terminal:
        yield RetriedAfterTerminal(
            server=stream.origin, exchange=flight.exchange, point="resume_after_rejection"
        )


def point_of(flight: Flight) -> FailurePoint:
    """Where a failed exchange counts (design 3.5)."""
    if flight.is_answer:
        return "answer"
    if flight.probe is not None or any(request.method == "ping" for request in flight.requests):
        return "probe"
    if flight.sent.http_method == "GET":
        return "resume" if flight.sent.cursor else "open"
    return "request"


def _classified(flight: Flight, stream: Logical, ruling: Ruling) -> Classified:
    return Classified(
        server=stream.origin,
        exchange=flight.exchange,
        point=point_of(flight),
        disposition=ruling.disposition,
        reason=ruling.reason,
    )


# ------------------------------------------------------------------ attempts that got no stream


def refused(state: State, flight: Flight, ruling: Ruling | None, at: float) -> Verdicts:
    """The attempt was answered, but not by an event stream; `ruling` is its classification."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None or flight.answered is None:
        return
    status = flight.answered.status
    attempt.ended_at = stream.touched_at = at
    if ruling is None:
        # A redirect: the request that follows is the same attempt.
        attempt.is_redirected = 300 <= status < 400  # noqa: PLR2004
    else:
        attempt.is_refused = True
        outcome: ReconnectOutcome = "refused" if status >= 400 else "not_sse"  # noqa: PLR2004
        yield from _settle(flight, stream, attempt, outcome, ruling.disposition)
        if ruling.disposition == "terminal":
            stream.refusal, stream.refused_with = ruling, flight.sent.credentials
        yield from _resume_after_rejection(flight, stream, attempt)
        is_session_lost = ruling.reason == "session_lost" and stream.kind in STREAMS_LOST_KINDS
        if refused_for_good(ruling) and attempt.is_reconnect and not is_session_lost:
            yield from lose(stream, "refused", exchange=flight.exchange)
    yield AttemptEnded(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        failed=ruling is not None,
        error_type=str(status) if ruling is not None else None,
    )


def failed(state: State, flight: Flight, error: ErrorKind, at: float) -> Verdicts:
    """The attempt got no response."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    attempt.ended_at = stream.touched_at = at
    attempt.error = error
    if error == "cancelled":
        attempt.end = "client_closed"
        yield from _settle(flight, stream, attempt, "cancelled", "continue")
    else:
        yield from _settle(flight, stream, attempt, "failed", "retryable")
    yield from _resume_after_rejection(flight, stream, attempt)
    yield AttemptEnded(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        failed=error != "cancelled",
        error_type=error if error != "cancelled" else None,
    )


# ------------------------------------------------------------------ losses


def _lost_at_end(flight: Flight, stream: Logical, attempt: Attempt) -> Verdicts:
    """Whether the requests of a stream that ended can still be answered on a later one (design 3.4)."""
    if stream.is_terminal or attempt.is_opaque or not stream.requests:
        return
    by_client = attempt.end in ("client_closed", "abandoned")
    if by_client and stream.dialect.close_cancels:
        stream.cancel()
    elif not by_client and not (stream.dialect.has_resumption and stream.has_cursor):
        if stream.kind != "listen":
            yield from lose(stream, "not_resumable", exchange=flight.exchange)


STREAMS_LOST_KINDS: Final[tuple[StreamKind, ...]] = ("standalone", "listen")


def lose(stream: Logical, reason: LossReason, *, exchange: int | None) -> Verdicts:
    """No later stream will bring what was awaited here."""
    if stream.is_lost:
        return
    stream.is_lost = True
    origin = stream.origin
    if stream.kind in STREAMS_LOST_KINDS:
        session = stream.place.session
        if stream.had_stream and (session is None or session.state == "alive"):
            yield StreamLost(server=origin, exchange=exchange, kind=stream.kind, reason=reason)
        return
    for request in stream.requests.values():
        if not request.is_over:
            request.is_over = True
            yield RequestLost(server=origin, exchange=exchange, method=request.method, reason=reason)
