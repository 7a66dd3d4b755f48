"""The official Python MCP server, 1.x or 2.x, whichever its environment has, with an event store.

    python -m tests.e2e.peers.inside.server_mcp PORT

Its store is one that hands out whole streams: a replay begins with the first message of the stream, wherever
the cursor points.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http import EventMessage
from pydantic import create_model

RETRY_MILLISECONDS = 200
PATIENCE_SECONDS = 1.0
POLLS = 3
IS_FIRST = version("mcp").startswith("1.")

Confirmation = create_model("Confirmation", sure=(bool, True))


class Store:
    """Every event of every stream since the start; what is primed is a cursor and never replayed."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._events.append((stream_id, message))
        return f"e{len(self._events)}"

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        number = last_event_id.removeprefix("e")
        if not number.isdigit() or not 0 < int(number) <= len(self._events):
            return None
        stream_id = self._events[int(number) - 1][0]
        for position, (stream, message) in enumerate(tuple(self._events), start=1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, f"e{position}"))
        return stream_id


async def report() -> str:
    """Answers at once."""
    return "the report"


async def confirm(ctx: Any) -> str:
    """Asks the person, who has a second; then lets the client poll a few times, and answers without them."""
    said = "nothing"
    with anyio.move_on_after(PATIENCE_SECONDS):
        said = (await ctx.elicit("Delete everything?", Confirmation)).action
    for _ in range(POLLS):
        await ctx.close_sse_stream()
        await anyio.sleep(1.0)
    return f"the person said {said}"


def app() -> Any:
    if IS_FIRST:
        from mcp.server.fastmcp import Context, FastMCP  # noqa: PLC0415 - only there in 1.x

        first = FastMCP("peer", event_store=Store(), retry_interval=RETRY_MILLISECONDS, log_level="CRITICAL")
        return _with_tools(first, Context).streamable_http_app()
    from mcp.server.mcpserver import Context, MCPServer  # noqa: PLC0415 - only there in 2.x

    second = _with_tools(MCPServer("peer", log_level="CRITICAL"), Context)
    return second.streamable_http_app(event_store=Store(), retry_interval=RETRY_MILLISECONDS)


def _with_tools(server: Any, context: type) -> Any:
    # The SDK finds the context's parameter by its annotation, which differs between the two.
    confirm.__annotations__["ctx"] = context
    for tool in (report, confirm):
        server.add_tool(tool)
    return server


def main() -> None:
    uvicorn.run(
        app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", timeout_graceful_shutdown=0
    )


if __name__ == "__main__":
    main()
