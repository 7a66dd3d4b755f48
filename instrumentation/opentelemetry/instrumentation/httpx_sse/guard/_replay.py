"""Which server requests of a replay are still alive: replay restores the transcript, not the conversation.

The ledger's `liveness_of` decides what is known of a replayed request; `RULES` says what follows from it. Both serve
the transports as well.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .._dialect import is_prompt
from .._envelope import read_body
from .._events import ErrorKind, JsonId, Message, MessageKind
from .._failure import Failure, Ruling, classify
from .._ledger import Table
from .._ledger._dialogue import answer_outcome, liveness_of
from .._ledger._records import Prompt
from .._names import PromptLiveness
from ._errors import StaleElicitationError, UnknownPendingRequestError, advice_of
from ._procedure import Procedure, Steps
from ._resumption import Reading


class Rule(NamedTuple):
    """What is done with a replayed server request."""

    presents: bool
    """It is presented again."""
    fails: bool
    """The operation that waits for its answer fails: no answer can be given any more."""
    what: str
    """What happened, for the error's message."""


RULES: Final[dict[PromptLiveness, Rule]] = {
    "live": Rule(presents=True, fails=False, what="is new"),
    "asserted": Rule(presents=True, fails=False, what="is asserted to live by the server"),
    "unverified": Rule(presents=True, fails=False, what="may still live"),
    "cancelled": Rule(
        presents=False, fails=False, what="was cancelled by the server, which goes on without an answer"
    ),
    "answered": Rule(presents=False, fails=False, what="was answered, and the answer was acknowledged"),
    "rejected": Rule(presents=False, fails=True, what="was answered, and the answer was refused for good"),
    "stale": Rule(
        presents=False, fails=True, what="is past the client's deadline, and the server asserts nothing"
    ),
}
"""What follows from a liveness. A server that cancels or acknowledges goes on by itself: its operation may still end
well. One that refused the answer, or that nobody vouches for, has given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest:
    """A request of the server as the client received it."""

    id: JsonId
    method: str = "elicitation/create"
    progress_token: JsonId | None = None
    asserts_liveness: bool = False
    """The server vouches for it, by whatever both sides agreed on."""

    @property
    def message(self) -> Message:
        return Message(
            kind=MessageKind.REQUEST,
            id=self.id,
            method=self.method,
            progress_token=self.progress_token,
            asserts_liveness=self.asserts_liveness,
        )


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A replay's server requests, judged."""

    live: tuple[ServerRequest, ...] = ()
    """To be presented, in the order of the replay."""
    dead: Mapping[JsonId, PromptLiveness] = field(default_factory=dict)
    """Not to be presented again, and why."""

    def failure(self) -> StaleElicitationError | None:
        """The error that ends the operation, when one of the dead was needed and can never be answered."""
        failed = [(request, why) for request, why in self.dead.items() if RULES[why].fails]
        return stale(*failed[0]) if failed else None


def stale(request: JsonId, liveness: PromptLiveness) -> StaleElicitationError:
    """The error for a server request that must not be presented again."""
    return StaleElicitationError(f"Server request {request!r} {RULES[liveness].what}.", reason=liveness)


class PromptBook:
    """The server requests of one session, as far as the client has seen them.

    Args:
        submission_deadline: seconds from the first delivery within which the client itself expects an answer to be
            taken; None when it knows of no limit: then nothing is stale.
    """

    def __init__(self, submission_deadline: float | None = None) -> None:
        self._deadline = submission_deadline
        self._prompts: Table[JsonId, Prompt] = Table("prompts")

    def delivered(self, request: ServerRequest, *, at: float) -> PromptLiveness:
        """A server request came, at `at` seconds; what is known of it. One that was never seen before is `live`."""
        prompt = self._prompts.get(request.id)
        if prompt is not None and prompt.method == request.method:
            prompt.last_at = at
            return liveness_of(prompt, request.message, at=at, submission_deadline=self._deadline)
        made = Prompt(
            id=request.id,
            method=request.method,
            is_prompt=is_prompt(request.method),
            first_at=at,
            last_at=at,
            progress_token=request.progress_token,
            stream=None,
        )
        self._prompts.put(request.id, made)
        return "live"

    def cancelled(self, request: JsonId) -> None:
        """The server's `notifications/cancelled` named it."""
        prompt = self._prompts.get(request)
        if prompt is not None:
            prompt.is_cancelled = True

    def answered(self, request: JsonId) -> None:
        """The client's answer was acknowledged."""
        prompt = self._prompts.get(request)
        if prompt is not None:
            prompt.is_answered = True

    def rejected(self, request: JsonId) -> None:
        """The client's answer was refused for good."""
        prompt = self._prompts.get(request)
        if prompt is not None:
            prompt.is_rejected = True

    def reconcile(self, replayed: Iterable[ServerRequest], *, at: float) -> Reconciled:
        """Judge the server requests of a replay.

        Call it when the replay has gone quiet, and tell `cancelled` before: a cancellation later in the same replay
        counts.
        """
        judged = [(request, self.delivered(request, at=at)) for request in replayed]
        return Reconciled(
            live=tuple(request for request, liveness in judged if RULES[liveness].presents),
            dead={request.id: liveness for request, liveness in judged if not RULES[liveness].presents},
        )


def interpret_answer(status: int | None, *, body: bytes = b"", has_session: bool = True) -> Reading:
    """What became of an answer to a server request (design 3.4 and 3.5).

    Args:
        status: of the server's reply; None when there was none.
        body: of a refusal, as far as it was read.
        has_session: the request carried an `Mcp-Session-Id`.
    """
    ruling = _ruling(status, body, has_session=has_session)
    if ruling is None:
        return Reading("continue", None, "go_on")
    return Reading(ruling.disposition, ruling.reason, advice_of(ruling))


def check_answer(request: JsonId, status: int | None, *, body: bytes = b"", has_session: bool = True) -> bool:
    """Whether an answer was taken; False when it can be sent again as it is.

    Raises:
        UnknownPendingRequestError: it was refused for good.
    """
    ruling = _ruling(status, body, has_session=has_session)
    if ruling is None or answer_outcome(ruling) == "retryable_error":
        return ruling is None
    raise UnknownPendingRequestError(
        f"The answer to server request {request!r} was refused.",
        reason=ruling.reason,
        advice=advice_of(ruling),
    )


def _ruling(status: int | None, body: bytes, *, has_session: bool) -> Ruling | None:
    said = read_body(body)
    is_error = any(message.is_error for message in said.messages)
    error: ErrorKind | None = None if status is not None else "network_error"
    return classify(
        Failure(
            "answer", has_session=has_session, status=status, error=error, body=said, answer_error=is_error
        )
    )


def resume_and_reconcile(
    book: PromptBook,
    replayed: Iterable[ServerRequest],
    submit: Callable[[ServerRequest], Any],
    *,
    at: float,
) -> Procedure[tuple[JsonId, ...]]:
    """Reconcile a replay and submit an answer to each server request that is still alive.

    Args:
        book: what is known of the session's server requests.
        replayed: those of the replay, once it has gone quiet.
        submit: answers one, and raises `UnknownPendingRequestError` when the server does not know it; may return an
            awaitable when the procedure is awaited. Whatever else it raises is passed on, and may be tried again.
        at: seconds, on the clock of `book`.

    Returns:
        A procedure whose result are the ids that were answered.

    Raises:
        StaleElicitationError: the operation must be given up; the stream must not be resumed for it.
    """

    def steps() -> Steps[tuple[JsonId, ...]]:
        reconciled = book.reconcile(replayed, at=at)
        failure = reconciled.failure()
        if failure is not None:
            raise failure
        for request in reconciled.live:
            try:
                yield lambda request=request: submit(request)  # type: ignore[misc]
            except UnknownPendingRequestError as error:
                book.rejected(request.id)
                raise stale(request.id, "rejected") from error
            book.answered(request.id)
        return tuple(request.id for request in reconciled.live)

    return Procedure(steps())
