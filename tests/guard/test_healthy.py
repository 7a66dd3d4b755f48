"""What is healthy passes byte for byte: the same chunks with the guard as without it, and the same requests.

The one thing that the guard adds is its own ping, at most one for each resume of a session, which the client does not
see; the one thing that it changes is that a resume asks for an event stream without compression.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest
from tests.conftest import FAMILIES, Family, in_memory
from tests.guard.wire import (
    PROGRESS,
    PROMPT,
    Asked,
    Chunk,
    Got,
    McpClient,
    Reply,
    event,
    pong,
    request,
    result,
)
from tests.guard.world import ANSWER, CALL, World
from tests.stories.loopback import LoopbackHost, Server
from tests.stories.play import Player
from tests.stories.script import Story
from tests.stories.test_loopback import TOLD

from opentelemetry.instrumentation.httpx_sse.guard._answers import OWN_ID

Play = Callable[[McpClient], Awaitable[list[Got]]]
Streams = dict[str, tuple[Chunk, ...]]
"""What the server sends to a call ("") and to a resume from each cursor."""


def sends(streams: Streams, end: str = "clean") -> Callable[[Asked], Reply]:
    """A server that sends these streams, takes answers and answers pings."""

    def behave(asked: Asked) -> Reply:
        if asked.message.get("method") == "ping":
            return pong(asked)
        if asked.message and "method" not in asked.message:
            return Reply(202, "")
        return Reply(chunks=streams[asked.cursor], end="clean" if asked.cursor else end)

    return behave


def resumes(*cursors: str) -> Play:
    """A call, and resumes from these cursors."""

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), *[await client.get(cursor) for cursor in cursors]]

    return play


async def answers(client: McpClient) -> list[Got]:
    """The answer to a prompt that came a second time is given, and then the result is read."""
    return [
        await client.post(CALL),
        await client.get("e1", events=1),
        await client.post(ANSWER),
        await client.get("e2"),
    ]


async def lives(client: McpClient) -> list[Got]:
    """A replay, an ordinary request, and a ping of the client's own."""
    got = [await client.post(CALL), await client.get("e1")]
    return [*got, await client.post(request(2, "tools/list")), await client.post(request(3, "ping"))]


DONE = event(result(1), "e9")
CRLF = DONE.replace(b"\n", b"\r\n")
FRAMED = (
    b"\xef\xbb\xbf: hello\n\n",
    b": ping\n",
    b"event: message\nid: e2\nda",
    b"ta: " + DONE.partition(b"data: ")[2],
    b":\r\n",
)
STORIES: dict[str, tuple[Streams, str, Play]] = {
    "polling": (
        {
            "": (event("", "e1", retry=10),),
            "e1": (event("", "e2"),),
            "e2": (event("", "e3"),),
            "e3": (event("", "e4"),),
            "e4": (event("", "e5"),),
            "e5": (DONE,),
        },
        "clean",
        resumes("e1", "e2", "e3", "e4", "e5"),
    ),
    "a slow tool": (
        {"": (event("", "e1"),), "e1": (0.3, event(PROGRESS, "e2"), 0.3, DONE)},
        "clean",
        resumes("e1"),
    ),
    "resume recovers": ({"": (event("", "e1"), event(PROGRESS, "e2")), "e2": (DONE,)}, "cut", resumes("e2")),
    "progress each time": (
        {
            "": (event("", "e1"),),
            **{f"e{n}": (event(PROGRESS, f"e{n + 1}"),) for n in range(1, 6)},
            "e6": (DONE,),
        },
        "cut",
        resumes("e1", "e2", "e3", "e4", "e5", "e6"),
    ),
    "prompt in time": (
        {"": (event("", "e1"), event(PROMPT, "e2")), "e1": (event(PROMPT, "e2"), 0.2), "e2": (DONE,)},
        "cut",
        answers,
    ),
    "alive after replay": ({"": (event("", "e1"),), "e1": (DONE,)}, "clean", lives),
    "crlf": (
        {"": (event("", "e1").replace(b"\n", b"\r\n"),), "e1": (CRLF[:-3], CRLF[-3:])},
        "clean",
        resumes("e1"),
    ),
    "framing": ({"": (event("", "e1"),), "e1": FRAMED}, "clean", resumes("e1")),
    "an unfinished event": (
        {"": (event("", "e1"),), "e1": (event(PROGRESS, "e2"), b"data: {")},
        "clean",
        resumes("e1"),
    ),
    "two events a chunk": (
        {"": (event("", "e1") + event(PROGRESS, "e2"),), "e2": (event(PROGRESS, "e3") + DONE,)},
        "cut",
        resumes("e2"),
    ),
    "nothing to say": ({"": (event("", "e1"),), "e1": (1.1,)}, "clean", resumes("e1", "e1", "e1")),
}


def own(world: World) -> list[tuple[str, dict[str, str], object]]:
    """The client's own requests as they reached the server, but for the coding that a resume accepts."""
    return [
        (
            each.method,
            {k: v for k, v in each.headers.items() if not each.cursor or k != "accept-encoding"},
            each.message,
        )
        for each in world.wire.asked
        if not each.is_probe
    ]


@pytest.mark.filterwarnings(
    "ignore:Async generator:ResourceWarning"
)  # closed early, on trio: the libraries' own
@pytest.mark.parametrize("story", STORIES)
def test_the_same_chunks_with_the_guard_as_without(story: str, world: World) -> None:
    """And the guard did nothing that is counted."""
    streams, end, play = STORIES[story]
    plain = world.run(sends(streams, end), play, guard=False)
    asked = own(world)
    guarded = world.run(sends(streams, end), play)

    assert own(world) == asked
    assert 0 < world.wire.probes <= world.wire.resumes
    assert [(got.status, got.error) for got in plain] == [(got.status, got.error) for got in guarded]
    assert [got.body for got in plain] == [got.body for got in guarded]
    if story != "prompt in time":
        assert [got.chunks for got in plain] == [got.chunks for got in guarded]
    assert world.marks() == []


# ------------------------------------------------------------------ the stories of the folder beside this one


class AnsweringServer(Server):
    """Does what it is told, and answers pings of the guard by itself, as any server does."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *([0-9]+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if OWN_ID.encode() in body:
            answer = json.dumps(result(json.loads(body)["id"])).encode()
            fields = (b"HTTP/1.1 200 x", b"Content-Type: application/json", b"Connection: close")
            writer.write(b"\r\n".join((*fields, b"Content-Length: %d" % len(answer), b"", answer)))
            writer.close()
            return
        again = asyncio.StreamReader()
        again.feed_data(head + body)
        await super()._serve(again, writer)


@pytest.fixture(scope="module")
def host() -> Iterator[Server]:
    """Their own server."""
    made = AnsweringServer()
    yield made
    made.close()


def _resumes(story: Story) -> bool:
    return any(step.request is not None and step.request.cursor for step in story.steps)


def _tellings() -> Iterator[object]:
    for name in ("httpx-sync", "httpx2-async"):
        family = FAMILIES[name]
        for story in TOLD:
            if story.rank or story.xfail:
                continue
            if not family.is_async and (story.uses("cancel") or not _resumes(story)):
                continue
            yield pytest.param(story, family, False, id=f"{name}-{story.says}")
            if family.is_async and _resumes(story):
                yield pytest.param(story, family, True, id=f"{name}-probed-{story.says}")


@pytest.mark.parametrize(("story", "family", "probe"), list(_tellings()))
def test_a_story_in_which_the_guard_finds_nothing_is_told_as_ever(
    story: Story, family: Family, host: Server, probe: bool
) -> None:
    """The host itself checks that each chunk is read as it was sent; without probes what is counted stays the same."""
    memory = in_memory()
    guarded = replace(story, options={**story.options, "guard": True, "guard_probe": probe})
    scene = LoopbackHost(guarded, family, host, memory, 0.1)
    player = Player(guarded, scene)

    async def play() -> None:
        try:
            await player.play()
        finally:
            await scene.close()

    acted = 0.0
    with scene.instrumented():
        try:
            family.run(play)
        except Exception:
            acted = _actions(scene)
            if not acted:
                raise
        acted = acted or _actions(scene)
    memory.close()
    if not acted and not probe:
        assert player.faults == []


def _actions(scene: LoopbackHost) -> float:
    return sum(point.value for point in scene.collect() if point.metric == "sse.client.guard.actions")
