"""What goes wrong for good, as exceptions: each carries the verdict, and its message ends with what to do next.

The same sentences reach a client that catches nothing of ours: the transports put them into the JSON-RPC error by
which they end an operation.
"""

from typing import Final, Literal

from .._events import JsonId
from .._failure import Ruling
from .._names import Disposition, FailureReason, ProbeOutcome, PromptLiveness, ReconnectCause

Advice = Literal[
    "go_on", "nothing", "try_later", "authorize", "retry_from_scratch", "new_session", "ask_nobody_again"
]
"""What to do next."""

Reason = FailureReason | PromptLiveness | ProbeOutcome | ReconnectCause
"""Why: a word of the ledger's tables."""

NEXT: Final[dict[Advice, str]] = {
    "go_on": "Go on reading.",
    "nothing": "Do nothing: the answer has been given; open a new request for anything else, without a cursor.",
    "try_later": "Try again later: the session and the cursor may still be good.",
    "authorize": "Get a new token, then try again.",
    "retry_from_scratch": "Send the request again from scratch, without a cursor, and with an idempotency key "
    "if it has side effects.",
    "new_session": "Discard the cursor and the session id, initialize a new session, and send the request again there.",
    "ask_nobody_again": "Ask nobody again; if the operation is still wanted, issue the whole call anew, "
    "best under a new session.",
}
"""The sentence of each advice."""

_BY_REASON: Final[dict[FailureReason, Advice]] = {
    "network_error": "try_later",
    "timeout": "try_later",
    "conflict": "try_later",
    "throttled": "try_later",
    "server_error": "try_later",
    "unauthorized": "authorize",
    "session_lost": "new_session",
    "unknown_request": "ask_nobody_again",
    "empty_replay": "nothing",
    "nothing_new": "nothing",
}


def advice_of(ruling: Ruling) -> Advice:
    """What to do after a classification of the failure table."""
    if ruling.disposition == "ambiguous":
        return "retry_from_scratch"
    return _BY_REASON.get(ruling.reason, "retry_from_scratch")


ERROR_CODE: Final = -32000
"""JSON-RPC 2.0, section 5.1: -32000 to -32099 are for implementation-defined server errors."""


class GuardError(RuntimeError):
    """The root. Catch it to catch everything that the guard raises; only its members are ever raised.

    Args:
        what: what happened, one sentence.
        reason: the verdict's word.
        disposition: what another try is worth.
        advice: what to do next; by default that of the class.
    """

    advice: Advice = "retry_from_scratch"

    def __init__(
        self,
        what: str,
        *,
        reason: Reason,
        disposition: Disposition = "terminal",
        advice: Advice | None = None,
    ) -> None:
        if type(self) is GuardError:
            raise TypeError("raise a member of the family, not its root")
        if advice is not None:
            self.advice = advice
        self.reason: Reason = reason
        self.disposition: Disposition = disposition
        super().__init__(f"{what} {NEXT[self.advice]}")

    def as_error(self) -> dict[str, object]:
        """The error object of a JSON-RPC response (JSON-RPC 2.0, section 5.1)."""
        data = {"disposition": self.disposition, "reason": self.reason, "next": self.advice, "by": BY}
        return {"code": ERROR_CODE, "message": str(self), "data": data}

    def as_response(self, request: JsonId) -> dict[str, object]:
        """The JSON-RPC response that ends a request with this error."""
        return {"jsonrpc": "2.0", "id": request, "error": self.as_error()}


BY: Final = "opentelemetry-instrumentation-httpx-sse guard"
"""Who speaks: an error that no server sent says so."""


class InvalidResumptionError(GuardError):
    """A stream cannot be resumed: its answer has been seen, no cursor is known, or the server refuses for good."""


class StalledResumptionError(GuardError):
    """A stream was resumed again and again, and nothing new came."""


class SessionResumptionError(GuardError):
    """A replay succeeded, or not, but its session is gone, or could not be confirmed."""

    advice = "new_session"

    def __init__(
        self,
        what: str,
        *,
        reason: Reason,
        disposition: Disposition = "terminal",
        advice: Advice | None = None,
        quarantined: tuple[object, ...] = (),
    ) -> None:
        super().__init__(what, reason=reason, disposition=disposition, advice=advice)
        self.quarantined = quarantined
        """Events of the replay that must not be applied, kept for inspection."""


class StaleElicitationError(GuardError):
    """A server request that was replayed cannot be answered any more."""

    advice = "ask_nobody_again"


class UnknownPendingRequestError(GuardError):
    """The server refused an answer, since it knows of no such request."""

    advice = "ask_nobody_again"
