"""Every metric: instrument, unit, attributes, buckets, and the label sets that can occur."""

from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal, get_args

from .attributes import *
from .values import *

Instrument = Literal["counter", "up_down_counter", "histogram", "observable_counter", "observable_gauge"]
Labels = tuple[str, ...]
"""The values of one series, in the order of its metric's attributes; the server's own are left out."""

DURATION_BUCKETS: Final = (
    0.05, 0.25, 1.0, 5.0, 15.0, 25.0, 29.0, 31.0, 59.0, 61.0, 99.0, 105.0, 119.0, 126.0,
    180.0, 240.0, 299.0, 303.0, 307.0, 349.0, 355.0, 365.0, 600.0, 1800.0, 3600.0, 14400.0,
)  # fmt: skip
"""Seconds. Pairs of bounds stand around the idle limits seen in the field: 30, 60, 100-105, 120-125,
300, 305, 350 and 360 s, so that a spike between two of them names the device that cuts."""

LATENCY_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds; the advice of the HTTP conventions, longer at the end for streams."""

DELAY_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds between streams; official clients wait 1 s by default, servers of the field ask for 1 to 3 s."""

ROUND_BUCKETS: Final = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 25.0)
"""Rounds; the caps seen in clients are 8 and 10."""

MCP_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds; the boundaries that the GenAI conventions give for the MCP metrics."""

OPEN_ENDED_SERIES: Final = 100
"""Series per server of a metric whose label sets are no closed set; beyond it they share `_OTHER`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One instrument.

    `attributes` are its own keys, beside those of the server unless `by_server` is false. `reachable` lists
    every label set that can occur; it is empty when the set is open-ended. `zeroed` are the sets that are
    exported as 0 from the moment a server is known: `increase()` misses the first step of a series
    that appears with a value, and an alert reads these.
    """

    name: str
    instrument: Instrument
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    reachable: tuple[Labels, ...] = ((),)
    zeroed: tuple[Labels, ...] = ()
    buckets: tuple[float, ...] = ()
    by_server: bool = True
    optional: tuple[str, ...] = field(default=())


def _each(*sets: object) -> tuple[Labels, ...]:
    """All combinations of closed sets, each given as a `Literal` type or as a tuple of values."""
    return tuple(product(*(s if isinstance(s, tuple) else get_args(s) for s in sets)))


KINDS: Final[tuple[StreamKind, ...]] = get_args(StreamKind)
DROPS: Final[tuple[StreamEnd, ...]] = ("server_closed", "network_error", "read_timeout")
"""Ends that the client's consumer did not choose."""

_CAUSES: Final[tuple[ReconnectCause, ...]] = get_args(ReconnectCause)
_LOOSE_CAUSES: Final = tuple(c for c in _CAUSES if c != "after_terminal")

_RECONNECTS: Final = (
    *_each(("response",), _CAUSES, ("sent",)),
    *_each(("standalone", "legacy", "other"), _LOOSE_CAUSES, ("sent", "absent", "dropped")),
    *_each(("standalone", "other"), ("unknown",), ("foreign",)),
    *_each(("listen",), _LOOSE_CAUSES, ("absent", "dropped")),
)

_OUTCOMES: Final[dict[ReconnectOutcome, tuple[Disposition, ...]]] = {
    "progressed": ("continue",),
    "primed": ("continue",),
    "quiet": ("continue",),
    "empty": ("ambiguous", "terminal"),
    "repeated": ("ambiguous", "terminal"),
    "interrupted": ("retryable",),
    "refused": ("retryable", "ambiguous", "terminal"),
    "not_sse": ("terminal",),
    "failed": ("retryable",),
    "cancelled": ("continue",),
}
_RECONNECT_OUTCOMES: Final = tuple(
    (kind, outcome, disposition)
    for kind in KINDS
    for outcome, dispositions in _OUTCOMES.items()
    for disposition in dispositions
    if kind == "response" or outcome not in ("empty", "repeated") or disposition == "ambiguous"
)

_EMPTY_REPLAYS: Final = (
    *_each(("response",), RequestState),
    *_each(("standalone", "other"), ("none",)),
    *_each(("legacy",), ("in_flight", "none")),
)

_COMMON_FAILURES: Final = (
    ("retryable", "network_error"),
    ("retryable", "timeout"),
    ("terminal", "method_missing"),
    ("terminal", "unauthorized"),
    ("terminal", "session_lost"),
    ("retryable", "throttled"),
    ("retryable", "server_error"),
    ("terminal", "unsupported"),
)
_OPEN_FAILURES: Final = (
    *_COMMON_FAILURES,
    ("retryable", "conflict"),
    ("ambiguous", "conflict"),
    ("terminal", "bad_request"),
    ("terminal", "not_sse"),
)
_FAILURES: Final[dict[FailurePoint, tuple[tuple[str, str], ...]]] = {
    "open": _OPEN_FAILURES,
    "resume": (
        *_OPEN_FAILURES,
        ("terminal", "cursor_evicted"),
        ("ambiguous", "empty_replay"),
        ("terminal", "empty_replay"),
        ("ambiguous", "nothing_new"),
        ("terminal", "nothing_new"),
    ),
    "probe": (*_COMMON_FAILURES, ("terminal", "bad_request")),
    "request": (*_COMMON_FAILURES, ("terminal", "bad_request")),
    "answer": (*_COMMON_FAILURES, ("terminal", "unknown_request")),
}
_CLASSIFICATIONS: Final = tuple(
    (point, disposition, reason) for point, failures in _FAILURES.items() for disposition, reason in failures
)

_LATER: Final[tuple[PromptLiveness, ...]] = tuple(v for v in get_args(PromptLiveness) if v != "live")
_SERVER_METHODS: Final = (*SERVER_METHODS, OTHER)
_SERVER_REQUESTS: Final = (
    *_each(_SERVER_METHODS, ("first",), ("live",)),
    *_each(_SERVER_METHODS, ("redelivered",), _LATER),
)
_REPROMPTS: Final = (
    *_each((*PROMPT_METHODS, OTHER), ("replay", "resend"), _LATER),
    *_each((*PROMPT_METHODS, "roots/list", OTHER), ("input_required",), ("answered", "unverified")),
    *_each(("elicitation/create",), ("url_required",), ("answered", "unverified")),
)
_ANSWER_OUTCOMES: Final[tuple[tuple[AnswerOutcome, Disposition], ...]] = (
    ("acknowledged", "continue"),
    ("unknown_request", "terminal"),
    ("session_lost", "terminal"),
    ("unauthorized", "terminal"),
    ("rejected", "terminal"),
    ("retryable_error", "retryable"),
)
_ANSWERS: Final = tuple(
    (method, outcome, disposition, timing)
    for method in (*_SERVER_METHODS, NONE)
    for outcome, disposition in _ANSWER_OUTCOMES
    for timing in get_args(AnswerTiming)
    if method != NONE or timing == "in_time"
)
_PROBES: Final = (
    *_each(ProbeKind, ProbeOutcome, ("after_replay",)),
    *_each(("ping",), ProbeOutcome, ("routine",)),
)
_CLIENT_METHODS: Final = (*CLIENT_METHODS, OTHER)
_REQUESTS_LOST: Final = _each(_CLIENT_METHODS, LossReason)
_LOST_KINDS: Final = ("standalone", "listen")

METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            name="sse.client.active_streams",
            instrument="up_down_counter",
            unit="{stream}",
            description="Server-sent event streams that are open now.",
            attributes=(STREAM_KIND,),
            reachable=_each(KINDS),
        ),
        Metric(
            name="sse.client.logical_streams",
            instrument="observable_gauge",
            unit="{stream}",
            description="Logical streams now: open, or waiting for a reconnect.",
            attributes=(STREAM_KIND, STREAM_STATE),
            reachable=_each(KINDS, StreamState),
        ),
        Metric(
            name="sse.client.stream.duration",
            instrument="histogram",
            unit="s",
            description="Time from the start of a request to the end of its event stream.",
            attributes=(STREAM_KIND, STREAM_END),
            reachable=_each(KINDS, StreamEnd),
            buckets=DURATION_BUCKETS,
        ),
        Metric(
            name="sse.client.stream.silence",
            instrument="histogram",
            unit="s",
            description="Time without a byte before a stream was ended by server, network or read timeout.",
            attributes=(STREAM_KIND, STREAM_END),
            reachable=_each(KINDS, DROPS),
            buckets=DURATION_BUCKETS,
        ),
        Metric(
            name="sse.client.stream.time_to_first_event",
            instrument="histogram",
            unit="s",
            description="Time from the start of a request to the first event of its stream.",
            attributes=(STREAM_KIND,),
            reachable=_each(KINDS),
            buckets=LATENCY_BUCKETS,
        ),
        Metric(
            name="sse.client.events",
            instrument="observable_counter",
            unit="{event}",
            description="Events and comments received.",
            attributes=(STREAM_KIND, EVENT_TYPE),
            reachable=_each(KINDS, EventType),
        ),
        Metric(
            name="sse.client.reconnects",
            instrument="counter",
            unit="{reconnect}",
            description="Attempts to open a stream again, counted when they start.",
            attributes=(STREAM_KIND, RECONNECT_CAUSE, RECONNECT_CURSOR),
            reachable=_RECONNECTS,
            zeroed=tuple(r for r in _RECONNECTS if r[0] in ("response", "standalone", "listen")),
        ),
        Metric(
            name="sse.client.reconnect.outcomes",
            instrument="counter",
            unit="{reconnect}",
            description="What reconnects brought, judged by what was new.",
            attributes=(STREAM_KIND, RECONNECT_OUTCOME, DISPOSITION),
            reachable=_RECONNECT_OUTCOMES,
            zeroed=tuple(r for r in _RECONNECT_OUTCOMES if r[0] in ("response", "standalone")),
        ),
        Metric(
            name="sse.client.reconnect.delay",
            instrument="histogram",
            unit="s",
            description="Time from the end of an attempt to the start of the next one.",
            attributes=(RECONNECT_RETRY_HINT,),
            reachable=_each(RetryHint),
            buckets=DELAY_BUCKETS,
        ),
        Metric(
            name="sse.client.empty_replays",
            instrument="counter",
            unit="{replay}",
            description="Resumes with a cursor that were accepted and ended without one event.",
            attributes=(STREAM_KIND, REQUEST_STATE),
            reachable=_EMPTY_REPLAYS,
            zeroed=_EMPTY_REPLAYS,
        ),
        Metric(
            name="sse.client.stalled_streak",
            instrument="observable_gauge",
            unit="{reconnect}",
            description="Longest run, now, of reconnects of one logical stream without progress.",
        ),
        Metric(
            name="sse.client.oldest_request.age",
            instrument="observable_gauge",
            unit="s",
            description="Age of the oldest unanswered request whose stream has reconnected at least once.",
        ),
        Metric(
            name="sse.client.streams_lost",
            instrument="counter",
            unit="{stream}",
            description="Standalone and listen streams that ended for good while their session went on.",
            attributes=(STREAM_KIND, LOSS_REASON),
            reachable=_each(_LOST_KINDS, ("refused", "gave_up")),
            zeroed=_each(_LOST_KINDS, ("refused", "gave_up")),
        ),
        Metric(
            name="sse.client.probes",
            instrument="counter",
            unit="{probe}",
            description="Session-scoped requests whose answer shows whether the session lives.",
            attributes=(PROBE_KIND, PROBE_OUTCOME, PROBE_CONTEXT),
            reachable=_PROBES,
            zeroed=_PROBES,
        ),
        Metric(
            name="sse.client.unconfirmed_sessions",
            instrument="observable_gauge",
            unit="{session}",
            description="Sessions whose stream was resumed and that no request has confirmed since.",
        ),
        Metric(
            name="sse.client.confirmation.duration",
            instrument="histogram",
            unit="s",
            description="Time from a replay to the probe that settled whether the session lives.",
            attributes=(PROBE_KIND, PROBE_OUTCOME),
            reachable=_each(ProbeKind, ("live", "dead")),
            buckets=DURATION_BUCKETS,
        ),
        Metric(
            name="sse.client.sessions_lost",
            instrument="counter",
            unit="{session}",
            description="Sessions that the server was found to have lost.",
            attributes=(SESSION_PHASE, SESSION_SIGNAL),
            reachable=_each(SessionPhase, SessionSignal),
            zeroed=_each(SessionPhase, SessionSignal),
        ),
        Metric(
            name="sse.client.sessions_revived",
            instrument="counter",
            unit="{session}",
            description="Lost sessions that answered again: replicas without affinity, or a misread refusal.",
        ),
        Metric(
            name="sse.client.dead_session_requests",
            instrument="counter",
            unit="{request}",
            description="Requests sent on a session that was already lost.",
        ),
        Metric(
            name="sse.client.dead_session_events",
            instrument="counter",
            unit="{event}",
            description="Messages replayed from a session that then proved dead.",
        ),
        Metric(
            name="sse.client.server_requests",
            instrument="counter",
            unit="{request}",
            description="Requests from server to client, by delivery and by what is known of their liveness.",
            attributes=(METHOD, PROMPT_DELIVERY, PROMPT_LIVENESS),
            reachable=_SERVER_REQUESTS,
        ),
        Metric(
            name="sse.client.reprompts",
            instrument="counter",
            unit="{prompt}",
            description="Prompts that a person or a model was shown again.",
            attributes=(METHOD, REPROMPT_TRIGGER, PROMPT_LIVENESS),
            reachable=_REPROMPTS,
            zeroed=_REPROMPTS,
        ),
        Metric(
            name="sse.client.reprompt_streak",
            instrument="observable_gauge",
            unit="{prompt}",
            description="Longest run, now, of reprompts of one prompt without an end of its operation.",
            attributes=(REPROMPT_TRIGGER,),
            reachable=_each(RepromptTrigger),
        ),
        Metric(
            name="sse.client.answers",
            instrument="counter",
            unit="{answer}",
            description="Answers of the client to server requests, by what became of them.",
            attributes=(METHOD, ANSWER_OUTCOME, DISPOSITION, ANSWER_TIMING),
            reachable=_ANSWERS,
            zeroed=tuple(a for a in _ANSWERS if a[0] in (*PROMPT_METHODS, NONE)),
        ),
        Metric(
            name="sse.client.ineffective_answers",
            instrument="counter",
            unit="{answer}",
            description="Acknowledged answers whose prompt was delivered again all the same.",
            attributes=(METHOD,),
            reachable=_each((*PROMPT_METHODS, OTHER)),
            zeroed=_each((*PROMPT_METHODS, OTHER)),
        ),
        Metric(
            name="sse.client.responses",
            instrument="counter",
            unit="{response}",
            description="Responses to client requests, by whether they were new.",
            attributes=(RESPONSE_DELIVERY,),
            reachable=_each(ResponseDelivery),
            zeroed=_each(ResponseDelivery),
        ),
        Metric(
            name="sse.client.input_rounds",
            instrument="histogram",
            unit="{round}",
            description="Rounds of input_required results that an operation took until it ended.",
            attributes=(METHOD,),
            reachable=_each(_CLIENT_METHODS),
            buckets=ROUND_BUCKETS,
        ),
        Metric(
            name="sse.client.requests_lost",
            instrument="counter",
            unit="{request}",
            description="Client requests whose stream ended for good before their response.",
            attributes=(METHOD, LOSS_REASON),
            reachable=_REQUESTS_LOST,
            zeroed=_REQUESTS_LOST,
        ),
        Metric(
            name="sse.client.classifications",
            instrument="counter",
            unit="{decision}",
            description="Failed exchanges, by whether another try can succeed.",
            attributes=(FAILURE_POINT, DISPOSITION, FAILURE_REASON),
            reachable=_CLASSIFICATIONS,
        ),
        Metric(
            name="sse.client.retries_after_terminal",
            instrument="counter",
            unit="{retry}",
            description="Retries of what had failed for good.",
            attributes=(FAILURE_POINT,),
            reachable=_each(RetryPoint),
            zeroed=_each(RetryPoint),
        ),
        Metric(
            name="sse.client.guard.actions",
            instrument="counter",
            unit="{action}",
            description="What the guard did to stop something that could not succeed, or would have done in a dry run.",
            attributes=(GUARD_ACTION,),
            reachable=_each(GuardAction),
            zeroed=_each(GuardAction),
        ),
        Metric(
            name="sse.client.instrumentation.errors",
            instrument="counter",
            unit="{error}",
            description="Errors of this instrumentation that were kept away from the program.",
            attributes=(INSTRUMENTATION_SITE,),
            reachable=_each(Site),
            zeroed=_each(Site),
            by_server=False,
        ),
        Metric(
            name="sse.client.instrumentation.evictions",
            instrument="observable_counter",
            unit="{entry}",
            description="Entries that a full table of this instrumentation let go.",
            attributes=(INSTRUMENTATION_TABLE,),
            reachable=_each(EvictedTable),
            by_server=False,
        ),
    )
}

MCP_METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            name="mcp.client.operation.duration",
            instrument="histogram",
            unit="s",
            description="The duration of the MCP request or notification as observed on the sender "
            "from the time it was sent until the response or ack is received.",
            attributes=(METHOD, PROTOCOL_VERSION, NETWORK_TRANSPORT),
            optional=(ERROR_TYPE, RPC_STATUS_CODE),
            reachable=(),
            buckets=MCP_BUCKETS,
        ),
        Metric(
            name="mcp.client.session.duration",
            instrument="histogram",
            unit="s",
            description="The duration of the MCP session as observed on the MCP client.",
            attributes=(PROTOCOL_VERSION, NETWORK_TRANSPORT),
            optional=(ERROR_TYPE,),
            reachable=(),
            buckets=MCP_BUCKETS,
        ),
    )
}
"""The two metrics that the GenAI conventions define for MCP clients, by their names there."""

SERIES_LIMIT: Final = 2000
"""Label sets of one instrument that the OpenTelemetry SDK keeps apart by default."""

WIDEST: Final = max(len(metric.reachable) for metric in METRICS.values())

SERVER_LIMIT_MAX: Final = SERIES_LIMIT // WIDEST - 1
"""Most servers that can be named so that no instrument overflows, `_OTHER` included."""
