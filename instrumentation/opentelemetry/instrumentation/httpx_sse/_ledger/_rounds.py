"""Operations that are sent again until what they ask for is given: design 3.4, `input_required` and `-32042`.

Questions are compared by digest; what was asked and answered is never kept.
"""

from collections.abc import Iterator
from typing import Final

from .._envelope import URL_ELICITATION_REQUIRED
from .._events import Asked, Message
from .._names import OTHER, PROMPT_METHODS, PromptDelivery, PromptLiveness, RepromptTrigger
from .._verdicts import Reprompted, RoundsEnded, ServerRequested, Verdict
from ._records import Flight, Operation, Request
from ._state import State

Verdicts = Iterator[Verdict]
Key = tuple[object, ...]

SEEN_LIMIT: Final = 256
"""Questions of one operation that are recognised when they come again."""

_ASKED_METHODS: Final = frozenset((*PROMPT_METHODS, "roots/list"))


def _state_key(flight: Flight, state: bytes) -> Key:
    return ("state", flight.place.key, state)


def _subject_key(flight: Flight, request: Request, trigger: RepromptTrigger) -> Key:
    return (trigger, flight.place.key, request.message.method, request.name, request.message.subject)


def continued(state: State, flight: Flight, request: Request) -> None:
    """A request leaves: one with answers, or with the state that it was given, continues an operation."""
    message = request.message
    if not message.has_input and not message.state:
        return
    by_state = state.operations.get(_state_key(flight, message.state)) if message.state else None
    operation = by_state or state.operations.get(_subject_key(flight, request, "input_required"))
    request.operation = operation
    if operation is not None and message.has_input:
        operation.answered = operation.asked


def ruled(state: State, flight: Flight, request: Request, message: Message, at: float) -> Verdicts:
    """The response to a request of an operation, or to one that begins it."""
    if message.input_required:
        yield from _round(state, flight, request, message, at)
    elif message.error_code == URL_ELICITATION_REQUIRED:
        yield from _visit(state, flight, request, at)
    else:
        yield from _over(state, flight, request)


def _round(state: State, flight: Flight, request: Request, message: Message, at: float) -> Verdicts:
    """MCP 2026-07-28: the result is `input_required`; here it is told whether it asks anything new."""
    operation = request.operation or Operation(request.method, place=flight.place)
    request.operation = operation
    operation.rounds += 1
    operation.last_at = at
    keys = [_subject_key(flight, request, "input_required")]
    if message.state:
        keys.append(_state_key(flight, message.state))
    _file(state, operation, keys)
    digests = frozenset(asked.digest for asked in message.asked)
    is_poll = all(asked.is_url and asked.digest in operation.seen for asked in message.asked)
    if is_poll:
        return
    if digests == operation.answered:
        operation.streak += 1
        operation.trigger = "input_required"
        liveness: PromptLiveness = "answered" if request.message.has_input else "unverified"
        for asked in message.asked:
            yield from _shown(flight, asked, "redelivered", liveness, "input_required")
    else:
        operation.streak = 0
        for asked in message.asked:
            if asked.digest not in operation.seen:
                yield from _shown(flight, asked, "first", "live", None)
    operation.asked = digests
    if len(operation.seen) < SEEN_LIMIT:
        operation.seen |= digests


def _visit(state: State, flight: Flight, request: Request, at: float) -> Verdicts:
    """MCP 2025-11-25: the request is refused until the user has visited a page."""
    key = _subject_key(flight, request, "url_required")
    operation = state.operations.get(key)
    asked = Asked(method="elicitation/create", digest=b"", is_url=True)
    if operation is None:
        operation = Operation(request.method, place=flight.place, trigger="url_required")
        _file(state, operation, [key])
        yield from _shown(flight, asked, "first", "live", None)
    else:
        operation.streak += 1
        liveness: PromptLiveness = "answered" if request.message.has_input else "unverified"
        yield from _shown(flight, asked, "redelivered", liveness, "url_required")
    operation.last_at = at


def _shown(
    flight: Flight,
    asked: Asked,
    delivery: PromptDelivery,
    liveness: PromptLiveness,
    trigger: RepromptTrigger | None,
) -> Verdicts:
    origin, exchange = flight.place.origin, flight.exchange
    method = asked.method if asked.method in _ASKED_METHODS else OTHER
    yield ServerRequested(
        server=origin, exchange=exchange, method=method, delivery=delivery, liveness=liveness
    )
    if trigger is not None:
        yield Reprompted(server=origin, exchange=exchange, method=method, trigger=trigger, liveness=liveness)


def _over(state: State, flight: Flight, request: Request) -> Verdicts:
    """Any other response ends the operation."""
    visits = state.operations.pop(_subject_key(flight, request, "url_required"))
    if visits is not None:
        visits.streak = 0
    operation = request.operation
    if operation is None:
        return
    for key in operation.keys:
        state.operations.pop(key)
    operation.streak = 0
    yield RoundsEnded(
        server=flight.place.origin,
        exchange=flight.exchange,
        method=request.method,
        rounds=operation.rounds,
    )


def _file(state: State, operation: Operation, keys: list[Key]) -> None:
    """An operation is found by the newest state that it was given, or by what it is about."""
    for key in operation.keys.difference(keys):
        state.operations.pop(key)
    operation.keys = set(keys)
    for key in keys:
        gone = state.operations.put(key, operation)
        if gone is not None:
            gone.keys.clear()
