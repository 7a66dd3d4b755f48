"""The breaker and the slowing down: what is resumed in vain too often."""

import pytest
from tests.guard.wire import PRIME, PROGRESS, PROMPT, Got, McpClient, Reply, event
from tests.guard.world import CALL, EMPTY, PRIMED, World, by


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


def test_a_stream_that_is_cut_each_time_ends_with_one_error_too(world: World) -> None:
    """The half of an event that came is left out, the error stands in its place, and then the cut is seen."""
    cut = Reply(chunks=(b'data: {"jsonrpc"',), end="cut")

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(4)]

    first, _, third, fourth = world.run(by(Reply(chunks=(PRIME, event(PROMPT, "e2"))), cut), play)

    assert first.body == cut.chunks[0]
    assert third.failure["data"]["disposition"] == "retryable"
    assert third.error == "RemoteProtocolError"
    assert fourth.failure
    assert world.wire.resumes == 3


def test_where_the_end_cannot_say_it_the_next_resume_is_told(world: World) -> None:
    """The client already has the half of an event: nothing can be said behind it."""
    cut = Reply(chunks=(b'data: {"jsonrpc"',), end="cut")

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(4)]

    *_, third, fourth = world.run(by(PRIMED, cut), play)

    assert third.body == cut.chunks[0]
    assert fourth.failure["data"]["next"] == "retry_from_scratch"
    assert world.wire.resumes == 3


def test_progress_closes_the_count(world: World) -> None:
    """Two resumes in vain, one with news, two in vain: nothing is said."""
    news = Reply(chunks=(event(PROGRESS, "e2"),))

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(5)]

    got = world.run(by(PRIMED, EMPTY, EMPTY, news, EMPTY), play)

    assert [each.body for each in got] == [b"", b"", news.chunks[0], b"", b""]
    assert world.actions("breaker_opened") == 0


@pytest.mark.parametrize("most", [1, 5])
def test_how_many_resumes_are_too_many_is_an_option(world: World, most: int) -> None:
    """`guard_max_stalled`."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(most + 1)]

    got = world.run(by(PRIMED, EMPTY), play, guard_max_stalled=most)

    assert [bool(each.failure) for each in got] == [*[False] * (most - 1), True, True]
    assert world.wire.resumes == most


def test_a_standalone_stream_that_flaps_is_slowed_down(world: World) -> None:
    """Its `retry` grows from the client's own pace on; when it is well again, that pace is given back."""
    behaviour = by(PRIMED, *[EMPTY] * 5, Reply(chunks=(event(PROGRESS),)), EMPTY)

    async def play(client: McpClient) -> list[Got]:
        return [await client.get() for _ in range(8)]

    got = world.run(behaviour, play)

    assert [each.retries for each in got] == [[], [], [], [2000], [2000], [1000], [], []]
    assert world.actions("stream_slowed") == 2
    assert world.actions("breaker_opened") == 0


def test_a_loop_on_a_cursor_that_the_client_brought_along_is_slowed_down_too(world: World) -> None:
    """A client that kept its cursor over a restart: what it waits for, if anything, was asked before we looked."""

    async def play(client: McpClient) -> list[Got]:
        return [await client.get("kept") for _ in range(4)]

    got = world.run(by(PRIMED, EMPTY), play)

    assert [each.body for each in got[:2]] == [b"", b""]
    assert [b"retry: " in each.body for each in got[2:]] == [True, True]
    assert world.actions("stream_slowed") == 2
