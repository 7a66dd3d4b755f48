"""One client, one server, one guard: what the loopback tests of this folder are told in."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.conftest import Family, Memory
from tests.guard.wire import (
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
)
from tests.lifecycle.world import total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

CALL = request(1)
ANSWER = result("q1", action="accept")
UNKNOWN = said(error(None, "unknown request id"), 404)
GONE = said(error(None, "Session not found", -32001), 404)


@contextmanager
def guarded(memory: Memory, **options: Any) -> Iterator[None]:
    instrumentor = HTTPXSSEInstrumentor()
    instrumentor.instrument(
        meter_provider=memory.meter_provider,
        tracer_provider=memory.tracer_provider,
        **{"guard": True, **options},
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
            client = McpClient(
                self.family, self.wire.url, self.family.client(), session=session, version=version
            )
            try:
                return await play(client)
            finally:
                await client.close()

        with guarded(self.memory, **options):
            return self.family.run(main)

    def actions(self, action: str) -> float:
        return total(self.memory, "sse.client.guard.actions", **{"sse.guard.action": action})

    def marks(self) -> list[str]:
        spans = self.memory.exporter.get_finished_spans()
        events = [each for span in spans for each in span.events if each.name == "sse.guard"]
        return [str((each.attributes or {})["sse.guard.action"]) for each in events]


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


def prompted(*resumes: Reply, answer: Reply | None = None) -> Callable[[Asked], Reply]:
    """The call's stream brings a prompt and is cut."""
    return by(Reply(chunks=(PRIME, event(PROMPT, "e2")), end="cut"), *resumes, answer=answer)


REPLAY = Reply(chunks=(event(PROGRESS, "e2"), event(result(1), "e3")))


def asked_of(answers: list[Reply | None], resume: Reply = REPLAY) -> Callable[[Asked], Reply]:
    """A server whose pings are answered so, in turn; None as they should be."""

    def behave(asked: Asked) -> Reply:
        if asked.is_probe:
            return answers.pop(0) or pong(asked)
        return by(PRIMED, resume)(asked)

    return behave


async def resume(client: McpClient) -> list[Got]:
    """A call that is cut, and two tries to resume it."""
    await client.post(CALL, Authorization="secret")
    return [await client.get("e1", Authorization="secret"), await client.get("e1", Authorization="secret")]
