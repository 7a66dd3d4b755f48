"""An agent that begins a new session for each task, with the official client of mcp 2, until its time is up.

opentelemetry-instrument python -m tests.dashboards.live.agent --tool report --seconds 60 URL
"""

import argparse
from typing import Final

import anyio
from mcp import Client

CALLS: Final = 3
PAUSE: Final = 0.5


async def task(url: str, tool: str) -> None:
    """One session with a few calls; the first that fails ends it."""
    async with Client(url, mode="legacy") as client:
        for _ in range(CALLS):
            await client.call_tool(tool)


async def agent(url: str, tool: str, seconds: float) -> None:
    """One task after the other, whatever becomes of them."""
    with anyio.move_on_after(seconds):
        while True:
            try:
                await task(url, tool)
            except Exception as error:  # noqa: BLE001 - an agent goes on
                print(f"{type(error).__name__}: {error}", flush=True)
            await anyio.sleep(PAUSE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    anyio.run(agent, given.url, given.tool, given.seconds)


if __name__ == "__main__":
    main()
