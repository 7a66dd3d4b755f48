"""What an event brings that is new: design, Terms, progress."""

from collections.abc import Iterator
from typing import Final

from .._dialect import DIALECTS
from .._events import MessageKind, Received, Skimmed
from .._names import EventType
from .._verdicts import FirstEvent, StreamMoved, Verdict
from ._outcomes import progressed
from ._records import Attempt, Flight, Logical
from ._state import State
from ._tables import STREAM_MESSAGES

Verdicts = Iterator[Verdict]

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
    fresh = state.learn_all(stream, event.event_ids)
    state.ids_evicted += event.forgotten
    may_lack_id = event.event_type == "notification" or stream.kind == "other"
    if fresh or (may_lack_id and event.count > len(event.event_ids)):
        yield from progressed(flight, stream, attempt)


def received(state: State, flight: Flight, event: Received, at: float) -> Verdicts:
    """One event of a stream; what its messages mean to the dialogue is told elsewhere."""
    stream, attempt = flight.stream, flight.attempt
    if stream is None or attempt is None:
        return
    stream.touched_at = at
    if event.retry is not None:
        stream.retry, attempt.has_retry = event.retry, True
        attempt.sent_poll = stream.had_poll = True
    is_priming = bool(event.event_id) and event.is_empty
    if not event.has_data and not is_priming:
        return
    yield from _first_event(flight, stream, attempt, at)
    attempt.events += 1
    if event.endpoint and stream.kind in ("other", "legacy"):
        yield from _moved_to_legacy(state, flight, stream, attempt, event)
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
        yield from progressed(flight, stream, attempt)


def _is_new(stream: Logical, event: Received, *, is_priming: bool, known_id: bool) -> bool:
    """Whether an event brings a message not seen before on the logical stream (design, Terms: progress)."""
    if event.messages:
        fresh = [m for m in event.messages if _is_new_message(stream, event, m.kind, m.method, m.id)]
        return bool(fresh)
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


def _moved_to_legacy(
    state: State, flight: Flight, stream: Logical, attempt: Attempt, event: Received
) -> Verdicts:
    """MCP 2024-11-05, basic/transports: "When a client connects, the server MUST send an `endpoint` event"."""
    before, stream.kind, attempt.kind = attempt.kind, "legacy", "legacy"
    stream.dialect = DIALECTS["2024-11-05"]
    stream.endpoint = event.endpoint
    state.endpoints.put(event.endpoint, stream)
    if before != "legacy":
        yield StreamMoved(server=stream.origin, exchange=flight.exchange, kind="legacy", before=before)
