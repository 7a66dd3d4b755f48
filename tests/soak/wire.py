"""A client that writes down what it sends, hears and suffers; sync or async, on httpx or httpx2."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.conftest import Family

from .journal import Ended, Frame, Head, Heard, Journal, Json, NoAnswer, Parser, Sent

ACCEPT: Final = "application/json, text/event-stream"
READ_LIMIT: Final = 3.0
"""Seconds without a byte before a client has had enough; only a stall lasts so long."""

Want = Callable[[list[Frame]], Awaitable[bool]]
"""Takes the frames of a chunk; whether to stop reading."""


@dataclass(slots=True)
class Reply:
    """What became of a request, as its sender sees it."""

    n: int
    status: int | None = None
    is_stream: bool = False
    frames: list[Frame] = field(default_factory=list)
    how: str = ""


class Wire:
    """One client, with its journal.

    Args:
        family: library and colour.
        url: of the server.
        journal: where it writes.
        number: of this client.
    """

    def __init__(self, family: Family, url: str, journal: Journal, number: int) -> None:
        self.family = family
        self.journal = journal
        self.number = number
        self.url = url
        self.lives = 0
        self.client: Any = None
        self.renew()

    @property
    def name(self) -> str:
        """What cursors are scoped by where there is no session: another client, another name."""
        return f"client-{self.number}-{self.lives}"

    def renew(self) -> None:
        """A new client: its transport knows nothing of what the one before had seen."""
        self.lives += 1
        self.client = self.family.client(timeout=READ_LIMIT, follow_redirects=True)

    async def sleep(self, seconds: float) -> None:
        if self.family.is_async:
            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)  # noqa: ASYNC251 - nobody else runs in its thread

    async def close(self) -> None:
        if self.family.is_async:
            await self.client.aclose()
        else:
            self.client.close()

    async def send(
        self,
        method: str,
        wish: Json,
        messages: Sequence[Json] = (),
        *,
        session: str | None = None,
        cursor: str | None = None,
        auth: str = "a",
        want: Want | None = None,
        timeout: float = READ_LIMIT,
        reads_body: bool = True,
        number: int | None = None,
    ) -> Reply:
        """One request, read to the end or as far as `want` wants."""
        n = number if number is not None else next(self.journal.numbers)
        headers = {
            "Accept": ACCEPT,
            "MCP-Protocol-Version": "2025-11-25",
            "Authorization": auth,
            "X-Number": str(n),
            "X-Client": self.name,
            "X-Wish": json.dumps(wish),
            **({"Mcp-Session-Id": session} if session else {}),
            **({"Last-Event-ID": cursor} if cursor else {}),
        }
        body = {"json": messages[0]} if messages else {}
        request = self.client.build_request(method, self.url, headers=headers, timeout=timeout, **body)
        self.journal.write(
            Sent(n, self.journal.now(), method, self.name, session, cursor, auth, tuple(messages))
        )
        reply = Reply(n)
        try:
            sent = self.client.send(request, stream=True)
            response = await sent if self.family.is_async else sent
        except BaseException as error:
            reply.how = how_of(error)
            why = "cancelled" if reply.how == "closed" else reply.how
            self.journal.write(NoAnswer(n, self.journal.now(), why))
            if not isinstance(error, Exception):
                raise
            return reply
        media = response.headers.get("content-type", "").partition(";")[0]
        reply.status, reply.is_stream = response.status_code, media == "text/event-stream"
        given = response.headers.get("mcp-session-id")
        self.journal.write(Head(n, self.journal.now(), response.status_code, reply.is_stream, given))
        if reply.is_stream:
            await self._read(response, reply, want)
        else:
            await self._read_body(response, reply, reads_body=reads_body)
        return reply

    async def _read(self, response: Any, reply: Reply, want: Want | None) -> None:
        parser = Parser()
        chunks = response.aiter_raw() if self.family.is_async else response.iter_raw()
        reply.how = "clean"
        try:
            while True:
                chunk = await anext(chunks) if self.family.is_async else next(chunks)
                frames = parser.feed(chunk)
                reply.frames += frames
                self.journal.write(Heard(reply.n, self.journal.now(), tuple(frames)))
                if want is not None and await want(frames):
                    reply.how = "closed"
                    break
        except (StopIteration, StopAsyncIteration):
            pass
        except BaseException as error:
            reply.how = how_of(error)
            if not isinstance(error, Exception):
                raise
        finally:
            try:
                await self._close(response, chunks)
            finally:
                self.journal.write(Ended(reply.n, self.journal.now(), reply.how))

    async def _read_body(self, response: Any, reply: Reply, *, reads_body: bool) -> None:
        """Chunk by chunk: what was read before a cancellation was read."""
        body, chunks = b"", None
        reply.how = "clean"
        try:
            if reads_body and self.family.is_async:
                chunks = response.aiter_raw()
                async for chunk in chunks:
                    body += chunk
            elif reads_body:
                chunks = response.iter_raw()
                for chunk in chunks:
                    body += chunk
        finally:
            try:
                await self._close(response, chunks)
            finally:
                self.journal.write(Ended(reply.n, self.journal.now(), "clean", body))

    async def _close(self, response: Any, chunks: Any) -> None:
        if self.family.is_async:
            if chunks is not None:
                await chunks.aclose()
            await response.aclose()
        else:
            if chunks is not None:
                chunks.close()
            response.close()


def how_of(error: BaseException) -> str:
    """How an exchange ended that raised."""
    if not isinstance(error, Exception):
        return "closed"
    return "timeout" if any(c.__name__ == "TimeoutException" for c in type(error).__mro__) else "broken"


async def cancelled_after(seconds: float, work: Awaitable[Reply]) -> None:
    """Begin something and give it up."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])


def seeded(rng: random.Random, **wish: Any) -> Json:
    """A wish, with what makes the server's own choices repeatable."""
    return {"end": "clean", "hold": 0.0, "seed": rng.randrange(1 << 30), **wish}
