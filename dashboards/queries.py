"""Every question that a panel asks, as a named function: PromQL is written here and in `promql`, nowhere else.

Four habits hold throughout. Counters are read by `rate` or `increase` only. Every answer is aggregated by
named labels, because the labels of the scope change with a release. What is selected follows the variables of
the dashboard. And a window that is compared with an alert's number is the alert's own.
"""

from typing import Final, NamedTuple

from .catalogue import EVERY_METRIC, OVERFLOW_LABEL, SERVER_LABELS, matching, values_but, values_of
from .details import DETAILS
from .promql import (
    INTERVAL,
    PROCESS,
    RANGE,
    Ask,
    added_up,
    by,
    chosen,
    count,
    count_chosen,
    either,
    foreign,
    highest,
    most,
    of,
    per_minute,
    quantile,
    recorded,
    seen,
    share,
    summed,
    tagged,
    told_apart,
    total,
    worst,
)
from .recordings import Recordings
from .thresholds import Settings, duration

ABOUT: Final = (
    'job=~"$job"',
    'instance=~"$instance|"',
    'server_address=~"$server|"',
    'server_port=~"$port|"',
)
"""Of alerts and recordings: one on a whole server has no `instance`, and is in sight whatever is chosen."""
ENDPOINT: Final = SERVER_LABELS
BY_SERVER: Final = ("job", *SERVER_LABELS)
BY_PROCESS: Final = ("instance", *SERVER_LABELS)
ALERT: Final = "SSE.+"
HALF: Final = 0.5
"""Of an event: an increase is extrapolated, so that 0 is told from 1 halfway."""

EVENTS: Final = "sse.client.events"
LOGICAL: Final = "sse.client.logical_streams"
DURATION: Final = "sse.client.stream.duration"
SILENCE: Final = "sse.client.stream.silence"
FIRST_EVENT: Final = "sse.client.stream.time_to_first_event"
RECONNECTS: Final = "sse.client.reconnects"
OUTCOMES: Final = "sse.client.reconnect.outcomes"
DELAY: Final = "sse.client.reconnect.delay"
EMPTY: Final = "sse.client.empty_replays"
STREAK: Final = "sse.client.stalled_streak"
AGE: Final = "sse.client.oldest_request.age"
STREAMS_LOST: Final = "sse.client.streams_lost"
PROBES: Final = "sse.client.probes"
UNCONFIRMED: Final = "sse.client.unconfirmed_sessions"
CONFIRMATION: Final = "sse.client.confirmation.duration"
SESSIONS_LOST: Final = "sse.client.sessions_lost"
REVIVED: Final = "sse.client.sessions_revived"
DEAD_REQUESTS: Final = "sse.client.dead_session_requests"
DEAD_EVENTS: Final = "sse.client.dead_session_events"
SERVER_REQUESTS: Final = "sse.client.server_requests"
REPROMPTS: Final = "sse.client.reprompts"
REPROMPT_STREAK: Final = "sse.client.reprompt_streak"
ANSWERS: Final = "sse.client.answers"
INEFFECTIVE: Final = "sse.client.ineffective_answers"
RESPONSES: Final = "sse.client.responses"
ROUNDS: Final = "sse.client.input_rounds"
REQUESTS_LOST: Final = "sse.client.requests_lost"
CLASSIFICATIONS: Final = "sse.client.classifications"
RETRIES: Final = "sse.client.retries_after_terminal"
GUARD: Final = "sse.client.guard.actions"
ERRORS: Final = "sse.client.instrumentation.errors"
EVICTIONS: Final = "sse.client.instrumentation.evictions"
OPERATION: Final = "mcp.client.operation.duration"

UNPLANNED: Final = values_but("sse_reconnect_cause", "server_poll")
AGAIN: Final = values_of("sse_reprompt_trigger", "replay", "resend")
ASKED: Final = values_of("sse_reprompt_trigger", "input_required", "url_required")
REJECTED: Final = values_of("sse_answer_outcome", "unknown_request", "session_lost", "rejected")


class Limit(NamedTuple):
    """An idle limit of the field: the bounds of the histogram around it, and who is known for it."""

    name: str
    above: str
    below: str
    known_for: str


LIMITS: Final = (
    Limit("30 s", "29", "31", "Google load balancer, gateways on httpx"),
    Limit("60 s", "59", "61", "AWS ALB, nginx proxy_read_timeout"),
    Limit("100 s", "99", "105", "Cloudflare"),
    Limit("125 s", "119", "126", "Cloudflare, Cloud Run"),
    Limit("300 s", "299", "303", "Envoy, Vercel, Node fetch, MCP Python SDK"),
    Limit("305 s", "303", "307", "the client's own timer (IDEs)"),
    Limit("350 s", "349", "355", "AWS NLB"),
    Limit("360 s", "355", "365", "server's own limit"),
)
SOON: Final = Limit("under 25 s", "0", "25", "not idle: a crash, a deploy, a network")
BETWEEN: Final = Limit("no known limit", "25", "+Inf", "look at the traces")


# ------------------------------------------------------------------ alerts and faults


def _alerts(name: str, *matchers: str) -> str:
    return foreign(name, f'alertname=~"{ALERT}"', *matchers, *ABOUT)


def _firing() -> str:
    return _alerts("ALERTS", 'alertstate="firing"')


def alerts_firing(settings: Settings) -> str:
    """How many. Where nothing fires, 0 if the rules are loaded, and nothing if they are not."""
    return f"count({_firing()}) or 0 * count({Recordings(settings)['streams']}{{{', '.join(ABOUT)}}})"


def alerts_since(*labels: str) -> str:
    """When each firing alert began, in milliseconds since 1970."""
    began = f"{_alerts('ALERTS_FOR_STATE')} and ignoring (alertstate) {_firing()}"
    return f"1000 * max{by('alertname', 'severity', *labels)} ({began})"


def alert_annotation() -> str:
    return f"max{by('alertname', 'severity', *SERVER_LABELS)} ({_firing()})"


def _faults(ask: Ask, window: str, *labels: str) -> dict[str, str]:
    """Whatever an operator would call a fault, by a name short enough for a legend."""

    def of_kind(metric: str, **equals: str) -> str:
        return summed(ask, metric, window, labels, **equals)

    return {
        "nothing new": of_kind(OUTCOMES, sse_reconnect_outcome="empty|repeated"),
        "cut or failed": of_kind(OUTCOMES, sse_reconnect_outcome="interrupted|failed"),
        "refused": of_kind(OUTCOMES, sse_reconnect_outcome="refused|not_sse"),
        "asked again": of_kind(REPROMPTS, sse_reprompt_trigger=AGAIN),
        "answer rejected": of_kind(ANSWERS, sse_answer_outcome=REJECTED),
        "retry after terminal": of_kind(RETRIES),
        "session lost": of_kind(SESSIONS_LOST),
        "request lost": of_kind(REQUESTS_LOST),
        "stream lost": of_kind(STREAMS_LOST),
    }


FAULTS: Final = tuple(_faults("rate", INTERVAL))


def faults_per_minute(*labels: str) -> str:
    named = told_apart("fault", _faults("rate", INTERVAL, *labels))
    return most(seen(f"60 * ({named})"), 20)


def faults_in_range(*labels: str) -> str:
    """All faults together, by server or process: what the worst ones are sorted by."""
    return _or_none(f"sum{by(*labels)} ({told_apart('fault', _faults('increase', RANGE, *labels))})", *labels)


def happened(metric: str, *labels: str) -> str:
    """How often, in the time range."""
    return _or_none(count(metric, *labels), *labels)


def _or_none(counted: str, *labels: str) -> str:
    """Where a recording says nothing, 0: a column of a table is there whether something happened or not."""
    return f"{counted} or 0 * {highest(STREAK, *labels)}"


# ------------------------------------------------------------------ streams


def streams(*labels: str, **equals: str) -> str:
    return total(LOGICAL, *labels, **equals)


def stream_ends(*labels: str) -> str:
    return seen(per_minute(DURATION, *labels, part="_count"))


def stream_lifetime(q: float, *labels: str) -> str:
    return quantile(q, DURATION, *labels)


def first_event(q: float) -> str:
    return quantile(q, FIRST_EVENT)


def events(*labels: str) -> str:
    return seen(per_minute(EVENTS, *labels))


# ------------------------------------------------------------------ reconnects


def reconnects(*labels: str) -> str:
    return seen(per_minute(RECONNECTS, *labels))


def unplanned_of_each(settings: Settings, key: str, *labels: str) -> str:
    """Unplanned reconnects per logical stream and minute, in one of the windows of the alert on storms."""
    seconds = settings.table["SSEReconnectStorm"][key]
    window = duration(seconds)

    def per_stream(unplanned: str, streams: str) -> str:
        held = f"sum{by(*labels)} ({streams})"
        return f"{unplanned} / clamp_min(avg_over_time({held}[{window}:{duration(settings.interval)}]), 1)"

    if "instance" in labels:
        matchers = matching(RECONNECTS, sse_reconnect_cause=UNPLANNED)
        moved = recorded(DETAILS[RECONNECTS, ""].of_process, *matchers)
        return per_stream(f"{added_up(moved, *labels, window=window)} / {seconds / 60:g}", of(LOGICAL))
    own = chosen(RECONNECTS, sse_reconnect_cause=UNPLANNED)
    whole = recorded(Recordings(settings)[f"unplanned_per_stream.{key}"])
    return either(
        f"60 * sum{by(*labels)} ({whole})",
        per_stream(f"60 * sum{by(*labels)} (rate({own}[{window}]))", chosen(LOGICAL)),
    )


def unplanned_per_stream(settings: Settings, key: str, *labels: str) -> str:
    return worst(unplanned_of_each(settings, key, *labels), *labels)


def outcomes(*labels: str) -> str:
    return seen(per_minute(OUTCOMES, *labels))


def empty_replays(*labels: str) -> str:
    return seen(per_minute(EMPTY, *labels))


def empty_share(settings: Settings, *labels: str) -> str:
    seconds = settings.table["SSEEmptyReplayLoop"]["long"]

    def in_window(key: str, metric: str) -> str:
        whole = f"{seconds:g} * sum{by(*labels)} ({recorded(Recordings(settings)[key])})"
        return either(whole, count_chosen(metric, *labels, window=duration(seconds)))

    return worst(share(in_window("empty.long", EMPTY), in_window("outcomes", OUTCOMES)), *labels)


def streak_of_each(*labels: str) -> str:
    return highest(STREAK, *labels)


def stalled_streak(*labels: str) -> str:
    return worst(highest(STREAK, *labels), *labels)


def reconnect_delay(q: float, *labels: str) -> str:
    return quantile(q, DELAY, *labels)


def retry_hints() -> str:
    return seen(per_minute(DELAY, "sse_reconnect_retry_hint", part="_count"))


# ------------------------------------------------------------------ sessions and requests


def probes(*labels: str) -> str:
    return seen(per_minute(PROBES, *labels))


def unconfirmed_sessions(*labels: str) -> str:
    return worst(total(UNCONFIRMED, *labels), *labels)


def confirmation_time(q: float) -> str:
    return quantile(q, CONFIRMATION)


def sessions_lost(*labels: str) -> str:
    return seen(per_minute(SESSIONS_LOST, *labels))


def dead_after_replay(window: float, *labels: str) -> str:
    expression = count(SESSIONS_LOST, *labels, window=duration(window), sse_session_phase="after_replay")
    return worst(expression, *labels)


def dead_session_traffic() -> str:
    """What happens on sessions that are lost."""
    ways = {
        "requests on a lost session": per_minute(DEAD_REQUESTS),
        "events of a dead session": per_minute(DEAD_EVENTS),
        "sessions revived": per_minute(REVIVED),
    }
    return seen(told_apart("what", ways))


def requests_lost(*labels: str) -> str:
    return seen(per_minute(REQUESTS_LOST, *labels))


def requests_lost_in(settings: Settings, *labels: str) -> str:
    """In the window of the alert."""
    window = duration(settings.table["SSERequestsLost"]["window"])
    whole = f"sum{by(*labels)} ({recorded(Recordings(settings)['requests_lost'])})"
    return worst(either(whole, count_chosen(REQUESTS_LOST, *labels, window=window)), *labels)


def streams_lost_in(window: float, *labels: str) -> str:
    return worst(count(STREAMS_LOST, *labels, window=duration(window)), *labels)


def age_of_each(*labels: str) -> str:
    return highest(AGE, *labels)


def oldest_request(*labels: str) -> str:
    return worst(highest(AGE, *labels), *labels)


def operation_time(q: float, *labels: str) -> str:
    return quantile(q, OPERATION, *labels)


def responses(*labels: str) -> str:
    return seen(per_minute(RESPONSES, *labels))


# ------------------------------------------------------------------ prompts and answers


def server_requests(*labels: str) -> str:
    return seen(per_minute(SERVER_REQUESTS, *labels))


def reprompts(*labels: str) -> str:
    return seen(per_minute(REPROMPTS, *labels))


def reprompt_streak(*labels: str, trigger: str = AGAIN) -> str:
    return highest(REPROMPT_STREAK, *labels, sse_reprompt_trigger=trigger)


def reprompt_streak_seen(trigger: str) -> str:
    return seen(reprompt_streak(trigger=trigger))


def answers(*labels: str) -> str:
    return seen(per_minute(ANSWERS, *labels))


def ineffective_answers() -> str:
    return seen(per_minute(INEFFECTIVE))


def rejected_share(settings: Settings, *labels: str) -> str:
    """Answers that the server did not take, or took without effect, of all answers in the window of the alert."""
    window = duration(settings.table["SSEAnswersRejected"]["window"])

    def in_window(key: str, *counts: str) -> str:
        whole = f"sum{by(*labels)} ({recorded(Recordings(settings)[key])})"
        return either(whole, " + ".join(counts))

    every = count_chosen(ANSWERS, *labels, window=window)
    refused = count_chosen(ANSWERS, *labels, window=window, sse_answer_outcome=REJECTED)
    ineffective = count_chosen(INEFFECTIVE, *labels, window=window)
    failed = in_window("answers_failed", refused, ineffective)
    return worst(share(failed, in_window("answers", every)), *labels)


def input_rounds(q: float, *labels: str) -> str:
    return quantile(q, ROUNDS, *labels)


# ------------------------------------------------------------------ terminal or retryable


def classifications(*labels: str) -> str:
    return seen(per_minute(CLASSIFICATIONS, *labels))


def classifications_in_range(*labels: str) -> str:
    return f"round({count(CLASSIFICATIONS, *labels)}) > 0"


def retries_after_terminal(window: float, *labels: str) -> str:
    return worst(per_minute(RETRIES, *labels, window=duration(window)), *labels)


def retries_by_point() -> str:
    return seen(per_minute(RETRIES, "sse_failure_point"))


def guard_actions() -> str:
    return seen(per_minute(GUARD, "sse_guard_action"))


def guard_actions_in(window: float) -> str:
    return seen(count(GUARD, "sse_guard_action", window=duration(window)))


# ------------------------------------------------------------------ the telemetry itself


def _reporting(*labels: str) -> str:
    """One series for each process that reports; a counter that every process has from its start."""
    return f"group{by('job', 'instance', *labels)} (rate({of(ERRORS)}[{INTERVAL}]))"


def processes(*labels: str) -> str:
    return f"count{by(*labels)} ({_reporting()})"


def versions() -> str:
    return f"count{by('job', 'otel_scope_version')} ({_reporting('otel_scope_version')})"


def contained_errors(window: float) -> str:
    return seen(count(ERRORS, "sse_instrumentation_site", window=duration(window)))


def overflows() -> str:
    """Metrics with more label sets than the SDK keeps apart."""
    every = ", ".join((f'__name__=~"{EVERY_METRIC}"', f'{OVERFLOW_LABEL}="true"', *PROCESS))
    return f"count(group by (__name__) ({{{every}}}))"


def evictions() -> str:
    return seen(per_minute(EVICTIONS, "sse_instrumentation_table"))


# ------------------------------------------------------------------ silence before a drop


def _cut(ask: Ask, window: str, labels: tuple[str, ...], *bounds: str) -> str:
    """Streams that were silent so long at most. A scrape says `29.0` for a bound, OTLP `29`."""
    forms = "|".join(form for bound in bounds for form in (bound, f"{bound}.0"))
    matcher = f'le=~"{forms}"' if bounds else 'le="+Inf"'
    return summed(ask, SILENCE, window, labels, "_bucket", matcher)


def _bands(ask: Ask, window: str, *labels: str) -> dict[Limit, str]:
    """How many streams were cut around each limit, before all of them, and between them."""
    bands = {
        limit: f"{_cut(ask, window, labels, limit.below)} - {_cut(ask, window, labels, limit.above)}"
        for limit in LIMITS
    }
    upper, lower = {limit.below for limit in LIMITS}, {limit.above for limit in LIMITS}
    outside = _cut(ask, window, labels, *sorted(lower - upper, key=float))
    inside = _cut(ask, window, labels, SOON.below, *sorted(upper - lower, key=float))
    return {
        SOON: _cut(ask, window, labels, SOON.below),
        **bands,
        BETWEEN: f"{_cut(ask, window, labels)} + {outside} - {inside}",
    }


def silence_per_minute() -> str:
    named = [tagged(rate, limit=limit.name) for limit, rate in _bands("rate", INTERVAL).items()]
    return seen(f"60 * ({' or '.join(named)})")


def silence_in_range(*labels: str) -> str:
    """How many streams each idle limit cut, and who is known for that limit."""
    bands = _bands("increase", RANGE, *labels).items()
    named = [tagged(cut, limit=limit.name, known_for=limit.known_for) for limit, cut in bands]
    return f"round({' or '.join(named)}) > 0"
