"""What must raise no alert at all: every line of this table is a page that somebody would get for nothing."""

from dataclasses import replace
from typing import Final

from .behaviour import (
    ALL,
    ANSWERS,
    ASK,
    BUSY,
    ERRORS,
    EVERYWHERE,
    FORGET,
    GUARD,
    OUTCOMES,
    RECONNECTS,
    REQUESTS_LOST,
    RETRIES,
    SESSIONS_LOST,
    STREAMS_LOST,
    answered,
    dropped,
    lost,
    polling,
    reconnecting,
    replayed,
    reprompted,
    traffic,
)
from .scenario import FLEET, Scenario
from .series import Process, When

DAYS_OLD: Final = {
    RETRIES: ("resume",),
    REQUESTS_LOST: ("tools/call", "gave_up"),
    SESSIONS_LOST: ("after_replay", "http_404"),
    STREAMS_LOST: ("standalone", "gave_up"),
    GUARD: ("breaker_opened",),
    ERRORS: ("receive",),
    RECONNECTS: ("standalone", "network_error", "sent"),
    ANSWERS: (ASK, "rejected", "terminal", "in_time"),
}

SILENT: Final = (
    Scenario(
        title="one stream that polls legally every 5 s",
        happenings=polling(When()),
        fleet=(Process(name="app-1"),),
        minutes=60,
    ),
    Scenario(
        title="600 streams that poll legally every 5 s",
        happenings=BUSY + polling(EVERYWHERE, 200),
        minutes=60,
    ),
    Scenario(
        title="calls that take an hour and poll legally every 5 s",
        happenings=BUSY + polling(EVERYWHERE, 10, kind="response", age=0),
        minutes=60,
    ),
    Scenario(
        title="a long call that polls every 8 minutes",
        happenings=polling(When(), every=480, kind="response", age=0),
        minutes=60,
    ),
    Scenario(
        title="quiet streams cut every 60 s",
        happenings=BUSY + reconnecting(EVERYWHERE, 20, per_minute=1, how="quiet"),
        minutes=60,
    ),
    Scenario(
        title="quiet streams cut every 30 s",
        happenings=BUSY + reconnecting(EVERYWHERE, 200, per_minute=2, how="quiet"),
        minutes=60,
    ),
    Scenario(
        title="one quiet stream cut every 30 s, in a fleet that does nothing else",
        happenings=reconnecting(When(), per_minute=2, how="quiet"),
        minutes=60,
    ),
    Scenario(
        title="a rolling deploy that drops every stream three times in three minutes",
        happenings=BUSY + dropped(EVERYWHERE, 100, (12.2, 13.6, 15.1)),
    ),
    Scenario(
        title="a rolling deploy that drops every stream three times in ten minutes",
        happenings=BUSY + dropped(EVERYWHERE, 100, (12.2, 17.1, 22.3)),
    ),
    Scenario(
        title="a rolling deploy that loses what its streams would replay",
        happenings=BUSY + dropped(EVERYWHERE, 100, (12.2, 13.6, 14.9), empty=True),
    ),
    *(
        Scenario(
            title=f"a restart with two minutes of retries at 1 Hz: {how}",
            happenings=(
                *BUSY,
                *reconnecting(When(12.1, 14.1, ALL), 50, how=how),
                *polling(When(14.1, on=ALL), 50),
            ),
        )
        for how in ("failed", "refused", "not found", "empty")
    ),
    Scenario(
        title="a restart with two minutes of retries at 1 Hz of one stream",
        happenings=BUSY + reconnecting(When(12.1, 14.1), how="not found") + polling(When(14.1)),
    ),
    Scenario(
        title="an outage of three minutes with retries at 1 Hz",
        happenings=BUSY + reconnecting(When(12.1, 15.1, ALL), 50) + polling(When(15.1, on=ALL), 50),
    ),
    Scenario(
        title="a stream that is stuck for two minutes, given up, and forgotten two minutes later",
        happenings=BUSY + reconnecting(When(12.1, 14.1), how="not found", kind="response", shown=FORGET),
    ),
    Scenario(
        title="a stream that is stuck for two minutes and ends with its process",
        happenings=traffic(When(on=("app-2", "app-3")))
        + reconnecting(When(12.1, 14.2), how="not found", kind="response"),
        fleet=(replace(FLEET[0], died=14.2), *FLEET[1:]),
    ),
    Scenario(
        title="one single reprompt that stays open for ten minutes",
        happenings=BUSY + reprompted(When(12, 22), 1),
    ),
    *(
        Scenario(
            title=f"a prompt that comes a third time, by {trigger}",
            happenings=BUSY + reprompted(When(12, 22), 2, trigger),
        )
        for trigger in ("replay", "resend")
    ),
    *(
        Scenario(
            title=f"a server that asks {again + 1} times by {trigger}",
            happenings=BUSY + reprompted(When(12, 22), again, trigger),
        )
        for trigger in ("input_required", "url_required")
        for again in (1, 2, 5)
    ),
    Scenario(
        title="three reprompts of a prompt that is answered within half a minute",
        happenings=BUSY + reprompted(When(12.2, 12.8), 3),
    ),
    Scenario(
        title="re-authentication: streams, answers and requests are refused until there is a new token",
        happenings=(
            *BUSY,
            EVERYWHERE.count(RECONNECTS, "standalone", "refused", "sent", at=(12.1, 32.1), times=30),
            EVERYWHERE.count(OUTCOMES, "standalone", "refused", "terminal", at=(12.1, 32.1), times=30),
            EVERYWHERE.count(ANSWERS, ASK, "unauthorized", "terminal", "in_time", at=(12.1, 32.1), times=10),
        ),
    ),
    Scenario(
        title="a process restart that resets counters",
        happenings=(
            *BUSY,
            *(EVERYWHERE.count(name, *labels, at=(-5,), times=5000) for name, labels in DAYS_OLD.items()),
        ),
        fleet=tuple(replace(process, born=-9, restarts=(12, 20 + i)) for i, process in enumerate(FLEET)),
    ),
    Scenario(
        title="low traffic: one drop, one empty replay, one lost session, one refused answer, one lost request",
        happenings=(
            *traffic(When(), per_minute=0.1),
            *dropped(When(), 1, (12.1,), empty=True),
            *replayed(When(), 0, 1, at=13.1),
            *answered(When(), 0, 1, at=14.1),
            *lost(When(), 0, 1, at=15.1),
            When().count(RETRIES, "resume", at=(16.1,)),
        ),
        fleet=(Process(name="app-1"),),
    ),
    Scenario(
        title="low traffic: a process a minute old loses a session and two requests",
        happenings=(
            *replayed(When(), 0, 1, at=12.6),
            *lost(When(), 0, 2, at=12.6),
            *answered(When(), 0, 2, at=12.6),
        ),
        fleet=(Process(name="app-1", born=12.0),),
    ),
    Scenario(
        title="nobody is scraped for five minutes",
        happenings=BUSY + polling(EVERYWHERE, 50),
        fleet=tuple(replace(process, missed=tuple(12 + i / 2 for i in range(10))) for process in FLEET),
    ),
    Scenario(
        title="a server that is past the limit of names",
        happenings=BUSY + polling(replace(EVERYWHERE, server=2), 50),
        servers=3,
    ),
)
"""The must-stay-silent lines; what is silent at the edge of one alert stands in `edges`."""
