"""Unmodified official clients meet real faults, and the metrics of their own processes name each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest
from tests.e2e.demo.__main__ import FAULTS, cases
from tests.e2e.demo.guard import STOPPED
from tests.e2e.demo.runner import Key, Outcome, at_work
from tests.e2e.demo.scenarios import BOTH, SCENARIOS
from tests.e2e.environments import prepare

# The limit is for the first run on a machine, which makes the environments.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CASES = [(scenario, client) for scenario in SCENARIOS for client in scenario.clients]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Mapping[Key, Future[Outcome]]]:
    """The chosen cases, started together: one after the other they would take minutes."""
    prepare(BOTH)
    chosen = {item.name for item in request.session.items}
    with at_work(
        case for case in CASES if f"test_fault_is_named[{case[0].fault}-{case[1]}]" in chosen
    ) as started:
        yield started


@pytest.mark.parametrize(("fault", "client"), [(scenario.fault, client) for scenario, client in CASES])
def test_fault_is_named(fault: str, client: str, runs: Mapping[Key, Future[Outcome]]) -> None:
    """The client met its fault on the wire; the series that name it were scraped, and none of others."""
    outcome = runs[fault, client, False].result()

    assert outcome.scrapes > 0, outcome.noise
    assert [str(finding) for finding in outcome.failures] == []


def test_what_the_guard_stops_runs_with_it_and_without() -> None:
    """Once each, for both clients: a fault that the demo shows anyway is not run again to be compared."""
    keys = [(scenario.fault, client, scenario.guard) for scenario, client in cases(FAULTS, BOTH)]

    assert len(set(keys)) == len(keys)
    assert set(keys) >= {(fault, client, on) for fault in STOPPED for client in BOTH for on in (False, True)}
