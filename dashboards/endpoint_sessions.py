"""The endpoint's sections on sessions, requests, prompts and failures."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from . import queries as ask
from .colours import COLOURS, HEALTHY, NOTHING_NEW, TERMINAL
from .panels import About, Column, Panel, Query, coloured, limit, named, table, timeseries
from .thresholds import Settings
from .tiles import BY_QUANTILE, PROCESS_ONLY, QUANTILES

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "network_error": "may be tried again",
        "timeout": "may be tried again; whose limit is it?",
        "method_missing": "an older server; harmless once a connection",
        "conflict": "an old stream is still open there: wait, or DELETE the session",
        "unauthorized": "get a fresh token",
        "session_lost": "start a new session, nothing else helps",
        "cursor_evicted": "the history is gone: ask anew, the session may live",
        "throttled": "wait as told",
        "server_error": "server or proxy is ill: try again with a growing wait",
        "unknown_request": "the server forgot its question: stop answering",
        "unsupported": "not offered here: stop asking",
        "bad_request": "client and server disagree: see the server's log",
        "not_sse": "a proxy or a login page answers in its place",
        "empty_replay": "cursor accepted, history gone: ask anew",
        "nothing_new": "only repeats: stop resuming",
    }
)
"""What to do, by reason."""


def sessions() -> tuple[Panel, ...]:
    return (
        timeseries(
            "Probes per minute, by kind and outcome",
            About(
                "ping is the client's own, implicit is whatever it sent first after a replay.",
                "live.",
                "dead: start a new session. inconclusive: the answer did not say whether the session lives.",
            ),
            Query(
                ask.probes("sse_probe_kind", "sse_probe_outcome"),
                _after("sse_probe_kind", "sse_probe_outcome"),
            ),
            overrides=coloured("sse_probe_outcome"),
            width=6,
        ),
        timeseries(
            "Time until a replay was confirmed",
            About(
                "From a replay to the request that showed whether the session lives.",
                "as often as your agents send requests.",
                "minutes: for so long nobody knew. Let clients ping after they resume.",
            ),
            *(Query(ask.confirmation_time(q), name) for q, name in QUANTILES),
            style="lines",
            unit="s",
            overrides=BY_QUANTILE,
            width=6,
        ),
        timeseries(
            "Sessions lost per minute, by signal and phase",
            About(
                "What told the loss. The standard signal is http_404.",
                "nothing.",
                "any other signal: clients cannot recognise it and keep the dead session; have the server "
                "fixed.",
            ),
            Query(
                ask.sessions_lost("sse_session_signal", "sse_session_phase"),
                _after("sse_session_signal", "sse_session_phase"),
            ),
            overrides=coloured("sse_session_phase"),
            width=6,
        ),
        timeseries(
            "On lost sessions, per minute",
            About(
                "What goes on after the loss: requests that can only fail, and messages that had been "
                "replayed from a session that was dead. 'revived' is a lost session that answers again.",
                "nothing.",
                "requests: the client does not start a new session. revived: replicas without affinity.",
            ),
            Query(ask.dead_session_traffic(), "{{what}}"),
            overrides=named(
                {
                    "requests on a lost session": TERMINAL[0],
                    "events of a dead session": NOTHING_NEW[0],
                    "sessions revived": HEALTHY[0],
                }
            ),
            width=6,
        ),
    )


def requests(settings: Settings) -> tuple[Panel, ...]:
    return (
        timeseries(
            "Requests, p95 by method",
            About(
                "From the POST to its answer, over all streams that it took (mcp.client.operation.duration).",
                "as your tools take.",
                "jumps to the wait before a reconnect: answers come by resuming only.",
            ),
            Query(ask.operation_time(0.95, "mcp_method_name"), "{{mcp_method_name}}"),
            style="lines",
            unit="s",
            none="no request ended, or semconv_metrics is off",
            width=6,
        ),
        timeseries(
            "Requests lost per minute, by reason",
            About(
                "not_resumable: ended without a cursor. refused: the resume was. gave_up: the client did "
                "not come back.",
                "nothing.",
                "not_resumable: let the server prime its streams with an id. refused: see the failures "
                "below.",
            ),
            Query(
                ask.requests_lost("mcp_method_name", "sse_loss_reason"),
                _after("mcp_method_name", "sse_loss_reason"),
            ),
            overrides=coloured("sse_loss_reason"),
            width=6,
        ),
        timeseries(
            "Oldest request that was reconnected",
            About(
                "By process.",
                "no longer than your longest tool.",
                "a straight line upwards is one request that nobody will answer: cancel it.",
            ),
            Query(ask.oldest_request("instance"), PROCESS_ONLY),
            style="lines",
            unit="s",
            limits=(limit(settings, "SSERequestNotRecovering", "age"),),
            none="no such request is waiting",
            settings=settings,
            width=6,
        ),
        timeseries(
            "Responses per minute, by delivery",
            About(
                "Whether a response was new. An orphan answers no request of its session.",
                "first.",
                "duplicates: the server replays what was delivered, and clients may act on it twice.",
            ),
            Query(ask.responses("sse_response_delivery"), "{{sse_response_delivery}}"),
            overrides=coloured("sse_response_delivery"),
            width=6,
        ),
    )


def dialogue() -> tuple[Panel, ...]:
    return (
        timeseries(
            "Requests of the server per minute",
            About(
                "What the server asks its clients, by method and delivery.",
                "first.",
                "redelivered: a prompt came again. See on the right what is known of it.",
            ),
            Query(
                ask.server_requests("mcp_method_name", "sse_prompt_delivery"),
                _after("mcp_method_name", "sse_prompt_delivery"),
            ),
            overrides=coloured("sse_prompt_delivery"),
            width=6,
        ),
        timeseries(
            "Prompts shown again per minute",
            About(
                "What brought the prompt back, and whether anyone still waits for it.",
                "nothing, or asserted: the server says that it still waits.",
                "red: the answer was refused or the prompt cancelled before. purple: it was answered before.",
            ),
            Query(
                ask.reprompts("sse_reprompt_trigger", "sse_prompt_liveness"),
                _after("sse_reprompt_trigger", "sse_prompt_liveness"),
            ),
            overrides=coloured("sse_prompt_liveness"),
            width=6,
        ),
        timeseries(
            "Answers per minute, by timing and outcome",
            About(
                "late: the request that the prompt belonged to had already had its answer.",
                "in_time, acknowledged.",
                "unknown_request: the server forgot its question. session_lost: start a new session.",
            ),
            Query(
                ask.answers("sse_answer_timing", "sse_answer_outcome"),
                _after("sse_answer_timing", "sse_answer_outcome"),
            ),
            Query(ask.ineffective_answers(), "no effect"),
            overrides=(*coloured("sse_answer_outcome"), *named({"no effect": NOTHING_NEW[0]})),
            width=6,
        ),
        timeseries(
            "Rounds of input_required, p95",
            About(
                "How often the server asked for input before it answered (2026-07-28), p95 by method.",
                "1 or 2.",
                "clients stop at 8 or 10: such a request never succeeds.",
            ),
            Query(ask.input_rounds(0.95, "mcp_method_name"), "{{mcp_method_name}}"),
            style="lines",
            none="no request was asked for input",
            width=6,
        ),
    )


def failures() -> tuple[Panel, ...]:
    return (
        table(
            "Failed exchanges in this time range",
            About(
                "Where an exchange failed, whether another try can succeed, why, and what to do.",
                "a few retryable ones, and method_missing once a connection to an older server.",
                "do what the row says; red rows that keep counting are clients in a loop.",
            ),
            [ask.classifications_in_range("sse_failure_point", "sse_disposition", "sse_failure_reason")],
            [
                Column(reads="Value", title="Failed", width=85, decimals=0),
                Column(reads="sse_failure_point", title="At", width=90),
                Column(
                    reads="sse_disposition",
                    title="Disposition",
                    width=110,
                    coloured=COLOURS["sse_disposition"],
                ),
                Column(
                    reads="sse_failure_reason",
                    title="Reason: what to do",
                    told={reason: f"{reason}: {advice}" for reason, advice in ADVICE.items()},
                ),
            ],
            sort=("-Failed",),
            none="no exchange failed",
            width=12,
            height=8,
        ),
        timeseries(
            "Retries per minute after a final refusal",
            About(
                "resume: of a stream that cannot be resumed. answer: to a question that the server forgot. "
                "resume_after_rejection: of the stream whose prompt was refused.",
                "nothing.",
                "the client does not understand the refusal; the guard can stop it.",
            ),
            Query(ask.retries_by_point(), "{{sse_failure_point}}"),
            overrides=coloured("sse_failure_point"),
            width=6,
            height=8,
        ),
        timeseries(
            "Acts of the guard per minute",
            About(
                "What the guard stopped on the client's side, or in a dry run would have stopped, in the "
                "colour of the fault behind it.",
                "nothing: either all is well or the guard is off.",
                "users are spared the loop; its cause is still there, see the failures beside.",
            ),
            Query(ask.guard_actions(), "{{sse_guard_action}}"),
            overrides=coloured("sse_guard_action"),
            none="none, or the guard is off",
            width=6,
            height=8,
        ),
    )


def _after(first: str, last: str) -> str:
    """A legend whose end says its colour."""
    return f"{{{{{first}}}}} · {{{{{last}}}}}"
