"""The stories that fit into a short time, told over real connections by every client family."""

from collections.abc import Iterator

import pytest
from tests.conftest import FAMILIES, Family, in_memory

from .loopback import SCALES, LoopbackHost, Server
from .play import Player
from .script import Story, stories

LONGEST = 12.0
"""Seconds of a story, in its own time, that a connection is kept waiting for it."""

ALL = tuple(stories())
TOLD = tuple(story for story in ALL if not story.pure and story.rank < 2)
"""A combination whose parts are all told elsewhere is left to the pure host."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for all stories."""
    made = Server()
    yield made
    made.close()


def _id(story: Story) -> str:
    return story.says


def faults_of(story: Story, family: Family, server: Server, scale: float) -> list[str]:
    """What is not as told, of one telling."""
    memory = in_memory()
    host = LoopbackHost(story, family, server, memory, scale)
    player = Player(story, host)

    async def play() -> None:
        try:
            await player.play()
        except family.module.TimeoutException as error:
            player.faults.append(repr(error))
        finally:
            await host.close()

    with host.instrumented():
        family.run(play)
    memory.close()
    return player.faults


def tellings() -> Iterator[object]:
    """Every story by every family; those that differ in one word only by one family of each colour."""
    for name, family in FAMILIES.items():
        for story in TOLD:
            if story.rank and name not in ("httpx-sync", "httpx2-async"):
                continue
            if not family.is_async and story.uses("cancel"):
                continue  # nobody cancels a synchronous client
            marks = [pytest.mark.xfail(reason=story.xfail, strict=True)] if story.xfail else []
            if family.backend == "trio":
                # Both libraries leave generators of theirs to the garbage collector when a response is closed early.
                marks.append(pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"))
            yield pytest.param(story, family, id=f"{name}-{story.says}", marks=marks)


@pytest.mark.parametrize(("story", "family"), list(tellings()))
def test_story(story: Story, family: Family, server: Server) -> None:
    """A story leaves behind the same over a connection as when it is told by hand."""
    faults: list[str] = []
    for scale in SCALES:
        faults = faults_of(story, family, server, scale)
        if not faults:
            break
    assert faults == []


@pytest.mark.parametrize("story", ALL, ids=_id)
def test_length(story: Story) -> None:
    """A story that takes long is told by hand only, and says so."""
    assert story.pure or sum(step.seconds for step in story.steps) <= LONGEST


def test_families() -> None:
    """Both libraries are there in both colours, and the asynchronous ones on both frameworks."""
    assert len(FAMILIES) == 6
