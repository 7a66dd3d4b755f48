"""Colours mean the same on every panel: this table says what, value by value.

Green is healthy. Grey-blue waits, is unknown or was the client's own choice. Amber may be tried again. Purple
was accepted and brought nothing new, which no status code shows. Red is over for good. Blue, in shades, says
nothing but which server or process a line belongs to.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HEALTHY: Final = ("green", "semi-dark-green", "light-green", "dark-green")
WAITING: Final = ("#8FA3BF", "#66788F", "#B9C7DB", "#4C5B70")
"""Waiting, unknown, or the client's own choice."""
NOTHING_NEW: Final = ("purple", "light-purple", "dark-purple", "semi-dark-purple")
"""Accepted, and yet no progress: what no status code shows."""
RETRYABLE: Final = ("orange", "light-orange", "dark-orange", "yellow", "semi-dark-orange")
IDLE: Final = ("#FFEE52", "#FADE2A", "#F2CC0C", "#FFB357", "#FF9830", "#FF780A", "#E0510B", "#B0400A")
"""Amber from light to dark: the longer the idle limit, the darker."""
IDENTITY: Final = "blue"
TERMINAL: Final = ("red", "light-red", "dark-red", "semi-dark-red")

_MEANING: Final[Mapping[str, Mapping[tuple[str, ...], str]]] = {
    "fault": {
        NOTHING_NEW: "nothing new, asked again",
        RETRYABLE: "cut or failed",
        TERMINAL: "session lost, request lost, stream lost, answer rejected, refused, retry after terminal",
    },
    "limit": {
        IDLE: "30 s, 60 s, 100 s, 125 s, 300 s, 305 s, 350 s, 360 s",
        WAITING: "under 25 s, no known limit",
    },
    "sse_stream_state": {HEALTHY: "open", WAITING: "waiting"},
    "sse_stream_end": {
        HEALTHY: "complete",
        WAITING: "server_closed, client_closed, abandoned",
        RETRYABLE: "network_error, read_timeout",
    },
    "sse_event_type": {
        HEALTHY: "notification, response, request",
        WAITING: "comment, priming, other",
    },
    "sse_reconnect_cause": {
        HEALTHY: "server_poll",
        WAITING: "client_close, unknown",
        RETRYABLE: "server_close, idle_timeout, network_error, connect_error, client_timeout",
        TERMINAL: "refused, after_terminal",
    },
    "sse_reconnect_cursor": {HEALTHY: "sent", WAITING: "absent, foreign", TERMINAL: "dropped"},
    "sse_reconnect_retry_hint": {HEALTHY: "honored", WAITING: "absent", RETRYABLE: "early"},
    "sse_reconnect_outcome": {
        HEALTHY: "progressed, primed, quiet",
        WAITING: "cancelled",
        NOTHING_NEW: "empty, repeated",
        RETRYABLE: "interrupted, failed",
        TERMINAL: "refused, not_sse",
    },
    "sse_disposition": {
        HEALTHY: "continue",
        NOTHING_NEW: "ambiguous",
        RETRYABLE: "retryable",
        TERMINAL: "terminal",
    },
    "sse_request_state": {NOTHING_NEW: "in_flight", TERMINAL: "terminal", WAITING: "none"},
    "sse_probe_outcome": {HEALTHY: "live", WAITING: "inconclusive", TERMINAL: "dead"},
    "sse_session_phase": {TERMINAL: "after_replay, on_resume, in_use"},
    "sse_reprompt_trigger": {NOTHING_NEW: "replay, resend", WAITING: "input_required, url_required"},
    "sse_prompt_delivery": {HEALTHY: "first", NOTHING_NEW: "redelivered"},
    "sse_prompt_liveness": {
        HEALTHY: "live, asserted",
        WAITING: "unverified",
        NOTHING_NEW: "answered, stale",
        TERMINAL: "rejected, cancelled",
    },
    "sse_answer_outcome": {
        HEALTHY: "acknowledged",
        RETRYABLE: "retryable_error, unauthorized",
        TERMINAL: "unknown_request, session_lost, rejected",
    },
    "sse_response_delivery": {
        HEALTHY: "first",
        WAITING: "orphan",
        NOTHING_NEW: "duplicate_same_stream, duplicate_other_stream",
    },
    "sse_loss_reason": {TERMINAL: "gave_up, refused, not_resumable"},
    "sse_guard_action": {
        WAITING: "stream_slowed, response_dropped, probe_inconclusive",
        NOTHING_NEW: "breaker_opened, prompt_dropped",
        TERMINAL: "resume_refused, operation_failed, session_quarantined",
    },
    "sse_failure_point": {TERMINAL: "resume, answer, resume_after_rejection"},
}

COLOURS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        label: {
            value: shades[place % len(shades)]
            for shades, values in meaning.items()
            for place, value in enumerate(values.split(", "))
        }
        for label, meaning in _MEANING.items()
    }
)
"""The colour of each value that a legend shows, by label."""
