"""The official MCP clients, as they are installed, each in an environment of its own.

    python -m tests.bench.official URL ROUNDS FOLDER

Run by the interpreter of such an environment. Calls a tool that reports its progress, in every mode in turn, and
prints the times as JSON. FOLDER is where packages are found that the environment lacks (the peer).
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import version
from typing import Any

from tests.bench.bodies import TOOL_EVENTS
from tests.bench.modes import MODES
from tests.bench.server import CHECKOUT
from tests.bench.times import Result, Times, WrongWorkError, result, turned
from tests.e2e.environments import python_of

RESULTS = 2
"""Of the call that is measured, and of the one before it."""

CLIENTS = {"mcp1": "mcp 1.x on httpx", "mcp2": "mcp 2.x on httpx2"}


def measure_official(url: str, rounds: int) -> list[Result]:
    """One result for each official client."""
    return [_measured(name, url, rounds) for name in CLIENTS]


def _measured(name: str, url: str, rounds: int) -> Result:
    command = [str(python_of(name)), "-m", "tests.bench.official", f"{url}/official", str(rounds)]
    folder = sysconfig.get_paths()["purelib"]
    done = subprocess.run([*command, folder], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout)
    return result("f", told["client"], Times(told["cpu"], told["wall"]))


async def _client_1(url: str, reported: list[float]) -> None:
    from mcp import ClientSession  # noqa: PLC0415  # only one of the two is installed
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await _timed(session.call_tool, reported)


async def _client_2(url: str, reported: list[float]) -> None:
    from mcp import Client  # type: ignore[attr-defined, unused-ignore]  # noqa: PLC0415

    async with Client(url, mode="legacy") as client:
        await _timed(client.call_tool, reported)


async def _timed(call_tool: Any, reported: list[float]) -> None:
    seen = 0

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        nonlocal seen
        seen += 1

    # As in the other works: whatever is made on first use is there, in every mode.
    await call_tool("work", {})
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await call_tool("work", {}, progress_callback=progressed)
    reported += [time.process_time() - cpu, time.perf_counter() - wall]
    if seen != TOOL_EVENTS:
        raise WrongWorkError(f"{seen} progress events, not {TOOL_EVENTS}")


def _main(url: str, rounds: int, folder: str) -> None:
    sys.path.append(folder)
    client = _client_1 if version("mcp").startswith("1.") else _client_2
    times = Times()
    for number in range(-1, rounds):
        for mode in turned(tuple(MODES), number):
            reported: list[float] = []
            with MODES[mode]() as check:
                asyncio.run(client(url, reported))
                if mode == "ours" and check() != TOOL_EVENTS + RESULTS:
                    raise WrongWorkError(f"{check()} events counted, not {TOOL_EVENTS + RESULTS}")
            if number >= 0:
                times.add(mode, *reported)
    print(json.dumps({"client": f"mcp {version('mcp')}", "cpu": times.cpu, "wall": times.wall}))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
