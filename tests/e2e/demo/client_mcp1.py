"""The official client, mcp 1.x on httpx, exactly as it is installed."""

from __future__ import annotations

from importlib.metadata import version

import anyio
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
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

    async with (
        streamable_http_client(errand.url) as (read, write, _),
        ClientSession(read, write, elicitation_callback=accept) as session,
    ):
        await session.initialize()
        request = types.ClientRequest(
            types.CallToolRequest(params=types.CallToolRequestParams(name=errand.tool))
        )

        async def call() -> None:
            await session.call_tool(errand.tool)

        async def call_or_resume() -> None:
            token = tokens[0] if tokens else None
            metadata = ClientMessageMetadata(resumption_token=token, on_resumption_token_update=keep)
            await session.send_request(request, types.CallToolResult, metadata=metadata)

        await work(errand, diary, call_or_resume if errand.resume else call)


if __name__ == "__main__":
    run(Diary(f"mcp {version('mcp')}"), client)
