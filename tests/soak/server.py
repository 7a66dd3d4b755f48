"""The chaos server: sessions, an event store and every fault that a request wishes for, on a real socket.

A request says in `X-Wish` what is to go wrong; frames, event ids and what is replayed are the server's own.
"""

import asyncio
import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from .catalogue import BODIES
from .journal import Frame, Journal, Json, Served

REASONS: Final = {200: "OK", 202: "Accepted", 204: "No Content", 307: "Temporary Redirect"}
PROMPTS: Final = ("elicitation/create", "sampling/createMessage", "roots/list", "elicitation/create", "ping")


@dataclass(slots=True)
class Operation:
    """What a stream has to say: all of it, whether it was sent or not."""

    name: str
    frames: list[Frame] = field(default_factory=list)
    shown: int = 0


@dataclass(slots=True)
class Store:
    """One session's events, or one client's without a session."""

    operations: list[Operation] = field(default_factory=list)
    held: dict[int, "asyncio.Queue[tuple[list[Frame], str] | None]"] = field(default_factory=dict)
    asked: int = 0
    extra: int = 0

    def find(self, cursor: str) -> tuple[Operation, int] | None:
        for operation in reversed(self.operations):
            for at, frame in enumerate(operation.frames):
                if frame.id == cursor:
                    return operation, at
        return None


@dataclass(slots=True)
class Call:
    """A request as the server has it."""

    n: int
    method: str
    path: str
    headers: dict[str, str]
    messages: list[Json]
    wish: Json
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    served: Served
    store: Store
    rng: random.Random


class ChaosServer:
    """Runs in a thread of its own.

    Args:
        journal: where it writes down what it did.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.stores: dict[str, Store] = {}
        self.sessions = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def push(self, store: str, n: int, frames: list[Frame], end: str = "") -> None:
        """Send frames on a stream that is held open, and end it if `end` says how."""
        self._loop.call_soon_threadsafe(lambda: self._queue(store, n).put_nowait((frames, end)))

    def _queue(self, store: str, n: int) -> "asyncio.Queue[tuple[list[Frame], str] | None]":
        held = self.stores.setdefault(store, Store()).held
        return held.setdefault(n, asyncio.Queue())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)

        async def begin() -> asyncio.Server:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            return server

        async def end(server: asyncio.Server) -> None:
            server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0.05)

        server = self._loop.run_until_complete(begin())
        self._loop.run_forever()
        self._loop.run_until_complete(end(server))
        self._loop.close()

    # -------------------------------------------------------------- a request

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            call = await self._read(reader, writer)
            await DEEDS[call.wish["do"]](self, call)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (h.partition(":") for h in rest if h)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = line.split(" ")
        n = int(headers["x-number"])
        session, cursor = headers.get("mcp-session-id"), headers.get("last-event-id")
        wish = json.loads(headers["x-wish"])
        before = self.journal.served.get(n)
        served = Served(n, method, session, cursor, wish["do"], hops=before.hops + 1 if before else 0)
        self.journal.served[n] = served
        store = self.stores.setdefault(session or headers["x-client"], Store())
        rng = random.Random(wish["seed"])
        messages = [json.loads(body)] if body else []
        return Call(n, method, path, headers, messages, wish, writer, reader, served, store, rng)

    # -------------------------------------------------------------- answers

    def head(self, call: Call, status: int, media: str = "", more: str = "", size: int | None = None) -> None:
        call.served.status = status
        call.served.is_stream = media == "text/event-stream"
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'No')}", "Connection: close"]
        lines += [f"Content-Type: {media}"] if media else []
        lines += ["Transfer-Encoding: chunked"] if size is None else [f"Content-Length: {size}"]
        lines += [more] if more else []
        call.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")

    def whole(self, call: Call, status: int, body: bytes, media: str = "", more: str = "") -> None:
        self.head(call, status, media, more, len(body))
        call.writer.write(body)

    async def stream(self, call: Call, frames: list[Frame], end: str, hold: float = 0.0) -> None:
        """An event stream with these frames; `hold` is how long it stays open after them."""
        self.head(call, 200, "text/event-stream")
        await call.writer.drain()
        await self.frames(call, frames)
        if hold:
            await asyncio.sleep(hold)
        await self.end(call, end)

    async def frames(self, call: Call, frames: list[Frame]) -> None:
        newline, space = call.rng.choice(("\n", "\n", "\r\n")), call.rng.choice((" ", " ", ""))
        pause = call.rng.random() < 0.5
        for frame in frames:
            data = frame.wire(newline, space)
            call.served.frames.append(frame)
            call.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            if pause:
                await call.writer.drain()
                await asyncio.sleep(0.002)
        await call.writer.drain()

    async def end(self, call: Call, end: str) -> None:
        """Clean, cut short between two chunks, torn within an event, reset, or left until the client goes."""
        if end == "clean":
            call.writer.write(b"0\r\n\r\n")
        elif end == "torn":
            call.served.did = "torn"
            call.writer.write(b'12\r\nid: torn\ndata: {"j\r\n')
        elif end == "reset":
            await asyncio.sleep(0.03)
            sock: socket.socket = call.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            call.writer.transport.abort()
        elif end == "stall":
            await call.reader.read()

    # -------------------------------------------------------------- what can be wished for

    async def result(self, call: Call) -> None:
        """The answer as JSON; to `initialize` with a new session."""
        more = ""
        request = call.messages[0]
        if request.get("method") == "initialize" and call.wish.get("session"):
            self.sessions += 1
            more = f"Mcp-Session-Id: {call.wish['session']}"
        outcome: Json = {"result": {"protocolVersion": "2025-11-25"} if more else {"content": []}}
        if call.wish.get("error"):
            outcome = {"error": {"code": call.wish["error"], "message": "tool failed"}}
        body = json.dumps({"jsonrpc": "2.0", "id": request.get("id"), **outcome}).encode()
        self.whole(call, 200, body, "application/json", more)

    async def accept(self, call: Call) -> None:
        self.whole(call, call.wish.get("status", 202), b"")

    async def refuse(self, call: Call) -> None:
        body = BODIES[call.wish["body"]]
        self.whole(call, call.wish["status"], body.wire(), body.media)

    async def drop(self, call: Call) -> None:
        """No response at all."""

    async def sleepy(self, call: Call) -> None:
        """No response until the client has had enough."""
        await call.reader.read()

    async def redirect(self, call: Call) -> None:
        """To another path, where the wish within comes true."""
        if call.path.endswith("/again"):
            call.wish = call.wish["then"]
            call.served.did = call.wish["do"]
            await DEEDS[call.wish["do"]](self, call)
        else:
            self.whole(call, 307, b"", "", "Location: /mcp/again")

    async def operate(self, call: Call) -> None:
        """A new operation on its own stream, sent up to a cut."""
        operation = self._operation(call)
        call.store.operations.append(operation)
        await self._show(call, operation, 0)

    async def replay(self, call: Call) -> None:
        """What follows the cursor, up to a cut."""
        found = call.store.find(call.served.cursor or "")
        if found is None:
            await self.stream(call, [], "clean")
            return
        operation, at = found
        await self._show(call, operation, at + 1)

    async def again(self, call: Call) -> None:
        """What the client has already."""
        found = call.store.find(call.served.cursor or "")
        frames = found[0].frames[: found[1] + 1] if found else []
        await self.stream(call, frames[-2:], call.wish["end"], call.wish["hold"])

    async def reprompt(self, call: Call) -> None:
        """The last question once more, under a new event id."""
        found = call.store.find(call.served.cursor or "")
        asked = (
            [
                f
                for f in found[0].frames[: found[1] + 1]
                if f.data and '"method"' in f.data and '"id"' in f.data
            ]
            if found
            else []
        )
        frames = []
        if found is not None and asked:
            call.store.extra += 1
            params = call.wish.get("params")
            message = json.loads(asked[-1].data or "")
            message["params"] = {**message["params"], "_meta": params} if params else message["params"]
            frames = [Frame(f"x{call.store.extra}", json.dumps(message))]
            found[0].frames[found[1] + 1 : found[1] + 1] = frames
        await self.stream(call, frames, call.wish["end"], call.wish["hold"])

    async def prime(self, call: Call) -> None:
        """Nothing but a new cursor."""
        found = call.store.find(call.served.cursor or "")
        call.store.extra += 1
        frame = Frame(f"p{call.store.extra}", "")
        if found is not None:
            found[0].frames.insert(found[1] + 1, frame)
        await self.stream(call, [frame], call.wish["end"], call.wish["hold"])

    async def nothing(self, call: Call) -> None:
        """An event stream without an event; perhaps with comments."""
        frames = [Frame(comment="ping")] * call.wish.get("comments", 0)
        await self.stream(call, frames, call.wish["end"], call.wish["hold"])

    async def hold(self, call: Call) -> None:
        """A stream that sends what is pushed."""
        key = call.served.session or call.headers["x-client"]
        queue = self._queue(key, call.n)
        operation = Operation(f"h{call.n}")
        call.store.operations.append(operation)
        self.head(call, 200, "text/event-stream")
        await call.writer.drain()
        end = ""
        while not end:
            item = await queue.get()
            if item is None:
                return
            frames, end = item
            operation.frames += frames
            await self.frames(call, frames)
        await self.end(call, end)

    # -------------------------------------------------------------- operations

    async def _show(self, call: Call, operation: Operation, start: int) -> None:
        wish = call.wish
        left = len(operation.frames) - start
        stop = start + (left if wish.get("cut") is None else min(left, int(left * wish["cut"])))
        is_whole = stop == len(operation.frames)
        end = "clean" if is_whole and wish["end"] != "stall" else wish["end"]
        await self.stream(call, operation.frames[start:stop], end, wish["hold"])

    def _operation(self, call: Call) -> Operation:
        rng, wish, store = call.rng, call.wish, call.store
        name = f"{len(store.operations)}" if not wish.get("collide") else ""
        operation = Operation(name)
        has_ids = wish.get("ids", True)

        def add(data: str, retry: int | None = None) -> None:
            separator = "-" if name else ""
            identifier = f"{name}{separator}{len(operation.frames)}" if has_ids else None
            operation.frames.append(Frame(identifier, data, retry))

        if has_ids and rng.random() < 0.6:
            add("", wish.get("retry"))
        for _ in range(rng.randrange(4)):
            self._say(rng, store, operation, add)
        request = call.messages[0] if call.messages else None
        if request is not None:
            outcome = {"error": {"code": -32000, "message": "no"}} if rng.random() < 0.1 else {"result": {}}
            final = json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome})
            add(final)
            if rng.random() < 0.1:
                operation.frames.append(Frame(None, final))
        return operation

    def _say(
        self, rng: random.Random, store: Store, operation: Operation, add: Callable[[str], None]
    ) -> None:
        kind = rng.randrange(10)
        if kind < 3:
            add(notification("notifications/progress", {"progress": rng.random()}))
        elif kind == 3:
            operation.frames.append(Frame(None, notification("notifications/message", {"data": "x"})))
        elif kind == 4:
            operation.frames.append(Frame(comment="keep-alive"))
        elif kind == 5:
            add('{"type":"heartbeat"}')
        elif kind == 6 and store.asked:
            add(notification("notifications/cancelled", {"requestId": f"q{store.asked}"}))
        else:
            store.asked += 1
            method = rng.choice(PROMPTS)
            add(asking(f"q{store.asked}", method))
            if rng.random() < 0.2:
                add(asking(f"q{store.asked}", method))


def notification(method: str, params: Json) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def asking(identifier: str, method: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": method, "params": {"message": "?"}})


DEEDS: Final[dict[str, Callable[[ChaosServer, Call], Coroutine[Any, Any, None]]]] = {
    "result": ChaosServer.result,
    "accept": ChaosServer.accept,
    "refuse": ChaosServer.refuse,
    "drop": ChaosServer.drop,
    "sleepy": ChaosServer.sleepy,
    "redirect": ChaosServer.redirect,
    "operate": ChaosServer.operate,
    "replay": ChaosServer.replay,
    "again": ChaosServer.again,
    "reprompt": ChaosServer.reprompt,
    "prime": ChaosServer.prime,
    "nothing": ChaosServer.nothing,
    "hold": ChaosServer.hold,
}
