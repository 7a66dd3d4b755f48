"""Which logical stream a request opens a stream for, and why it does so: design 3.2, cause and cursor.

An *attempt* is one try to open a stream for a logical stream. It begins here; what it brings is judged in `_progress`
and `_outcomes`.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from .._events import Answered
from .._names import ReconnectCause, ReconnectCursor, RetryHint
from .._verdicts import (
    AttemptBegun,
    ReconnectDelayed,
    Reconnected,
    RetriedAfterTerminal,
    StreamOpened,
    Verdict,
)
from ._records import Attempt, Flight, Logical
from ._state import State

Verdicts = Iterator[Verdict]

HONORED: Final = 0.9
"""The share of `retry` that a client must have waited to have honoured it: clocks jitter."""

# ------------------------------------------------------------------ which logical stream


def by_cursor(flight: Flight) -> Logical | None:
    """The logical stream that a cursor names: of several, the newest that is not terminal (design 3.2)."""
    cursor = flight.cursor
    # A listen stream has no cursor to resume from: it is opened again by the same POST (MCP 2026-07-28).
    named = [s for s in flight.place.newest_first() if s.kind != "listen" and cursor in s.ids]
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


def _dropped_after_silence(last: Attempt, idle: float) -> bool:
    return last.end in ("server_closed", "network_error", "complete") and last.silence >= idle


def _clean(last: Attempt) -> bool:
    return last.end in ("server_closed", "complete")


CAUSES: Final = (
    _Cause("after_terminal", lambda stream, last, idle: stream.is_terminal),
    _Cause("refused", lambda stream, last, idle: last.is_refused),
    _Cause("connect_error", lambda stream, last, idle: last.error is not None and last.opened_at is None
           and last.error != "cancelled"),
    _Cause("client_timeout", lambda stream, last, idle: last.end == "read_timeout"),
    _Cause("idle_timeout", lambda stream, last, idle: _dropped_after_silence(last, idle)),
    _Cause("network_error", lambda stream, last, idle: last.end == "network_error"),
    _Cause("server_poll", lambda stream, last, idle: _clean(last)
           and (last.sent_poll or (last.outcome == "quiet" and stream.had_poll))),
    _Cause("server_close", lambda stream, last, idle: _clean(last)),
    _Cause("client_close", lambda stream, last, idle: last.ended_at is not None),
)  # fmt: skip
"""Why a client reconnects, first that fits; `unknown` when none does (design 3.2)."""


def begin(state: State, flight: Flight, stream: Logical, at: float, *, foreign: bool = False) -> Verdicts:
    """The request of `flight` tries to open a stream for `stream`."""
    last = stream.attempt
    sent = flight.sent
    flight.stream, stream.touched_at = stream, at
    state.streams.get(stream.number)
    # A 3xx is no outcome, and the request that follows it is the same attempt.
    is_same = last is not None and last.is_redirected
    if last is not None and is_same:
        last.is_redirected, last.ended_at = False, None
        flight.attempt = last
    else:
        stream.attempts += 1
        flight.attempt = stream.attempt = Attempt(
            is_reconnect=foreign or stream.attempts > 1,
            started_at=flight.at,
            has_cursor=bool(flight.cursor),
            credentials=sent.credentials,
            after_rejection=bool(flight.cursor) and stream.rejected_with == sent.credentials,
        )
    if foreign and flight.cursor:
        # From now on it is known in this scope: whoever comes with it again resumes the same logical stream.
        state.learn(stream, flight.cursor)
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
    if flight.attempt.is_reconnect and not is_same:
        yield from _reconnected(state, flight, stream, last, foreign=foreign)


def _reconnected(
    state: State, flight: Flight, stream: Logical, last: Attempt | None, *, foreign: bool
) -> Verdicts:
    idle = state.thresholds.idle_threshold
    causes = [c.cause for c in CAUSES if last is not None and c.fits(stream, last, idle)]
    cause: ReconnectCause = causes[0] if causes and not foreign else "unknown"
    cursor: ReconnectCursor = (
        "foreign" if foreign
        else "sent" if flight.cursor
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
    if flight.cursor and hopeless and stream.refused_with == flight.sent.credentials:
        yield RetriedAfterTerminal(server=origin, exchange=exchange, point="resume")


# ------------------------------------------------------------------ the head of the response


def opened(flight: Flight, event: Answered, at: float) -> Verdicts:
    """The event stream's headers came."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    attempt.opened_at, attempt.kind = at, stream.kind
    attempt.is_opaque = event.opaque
    stream.had_stream, stream.is_lost, stream.refusal, stream.touched_at = True, False, None, at
    yield StreamOpened(server=stream.origin, exchange=flight.exchange, kind=stream.kind)
