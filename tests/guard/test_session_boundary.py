"""A resumable gap or a terminal teardown, when the cursor survives but the session is gone: the document's rule."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from opentelemetry.instrumentation.httpx_sse.guard import (
    GuardError,
    Procedure,
    SessionResumptionError,
    confirm_session,
    judge_probe,
)
from opentelemetry.instrumentation.httpx_sse.guard._confirmation import Probe

EVENTS = ["e4472", "e4473"]
EXPIRED = b'{"error":"session expired"}'
GONE = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'

Run = Callable[..., list[str]]


@pytest.fixture(params=["run", "await"])
def resume(request: pytest.FixtureRequest) -> Run:
    """The procedure in each of its forms; `answers` are those to the probes, in order."""

    def sync(status: int, *answers: Any, calls: list[str] | None = None, **options: Any) -> list[str]:
        left, log = list(answers), calls if calls is not None else []

        def open_sse(session: str, cursor: str) -> tuple[int, list[str]]:
            log.append(f"GET {session} {cursor}")
            return status, EVENTS

        def probe(session: str) -> Probe:
            log.append(f"probe {session}")
            answer: Probe | OSError = left.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer

        def later(call: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
            async def called(*arguments: str) -> Any:
                await anyio.lowlevel.checkpoint()
                return call(*arguments)

            return called

        if request.param == "run":
            return confirm_session("S1", "4471", open_sse, probe, **options).run()

        async def main() -> list[str]:
            procedure: Procedure[list[str]] = confirm_session(
                "S1", "4471", later(open_sse), later(probe), **options
            )
            return await procedure

        return anyio.run(main)

    return sync


# ------------------------------------------------------------------ condition of validity


def test_condition_1_the_event_log_outlives_the_session(resume: Run) -> None:
    """The replay is complete, and its events are still those of a dead session."""
    with pytest.raises(SessionResumptionError) as raised:
        resume(200, 404)

    assert raised.value.quarantined == tuple(EVENTS)


def test_condition_2_the_get_validates_the_cursor_but_not_the_session(resume: Run) -> None:
    """So it is never taken for a probe: one is always sent."""
    calls: list[str] = []
    resume(200, 200, calls=calls)

    assert calls == ["GET S1 4471", "probe S1"]


def test_condition_3_a_200_sse_response_is_no_proof_of_liveness(resume: Run) -> None:
    """Nothing is given out on the strength of it."""
    with pytest.raises(SessionResumptionError):
        resume(200, 410)


def test_regime_a_client_that_sends_nothing_else_is_not_left_in_the_dark(resume: Run) -> None:
    """The loss would be masked until its next request: the probe shows it at the reconnect."""
    calls: list[str] = []
    with pytest.raises(SessionResumptionError):
        resume(200, 404, calls=calls)

    assert calls == ["GET S1 4471", "probe S1"]


def test_collapse_a_server_that_validates_the_session_on_the_get_needs_no_probe(resume: Run) -> None:
    """Replay failure is then the loss of the session."""
    calls: list[str] = []
    with pytest.raises(SessionResumptionError):
        resume(404, calls=calls)

    assert calls == ["GET S1 4471"]


# ------------------------------------------------------------------ decision boundary


def test_boundary_replay_200_probe_200_session_live_resume_normally(resume: Run) -> None:
    """The events are released."""
    assert resume(200, 200) == EVENTS


@pytest.mark.parametrize("answer", [404, 410, (404, EXPIRED), (404, GONE), (400, GONE), (200, GONE)])
def test_boundary_replay_200_probe_404_or_410_session_dead(resume: Run, answer: Probe) -> None:
    """Discard the cursor, discard the session id, re-initialize, and do not apply the replayed events."""
    with pytest.raises(SessionResumptionError) as raised:
        resume(200, answer)

    assert raised.value.reason == "dead"
    assert raised.value.advice == "new_session"
    assert raised.value.quarantined == tuple(EVENTS)
    assert "Discard the cursor and the session id, initialize a new session" in str(raised.value)


@pytest.mark.parametrize("status", [404, 410])
def test_boundary_replay_404_or_410_session_dead_at_the_transport_layer(resume: Run, status: int) -> None:
    """The same teardown, no probe."""
    with pytest.raises(SessionResumptionError) as raised:
        resume(status)

    assert raised.value.reason == "session_lost"
    assert raised.value.advice == "new_session"
    assert raised.value.quarantined == ()


def test_boundary_any_other_replay_status_cannot_be_called_resumable(resume: Run) -> None:
    """Nor terminal: it says what it is."""
    with pytest.raises(SessionResumptionError) as raised:
        resume(503)

    assert raised.value.disposition == "retryable"
    with pytest.raises(SessionResumptionError, match="307"):
        resume(307)


@pytest.mark.parametrize("answer", [503, 401, None, ConnectionError("reset")])
def test_boundary_any_other_probe_status_refuses_to_apply_events(resume: Run, answer: Any) -> None:
    """Three probes are made; then the session's state is ambiguous, and the events stay where they are."""
    calls: list[str] = []
    with pytest.raises(SessionResumptionError) as raised:
        resume(200, answer, answer, answer, calls=calls)

    assert calls.count("probe S1") == 3
    assert raised.value.reason == "inconclusive"
    assert raised.value.disposition == "ambiguous"
    assert raised.value.quarantined == tuple(EVENTS)


def test_boundary_a_probe_that_is_conclusive_in_the_end_decides(resume: Run) -> None:
    """Trying again is worth it."""
    assert resume(200, 503, None, 200) == EVENTS


def test_boundary_an_ambiguous_session_may_be_released_on_request(resume: Run) -> None:
    """Whoever prefers duplicates to losses says so."""
    assert resume(200, 503, 503, on_inconclusive="release", attempts=2) == EVENTS


# ------------------------------------------------------------------ forms


def test_whatever_else_a_call_raises_is_passed_on(resume: Run) -> None:
    """It is no verdict."""
    with pytest.raises(IndexError):
        resume(200)


def test_an_awaitable_in_the_synchronous_form_is_an_error_of_its_user() -> None:
    """It would never be awaited."""

    async def open_sse(session: str, cursor: str) -> tuple[int, list[str]]:
        raise AssertionError((session, cursor))

    procedure: Procedure[list[str]] = confirm_session("S1", "1", open_sse, lambda session: 200)
    with pytest.raises(TypeError, match="await"):
        procedure.run()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(200, "live"), (202, "live"), ((400, b'{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"x"}}'), "live"),
     (404, "dead"), (410, "dead"), (500, "inconclusive"), (401, "inconclusive"), (None, "inconclusive")],
)  # fmt: skip
def test_a_probe_is_judged_by_the_ledgers_table(answer: Probe, outcome: str) -> None:
    """The same rows as of design 3.3."""
    assert judge_probe(answer) == outcome


def test_the_family_has_one_root_that_is_never_raised_itself() -> None:
    """Catch it to catch all."""
    assert issubclass(SessionResumptionError, GuardError)
    with pytest.raises(TypeError):
        GuardError("x", reason="dead")
