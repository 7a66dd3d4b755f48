"""What the client's program meets with the guard on: the same errors, the same closes, the same bytes; and no loop."""

import json
import time
from contextlib import aclosing
from typing import Any

import anyio
import httpx
import pytest
from tests.conftest import FAMILIES, Memory
from tests.guard.wire import (
    CANCELLED,
    PRIME,
    PROGRESS,
    PROMPT,
    Asked,
    Behaviour,
    Got,
    McpClient,
    Reply,
    event,
    pong,
    request,
    result,
)
from tests.guard.world import ANSWER, CALL, EMPTY, GONE, PRIMED, World, asked_of, by, prompted
from tests.lifecycle.world import total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse.guard import _probing

CUT = Reply(chunks=(event(PROGRESS, "e3")[:30],), end="cut")
SILENT = Reply(chunks=(event(PROGRESS, "e3")[:30],), end="hold")
NEWS = Reply(chunks=(event(PROGRESS, "e3"),), end="hold")
DONE = Reply(chunks=(event(result(1), "e5"),))

# Trio waits for bytes at the socket, so that there is never a read under way that nobody waits for.
on_asyncio = pytest.mark.parametrize(
    "family", [n for n, f in FAMILIES.items() if f.backend == "asyncio"], indirect=True
)
asynchronous = pytest.mark.parametrize(
    "family", [n for n, f in FAMILIES.items() if f.is_async], indirect=True
)


@pytest.mark.parametrize(("reply", "error"), [(CUT, "RemoteProtocolError"), (SILENT, "ReadTimeout")])
def test_a_replay_that_breaks_breaks_for_the_client_too(world: World, reply: Reply, error: str) -> None:
    """Also in the middle of an event, of which it is given what came."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        client.client.timeout = 0.3
        return [await client.get("e2")]

    (got,) = world.run(prompted(reply), play)

    assert got.error == error
    assert got.body == event(PROGRESS, "e3")[:30]


def test_a_stream_that_breaks_after_the_guards_last_words_breaks_all_the_same(world: World) -> None:
    """The error response comes first, then the network's error."""
    empty_and_cut = Reply(end="cut")

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(3)]

    *_, got = world.run(by(PRIMED, empty_and_cut), play)

    assert got.failure["data"]["by"]
    assert got.error == "RemoteProtocolError"


@asynchronous
@pytest.mark.parametrize("resumes", [False, True])
def test_a_response_can_be_closed_while_another_task_reads_it(world: World, resumes: bool) -> None:
    """The close is silent, and the read ends with the error of the library."""
    read: list[str] = []

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        method, sent = ("GET", {}) if resumes else ("POST", {"json": request(2)})
        named = {**client.headers, **({"Last-Event-ID": "e1"} if resumes else {})}
        asked = client.client.build_request(method, client.url, headers=named, **sent)
        response = await client.client.send(asked, stream=True)

        async def consume() -> None:
            try:
                async for _ in response.aiter_raw():
                    pass
            except client.family.module.TransportError as error:
                read.append(type(error).__name__)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await anyio.sleep(0.1)
            await response.aclose()
        return []

    held = Reply(chunks=(event(PROGRESS, "e7"),), end="hold")
    world.run(lambda asked: held if asked.message.get("id") == 2 else by(PRIMED, held)(asked), play)

    assert read == ["ReadError"]


@on_asyncio
def test_a_client_may_close_its_iterator_while_the_guard_reads_on(world: World) -> None:
    """After a prompt that was given out when it was quiet, a read is under way already."""
    given: list[bytes] = []

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        named = {**client.headers, "Last-Event-ID": "e1"}
        response = await client.client.send(
            client.client.build_request("GET", client.url, headers=named), stream=True
        )
        async with aclosing(response.aiter_raw()) as chunks:
            async for chunk in chunks:
                given.append(chunk)
                break
        await response.aclose()
        return []

    world.run(prompted(Reply(chunks=(event(PROMPT, "e2"),), end="hold")), play)

    assert given == [event(PROMPT, "e2")]


@on_asyncio
def test_an_answer_that_was_held_back_is_given_to_a_client_that_comes_again(world: World) -> None:
    """It left while a prompt before the answer was in doubt."""
    replay = Reply(chunks=(event(PROMPT, "e2") + event(result(1), "e5"),), end="hold")

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        with anyio.move_on_after(0.03):
            await client.get("e1")
        return [await client.get("e1", events=2)]

    (got,) = world.run(prompted(replay), play, guard_probe=False)

    assert got.messages[-1] == result(1)


def test_what_is_left_out_leaves_its_event_id(world: World) -> None:
    """Else the client would come back from before it for ever: the server polls, and answers in the end."""
    polls = [Reply(chunks=(event(PROMPT, "e2"), 1.1)), *[Reply(chunks=(1.1,))] * 3, DONE]
    cursors = ["e1"]

    async def play(client: McpClient) -> list[Got]:
        found = [await client.post(CALL), await client.post(ANSWER)]
        for _ in polls:
            found.append(await client.get(cursors[-1]))
            cursors.extend(line[4:].decode() for line in found[-1].body.splitlines() if line[:3] == b"id:")
        return found

    *_, got = world.run(prompted(*polls), play)

    assert got.messages == [result(1)]
    assert cursors == ["e1", "e2", "e5"]
    assert world.marks() == ["prompt_dropped"]


def test_an_id_that_another_event_brings_is_not_told_twice(world: World) -> None:
    """Nothing is added where the client's cursor moves on by itself."""
    replay = Reply(chunks=(event(PROMPT, "e2") + event(CANCELLED, "e3"), 0.2, event(result(1), "e5")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.post(ANSWER), await client.get("e1")]

    *_, got = world.run(prompted(replay), play)

    assert got.body == event(CANCELLED, "e3") + event(result(1), "e5")


@pytest.mark.parametrize("learnt", ["at a resume", "at a call"])
def test_the_replay_of_a_session_that_is_known_to_be_lost_is_quarantined(world: World, learnt: str) -> None:
    """It is the second stream of the session that is resumed, or a call has shown the loss before."""
    other = request(2)

    def behave(asked: Asked) -> Reply:
        if asked.method == "GET":
            return Reply(chunks=(event(PROGRESS, f"{asked.cursor}2"), event(result(asked.cursor[1:]), "z")))
        if asked.is_probe or (asked.message["id"] == 2 and learnt == "at a call"):
            return GONE
        return Reply(chunks=(event("", f"c{asked.message['id']}"),), end="cut")

    async def play(client: McpClient) -> list[Got]:
        return [
            await client.post(CALL),
            await client.post(other),
            *[await client.get(cursor) for cursor in ("c1", "c2")[: 2 if learnt == "at a resume" else 1]],
        ]

    _, _, *resumed = world.run(behave, play)

    assert [got.status for got in resumed] == [404] * len(resumed)
    assert all(got.failure["data"]["reason"] == "dead" for got in resumed)
    assert all("2 replayed events" in got.failure["message"] for got in resumed)


def test_a_ping_whose_answer_is_left_open_holds_nobody_up(world: World) -> None:
    """A server may answer on an event stream, and go on with keep-alives."""

    def behave(asked: Asked) -> Reply:
        if asked.is_probe:
            answer = event(result(asked.message["id"]))
            return Reply(chunks=(answer, *(1.0, b": keep-alive\n\n") * 20), end="hold")
        return by(PRIMED, DONE)(asked)

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        began = time.monotonic()
        found = [await client.get("e1")]
        assert time.monotonic() - began < 3.0
        return found

    (got,) = world.run(behave, play)

    assert got.messages == [result(1)]


def test_a_fault_while_probing_passes_the_replay_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and the client has what it asked for."""

    def broken(_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(_probing, "ping_of", broken)
    monkeypatch.setattr(Containment, "strict_by_default", False)
    late = Reply(chunks=(0.1, event(result(1), "e5")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e1")]

    _, got = world.run(asked_of([], late), play)

    assert (got.messages, got.error) == ([result(1)], "")
    assert (
        total(world.memory, "sse.client.instrumentation.errors", **{"sse.instrumentation.site": "guard"}) == 1
    )


def test_headers_keep_their_bytes_their_case_and_their_order(world: World) -> None:
    """The resume that asks for readable events, and the ping, are copies of what the client sent."""
    raw = [
        (b"Host", b"example.org"),
        (b"X-User", b"J\xc3\xbcrgen"),
        (b"Mcp-Session-Id", b"S1"),
        (b"MCP-Protocol-Version", b"2025-11-25"),
        (b"Accept-Encoding", b"gzip"),
        (b"Accept", b"text/event-stream"),
        (b"Last-Event-ID", b"e1"),
    ]
    seen: list[dict[str, str]] = []

    def behave(asked: Asked) -> Reply:
        if asked.method == "GET" or asked.is_probe:
            seen.append(asked.headers)
        return asked_of([GONE], DONE)(asked) if not asked.is_probe else GONE

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        asked = client.client.build_request("GET", client.url)
        asked.headers = type(asked.headers)(raw)
        response = await client._wait(client.client.send(asked, stream=True))
        await client._wait(response.aclose() if client.family.is_async else response.close())
        return [Got(response.status_code, [])]

    (got,) = world.run(behave, play)

    assert got.status == 404
    asked, pinged = seen
    assert list(asked) == [key.decode().lower() for key, _ in raw]
    assert asked["accept-encoding"] == "identity"
    assert asked["x-user"] == pinged["x-user"] == "Jürgen"


def test_a_cancelled_call_is_not_resumed_for_ever(world: World) -> None:
    """Nobody waits for its answer, but its transport goes on."""
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

    def behave(asked: Asked) -> Reply:
        return Reply(202, "") if asked.message == cancelled else by(PRIMED, EMPTY)(asked)

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        await client.post(cancelled)
        return [await client.get("e1") for _ in range(8)]

    world.run(behave, play)

    assert world.wire.resumes == 3
    assert world.actions("breaker_opened") == 5


def test_the_servers_own_retry_is_the_last_word(world: World) -> None:
    """A standalone stream that was slowed down brings news, and says how long to wait."""
    replies = [EMPTY] * 4 + [Reply(chunks=(event(PROGRESS, "s1", retry=200),))]
    behaviour: Behaviour = lambda asked: replies.pop(0) if asked.method == "GET" else pong(asked)  # noqa: E731

    async def play(client: McpClient) -> list[Got]:
        return [await client.get() for _ in range(5)]

    *_, got = world.run(behaviour, play)

    assert world.actions("stream_slowed") == 1
    assert got.body == event(PROGRESS, "s1", retry=200)


def test_responses_that_carry_their_body_are_stopped_too(memory: Memory) -> None:
    """A mock transport's resumes are empty for ever: none leaves after the third."""
    resumes = 0

    def handle(asked: httpx.Request) -> httpx.Response:
        nonlocal resumes
        stream = {"content-type": "text/event-stream"}
        if asked.method == "GET":
            resumes += 1
            return httpx.Response(200, headers=stream, content=b"")
        message = json.loads(asked.content)
        if message["method"] == "ping":
            return httpx.Response(200, json=result(message["id"]))
        return httpx.Response(200, headers=stream, content=PRIME)

    named = {"Accept": "text/event-stream", "Mcp-Session-Id": "S1", "MCP-Protocol-Version": "2025-11-25"}
    with httpx.Client(transport=httpx.MockTransport(handle)) as client:
        HTTPXSSEInstrumentor.instrument_client(client, guard=True, meter_provider=memory.meter_provider)
        client.post("http://server/mcp", json=CALL, headers=named)
        for _ in range(8):
            client.get("http://server/mcp", headers={**named, "Last-Event-ID": "e1"})
        HTTPXSSEInstrumentor.uninstrument_client(client)

    assert resumes == 3
    assert total(memory, "sse.client.empty_replays") == 3
    assert total(memory, "sse.client.active_streams") == 0
