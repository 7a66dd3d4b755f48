"""The overview's sections on sessions, requests, prompts, answers, and what can never succeed."""

from . import queries as ask
from .colours import NOTHING_NEW, WAITING
from .panels import About, Panel, Query, coloured, limit, named, timeseries
from .thresholds import Settings, duration
from .tiles import FLEET, HERE, PROCESS


def sessions(settings: Settings) -> tuple[Panel, ...]:
    dead = limit(settings, "SSESessionDeadAfterReplay", "events")
    lost = limit(settings, "SSERequestsLost", "events")
    gone = limit(settings, "SSEStreamGaveUp", "events")
    age = limit(settings, "SSERequestNotRecovering", "age")
    window = {drawn.alert: settings.table[drawn.alert]["window"] for drawn in (dead, lost, gone)}
    return (
        timeseries(
            "Probes per minute, by outcome",
            About(
                "Requests whose answer shows whether a session lives: pings, and the first request after a "
                "replay.",
                "green.",
                "red: the session was gone although its stream had been resumed with success.",
            ),
            Query(ask.probes("sse_probe_outcome"), "{{sse_probe_outcome}}"),
            overrides=coloured("sse_probe_outcome"),
            height=6,
        ),
        timeseries(
            "Unconfirmed sessions",
            About(
                "Sessions whose stream was resumed and that no request has confirmed since. No alert.",
                "rises after a drop and falls with the next request of the agents.",
                "it stays up: nobody knows whether these sessions live. A ping from the client would "
                "settle it.",
            ),
            Query(ask.unconfirmed_sessions(*ask.BY_SERVER), FLEET),
            style="lines",
            links=HERE,
            none="no session was resumed",
            height=6,
        ),
        timeseries(
            "Sessions lost per minute, by phase",
            About(
                "When it turned out that the server had lost the session: right after a replay, on the "
                "resume itself, or in use.",
                "nothing; all at once when a server with sessions in memory restarts.",
                "after_replay is the treacherous one: the client believed that it had recovered.",
            ),
            Query(ask.sessions_lost("sse_session_phase"), "{{sse_session_phase}}"),
            overrides=coloured("sse_session_phase"),
            height=6,
        ),
        timeseries(
            f"Sessions dead after a replay, {duration(window[dead.alert])}",
            About(
                "Per server, over the window of the alert.",
                "0; a single one is a deploy.",
                "above the line: replay and sessions live in different stores, or replicas without affinity.",
            ),
            Query(ask.dead_after_replay(window[dead.alert], *ask.BY_SERVER), FLEET),
            style="lines",
            limits=(dead,),
            links=HERE,
            settings=settings,
            width=6,
        ),
        timeseries(
            f"Requests lost, {duration(window[lost.alert])}",
            About(
                "Client requests that will never be answered, per server.",
                "0; a deploy of a server without resumption loses what is under way.",
                "above the line, and more than a few per cent of requests: the alert fires. See the reasons.",
            ),
            Query(ask.requests_lost_in(settings, *ask.BY_SERVER), FLEET),
            style="lines",
            limits=(lost,),
            links=HERE,
            settings=settings,
            width=6,
        ),
        timeseries(
            f"Streams given up, {duration(window[gone.alert])}",
            About(
                "Notification streams that a process gave up while the session goes on.",
                "0.",
                "each one is a session that hears nothing any more, and no log says so: restart it.",
            ),
            Query(ask.streams_lost_in(window[gone.alert], *ask.BY_PROCESS), PROCESS),
            style="lines",
            limits=(gone,),
            links=HERE,
            settings=settings,
            width=6,
        ),
        timeseries(
            "Oldest request that was reconnected",
            About(
                "Age of the oldest unanswered request whose stream was reconnected, per server.",
                "short saw teeth, no higher than your longest tool.",
                "a straight line upwards is one request that nobody will answer.",
            ),
            Query(ask.oldest_request(*ask.BY_SERVER), FLEET),
            style="lines",
            unit="s",
            limits=(age,),
            links=HERE,
            none="no such request is waiting",
            settings=settings,
            width=6,
        ),
    )


def dialogue(settings: Settings) -> tuple[Panel, ...]:
    rejected, few = (settings.table["SSEAnswersRejected"][key] for key in ("window", "events"))
    again = limit(settings, "SSERepromptLoop", "streak")
    asked = limit(settings, "SSERepromptLoop", "asked", "warning")
    return (
        timeseries(
            "Prompts shown again per minute",
            About(
                "By what brought the prompt back: a replay, a resend, or a server that asks for input again.",
                "nothing; grey-blue where servers ask step by step, as they may since 2026-07-28.",
                "purple: people or models answer a question that nobody waits for.",
            ),
            Query(ask.reprompts("sse_reprompt_trigger"), "{{sse_reprompt_trigger}}"),
            overrides=coloured("sse_reprompt_trigger"),
            width=6,
        ),
        timeseries(
            "Reprompt streak: the same prompt in a row",
            About(
                f"The longest run now. By replay or resend it pages at {again.value:g}; where the server "
                f"asks for input again it warns at {asked.value:g}.",
                "0 or 1.",
                "see whether answers are refused or have no effect, on the right.",
            ),
            Query(ask.reprompt_streak_seen(ask.AGAIN), "replay, resend"),
            Query(ask.reprompt_streak_seen(ask.ASKED), "input_required, url_required"),
            style="lines",
            steep=1,
            limits=(again, asked),
            overrides=named({"replay, resend": NOTHING_NEW[0], "input_required, url_required": WAITING[0]}),
            none="no prompt was shown again",
            settings=settings,
            width=6,
        ),
        timeseries(
            "Answers per minute, by outcome",
            About(
                "What became of the answers to prompts. 'no effect' was acknowledged, and the prompt came "
                "again.",
                "green. The official servers acknowledge any answer, known or not.",
                "red: the server no longer knows the question. purple: it takes answers and forgets them.",
            ),
            Query(ask.answers("sse_answer_outcome"), "{{sse_answer_outcome}}"),
            Query(ask.ineffective_answers(), "no effect"),
            overrides=(*coloured("sse_answer_outcome"), *named({"no effect": NOTHING_NEW[0]})),
            width=6,
        ),
        timeseries(
            f"Answers refused or without effect, {duration(rejected)}",
            About(
                "As a share of all answers, per server.",
                "0 %; a late answer to a cancelled prompt now and then.",
                f"above the line, with {few:g} such answers or more, the alert fires.",
            ),
            Query(ask.rejected_share(settings, *ask.BY_SERVER), FLEET),
            style="lines",
            unit="percentunit",
            most=1,
            limits=(limit(settings, "SSEAnswersRejected", "ratio"),),
            links=HERE,
            settings=settings,
            width=6,
        ),
    )


def failures(settings: Settings) -> tuple[Panel, ...]:
    retry = settings.table["SSERetryAfterTerminal"]
    acts = settings.table["SSEGuardActing"]["window"]
    return (
        timeseries(
            "Failed exchanges per minute",
            About(
                "Whether another try can succeed.",
                "a little amber; a few red ones where a server does not offer the optional stream.",
                "red that goes on: clients repeat what cannot succeed. purple: nobody can tell from the "
                "status.",
            ),
            Query(ask.classifications("sse_disposition"), "{{sse_disposition}}"),
            overrides=coloured("sse_disposition"),
            width=6,
        ),
        timeseries(
            "Failed exchanges per minute, by reason",
            About(
                "The same by reason. session_lost and unknown_request need a new session, cursor_evicted a "
                "new request, unauthorized a new token.",
                "network_error, timeout and throttled in small numbers; unsupported or method_missing once "
                "a connection.",
                "take the reason to the runbook of the alert, or to the server's own dashboard.",
            ),
            Query(
                ask.classifications("sse_disposition", "sse_failure_reason"),
                "{{sse_failure_reason}} · {{sse_disposition}}",
            ),
            overrides=coloured("sse_disposition", shades=True),
            width=6,
        ),
        timeseries(
            "Retries of what had failed for good",
            About(
                f"Per process and minute, over {duration(retry['long'])}.",
                "0; one last attempt now and then.",
                "above the line a client is in a loop that cannot end. Its process is in the legend.",
            ),
            Query(ask.retries_after_terminal(retry["long"], *ask.BY_PROCESS), PROCESS),
            style="lines",
            steep=0.1,
            limits=(limit(settings, "SSERetryAfterTerminal", "rate"),),
            links=HERE,
            settings=settings,
            width=6,
        ),
        timeseries(
            f"Acts of the guard, {duration(acts)}",
            About(
                "What the guard stopped on the client's side, or in a dry run would have stopped, in the "
                "colour of the fault behind it.",
                "nothing: either all is well or the guard is off.",
                "users are spared the loop; its cause is still there, see the failures beside.",
            ),
            Query(ask.guard_actions_in(acts), "{{sse_guard_action}}"),
            style="area",
            limits=(limit(settings, "SSEGuardActing", "events"),),
            overrides=coloured("sse_guard_action"),
            none="none, or the guard is off",
            settings=settings,
            width=6,
        ),
    )
