"""A server for all tests of a module, and a world for each test."""

from collections.abc import Iterator

import pytest
from tests.conftest import Family, Memory
from tests.guard.wire import Wire, serving
from tests.guard.world import World


@pytest.fixture(scope="module")
def server() -> Iterator[Wire]:
    with serving() as wire:
        yield wire


@pytest.fixture
def world(family: Family, server: Wire, memory: Memory) -> World:
    return World(family, server, memory)
