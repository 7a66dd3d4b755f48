"""Both official clients against both official Python servers, 1.30 and 2.3, with an event store.

What the servers do, as a fact:

* any answer to a prompt is acknowledged with 202, known or not: that an answer was in vain shows only when its prompt
  comes again, so the signal is `ineffective_answers`;
* 2.3 sends `notifications/cancelled` for a prompt that it gives up, 1.30 says nothing; both replay what their store
  hands out, the prompt included;
* a finished request can be resumed: its answer is delivered again, after it the stream is primed and held open;
* a second GET while the standalone stream is open is 409;
* it names its streams after the JSON-RPC ids of their requests, so that a store which several sessions share hands the
  messages of one to another: each run here has a server of its own;
* after a restart, and by a replica, every request of an old session is 404 with `-32600` `Session not found`.

What the clients do: both ask the person again for a prompt that is replayed, and answer it again; both resume once
more after a 404 that says that the session is gone, and neither ever initializes a new one; 1.30 reads its messages
one at a time, so that a person who thinks holds up the stream; 2.3 takes a prompt back that was cancelled.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import prepare, python_of
from tests.e2e.peers.harness import at_work, run_client, serving
from tests.e2e.peers.plan import Plan, Report, Step, told
from tests.e2e.peers.proxy import Before, Cut, after_event, proxy
from tests.ports import free_port

BOTH = ("mcp1", "mcp2")
OTHER = {"mcp1": "mcp2", "mcp2": "mcp1"}
OUTAGE_SECONDS = 1.5
REPORT = Step("call", "report")
GONE = {"mcp1": "McpError: Session terminated", "mcp2": "MCPError: Session not found"}
LOST = {
    "mcp1": "TimeoutError: ",
    "mcp2": "MCPError: SSE stream ended and reconnection attempts were exhausted",
}
Runs = Mapping[str, Future[Report]]


@dataclass(frozen=True, slots=True)
class Case:
    """What is done, what each step comes to, and every series that is told before the session is closed."""

    plan: Plan
    results: Callable[[str], tuple[str, ...]]
    told: Mapping[str, float]
    restarts: bool = False
    """The server is restarted just before the second call is sent on."""
    moves: bool = False
    """The first call is cut after its first id, and all that follows goes to a server that knows no session."""


CASES = {
    "resume-of-a-finished-request": Case(
        Plan((Step("keep", "report"), Step("resume", "report", seconds=4))),
        lambda client: ("the report", "the report"),
        {
            "classifications terminal resume nothing_new": 1,
            "reconnect_delay early": 1,
            "reconnect_outcomes terminal repeated response": 1,
            "reconnects after_terminal sent response": 1,
            "responses duplicate_other_stream": 1,
            "responses first": 2,
            "retries_after_terminal resume": 1,
            "stream_duration complete response": 3,
        },
    ),
    "second-stream": Case(
        Plan((REPORT, Step("get"), REPORT)),
        lambda client: ("the report", "409", "the report"),
        {
            "classifications retryable open conflict": 1,
            "responses first": 4,
            "stream_duration complete response": 4,
        },
    ),
    "restart": Case(
        Plan((REPORT, REPORT, Step("pause", seconds=OUTAGE_SECONDS), REPORT)),
        lambda client: ("the report", GONE[client], "", GONE[client]),
        {
            "classifications retryable open network_error": 2,
            "classifications terminal request session_lost": 2,
            "dead_session_requests": 1,
            "reconnect_delay absent": 1,
            "reconnect_outcomes retryable failed standalone": 1,
            "reconnects network_error absent standalone": 1,
            "responses first": 3,
            "sessions_lost in_use http_404": 1,
            "stream_duration complete response": 3,
        },
        restarts=True,
    ),
    "replica": Case(
        Plan((Step("call", "report", seconds=3), REPORT)),
        lambda client: (LOST[client], GONE[client]),
        {
            "classifications terminal request session_lost": 1,
            "classifications terminal resume session_lost": 2,
            "dead_session_requests": 2,
            "reconnect_delay honored": 2,
            "reconnect_outcomes terminal refused response": 2,
            "reconnects network_error sent response": 1,
            "reconnects refused sent response": 1,
            "requests_lost tools/call refused": 1,
            "responses first": 1,
            "retries_after_terminal resume": 1,
            "sessions_lost on_resume http_404": 1,
            "stream_duration complete response": 1,
            "stream_duration network_error response": 1,
        },
        moves=True,
    ),
}
CONFIRM = Plan((Step("call", "confirm"),), answer_after=1.4)
IN_VAIN = {
    "answers elicitation/create acknowledged in_time continue": ">= 1",
    "ineffective_answers elicitation/create": ">= 1",
    "reconnects server_poll sent response": ">= 2",
    "reprompts elicitation/create unverified replay": "== 1",
    "server_requests elicitation/create first live": "== 1",
    "server_requests elicitation/create redelivered unverified": "== 1",
    "responses first": "== 3",
    "stream_duration complete response": "== 3",
}
"""A prompt that its server gave up: its first replay came before any answer."""
LIVENESS = {"mcp1": "answered", "mcp2": "cancelled"}
"""How a later replay of it is known, by server."""
HEALTHY_TOO = (
    "empty_replays", "requests_lost", "streams_lost", "sessions_lost", "instrumentation_errors", "dead_session",
)  # fmt: skip
COMPARISONS = {">=": operator.ge, "==": operator.eq}


def _server(children: Children, environment: str, port: int) -> AbstractContextManager[str]:
    command = [str(python_of(environment)), "-m", "tests.e2e.peers.inside.server_mcp", str(port)]
    return serving(children, command, port)


def _play(children: Children, *, server: str, client: str, case: Case) -> Report:
    port, cut, before = free_port(), None, None
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        address = first.enter_context(_server(children, server, port))
        if case.moves:
            other = stack.enter_context(_server(children, OTHER[server], free_port()))
            cut = Cut(after_event(rb"\nid: "), moves_to=other)

        def restart(_: bytes) -> None:
            first.close()
            time.sleep(OUTAGE_SECONDS)
            stack.enter_context(_server(children, server, port))

        if case.restarts:
            before = Before(2, restart)
        with proxy(address, cut=cut, before=before) as between:
            return run_client(children, client, f"http://{between.address}/mcp", case.plan)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    prepare(BOTH)
    jobs = {
        f"{server}-{client}-{name}": partial(_play, server=server, client=client, case=case)
        for name, case in {**CASES, "confirm": Case(CONFIRM, lambda client: (), {})}.items()
        for server in BOTH
        for client in BOTH
    }
    with at_work(jobs, request) as started:
        yield started


@pytest.mark.e2e
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("server", BOTH)
def test_what_is_told(server: str, client: str, case: str, runs: Runs) -> None:
    """The client got what its row says, every series says why, and none says more."""
    report, wanted = runs[f"{server}-{client}-{case}"].result(), CASES[case]

    assert (tuple(report.results), report.error) == (wanted.results(client), None)
    assert told(report.during) == wanted.told


@pytest.mark.e2e
@pytest.mark.parametrize("case", ["confirm"])
@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("server", BOTH)
def test_answers_in_vain(server: str, client: str, case: str, runs: Runs) -> None:
    """The person is asked again and again by replays; every answer is acknowledged, and none has any effect."""
    report = runs[f"{server}-{client}-{case}"].result()
    found = told(report.during)
    wanted = {**IN_VAIN, f"reprompts elicitation/create {LIVENESS[server]} replay": ">= 1"}

    assert (report.results, report.error) == (["the person said nothing"], None)
    assert report.asked >= 3
    for series, row in wanted.items():
        comparison, _, value = row.partition(" ")
        assert COMPARISONS[comparison](found.get(series, 0), float(value)), (series, row, found)
    assert {series.split()[3] for series in found if series.startswith("reprompts")} == {"replay"}
    assert {series.split()[2] for series in found if series.startswith("answers")} == {"acknowledged"}
    assert [series for series in found if series.startswith(HEALTHY_TOO)] == []
