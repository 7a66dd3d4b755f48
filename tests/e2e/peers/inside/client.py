"""An unmodified client that follows a plan, one official SDK or another: whichever its environment has.

PEER_PLAN=… PEER_REPORT=… python -m tests.e2e.peers.inside.client http://127.0.0.1:8000/mcp
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import anyio
from tests.e2e.peers.inside.person import Person
from tests.e2e.peers.inside.series import series
from tests.e2e.peers.plan import PLAN, REPORT, Plan, Report, Step

ADAPTERS = {
    "mcp1": "tests.e2e.peers.inside.adapter_mcp1",
    "mcp2": "tests.e2e.peers.inside.adapter_mcp2",
    "fastmcp": "tests.e2e.peers.inside.adapter_fastmcp",
}


class Session(Protocol):
    """What an adapter makes of its SDK."""

    async def list_tools(self) -> list[str]: ...

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str: ...

    async def call_from(
        self, tool: str, cursor: str | None, keep: Callable[[str], Awaitable[None]]
    ) -> str: ...

    async def open_stream(self) -> int:
        """A GET of the client's own on the same session, for its status."""
        ...


Connect = Callable[[str, Person], AbstractAsyncContextManager[Session]]


async def follow(plan: Plan, url: str, connect: Connect, report: Report) -> None:
    """Every step, with what it came to or what was raised."""
    async with connect(url, Person(plan.answer_after, report)) as session:
        cursors: list[str] = []
        for step in plan.steps:
            report.results.append(await _bounded(step, session, cursors))
        await anyio.sleep(plan.settle)
        report.during = series()


async def _bounded(step: Step, session: Session, cursors: list[str]) -> str:
    try:
        with anyio.fail_after(step.seconds + (step.do == "pause")):
            return await _take(step, session, cursors)
    except Exception as error:  # noqa: BLE001 - whatever the client raises is the news
        return f"{type(error).__name__}: {error}"


async def _take(step: Step, session: Session, cursors: list[str]) -> str:
    async def keep(cursor: str) -> None:
        cursors.append(cursor)

    if step.do == "list":
        return " ".join(await session.list_tools())
    if step.do == "call":
        return await session.call(step.tool, step.arguments)
    if step.do in {"keep", "resume"}:
        return await session.call_from(step.tool, cursors[0] if step.do == "resume" else None, keep)
    if step.do == "get":
        return str(await session.open_stream())
    await anyio.sleep(step.seconds)
    return ""


async def work(adapter: str, url: str, report: Report) -> None:
    """The whole of a client; what ends it before its time is noted."""
    connect: Connect = importlib.import_module(ADAPTERS[adapter]).connect
    try:
        with anyio.fail_after(60):
            await follow(Plan.load(os.environ[PLAN]), url, connect, report)
    except Exception as error:  # noqa: BLE001 - as above
        report.error = f"{type(error).__name__}: {error}"


def main() -> None:
    adapter, url = sys.argv[1:]
    report = Report(client=adapter)
    anyio.run(work, adapter, url, report)
    report.after = series()
    Path(os.environ[REPORT]).write_text(report.dump(), encoding="utf-8")


if __name__ == "__main__":
    main()
