"""From an unmodified client to the pager: real faults, real series, a real Prometheus and a real Alertmanager.

Rules run on a clock that is twenty times faster, so that ten minutes pass in thirty seconds. All faults are at
work at once, each behind a server of its own; beside them healthy clients run for five minutes.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest
from dashboards.thresholds import TABLE, Settings
from tests.dashboards.live import live
from tests.dashboards.live.clients import Case, Running, at_work
from tests.dashboards.live.imitation import SERVER, imitation
from tests.dashboards.promtool.scenario import ABOUT, PAGES
from tests.e2e.environments import prepare

FAULTS: Final = {
    "empty resume": Case("empty-resume", "report", ("mcp1", "mcp2")),
    "after the answer": Case("after-answer", "report", ("mcp2",), ("--resume",)),
    "stale prompt": Case("stale-prompt", "wipe"),
    "dead after replay": Case("dead-after-replay", "report", ("agent", "agent")),
    "input required": Case("input-required-loop", "wipe_again", ("mcp2",), ("--mode", "auto")),
}
HEALTHY: Final = {
    "polling": Case("healthy-polling", "report_later", ("mcp1", "mcp2")),
    "quiet": Case("quiet", "report", ("mcp1", "mcp2"), quiet=30.0),
}
PAGED: Final = (
    ("empty resume", "SSEStreamStuck", "critical"),
    ("empty resume", "SSEEmptyReplayLoop", "critical"),
    ("empty resume", "SSEReconnectStorm", "warning"),
    ("empty resume", "SSERequestNotRecovering", "warning"),
    ("after the answer", "SSEStreamStuck", "critical"),
    ("after the answer", "SSERetryAfterTerminal", "warning"),
    ("stale prompt", "SSERepromptLoop", "critical"),
    ("stale prompt", "SSEAnswersRejected", "warning"),
    ("stale prompt", "SSERetryAfterTerminal", "warning"),
    ("dead after replay", "SSESessionDeadAfterReplay", "critical"),
    ("input required", "SSERepromptLoop", "warning"),
)
IMITATED: Final = (
    ("SSERequestsLost", "sse.client.requests_lost", ("tools/call", "gave_up"), 6),
    ("SSEStreamGaveUp", "sse.client.streams_lost", ("standalone", "gave_up"), 1),
    ("SSEGuardActing", "sse.client.guard.actions", ("breaker_opened",), 1),
    ("SSETelemetryErrors", "sse.client.instrumentation.errors", ("receive",), 1),
)
"""Alerts for which the demo has no fault: the series are shown by an imitation of a client."""

FAULT_SECONDS: Final = 100.0
HEALTHY_SECONDS: Final = 300.0
TO_PAGE: Final = 90.0
QUARTER: Final = 15 * 60 * live.SCALE
SLACK: Final = 30.0
"""For a machine that is busy with other tests."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(live.missing()), reason=f"not installed: {live.missing()}"),
]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything at work."""

    stack: live.Stack
    faults: dict[str, Running]
    healthy: dict[str, Running]
    began: float
    ending: ExitStack


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Clients first, since the clock of the rules begins with the servers."""
    prepare(("mcp1", "mcp2"))
    with ExitStack() as stacked, ExitStack() as faulty:
        healthy = stacked.enter_context(at_work(HEALTHY, seconds=HEALTHY_SECONDS))
        faults = faulty.enter_context(at_work(FAULTS, seconds=FAULT_SECONDS))
        stack = stacked.enter_context(live.stack(Settings(absent_jobs=("nightly",)).scaled(live.SCALE)))
        for running in (*healthy.values(), *faults.values()):
            stack.watch(*running.targets)
        yield Run(stack, faults, healthy, time.monotonic(), faulty)


@pytest.mark.parametrize(("fault", "alert", "severity"), PAGED)
def test_fault_is_paged(run: Run, fault: str, alert: str, severity: str) -> None:
    """The alert on a fault reaches Alertmanager, and its labels name the server and, where it must, the process."""
    running = run.faults[fault]
    paged = run.stack.wait_for(alert, seconds=TO_PAGE, severity=severity, server_port=running.port)

    assert paged["labels"]["job"] == live.JOB
    assert set(paged["labels"]) == {"alertname", "severity", *ABOUT[alert]}
    assert "instance" not in ABOUT[alert] or paged["labels"]["instance"] in running.targets
    assert f"127.0.0.1:{running.port}" in paged["annotations"]["description"]


def test_who_is_told(run: Run) -> None:
    """Pages reach the pager, the rest the tickets, and a storm that is a loop is held back behind it."""
    deadline = time.monotonic() + TO_PAGE
    while not run.stack.inbox.names("pager") >= PAGES and time.monotonic() < deadline:
        time.sleep(1)

    assert run.stack.inbox.names("pager") == PAGES
    assert run.stack.inbox.names("tickets") <= set(TABLE) - (PAGES - {"SSERepromptLoop"})
    assert "SSEAnswersRejected" in run.stack.held_back()


@pytest.mark.parametrize(("alert", "metric", "labels", "count"), IMITATED)
def test_what_no_fault_of_the_demo_shows(
    run: Run, alert: str, metric: str, labels: tuple[str, ...], count: int
) -> None:
    """Counts of an imitated client, from 0 on, reach Alertmanager as the alert that reads them."""
    with imitation() as client:
        run.stack.watch(client.address)
        run.stack.wait_until_scraped(client.address)
        time.sleep(3)  # zeros for some scrapes, as a process that has just begun shows them
        client.add(metric, *labels, by=count)
        about = {"server_port": SERVER["server_port"]} if "server_port" in ABOUT[alert] else {}

        assert run.stack.wait_for(alert, seconds=QUARTER + SLACK, **about)


def test_a_job_that_reports_nothing(run: Run) -> None:
    """A job that must have telemetry and has none is told."""
    assert run.stack.wait_for("SSETelemetryAbsent", seconds=QUARTER + SLACK, job="nightly")


def test_alerts_end_with_their_faults(run: Run) -> None:
    """A quarter of an hour after the faults have ended, on the rules' clock, no alert on them is left."""
    run.ending.close()
    for running in run.faults.values():
        for alert in TABLE:
            run.stack.wait_until_over(alert, seconds=QUARTER + SLACK, server_port=running.port)


def test_health_is_silent(run: Run) -> None:
    """Five minutes of legal polling, and of quiet streams cut every 30 s: no alert on either, at no time."""
    time.sleep(max(0.0, HEALTHY_SECONDS - (time.monotonic() - run.began)))
    ports = "|".join(running.port for running in run.healthy.values())
    reconnects = run.stack.query(
        f'sum by (server_port) (max_over_time(sse_client_reconnects_total{{server_port=~"{ports}"}}[10m])) > 0'
    )

    assert len(reconnects) == len(run.healthy)
    assert (
        run.stack.query(f'count_over_time(ALERTS{{server_port=~"{ports}", alertstate="firing"}}[10m])') == []
    )
