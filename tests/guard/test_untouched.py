"""What the guard has no business with, and what it is told to leave alone."""

import anyio
import pytest
from tests.guard.wire import PROMPT, Got, McpClient, Reply, event, request, result
from tests.guard.world import ANSWER, CALL, EMPTY, PRIMED, UNKNOWN, World, asked_of, by, prompted, resume
from tests.lifecycle.world import total


def test_an_encoded_answer_passes_as_it_is(world: World) -> None:
    """The resume asks for plain text; whoever encodes all the same is not read."""
    import gzip  # noqa: PLC0415

    coded = gzip.compress(event(result(1), "e3"))
    got, _ = world.run(asked_of([None], Reply(chunks=(coded,), coding="gzip")), resume)

    assert got.body == coded
    assert {asked.headers["accept-encoding"] for asked in world.wire.asked if asked.method == "GET"} == {
        "identity"
    }
    assert world.wire.probes == 0


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28"])
def test_revisions_that_do_not_resume_streams_are_only_watched(world: World, version: str) -> None:
    """There is nothing to guard."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(5)]

    got = world.run(by(PRIMED, EMPTY), play, version=version)

    assert [each.body for each in got] == [b""] * 5


def test_a_subscription_that_is_lost_again_and_again_is_only_watched(world: World) -> None:
    """Each `subscriptions/listen` is its caller's own request and ends with its stream: nothing hangs, or comes back by
    itself, and MCP 2026-07-28 has no `retry` that would slow it down."""
    notice = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
    lost = Reply(chunks=(event(notice),), end="cut")

    async def play(client: McpClient) -> list[Got]:
        listens = [
            request(n, "subscriptions/listen", notifications={"toolsListChanged": True}) for n in range(8)
        ]
        return [await client.post(listen) for listen in listens]

    got = world.run(lambda _: lost, play, session="", version="2026-07-28")

    assert [each.messages for each in got] == [[notice]] * 8
    assert total(world.memory, "sse.client.reconnects", **{"sse.stream.kind": "listen"}) == 7
    assert world.marks() == []


def test_what_is_no_mcp_is_only_watched(world: World) -> None:
    """However often it is resumed in vain."""

    async def play(client: McpClient) -> list[Got]:
        client.headers = {"Accept": "text/event-stream"}
        return [await client.get("7") for _ in range(5)]

    got = world.run(by(PRIMED, EMPTY), play)

    assert [each.body for each in got] == [b""] * 5


def test_a_dry_run_counts_and_does_nothing(world: World) -> None:
    """No ping, no error, no word."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        await client.post(ANSWER)
        return [await client.get("e2") for _ in range(4)]

    replay = Reply(chunks=(event(PROMPT, "e2"),))
    got = world.run(prompted(replay, answer=UNKNOWN), play, guard_dry_run=True)

    assert [each.body for each in got] == [replay.chunks[0]] * 4
    assert world.wire.probes == 0
    assert world.actions("operation_failed") >= 4
    assert world.actions("prompt_dropped") == 4


@pytest.mark.parametrize("disabled", ["breaker_opened", "breaker_opened,resume_refused"])
def test_each_action_can_be_switched_off_by_name(world: World, disabled: str) -> None:
    """What is off is not counted either."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1") for _ in range(5)]

    got = world.run(by(PRIMED, EMPTY), play, guard_disabled=disabled)

    assert [each.body for each in got] == [b""] * 5
    assert world.actions("breaker_opened") == 0


@pytest.mark.parametrize("seconds", [0.02, 0.2])
def test_a_reader_that_is_cancelled_leaves_no_connection_open(world: World, seconds: float) -> None:
    """While something is held back as well as afterwards; without the guard the read itself would have ended it."""
    if not world.family.is_async:
        pytest.skip("nobody cancels a synchronous client")
    behaviour = prompted(Reply(chunks=(event(PROMPT, "e2"),), end="hold"))
    left: list[object] = []

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        with anyio.move_on_after(seconds) as scope:
            await client.get("e1")
        assert scope.cancelled_caught
        await anyio.sleep(0.05)
        left.extend(client.client._transport._pool.connections)
        return []

    world.run(behaviour, play, guard_probe=False)

    assert left == []
