"""Prompts of a replay: nobody is asked what was cancelled, answered, refused or is stale."""

import pytest
from tests.guard.wire import (
    CANCELLED,
    PRIME,
    PROGRESS,
    PROMPT,
    Asked,
    Got,
    McpClient,
    Reply,
    event,
    pong,
    result,
)
from tests.guard.world import ANSWER, CALL, EMPTY, UNKNOWN, World, by, prompted


def test_a_standalone_stream_outlives_the_refusal_of_an_answer(world: World) -> None:
    """It brought the prompt, but no request waits on it: it is resumed like any other."""
    replies = [Reply(chunks=(PRIME, event(PROMPT, "e2"))), Reply(chunks=(event(PROGRESS, "e3"),))]

    def behave(asked: Asked) -> Reply:
        if asked.method == "GET":
            return replies.pop(0)
        return pong(asked) if asked.message.get("method") == "ping" else UNKNOWN

    async def play(client: McpClient) -> list[Got]:
        return [await client.get(), await client.post(ANSWER), await client.get("e2")]

    *_, got = world.run(behave, play)

    assert got.messages == [PROGRESS]
    assert world.marks() == []


def test_a_stream_that_ends_after_the_refusal_ends_with_the_error(world: World) -> None:
    """Then the client need not even come back."""
    behaviour = by(Reply(chunks=(PRIME, event(PROMPT, "e2"), 0.4)), EMPTY, answer=UNKNOWN)
    told: list[Got] = []

    async def play(client: McpClient) -> list[Got]:
        if not client.family.is_async:
            pytest.skip("two exchanges at once")
        import anyio  # noqa: PLC0415

        async def call() -> None:
            told.append(await client.post(CALL))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.sleep(0.1)
            await client.post(ANSWER)
        return told

    (got,) = world.run(behaviour, play)

    assert got.failure["data"]["reason"] == "rejected"


def test_a_prompt_that_was_cancelled_later_in_the_same_replay_is_not_presented(world: World) -> None:
    """It is judged when the replay is quiet; all that came with it is delivered."""
    replay = Reply(
        chunks=(
            event(PROMPT, "e2"),
            0.01,
            event(CANCELLED, "e3"),
            0.01,
            event(PROGRESS, "e4"),
            0.2,
            event(result(1), "e5"),
        )
    )

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e1")]

    _, got = world.run(prompted(replay), play)

    assert [m.get("method") for m in got.messages] == [
        "notifications/cancelled",
        "notifications/progress",
        None,
    ]
    assert got.failure == {}
    assert world.actions("prompt_dropped") == 1
    assert world.marks() == ["prompt_dropped"]


def test_a_prompt_whose_answer_is_on_its_way_is_judged_when_the_answer_is_settled(world: World) -> None:
    """The replay is quiet long before the refusal comes: nobody is asked again in between."""
    slow = Reply(UNKNOWN.status, UNKNOWN.media, chunks=(0.4, *UNKNOWN.chunks))
    replay = Reply(chunks=(0.2, event(PROMPT, "e2"), 0.8, event(result(1), "e5")))
    told: list[Got] = []

    async def play(client: McpClient) -> list[Got]:
        if not client.family.is_async:
            pytest.skip("two exchanges at once")
        import anyio  # noqa: PLC0415

        async def answer() -> None:
            while not world.wire.resumes:  # noqa: ASYNC110 - the server is in a thread of its own
                await anyio.sleep(0.005)
            await client.post(ANSWER)

        await client.post(CALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            told.append(await client.get("e1"))
        return told

    (got,) = world.run(prompted(replay, answer=slow), play)

    assert PROMPT not in got.messages
    assert got.failure["data"]["reason"] == "rejected"
    assert world.marks() == ["prompt_dropped", "operation_failed"]


@pytest.mark.parametrize(("seconds", "resumes"), [(0.4, 0), (3.0, 1)])
def test_a_resume_waits_for_what_becomes_of_an_answer_but_not_for_ever(
    world: World, seconds: float, resumes: int
) -> None:
    """A refusal that comes within a second fails the operation before its stream is resumed; a later one does not."""
    slow = Reply(UNKNOWN.status, UNKNOWN.media, chunks=(seconds, *UNKNOWN.chunks))
    told: list[Got] = []

    async def play(client: McpClient) -> list[Got]:
        if not client.family.is_async:
            pytest.skip("two exchanges at once")
        import anyio  # noqa: PLC0415

        await client.post(CALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, ANSWER)
            await anyio.sleep(0.05)
            told.append(await client.get("e2"))
            tasks.cancel_scope.cancel()
        return told

    (got,) = world.run(prompted(EMPTY, answer=slow), play)

    assert world.wire.resumes == resumes
    assert [got.failure.get("data", {}).get("reason")] == [None if resumes else "rejected"]


def test_a_resume_that_is_cancelled_while_it_waits_never_leaves(world: World) -> None:
    """And the next one, when the answer was taken, goes as it should."""
    slow = Reply(202, "", chunks=(0.3,))

    async def play(client: McpClient) -> list[Got]:
        if not client.family.is_async:
            pytest.skip("two exchanges at once")
        import anyio  # noqa: PLC0415

        await client.post(CALL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, ANSWER)
            await anyio.sleep(0.05)
            with anyio.move_on_after(0.1) as scope:
                await client.get("e2")
            assert scope.cancelled_caught
            assert world.wire.resumes == 0
        return [await client.get("e2")]

    (got,) = world.run(prompted(Reply(chunks=(event(result(1), "e3"),)), answer=slow), play)

    assert got.messages == [result(1)]
    assert world.wire.resumes == 1


def test_a_prompt_that_was_answered_is_not_presented_again(world: World) -> None:
    """The answer was acknowledged: the operation goes on without another."""
    replay = Reply(chunks=(event(PROMPT, "e2"), 0.2, event(result(1), "e5")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.post(ANSWER), await client.get("e1")]

    *_, got = world.run(prompted(replay), play)

    assert got.messages == [result(1)]


def test_a_live_prompt_is_presented_again_to_who_asks_from_before_it(world: World) -> None:
    """Nothing speaks against it: it comes as it is, a little later."""
    replay = Reply(chunks=(event(PROMPT, "e2"), 0.2, event(result(1), "e5")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e1")]

    _, got = world.run(prompted(replay), play)

    assert got.messages == [PROMPT, result(1)]
    assert world.actions("prompt_dropped") == 0


def test_a_prompt_that_the_client_has_had_is_not_presented_again(world: World) -> None:
    """The cursor stands at its first delivery, or after it: it is on somebody's screen already."""
    replay = Reply(chunks=(event(PROMPT, "e7"), 0.2, event(result(1), "e8")))

    async def play(client: McpClient) -> list[Got]:
        return [await client.post(CALL), await client.get("e2")]

    _, got = world.run(prompted(replay), play)

    assert got.messages == [result(1)]


def test_a_stale_prompt_fails_its_operation(world: World) -> None:
    """Only with a deadline; the stream ends with the error, and is closed."""
    replay = Reply(chunks=(event(PROMPT, "e2"),), end="hold")

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1")]

    (got,) = world.run(prompted(replay), play, submission_deadline=0.0)

    assert len(got.messages) == 1
    assert got.failure["data"]["reason"] == "stale"
    assert world.actions("prompt_dropped") == 1
    assert world.actions("operation_failed") == 1


def test_a_stale_prompt_fails_its_operation_at_the_end_of_the_replay_too(world: World) -> None:
    """A replay that ends is quiet."""

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1")]

    (got,) = world.run(prompted(Reply(chunks=(event(PROMPT, "e2"),))), play, submission_deadline=0.0)

    assert [m["id"] for m in got.messages] == [1]
    assert got.failure["data"]["reason"] == "stale"


def test_what_the_server_vouches_for_is_presented(world: World) -> None:
    """A fresh progress token, even past the deadline."""
    vouched = {**PROMPT, "params": {**PROMPT["params"], "_meta": {"progressToken": "fresh"}}}
    replay = Reply(chunks=(event(vouched, "e2"), 0.2, event(result(1), "e3")))

    async def play(client: McpClient) -> list[Got]:
        await client.post(CALL)
        return [await client.get("e1")]

    (got,) = world.run(prompted(replay), play, submission_deadline=0.0)

    assert got.messages == [vouched, result(1)]
