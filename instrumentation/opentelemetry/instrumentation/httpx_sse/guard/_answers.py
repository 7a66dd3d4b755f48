"""What the guard gives a client in a server's place, as bytes and responses."""

import json
from collections.abc import Iterable
from typing import Final

from .._events import JsonId
from .._steps import Substitute
from ._errors import GuardError

OWN_ID: Final = "otel-sse-guard-"
"""What ids of our own begin with: strings, so that they are nobody's counter."""

NOBODY: Final = OWN_ID + "0"
"""The id of an error that belongs to no request: official clients give it that of the request they wait for, others
know no such request and let it be."""

PAUSE: Final = 60_000
"""Milliseconds of `retry` in an answer to a client that resumes what is over."""


def event(error: GuardError, requests: Iterable[JsonId]) -> bytes:
    """Events of one error response to each request."""
    bodies = (json.dumps(error.as_response(request), ensure_ascii=False) for request in requests)
    return "".join(f"event: message\ndata: {body}\n\n" for body in bodies).encode()


def retry(milliseconds: int) -> bytes:
    """WHATWG HTML, section 9.2.6: "set the event stream's reconnection time to that integer"."""
    return b"retry: %d\n\n" % milliseconds


def stream(error: GuardError, requests: tuple[JsonId, ...]) -> Substitute:
    """A resume that ends at once, with an error for every request that the stream owed an answer.

    A status >= 400 would not do: the official clients take it for a broken connection, come again, and in an
    explicit resumption let it end the whole session; mcp 1.30 tells its caller nothing.
    """
    content = retry(PAUSE) + event(error, requests or (NOBODY,))
    return Substitute(200, (("content-type", "text/event-stream"), ("cache-control", "no-store")), content)


def unsupported(error: GuardError) -> Substitute:
    """A standalone stream is not to be had. MCP, Streamable HTTP: a server without one answers 405 to the GET; clients
    then go on without it, and the session lives."""
    return _refusal(405, error, ("allow", "POST, DELETE"))


def session_gone(error: GuardError) -> Substitute:
    """MCP, Session Management: a terminated session is answered 404, and the client "MUST start a new session"."""
    return _refusal(404, error)


def _refusal(status: int, error: GuardError, *headers: tuple[str, str]) -> Substitute:
    content = json.dumps({"jsonrpc": "2.0", "id": None, "error": error.as_error()}).encode()
    return Substitute(status, (("content-type", "application/json"), *headers), content)
