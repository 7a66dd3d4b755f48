"""Streaming calls of the OpenAI and the Anthropic SDK, sync and async, as a plan's steps: `call` with a provider.

PEER_PLAN=… PEER_REPORT=… python -m tests.e2e.peers.inside.client_models models http://127.0.0.1:8000
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
from tests.e2e.peers.inside.series import series
from tests.e2e.peers.plan import PLAN, REPORT, Plan, Report, Step

MESSAGES = [{"role": "user", "content": "Say hello."}]
CLIENT: Mapping[str, Any] = {"api_key": "none", "max_retries": 0, "timeout": 10}


def openai_sync(url: str) -> Iterator[str]:
    with openai.OpenAI(base_url=f"{url}/v1", **CLIENT) as client:
        for chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            yield chunk.choices[0].delta.content or ""


async def openai_async(url: str) -> AsyncIterator[str]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", **CLIENT) as client:
        async for chunk in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            yield chunk.choices[0].delta.content or ""


def anthropic_sync(url: str) -> Iterator[str]:
    with anthropic.Anthropic(base_url=url, **CLIENT) as client:
        for event in client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True):
            yield event.delta.text if event.type == "content_block_delta" else ""


async def anthropic_async(url: str) -> AsyncIterator[str]:
    async with anthropic.AsyncAnthropic(base_url=url, **CLIENT) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)
        async for event in stream:
            yield event.delta.text if event.type == "content_block_delta" else ""


CALLS: Mapping[str, Callable[[str], Any]] = {
    call.__name__: call for call in (openai_sync, openai_async, anthropic_sync, anthropic_async)
}


class Listener:
    """Puts the pieces of one answer together, and takes the time of the first; it may stop after some."""

    def __init__(self, most: int) -> None:
        self.said = ""
        self.first_after = 0.0
        self._most = most
        self._began = time.monotonic()
        self._heard = 0

    def hear(self, piece: str) -> bool:
        """Whether that is enough."""
        if not self._heard:
            self.first_after = time.monotonic() - self._began
        self._heard += 1
        self.said += piece
        return self._heard == self._most

    def listen(self, pieces: Iterator[str]) -> None:
        for piece in pieces:
            if self.hear(piece):
                return

    async def listen_async(self, pieces: AsyncIterator[str]) -> None:
        async for piece in pieces:
            if self.hear(piece):
                return


def take(step: Step, url: str, report: Report) -> str:
    listener = Listener(step.arguments.get("most", 0))
    try:
        answer = CALLS[step.tool](f"{url}/{step.arguments['path']}")
        if step.tool.endswith("_async"):
            asyncio.run(listener.listen_async(answer))
        else:
            listener.listen(answer)
            answer.close()
    except Exception as error:  # noqa: BLE001 - whatever the client raises is the news
        return f"{listener.said}{type(error).__name__}"
    finally:
        report.timings[step.arguments["path"]] = listener.first_after
    return listener.said


def main() -> None:
    report = Report(client=sys.argv[1])
    for step in Plan.load(os.environ[PLAN]).steps:
        report.results.append(take(step, sys.argv[2], report))
    report.during = report.after = series()
    Path(os.environ[REPORT]).write_text(report.dump(), encoding="utf-8")


if __name__ == "__main__":
    main()
