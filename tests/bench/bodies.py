"""The bytes that the bench's server sends, made once: event streams cut into HTTP chunks, and JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

EVENTS: Final = 20_000
TOOL_EVENTS: Final = 5_000
HELD_EVENTS: Final = 20
LARGE: Final = 2 * 1024 * 1024

CALL: Final = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "work", "arguments": {}}}
"""The request that every stream of the bench answers."""

MCP_HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "Mcp-Session-Id": "3f7b0f1c9d8e4a5fb2c1d0e9f8a7b6c5",
    "MCP-Protocol-Version": "2025-11-25",
}


def progress(number: int, token: object = 7) -> bytes:
    """A notification as servers with an event store write it."""
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": number, "total": EVENTS, "message": "copying files"},
    }
    text = json.dumps(message, separators=(",", ":"))
    return f"id: 5b1f0c9e-7a3d-4c2b-9f10-{number:012x}\r\nevent: message\r\ndata: {text}\r\n\r\n".encode()


def response(identifier: object = 7, text: str = "done", newline: str = "\r\n") -> bytes:
    """The event that ends a tool call."""
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    message = json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}, separators=(",", ":"))
    return f"id: last\r\nevent: message\r\ndata: {message}\r\n\r\n".replace("\r\n", newline).encode()


def token(number: int) -> bytes:
    """One piece of a completion as language models stream it."""
    chunk = {
        "id": "chatcmpl-9fQ2s7TqXw1",
        "object": "chat.completion.chunk",
        "created": 1785500000,
        "model": "some-model-2026-01-01",
        "choices": [{"index": 0, "delta": {"content": f" word{number}"}, "finish_reason": None}],
    }
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()


def joined(events: Iterable[bytes], together: int) -> Iterable[bytes]:
    """So many events at a time."""
    rest = iter(events)
    while piece := b"".join(islice(rest, together)):
        yield piece


def chunked(pieces: Iterable[bytes]) -> bytes:
    """A body in HTTP/1.1 chunks: the client's library gives each to its reader as one piece."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _progress_body(together: int) -> bytes:
    events = [progress(number) for number in range(EVENTS)]
    return chunked([*joined(events, together), response()])


def _tokens_body() -> bytes:
    return chunked([*map(token, range(EVENTS)), b"data: [DONE]\n\n"])


def _large_body() -> bytes:
    return chunked([response(text="x" * LARGE)])


BODIES: Final[dict[str, Callable[[], bytes]]] = {
    "progress-1": lambda: _progress_body(1),
    "progress-20": lambda: _progress_body(20),
    "tokens": _tokens_body,
    "large": _large_body,
    "short": lambda: chunked([progress(0), progress(1), response()]),
}
"""Bodies of event streams, by the last part of their path."""


@functools.cache
def stream(name: str) -> bytes:
    """A whole response that is an event stream."""
    return head("text/event-stream", "Transfer-Encoding: chunked") + BODIES[name]()


def head(media: str, *more: str, status: str = "200 OK") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {media}", *more)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def document(value: object, *more: str, status: str = "200 OK") -> bytes:
    """A whole response that is JSON."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return head("application/json", f"Content-Length: {len(body)}", *more, status=status) + body


def tool_call(identifier: object, progress_token: object, events: Sequence[int]) -> bytes:
    """A whole response to an official client's tool call."""
    pieces = [progress(number, progress_token) for number in events]
    whole = chunked([*pieces, response(identifier)])
    return head("text/event-stream", "Transfer-Encoding: chunked") + whole
