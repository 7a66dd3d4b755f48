"""The guard over real connections, for every client family: a fault fails once, and nothing else is touched."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.conftest import Family, Memory
from tests.guard.wire import (
    CANCELLED,
    PRIME,
    PROGRESS,
    PROMPT,
    Asked,
    Got,
    McpClient,
    Reply,
    Wire,
    error,
    event,
    pong,
    request,
    result,
    said,
    serving,
)
from tests.lifecycle.world import total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

CALL = request(1)
ANSWER = result("q1", action="accept")
UNKNOWN = said(error(None, "unknown request id"), 404)
GONE = said(error(None, "Session not found", -32001), 404)


@pytest.fixture(scope="module")
def server() -> Iterator[Wire]:
    with serving() as wire:
        yield wire


@contextmanager
def guarded(memory: Memory, **options: Any) -> Iterator[None]:
    instrumentor = HTTPXSSEInstrumentor()
    instrumentor.instrument(
        meter_provider=memory.meter_provider, tracer_provider=memory.tracer_provider, **{"guard": True, **options}
    )
    try:
        yield
    finally:
        instrumentor.uninstrument()


Play = Callable[[McpClient], Awaitable[list[Got]]]


class World:
    """One client, one server, one guard."""

    def __init__(self, family: Family, wire: Wire, memory: Memory) -> None:
        self.family, self.wire, self.memory = family, wire, memory

    def run(
        self,
        behaviour: Callable[[Asked], Reply],
        play: Play,
        *,
        session: str = "S1",
        version: str = "2025-11-25",
        **options: Any,
    ) -> list[Got]:
        self.wire.behaviour = behaviour
        self.wire.asked.clear()

        async def main() -> list[Got]:
            client = McpClient(self.family, self.wire.url, self.family.client(), session=session, version=version)
            try:
                return await play(client)
            finally:
                await client.close()

        with guarded(self.memory, **options):
            return self.family.run(main)  # type: ignore[arg-type]

    def actions(self, action: str) -> float:
        return total(self.memory, "sse.client.guard.actions", **{"sse.guard.action": action})

    def marks(self) -> list[str]:
        spans = self.memory.exporter.get_finished_spans()
        events = [each for span in spans for each in span.events if each.name == "sse.guard"]
        return [str((each.attributes or {})["sse.guard.action"]) for each in events]


@pytest.fixture
def world(family: Family, server: Wire, memory: Memory) -> World:
    return World(family, server, memory)


def by(post: Reply, *resumes: Reply, answer: Reply | None = None) -> Callable[[Asked], Reply]:
    """A server with one reply to calls, one to each resume in turn (the last again and again), and pings answered."""
    left = list(resumes)

    def behave(asked: Asked) -> Reply:
        if asked.method == "GET":
            return left.pop(0) if len(left) > 1 else left[0]
        if asked.message.get("method") == "ping":
            return pong(asked)
        return (answer or Reply(202, "")) if "method" not in asked.message else post

    return behave


EMPTY = Reply()
PRIMED = Reply(chunks=(PRIME,))


# ------------------------------------------------------------------ the breaker


def test_after_three_resumes_in_vain_the_stream_ends_with_one_error(world: World) -> None:
    """The third empty replay ends with the error that the caller waits for; a fourth resume does not leave."""

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), *[await client.get("e1") for _ in range(5)]]

    _, first, second, third, fourth, fifth = world.run(by(PRIMED, EMPTY), play)

    assert (first.body, second.body) == (b"", b"")
    assert third.messages[0]["id"] == 1
    assert third.failure["code"] == -32000
    assert third.failure["data"] == {
        "disposition": "ambiguous",
        "reason": "empty_replay",
        "next": "retry_from_scratch",
        "by": "opentelemetry-instrumentation-httpx-sse guard",
    }
    assert "from scratch" in third.failure["message"]
    assert fourth.failure
    assert fifth.failure
    assert world.wire.resumes == 3
    assert world.actions("breaker_opened") == 1
    assert world.actions("resume_refused") == 2
    assert world.marks().count("breaker_opened") == 1
