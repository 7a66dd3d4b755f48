"""What both dashboards begin with: is anything wrong now, and which alert says so."""

from typing import Final

from . import queries as ask
from .colours import RETRYABLE, TERMINAL, WAITING
from .frame import SERIES_LINK, endpoint_link
from .panels import About, Column, Json, Limit, Panel, limit, named, stat, table
from .thresholds import Settings, duration

SERVER: Final = "{{server_address}}:{{server_port}}"
FLEET: Final = f"{SERVER} ({{{{job}}}})"
PROCESS: Final = f"{{{{instance}}}} → {SERVER}"
PROCESS_ONLY: Final = "{{instance}}"
HERE: Final = (dict(SERIES_LINK),)
"""Legends and links of lines that are about one server or process."""

QUANTILES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
BY_QUANTILE: Final = named({"p50": "light-blue", "p95": "blue", "p99": "dark-blue"})


def tiles(settings: Settings) -> tuple[Panel, ...]:
    """What both dashboards begin with."""
    row = settings.table
    dead = limit(settings, "SSESessionDeadAfterReplay", "events")
    lost, gone = limit(settings, "SSERequestsLost", "events"), limit(settings, "SSEStreamGaveUp", "events")
    sessions, requests, streams = (row[drawn.alert]["window"] for drawn in (dead, lost, gone))
    stuck = limit(settings, "SSEStreamStuck", "streak")
    again = limit(settings, "SSERepromptLoop", "streak")
    age = limit(settings, "SSERequestNotRecovering", "age")
    return (
        stat(
            "Alerts firing",
            About(
                "Alerts of this family that fire in this Prometheus. Alerts that Grafana manages are not "
                "counted.",
                "0. 'no rules' means that the rules file is not loaded here.",
                "the table below names server and runbook.",
            ),
            ask.alerts_firing(settings),
            limit=Limit("", 1, severe=True),
            none="no rules",
        ),
        stat(
            "Stuck streak",
            About(
                "Longest run, now, of reconnects of one stream that brought nothing new.",
                "0 to 2. Legal polling brings a new cursor each time, a quiet stream counts as neither.",
                f"from {stuck.value:g} on a stream is in a loop: open the server, see what its reconnects "
                "bring.",
            ),
            ask.stalled_streak(),
            limit=stuck,
            warn=stuck.value / 3,
        ),
        stat(
            "Reprompt streak",
            About(
                "How often in a row one prompt was shown again by a replay or a resend, longest now.",
                "0; 1 after a drop at a bad moment.",
                f"from {again.value:g} on a person or a model is asked the same over and over: the server "
                "replays a prompt that nobody waits for.",
            ),
            ask.reprompt_streak(),
            limit=again,
            warn=1,
        ),
        stat(
            f"Sessions dead, {duration(sessions)}",
            About(
                "Sessions that proved dead after a replay had succeeded.",
                "0; a single one can be a deploy.",
                f"above {dead.value:g}: the replay works from a log, the session store forgot the session. See "
                "its runbook.",
            ),
            ask.dead_after_replay(sessions),
            limit=dead,
            warn=ask.HALF,
        ),
        stat(
            f"Requests lost, {duration(requests)}",
            About(
                "Client requests whose stream ended for good before their answer came.",
                "0. A deploy of a server without resumption loses what is under way, once.",
                "see the reason on the server's own dashboard: not_resumable, refused or gave_up.",
            ),
            ask.requests_lost_in(settings),
            limit=lost,
            warn=ask.HALF,
        ),
        stat(
            f"Streams lost, {duration(streams)}",
            About(
                "Notification streams that ended for good while their session goes on.",
                "0. Clients do not log it: such a session hears nothing any more.",
                "restart the client's session; find what refuses the stream in 'Terminal or retryable'.",
            ),
            ask.streams_lost_in(streams),
            limit=gone,
        ),
        stat(
            "Oldest request",
            About(
                "Age of the oldest unanswered request whose stream was reconnected at least once.",
                "minutes, no longer than your longest tool. '-' means that no such request is waiting.",
                "compare with the outcomes: if they are purple, no answer will come; cancel and ask anew.",
            ),
            ask.oldest_request(),
            limit=age,
            warn=age.value / 3,
            unit="s",
        ),
        stat(
            "Streams",
            About(
                "Logical streams now, open or waiting for a reconnect.",
                "what your fleet usually holds.",
                "'no client' means that nothing reports: see the last section.",
            ),
            ask.streams(),
            none="no client",
            plain=True,
        ),
    )


def alerts_table(settings: Settings, *, one_server: bool = False, width: int = 13) -> Panel:
    pages = {settings.severity_page: TERMINAL[0], "warning": RETRYABLE[0], "info": WAITING[0]}
    link = {"title": "Runbook", "url": settings.runbook_link("${__value.raw}"), "targetBlank": True}
    return table(
        "Alerts that fire: a click on the name opens its runbook",
        About(
            "Each alert that fires, the server or process that it is about, and since when.",
            "empty.",
            "open the runbook of the top row, then the server.",
        ),
        [ask.alerts_since("instance", *(() if one_server else ask.ENDPOINT))],
        [
            Column(reads="severity", title="Severity", width=85, coloured=pages),
            Column(reads="alertname", title="Alert", width=225, link=link),
            *(() if one_server else _SERVER_COLUMNS),
            Column(reads="instance", title="Process", width=140),
            Column(reads="Value", title="Since", width=135, unit="dateTimeFromNow"),
        ],
        sort=("Severity", "Since"),
        none="no alert fires",
        width=width,
        height=8,
    )


def row_link() -> Json:
    return endpoint_link("${__value.raw}", "${__data.fields.Port}")


_SERVER_COLUMNS: Final = (
    Column(reads="server_address", title="Server", link=row_link()),
    Column(reads="server_port", title="Port", width=60),
)
