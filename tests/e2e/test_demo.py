"""Unmodified official clients meet real faults, and the metrics of their own processes name each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest
from tests.e2e.demo.runner import Outcome, at_work
from tests.e2e.demo.scenarios import BOTH, SCENARIOS
from tests.e2e.environments import prepare

# The limit is for the first run on a machine, which makes the environments.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CASES = [(scenario, client) for scenario in SCENARIOS for client in scenario.clients]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Mapping[tuple[str, str], Future[Outcome]]]:
    """The chosen cases, started together: one after the other they would take minutes."""
    prepare(BOTH)
    chosen = {item.name for item in request.session.items}
    with at_work(
        case for case in CASES if f"test_fault_is_named[{case[0].fault}-{case[1]}]" in chosen
    ) as started:
        yield started


@pytest.mark.parametrize(("fault", "client"), [(scenario.fault, client) for scenario, client in CASES])
def test_fault_is_named(fault: str, client: str, runs: Mapping[tuple[str, str], Future[Outcome]]) -> None:
    """The client met its fault on the wire; the series that name it were scraped, and none of others."""
    outcome = runs[fault, client].result()

    assert outcome.scrapes > 0, outcome.noise
    assert [str(finding) for finding in outcome.failures] == []
