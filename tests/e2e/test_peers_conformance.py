"""The MCP conformance suite judges the official clients alike, watched or not, and all is told of each scenario.

What its servers do, as a fact:

* `initialize` answers in JSON and gives no session id, so that no client opens a standalone stream;
* `tools_call` gives none either and answers in streams without event ids;
* `sse-retry` speaks 2025-03-26, primes the stream of a call with `retry: 500`, ends it after 50 ms and answers on
  the resumed one; it has no DELETE (405), which both clients send when they close;
* `elicitation-sep1034-client-defaults` asks once on the stream of the call and acknowledges the answer with 202.

With the guard on, `sse-retry` is asked one question more, the guard's ping, which it answers in JSON.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from itertools import product

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import prepare
from tests.e2e.peers.harness import (
    GUARDS,
    INSTRUMENTED,
    Ended,
    at_work,
    client_command,
    needs_npm,
    node_package,
    run,
)
from tests.e2e.peers.plan import Plan, Step, pinged, told

CLIENTS = ("mcp1", "mcp2")
MODES: Mapping[str, Mapping[str, str] | None] = {
    "plain": None,
    "watched": {**INSTRUMENTED, **GUARDS["off"]},
    "guarded": {**INSTRUMENTED, **GUARDS["on"]},
}
"""What the environment of a client that is watched says."""
PLANS = {
    "initialize": Plan((Step("list"),)),
    "tools_call": Plan((Step("list"), Step("call", "add_numbers", {"a": 2, "b": 3}))),
    "sse-retry": Plan((Step("call", "test_reconnection"),)),
    "elicitation-sep1034-client-defaults": Plan((Step("call", "test_client_elicitation_defaults"),)),
}
CHECKS = {
    "initialize": {"mcp-client-initialization": "SUCCESS"},
    "tools_call": {"tool-add-numbers": "SUCCESS"},
    "sse-retry": {
        "client-sse-graceful-reconnect": "SUCCESS",
        "client-sse-retry-timing": "SUCCESS",
        "client-sse-last-event-id": "SUCCESS",
    },
    "elicitation-sep1034-client-defaults": {
        f"client-elicitation-sep1034-{kind}-default": "SUCCESS"
        for kind in ("string", "integer", "number", "enum", "boolean")
    },
}
TOLD = {
    "initialize": {"responses first": 2},
    "tools_call": {"responses first": 3, "stream_duration complete response": 3},
    "sse-retry": {
        "classifications terminal request unsupported": 1,  # the DELETE
        "probes after_replay implicit live": 1,
        "reconnect_delay honored": 1,
        "reconnect_outcomes continue progressed response": 1,
        "reconnects server_poll sent response": 1,
        "responses first": 3,
        "stream_duration complete response": 1,
        "stream_duration server_closed response": 1,
    },
    "elicitation-sep1034-client-defaults": {
        "answers elicitation/create acknowledged in_time continue": 1,
        "responses first": 3,
        "server_requests elicitation/create first live": 1,
        "stream_duration complete response": 3,
    },
}
GUARDED = {**TOLD, "sse-retry": pinged(TOLD["sse-retry"], on_a_stream=False)}
"""Of a client with the guard on, which has nothing to do but to ask after the session whose stream was resumed."""
Runs = Mapping[str, Future[Ended]]


def _suite(children: Children, *, client: str, scenario: str, mode: str) -> Ended:
    environment = MODES[mode]
    suite = ["node", str(node_package("conformance") / "dist" / "index.js"), "client", "--verbose"]
    command = shlex.join(client_command(client, instrumented=environment is not None))
    command_line = [*suite, "--scenario", scenario, "--command", command]
    return run(children, command_line, PLANS[scenario], environment or {})


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    prepare(CLIENTS)
    node_package("conformance")
    jobs: dict[str, Callable[[Children], Ended]] = {
        f"{mode}-{client}-{scenario}": partial(_suite, client=client, scenario=scenario, mode=mode)
        for mode, client, scenario in product(MODES, CLIENTS, PLANS)
    }
    with at_work(jobs, request) as started:
        yield started


@needs_npm
@pytest.mark.e2e
@pytest.mark.parametrize("scenario", PLANS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mode", MODES)
def test_verdict(mode: str, client: str, scenario: str, runs: Runs) -> None:
    """The suite passes every check of an official client, and neither watching nor guarding it changes a verdict."""
    ended = runs[f"{mode}-{client}-{scenario}"].result()
    verdict = {
        check["id"]: check["status"]
        for check in json.loads(ended.printed)
        if check["status"] in {"SUCCESS", "FAILURE", "WARNING"}
    }

    assert verdict == CHECKS[scenario]
    assert (ended.status, ended.report.error) == (0, None), ended.noise


@needs_npm
@pytest.mark.e2e
@pytest.mark.parametrize("scenario", PLANS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mode", MODES)
def test_telemetry(mode: str, client: str, scenario: str, runs: Runs) -> None:
    """Every series says what happened, none says more; unwatched, there is no series at all."""
    report = runs[f"{mode}-{client}-{scenario}"].result().report
    wanted = {"plain": {}, "watched": TOLD[scenario], "guarded": GUARDED[scenario]}

    assert told(report.after) == wanted[mode]
    assert bool(report.after) == (mode != "plain")
