"""What can go wrong between a correct server and a correct client: each fault is a few lines around a server.

`FaultyApp` stands in the ASGI stack in front of the official server. It lets exchanges pass, cuts their
streams or answers for the server, as the fault says, and counts what passed on the wire. Whatever a client
sees of a replay, a prompt or a lost session was written by the official server, not by this file.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

QUIET_SECONDS = 2.0
ON_ITS_WAY_SECONDS = 0.1
"""What comes sooner after an answer of ours may have left before it arrived: half of the time to a retry."""
EVENT_STREAM = {"content-type": "text/event-stream", "cache-control": "no-cache, no-transform"}


@dataclass(slots=True)
class Run:
    """What a fault has to remember from one exchange to the next; a server of the demo has one client."""

    first_cursor: str | None = None
    """The first event id of the call that is under way."""
    refused_at: float = math.inf
    """When the last answer of this call was refused, in seconds of anyio's clock."""
    wire: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Exchange:
    """One HTTP request, and the ways to answer it."""

    app: App
    scope: Scope
    receive: Receive
    send: Send
    body: bytes
    run: Run

    @property
    def message(self) -> dict[str, Any]:
        parsed = json.loads(self.body) if self.body else {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def cursor(self) -> str | None:
        return _header(self.scope, b"last-event-id")

    @property
    def kind(self) -> str:
        """What the wire's counter calls this request."""
        rpc = self.message.get("method")
        answered = "result" in self.message or "error" in self.message
        return {
            "GET": "streams" if self.cursor is None else "resumes",
            "POST": "answers" if answered else str(rpc),
        }.get(self.scope["method"], str(self.scope["method"]))

    async def reply(self, status: int, message: object) -> None:
        """Answer in the server's place."""
        await _start(self.send, status, {"content-type": "application/json"})
        await self.send({"type": "http.response.body", "body": json.dumps(message).encode()})

    async def stream_nothing(self) -> None:
        """Answer 200 with an event stream that ends at once."""
        await _start(self.send, 200, EVENT_STREAM)
        await self.send({"type": "http.response.body", "body": b""})

    async def forward(
        self,
        *,
        last: Callable[[bytes], bool] = lambda event: False,
        seconds: float = math.inf,
        cursor: str | None = None,
        before: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        """Let the server answer, and end the body cleanly after its `last` event or after some seconds.

        `before` sees each event before it is sent on.
        """
        await Passage(self, last, before).forward(_with_cursor(self.scope, cursor), seconds)

    async def end_session(self) -> None:
        """Make the server forget the session of this request, as its reaper or a restart would."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(message: Message) -> None:
            pass

        await self.app({**self.scope, "method": "DELETE"}, receive, ignore)


@dataclass(slots=True)
class Passage:
    """One answer of the server on its way to the client. When we cut it, the server sees the client go."""

    exchange: Exchange
    last: Callable[[bytes], bool]
    before: Callable[[bytes], Awaitable[None]] | None
    body_was_read: bool = False
    over: anyio.Event = field(default_factory=anyio.Event)

    async def forward(self, scope: Scope, seconds: float) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_client)
            if seconds < math.inf:
                tasks.start_soon(self._watch_clock, seconds)
            await self.exchange.app(scope, self._receive, self._send)
            tasks.cancel_scope.cancel()

    async def _receive(self) -> Message:
        if not self.body_was_read:
            self.body_was_read = True
            return {"type": "http.request", "body": self.exchange.body, "more_body": False}
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self.over.is_set():
            return
        event: bytes = message.get("body", b"")
        self.exchange.run.wire.update(name for name, mark in WIRE_MARKS.items() if mark in event)
        if event and self.before is not None:
            await self.before(event)
        await self.exchange.send(message)
        if event and message.get("more_body") and self.last(event):
            await self._cut()

    async def _cut(self) -> None:
        if not self.over.is_set():
            self.over.set()
            await self.exchange.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch_client(self) -> None:
        while (await self.exchange.receive())["type"] != "http.disconnect":
            pass
        self.over.set()

    async def _watch_clock(self, seconds: float) -> None:
        await anyio.sleep(seconds)
        await self._cut()


Fault = Callable[[Exchange], Awaitable[None]]
WIRE_MARKS = {
    "prompts": b'"elicitation/create"',
    "input_required": b'"input_required"',
    "session_not_found": b"Session not found",
}


class FaultyApp:
    """The server behind one fault."""

    def __init__(self, app: App, fault: Fault) -> None:
        self._app = app
        self._fault = fault
        self._run = Run()

    @property
    def wire(self) -> dict[str, int]:
        """How often each kind of request came, and what was sent that a client may trip over."""
        return dict(self._run.wire)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(self._app, scope, receive, send, await _body(receive), self._run)
        self._run.wire[exchange.kind] += 1
        await self._fault(exchange)


async def healthy(exchange: Exchange) -> None:
    """Nothing is wrong."""
    await exchange.forward()


async def quiet(exchange: Exchange) -> None:
    """An intermediary ends the standalone stream after two seconds without a byte."""
    await exchange.forward(seconds=QUIET_SECONDS if exchange.kind == "streams" else math.inf)


async def empty_resume(exchange: Exchange) -> None:
    """The call's stream is primed and cut; every resume is granted and has nothing in it."""
    match exchange.kind:
        case "tools/call":
            await exchange.forward(last=_is_priming)
        case "resumes":
            await exchange.stream_nothing()
        case _:
            await exchange.forward()


async def after_answer(exchange: Exchange) -> None:
    """A resume of an answered call is granted, and the answer is told again."""
    await exchange.forward(last=_is_answer if exchange.kind == "resumes" else _is_nothing)


async def stale_prompt(exchange: Exchange) -> None:
    """The stream is cut after the prompt, a resume starts before it, and nobody takes the answer any more."""

    async def remember(event: bytes) -> None:
        run.first_cursor = run.first_cursor or _event_id(event)

    run = exchange.run
    match exchange.kind:
        case "tools/call":
            run.first_cursor, run.refused_at = None, math.inf
            await exchange.forward(last=_is_prompt, before=remember)
        case "resumes":
            run.wire["resumes_after_refusal"] += anyio.current_time() > run.refused_at + ON_ITS_WAY_SECONDS
            await exchange.forward(last=_is_prompt, cursor=run.first_cursor)
        case "answers":
            error = {"code": -32600, "message": "unknown request id"}
            await exchange.reply(404, {"jsonrpc": "2.0", "id": None, "error": error})
            run.refused_at = anyio.current_time()
        case _:
            await exchange.forward()


async def dead_after_replay(exchange: Exchange) -> None:
    """The replay still comes out of the log, but the session ends with it."""

    async def end_session(event: bytes) -> None:
        if _is_answer(event):
            await exchange.end_session()

    match exchange.kind:
        case "tools/call":
            await exchange.forward(last=_is_priming)
        case "resumes":
            await exchange.forward(last=_is_answer, before=end_session)
        case _:
            await exchange.forward()


async def dead_at_replay(exchange: Exchange) -> None:
    """The log is replayed all at once, and the session had ended before: logs are kept longer than sessions."""
    match exchange.kind:
        case "tools/call":
            await exchange.forward(last=_is_priming)
        case "resumes":
            log: list[Message] = []

            async def keep(message: Message) -> None:
                log.append(message)

            await replace(exchange, send=keep).forward(last=_is_answer)
            await exchange.end_session()
            for message in log:
                await exchange.send(message)
        case _:
            await exchange.forward()


FAULTS: dict[str, Fault] = {
    "healthy-polling": healthy,
    "quiet": quiet,
    "empty-resume": empty_resume,
    "after-answer": after_answer,
    "stale-prompt": stale_prompt,
    "slow-person": stale_prompt,
    "dead-after-replay": dead_after_replay,
    "dead-at-replay": dead_at_replay,
    "input-required-loop": healthy,
}


def _data(event: bytes) -> bytes:
    return b"".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))


def _event_id(event: bytes) -> str | None:
    ids = [line[3:].strip().decode() for line in event.splitlines() if line.startswith(b"id:")]
    return ids[0] if ids else None


def _is_nothing(event: bytes) -> bool:
    return False


def _is_priming(event: bytes) -> bool:
    return _event_id(event) is not None and not _data(event)


def _is_prompt(event: bytes) -> bool:
    return WIRE_MARKS["prompts"] in event


def _is_answer(event: bytes) -> bool:
    data = _data(event)
    return bool(data) and "method" not in json.loads(data)


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def _with_cursor(scope: Scope, cursor: str | None) -> Scope:
    if cursor is None:
        return scope
    kept = [(key, value) for key, value in scope["headers"] if key != b"last-event-id"]
    return {**scope, "headers": [*kept, (b"last-event-id", cursor.encode("latin-1"))]}


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    more = True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(pieces)


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
