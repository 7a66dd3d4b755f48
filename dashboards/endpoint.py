"""One server, seen closely: which process, which kind of stream, which method, which reason, what to do."""

from typing import Final

from . import queries as ask
from .colours import COLOURS
from .endpoint_sessions import dialogue, failures, requests, sessions
from .frame import framed
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
from .thresholds import ENDPOINT_UID, Settings
from .tiles import BY_QUANTILE, PROCESS_ONLY, QUANTILES, alerts_table, tiles

ABOUT: Final = (
    "One server of event streams: choose it above, or come from a row of the overview. Colours are those "
    "of the overview: green is healthy; grey-blue waits or is unknown; amber may be tried again; purple "
    "was accepted and brought nothing new; red is over for good. Where a line stands for a process, the "
    "five highest are shown."
)


def contents(settings: Settings) -> tuple[Section, ...]:
    return (
        Section("$server now: which process, which alert", _now(settings)),
        Section("Streams", _streams()),
        Section("Reconnects and what they brought", _reconnects(settings)),
        Section("Sessions", sessions()),
        Section("Requests", requests(settings)),
        Section("Prompts and answers", dialogue()),
        Section("What failed, and what to do about it", failures()),
        Section("Silence before a drop", _silence()),
    )


def build(settings: Settings) -> Json:
    return framed(ENDPOINT_UID, ABOUT, contents(settings), settings, one_server=True)


def panels_of_alerts(settings: Settings) -> dict[str, int]:
    """The panel of this dashboard on which each alert is seen best."""
    return panel_of_alert(contents(settings))


def _now(settings: Settings) -> tuple[Panel, ...]:
    def column(query: int, title: str, alert: str = "", number: str = "", unit: str = "none") -> Column:
        drawn = limit(settings, alert, number) if alert else None
        reads = f"Value #{chr(ord('A') + query)}"
        return Column(reads=reads, title=title, width=96, unit=unit, decimals=0, limit=drawn)

    return (
        *tiles(settings),
        table(
            "Processes, most faults first",
            About(
                "Each process that talks to this server. Counts are over the time range; streaks, age and "
                "rate are now. A coloured cell is past the limit of its alert.",
                "zeros, and no colour.",
                "if one process has all the colour, restart its sessions; if all have some, it is the "
                "server.",
            ),
            [
                ask.faults_in_range("instance"),
                ask.streak_of_each("instance"),
                ask.reprompt_streak("instance"),
                ask.unplanned_of_each(settings, "long", "instance"),
                ask.happened(ask.SESSIONS_LOST, "instance"),
                ask.happened(ask.REQUESTS_LOST, "instance"),
                ask.happened(ask.RETRIES, "instance"),
                ask.streams("instance"),
            ],
            [
                Column(reads="instance", title="Process"),
                column(0, "Faults"),
                column(1, "Stuck streak", "SSEStreamStuck", "streak"),
                column(2, "Reprompt streak", "SSERepromptLoop", "streak"),
                column(3, "Unplanned / min", "SSEReconnectStorm", "rate"),
                column(4, "Sessions lost"),
                column(5, "Requests lost"),
                column(6, "Retries after terminal"),
                column(7, "Streams"),
            ],
            sort=("-Faults",),
            none="no process talks to this server",
            width=14,
            height=8,
        ),
        alerts_table(settings, one_server=True, width=10),
    )


# ------------------------------------------------------------------ streams and reconnects


def _streams() -> tuple[Panel, ...]:
    return (
        timeseries(
            "Streams by kind and state",
            About(
                "response answers a POST, standalone and listen carry notifications, legacy is the "
                "two-endpoint transport of 2024-11-05, other is no MCP.",
                "mostly green.",
                "grey-blue that grows: streams that cannot come back.",
            ),
            Query(ask.streams("sse_stream_kind", "sse_stream_state"), _kind("sse_stream_state")),
            style="area",
            overrides=coloured("sse_stream_state", shades=True),
        ),
        timeseries(
            "Ends per minute, by kind",
            About(
                "How streams of each kind end.",
                "response streams complete; standing streams are closed by the server now and then.",
                "response streams that end otherwise had no answer yet.",
            ),
            Query(ask.stream_ends("sse_stream_kind", "sse_stream_end"), _kind("sse_stream_end")),
            overrides=coloured("sse_stream_end"),
        ),
        timeseries(
            "Events per minute, by kind",
            About(
                "What the streams of each kind carry.",
                "green whenever agents work; comments every 15 to 30 s keep quiet streams alive.",
                "no comments on standing streams: the first idle limit on the way will cut them.",
            ),
            Query(ask.events("sse_stream_kind", "sse_event_type"), _kind("sse_event_type")),
            overrides=coloured("sse_event_type"),
        ),
        timeseries(
            "Lifetime of streams",
            About(
                "Half of the streams that ended lived shorter than p50, one in twenty longer than p95.",
                "seconds for answers, minutes to hours for standing streams.",
                "a flat line at 30, 60, 125, 300 or 350 s is an idle limit, or a limit on the whole request.",
            ),
            *(Query(ask.stream_lifetime(q), name) for q, name in QUANTILES),
            style="lines",
            unit="s",
            overrides=BY_QUANTILE,
            height=6,
        ),
        timeseries(
            "Time to the first event",
            About(
                "From the start of the request to the first event of its stream.",
                "well below a second for servers that prime their streams.",
                "seconds or more: the server or a proxy holds the response back until it has something to "
                "send.",
            ),
            *(Query(ask.first_event(q), name) for q, name in QUANTILES),
            style="lines",
            unit="s",
            overrides=BY_QUANTILE,
            height=6,
        ),
        timeseries(
            "Wait before a reconnect",
            About(
                "From the end of an attempt to the start of the next one.",
                "what the server's retry field asks for; 1 s is the default of official clients.",
                "shorter than a second: a client in a loop. Much longer: its user waits without need.",
            ),
            *(Query(ask.reconnect_delay(q), name) for q, name in QUANTILES),
            style="lines",
            unit="s",
            overrides=BY_QUANTILE,
            height=6,
        ),
    )


def _reconnects(settings: Settings) -> tuple[Panel, ...]:
    return (
        timeseries(
            "Reconnects per minute, by kind and cause",
            About(
                "Why streams of each kind are opened again.",
                "green: the server polls.",
                "see which kind it is: standing streams suffer from idle limits, response streams from "
                "servers that lose state.",
            ),
            Query(ask.reconnects("sse_stream_kind", "sse_reconnect_cause"), _kind("sse_reconnect_cause")),
            overrides=coloured("sse_reconnect_cause"),
        ),
        timeseries(
            "Cursors of reconnects per minute",
            About(
                "Whether the client sent the last event id that it had seen.",
                "sent; absent where the server gives no ids.",
                "dropped: the client had a cursor and did not send it, so whatever it missed is lost.",
            ),
            Query(ask.reconnects("sse_reconnect_cursor"), "{{sse_reconnect_cursor}}"),
            overrides=coloured("sse_reconnect_cursor"),
        ),
        timeseries(
            "Reconnects per minute, by respect for the retry field",
            About(
                "Whether the client waited as long as the last retry field asked.",
                "honored, or absent where the server does not ask.",
                "early: the client ignores retry and hammers the server.",
            ),
            Query(ask.retry_hints(), "{{sse_reconnect_retry_hint}}"),
            overrides=coloured("sse_reconnect_retry_hint"),
        ),
        timeseries(
            "Outcomes per minute, by kind",
            About(
                "What reconnects brought, judged by what was new.",
                "green.",
                "purple: accepted with 200 and nothing new, a loop if it goes on.",
            ),
            Query(ask.outcomes("sse_stream_kind", "sse_reconnect_outcome"), _kind("sse_reconnect_outcome")),
            overrides=coloured("sse_reconnect_outcome"),
        ),
        timeseries(
            "Empty replays per minute, by state of the request",
            About(
                "Resumes with a cursor that were accepted and ended without one event.",
                "none; a few without a request on standing streams.",
                "in_flight: a request waits for an answer that the server no longer has. terminal: the "
                "client resumes what is already answered.",
            ),
            Query(ask.empty_replays("sse_request_state"), "{{sse_request_state}}"),
            overrides=coloured("sse_request_state"),
        ),
        timeseries(
            "Stuck streak by process",
            About(
                "Longest run, now, of reconnects of one stream without progress.",
                "0 to 2.",
                "restarting the session of that process ends the loop; the runbook says how to end its "
                "cause.",
            ),
            Query(ask.stalled_streak("instance"), PROCESS_ONLY),
            style="lines",
            steep=1,
            limits=(limit(settings, "SSEStreamStuck", "streak"),),
            settings=settings,
        ),
    )


def _kind(label: str) -> str:
    return f"{{{{sse_stream_kind}}}} · {{{{{label}}}}}"


# ------------------------------------------------------------------ silence


def _silence() -> tuple[Panel, ...]:
    return (
        table(
            "Streams that were cut, by kind and silence",
            About(
                "How many streams server, network or read timeout ended within this time range after how "
                "much silence. A read timeout is the client's own limit.",
                "empty, or a few 'under 25 s'.",
                "let the server send a comment more often than the limit, or raise the limit where it is "
                "set.",
            ),
            [ask.silence_in_range("sse_stream_kind", "sse_stream_end")],
            [
                Column(reads="limit", title="Silent for", width=130),
                Column(reads="known_for", title="Known for it", width=340),
                Column(reads="sse_stream_kind", title="Kind", width=110),
                Column(
                    reads="sse_stream_end", title="Ended by", width=130, coloured=COLOURS["sse_stream_end"]
                ),
                Column(reads="Value", title="Streams cut", gauge=True),
            ],
            sort=("-Streams cut",),
            none="no stream was cut",
            width=14,
        ),
        timeseries(
            "Streams cut per minute, by silence",
            About(
                "The same over time.",
                "nothing, or grey-blue.",
                "amber that comes at a steady pace is an idle limit.",
            ),
            Query(ask.silence_per_minute(), "{{limit}}"),
            overrides=coloured("limit"),
            none="no stream was cut",
            width=10,
        ),
    )
