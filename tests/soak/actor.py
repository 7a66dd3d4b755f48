"""A simple client at work: sessions one after the other, each a series of calls that go wrong at random."""

import asyncio
import contextlib
import json
import random
import threading
from collections.abc import Coroutine
from typing import Any, Final

from .catalogue import GRAVES, REFUSALS
from .journal import Frame, Json
from .server import ChaosServer, asking, notification
from .wire import Reply, Wire, cancelled_after, seeded

CUTS: Final = ("clean", "clean", "reset", "short", "torn")
RESUMES: Final = 6
SHORT_LIMIT: Final = 0.6
"""Seconds: the read limit of a client that will not wait; longer than any quiet hold, shorter than a stall."""
QUIET: Final = 0.5
IDLE: Final = 1.4
STEPS: Final = {
    "call": 10, "standalone": 3, "held": 3, "ping": 2, "ask": 2, "stray": 1, "foreign": 1, "bury": 1, "wait": 1,
}  # fmt: skip
FAULTS: Final = {
    "replay": 12, "again": 3, "reprompt": 4, "prime": 2, "nothing": 5, "quiet": 1, "idle": 1, "cut": 2, "refuse": 4,
    "other": 2, "drop": 2, "sleepy": 1, "stall": 1, "redirect": 2, "leave": 2,
}  # fmt: skip
NO_STREAMS: Final = ({"do": "accept", "status": 202}, {"do": "accept", "status": 204}, {"do": "result"})


def weighed(rng: random.Random, table: dict[str, int]) -> str:
    return rng.choices(list(table), list(table.values()))[0]


class Actor:
    """Plays until it is told to stop.

    Args:
        wire: its client.
        server: for pushing on held streams.
        seed: of all its choices.
        with_sessions: whether the server gives it sessions.
        stop: set when it is time.
    """

    def __init__(
        self, wire: Wire, server: ChaosServer, seed: str, stop: threading.Event, *, with_sessions: bool = True
    ) -> None:
        self.wire = wire
        self.server = server
        self.rng = random.Random(seed)
        self.stop = stop
        self.with_sessions = with_sessions
        self.session: str | None = None
        self.grave: tuple[int, str] | None = None
        self.ids = 0
        self.sessions = 0
        self.auth = "token-0"
        self.asked = ("q0", "elicitation/create")

    async def live(self) -> None:
        """Sessions, one after the other."""
        while not self.stop.is_set():
            await self._session()
            await self.wire.close()
            self.wire.renew()
        await self.wire.close()

    async def _session(self) -> None:
        self._forget()
        if not (await self._initialize() if self.with_sessions else True):
            return
        for _ in range(self.rng.randrange(4, 14)):
            if self.stop.is_set():
                break
            await self.wire.sleep(self.rng.uniform(0.01, 0.06))
            step = weighed(self.rng, STEPS)
            await getattr(self, f"_{step}")()
        if self.session and self.rng.random() < 0.6:
            await self._send(
                "DELETE", self._maybe_refused({"do": "accept", "status": self.rng.choice((200, 204))})
            )

    def _forget(self) -> None:
        self.session, self.grave, self.asked = None, None, ("q0", "elicitation/create")

    async def _initialize(self) -> bool:
        self.sessions += 1
        name = f"s{self.wire.number}-{self.sessions}"
        wish = {"do": "result", "session": name}
        if self.rng.random() < 0.1:
            wish = self._refusal()
        reply = await self._send("POST", wish, [self._request("initialize")])
        if reply.status != 200 or wish["do"] != "result":
            return False
        self.session = name
        await self._send(
            "POST", {"do": "accept"}, [json.loads(notification("notifications/initialized", {}))]
        )
        return True

    # -------------------------------------------------------------- sending

    async def _send(self, method: str, wish: Json, messages: list[Json] | None = None, **how: Any) -> Reply:
        wish = self._buried(wish) if self.grave else wish
        if self.rng.random() < 0.05 and wish["do"] not in ("hold", "sleepy"):
            wish = {"do": "redirect", "then": seeded(self.rng, **wish)}
        return await self.wire.send(
            method,
            seeded(self.rng, **wish),
            messages or (),
            session=self.session,
            auth=self.auth,
            reads_body=self.rng.random() < 0.8,
            **how,
        )

    def _buried(self, wish: Json) -> Json:
        """On a lost session nearly everything is refused."""
        if self.grave is None or self.rng.random() < 0.15 or wish["do"] == "hold":
            return wish
        return {"do": "refuse", "status": self.grave[0], "body": self.grave[1]}

    def _refusal(self) -> Json:
        status, bodies = self.rng.choice(REFUSALS)
        return {"do": "refuse", "status": status, "body": self.rng.choice(bodies)}

    def _maybe_refused(self, wish: Json) -> Json:
        dice = self.rng.random()
        if dice < 0.12:
            return self._refusal()
        return {"do": "drop"} if dice < 0.15 else wish

    def _request(self, method: str, **params: Any) -> Json:
        self.ids += 1
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}

    # -------------------------------------------------------------- steps

    async def _wait(self) -> None:
        await self.wire.sleep(0.3)

    async def _ping(self) -> None:
        await self._send("POST", self._maybe_refused({"do": "result"}), [self._request("ping")])

    async def _ask(self) -> None:
        wish = {"do": "result", "error": self.rng.choice((0, 0, -32602))}
        if self.rng.random() < 0.1:
            wish = {"do": "accept"}
        await self._send("POST", self._maybe_refused(wish), [self._request("tools/list")])

    async def _stray(self) -> None:
        """An answer to what was never asked."""
        await self._answer("never-asked")

    async def _foreign(self) -> None:
        """A cursor from somewhere else, tried again and again."""
        cursor = f"foreign-{self.rng.random()}"
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            await self._send("GET", {"do": self.rng.choice(("nothing", "prime"))}, cursor=cursor)

    async def _bury(self) -> None:
        """The session is lost, or found again."""
        if self.session is not None:
            self.grave = None if self.grave else self.rng.choice(GRAVES)

    async def _answer(self, identifier: str) -> None:
        answer: Json = {"jsonrpc": "2.0", "id": identifier, "result": {"action": "accept"}}
        wish: Json = {"do": "accept"}
        if self.rng.random() < 0.3:
            wish = self.rng.choice((self._refusal(), self._refusal(), {"do": "drop"},
                                    {"do": "refuse", "status": 200, "body": "rpc"}))  # fmt: skip
        await self._send("POST", wish, [answer])
        if self.rng.random() < 0.1:
            await self._send("POST", {"do": "accept"}, [answer])

    async def _questions(self, frames: list[Frame]) -> None:
        """Answers most of what the server asks."""
        for frame in frames:
            message = json.loads(frame.data) if frame.data else {}
            if "method" in message and "id" in message:
                self.asked = message["id"], message["method"]
            if "method" in message and "id" in message and self.rng.random() < 0.7:
                await self._answer(message["id"])

    # -------------------------------------------------------------- calls and their resumes

    async def _call(self) -> None:
        request = self._request("tools/call", name="t")
        wish: Json = {"do": "operate", "ids": self.rng.random() < 0.85}
        if wish["ids"] and self.rng.random() < 0.3:
            wish["retry"] = self.rng.choice((300, 600))
        if self.rng.random() < 0.1:
            wish["collide"] = True
        if self.rng.random() < 0.75:
            wish |= {"cut": self.rng.random(), "end": self.rng.choice(CUTS)}
        how: Json = {}
        if self.rng.random() < 0.06:
            wish, how = wish | {"end": "stall", "cut": 0.5}, {"timeout": SHORT_LIMIT}
        wish = self._maybe_refused(wish)
        closes = self.rng.random() < 0.1
        heard: list[Frame] = []

        async def want(frames: list[Frame]) -> bool:
            heard.extend(frames)
            await self._questions(frames)
            return closes or (any(is_result(f) for f in frames) and wish["end"] != "stall")

        if self.wire.family.is_async and self.rng.random() < 0.04:
            wish = wish | {"end": "stall", "cut": 0.7} if wish["do"] == "operate" else {"do": "sleepy"}
            await cancelled_after(0.2, self._send("POST", wish, [request], want=want))
            reply = Reply(0, 200, is_stream=True)
        else:
            wish.setdefault("end", "clean")
            reply = await self._send("POST", wish, [request], want=want, **how)
        if reply.is_stream:
            await self._resume(request, heard, wish.get("retry"))

    async def _resume(self, request: Json, heard: list[Frame], retry: int | None) -> None:
        """Comes back for the rest, as long as there is a cursor and patience."""
        for _ in range(self.rng.randrange(RESUMES)):
            cursor = next((f.id for f in reversed(heard) if f.id), None)
            is_done = any(is_result(f) for f in heard)
            if cursor is None or (is_done and self.rng.random() < 0.9) or self.stop.is_set():
                return
            await self.wire.sleep(0.8 if retry and self.rng.random() < 0.5 else self.rng.uniform(0.0, 0.05))
            await self._try(cursor, heard)
            if self.rng.random() < 0.06:
                named = notification("notifications/cancelled", {"requestId": request["id"]})
                await self._send("POST", {"do": "accept"}, [json.loads(named)])
            if self.rng.random() < 0.1:
                await self._ping()

    async def _try(self, cursor: str | None, heard: list[Frame]) -> None:
        """One GET, and what goes wrong with it."""
        fault = weighed(self.rng, FAULTS)
        wish, how = self._wished(fault)
        stops = fault == "leave"

        async def want(frames: list[Frame]) -> bool:
            heard.extend(frames)
            await self._questions(frames)
            return stops

        if fault == "leave" and self.wire.family.is_async and self.rng.random() < 0.5:
            wish = {"do": self.rng.choice(("nothing", "sleepy")), "end": "stall"}
            await cancelled_after(0.15, self._send("GET", wish, cursor=cursor, want=want))
            return
        reply = await self._send("GET", wish, cursor=cursor, want=want, **how)
        if reply.status == 401 and self.rng.random() < 0.5:
            self.auth = f"token-{self.rng.randrange(1000)}"

    def _wished(self, fault: str) -> tuple[Json, Json]:
        rng = self.rng
        end = rng.choice(CUTS)
        plain: dict[str, tuple[Json, Json]] = {
            "replay": ({"do": "replay", "end": end, "cut": rng.choice((None, rng.random()))}, {}),
            "again": ({"do": "again", "end": end}, {}),
            "reprompt": ({"do": "reprompt", "end": end, "params": rng.choice(METAS)}, {}),
            "prime": ({"do": "prime", "end": end}, {}),
            "nothing": ({"do": "nothing", "comments": rng.randrange(2)}, {}),
            "quiet": ({"do": "nothing", "hold": QUIET, "comments": rng.randrange(2), "end": end}, {}),
            "idle": ({"do": "replay", "hold": IDLE, "end": end, "cut": 0.5}, {}),
            "cut": ({"do": "nothing", "end": rng.choice(("reset", "short"))}, {}),
            "refuse": (self._refusal(), {}),
            "other": ({"do": "refuse", "status": 200, "body": rng.choice(("html", "vendor", "text"))}, {}),
            "drop": ({"do": "drop"}, {}),
            "sleepy": ({"do": "sleepy"}, {"timeout": SHORT_LIMIT}),
            "stall": (
                {"do": rng.choice(("nothing", "replay")), "end": "stall", "cut": 0.3},
                {"timeout": SHORT_LIMIT},
            ),
            "redirect": ({"do": "redirect", "then": seeded(rng, do="replay")}, {}),
            "leave": ({"do": "replay", "cut": 0.9}, {}),
        }
        if fault == "other" and rng.random() < 0.3:
            return {"do": "accept", "status": rng.choice((202, 204))}, {}
        return plain[fault]

    # -------------------------------------------------------------- standalone streams

    async def _standalone(self) -> None:
        """The stream without a request: opened, ended, opened again, with a cursor or without."""
        heard: list[Frame] = []
        for _ in range(self.rng.randrange(1, 4)):
            cursor = next((f.id for f in reversed(heard) if f.id), None)
            if cursor is None or self.rng.random() < 0.3:
                cursor = None
            if cursor is None and self.rng.random() < 0.6:
                wish = {"do": "operate", "end": self.rng.choice(CUTS), "ids": self.rng.random() < 0.8}

                async def want(frames: list[Frame]) -> bool:
                    heard.extend(frames)
                    await self._questions(frames)
                    return False

                await self._send("GET", wish, want=want)
            else:
                await self._try(cursor, heard)
            await self.wire.sleep(self.rng.uniform(0.0, 0.05))

    async def _held(self) -> None:
        """A standalone stream beside calls, on which things are pushed."""
        number = next(self.wire.journal.numbers)
        key = self.session or self.wire.name
        seen: list[Frame] = []
        ended = threading.Event()

        async def want(frames: list[Frame]) -> bool:
            seen.extend(frames)
            return False

        async def listen() -> None:
            try:
                wish = seeded(self.rng, do="hold")
                await self.wire.send(
                    "GET", wish, session=self.session, auth=self.auth, want=want, number=number, timeout=60
                )
            finally:
                ended.set()

        waiting = self._beside(listen())
        await self._until(lambda: number in self.wire.journal.served or ended.is_set())
        await self._until(lambda: self.wire.journal.served[number].status != 0 or ended.is_set())
        await self.wire.sleep(0.05)
        pushed = 0
        for n in range(self.rng.randrange(1, 4)):
            frames = self._news(number, n)
            pushed += len(frames)
            self.server.push(key, number, frames)
            await self._until(lambda count=pushed: len(seen) >= count or ended.is_set())
            await self._questions(frames)
            await getattr(self, self.rng.choice(("_ask", "_ping", "_call")))()
        end = self.rng.choice(("clean", "clean", "reset", "short"))
        self.server.push(key, number, [], end)
        await self._until(ended.is_set)
        if waiting is not None:
            await waiting

    def _news(self, number: int, n: int) -> list[Frame]:
        """What a standalone stream tells: changes, old answers, questions."""
        name = f"{number}/{n}"
        kinds = (
            Frame(name, notification("notifications/tools/list_changed", {})),
            Frame(None, notification("notifications/message", {"data": "x"})),
            Frame(name, json.dumps({"jsonrpc": "2.0", "id": self.ids, "result": {}})),
            Frame(name, json.dumps({"jsonrpc": "2.0", "id": f"nobody-{number}", "result": {}})),
            Frame(name, asking(f"h{number}", "elicitation/create")),
            Frame(name, asking(*self.asked)),
            Frame(comment="ping"),
        )
        return [self.rng.choice(kinds)]

    def _beside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None] | None":
        """Do something beside: a task, or a thread."""
        if self.wire.family.is_async:
            return asyncio.ensure_future(work)

        def drive() -> None:
            with contextlib.suppress(StopIteration):
                work.send(None)

        threading.Thread(target=drive, daemon=True).start()
        return None

    async def _until(self, fits: Any) -> None:
        while not fits():
            await self.wire.sleep(0.005)


METAS: Final[tuple[Json | None, ...]] = (None, None, {"progressToken": 7}, {"example.org/live": True})


def is_result(frame: Frame) -> bool:
    """Whether a frame answers a request."""
    return bool(frame.data) and ('"result"' in str(frame.data) or '"error"' in str(frame.data))
