"""The overview: is anything wrong, which server, which fault, since when, what to do; then every fault's own row."""

from typing import Final

from . import queries as ask
from .frame import framed
from .overview_sessions import dialogue, failures, sessions
from .overview_streams import outcomes, reconnects, silence, streams
from .panels import (
    About,
    Column,
    Json,
    Panel,
    Query,
    Section,
    coloured,
    limit,
    panel_of_alert,
    table,
    timeseries,
)
from .thresholds import OVERVIEW_UID, Settings, duration
from .tiles import HERE, SERVER, alerts_table, row_link, tiles

ABOUT: Final = (
    "Did clients of server-sent events really recover when they reconnected? Read from the top: is "
    "anything wrong, which server, which fault, since when. Green is healthy; grey-blue waits or is "
    "unknown; amber may be tried again; purple was accepted and brought nothing new; red is over for good. "
    "Where a line stands for a server or a process, the five highest are shown."
)


def contents(settings: Settings) -> tuple[Section, ...]:
    return (
        Section("Is anything wrong now? Which server, since when, what to do", _now(settings)),
        Section("Streams and their ends", streams()),
        Section("Reconnects", reconnects(settings)),
        Section("What reconnects brought", outcomes(settings)),
        Section("Sessions and requests", sessions(settings)),
        Section("Prompts and answers", dialogue(settings)),
        Section("Terminal or retryable", failures(settings)),
        Section("Silence before a drop: which idle limit cuts us", silence()),
        Section("Servers, worst first", _worst(settings)),
        Section("Health of the telemetry itself", _telemetry(settings)),
    )


def build(settings: Settings) -> Json:
    return framed(OVERVIEW_UID, ABOUT, contents(settings), settings)


def panels_of_alerts(settings: Settings) -> dict[str, int]:
    """The panel of this dashboard on which each alert is seen best."""
    return panel_of_alert(contents(settings))


# ------------------------------------------------------------------ 1


def _now(settings: Settings) -> tuple[Panel, ...]:
    return (
        *tiles(settings),
        alerts_table(settings),
        timeseries(
            "Faults per minute: which server, which fault, since when",
            About(
                "Whatever an operator would call a fault, by server. The first bar tells since when.",
                "empty, or a few amber bars: networks break.",
                "purple is a loop that its status codes hide; red will not get better by itself. Click a "
                "server.",
            ),
            Query(ask.faults_per_minute(*ask.ENDPOINT), f"{SERVER} · {{{{fault}}}}"),
            overrides=coloured("fault"),
            links=HERE,
            none="no fault in this time range",
            beside=True,
            width=11,
            height=8,
        ),
    )


# ------------------------------------------------------------------ 9, 10


def _worst(settings: Settings) -> tuple[Panel, ...]:
    keys = ask.BY_SERVER

    def column(query: int, title: str, alert: str = "", number: str = "", unit: str = "none") -> Column:
        drawn = limit(settings, alert, number) if alert else None
        reads = f"Value #{chr(ord('A') + query)}"
        return Column(reads=reads, title=title, width=112, unit=unit, decimals=0, limit=drawn)

    return (
        table(
            "Servers, most faults first",
            About(
                "Each server that clients talked to. Counts are over the time range; streaks, age and rate "
                "are now. A coloured cell is past the limit of its alert.",
                "zeros, and no colour.",
                "open the server of the first row.",
            ),
            [
                ask.faults_in_range(*keys),
                ask.streak_of_each(*keys),
                ask.reprompt_streak(*keys),
                ask.unplanned_of_each(settings, "long", *keys),
                ask.happened(ask.EMPTY, *keys),
                ask.happened(ask.SESSIONS_LOST, *keys),
                ask.happened(ask.REQUESTS_LOST, *keys),
                ask.happened(ask.RETRIES, *keys),
                ask.age_of_each(*keys),
                ask.streams(*keys),
            ],
            [
                Column(reads="server_address", title="Server", link=row_link()),
                Column(reads="server_port", title="Port", width=65),
                Column(reads="job", title="Job", width=120),
                column(0, "Faults"),
                column(1, "Stuck streak", "SSEStreamStuck", "streak"),
                column(2, "Reprompt streak", "SSERepromptLoop", "streak"),
                column(3, "Unplanned / min", "SSEReconnectStorm", "rate"),
                column(4, "Empty replays"),
                column(5, "Sessions lost"),
                column(6, "Requests lost"),
                column(7, "Retries after terminal"),
                column(8, "Oldest request", "SSERequestNotRecovering", "age", unit="s"),
                column(9, "Streams"),
            ],
            sort=("-Faults",),
            none="no server was seen",
        ),
    )


def _telemetry(settings: Settings) -> tuple[Panel, ...]:
    errors = settings.table["SSETelemetryErrors"]["window"]
    return (
        timeseries(
            "Processes that report",
            About(
                "Processes with this instrumentation, by job.",
                "as many as run. A program that lives shorter than two scrapes never shows.",
                "fewer: see whether the target is up; a child process that inherits the port of its "
                "parent's exporter has no instrumentation at all.",
            ),
            Query(ask.processes("job"), "{{job}}"),
            style="lines",
            none="no process reports",
            width=6,
            height=6,
        ),
        timeseries(
            f"Errors contained and series overflown, {duration(errors)}",
            About(
                "Errors of the instrumentation that were kept away from the program, and metrics with more "
                "label sets than the SDK keeps apart.",
                "0.",
                "numbers above may be wrong. Report the error, it is logged once; set server_limit lower.",
            ),
            Query(ask.contained_errors(errors), "errors at {{sse_instrumentation_site}}"),
            Query(ask.overflows(), "metrics that overflow"),
            style="lines",
            limits=(limit(settings, "SSETelemetryErrors", "events"),),
            none="none",
            settings=settings,
            width=6,
            height=6,
        ),
        timeseries(
            "Entries evicted per minute",
            About(
                "What full tables of the instrumentation let go, oldest first, so that its memory stays "
                "bounded.",
                "0, or a steady trickle in a process with very many sessions.",
                "decisions about what was let go are missing: reconnects may count as cause unknown.",
            ),
            Query(ask.evictions(), "{{sse_instrumentation_table}}"),
            none="none in this time range",
            width=6,
            height=6,
        ),
        table(
            "Versions that report",
            About(
                "Releases of the instrumentation, and how many processes have each.",
                "one, two while a deploy is under way.",
                "read the changelog between them before you compare their numbers.",
            ),
            [ask.versions()],
            [
                Column(reads="job", title="Job"),
                Column(reads="otel_scope_version", title="Version", width=110),
                Column(reads="Value", title="Processes", width=110, decimals=0),
            ],
            sort=("-Processes",),
            none="no process reports",
            width=6,
            height=6,
        ),
    )
