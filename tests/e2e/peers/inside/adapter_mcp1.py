"""The official client, mcp 1.x on httpx."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp import ClientSession, types
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.message import ClientMessageMetadata
from tests.e2e.peers.inside.headers import Headers
from tests.e2e.peers.inside.person import Person


class Session:
    """One session of mcp 1.x."""

    def __init__(self, session: Any, person: Person, http: httpx.AsyncClient, headers: Headers) -> None:
        self._session = session
        self._person = person
        self._http = http
        self._headers = headers

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in (await self._session.list_tools()).tools]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        result = await self._session.call_tool(tool, dict(arguments), progress_callback=self._person.hear)
        return " ".join(part.text for part in result.content)

    async def call_from(self, tool: str, cursor: str | None, keep: Callable[[str], Awaitable[None]]) -> str:
        params = types.CallToolRequestParams(name=tool)
        request = types.ClientRequest(types.CallToolRequest(params=params))
        metadata = ClientMessageMetadata(resumption_token=cursor, on_resumption_token_update=keep)
        result = await self._session.send_request(request, types.CallToolResult, metadata=metadata)
        return " ".join(part.text for part in result.content)

    async def open_stream(self) -> int:
        return await self._headers.open_stream(self._http)


@asynccontextmanager
async def connect(url: str, person: Person) -> AsyncIterator[Session]:
    async def elicit(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        content = await person.fill_in(params.requestedSchema)
        return types.ElicitResult(action="accept", content=content)

    async def sample(context: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text=await person.say())
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    headers = Headers(url)
    async with create_mcp_http_client() as http:
        http.event_hooks["response"].append(headers.learn)
        async with (
            streamable_http_client(url, http_client=http) as (read, write, _),
            ClientSession(read, write, elicitation_callback=elicit, sampling_callback=sample) as session,
        ):
            await session.initialize()
            yield Session(session, person, http, headers)
