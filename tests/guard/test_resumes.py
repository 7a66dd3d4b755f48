"""Resumes that cannot bring anything are answered here, and a response comes once."""

from tests.guard.wire import (
    PRIME,
    PROGRESS,
    Asked,
    Got,
    McpClient,
    Reply,
    error,
    event,
    request,
    result,
    said,
)
from tests.guard.world import CALL, EMPTY, PRIMED, World, by


def test_a_resume_of_an_answered_stream_does_not_leave(world: World) -> None:
    """The client is told that it has its answer."""
    answered = Reply(chunks=(PRIME, event(result(1), "e2")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e2")]

    first, second = world.run(by(answered, EMPTY), play)

    assert first.body == b"".join(c for c in answered.chunks if isinstance(c, bytes))
    assert second.status == 200
    assert second.failure["data"]["reason"] == "after_terminal"
    assert isinstance(second.messages[0]["id"], str)
    assert world.wire.resumes == 0
    assert world.marks() == ["resume_refused"]


def test_a_resume_that_was_refused_for_good_is_made_once(world: World) -> None:
    """The second one ends the request with the reason of the first; mcp 1.30 would be silent for ever."""
    evicted = said(error(None, "Event not found", -32001), 404)

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e1"), await client.get("e1")]

    _, first, second = world.run(by(PRIMED, evicted), play)

    assert first.status == 404
    assert second.messages[0]["id"] == 1
    assert second.failure["data"] | {"by": ""} == {
        "disposition": "terminal",
        "reason": "cursor_evicted",
        "next": "retry_from_scratch",
        "by": "",
    }
    assert world.wire.resumes == 1


def test_a_standalone_stream_that_was_refused_for_good_is_not_to_be_had(world: World) -> None:
    """405 to a GET is how a server says that it has none: the official clients go on without, and keep the session."""

    async def play(client: McpClient) -> list[Got]:
        return [await client.get(), await client.get("e1"), await client.get("e1")]

    _, first, second = world.run(by(PRIMED, PRIMED, Reply(405, "")), play)

    assert (first.status, second.status) == (405, 405)
    assert second.failure["data"]["reason"] == "unsupported"
    assert world.wire.resumes == 1


def test_fresh_credentials_are_tried(world: World) -> None:
    """What was refused with one token may be granted with another; a 401 is never held against anybody."""
    answered = Reply(chunks=(event(result(1), "e2"),))

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [
            await client.get("e1", Authorization="a"),
            await client.get("e1", Authorization="a"),
            await client.get("e1", Authorization="b"),
        ]

    got = world.run(by(PRIMED, Reply(401, ""), Reply(401, ""), answered), play, guard_probe=False)

    assert [each.status for each in got] == [401, 401, 200]
    assert world.wire.resumes == 3


def test_a_response_that_was_delivered_before_is_left_out(world: World) -> None:
    """A resume of one request that brings the response of another, and its own twice."""
    replay = Reply(
        chunks=(
            event(result(2), "x9") + event(PROGRESS, "e2"),
            event(result(1), "e3"),
            event(result(1), "e4"),
        )
    )

    def behave(asked: Asked) -> Reply:
        if asked.message.get("id") == 2:
            return said(result(2))
        return by(PRIMED, replay)(asked)

    async def play(client: McpClient) -> list[Got]:
        await client.post(request(2))
        await client.post(CALL)
        return [await client.get("e1")]

    (got,) = world.run(behave, play)

    assert got.messages == [PROGRESS, result(1)]
    assert world.actions("response_dropped") == 2
