"""Streaming calls of the newest OpenAI and Anthropic SDKs, which are plain server-sent events.

What the SDKs do, as a fact: both run on httpx2 and resume nothing. Whoever stops reading early closes the response.
At `[DONE]` the synchronous OpenAI client closes the response without reading to its end, so that every one of its
streams is `client_closed`; the asynchronous one reads on, and so do both of Anthropic's: `complete`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import prepare
from tests.e2e.peers.harness import at_work, run_client
from tests.e2e.peers.models import FIRST_AFTER, PIECES, models
from tests.e2e.peers.plan import DECISIONS, Plan, Report, Step, told, total

MODULE = "tests.e2e.peers.inside.client_models"
STREAMS = 3
WHOLE_END = {
    "openai_sync": "client_closed",
    "openai_async": "complete",
    "anthropic_sync": "complete",
    "anthropic_async": "complete",
}
CUT = {"openai": "HelloAPIConnectionError", "anthropic": "RemoteProtocolError"}
Runs = Mapping[str, Future[Report]]


def _play(children: Children, *, url: str, call: str) -> Report:
    paths = ({"path": "whole"}, {"path": "early", "most": 1}, {"path": "cut"})
    plan = Plan(tuple(Step("call", call, path) for path in paths))
    return run_client(children, "models", url, plan, module=MODULE)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    prepare(["models"])
    with models() as url:
        jobs = {call: partial(_play, url=url, call=call) for call in WHOLE_END}
        with at_work(jobs, request) as started:
            yield started


@pytest.mark.e2e
@pytest.mark.parametrize("call", WHOLE_END)
def test_ends(call: str, runs: Runs) -> None:
    """A whole stream, one that the caller left, and one that was cut: kind `other`, each with its own end."""
    report = runs[call].result()
    ends: dict[str, float] = {"client_closed": 1, "network_error": 1}
    ends[WHOLE_END[call]] = ends.get(WHOLE_END[call], 0) + 1

    assert report.results[0] == "".join(PIECES)
    assert report.results[2] == CUT[call.partition("_")[0]]
    assert told(report.after) == {f"stream_duration {end} other": count for end, count in ends.items()}


@pytest.mark.e2e
@pytest.mark.parametrize("call", WHOLE_END)
def test_time_to_first_event(call: str, runs: Runs) -> None:
    """From the start of the request to the first event: no less than the server waited, no more than the SDK saw."""
    report = runs[call].result()
    seen = total(report.after, "sse_client_stream_time_to_first_event_seconds_sum", sse_stream_kind="other")

    assert (
        told(report.after, DECISIONS | {"stream_time_to_first_event"})["stream_time_to_first_event other"]
        == STREAMS
    )
    assert STREAMS * FIRST_AFTER <= seen <= sum(report.timings.values())
