"""Both official clients against the TypeScript reference server, whose connections a proxy cuts where it hurts.

What `@modelcontextprotocol/server-everything` does, as a fact:

* it primes the stream of every call (2025-11-25) and gives every message an event id, but never a `retry`;
* its event store replays all later messages of the session, whichever stream they were sent on;
* a stream that is resumed before its call is over never gets the rest: the store hands back an event id in place of
  the stream's, so that the answer is sent to a stream that nobody reads;
* an unknown session is 400 with `-32000` `No valid session ID provided`, not 404;
* one standalone stream is allowed: while it does not know that the last one was cut, the next GET is 409, and both
  clients give up after it, silently.

What the clients do: mcp 1.30 leaves a call whose stream was cut before the first event id pending for ever, 2.3 fails
it at once; 1.30 does not read the body of a refusal, and dies of a 400.

The guard changes nothing of this: none of it is what it stops. Where a call was resumed it sends one ping, which is
answered on a stream.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import prepare
from tests.e2e.peers.harness import GUARDS, at_work, needs_npm, node_package, run_client, serving
from tests.e2e.peers.plan import Plan, Report, Step, pinged, told, total
from tests.e2e.peers.proxy import Before, Cut, after_event, at_headers, inside_event, proxy
from tests.ports import free_port

CLIENTS = ("mcp1", "mcp2")
LONG = Step("call", "trigger-long-running-operation", {"duration": 0.6, "steps": 3}, seconds=4)
ELICIT = Step("call", "trigger-elicitation-request", seconds=4)
SAMPLE = Step("call", "trigger-sampling-request", {"prompt": "x", "maxTokens": 5})
DONE = "Long running operation completed"
TIMEOUT = "TimeoutError"
LOST = {"mcp1": (TIMEOUT,), "mcp2": ("MCPError: SSE stream ended without a response",)}
PENDING = {"mcp1": (TIMEOUT,), "mcp2": (TIMEOUT,)}
DEAD = "MCPError: Server returned an error response"


@dataclass(frozen=True, slots=True)
class Case:
    """What is done, where it is cut, and what must be told before the session is closed, or at the client's end."""

    plan: Plan
    told: Mapping[str, float]
    results: Mapping[str, tuple[str, ...]] | tuple[str, ...] = (DONE,)
    """How the result of each step begins."""
    cut: Callable[[], Cut] | None = None
    deletes: bool = False
    """The session is deleted just before the second call is sent on."""
    of: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What is told of one client only."""
    asked: int = 0
    progress: int | None = None
    errors: Mapping[str, str] = field(default_factory=dict)
    """How the error begins that ended a client."""
    options: Mapping[str, str] = field(default_factory=dict)


def _answered(calls: int) -> dict[str, float]:
    """What is told of an initialization, so many exchanges after it, and nothing else."""
    return {"responses first": calls + 1, "stream_duration complete response": calls + 1}


CASES = {
    "progress": Case(Plan((LONG,)), _answered(2), progress=3),
    "elicitation": Case(
        Plan((ELICIT,)),
        {
            **_answered(2),
            "server_requests elicitation/create first live": 1,
            "answers elicitation/create acknowledged in_time continue": 1,
        },
        results=("✅ User provided",),
        asked=1,
    ),
    "sampling": Case(
        Plan((SAMPLE,)),
        {
            **_answered(2),
            "server_requests sampling/createMessage first live": 1,
            "answers sampling/createMessage acknowledged in_time continue": 1,
        },
        results=("LLM sampling result",),
        asked=1,
    ),
    "cut-before-the-first-id": Case(
        Plan((LONG,)),
        {
            **_answered(0),
            "classifications retryable request network_error": 1,
            "requests_lost tools/call not_resumable": 1,
            "stream_duration network_error response": 1,
        },
        results=LOST,
        cut=lambda: Cut(at_headers),
    ),
    "cut-after-the-first-id": Case(
        Plan((LONG,)),
        {
            **_answered(2),
            "probes after_replay implicit live": 1,
            "reconnect_delay absent": 1,
            "reconnect_outcomes continue progressed response": 1,
            "reconnects network_error sent response": 1,
            "stream_duration network_error response": 1,
        },
        cut=lambda: Cut(after_event(rb"\nid: ")),
        progress=3,
    ),
    "cut-inside-a-chunk": Case(
        Plan((LONG,)),
        {
            **_answered(2),
            "probes after_replay implicit live": 1,
            "reconnect_delay absent": 1,
            "reconnect_outcomes continue progressed response": 1,
            "reconnects network_error sent response": 1,
            "stream_duration network_error response": 1,
        },
        cut=lambda: Cut(inside_event(rb'"progress":2')),
        progress=3,
    ),
    "cut-after-the-answer": Case(
        Plan((LONG, Step("list"))),
        _answered(3),
        results=(DONE, "echo"),
        cut=lambda: Cut(after_event(rb'\ndata: \{"result"')),
        progress=3,
    ),
    "resumed-too-early": Case(
        Plan((ELICIT,), answer_after=1.5),
        {
            **_answered(0),
            "answers elicitation/create acknowledged in_time continue": 1,
            "probes after_replay implicit live": 1,
            "reconnect_delay absent": 1,
            "reconnects network_error sent response": 1,
            "server_requests elicitation/create first live": 1,
            "stream_duration network_error response": 1,
        },
        results=PENDING,
        cut=lambda: Cut(after_event(rb"elicitation/create")),
        asked=1,
    ),
    "deleted": Case(
        Plan((LONG, LONG, Step("list"))),
        _answered(2),
        deletes=True,
        of={
            "mcp1": {"classifications terminal request bad_request": 1},
            "mcp2": {
                "classifications terminal request session_lost": 2,
                "dead_session_requests": 1,
                "sessions_lost in_use http_400": 1,
            },
        },
        results={"mcp1": (DONE,), "mcp2": (DONE, DEAD, DEAD)},
        errors={"mcp1": "ExceptionGroup"},
    ),
    "standalone-cut": Case(
        Plan((Step("pause", seconds=1.6),)),
        {
            **_answered(0),
            "classifications retryable open network_error": 1,
            "reconnect_delay absent": 1,
            "reconnects network_error absent standalone": 1,
        },
        results=("",),
        cut=lambda: Cut(at_headers, b"GET "),
    ),
    "standalone-cut-unknown-to-the-server": Case(
        Plan((Step("pause", seconds=2.6), Step("list"))),  # a session that goes on
        {
            **_answered(1),
            "classifications ambiguous open conflict": 1,  # no client reads the body of the 409
            "classifications retryable open network_error": 1,
            "reconnect_delay absent": 1,
            "reconnect_outcomes ambiguous refused standalone": 1,
            "reconnects network_error absent standalone": 1,
            "streams_lost gave_up standalone": 1,
        },
        options={"OTEL_PYTHON_HTTPX_SSE_GIVE_UP_AFTER": "0.5"},
        results=("", "echo"),
        cut=lambda: Cut(at_headers, b"GET ", server_knows=False),
    ),
}
Runs = Mapping[str, Future[Report]]


def _delete(upstream: str) -> Callable[[bytes], None]:
    """Deletes the session of a request, as another client of the same user might."""

    def act(request: bytes) -> None:
        sent = re.findall(rb"(?i)\r\n(mcp-session-id|mcp-protocol-version): *(\S+)", request)
        headers = {name.decode(): value.decode() for name, value in sent}
        delete = urllib.request.Request(f"http://{upstream}/mcp", method="DELETE", headers=headers)
        urllib.request.urlopen(delete, timeout=10).close()  # noqa: S310 - a loopback address of ours

    return act


def _play(children: Children, *, server: str, client: str, case: Case, guard: str) -> Report:
    with proxy(
        server,
        cut=case.cut() if case.cut else None,
        before=Before(2, _delete(server)) if case.deletes else None,
    ) as between:
        url = f"http://{between.address}/mcp"
        return run_client(children, client, url, case.plan, options={**case.options, **GUARDS[guard]})


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    prepare(CLIENTS)
    port = free_port()
    command = ["node", str(node_package("everything") / "dist" / "index.js"), "streamableHttp"]
    with ExitStack() as stack:
        servers = stack.enter_context(closing(Children()))
        server = stack.enter_context(serving(servers, command, port, {"PORT": str(port)}))
        jobs = {
            f"{guard}-{client}-{name}": partial(_play, server=server, client=client, case=case, guard=guard)
            for (name, case), client, guard in product(CASES.items(), CLIENTS, GUARDS)
        }
        yield stack.enter_context(at_work(jobs, request))


@needs_npm
@pytest.mark.e2e
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("guard", GUARDS)
def test_what_is_told(guard: str, client: str, case: str, runs: Runs) -> None:
    """The client got what its row says, every series says why, and none says more."""
    report, wanted = runs[f"{guard}-{client}-{case}"].result(), CASES[case]
    results = wanted.results if isinstance(wanted.results, tuple) else wanted.results[client]

    assert [result[: len(start)] for result, start in zip(report.results, results, strict=True)] == [*results]
    assert (report.error or "").partition(":")[0] == wanted.errors.get(client, "")
    assert report.asked == wanted.asked
    assert wanted.progress in {None, report.progress}
    unguarded = {**wanted.told, **wanted.of.get(client, {})}
    asks = guard == "on" and "probes after_replay implicit live" in unguarded
    assert told(report.during or report.after) == (pinged(unguarded, on_a_stream=True) if asks else unguarded)


@needs_npm
@pytest.mark.e2e
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("guard", GUARDS)
def test_pending_call_ages(guard: str, client: str, runs: Runs) -> None:
    """A call that was resumed too early waits for ever on a quiet stream: its age is the one sign of it."""
    report = runs[f"{guard}-{client}-resumed-too-early"].result()

    assert total(report.during, "sse_client_oldest_request_age_seconds") == pytest.approx(4, abs=1)
    assert total(report.after, "sse_client_oldest_request_age_seconds") == 0
