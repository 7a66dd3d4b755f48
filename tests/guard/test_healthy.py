"""What is healthy passes byte for byte: the same chunks with the guard as without it, probes and all."""

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


@pytest.mark.filterwarnings(
    "ignore:Async generator:ResourceWarning"
)  # closed early, on trio: the libraries' own
@pytest.mark.parametrize("story", STORIES)
def test_the_same_chunks_with_the_guard_as_without(story: str, world: World) -> None:
    """And the guard did nothing that is counted."""
    streams, end, play = STORIES[story]
    plain = world.run(sends(streams, end), play, guard=False)
    guarded = world.run(sends(streams, end), play)

    assert [(got.status, got.error) for got in plain] == [(got.status, got.error) for got in guarded]
    assert [got.body for got in plain] == [got.body for got in guarded]
    if story != "prompt in time":
        assert [got.chunks for got in plain] == [got.chunks for got in guarded]
    assert world.marks() == []


# ------------------------------------------------------------------ the stories of the folder beside this one


@pytest.fixture(scope="module")
def host() -> Iterator[Server]:
    """Their own server."""
    made = Server()
    yield made
    made.close()


def _tellings() -> Iterator[object]:
    for name in ("httpx-sync", "httpx2-async"):
        family = FAMILIES[name]
        for story in TOLD:
            resumed = any(step.request is not None and step.request.cursor for step in story.steps)
            if story.rank or story.xfail or (not family.is_async and (story.uses("cancel") or not resumed)):
                continue
            yield pytest.param(story, family, id=f"{name}-{story.says}")


@pytest.mark.parametrize(("story", "family"), list(_tellings()))
def test_a_story_in_which_the_guard_finds_nothing_is_told_as_ever(
    story: Story, family: Family, host: Server
) -> None:
    """The host itself checks that each chunk is read as it was sent; and what is counted stays the same."""
    memory = in_memory()
    guarded = replace(story, options={**story.options, "guard": True, "guard_probe": False})
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
    if not acted:
        assert player.faults == []


def _actions(scene: LoopbackHost) -> float:
    return sum(point.value for point in scene.collect() if point.metric == "sse.client.guard.actions")
