"""A loopback server that answers by a function, and clients of every family that do what MCP clients do."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.conftest import Family

from opentelemetry.instrumentation.httpx_sse.guard._answers import OWN_ID

Chunk = bytes | float
"""Bytes of a chunk, or seconds to wait."""


@dataclass(frozen=True)
class Reply:
    """What the server answers."""

    status: int = 200
    media: str = "text/event-stream"
    chunks: Sequence[Chunk] = ()
    end: str = "clean"
    """`clean`, `cut` (inside the chunked body) or `hold` (until the client goes)."""
    coding: str = ""


@dataclass(frozen=True)
class Asked:
    """A request that reached the server."""

    method: str
    headers: dict[str, str]
    message: dict[str, Any]

    @property
    def cursor(self) -> str:
        return self.headers.get("last-event-id", "")

    @property
    def is_probe(self) -> bool:
        return str(self.message.get("id", "")).startswith(OWN_ID)


Behaviour = Callable[[Asked], Reply]


@dataclass
class Wire:
    """The server's side: what it does, and what reached it."""

    url: str = ""
    behaviour: Behaviour = lambda _: Reply(404, "")
    asked: list[Asked] = field(default_factory=list)

    @property
    def resumes(self) -> int:
        return sum(1 for each in self.asked if each.method == "GET" and each.cursor)

    @property
    def probes(self) -> int:
        return sum(1 for each in self.asked if each.is_probe)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {
            key.lower(): value.strip() for key, _, value in (one.partition(":") for one in rest if one)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(line.split()[0], headers, json.loads(body) if body else {})
        self.asked.append(asked)
        reply = self.behaviour(asked)
        fields = [f"HTTP/1.1 {reply.status} said", "Connection: close", "Transfer-Encoding: chunked"]
        fields += [f"Content-Type: {reply.media}"] if reply.media else []
        fields += [f"Content-Encoding: {reply.coding}"] if reply.coding else []
        writer.write(("\r\n".join(fields) + "\r\n\r\n").encode())
        await writer.drain()
        for chunk in reply.chunks:
            if isinstance(chunk, float):
                await asyncio.sleep(chunk)
                continue
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        if reply.end == "hold":
            await reader.read()
        elif reply.end == "clean":
            writer.write(b"0\r\n\r\n")
            await writer.drain()


@contextmanager
def serving() -> Iterator[Wire]:
    """A server in a thread of its own, one connection a request."""
    loop, wire = asyncio.new_event_loop(), Wire()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(wire.serve, "127.0.0.1", 0), loop).result(
        5
    )
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"

    async def stop() -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        yield wire
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


# ------------------------------------------------------------------ messages


def event(message: object, event_id: str = "", *, retry: int | None = None) -> bytes:
    """One event; `""` as message makes it a priming event."""
    lines = [f"id: {event_id}"] if event_id else []
    lines += [f"retry: {retry}"] if retry is not None else []
    lines.append(f"data: {message if isinstance(message, str) else json.dumps(message)}")
    return ("\n".join(lines) + "\n\n").encode()


def request(identifier: object, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def result(identifier: object, **content: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "result": content}


def error(identifier: object, message: str, code: int = -32600) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


def said(message: object, status: int = 200) -> Reply:
    """A JSON body."""
    return Reply(status, "application/json", (json.dumps(message).encode(),))


PRIME = event("", "e1")
PROMPT = request("q1", "elicitation/create", message="Delete everything?")
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q1"}}
PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}


def pong(asked: Asked) -> Reply:
    return said(result(asked.message["id"]))


# ------------------------------------------------------------------ the client


@dataclass
class Got:
    """What a client received for one request."""

    status: int
    chunks: list[bytes]
    error: str = ""

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON-RPC messages of an event stream, or of a JSON body."""
        if not self.body.startswith(b"{"):
            lines = [line[5:].strip() for line in self.body.splitlines() if line.startswith(b"data:")]
            return [json.loads(line) for line in lines if line]
        return [json.loads(self.body)]

    @property
    def failure(self) -> dict[str, Any]:
        """The error that the guard ended it with."""
        found = [m["error"] for m in self.messages if "error" in m and "by" in m["error"].get("data", {})]
        return found[0] if found else {}

    @property
    def retries(self) -> list[int]:
        return [int(line[6:]) for line in self.body.splitlines() if line.startswith(b"retry:")]


class McpClient:
    """The few things that a client of Streamable HTTP does, by a client of one family.

    It knows nothing of guards.
    """

    def __init__(
        self, family: Family, url: str, client: Any, *, session: str = "S1", version: str = "2025-11-25"
    ) -> None:
        self.family = family
        self.url = url
        self.client = client
        self.headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
        self.headers |= {"Mcp-Session-Id": session} if session else {}

    async def post(self, message: object, **headers: str) -> Got:
        return await self._send("POST", json=message, headers=headers)

    async def get(self, cursor: str = "", *, events: int = 0, **headers: str) -> Got:
        """Read to the end, or up to so many events."""
        named = {"Last-Event-ID": cursor} if cursor else {}
        return await self._send("GET", headers={**named, **headers}, events=events)

    async def _send(self, method: str, *, headers: dict[str, str], events: int = 0, **content: Any) -> Got:
        sent = self.client.build_request(method, self.url, headers={**self.headers, **headers}, **content)
        response = await self._wait(self.client.send(sent, stream=True))
        got = Got(response.status_code, [])
        try:
            if self.family.is_async:
                async for chunk in response.aiter_raw():
                    got.chunks.append(chunk)
                    if events and got.body.count(b"\n\n") >= events:
                        break
            else:
                for chunk in response.iter_raw():
                    got.chunks.append(chunk)
                    if events and got.body.count(b"\n\n") >= events:
                        break
        except self.family.module.TransportError as error:
            got.error = type(error).__name__
        await self._wait(response.aclose() if self.family.is_async else response.close())
        return got

    @staticmethod
    async def _wait(value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    async def close(self) -> None:
        await self._wait(self.client.aclose() if self.family.is_async else self.client.close())
