"""Unmodified official clients meet real faults, and the metrics of their own processes name each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.e2e.demo.runner import Children, run
from tests.e2e.demo.scenarios import SCENARIOS, Scenario
from tests.e2e.environments import prepare

CASES = [
    pytest.param(scenario, client, id=f"{scenario.fault}-{client}")
    for scenario in SCENARIOS
    for client in scenario.clients
]


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    prepare(("mcp1", "mcp2"))
    with closing(Children()) as living:
        yield living


@pytest.mark.e2e
@pytest.mark.parametrize(("scenario", "client"), CASES)
def test_fault_is_named(scenario: Scenario, client: str, children: Children) -> None:
    """The client met the fault on the wire, the series that name it were scraped, and no others."""
    outcome = run(scenario, client, children)

    assert outcome.scrapes > 0, outcome.noise
    assert [
        f"{found.row} {found.row.comparison} {found.row.value:g}: {found.highest:g}"
        for found in outcome.failures
    ] == []
