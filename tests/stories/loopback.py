"""The loopback host: a server of asyncio in a thread of its own, and the four client families. Time is short."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
from opentelemetry.sdk.trace import ReadableSpan
from tests.conftest import Family, Memory

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

from .findings import Point, points_of
from .play import fields_of, headers_of
from .script import Head, Request, Story

SCALES = (0.1, 0.5)
"""Seconds that one second of a story takes; when a busy machine has spoiled it, it is told again more slowly."""

PATIENCE = 2.0
"""The client's time limit where a story has it pass, in the story's own time."""

WHO = "X-Exchange"
Order = Callable[[asyncio.StreamWriter], Awaitable[None]]
SECONDS = {"idle_threshold": 25.0, "quiet_threshold": 1.0, "give_up_after": 30.0, "submission_deadline": None}


class Server:
    """Does for each exchange what it is told to, one connection each."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._orders: dict[str, asyncio.Queue[Order | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        )
        self._server = started.result(5)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def tell(self, exchange: str, order: Order | None) -> None:
        """What to do next for an exchange; None closes the connection."""
        self._loop.call_soon_threadsafe(lambda: self._queue(exchange).put_nowait(order))

    def _queue(self, exchange: str) -> "asyncio.Queue[Order | None]":
        return self._orders.setdefault(exchange, asyncio.Queue())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
            await reader.readexactly(int(fields.get(b"content-length", 0)))
            orders = self._queue(fields[WHO.lower().encode()].decode())
            while (order := await orders.get()) is not None:
                await order(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def close(self) -> None:
        """Stop, with everything that is under way."""

        async def stop() -> None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


def _write(data: bytes) -> Order:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return write


def _head(head: Head) -> bytes:
    fields = {"Connection": "close", **fields_of(head)}
    if head.location or head.status in (204, 304):
        fields["Content-Length"] = "0"
    else:
        fields["Transfer-Encoding"] = "chunked"
    if head.status == 204:
        del fields["Content-Length"]
    lines = [f"HTTP/1.1 {head.status} said", *(f"{key}: {value}" for key, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Open:
    """A response whose body is being read."""

    def __init__(self, response: Any, chunks: Any, exchange: str, *, has_body: bool) -> None:
        self.response = response
        self.chunks = chunks
        self.exchange = exchange
        self.has_body = has_body
        self.read = b""


class LoopbackHost:
    """A client of one family; the server is told beside it what to answer."""

    _numbers = itertools.count()

    def __init__(self, story: Story, family: Family, server: Server, memory: Memory, scale: float) -> None:
        self.scale = scale
        self._number = next(self._numbers)
        self.story = story
        self.family = family
        self.server = server
        self.memory = memory
        self._open: dict[str, Open] = {}
        self._clients: dict[str, Any] = {}

    @contextmanager
    def instrumented(self) -> Iterator[None]:
        """The story's options, in short time."""
        options = dict(self.story.options)
        for name, default in SECONDS.items():
            seconds = options.get(name, default)
            options[name] = None if seconds is None else seconds * self.scale
        instrumentor = HTTPXSSEInstrumentor()
        instrumentor.instrument(
            meter_provider=self.memory.meter_provider, tracer_provider=self.memory.tracer_provider, **options
        )
        try:
            yield
        finally:
            instrumentor.uninstrument()

    async def _wait(self, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        result = call(*arguments, **keywords)
        return await result if self.family.is_async else result

    async def sleep(self, seconds: float) -> None:
        if seconds and self.family.is_async:
            await anyio.sleep(seconds)
        elif seconds:
            threading.Event().wait(seconds)

    async def send(self, name: str, request: Request, heads: Sequence[Head]) -> None:
        exchange = f"{self._number} {name}"
        client = self._clients.setdefault(
            request.keys.get("pool", "1"), self.family.client(follow_redirects=True, verify=False)
        )
        for head in heads:
            if not head.instead:
                self.server.tell(exchange, _write(_head(head)))
            if head.location or head.instead == "refuse":
                self.server.tell(exchange, None)
        sent = client.build_request(
            request.method,
            f"http://127.0.0.1:{self.server.port}{request.keys.get('to', '/mcp')}",
            headers={**headers_of(self.story, request), WHO: exchange},
            content=request.content or None,
            timeout=PATIENCE * self.scale if heads[-1].instead == "stall" or self._stalls(name) else 5,
        )
        if heads[-1].instead:
            await self._in_vain(client, sent, exchange, heads[-1].instead)
            return
        response = await self._wait(client.send, sent, stream=True)
        chunks = response.aiter_raw() if self.family.is_async else response.iter_raw()
        has_body = heads[-1].status not in (204, 304)
        self._open[name] = Open(response, chunks, exchange, has_body=has_body)

    def _stalls(self, name: str) -> bool:
        return any(
            part.kind == "stall" for step in self.story.steps if step.name == name for part in step.parts
        )

    async def _in_vain(self, client: Any, sent: Any, exchange: str, how: str) -> None:
        """A request that gets no response."""
        try:
            if how == "cancel":
                with anyio.move_on_after(PATIENCE / 2 * self.scale):
                    await client.send(sent, stream=True)
            else:
                await self._wait(client.send, sent, stream=True)
                raise AssertionError("there was a response")
        except self.family.module.TransportError:
            pass
        if how != "refuse":
            self.server.tell(exchange, None)

    async def give(self, name: str, chunk: bytes) -> None:
        body = self._open[name]
        if not chunk:
            return
        self.server.tell(body.exchange, _write(b"%x\r\n%s\r\n" % (len(chunk), chunk)))
        wanted = len(body.read) + len(chunk)
        while len(body.read) < wanted:
            step = body.chunks.__anext__ if self.family.is_async else body.chunks.__next__
            body.read += await self._wait(step)
        assert body.read[-len(chunk) :] == chunk

    async def end(self, name: str, how: str) -> None:
        body = self._open.pop(name)
        if how == "end" and body.has_body:
            self.server.tell(body.exchange, _write(b"0\r\n\r\n"))
        if how in ("end", "cut"):
            self.server.tell(body.exchange, None)
        if how == "cancel":
            with anyio.move_on_after(PATIENCE / 2 * self.scale):
                await self._rest(body)
        elif how != "close":
            try:
                await self._rest(body)
            except self.family.module.TransportError:
                assert how in ("cut", "stall")
        await self._close(body)

    async def _close(self, body: Open) -> None:
        if self.family.is_async:
            await body.chunks.aclose()
        await self._wait(body.response.aclose if self.family.is_async else body.response.close)
        self.server.tell(body.exchange, None)

    async def _rest(self, body: Open) -> None:
        """Read on to the end; there must be nothing more."""
        if self.family.is_async:
            async for chunk in body.chunks:
                raise AssertionError(chunk)
        else:
            for chunk in body.chunks:
                raise AssertionError(chunk)

    async def gone(self, pool: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """The clients go; so does what they left open."""
        for body in self._open.values():
            await self._close(body)
        for client in self._clients.values():
            await self._wait(client.aclose if self.family.is_async else client.close)

    def collect(self) -> list[Point]:
        return points_of(self.memory.reader)

    def spans(self) -> Sequence[ReadableSpan]:
        return self.memory.exporter.get_finished_spans()
