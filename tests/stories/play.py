"""Plays a story on a host: the facts may be built by hand, or by a real client of a real server."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from opentelemetry.sdk.trace import ReadableSpan

from .findings import Point, unlawful, wrong_points, wrong_spans
from .script import Head, Request, Step, Story


class Host(Protocol):
    """Where a story happens."""

    scale: float
    """How long one second of a story takes."""

    async def sleep(self, seconds: float) -> None: ...

    async def send(self, name: str, request: Request, heads: Sequence[Head]) -> None:
        """Send a request and get the head of its response, or whatever there is instead."""

    async def give(self, name: str, chunk: bytes) -> None:
        """A chunk of an open response comes, and is read."""

    async def end(self, name: str, how: str) -> None:
        """An open response ends."""

    async def gone(self, pool: str) -> None:
        """A client is thrown away."""

    def collect(self) -> list[Point]: ...

    def spans(self) -> Sequence[ReadableSpan]: ...


_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS, "raw-deflate": -zlib.MAX_WBITS}


class Player:
    """Plays one story; `faults` is what was not as told.

    Args:
        story: what to play.
        host: where.
    """

    def __init__(self, story: Story, host: Host) -> None:
        self.story = story
        self.host = host
        self.faults: list[str] = []
        self.seen: list[Point] = []
        self._coders: dict[str, Any] = {}

    async def play(self) -> None:
        """The whole story, and a look at what it left."""
        for step in self.story.steps:
            await self._step(step)
        points = self._collect()
        literal = self.host.scale == 1
        self.faults += wrong_points(self.story.expect, points, literal=literal)
        self.faults += wrong_spans(self.story.spans, self.host.spans())

    def _collect(self) -> list[Point]:
        points = self.host.collect()
        self.seen += points
        self.faults += unlawful(points)
        return points

    async def _step(self, step: Step) -> None:
        await self.host.sleep(step.after * self.host.scale)
        if step.order:
            await self._order(step.order)
        if step.request is not None:
            coding = step.heads[-1].coding
            if coding in _WINDOWS:
                self._coders[step.name] = zlib.compressobj(wbits=_WINDOWS[coding])
            await self.host.send(step.name, step.request, step.heads)
            if step.heads[-1].instead:
                return
        for part in step.parts:
            if part.kind == "wait":
                await self.host.sleep(part.seconds * self.host.scale)
            elif part.kind == "chunk":
                await self.host.give(step.name, self._coded(step.name, part.chunk(self.host.scale)))
            else:
                await self.host.end(step.name, part.kind)

    def _coded(self, name: str, data: bytes) -> bytes:
        coder = self._coders.get(name)
        return data if coder is None else coder.compress(data) + coder.flush(zlib.Z_SYNC_FLUSH)

    async def _order(self, order: str) -> None:
        word, _, rest = order.partition(" ")
        if word == "gone":
            await self.host.gone(rest)
            return
        points = self._collect()
        if rest:
            faults = wrong_points([rest], points, literal=self.host.scale == 1)
            self.faults += [f"midway, {fault}" for fault in faults if fault.startswith(rest)]


def headers_of(story: Story, request: Request) -> Mapping[str, str]:
    """The headers of a request: the story's own, unless the request has others."""
    keys = request.keys
    headers = {
        "Accept": "application/json" if keys.get("accept") == "no" else "application/json, text/event-stream",
        "MCP-Protocol-Version": keys.get("version", story.version),
        "Mcp-Session-Id": keys.get("session", story.session),
        "Last-Event-ID": request.cursor or "",
        "Authorization": keys.get("auth", ""),
        "Content-Type": "application/json" if request.messages else "",
    }
    return {key: value for key, value in headers.items() if value}


def fields_of(head: Head) -> Mapping[str, str]:
    """The headers of a response."""
    fields = {
        "Content-Type": head.media,
        "Content-Encoding": "deflate" if head.coding == "raw-deflate" else head.coding,
        "Location": head.location,
        "Mcp-Session-Id": head.headers.get("session", ""),
    }
    own = {key: value for key, value in head.headers.items() if key != "session"}
    return {key: value for key, value in {**fields, **own}.items() if value}
