"""Who asked what, and what was answered: client requests, server requests, answers, responses (design 3.4)."""

from collections.abc import Iterator
from typing import Final

from .._dialect import is_prompt
from .._events import Concluded, Digest, JsonId, Message, MessageKind
from .._failure import Ruling, refused_for_good
from .._names import (
    CLIENT_METHODS,
    NONE,
    OTHER,
    SERVER_METHODS,
    AnswerOutcome,
    PromptLiveness,
    RepromptTrigger,
    ResponseDelivery,
)
from .._verdicts import (
    AnswerIneffective,
    AnswerSettled,
    OperationEnded,
    Redelivery,
    Reprompted,
    Responded,
    RetriedAfterTerminal,
    ServerRequested,
    Verdict,
)
from ._records import Flight, Logical, Prompt, Reply, Request
from ._rounds import continued, ruled
from ._state import State

Verdicts = Iterator[Verdict]

STREAM_PROMPTS: Final = 64
"""Server requests of one logical stream whose streak ends with it."""

_CLIENT: Final = frozenset(CLIENT_METHODS)
_SERVER: Final = frozenset(SERVER_METHODS)


def client_method(method: str) -> str:
    return method if method in _CLIENT else OTHER


def server_method(method: str) -> str:
    return method if method in _SERVER else OTHER


# ------------------------------------------------------------------ what the client sends


def sent(state: State, flight: Flight) -> Verdicts:
    """The messages of a POST."""
    for message in flight.sent.messages:
        if message.kind is MessageKind.REQUEST and message.id is not None:
            _request_sent(state, flight, message, message.id)
        elif message.kind is MessageKind.RESPONSE:
            yield from _answer_sent(state, flight, message)
        elif message.cancels is not None:
            _cancelled_by_client(state, flight, message.cancels)


def _request_sent(state: State, flight: Flight, message: Message, identifier: JsonId) -> None:
    version = flight.sent.version or (flight.session.version if flight.session else "")
    request = Request(
        identifier, client_method(message.method), message.name, flight.at, message, version or ""
    )
    state.requests.put((flight.dialogue.number, identifier), request)
    flight.requests.append(request)
    continued(state, flight, request)


def _answer_sent(state: State, flight: Flight, message: Message) -> Verdicts:
    prompt = None
    if message.id is not None:
        prompt = state.prompts.get((flight.dialogue.number, message.id))
    is_late = prompt is not None and prompt.stream is not None and prompt.stream.is_terminal
    flight.replies += (Reply(message, prompt, "late" if is_late else "in_time"),)
    if prompt is not None:
        prompt.answer = flight.exchange
    if prompt is not None and prompt.hopeless_with == flight.sent.credentials:
        yield RetriedAfterTerminal(server=flight.place.origin, exchange=flight.exchange, point="answer")


def _cancelled_by_client(state: State, flight: Flight, identifier: JsonId) -> None:
    request = state.requests.get((flight.dialogue.number, identifier))
    if request is None or request.answered_by is not None:
        return
    request.is_over = True
    stream = request.stream
    if stream is not None:
        stream.requests.pop(identifier, None)
        stream.is_cancelled = not stream.requests


# ------------------------------------------------------------------ what the server sends


def delivered(state: State, flight: Flight, message: Message, at: float) -> Verdicts:
    """One message that came on a stream or in a body."""
    if message.kind is MessageKind.RESPONSE:
        yield from _responded(state, flight, message, at)
    elif message.kind is MessageKind.REQUEST and message.id is not None:
        yield from _requested(state, flight, message, message.id, at)
    elif message.cancels is not None:
        prompt = state.prompts.get((flight.dialogue.number, message.cancels))
        if prompt is not None:
            prompt.is_cancelled = True


def _responded(state: State, flight: Flight, message: Message, at: float) -> Verdicts:
    request = None if message.id is None else asked(state, flight, message.id)
    delivery: ResponseDelivery = (
        "orphan" if request is None
        else "first" if request.answered_by is None
        else "duplicate_same_stream" if request.answered_by == flight.exchange
        else "duplicate_other_stream"
    )  # fmt: skip
    yield Responded(
        server=flight.place.origin,
        exchange=flight.exchange,
        delivery=delivery,
        request_id=message.id,
    )
    if request is None or delivery != "first":
        return
    request.answered_by, request.is_over = flight.exchange, True
    request.version = request.version or message.protocol_version
    code = OTHER if message.error_code is None else str(message.error_code)
    error = code if message.is_error else None
    yield _operation_ended(flight, request, error, message.error_code, at)
    yield from ruled(state, flight, request, message, at)
    if request.stream is not None:
        _terminal(state, flight, request.stream, request.id)


def asked(state: State, flight: Flight, identifier: JsonId) -> Request | None:
    """The client's request with this id; one that waits on this very stream is known even if its table was full."""
    request = state.requests.get((flight.dialogue.number, identifier))
    if request is None and flight.stream is not None:
        request = flight.stream.requests.get(identifier)
    return request


def unanswered(flight: Flight, error: str, at: float) -> Verdicts:
    """The exchange failed; requests that have no response yet will have none."""
    for request in flight.requests:
        if request.answered_by is None and (request.stream is None or flight.legacy is not None):
            request.is_over = True
            if request.stream is not None:
                request.stream.requests.pop(request.id, None)
            yield _operation_ended(flight, request, error, None, at)


def _operation_ended(
    flight: Flight, request: Request, error: str | None, code: int | None, at: float
) -> OperationEnded:
    return OperationEnded(
        server=flight.place.origin,
        exchange=flight.exchange,
        method=request.method,
        name=request.name,
        seconds=max(at - request.sent_at, 0.0),
        version=request.version,
        error_code=code,
        error_type=error,
    )


def _terminal(state: State, flight: Flight, stream: Logical, identifier: JsonId) -> None:
    """A client request of a logical stream had its response; the stream is terminal when all had."""
    stream.requests.pop(identifier, None)
    if stream.requests or stream.kind == "legacy":
        return
    stream.is_terminal = True
    stream.refused_with = flight.sent.credentials
    state.spend(stream)
    for prompt in stream.prompts:
        prompt.streak = 0


def _requested(state: State, flight: Flight, message: Message, identifier: JsonId, at: float) -> Verdicts:
    """A server request was delivered: for the first time, or again."""
    key = (flight.dialogue.number, identifier)
    prompt = state.prompts.get(key)
    if prompt is None or prompt.method != message.method:
        state.prompts.put(key, _first(flight, message, identifier, at))
        flight.dialogue.has_server_requests = True
        if message.method != "ping":
            yield ServerRequested(
                server=flight.place.origin,
                exchange=flight.exchange,
                method=server_method(message.method),
                delivery="first",
                liveness="live",
            )
        return
    prompt.last_at = at
    if message.method == "ping":
        return
    liveness = liveness_of(prompt, message, at=at, submission_deadline=state.thresholds.submission_deadline)
    yield from _redelivered(flight, prompt, liveness)


def _first(flight: Flight, message: Message, identifier: JsonId, at: float) -> Prompt:
    stream = flight.stream
    prompt = Prompt(
        id=identifier,
        method=message.method,
        is_prompt=is_prompt(message.method),
        first_at=at,
        last_at=at,
        progress_token=message.progress_token,
        stream=stream,
        cursor=next(reversed(stream.ids), None) if stream is not None else None,
    )
    if stream is not None:
        if len(stream.prompts) >= STREAM_PROMPTS:
            stream.prompts.pop(0)
        stream.prompts.append(prompt)
    return prompt


def liveness_of(
    prompt: Prompt, message: Message, *, at: float, submission_deadline: float | None
) -> PromptLiveness:
    """What is known of a redelivered server request, first that fits (design 3.4)."""
    asserted = message.asserts_liveness or (
        message.progress_token is not None and message.progress_token != prompt.progress_token
    )
    is_stale = submission_deadline is not None and at - prompt.first_at > submission_deadline
    findings: tuple[tuple[bool, PromptLiveness], ...] = (
        (prompt.is_cancelled, "cancelled"),
        (prompt.is_rejected, "rejected"),
        (prompt.is_answered, "answered"),
        (asserted, "asserted"),
        (is_stale, "stale"),
    )
    return next((liveness for fits, liveness in findings if fits), "unverified")


def redelivery(state: State, flight: Flight, prompt: Prompt, message: Message, at: float) -> Redelivery:
    """What is known now of a server request that `flight` has brought again."""
    deadline = state.thresholds.submission_deadline
    return Redelivery(
        liveness=liveness_of(prompt, message, at=at, submission_deadline=deadline),
        is_covered=_is_covered(prompt, flight.cursor),
        is_answering=state.is_answering(prompt),
    )


def _is_covered(prompt: Prompt, cursor: str | None) -> bool:
    """Whether a cursor stands at or after a server request's first delivery: then the client has had it."""
    if prompt.stream is None or prompt.cursor is None:
        return False
    ids = list(prompt.stream.ids)
    if cursor not in ids:
        return False
    # An id that is not kept any more is older than all that are.
    return prompt.cursor not in ids or ids.index(cursor) >= ids.index(prompt.cursor)


def given_up(stream: Logical, request: Request, event: Concluded, at: float) -> OperationEnded:
    """The client was given an error in the server's place."""
    return OperationEnded(
        server=stream.origin,
        exchange=event.exchange,
        method=request.method,
        name=request.name,
        seconds=max(at - request.sent_at, 0.0),
        version=request.version,
        error_code=event.error_code,
        error_type=str(event.error_code),
    )


def _redelivered(flight: Flight, prompt: Prompt, liveness: PromptLiveness) -> Verdicts:
    origin, exchange, method = flight.place.origin, flight.exchange, server_method(prompt.method)
    yield ServerRequested(
        server=origin, exchange=exchange, method=method, delivery="redelivered", liveness=liveness
    )
    if not prompt.is_prompt:
        return
    trigger: RepromptTrigger = "replay" if flight.cursor else "resend"
    prompt.trigger = trigger
    if prompt.stream is None or not prompt.stream.is_terminal:
        prompt.streak += 1
    yield Reprompted(server=origin, exchange=exchange, method=method, trigger=trigger, liveness=liveness)
    if prompt.ack_unspent:
        prompt.ack_unspent = False
        yield AnswerIneffective(server=origin, exchange=exchange, method=method)


# ------------------------------------------------------------------ what became of an answer

_OUTCOMES: Final[dict[str, AnswerOutcome]] = {
    "unknown_request": "unknown_request",
    "session_lost": "session_lost",
    "unauthorized": "unauthorized",
}


def answer_outcome(ruling: Ruling | None) -> AnswerOutcome:
    """From a classification at `answer`, or none, to the outcome of the answer (design 3.4)."""
    if ruling is None:
        return "acknowledged"
    if ruling.disposition == "retryable":
        return "retryable_error"
    return _OUTCOMES.get(ruling.reason, "rejected")


def answers_settled(flight: Flight, ruling: Ruling | None) -> Verdicts:
    """The answers of a POST were taken, refused, or did not arrive."""
    outcome = answer_outcome(ruling)
    for reply in flight.replies:
        if not reply.counts:
            continue
        prompt = reply.prompt
        if prompt is not None:
            _remember(prompt, outcome, ruling, flight.sent.credentials)
        yield AnswerSettled(
            server=flight.place.origin,
            exchange=flight.exchange,
            method=NONE if prompt is None else server_method(prompt.method),
            outcome=outcome,
            disposition="continue" if ruling is None else ruling.disposition,
            timing=reply.timing,
            version=flight.sent.version or flight.dialect.version,
            request_id=reply.message.id,
            session=flight.session.id if flight.session else None,
            stream=prompt.stream.number if prompt and prompt.stream else None,
        )


def _remember(prompt: Prompt, outcome: AnswerOutcome, ruling: Ruling | None, credentials: Digest) -> None:
    if ruling is None:
        prompt.is_answered = prompt.ack_unspent = True
        prompt.hopeless_with = None
        return
    if outcome in ("unknown_request", "session_lost"):
        prompt.hopeless_with = credentials
    if refused_for_good(ruling):
        prompt.is_rejected = True
        if prompt.stream is not None:
            prompt.stream.rejected_with = credentials
