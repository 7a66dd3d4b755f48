"""A FastMCP server.

python -m tests.e2e.peers.inside.server_fastmcp PORT
"""

from __future__ import annotations

import sys
from typing import Any

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

SCHEMA = {"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]}


async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def confirm(ctx: Context) -> str:
    """Asks the person in front of the client."""
    answer = await ctx.elicit("Delete everything?", bool)
    return f"the person said {answer.action}"


async def confirm_in_rounds(ctx: Context) -> Any:
    """Asks the person in the manner of 2026-07-28: the call is answered with a question, and made again."""
    if ctx.input_responses:
        return f"the person said {ctx.input_responses['sure'].action}"
    params = ElicitRequestFormParams(message="Delete everything?", requested_schema=SCHEMA)
    return InputRequiredResult(input_requests={"sure": ElicitRequest(params=params)}, request_state="asked")


def main() -> None:
    server = FastMCP("peer")
    for tool in (add, confirm, confirm_in_rounds):
        server.tool(tool)
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)


if __name__ == "__main__":
    main()
