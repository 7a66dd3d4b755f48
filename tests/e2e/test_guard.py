"""Unmodified official clients meet faults that they would loop in for ever: with the guard they fail once, and soon.

Nothing of the clients is changed: `opentelemetry-instrument`, and one environment variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest
from tests.e2e.demo.guard import CASES, SLOW_PERSON, STOPPED
from tests.e2e.demo.runner import Key, Outcome, at_work
from tests.e2e.demo.scenarios import BOTH
from tests.e2e.environments import prepare

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SOON = 5.0
"""Seconds within which a call has to fail."""

GUARDED = [(fault, client) for fault in CASES for client in BOTH]
UNGUARDED = [(fault, client) for fault in STOPPED for client in BOTH]

STALE = ("stale-prompt", SLOW_PERSON.fault)

Runs = Mapping[Key, "Future[Outcome]"]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Runs]:
    """All faults with the guard on, side by side."""
    prepare(BOTH)
    cases = [(CASES[fault], client) for fault, client in GUARDED] + [(SLOW_PERSON, client) for client in BOTH]
    with at_work(((case.run(guard=True), client) for case, client in cases), workers=3) as runs:
        yield runs


@pytest.fixture(scope="module")
def unguarded() -> Iterator[Runs]:
    """The same without it."""
    prepare(BOTH)
    cases = [(CASES[fault], client) for fault, client in UNGUARDED] + [
        (SLOW_PERSON, client) for client in BOTH
    ]
    with at_work(((case.run(guard=False), client) for case, client in cases), workers=3) as runs:
        yield runs


def outcome_of(runs: Runs, fault: str, client: str, *, guard: bool = True) -> Outcome:
    """What came of it; the rows of the table hold."""
    outcome = runs[fault, client, guard].result()
    assert [str(finding) for finding in outcome.failures] == []
    assert outcome.scrapes > 0
    return outcome


@pytest.mark.parametrize("client", BOTH)
def test_an_empty_resume_ends_in_one_clear_error(client: str, guarded: Runs) -> None:
    """Within 5 s, and after at most 6 GETs with a cursor, however often the tool is called."""
    outcome = outcome_of(guarded, "empty-resume", client)

    assert outcome.diary["answered"] == 0
    assert "brought nothing new" in outcome.diary["first_error"]
    assert "idempotency key" in outcome.diary["first_error"]
    assert 0 < outcome.diary["slowest_failure"] <= SOON
    assert 0 < outcome.wire["resumes"] <= 6 * outcome.diary["calls"]


@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("fault", STALE)
def test_a_stale_prompt_is_asked_once(fault: str, client: str, guarded: Runs) -> None:
    """Then the call fails, within 5 s; once the answer was refused, the server is not asked to replay it.

    Also when the client resumes, and the server replays its question, while a slow person is still thinking.
    """
    outcome = outcome_of(guarded, fault, client)

    assert outcome.diary["answered"] == 0
    assert outcome.diary["asked"] <= outcome.diary["calls"]
    assert "Ask nobody again" in outcome.diary["first_error"]
    assert 0 < outcome.diary["slowest_failure"] <= SOON


@pytest.mark.parametrize("client", BOTH)
def test_a_replay_of_a_dead_session_is_not_applied(client: str, guarded: Runs) -> None:
    """The session's end is seen at the reconnect: no tools are listed on the strength of the replayed result."""
    outcome = outcome_of(guarded, "dead-at-replay", client)

    assert outcome.diary["answered"] == 0
    assert "its session is gone" in outcome.diary["first_error"]
    assert "initialize a new session" in outcome.diary["first_error"]
    assert outcome.wire.get("tools/list", 0) == 0
    assert outcome.wire["resumes"] == 1


@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("fault", ["healthy-polling", "quiet"])
def test_what_is_healthy_is_let_alone(fault: str, client: str, guarded: Runs) -> None:
    """Calls are answered, polls and all."""
    outcome = outcome_of(guarded, fault, client)

    assert outcome.diary["answered"] >= 2
    assert outcome.diary["first_error"] is None


@pytest.mark.parametrize("client", BOTH)
def test_without_the_guard_an_empty_resume_loops(client: str, unguarded: Runs) -> None:
    """One call, resumed until somebody stops it, and no error."""
    outcome = outcome_of(unguarded, "empty-resume", client, guard=False)

    assert outcome.diary["calls"] == 1
    assert outcome.diary["first_error"] is None
    assert outcome.wire["resumes"] >= 5


@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("fault", STALE)
def test_without_the_guard_a_stale_prompt_is_asked_again_and_again(
    fault: str, client: str, unguarded: Runs
) -> None:
    """One call."""
    outcome = outcome_of(unguarded, fault, client, guard=False)

    assert outcome.diary["calls"] == 1
    assert outcome.diary["asked"] >= 5


@pytest.mark.parametrize("client", BOTH)
def test_without_the_guard_the_end_of_a_session_is_seen_late(client: str, unguarded: Runs) -> None:
    """The replayed result is applied, and a later request shows that the session is gone."""
    outcome = outcome_of(unguarded, "dead-at-replay", client, guard=False)

    assert outcome.wire["tools/list"] >= 1
    assert outcome.wire["session_not_found"] >= 1
