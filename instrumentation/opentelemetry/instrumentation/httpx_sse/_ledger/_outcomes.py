"""What an attempt brought, settled at the first decisive moment: design 3.1 ends, 3.2 outcomes, 3.4 losses."""

from collections.abc import Callable, Iterator
from typing import Final

from .._events import Ended, ErrorKind
from .._failure import Failure, Ruling, classify, classify_replay, refused_for_good
from .._names import DROPS, Disposition, FailurePoint, LossReason, ReconnectOutcome, StreamEnd, StreamKind
from .._verdicts import (
    AttemptEnded,
    Classified,
    EmptyReplay,
    ReconnectSettled,
    RequestLost,
    RetriedAfterTerminal,
    Standing,
    StreamEnded,
    StreamLost,
    Verdict,
)
from . import _sessions
from ._records import Attempt, Flight, Logical
from ._state import State

Verdicts = Iterator[Verdict]

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
        kind=attempt.kind,
        end=attempt.end,
        seconds=max(at - flight.at, 0.0),
        silence=attempt.silence if attempt.end in DROPS else None,
    )
    if attempt.is_opaque and event.last_byte_at is not None:
        yield from progressed(flight, stream, attempt)
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


def _settle_at_end(state: State, flight: Flight, stream: Logical, attempt: Attempt, event: Ended) -> Verdicts:
    # Whoever closes after the answer, the stream is complete: the official clients close at an answer that they
    # are given a second time, and have seen all that this resume could bring.
    by_client = event.how in ("closed", "abandoned") or event.error == "cancelled"
    is_spent = by_client and attempt.end == "complete" and attempt.events > 0
    outcome = outcome_at_end(
        attempt,
        by_client=by_client and not is_spent,
        is_clean=event.how == "exhausted" or is_spent,
        held=(attempt.ended_at or 0.0) - (attempt.opened_at or 0.0),
        quiet=state.thresholds.quiet_threshold,
    )
    if outcome == "interrupted":
        ruling = classify(Failure("resume", error=event.error))
        yield from _settle(flight, stream, attempt, outcome, "retryable")
        if ruling is not None:
            yield classified(flight, ruling)
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
            # A replay is a resume's, also when the GET is what a redirect has made of an answer or of a probe.
            yield classified(flight, ruling, "resume")
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


def progressed(flight: Flight, stream: Logical, attempt: Attempt) -> Verdicts:
    """Something new came: that settles the attempt."""
    if not attempt.has_progress:
        attempt.has_progress = True
        yield from _settle(flight, stream, attempt, "progressed", "continue")


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
    if flight.met_doubt or any(request.method == "ping" for request in flight.requests):
        return "probe"
    if flight.sent.http_method == "GET":
        return "resume" if flight.cursor else "open"
    return "request"


def classified(flight: Flight, ruling: Ruling, point: FailurePoint | None = None) -> Classified:
    """A failure of this exchange, where it counts or at another `point`."""
    return Classified(
        server=flight.place.origin,
        exchange=flight.exchange,
        point=point or point_of(flight),
        disposition=ruling.disposition,
        reason=ruling.reason,
    )


# ------------------------------------------------------------------ attempts that got no stream


def refused(flight: Flight, ruling: Ruling | None, at: float) -> Verdicts:
    """The attempt was answered, but not by an event stream; `ruling` is its classification."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None or flight.answered is None:
        return
    status = flight.answered.status
    attempt.ended_at = stream.touched_at = at
    if 300 <= status < 400 and ruling is None:  # noqa: PLR2004
        # The request that follows is the same attempt.
        attempt.is_redirected = True
    elif ruling is None:
        # A POST that asked for a stream was answered without one.
        attempt.is_refused = True
        yield from _settle(flight, stream, attempt, "not_sse", "terminal")
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
    error = str(status) if status >= 400 else "not_sse"  # noqa: PLR2004
    yield AttemptEnded(
        server=stream.origin,
        exchange=flight.exchange,
        kind=stream.kind,
        failed=ruling is not None,
        error_type=error if ruling is not None else None,
    )


def failed(flight: Flight, error: ErrorKind, at: float) -> Verdicts:
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
    is_resumable = stream.dialect.has_resumption and stream.has_cursor
    if by_client and stream.dialect.close_cancels:
        stream.cancel()
    elif not by_client and not is_resumable and stream.kind != "listen":
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


# ------------------------------------------------------------------ for whoever acts


def concluded(state: State, stream: Logical, *, exchange: int) -> Verdicts:
    """The client was given an error for all that the stream owed it: to the client it is terminal."""
    yield from lose(stream, "gave_up", exchange=exchange)
    for request in stream.requests.values():
        request.is_over = True
    stream.requests.clear()
    stream.is_terminal = True
    stream.refused_with = stream.attempt.credentials if stream.attempt is not None else b""
    state.spend(stream)


def standing(state: State, stream: Logical) -> Standing:
    """What is known of a logical stream now, seen with the credentials of its newest attempt."""
    credentials = stream.attempt.credentials if stream.attempt is not None else b""
    is_known = stream.refused_with == credentials
    refusal = stream.refusal if is_known and stream.refusal and refused_for_good(stream.refusal) else None
    return Standing(
        server=stream.origin,
        kind=stream.kind,
        pending=tuple(stream.requests),
        streak=stream.streak,
        is_answered=stream.is_terminal and is_known,
        refusal=refusal.reason if refusal is not None else None,
        is_rejected=stream.rejected_with == credentials,
        is_answering=any(state.is_answering(prompt) for prompt in stream.prompts),
        has_server_requests=stream.dialogue.has_server_requests,
        retry=stream.retry,
        has_retry=stream.attempt is not None and stream.attempt.has_retry,
        session=_sessions.standing(stream.place.session),
    )
