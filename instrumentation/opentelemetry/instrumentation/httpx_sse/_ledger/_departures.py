"""What is now, and what time alone decides: design 3.6 and the gauges of section 4."""

from collections.abc import Iterator
from typing import Final

from .._events import Origin
from .._names import EventType, RepromptTrigger, StreamKind, StreamState
from .._verdicts import Snapshot, Verdict
from ._outcomes import STREAMS_LOST_KINDS, lose
from ._records import Session
from ._state import State
from ._tables import LEAVES_AFTER, SESSION_LEAVES_AFTER

_PHASES: Final[dict[str, StreamState]] = {"open": "open", "waiting": "waiting"}
"""The states of a logical stream that its gauge shows."""


def snapshot(state: State, *, at: float) -> Snapshot:
    """All gauges at `at`, seconds on the ledger's clock, and the losses that have come to light by then."""
    settled = tuple(_gave_up(state, at))
    streams: dict[tuple[Origin, StreamKind, StreamState], int] = {}
    stalled: dict[Origin, int] = {}
    ages: dict[Origin, float] = {}
    for stream in state.streams:
        if not stream.is_shown(at):
            continue
        origin = stream.origin
        stalled[origin] = max(stalled.get(origin, 0), stream.streak)
        phase = _PHASES.get(stream.state)
        if phase is not None:
            key = (origin, stream.kind, phase)
            streams[key] = streams.get(key, 0) + 1
        # A listen request waits as long as its client listens: its age tells nothing.
        is_awaited = stream.attempts > 1 and stream.kind != "listen"
        for request in stream.requests.values() if is_awaited else ():
            if not request.is_over:
                ages[origin] = max(ages.get(origin, 0.0), at - request.sent_at)
    return Snapshot(
        logical_streams=streams,
        stalled_streak=stalled,
        oldest_request_age=ages,
        unconfirmed_sessions=_unconfirmed(state, at),
        reprompt_streak=_reprompts(state, at),
        events=_events(state),
        evictions=state.evictions(),
        settled=settled,
    )


def _unconfirmed(state: State, at: float) -> dict[Origin, int]:
    counts: dict[Origin, int] = {}
    for session in state.sessions:
        if session.unconfirmed_since is not None and _is_in_use(session, at):
            counts[session.origin] = counts.get(session.origin, 0) + 1
    return counts


def _is_in_use(session: Session, at: float) -> bool:
    return session.requests_open > 0 or at - session.used_at <= SESSION_LEAVES_AFTER


def _reprompts(state: State, at: float) -> dict[tuple[Origin, RepromptTrigger], int]:
    """The longest streak now by server and trigger; prompts whose request is over or that were left alone are out."""
    streaks: dict[tuple[Origin, RepromptTrigger], int] = {}

    def see(origin: Origin, trigger: RepromptTrigger, streak: int) -> None:
        streaks[origin, trigger] = max(streaks.get((origin, trigger), 0), streak)

    for prompt in state.prompts:
        stream = prompt.stream
        if not prompt.streak or stream is None:
            continue
        is_over = stream.is_cancelled or (stream.is_lost and stream.kind == "response")
        session = stream.place.session
        if is_over or (session is not None and session.state != "alive"):
            continue
        if at - prompt.last_at <= stream.patience(LEAVES_AFTER):
            see(stream.origin, prompt.trigger, prompt.streak)
    for operation in state.operations:
        place = operation.place
        if operation.streak and place is not None and at - operation.last_at <= LEAVES_AFTER:
            see(place.origin, operation.trigger, operation.streak)
    return streaks


def _events(state: State) -> dict[tuple[Origin, StreamKind, EventType], int]:
    return {
        (origin, kind, event_type): count
        for (origin, kind), tally in list(state.tallies.items())
        for event_type, count in list(tally.items())
    }


def _gave_up(state: State, at: float) -> Iterator[Verdict]:
    """Streams that nobody came back for in time (design 3.4)."""
    for stream in list(state.streams):
        attempt = stream.attempt
        if stream.is_lost or stream.is_terminal or stream.is_cancelled:
            continue
        if attempt is None or attempt.ended_at is None:
            continue
        # Whether an answer came on a stream that cannot be read, nobody knows.
        awaited = (stream.requests and not attempt.is_opaque) or stream.kind in STREAMS_LOST_KINDS
        patience = stream.patience(state.thresholds.give_up_after)
        if not awaited or not stream.had_stream or at - attempt.ended_at <= patience:
            continue
        if stream.kind in STREAMS_LOST_KINDS and stream.place.used_at <= attempt.ended_at:
            continue
        yield from lose(stream, "gave_up", exchange=None)
