"""An invented hour of an invented fleet, as OpenMetrics: every metric has data, and one server has every fault.

It is for looking at panels and for asking every query once. Nothing that is published is drawn from it.

    python -m tests.dashboards.look.sample > hour.om && promtool tsdb create-blocks-from openmetrics hour.om data
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from typing import Final, NamedTuple, TextIO

from dashboards.catalogue import METRICS, exported, label

from opentelemetry.instrumentation.httpx_sse import _names

STEP: Final = 30
HOUR: Final = 3600
FAULT: Final = 1500
"""Seconds before the end at which the fault begins."""

Labels = tuple[tuple[str, str], ...]
Course = Callable[[float], float]
"""A value by seconds until the end."""


class Server(NamedTuple):
    address: str
    port: str
    ill: bool


SERVERS: Final = (
    Server("mcp.internal.example", "443", ill=False),
    Server("tools.example.com", "443", ill=True),
    Server("events.example.net", "8443", ill=False),
)
PROCESSES: Final = tuple(f"agent-{number}:9464" for number in range(1, 4))
JOB: Final = "agents"


@dataclass(frozen=True, slots=True)
class Flow:
    """How often a minute something happens; on the ill server only if it is a fault."""

    metric: str
    values: tuple[str, ...]
    rate: float
    fault: bool = False
    at: tuple[float, ...] = ()
    """Values that a histogram gets in turn."""


def _flows() -> Iterator[Flow]:
    healthy: tuple[tuple[str, tuple[str, ...], float], ...] = (
        ("sse.client.events", ("response", "notification"), 40.0),
        ("sse.client.events", ("response", "response"), 12.0),
        ("sse.client.events", ("standalone", "comment"), 8.0),
        ("sse.client.events", ("response", "priming"), 6.0),
        ("sse.client.reconnects", ("response", "server_poll", "sent"), 6.0),
        ("sse.client.reconnects", ("standalone", "idle_timeout", "absent"), 0.8),
        ("sse.client.reconnect.outcomes", ("response", "progressed", "continue"), 5.0),
        ("sse.client.reconnect.outcomes", ("response", "primed", "continue"), 1.0),
        ("sse.client.reconnect.outcomes", ("standalone", "quiet", "continue"), 0.8),
        ("sse.client.probes", ("implicit", "live", "after_replay"), 2.0),
        ("sse.client.probes", ("ping", "live", "routine"), 3.0),
        ("sse.client.server_requests", ("elicitation/create", "first", "live"), 1.5),
        ("sse.client.answers", ("elicitation/create", "acknowledged", "continue", "in_time"), 1.4),
        ("sse.client.responses", ("first",), 12.0),
        ("sse.client.classifications", ("resume", "retryable", "network_error"), 0.3),
        ("sse.client.classifications", ("request", "terminal", "method_missing"), 0.05),
        ("sse.client.reprompts", ("elicitation/create", "input_required", "answered"), 0.4),
    )
    ill: tuple[tuple[str, tuple[str, ...], float], ...] = (
        ("sse.client.reconnects", ("response", "server_close", "sent"), 55.0),
        ("sse.client.reconnects", ("response", "after_terminal", "sent"), 6.0),
        ("sse.client.reconnects", ("standalone", "network_error", "dropped"), 2.0),
        ("sse.client.reconnects", ("standalone", "refused", "sent"), 3.0),
        ("sse.client.reconnect.outcomes", ("response", "empty", "ambiguous"), 55.0),
        ("sse.client.reconnect.outcomes", ("response", "repeated", "terminal"), 4.0),
        ("sse.client.reconnect.outcomes", ("standalone", "refused", "terminal"), 3.0),
        ("sse.client.reconnect.outcomes", ("standalone", "interrupted", "retryable"), 2.0),
        ("sse.client.empty_replays", ("response", "in_flight"), 50.0),
        ("sse.client.empty_replays", ("response", "terminal"), 5.0),
        ("sse.client.streams_lost", ("standalone", "gave_up"), 0.3),
        ("sse.client.probes", ("implicit", "dead", "after_replay"), 0.6),
        ("sse.client.probes", ("ping", "inconclusive", "after_replay"), 0.4),
        ("sse.client.sessions_lost", ("after_replay", "http_404"), 0.6),
        ("sse.client.sessions_lost", ("in_use", "error_body"), 0.2),
        ("sse.client.sessions_revived", (), 0.1),
        ("sse.client.dead_session_requests", (), 2.0),
        ("sse.client.dead_session_events", (), 4.0),
        ("sse.client.server_requests", ("elicitation/create", "redelivered", "rejected"), 5.0),
        ("sse.client.reprompts", ("elicitation/create", "replay", "rejected"), 5.0),
        ("sse.client.reprompts", ("sampling/createMessage", "resend", "unverified"), 1.0),
        ("sse.client.answers", ("elicitation/create", "unknown_request", "terminal", "late"), 4.0),
        ("sse.client.answers", ("elicitation/create", "retryable_error", "retryable", "in_time"), 0.5),
        ("sse.client.ineffective_answers", ("elicitation/create",), 1.0),
        ("sse.client.responses", ("duplicate_other_stream",), 1.0),
        ("sse.client.responses", ("orphan",), 0.2),
        ("sse.client.requests_lost", ("tools/call", "refused"), 0.5),
        ("sse.client.requests_lost", ("tools/call", "gave_up"), 0.3),
        ("sse.client.classifications", ("resume", "ambiguous", "empty_replay"), 55.0),
        ("sse.client.classifications", ("resume", "terminal", "session_lost"), 3.0),
        ("sse.client.classifications", ("answer", "terminal", "unknown_request"), 4.0),
        ("sse.client.classifications", ("probe", "terminal", "session_lost"), 0.6),
        ("sse.client.retries_after_terminal", ("answer",), 4.0),
        ("sse.client.retries_after_terminal", ("resume",), 3.0),
        ("sse.client.guard.actions", ("breaker_opened",), 0.5),
        ("sse.client.guard.actions", ("resume_refused",), 3.0),
        ("sse.client.instrumentation.errors", ("receive",), 0.05),
        ("sse.client.instrumentation.evictions", ("event_ids",), 30.0),
    )
    for metric, values, rate in healthy:
        yield Flow(metric, values, rate)
    for metric, values, rate in ill:
        yield Flow(metric, values, rate, fault=True)
    yield Flow("sse.client.stream.duration", ("response", "complete"), 12.0, at=(0.4, 2.0, 8.0, 31.0))
    yield Flow("sse.client.stream.duration", ("standalone", "server_closed"), 0.8, at=(60.0,))
    yield Flow("sse.client.stream.duration", ("response", "server_closed"), 50.0, fault=True, at=(0.02, 0.1))
    yield Flow("sse.client.stream.duration", ("standalone", "network_error"), 2.0, fault=True, at=(3.0,))
    yield Flow("sse.client.stream.silence", ("standalone", "server_closed"), 0.8, at=(60.2, 60.1, 3.0))
    yield Flow(
        "sse.client.stream.silence", ("standalone", "read_timeout"), 0.4, fault=True, at=(300.1, 124.8, 45.0)
    )
    yield Flow("sse.client.stream.time_to_first_event", ("response",), 12.0, at=(0.03, 0.08, 0.4, 2.0))
    yield Flow("sse.client.reconnect.delay", ("honored",), 6.0, at=(1.02, 1.2))
    yield Flow("sse.client.reconnect.delay", ("early",), 4.0, fault=True, at=(0.02,))
    yield Flow("sse.client.reconnect.delay", ("absent",), 1.0, at=(1.0,))
    yield Flow("sse.client.confirmation.duration", ("implicit", "live"), 2.0, at=(0.5, 4.0, 20.0))
    yield Flow("sse.client.confirmation.duration", ("implicit", "dead"), 0.6, fault=True, at=(2.0,))
    yield Flow("sse.client.input_rounds", ("tools/call",), 0.4, at=(1.0, 2.0, 3.0))
    operation = ("tools/call", "2025-11-25", "tcp")
    yield Flow("mcp.client.operation.duration", operation, 10.0, at=(0.2, 0.9, 4.0))
    yield Flow("mcp.client.operation.duration", ("tools/list", *operation[1:]), 2.0, at=(0.05,))
    yield Flow("mcp.client.session.duration", operation[1:], 0.2, at=(400.0,))


def _level(healthy: float, sick: float) -> Course:
    return lambda left: sick if left < FAULT else healthy


def _climb(per_minute: float, top: float = math.inf) -> Course:
    return lambda left: min(max(FAULT - left, 0.0) / 60 * per_minute, top)


_GAUGES: Final[tuple[tuple[str, tuple[str, ...], Course, bool], ...]] = (
    ("sse.client.active_streams", ("standalone",), _level(4, 4), False),
    ("sse.client.active_streams", ("response",), _level(1, 1), False),
    ("sse.client.logical_streams", ("standalone", "open"), _level(4, 4), False),
    ("sse.client.logical_streams", ("response", "open"), _level(2, 2), False),
    ("sse.client.logical_streams", ("response", "waiting"), _level(1, 1), False),
    ("sse.client.logical_streams", ("standalone", "waiting"), _level(0, 3), True),
    ("sse.client.stalled_streak", (), _climb(55), True),
    ("sse.client.oldest_request.age", (), _climb(60), True),
    ("sse.client.unconfirmed_sessions", (), _level(0, 3), True),
    ("sse.client.reprompt_streak", ("replay",), _climb(1.2, 14), True),
    ("sse.client.reprompt_streak", ("input_required",), _level(0, 2), True),
)


# ------------------------------------------------------------------ series


def _places() -> Iterator[tuple[str, Server]]:
    yield from product(PROCESSES, SERVERS)


def _sick(process: str, server: Server) -> bool:
    return server.ill and process != PROCESSES[0]


def _labels(metric: _names.Metric, values: tuple[str, ...], process: str, server: Server) -> Labels:
    own = tuple((label(a), value) for a, value in zip(metric.attributes, values, strict=True))
    at = (("server_address", server.address), ("server_port", server.port)) if metric.by_server else ()
    scope = (
        ("otel_scope_name", _names.SCOPE),
        ("otel_scope_version", "0.1.0"),
        ("otel_scope_schema_url", ""),
    )
    return (("job", JOB), ("instance", process), *own, *at, *scope)


def _counted(rate: float, *, fault: bool) -> Course:
    """A counter: steady, or from the beginning of the fault."""
    begin = FAULT if fault else HOUR

    def course(left: float) -> float:
        return math.floor(max(begin - left, 0.0) / 60 * rate)

    return course


def _families() -> dict[str, dict[Labels, Course]]:
    """The course of every series, by the name of its family and part."""
    families: dict[str, dict[Labels, Course]] = defaultdict(dict)
    for metric in _names.METRICS.values():
        for values, (process, server) in product(metric.zeroed, _places()):
            families[exported(metric)][_labels(metric, values, process, server)] = _counted(0, fault=False)
    for flow, (process, server) in product(_flows(), _places()):
        if flow.fault and not _sick(process, server):
            continue
        metric = METRICS[flow.metric]
        labels, name = _labels(metric, flow.values, process, server), exported(metric)
        if not flow.at:
            families[name][labels] = _counted(flow.rate, fault=flow.fault)
            continue
        shares = [
            sum(low < value <= high for value in flow.at) / len(flow.at) for low, high in _edges(metric)
        ]
        for (_, high), part in zip(_edges(metric), accumulate(shares), strict=True):
            bound = "+Inf" if math.isinf(high) else str(high)
            bucket = (*labels, ("le", bound))
            families[f"{name}_bucket"][bucket] = _counted(flow.rate * part, fault=flow.fault)
        families[f"{name}_count"][labels] = _counted(flow.rate, fault=flow.fault)
        families[f"{name}_sum"][labels] = _counted(flow.rate * sum(flow.at) / len(flow.at), fault=flow.fault)
    for (name, values, course, fault), (process, server) in product(_GAUGES, _places()):
        shown = course if not fault or _sick(process, server) else _level(0, 0)
        families[exported(METRICS[name])][_labels(METRICS[name], values, process, server)] = shown
    return families


def _edges(metric: _names.Metric) -> list[tuple[float, float]]:
    bounds = (-math.inf, *metric.buckets, math.inf)
    return list(pairwise(bounds))


def _by_prometheus(end: float) -> dict[str, dict[Labels, Course]]:
    """The alerts that fire; what rules record, `tests.dashboards.recorded` makes out of the hour."""
    ill = next(server for server in SERVERS if server.ill)
    at: Labels = (("job", JOB), ("server_address", ill.address), ("server_port", ill.port))
    firing: dict[str, tuple[str, int, Labels]] = {
        "SSEStreamStuck": ("critical", FAULT - 300, (("instance", PROCESSES[1]),)),
        "SSERepromptLoop": ("critical", FAULT - 240, (("instance", PROCESSES[1]),)),
        "SSEEmptyReplayLoop": ("critical", FAULT - 420, ()),
        "SSERetryAfterTerminal": ("warning", FAULT - 400, (("instance", PROCESSES[2]),)),
        "SSERequestsLost": ("warning", FAULT - 600, ()),
    }
    alerts: dict[Labels, Course] = {}
    states: dict[Labels, Course] = {}
    for name, (severity, begin, more) in firing.items():
        labels = (("alertname", name), ("severity", severity), *at, *more)
        alert = (*labels, ("alertstate", "firing"))
        alerts[alert] = _from(begin, 1.0)
        states[labels] = _from(begin, end - begin)
    overflow = (("job", JOB), ("instance", PROCESSES[2]), ("otel_metric_overflow", "true"))
    return {
        "ALERTS": alerts,
        "ALERTS_FOR_STATE": states,
        "sse_client_overflow_example": {overflow: _from(FAULT, 1.0)},
    }


def _from(begin: float, value: float) -> Course:
    """A series that appears so many seconds before the end."""
    return lambda left: value if left < begin else math.nan


def write(out: TextIO, end: float) -> None:
    """One hour until `end`, in seconds since 1970."""
    families = {**_families(), **_by_prometheus(end)}
    for name, series in families.items():
        out.write(f"# TYPE {name} unknown\n")
        for labels, course in series.items():
            shown = ",".join(f'{key}="{value}"' for key, value in labels)
            for left in range(HOUR, -1, -STEP):
                value = course(left)
                if not math.isnan(value):
                    out.write(f"{name}{{{shown}}} {value!r} {end - left}\n")
    out.write("# EOF\n")


if __name__ == "__main__":
    write(sys.stdout, math.floor(time.time() / STEP) * STEP)
