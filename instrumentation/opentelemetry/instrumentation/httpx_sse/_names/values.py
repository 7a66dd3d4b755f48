"""Closed sets of values, as `Literal` types: a value that is not listed is a type error where it is produced."""

from typing import Final, Literal

StreamKind = Literal["response", "standalone", "listen", "legacy", "other"]
StreamState = Literal["open", "waiting"]
StreamEnd = Literal[
    "complete", "server_closed", "network_error", "read_timeout", "client_closed", "abandoned"
]
EventType = Literal["request", "notification", "response", "priming", "comment", "other"]
ReconnectCause = Literal[
    "after_terminal",
    "refused",
    "connect_error",
    "client_timeout",
    "idle_timeout",
    "network_error",
    "server_poll",
    "server_close",
    "client_close",
    "unknown",
]
ReconnectCursor = Literal["sent", "absent", "dropped", "foreign"]
ReconnectOutcome = Literal[
    "progressed",
    "primed",
    "quiet",
    "empty",
    "repeated",
    "interrupted",
    "refused",
    "not_sse",
    "failed",
    "cancelled",
]
RetryHint = Literal["honored", "early", "absent"]
RequestState = Literal["in_flight", "terminal", "none"]
Disposition = Literal["continue", "retryable", "ambiguous", "terminal"]
FailurePoint = Literal["open", "resume", "probe", "answer", "request"]
FailureReason = Literal[
    "network_error",
    "timeout",
    "method_missing",
    "conflict",
    "unauthorized",
    "session_lost",
    "cursor_evicted",
    "throttled",
    "server_error",
    "unknown_request",
    "unsupported",
    "bad_request",
    "not_sse",
    "empty_replay",
    "nothing_new",
]
RetryPoint = Literal["resume", "answer", "resume_after_rejection"]
LossReason = Literal["not_resumable", "refused", "gave_up"]
ProbeKind = Literal["ping", "implicit", "active"]
ProbeOutcome = Literal["live", "dead", "inconclusive"]
ProbeContext = Literal["after_replay", "routine"]
SessionStanding = Literal["none", "confirmed", "unconfirmed", "lost"]
"""Of a session with an `Mcp-Session-Id`, at one moment; `none` without one."""
SessionPhase = Literal["after_replay", "on_resume", "in_use"]
SessionSignal = Literal["http_404", "http_410", "http_400", "http_other", "error_body"]
PromptDelivery = Literal["first", "redelivered"]
PromptLiveness = Literal["live", "cancelled", "rejected", "answered", "asserted", "stale", "unverified"]
RepromptTrigger = Literal["replay", "resend", "input_required", "url_required"]
AnswerOutcome = Literal[
    "acknowledged",
    "unknown_request",
    "session_lost",
    "unauthorized",
    "rejected",
    "retryable_error",
]
AnswerTiming = Literal["in_time", "late"]
ResponseDelivery = Literal["first", "duplicate_same_stream", "duplicate_other_stream", "orphan"]
GuardAction = Literal[
    "resume_refused",
    "breaker_opened",
    "stream_slowed",
    "prompt_dropped",
    "operation_failed",
    "response_dropped",
    "session_quarantined",
    "probe_inconclusive",
]
"""What the guard does, by the names by which each can be switched off."""
Site = Literal[
    "begin", "head", "receive", "exhausted", "failed", "closed", "collect", "telemetry", "hook", "guard"
]
EvictedTable = Literal[
    "sessions", "places", "streams", "requests", "prompts", "operations", "exchanges", "event_ids", "spans"
]

OTHER: Final = "_OTHER"
"""The value of an attribute whose own value is not in its closed set."""

NONE: Final = "_NONE"
"""The method of what has none, such as an answer to a request that was never seen."""

CLIENT_METHODS: Final = (
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
)
"""Requests from client to server that a revision of MCP defines."""

PROMPT_METHODS: Final = ("elicitation/create", "sampling/createMessage")
"""Requests from server to client that reach a person or a model."""

SERVER_METHODS: Final = (
    *PROMPT_METHODS,
    "roots/list",
    "tasks/list",
    "tasks/get",
    "tasks/result",
    "tasks/cancel",
)
"""Requests from server to client that a revision of MCP defines; `ping`, which is idempotent, is not counted."""
