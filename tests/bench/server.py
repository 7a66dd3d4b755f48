"""A server that costs next to nothing: raw sockets, bytes made in advance, a process of its own.

    python -m tests.bench.server

Prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench import bodies

CHECKOUT = Path(__file__).resolve().parents[2]

RESULT = bodies.document(
    {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "x" * 400}]}}
)
PLAIN = bodies.document({"items": [{"id": number, "name": f"item {number}"} for number in range(12)]})
NOTHING = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NO_STREAM = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"


def _initialized(message: dict[str, Any]) -> bytes:
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench", "version": "1"},
    }
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    return bodies.document(answer, "Mcp-Session-Id: 3f7b0f1c9d8e4a5fb2c1d0e9f8a7b6c5")


def _called(message: dict[str, Any]) -> bytes:
    token = message["params"].get("_meta", {}).get("progressToken")
    return bodies.tool_call(message["id"], token, range(bodies.TOOL_EVENTS if token is not None else 0))


def _listed(message: dict[str, Any]) -> bytes:
    tools = [{"name": "work", "inputSchema": {"type": "object"}}]
    return bodies.document({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})


METHODS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "initialize": _initialized,
    "tools/call": _called,
    "tools/list": _listed,
}
"""What an official client sends to `/official`."""


def _official(body: bytes) -> bytes:
    message = json.loads(body)
    if "id" not in message:
        return NOTHING
    answer = METHODS.get(message["method"])
    if answer is not None:
        return answer(message)
    error = {"code": -32601, "message": "Method not found"}
    refusal = {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return bodies.document(refusal, status="404 Not Found")


def _answer(method: str, path: str, body: bytes) -> bytes:
    if path == "/json":
        return RESULT
    if path == "/plain":
        return PLAIN
    if path == "/official":
        return _official(body) if method == "POST" else NO_STREAM
    return bodies.stream(path.removeprefix("/stream/"))


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            sizes = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
            body = await reader.readexactly(int(sizes[0])) if sizes else b""
            if path == "/hold":
                # As many events as a stream may have had, then silence until the client goes.
                events = b"".join(map(bodies.progress, range(bodies.HELD_EVENTS)))
                whole = bodies.head("text/event-stream", "Transfer-Encoding: chunked")
                writer.write(whole + bodies.chunked([events]).removesuffix(b"0\r\n\r\n"))
                await reader.read()
                return
            writer.write(_answer(method, path, body))
            await writer.drain()
    writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The URL of a server that lives as long as the block."""
    command = [sys.executable, "-m", "tests.bench.server"]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("no pipes")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(_main())
