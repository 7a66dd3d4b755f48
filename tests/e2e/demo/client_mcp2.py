"""The official client, mcp 2.x on httpx2, exactly as it is installed."""

from __future__ import annotations

from importlib.metadata import version

import anyio
import mcp_types as types
from mcp import Client
from mcp.shared.message import ClientMessageMetadata
from tests.e2e.demo.client import Diary, Errand, run, work


async def client(errand: Errand, diary: Diary) -> None:
    async def accept(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        diary.asked += 1
        await anyio.sleep(errand.thinking)
        return types.ElicitResult(action="accept", content={"sure": True})

    tokens: list[str] = []

    async def keep(token: str) -> None:
        tokens.append(token)

    async with Client(errand.url, mode=errand.mode, elicitation_callback=accept) as mcp:
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=errand.tool))

        async def call() -> None:
            await mcp.call_tool(errand.tool)

        async def call_or_resume() -> None:
            token = tokens[0] if tokens else None
            metadata = ClientMessageMetadata(resumption_token=token, on_resumption_token_update=keep)
            await mcp.session.send_request(request, types.CallToolResult, metadata=metadata)

        await work(errand, diary, call_or_resume if errand.resume else call)


if __name__ == "__main__":
    run(Diary(f"mcp {version('mcp')}"), client)
