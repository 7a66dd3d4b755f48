"""Every number, window, `for`, selector, grouping and operator of every rule is changed: a scenario notices."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.dashboards.promtool.mutants import Mutant, mutants
from tests.dashboards.promtool.runner import check
from tests.dashboards.promtool.scenario import ABOUT
from tests.dashboards.promtool.tables import noticing

KILLED_AT_LEAST = 0.95

ONE_SERIES = "a process has one series of this gauge for a server, so max and min are the same"
SURVIVORS = {
    ("SSEReconnectStorm", "job_server:sse_client_unplanned_reconnects_per_stream:rate10m: 1 -> 0.5"): (
        "below one stream on average the volume decides: 40 in ten minutes are more than 3 a minute"
    ),
    ("SSEReconnectStorm", "job_server:sse_client_unplanned_reconnects_per_stream:rate2m: 1 -> 0.5"): (
        "as in the long window"
    ),
    ("SSEStreamStuck", "alert (critical): max -> min"): ONE_SERIES,
    ("SSERequestNotRecovering", "alert (warning): max -> min, number 2"): ONE_SERIES,
    (
        "SSERequestNotRecovering",
        "alert (warning): sum -> max",
    ): "it is compared with 0: any progress is progress",
}
"""Changes that no scenario can notice, and why that is right."""


def survives(mutant: Mutant) -> bool:
    """Whether all scenarios come out as they should in spite of the change; the likely ones first."""
    return all(check(mutant.rules, some) == "" for some in noticing(mutant.alert) if some)


@pytest.mark.timeout(1800)
def test_mutants_are_noticed() -> None:
    """At least 95 % of all changes are noticed, and each of the others is explained in the table above."""
    every = [mutant for alert in ABOUT for mutant in mutants(alert)]
    with ThreadPoolExecutor(max_workers=2) as workers:
        alive = [mutant for mutant, lives in zip(every, workers.map(survives, every), strict=True) if lives]
    print(f"{len(every)} mutants, {len(every) - len(alive)} noticed")

    assert {(mutant.alert, mutant.change) for mutant in alive} == set(SURVIVORS)
    assert len(alive) <= len(every) * (1 - KILLED_AT_LEAST)
