"""The overview's sections on streams, reconnects, what they brought, and silence before a drop."""

from . import queries as ask
from .panels import About, Column, Panel, Query, coloured, dashed, limit, table, timeseries
from .thresholds import Settings, duration
from .tiles import FLEET, HERE, PROCESS, row_link


def streams() -> tuple[Panel, ...]:
    return (
        timeseries(
            "Streams by state",
            About(
                "Logical streams: open now, or waiting for a reconnect.",
                "mostly green. Servers that poll (SEP-1699) show some grey-blue.",
                "grey-blue that grows: clients are cut off and cannot come back; see the causes below.",
            ),
            Query(ask.streams("sse_stream_state"), "{{sse_stream_state}}"),
            style="area",
            overrides=coloured("sse_stream_state"),
        ),
        timeseries(
            "Streams ended per minute, by end",
            About(
                "How streams end. 'complete' had its answer, whoever closed it.",
                "green; grey-blue where a server closes standing streams on purpose.",
                "amber: the network or the client's own read timeout cut streams; see silence before a drop.",
            ),
            Query(ask.stream_ends("sse_stream_end"), "{{sse_stream_end}}"),
            overrides=coloured("sse_stream_end"),
        ),
        timeseries(
            "Events received per minute, by type",
            About(
                "What the streams carry. Comments and priming events keep a stream alive and say nothing.",
                "some green whenever agents work.",
                "no green while streams are open: the server's sending side is dead, or nobody works.",
            ),
            Query(ask.events("sse_event_type"), "{{sse_event_type}}"),
            overrides=coloured("sse_event_type"),
        ),
    )


def reconnects(settings: Settings) -> tuple[Panel, ...]:
    storm = settings.table["SSEReconnectStorm"]
    by_server = ask.BY_SERVER
    return (
        timeseries(
            "Reconnects per minute, by cause",
            About(
                "Why streams are opened again, counted when the attempt starts.",
                "green: the server closed the stream as a poll, as SEP-1699 allows. A little amber.",
                "idle_timeout: something cuts quiet streams. refused and after_terminal: the client "
                "repeats what cannot succeed. connect_error: the server is away.",
            ),
            Query(ask.reconnects("sse_reconnect_cause"), "{{sse_reconnect_cause}}"),
            overrides=coloured("sse_reconnect_cause"),
            width=12,
        ),
        timeseries(
            "Unplanned reconnects per stream and minute",
            About(
                "All causes but server_poll, per logical stream, over both windows of the alert.",
                "below 1; up to 2 where a load balancer cuts quiet streams every 30 s.",
                "the alert fires when both windows of a server are above the line. Open the server.",
            ),
            *(
                Query(
                    ask.unplanned_per_stream(settings, window, *by_server),
                    f"{FLEET}, {duration(storm[window])}",
                )
                for window in ("long", "short")
            ),
            style="lines",
            steep=0.1,
            limits=(limit(settings, "SSEReconnectStorm", "rate"),),
            overrides=(dashed(f"{duration(storm['short'])}"),),
            links=HERE,
            settings=settings,
            width=12,
        ),
    )


def outcomes(settings: Settings) -> tuple[Panel, ...]:
    replay = settings.table["SSEEmptyReplayLoop"]
    return (
        timeseries(
            "Outcomes of reconnects per minute",
            About(
                "What reconnects brought, judged by what was new and never by the status.",
                "green: a new message, a legal empty poll, or a quiet stream that held.",
                "purple: accepted with 200 and nothing new. Every peer counts these as success and loops.",
            ),
            Query(ask.outcomes("sse_reconnect_outcome"), "{{sse_reconnect_outcome}}"),
            overrides=coloured("sse_reconnect_outcome"),
        ),
        timeseries(
            f"Empty replays as a share of outcomes, {duration(replay['long'])}",
            About(
                "Resumes with a cursor that were accepted and ended without one event, of all outcomes.",
                "0 %; one spike at a deploy that loses the event store.",
                "near 100 %: the server accepts cursors of streams that it has forgotten. See the runbook.",
            ),
            Query(ask.empty_share(settings, *ask.BY_SERVER), FLEET),
            style="lines",
            unit="percentunit",
            most=1,
            limits=(limit(settings, "SSEEmptyReplayLoop", "ratio"),),
            links=HERE,
            settings=settings,
        ),
        timeseries(
            "Stuck streak: reconnects in a row without progress",
            About(
                "The longest run of one stream now, by process and server. It does not dilute in a large "
                "fleet.",
                "0 to 2.",
                "a line that climbs is one stream in a loop, even if all others are well. Open the server.",
            ),
            Query(ask.stalled_streak(*ask.BY_PROCESS), PROCESS),
            style="lines",
            steep=1,
            limits=(limit(settings, "SSEStreamStuck", "streak"),),
            links=HERE,
            settings=settings,
        ),
    )


def silence() -> tuple[Panel, ...]:
    return (
        table(
            "Streams that were cut, by how long they had been silent",
            About(
                "How many streams server, network or read timeout ended within this time range after how "
                "much silence, and what is known for that limit. Silence is the time without a byte, "
                "comments included.",
                "empty, or a few 'under 25 s'.",
                "a limit with many streams names the device that cuts: let the server send a comment more "
                "often than that, or raise the limit.",
            ),
            [ask.silence_in_range(*ask.ENDPOINT)],
            [
                Column(reads="server_address", title="Server", link=row_link()),
                Column(reads="server_port", title="Port", width=60),
                Column(reads="limit", title="Silent for", width=120),
                Column(reads="known_for", title="Known for it", width=320),
                Column(reads="Value", title="Streams cut", width=180, gauge=True),
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
                "amber that comes at a steady pace is an idle limit; amber all at once is a deploy or a "
                "network.",
            ),
            Query(ask.silence_per_minute(), "{{limit}}"),
            overrides=coloured("limit"),
            none="no stream was cut",
            width=10,
        ),
    )
