"""FastMCP's client and server of the newest release, in both of the ways that they negotiate.

What they do, as a fact: by default (`auto`) both speak 2026-07-28 and answer calls in JSON: no stream, no session, no
server request on any wire; a tool that asks by `ctx.elicit` fails, one that returns `input_required` asks in a second
round. In `legacy` mode they speak 2025-11-25 with a session, and `ctx.elicit` asks on the stream of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import prepare, python_of
from tests.e2e.peers.harness import at_work, run_client, serving
from tests.e2e.peers.plan import DECISIONS, Plan, Report, Step, told
from tests.ports import free_port

ADD = Step("call", "add", {"a": 2, "b": 3})
SAID = "the person said accept"
CASES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "legacy": (
        "confirm",
        {
            "answers elicitation/create acknowledged in_time continue": 1,
            "responses first": 4,
            "server_requests elicitation/create first live": 1,
            "stream_duration complete response": 4,
        },
    ),
    "auto": (
        "confirm_in_rounds",
        {
            "input_rounds tools/call": 1,
            "responses first": 5,
            "server_requests elicitation/create first live": 1,
        },
    ),
}
"""By mode: the tool that asks, and every series that is told."""
Runs = Mapping[str, Future[Report]]


def _play(children: Children, *, mode: str) -> Report:
    port = free_port()
    command = [str(python_of("fastmcp")), "-m", "tests.e2e.peers.inside.server_fastmcp", str(port)]
    plan = Plan((ADD, Step("call", CASES[mode][0])))
    with serving(children, command, port) as server:
        return run_client(children, "fastmcp", f"http://{server}/mcp", plan, options={"PEER_MODE": mode})


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    prepare(["fastmcp"])
    with at_work({mode: partial(_play, mode=mode) for mode in CASES}, request) as started:
        yield started


@pytest.mark.e2e
@pytest.mark.parametrize("mode", CASES)
def test_what_is_told(mode: str, runs: Runs) -> None:
    """A plain call and a question: each got its answer, every series says how, and none says more."""
    report = runs[mode].result()

    assert (report.results, report.error, report.asked) == (["5", SAID], None, 1)
    assert told(report.after, DECISIONS | {"input_rounds"}) == CASES[mode][1]
