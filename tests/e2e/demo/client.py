"""What the demo's clients have in common: arguments, work, and what they tell about it in the end."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Awaitable, Callable

import anyio

PAUSE = 0.2


@dataclasses.dataclass(slots=True)
class Diary:
    """What one client did, seen from inside it."""

    client: str
    calls: int = 0
    answered: int = 0
    asked: int = 0
    error: str | None = None
    first_error: str | None = None
    slowest_failure: float = 0.0
    """Seconds that the longest call took that failed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Errand:
    """What one client is to do: call a tool again and again, as an agent would, for some seconds."""

    url: str
    tool: str
    seconds: float
    resume: bool
    mode: str
    thinking: float
    """Seconds that the person in front of the client takes for an answer."""


def errand() -> Errand:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument(
        "--resume", action="store_true", help="after the answer, resume from the first token kept"
    )
    parser.add_argument("--thinking", type=float, default=0.0, help="seconds before a question is answered")
    parser.add_argument("--mode", default="legacy", help="how mcp 2 negotiates the protocol's version")
    return Errand(**vars(parser.parse_args()))


async def work(errand: Errand, diary: Diary, call: Callable[[], Awaitable[object]]) -> None:
    """Call until the time is up; what goes wrong is noted, and the next call made."""
    with anyio.move_on_after(errand.seconds):
        while True:
            diary.calls += 1
            began = anyio.current_time()
            try:
                await call()
                diary.answered += 1
            except Exception as error:  # noqa: BLE001 - whatever the client raises is the news
                diary.error = f"{type(error).__name__}: {error}"
                diary.first_error = diary.first_error or diary.error
                diary.slowest_failure = max(diary.slowest_failure, anyio.current_time() - began)
            await anyio.sleep(PAUSE)


def run(diary: Diary, client: Callable[[Errand, Diary], Awaitable[None]]) -> None:
    """Run a client and print its diary, also when it could not so much as connect."""

    async def bounded() -> None:
        instructions = errand()
        with anyio.move_on_after(instructions.seconds + 10):
            await client(instructions, diary)

    try:
        anyio.run(bounded)
    except Exception as error:  # noqa: BLE001 - as above
        diary.error = f"{type(error).__name__}: {error}"
    print(json.dumps(dataclasses.asdict(diary)), flush=True)
