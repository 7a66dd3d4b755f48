"""A real MCP server by the official SDK, behind one named fault.

    python -m tests.e2e.demo.server --fault empty-resume

Prints `{"url": …}` when it listens, serves until its standard input ends (or its time is up), then prints
what passed on the wire. Needs the environment `mcp2`; the SDK's server still speaks every older revision.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys

import anyio
import uvicorn
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, JSONRPCMessage
from pydantic import BaseModel
from tests.e2e.demo.faults import FAULTS, FaultyApp

RETRY_MILLISECONDS = 200
POLLS = 3


class MemoryStore(EventStore):
    """Every event since the start, in order. A priming event is stored to be a cursor and never replayed."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return f"e{len(self._events)}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        seen = int(last_event_id.removeprefix("e"))
        stream_id = self._events[seen - 1][0]
        for number, (stream, message) in enumerate(self._events[seen:], start=seen + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, f"e{number}"))
        return stream_id


class Confirmation(BaseModel):
    sure: bool = True


async def report(ctx: Context) -> str:
    """Works for two seconds and tells how far it is."""
    for step in range(10):
        await ctx.report_progress(step, 10)
        await anyio.sleep(0.2)
    return "the report"


async def report_later(ctx: Context) -> str:
    """Closes its stream and lets the client poll for the answer (SEP-1699)."""
    for _ in range(POLLS):
        await anyio.sleep(0.4)
        await ctx.close_sse_stream()
    await anyio.sleep(0.4)
    return "the report"


async def wipe(ctx: Context) -> str:
    """Asks the person in front of the client before it goes on."""
    answer = await ctx.elicit("Delete everything?", Confirmation)
    return f"the person said: {answer.action}"


async def wipe_again() -> InputRequiredResult:
    """Asks the same question in every round, in the manner of 2026-07-28."""
    await anyio.sleep(0.05)
    schema = Confirmation.model_json_schema()
    question = ElicitRequestFormParams(message="Delete everything?", requested_schema=schema)
    return InputRequiredResult(input_requests={"sure": ElicitRequest(params=question)}, request_state="asked")


def mcp_server() -> MCPServer:
    server = MCPServer("demo", log_level="CRITICAL")
    for tool in (report, report_later, wipe, wipe_again):
        server.add_tool(tool)
    return server


async def serve(fault: str, seconds: float) -> None:
    inner = mcp_server().streamable_http_app(event_store=MemoryStore(), retry_interval=RETRY_MILLISECONDS)
    app = FaultyApp(inner, FAULTS[fault])
    listener = socket.create_server(("127.0.0.1", 0))
    # An exchange is cut by its fault when it should be: what is still open at the end may be dropped.
    config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        with anyio.move_on_after(seconds):
            await to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        print(json.dumps(app.wire), flush=True)
        server.should_exit = True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fault", choices=FAULTS, default="healthy-polling")
    parser.add_argument("--seconds", type=float, default=120.0, help="the longest it may live")
    arguments = parser.parse_args()
    anyio.run(serve, arguments.fault, arguments.seconds)


if __name__ == "__main__":
    main()
