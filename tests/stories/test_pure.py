"""All stories, told by the calls that a transport makes, on a clock that is set."""

from functools import cache

import pytest
from tests.conftest import FAMILIES

from .play import Player
from .pure import PureHost
from .script import Story, stories


def told(story: Story) -> Player:
    """The story after its end."""
    player = Player(story, PureHost(story))
    FAMILIES["httpx-sync"].run(player.play)
    return player


@cache
def all_stories() -> tuple[Story, ...]:
    return tuple(stories())


def marked(story: Story) -> object:
    marks = [pytest.mark.xfail(reason=story.xfail, strict=True)] if story.xfail else []
    return pytest.param(story, id=story.says, marks=marks)


@pytest.mark.parametrize("story", [marked(story) for story in all_stories()])
def test_story(story: Story) -> None:
    """Every story leaves behind what it says, and nothing that the catalogue does not have."""
    assert told(story).faults == []


def test_names() -> None:
    """No fact is told twice under one name."""
    names = [story.says for story in all_stories()]
    assert sorted(set(names)) == sorted(names)
