"""The official client, mcp 2.x on httpx2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import ClientMessageMetadata
from tests.e2e.peers.inside.headers import Headers
from tests.e2e.peers.inside.person import Person


class Session:
    """One session of mcp 2.x."""

    def __init__(self, client: Any, person: Person, http: httpx2.AsyncClient, headers: Headers) -> None:
        self._client = client
        self._person = person
        self._http = http
        self._headers = headers

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        result = await self._client.call_tool(tool, dict(arguments), progress_callback=self._person.hear)
        return " ".join(part.text for part in result.content)

    async def call_from(self, tool: str, cursor: str | None, keep: Callable[[str], Awaitable[None]]) -> str:
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool))
        metadata = ClientMessageMetadata(resumption_token=cursor, on_resumption_token_update=keep)
        result = await self._client.session.send_request(request, types.CallToolResult, metadata=metadata)
        return " ".join(part.text for part in result.content)

    async def open_stream(self) -> int:
        return await self._headers.open_stream(self._http)


@asynccontextmanager
async def connect(url: str, person: Person) -> AsyncIterator[Session]:
    async def elicit(context: object, params: Any) -> types.ElicitResult:
        content = await person.fill_in(params.requested_schema)
        return types.ElicitResult(action="accept", content=content)

    async def sample(context: object, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text=await person.say())
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    headers = Headers(url)
    async with create_mcp_http_client() as http:
        http.event_hooks["response"].append(headers.learn)
        transport = streamable_http_client(url, http_client=http)
        async with Client(
            transport, mode="legacy", elicitation_callback=elicit, sampling_callback=sample
        ) as client:
            yield Session(client, person, http, headers)
