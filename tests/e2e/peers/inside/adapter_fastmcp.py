"""FastMCP's client, in the mode that the variable `PEER_MODE` names."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from tests.e2e.peers.inside.person import Person


class Session:
    """One connection of FastMCP's client; it has no way to resume."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        result = await self._client.call_tool(tool, dict(arguments))
        return " ".join(part.text for part in result.content)


@asynccontextmanager
async def connect(url: str, person: Person) -> AsyncIterator[Session]:
    async def elicit(message: str, response_type: Any, params: Any, context: object) -> ElicitResult:
        await person.fill_in(params.requested_schema)
        return ElicitResult(action="accept", content=response_type(value=True))

    mode = os.environ.get("PEER_MODE", "auto")
    async with Client(url, mode=mode, elicitation_handler=elicit) as client:
        yield Session(client)
