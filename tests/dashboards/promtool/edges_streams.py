"""The alerts on streams on both sides of each of their numbers: just short of it silent, just past it firing.

Where nothing else is said a fault begins at minute 12, when the longest window is full of what was normal. Where
a rate decides, the silent row is a tenth below it and the firing one above; where a count decides, one event is
between them. Every row that fires is over fifteen minutes after its fault.
"""

from dataclasses import replace
from typing import Final

from .behaviour import (
    AGE,
    ALL,
    BUSY,
    EMPTY,
    EVERYWHERE,
    OUTCOMES,
    STREAK,
    STREAMS,
    STREAMS_LOST,
    Happenings,
    polling,
    reconnecting,
    traffic,
)
from .scenario import FLEET, Fires, Scenario
from .series import When

OTHERS: Final = traffic(When(on=("app-2", "app-3")))

STORM: Final = (
    Scenario(
        title="20 streams at 2.8 reconnects a minute are no storm",
        happenings=reconnecting(When(), 20, per_minute=2.8, how="recovered"),
    ),
    Scenario(
        title="60 streams at 3.3 reconnects a minute are a storm, when ten minutes have shown it",
        happenings=reconnecting(EVERYWHERE, 20, per_minute=3.3, how="recovered"),
        fires=(Fires("SSEReconnectStorm", 13.5, 15, says="3.3"),),
    ),
    Scenario(
        title="one stream at 3.8 a minute is none: 38 in ten minutes",
        happenings=reconnecting(When(), per_minute=3.8, how="recovered"),
    ),
    Scenario(
        title="one stream at 4.4 a minute is one: 44 in ten minutes",
        happenings=reconnecting(When(), per_minute=4.4, how="recovered"),
        fires=(Fires("SSEReconnectStorm", 12.9, 15.1),),
    ),
    Scenario(
        title="an outage of four minutes is a storm, told once, and over 12 minutes after it",
        happenings=(
            *BUSY,
            *reconnecting(When(12.1, 16.1, ALL), 50),
            *polling(When(16.1, on=ALL), 50),
        ),
        fires=(Fires("SSEReconnectStorm", 17.1, 18.1, 27.1, 29.6),),
    ),
    Scenario(
        title="polls do not fill up the long window",
        happenings=polling(When()) + reconnecting(When(20, 27.6), per_minute=6.6, how="recovered"),
    ),
    Scenario(
        title="a restart of two minutes after which quiet streams are cut every 24 s",
        happenings=(
            *reconnecting(When(12.1, 14.1), 20),
            *reconnecting(When(14.1), 20, per_minute=2.5, how="quiet"),
        ),
    ),
    Scenario(
        title="streams that come and go count for as long as they are there",
        happenings=(
            *reconnecting(When(12, 26), 10, per_minute=15),
            *(
                replace(EVERYWHERE, since=m, until=m + 0.5).level(STREAMS, "response", "open", value=20)
                for m in range(0, 40, 2)
            ),
        ),
        fires=(Fires("SSEReconnectStorm", 18.1, 25),),
    ),
    Scenario(
        title="polls do not prolong what the short window sees",
        happenings=polling(When(), 5) + reconnecting(When(12.1, 15.1), 5),
    ),
    *(
        Scenario(
            title=f"what other causes bring is a storm as well: {how}",
            happenings=reconnecting(When(12, 26), 20, per_minute=20, how=how),
            fires=(Fires("SSEReconnectStorm", 18.1, 19.6, over=39.9),),
        )
        for how in ("failed", "refused")
    ),
    Scenario(
        title="a storm at one server is none at another",
        happenings=polling(When(on=ALL), 50) + reconnecting(When(12, 26, ALL, server=1), 5, per_minute=20),
        servers=3,
        fires=(Fires("SSEReconnectStorm", 18.1, 19.6, server=1),),
    ),
)

_LOOP: Final = reconnecting(When(12.0, 24.0), how="empty", kind="response")

STUCK: Final = (
    Scenario(
        title="a streak of 9 that stands for twenty minutes is not stuck",
        happenings=(*BUSY, When(12, 32).level(STREAK, value=9)),
    ),
    Scenario(
        title="a streak of 10 is",
        happenings=(*BUSY, When(12, 26).level(STREAK, value=10)),
        fires=(Fires("SSEStreamStuck", 15.6, 16.6, 30.4, 31.6, says="10"),),
    ),
    Scenario(
        title="one stream in a loop at 1 Hz is told within six minutes, and over within fifteen",
        happenings=BUSY + _LOOP,
        fires=(
            Fires("SSEStreamStuck", 15.9, 17.1, 28.4, 29.6),
            Fires("SSEEmptyReplayLoop", 17.1, 18, 35, 37.6),
            Fires("SSEReconnectStorm", 17.1, 18.9, 35, 38.9),
        ),
    ),
    Scenario(
        title="one stream in a loop at 1 Hz that hides among 200 healthy ones is told within six minutes",
        happenings=traffic(When(on=ALL)) + polling(When(), 200) + _LOOP,
        fires=(Fires("SSEStreamStuck", 15.9, 17.1, 28.4, 29.6),),
    ),
    Scenario(
        title="missed scrapes do not put off the page",
        happenings=(*OTHERS, When(12, 24).level(STREAK, per_minute=60)),
        fleet=(replace(FLEET[0], missed=(13.0, 13.5, 14.0)), *FLEET[1:]),
        fires=(Fires("SSEStreamStuck", 15.9, 16.6),),
    ),
    Scenario(
        title="a client that reports once a minute is paged within six minutes",
        happenings=BUSY + _LOOP,
        scrape=60,
        fires=(
            Fires("SSEStreamStuck", 15.9, 17.8, over=38.9),
            Fires("SSEEmptyReplayLoop", 17.1, 19.6, over=38.9),
            Fires("SSEReconnectStorm", 17.1, 19.6, over=38.9),
        ),
    ),
    Scenario(
        title="two processes in loops are two pages",
        happenings=reconnecting(When(12, 24, ("app-1", "app-3")), how="not found"),
        fires=(
            *(Fires("SSEStreamStuck", 15.9, 17.1, over=38.9, on=on) for on in ("app-1", "app-3")),
            *(Fires("SSERetryAfterTerminal", 17.1, 18.5, over=38.9, on=on) for on in ("app-1", "app-3")),
            Fires("SSEReconnectStorm", 17.1, 18.9, over=38.9),
        ),
    ),
    Scenario(
        title="one process in loops at two servers is two pages",
        happenings=(
            *OTHERS,
            When(12, 24, server=0).level(STREAK, value=11),
            When(12, 24, server=2).level(STREAK, value=400),
        ),
        servers=3,
        fires=tuple(Fires("SSEStreamStuck", 15.9, 17.1, over=38.9, server=server) for server in (0, 2)),
    ),
)


def empties(when: When, per_minute: float, others: float = 0) -> Happenings:
    """Empty replays of standalone streams, and other outcomes beside them."""
    return (
        when.count(EMPTY, "standalone", "none", per_minute=per_minute),
        when.count(OUTCOMES, "standalone", "empty", "ambiguous", per_minute=per_minute),
        when.count(OUTCOMES, "standalone", "primed", "continue", per_minute=others),
    )


EMPTY_LOOP: Final = (
    Scenario(
        title="1.8 empty replays a minute are no loop",
        happenings=empties(When(), 1.8),
    ),
    Scenario(
        title="2.6 empty replays a minute are a loop, when ten minutes have shown it",
        happenings=empties(When(12), 2.6),
        fires=(Fires("SSEEmptyReplayLoop", 23.5, 26.1),),
    ),
    Scenario(
        title="a loop of each of three processes is one at the server",
        happenings=empties(When(12, on=ALL), 1.3),
        fires=(Fires("SSEEmptyReplayLoop", 22, 24),),
    ),
    Scenario(
        title="a burst of empty replays and a few after it",
        happenings=empties(When(12.1, 14.1), 60) + empties(When(14.1), 1.6),
    ),
    Scenario(
        title="77 % empty is a server that also works",
        happenings=empties(When(on=ALL), 20, 6),
    ),
    Scenario(
        title="83 % empty is one that does not",
        happenings=empties(When(12, on=ALL), 20, 4),
        fires=(Fires("SSEEmptyReplayLoop", 17.1, 18.1),),
    ),
    Scenario(
        title="empty replays of three minutes are a deploy",
        happenings=empties(When(12.1, 15.1, ALL), 60) + polling(When(15.1), 1),
    ),
    Scenario(
        title="empty replays of four minutes are told, and over 12 minutes after",
        happenings=empties(When(12.1, 16.1), 60) + polling(When(16.1), 1),
        fires=(Fires("SSEEmptyReplayLoop", 17.1, 18.1, 27.1, 29.6, says="24"),),
    ),
    Scenario(
        title="an empty server is told beside one that works",
        happenings=empties(When(12, on=ALL), 20) + polling(When(server=1), 100),
        servers=2,
        fires=(Fires("SSEEmptyReplayLoop", 17.1, 18.1),),
    ),
)

_HELD: Final = reconnecting(When(12, 36), per_minute=1, how="quiet", kind="response")

NOT_RECOVERING: Final = (
    Scenario(
        title="a request of 14 minutes waits",
        happenings=OTHERS + reconnecting(When(12, 26), per_minute=1, how="quiet", kind="response"),
    ),
    Scenario(
        title="a request of more than 15 minutes on a stream that brings nothing is told until it ends",
        happenings=(
            *traffic(When(on=("app-2",))),
            *_HELD,
            When(14, 35.9, ("app-3",)).level(AGE, per_minute=60),
        ),
        fires=(Fires("SSERequestNotRecovering", 28.6, 30, 35.9, 36.6, says="18m 0s"),),
    ),
    Scenario(
        title="a request whose polls end is told ten minutes later",
        happenings=(
            *polling(When(0, 30), kind="response", age=0),
            When(30, 60).level(AGE, value=1800, per_minute=60),
        ),
        minutes=60,
        fires=(Fires("SSERequestNotRecovering", 41, 43.1, 59),),
    ),
    Scenario(
        title="messages without an end are progress: a tool that reports as it goes",
        happenings=(
            *reconnecting(When(), per_minute=1, how="recovered", kind="response"),
            When().level(AGE, per_minute=60),
        ),
        minutes=60,
    ),
    Scenario(
        title="neither another process that gets on nor polls of a standalone stream hide it",
        happenings=(
            *polling(When(on=("app-2",)), 50, kind="response"),
            *polling(When(), 50),
            *_HELD,
        ),
        fires=(Fires("SSERequestNotRecovering", 28.6, 30, over=36.6),),
    ),
    Scenario(
        title="nor does the same process at another server",
        happenings=(*polling(When(server=1), 50, kind="response"), *_HELD),
        servers=2,
        fires=(Fires("SSERequestNotRecovering", 28.6, 30, over=36.6),),
    ),
    Scenario(
        title="two hours are too long, whatever else the process gets",
        happenings=(
            *polling(When(2), 50, kind="response", age=0),
            *polling(When(2, on=("app-2",)), 5, kind="response"),
            When(on=("app-2",)).level(AGE, value=20),
        ),
        minutes=140,
        fires=(Fires("SSERequestNotRecovering", 123, 125, 139, says="2h 3m 0s"),),
    ),
)

_GAVE_UP: Final = Fires("SSEStreamGaveUp", 12.1, 12.7, 25.8, 27.1, says="1")

GAVE_UP: Final = tuple(
    Scenario(
        title=f"one {kind} stream that is lost, {reason}, is told at once, for a quarter of an hour",
        happenings=(
            When(on=("app-1", "app-2")).count(STREAMS_LOST, kind, reason, at=(12.1,)),
            *polling(When(on=ALL), 10),
        ),
        fires=(_GAVE_UP, replace(_GAVE_UP, on="app-2")),
    )
    for kind in ("standalone", "listen")
    for reason in ("refused", "gave_up")
)

BOTH_GAVE_UP: Final = Scenario(
    title="both streams of one process are one page that says two",
    happenings=tuple(
        When().count(STREAMS_LOST, kind, "gave_up", at=(12.1,)) for kind in ("standalone", "listen")
    ),
    fires=(Fires("SSEStreamGaveUp", 12.1, 12.7, says="2"),),
)

STREAM_EDGES: Final = (*STORM, *STUCK, *EMPTY_LOOP, *NOT_RECOVERING, *GAVE_UP, BOTH_GAVE_UP)
