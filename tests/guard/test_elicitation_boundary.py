"""When a resumable stream must be treated as dead: the Last-Event-ID and elicitation boundary, in its own words."""

from collections.abc import Callable

import pytest
from tests.guard.wire import Got, McpClient
from tests.guard.world import ANSWER, CALL, EMPTY, World, prompted
from tests.guard.world import UNKNOWN as REFUSED

from opentelemetry.instrumentation.httpx_sse.guard import (
    PromptBook,
    ResumptionGuard,
    ServerRequest,
    StaleElicitationError,
    UnknownPendingRequestError,
    check_answer,
    interpret_answer,
    resume_and_reconcile,
)

Q1 = ServerRequest(id="q1")
UNKNOWN = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"unknown request id"}}'


def seen(deadline: float | None = None, *, at: float = 0.0) -> PromptBook:
    """A client that has had q1 at `at`."""
    book = PromptBook(deadline)
    assert book.delivered(Q1, at=at) == "live"
    return book


def never(request: ServerRequest) -> None:
    """Nobody may be asked."""
    raise AssertionError(f"{request.id} was submitted")


def answering(status: int | None, body: bytes = b"") -> Callable[[ServerRequest], bool]:
    """A server that meets every answer so."""
    return lambda request: check_answer(request.id, status, body=body)


# ------------------------------------------------------------------ condition of validity


def test_condition_1_replayed_events_are_idempotently_processable() -> None:
    """A progress notification may be processed again; a request that expects a response is known as one and is not."""
    guard = ResumptionGuard("S1")

    assert guard.observe_event(1, "e1")
    assert not guard.observe_event(1, "e1")
    book = seen()
    book.answered("q1")
    assert book.reconcile([Q1], at=1.0).live == ()


def test_condition_2_the_request_is_still_open_at_replay_time() -> None:
    """A request of which nothing speaks against its life is presented."""
    assert seen().reconcile([Q1], at=1.0).live == (Q1,)


def test_condition_2_or_an_explicit_cancellation_stands_before_or_alongside_the_replay() -> None:
    """A cancellation that comes with the replay counts, since it is judged when the replay has gone quiet."""
    book = seen()
    book.cancelled("q1")

    reconciled = book.reconcile([Q1], at=1.0)

    assert reconciled.live == ()
    assert reconciled.dead == {"q1": "cancelled"}
    assert reconciled.failure() is None


@pytest.mark.parametrize(
    ("status", "body", "disposition"),
    [
        (404, UNKNOWN, "terminal"),
        (200, UNKNOWN, "terminal"),
        (503, b"", "retryable"),
        (None, b"", "retryable"),
    ],
)
def test_condition_3_the_submission_path_distinguishes_request_gone_from_transport_failed(
    status: int | None, body: bytes, disposition: str
) -> None:
    """A structured refusal is terminal; a server error, or none at all, is not."""
    assert interpret_answer(status, body=body).disposition == disposition


# ------------------------------------------------------------------ decision boundary


def test_boundary_1_an_explicit_liveness_assertion_is_processed_as_live() -> None:
    """Even past the deadline."""
    asserted = ServerRequest(id="q1", asserts_liveness=True)
    submitted: list[object] = []

    answered = resume_and_reconcile(seen(30.0), [asserted], submitted.append, at=60.0).run()

    assert answered == ("q1",)
    assert submitted == [asserted]


def test_boundary_1_a_fresh_request_scoped_token_is_an_assertion() -> None:
    """A progress token other than that of the first delivery."""
    book = PromptBook(30.0)
    book.delivered(ServerRequest(id="q1", progress_token="a"), at=0.0)

    assert book.reconcile([ServerRequest(id="q1", progress_token="b")], at=60.0).dead == {}
    assert book.reconcile([ServerRequest(id="q1", progress_token="a")], at=60.0).dead == {"q1": "stale"}


def test_boundary_1_a_cancellation_covering_it_is_processed_as_cancelled() -> None:
    """Nobody is asked, and the operation may end as the server will have it."""
    book = seen(30.0)
    book.cancelled("q1")

    assert resume_and_reconcile(book, [Q1], never, at=1.0).run() == ()


def test_boundary_2_older_than_the_clients_own_deadline_and_no_assertion_is_dead() -> None:
    """It is not presented again, and the pending interaction fails terminally."""
    with pytest.raises(StaleElicitationError) as raised:
        resume_and_reconcile(seen(30.0), [Q1], never, at=31.0).run()

    assert raised.value.reason == "stale"
    assert raised.value.advice == "ask_nobody_again"
    assert "Ask nobody again" in str(raised.value)


@pytest.mark.parametrize(
    "method", ["elicitation/create", "sampling/createMessage", "anything/create", "roots/list"]
)
def test_boundary_each_replayed_request_of_the_server_is_judged_whatever_it_asks(method: str) -> None:
    """Elicitation, sampling, or any other push that expects a response."""
    request, book = ServerRequest(id="q1", method=method), PromptBook(30.0)
    book.delivered(request, at=0.0)

    assert book.reconcile([request], at=30.0).live == (request,)
    assert book.reconcile([request], at=31.0).dead == {"q1": "stale"}


def test_boundary_2_within_the_deadline_it_is_live() -> None:
    """And without a deadline nothing is ever stale."""
    assert resume_and_reconcile(seen(30.0), [Q1], answering(202), at=30.0).run() == ("q1",)
    assert resume_and_reconcile(seen(None), [Q1], answering(202), at=9999.0).run() == ("q1",)


def test_boundary_3_a_rejection_as_unknown_request_fails_the_interaction_terminally() -> None:
    """A replay that brings it again is met by the same failure, and nobody is asked."""
    book = seen()

    with pytest.raises(StaleElicitationError) as raised:
        resume_and_reconcile(book, [Q1], answering(404, UNKNOWN), at=1.0).run()
    assert isinstance(raised.value.__cause__, UnknownPendingRequestError)

    with pytest.raises(StaleElicitationError) as again:
        resume_and_reconcile(book, [Q1], never, at=2.0).run()
    assert again.value.reason == "rejected"


def test_boundary_3_the_stream_is_not_resumed_and_the_operation_that_needs_the_answer_is_aborted(
    world: World,
) -> None:
    """By an unmodified client as well: the enclosing request fails, once, and no resume leaves."""

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.post(ANSWER), await client.get("e2")]

    _, refused, resumed = world.run(prompted(EMPTY, answer=REFUSED), play)

    assert refused.status == 404
    assert resumed.messages[0]["id"] == 1
    assert resumed.failure["data"]["next"] == "ask_nobody_again"
    assert world.wire.resumes == 0
    assert world.marks() == ["operation_failed"]


@pytest.mark.parametrize("status", [500, 502, 503, 504, None])
def test_boundary_3_server_and_connection_errors_are_retryable(status: int | None) -> None:
    """The answer may be submitted again as it is."""
    assert check_answer("q1", status) is False
    assert interpret_answer(status).advice == "try_later"


def test_boundary_3_a_structured_no_such_pending_request_is_terminal() -> None:
    """It says so itself."""
    with pytest.raises(UnknownPendingRequestError) as raised:
        check_answer("q1", 404, body=UNKNOWN)

    assert raised.value.reason == "unknown_request"
    assert raised.value.disposition == "terminal"


# ------------------------------------------------------------------ what was observed


def test_observed_the_operator_is_asked_once_and_told_once() -> None:
    """Prompt, idle timeout, replay, answer refused, replay again: a failure each time, no second prompt."""
    book, asked = PromptBook(), []

    def ask(request: ServerRequest) -> bool:
        asked.append(request.id)
        return check_answer(request.id, 404, body=UNKNOWN)

    book.delivered(Q1, at=0.0)
    for at in (60.0, 61.0, 62.0):
        with pytest.raises(StaleElicitationError):
            resume_and_reconcile(book, [Q1], ask, at=at).run()

    assert asked == ["q1"]
