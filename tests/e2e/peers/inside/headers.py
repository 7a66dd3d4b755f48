"""The headers of a session, learnt from what its client sends: for a request of our own on the same session."""

from __future__ import annotations

from typing import Any

SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"


class Headers:
    """A response hook of httpx or httpx2."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: dict[str, str] = {}

    async def learn(self, response: Any) -> None:
        sent = response.request.headers
        self._known |= {name: sent[name] for name in (SESSION, VERSION) if name in sent}

    async def open_stream(self, http: Any) -> int:
        """The status of a GET for an event stream on this session; its body is read when it is refused."""
        headers = {"accept": "text/event-stream", **self._known}
        async with http.stream("GET", self._url, headers=headers) as response:
            if response.is_error:
                await response.aread()
            status: int = response.status_code
            return status
