"""The catalogue of names against the contract, and against what the stories produce."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import get_args

import pytest
from tests.conftest import FAMILIES
from tests.stories.play import Player
from tests.stories.pure import PureHost
from tests.stories.script import stories

from opentelemetry.instrumentation.httpx_sse import _names as names
from opentelemetry.instrumentation.httpx_sse._names import METRICS, SERIES_LIMIT, Metric
from opentelemetry.instrumentation.httpx_sse._options import Options

CONTRACT = """\
| `sse.client.active_streams` | up-down counter, `{stream}` | `sse.stream.kind` |
| `sse.client.logical_streams` | observable gauge, `{stream}` | `sse.stream.kind`, `sse.stream.state` |
| `sse.client.stream.duration` | histogram, `s` | `sse.stream.kind`, `sse.stream.end` |
| `sse.client.stream.silence` | histogram, `s` | `sse.stream.kind`, `sse.stream.end` |
| `sse.client.stream.time_to_first_event` | histogram, `s` | `sse.stream.kind` |
| `sse.client.events` | observable counter, `{event}` | `sse.stream.kind`, `sse.event.type` |
| `sse.client.reconnects` | counter, `{reconnect}` | `sse.stream.kind`, `sse.reconnect.cause`, `sse.reconnect.cursor` |
| `sse.client.reconnect.outcomes` | counter, `{reconnect}` | `sse.stream.kind`, `sse.reconnect.outcome`, `sse.disposition` |
| `sse.client.reconnect.delay` | histogram, `s` | `sse.reconnect.retry_hint` |
| `sse.client.empty_replays` | counter, `{replay}` | `sse.stream.kind`, `sse.request.state` |
| `sse.client.stalled_streak` | observable gauge, `{reconnect}` | - |
| `sse.client.oldest_request.age` | observable gauge, `s` | - |
| `sse.client.streams_lost` | counter, `{stream}` | `sse.stream.kind`, `sse.loss.reason` |
| `sse.client.probes` | counter, `{probe}` | `sse.probe.kind`, `sse.probe.outcome`, `sse.probe.context` |
| `sse.client.unconfirmed_sessions` | observable gauge, `{session}` | - |
| `sse.client.confirmation.duration` | histogram, `s` | `sse.probe.kind`, `sse.probe.outcome` |
| `sse.client.sessions_lost` | counter, `{session}` | `sse.session.phase`, `sse.session.signal` |
| `sse.client.sessions_revived` | counter, `{session}` | - |
| `sse.client.dead_session_requests` | counter, `{request}` | - |
| `sse.client.dead_session_events` | counter, `{event}` | - |
| `sse.client.server_requests` | counter, `{request}` | `mcp.method.name`, `sse.prompt.delivery`, `sse.prompt.liveness` |
| `sse.client.reprompts` | counter, `{prompt}` | `mcp.method.name`, `sse.reprompt.trigger`, `sse.prompt.liveness` |
| `sse.client.reprompt_streak` | observable gauge, `{prompt}` | `sse.reprompt.trigger` |
| `sse.client.answers` | counter, `{answer}` | `mcp.method.name`, `sse.answer.outcome`, `sse.disposition`, `sse.answer.timing` |
| `sse.client.ineffective_answers` | counter, `{answer}` | `mcp.method.name` |
| `sse.client.responses` | counter, `{response}` | `sse.response.delivery` |
| `sse.client.input_rounds` | histogram, `{round}` | `mcp.method.name` |
| `sse.client.requests_lost` | counter, `{request}` | `mcp.method.name`, `sse.loss.reason` |
| `sse.client.classifications` | counter, `{decision}` | `sse.failure.point`, `sse.disposition`, `sse.failure.reason` |
| `sse.client.retries_after_terminal` | counter, `{retry}` | `sse.failure.point` |
| `sse.client.instrumentation.errors` | counter, `{error}` | `sse.instrumentation.site` |
| `sse.client.instrumentation.evictions` | observable counter, `{entry}` | `sse.instrumentation.table` |
"""  # noqa: E501
"""The metrics of the contract: name; instrument and unit; attributes beside those of the server."""

ROW = re.compile(r"\| `(?P<name>[^`]+)` \| (?P<kind>[^,]+), `(?P<unit>[^`]+)` \| (?P<attributes>.*) \|")
BEYOND_SERVER = ("sse.client.instrumentation.errors", "sse.client.instrumentation.evictions")
SERVERS = 16 + 1

UNTOLD = {
    "sse.client.instrumentation.errors": "errors of ours raise under the suite",
    "sse.client.instrumentation.evictions": "tables are filled by the tests of the ledger",
    "sse.client.guard.actions": "stories have no guard",
}
"""Metrics that no story is about."""

BY_THE_GUARD = "active"
"""Probes of this kind are sent by the guard alone."""

UNREACHED: dict[str, set[names.Labels]] = {
    # A clean end completes other streams, and these three have no request that could be answered. An opaque
    # stream counts as complete, but none of these stories is about a coding.
    "sse.client.stream.duration": {
        ("other", "server_closed"),
        ("standalone", "complete"),
        ("legacy", "complete"),
    },
    "sse.client.stream.silence": {("other", "server_closed")},
    # Without a cursor a stream is opened again only where one has ended, and then its end is known.
    "sse.client.reconnects": {
        *product(("standalone", "listen", "legacy", "other"), ("unknown",), ("absent", "dropped")),
        # Outside of MCP an attempt without a cursor is watched only when it is answered by a stream.
        *product(("legacy", "other"), ("refused", "connect_error"), ("absent",)),
    },
    # A listen is no GET, so nothing is in conflict with it.
    "sse.client.reconnect.outcomes": {("listen", "refused", "ambiguous")},
    # A listen is lost as a stream.
    "sse.client.requests_lost": set(product(("subscriptions/listen",), get_args(names.LossReason))),
}
"""Label sets of the catalogue that no story produces, and why."""


def contract() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    found = {}
    for line in CONTRACT.strip().splitlines():
        match = ROW.fullmatch(line)
        assert match is not None, line
        kind = match["kind"].replace("up-down", "up_down").replace(" ", "_")
        found[match["name"]] = (kind, match["unit"], tuple(re.findall(r"`([^`]+)`", match["attributes"])))
    return found


@cache
def told() -> dict[str, frozenset[names.Labels]]:
    """The label sets that the stories produce, by metric; of those that are not 0, except of gauges."""
    found: dict[str, set[names.Labels]] = {name: set() for name in METRICS}
    for story in stories():
        player = Player(story, PureHost(story))
        FAMILIES["httpx-sync"].run(player.play)
        for point in player.seen:
            if point.metric in METRICS and (point.value or "up_down" in METRICS[point.metric].instrument):
                found[point.metric].add(point.labels)
    return {name: frozenset(labels) for name, labels in found.items()}


def every_metric() -> Iterator[object]:
    for name, metric in METRICS.items():
        yield pytest.param(metric, id=name)


def test_contract() -> None:
    """The catalogue has the metrics of the contract, with instruments, units, attributes; the guard has its own."""
    told_apart = {
        m.name: (m.instrument, m.unit, m.attributes) for m in METRICS.values() if ".guard." not in m.name
    }
    assert contract() == told_apart


@pytest.mark.parametrize("metric", list(every_metric()))
def test_series_fit(metric: Metric) -> None:
    """No instrument can reach the number of series at which the SDK lets points overflow."""
    assert len(metric.reachable) * SERVERS <= SERIES_LIMIT
    assert Options().server_limit + 1 == SERVERS
    assert Options().server_limit <= names.SERVER_LIMIT_MAX


@pytest.mark.parametrize("metric", list(every_metric()))
def test_sets(metric: Metric) -> None:
    """Label sets are whole and distinct, and those that start at 0 can be reached."""
    assert {len(metric.attributes)} >= {len(labels) for labels in metric.reachable}
    assert len(set(metric.reachable)) == len(metric.reachable)
    assert set() == set(metric.zeroed) - set(metric.reachable)
    assert (metric.name not in BEYOND_SERVER) == metric.by_server


@pytest.mark.parametrize("metric", list(every_metric()))
def test_buckets(metric: Metric) -> None:
    """Histograms, and only they, have boundaries: floats that rise."""
    assert (metric.instrument == "histogram") == bool(metric.buckets)
    assert sorted(set(metric.buckets)) == list(metric.buckets)
    assert all(isinstance(bound, float) for bound in metric.buckets)


@pytest.mark.parametrize("limit", [30.0, 60.0, 100.0, 125.0, 300.0, 305.0, 350.0, 360.0])
def test_idle_limits_are_resolved(limit: float) -> None:
    """Durations and silences tell each idle limit that is seen in the field from its neighbours."""
    for name in ("sse.client.stream.duration", "sse.client.stream.silence"):
        bounds = METRICS[name].buckets
        assert min(abs(bound - limit) for bound in bounds) <= 5


def test_stories_reach_nothing_else() -> None:
    """No story produces a label set that the catalogue does not list."""
    assert {
        name: labels - set(METRICS[name].reachable)
        for name, labels in told().items()
        if labels - set(METRICS[name].reachable)
    } == {}


@pytest.mark.parametrize("metric", list(every_metric()))
def test_stories_reach_every_set(metric: Metric) -> None:
    """Every label set is produced by some story, except those that are listed with a reason."""
    if metric.name in UNTOLD:
        pytest.skip(UNTOLD[metric.name])
    wanted = {labels for labels in metric.reachable if BY_THE_GUARD not in labels}
    assert UNREACHED.get(metric.name, set()) == wanted - told()[metric.name]


@pytest.mark.parametrize(
    "kind", [names.StreamKind, names.StreamEnd, names.ReconnectCause, names.ReconnectOutcome]
)
def test_closed_sets(kind: object) -> None:
    """A closed set has no value twice."""
    assert len(get_args(kind)) == len(set(get_args(kind)))
