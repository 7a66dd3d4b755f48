"""The alerts on sessions, prompts, answers, requests and on the telemetry itself, on both sides of their numbers.

The conventions are those of `edges_streams`.
"""

from dataclasses import replace
from typing import Final

from dashboards.catalogue import name_of

from .behaviour import (
    ALL,
    ANSWERS,
    ASK,
    BUSY,
    ERRORS,
    EVENTS,
    EVERYWHERE,
    GUARD,
    PROBES,
    REQUESTS_LOST,
    RETRIES,
    SESSIONS_LOST,
    answered,
    lost,
    replayed,
    reprompted,
)
from .scenario import Fires, Scenario
from .series import JOB, Process, When

OVERFLOW: Final = (
    f'{{job="{JOB}",instance="app-1:9464",server_address="",server_port="",'
    'otel_metric_overflow="true",otel_scope_name="opentelemetry.instrumentation.httpx_sse"}'
)


def quarter(alert: str, *, says: str = "") -> Fires:
    """What happened at 12.1 is told two minutes later and for a quarter of an hour."""
    return Fires(alert, 14.1, 14.7, 25.8, 27.1, says=says)


DEAD: Final = (
    Scenario(
        title="one session dead after a replay is for the dashboard",
        happenings=replayed(When(), 0, 1, at=12.1),
        scrape=35,
    ),
    Scenario(
        title="two are a page, for a quarter of an hour",
        happenings=replayed(When(), 3, 2, at=12.1),
        fires=(quarter("SSESessionDeadAfterReplay", says="2"),),
    ),
    Scenario(
        title="one on each of two processes are two at the server",
        happenings=replayed(When(on=("app-1", "app-2")), 3, 1, at=12.1),
        fires=(quarter("SSESessionDeadAfterReplay"),),
    ),
    Scenario(
        title="one at each of two servers are one",
        happenings=replayed(When(), 3, 1, at=12.1) + replayed(When(server=1), 3, 1, at=12.1),
        servers=2,
    ),
    Scenario(
        title="3 dead of 81 are a deploy",
        happenings=replayed(EVERYWHERE, 26, 1, at=12.1),
    ),
    Scenario(
        title="39 dead of 800 are under a twentieth",
        happenings=replayed(When(), 761, 39, at=12.1),
    ),
    Scenario(
        title="3 dead of 45 are a page, whatever pings and doubtful probes there are",
        happenings=(
            *replayed(When(), 42, 3, at=12.1),
            When().count(PROBES, "ping", "live", "routine", per_minute=50),
            When().count(PROBES, "implicit", "inconclusive", "after_replay", per_minute=50),
        ),
        fires=(quarter("SSESessionDeadAfterReplay"),),
    ),
    Scenario(
        title="sessions lost in use, or refused on resume, are not dead after a replay",
        happenings=(
            *replayed(When(on=ALL), 0, 0, at=12.1),
            *(
                When(on=ALL).count(SESSIONS_LOST, phase, "http_404", at=(12.1, 14.1), times=20)
                for phase in ("in_use", "on_resume")
            ),
            When(on=ALL).count(PROBES, "ping", "dead", "routine", at=(12.1, 14.1), times=20),
        ),
    ),
)

REPROMPTS: Final = (
    *(
        Scenario(
            title=f"the fourth time of one prompt is a page, by {trigger}",
            happenings=BUSY + reprompted(When(12, 20), 3, trigger) + reprompted(When(12, 20), 1, other),
            fires=(Fires("SSERepromptLoop", 12.6, 13.1, 29.4, 31.1, says="3"),),
        )
        for trigger, other in (("replay", "resend"), ("resend", "replay"))
    ),
    *(
        Scenario(
            title=f"the seventh time is a warning, by {trigger}",
            happenings=BUSY + reprompted(When(12, 20), 6, trigger) + reprompted(When(12, 20), 1, other),
            fires=(Fires("SSERepromptLoop", 12.6, 13.1, 29.4, 31.1, severity="warning", says="6"),),
        )
        for trigger, other in (("input_required", "url_required"), ("url_required", "input_required"))
    ),
    Scenario(
        title="prompts of two processes at two servers are two pages",
        happenings=reprompted(When(12, 20), 7) + reprompted(When(12, 20, ("app-2",), 1), 7),
        servers=2,
        fires=(
            Fires("SSERepromptLoop", 12.6, 13.1),
            Fires("SSERepromptLoop", 12.6, 13.1, on="app-2", server=1),
        ),
    ),
)

ANSWERS_REJECTED: Final = (
    Scenario(
        title="two refused answers are too few",
        happenings=answered(When(), 0, 2, at=12.1),
    ),
    *(
        Scenario(
            title=f"three answers are told for a quarter of an hour: {outcome}",
            happenings=answered(When(), 1, 3, at=12.1, outcome=outcome),
            fires=(quarter("SSEAnswersRejected"),),
        )
        for outcome in ("unknown_request", "session_lost", "rejected", "ineffective")
    ),
    Scenario(
        title="answers to nothing that was asked count as well",
        happenings=(
            When().count(ANSWERS, "_NONE", "unknown_request", "terminal", "in_time", at=(12.1,), times=3),
        ),
        fires=(quarter("SSEAnswersRejected"),),
    ),
    Scenario(
        title="6 refused of 36 are some late ones",
        happenings=answered(EVERYWHERE, 10, 2, at=12.1),
    ),
    Scenario(
        title="one refused in each of three ways are three",
        happenings=(
            *answered(When(), 1, 1, at=12.1, outcome="rejected"),
            *answered(When(on=("app-2",)), 1, 1, at=12.1, outcome="session_lost"),
            *answered(When(), 1, 1, at=12.1, outcome="ineffective"),
        ),
        fires=(quarter("SSEAnswersRejected", says="3"),),
    ),
    *(
        Scenario(
            title=f"5 of 20 are told: {outcome}",
            happenings=answered(When(), 15, 5, at=12.1, outcome=outcome),
            fires=(quarter("SSEAnswersRejected"),),
        )
        for outcome in ("unknown_request", "session_lost", "rejected", "ineffective")
    ),
    Scenario(
        title="two without effect in each of two processes are four",
        happenings=answered(When(on=("app-1", "app-2")), 1, 2, at=12.1, outcome="ineffective"),
        fires=(quarter("SSEAnswersRejected", says="4"),),
    ),
    Scenario(
        title="answers that a server refuses are told beside one that takes them",
        happenings=answered(When(), 15, 5, at=12.1) + answered(When(server=1), 90, 0, at=12.1),
        servers=2,
        fires=(quarter("SSEAnswersRejected"),),
    ),
    Scenario(
        title="answers that an expired token or a throttled server turned away may be sent again",
        happenings=(
            *answered(When(), 0, 9, at=12.1, outcome="unauthorized"),
            *answered(When(), 0, 9, at=13.1, outcome="retryable_error"),
        ),
    ),
    Scenario(
        title="late answers that are acknowledged do no harm",
        happenings=(When().count(ANSWERS, ASK, "acknowledged", "continue", "late", per_minute=3),),
    ),
)

RETRIES_AFTER: Final = (
    Scenario(
        title="1.8 retries a minute of each process are no loop",
        happenings=(When(on=ALL).count(RETRIES, "resume", per_minute=1.8),),
    ),
    Scenario(
        title="a burst of retries and a few after it",
        happenings=(
            When(12.1, 14.1).count(RETRIES, "resume", per_minute=60),
            When(14.1).count(RETRIES, "resume", per_minute=1.6),
        ),
    ),
    Scenario(
        title="retries of all kinds add up",
        happenings=tuple(
            When(12).count(RETRIES, point, per_minute=1.2)
            for point in ("resume", "answer", "resume_after_rejection")
        ),
        fires=(Fires("SSERetryAfterTerminal", 18, 25),),
    ),
    *(
        Scenario(
            title=f"3 retries a minute are a loop, at {point}",
            happenings=(When(12, 26).count(RETRIES, point, per_minute=3),),
            fires=(Fires("SSERetryAfterTerminal", 19, 21.6, 31, 37),),
        )
        for point in ("resume", "answer", "resume_after_rejection")
    ),
    Scenario(
        title="retries at 1 Hz of three minutes and a half are told, and over seven minutes after",
        happenings=(When(12.1, 15.6).count(RETRIES, "resume", per_minute=60),),
        fires=(Fires("SSERetryAfterTerminal", 17.1, 17.7, 22.1, 23.6),),
    ),
    Scenario(
        title="a client in a loop is told beside another server and other clients",
        happenings=(
            When(12, 26).count(RETRIES, "resume", per_minute=60),
            When(12, 26, ("app-3",), 1).count(RETRIES, "resume", per_minute=60),
        ),
        servers=2,
        fires=(
            Fires("SSERetryAfterTerminal", 17.1, 18.1),
            Fires("SSERetryAfterTerminal", 17.1, 18.1, on="app-3", server=1),
        ),
    ),
)

LOST: Final = (
    Scenario(
        title="four lost requests are too few",
        happenings=lost(When(), 4, 4, at=12.1),
    ),
    Scenario(
        title="five lost requests are told, for a quarter of an hour",
        happenings=lost(When(), 8, 5, at=12.1),
        fires=(quarter("SSERequestsLost", says="5"),),
    ),
    Scenario(
        title="requests lost at a server that has answered none, and so has no series of answers",
        happenings=(
            When().count(REQUESTS_LOST, "tools/call", "not_resumable", at=(12.1,), times=3),
            When().count(REQUESTS_LOST, "prompts/get", "refused", at=(12.1,), times=3),
        ),
        also=frozenset({EVENTS}),
        fires=(quarter("SSERequestsLost"),),
    ),
    Scenario(
        title="6 lost of 162 are a deploy without resumption",
        happenings=lost(EVERYWHERE, 45, 2, at=12.1),
    ),
    Scenario(
        title="6 lost of 90 are told, however many notifications there are and however well another server does",
        happenings=(
            *lost(When(), 77, 6, at=12.1),
            *lost(When(server=1), 777, 0, at=12.1),
            When().count(EVENTS, "response", "notification", per_minute=100),
        ),
        servers=2,
        fires=(quarter("SSERequestsLost"),),
    ),
)

_GUARDED: Final = Fires("SSEGuardActing", 12.1, 12.7, 25.8, 27.1, severity="info", says="1")

GUARDED: Final = (
    Scenario(
        title="one action of the guard is told at once, for a quarter of an hour",
        happenings=(When().count(GUARD, "breaker_opened", at=(12.1,)),),
        fires=(_GUARDED,),
    ),
    Scenario(
        title="actions of several processes are one alert for each server that says how many",
        happenings=(
            *(EVERYWHERE.count(GUARD, one, at=(12.1,)) for one in ("prompt_dropped", "operation_failed")),
            When(server=1).count(GUARD, "session_quarantined", at=(12.1,)),
        ),
        servers=2,
        fires=(replace(_GUARDED, says="6"), replace(_GUARDED, server=1)),
    ),
)

TELEMETRY: Final = (
    Scenario(
        title="one contained error is told, for a quarter of an hour",
        happenings=(When().count(ERRORS, "receive", at=(12.1,)),),
        fires=(Fires("SSETelemetryErrors", 12.1, 12.7, 25.8, 27.1, says="1"),),
    ),
    Scenario(
        title="errors of several places and processes are one alert that says how many",
        happenings=tuple(EVERYWHERE.count(ERRORS, site, at=(12.1,)) for site in ("receive", "hook")),
        fires=(Fires("SSETelemetryErrors", 12.1, 12.7, 25.8, 27.1, says="6"),),
    ),
    *(
        Scenario(
            title=f"an instrument that overflows is told as long as it does: {metric}",
            happenings=(),
            also=frozenset({ERRORS}),
            extra=((f"{metric}{OVERFLOW}", "_x24 7x20 stale"),),
            fires=(Fires("SSETelemetryErrors", 11.9, 12.7, 22.2, 24, says="1"),),
        )
        for metric in ("sse_client_events_total", "mcp_client_operation_duration_seconds_count")
    ),
)

DIALOGUE_EDGES: Final = (*DEAD, *REPROMPTS, *ANSWERS_REJECTED, *RETRIES_AFTER, *LOST, *GUARDED, *TELEMETRY)

ABSENT: Final = (
    Scenario(
        title="a job without telemetry for 14 minutes",
        happenings=(),
        also=frozenset({ERRORS}),
        fleet=(Process(name="app-1", died=10), Process(name="app-2", born=24)),
    ),
    Scenario(
        title="a job without telemetry for a quarter of an hour is told, until the first series comes",
        happenings=(),
        also=frozenset({ERRORS}),
        fleet=(Process(name="app-1", died=10), Process(name="app-2", born=34)),
        extra=((f'{name_of(ERRORS)}{{job="another", sse_instrumentation_site="head"}}', "0x80"),),
        fires=(Fires("SSETelemetryAbsent", 24, 25.7, 33.7, 35),),
    ),
)
"""The alert of the second file."""
