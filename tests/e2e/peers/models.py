"""A stub that streams as the OpenAI and the Anthropic API do, and breaks off where its path says so."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FIRST_AFTER, NEXT_AFTER = 0.3, 0.1
PIECES = ("Hel", "lo", ".")


def openai_events() -> Iterator[str]:
    for piece in PIECES:
        choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [choice],
        }
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def anthropic_events() -> Iterator[str]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield _event({"type": "message_start", "message": message})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in PIECES:
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": usage})
    yield _event({"type": "message_stop"})


def _event(data: Mapping[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


EVENTS = {"/v1/chat/completions": openai_events, "/v1/messages": anthropic_events}
CUT_AFTER = 2
"""Events that pass on the path `/cut` before the connection is closed inside a chunk."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        way, _, rest = self.path.removeprefix("/").partition("/")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for number, event in enumerate(EVENTS[f"/{rest}"]()):
                time.sleep(NEXT_AFTER if number else FIRST_AFTER)
                if way == "cut" and number == CUT_AFTER:
                    self.wfile.write(f"{len(event):x}\r\n{event[:9]}".encode())
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    break
                self.wfile.write(f"{len(event):x}\r\n{event}\r\n".encode())
            else:
                self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - likewise
        pass


@contextlib.contextmanager
def models() -> Iterator[str]:
    """The stub's address for the length of a block."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
