"""What servers of the field answer when they refuse: one table of bodies, one of refusals."""

import json
from dataclasses import dataclass
from typing import Final, Literal

Says = Literal["nothing", "session gone", "cursor gone", "already active", "method missing"]


@dataclass(frozen=True, slots=True)
class Body:
    """A body, and what the contract says that it says."""

    media: str
    text: str
    says: Says = "nothing"
    code: int | None = None
    """It is a JSON-RPC error of this code; `text` is its message."""
    id: int | str | None = None

    def wire(self) -> bytes:
        if self.code is None:
            return self.text.encode()
        error = {"code": self.code, "message": self.text}
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error}).encode()


HTML: Final = "<html><body>Bad gateway</body></html>"
JSON: Final = "application/json"
TEXT: Final = "text/plain"

BODIES: Final[dict[str, Body]] = {
    "none": Body("", ""),
    "html": Body("text/html", HTML),
    "text": Body(TEXT, "try later"),
    "vendor": Body(JSON, '{"detail":"no"}'),
    "rpc": Body(JSON, "Internal error", code=-32603),
    "rpc-ours": Body(JSON, "Bad Request", code=-32600, id="server-error"),
    "session-rpc": Body(JSON, "Session not found", "session gone", code=-32001),
    "session-python": Body(JSON, "Session not found", "session gone", code=-32600, id="server-error"),
    "session-none": Body(JSON, "Bad Request: No valid session ID provided", "session gone", code=-32000),
    "session-text": Body(TEXT, "Session has been terminated", "session gone"),
    "session-elsewhere": Body(JSON, "Session abc unknown on this instance", "session gone", code=-32001),
    "session-missing": Body(JSON, "Bad Request: Missing session ID", code=-32600),
    "uninitialized": Body(JSON, "Bad Request: Server not initialized", "session gone", code=-32000),
    "event-rpc": Body(JSON, "Event not found", "cursor gone", code=-32001),
    "event-text": Body(TEXT, "invalid_last_event_id", "cursor gone"),
    "stream-expired": Body(JSON, '{"error":"stream_expired"}', "cursor gone"),
    "active-text": Body(TEXT, "session already exists", "already active"),
    "active-rpc": Body(
        JSON, "Conflict: Only one SSE stream is allowed per session", "already active", code=-32000
    ),
    "method": Body(JSON, "Method not found", "method missing", code=-32601),
}

PLAIN: Final = ("none", "html", "text", "vendor", "rpc", "rpc-ours")

REFUSALS: Final[tuple[tuple[int, tuple[str, ...]], ...]] = (
    (400, (*PLAIN, "session-none", "session-missing", "uninitialized", "active-text", "event-text")),
    (401, ("none", "html", "rpc")),
    (403, ("none", "text")),
    (404, (*PLAIN, "session-rpc", "session-python", "session-text", "event-rpc", "method")),
    (405, ("none", "text")),
    (406, ("rpc",)),
    (408, ("none",)),
    (409, ("none", "active-rpc", "event-rpc", "text")),
    (410, ("none", "stream-expired", "session-text")),
    (415, ("text",)),
    (418, ("text",)),
    (425, ("none",)),
    (429, ("none", "rpc")),
    (500, PLAIN),
    (501, ("none",)),
    (502, ("html",)),
    (503, ("html", "session-elsewhere", "none")),
    (504, ("none",)),
)
"""Statuses, and the bodies that they come with."""

GRAVES: Final[tuple[tuple[int, str], ...]] = (
    (404, "session-rpc"), (404, "session-python"), (404, "session-text"), (404, "none"), (404, "html"),
    (410, "none"), (400, "session-none"), (400, "uninitialized"), (503, "session-elsewhere"), (200, "session-rpc"),
)  # fmt: skip
"""How a lost session shows; 200 is a result that is an error of nobody's request."""
