"""Memory: a thousand streams open at once, with and without.

    python -m tests.bench.held MODE URL STREAMS

Prints the bytes that tracemalloc attributes to what was opened, and by how much the resident set grew.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import httpx2
from tests.bench.bodies import CALL, HELD_EVENTS, MCP_HEADERS
from tests.bench.modes import MODES
from tests.bench.server import CHECKOUT

STREAMS = 1_000


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes a stream beyond the plain client's, by mode."""

    traced: dict[str, float]
    resident: dict[str, float]


def measure_held(url: str) -> Held:
    """Each mode in a process of its own."""
    told = {mode: _measured(mode, url) for mode in MODES}
    traced = {mode: (told[mode][0] - told["plain"][0]) / STREAMS for mode in MODES if mode != "plain"}
    resident = {mode: (told[mode][1] - told["plain"][1]) / STREAMS for mode in MODES if mode != "plain"}
    return Held(traced, resident)


def _measured(mode: str, url: str) -> tuple[int, int]:
    sizes = []
    for way in ("traced", "resident"):
        command = [sys.executable, "-m", "tests.bench.held", mode, url, way]
        done = subprocess.run(command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True)
        sizes.append(int(json.loads(done.stdout)))
    return sizes[0], sizes[1]


def _resident() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def _size(way: str) -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] if way == "traced" else _resident()


async def _hold(url: str, way: str) -> int:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with (
        httpx2.AsyncClient(base_url=url, timeout=60, limits=limits) as client,
        contextlib.AsyncExitStack() as open_,
    ):

        async def hold(number: int) -> None:
            call = {**CALL, "id": number}
            response = await open_.enter_async_context(
                client.stream("POST", "/hold", json=call, headers=MCP_HEADERS)
            )
            source = aiter(httpx2.EventSource(response))
            for _ in range(HELD_EVENTS):
                await anext(source)
            kept.append(source)

        kept: list[object] = []
        # The first few make what all share; it is no part of a stream's price.
        for number in range(10):
            await hold(number)
        before = _size(way)
        for start in range(10, STREAMS + 10, 50):
            await asyncio.gather(*(hold(number) for number in range(start, start + 50)))
        return _size(way) - before


def _main(mode: str, url: str, way: str) -> None:
    if way == "traced":
        tracemalloc.start()
    with MODES[mode]():
        print(asyncio.run(_hold(url, way)))


if __name__ == "__main__":
    _main(*sys.argv[1:4])
