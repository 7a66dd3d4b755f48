"""The works that are measured in one process: streams and calls, sync and async."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import httpx
import httpx2
import httpx_sse
from tests.bench.bodies import CALL, EVENTS, MCP_HEADERS

CALLS = 300
LARGE_EVENTS = 8

WARM_UP = "/stream/short"
WARM_UP_CALLS = 20
"""What is done before anything is measured: whatever is made on first use is there then, in every mode."""

Go = Callable[[], int]
Prepared = Callable[[str], AbstractContextManager[Go]]


@dataclass(frozen=True, slots=True)
class Work:
    """Something to do, the same way in every mode."""

    case: str
    """The letter that selects it, and the row of the bars that it is held to."""
    title: str
    prepared: Prepared
    """Given the server's URL, all that is not measured; yields what is, which tells what it did."""
    units: int
    """What it must tell."""
    events: int
    """Events that the instrumentation must have counted."""
    chunks: int = 0
    """Pieces of body that the server sends; 0 where they do not matter."""


def _stream(path: str, *, body: object = CALL, headers: dict[str, str] = MCP_HEADERS) -> Prepared:
    @contextlib.contextmanager
    def prepared(url: str) -> Iterator[Go]:
        with httpx.Client(base_url=url, timeout=60) as client:

            def read(from_: str) -> int:
                with httpx_sse.connect_sse(client, "POST", from_, json=body, headers=headers) as source:
                    return sum(1 for _ in source.iter_sse())

            read(WARM_UP)
            yield lambda: read(path)

    return prepared


def _repeated(prepared: Prepared, times: int) -> Prepared:
    @contextlib.contextmanager
    def again(url: str) -> Iterator[Go]:
        with prepared(url) as go:
            yield lambda: sum(go() for _ in range(times))

    return again


def _async(
    work: Callable[[httpx2.AsyncClient], Awaitable[int]],
    warm_up: Callable[[httpx2.AsyncClient], Awaitable[int]],
) -> Prepared:
    """`work` with a client and an event loop that are ready."""

    @contextlib.contextmanager
    def prepared(url: str) -> Iterator[Go]:
        loop = asyncio.new_event_loop()
        client = httpx2.AsyncClient(base_url=url, timeout=60)

        async def do(what: Callable[[httpx2.AsyncClient], Awaitable[int]]) -> int:
            return await what(client)

        try:
            loop.run_until_complete(do(warm_up))
            yield lambda: loop.run_until_complete(do(work))
        finally:
            loop.run_until_complete(client.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    return prepared


def _async_stream(path: str, *, body: object = CALL, headers: dict[str, str] = MCP_HEADERS) -> Prepared:
    async def read(client: httpx2.AsyncClient, from_: str) -> int:
        count = 0
        async with client.stream("POST", from_, json=body, headers=headers) as response:
            async for _ in httpx2.EventSource(response):
                count += 1
        return count

    return _async(lambda client: read(client, path), lambda client: read(client, WARM_UP))


def _calls(call: Callable[[httpx.Client, int], httpx.Response]) -> Prepared:
    @contextlib.contextmanager
    def prepared(url: str) -> Iterator[Go]:
        with httpx.Client(base_url=url, timeout=60) as client:

            def go(numbers: range) -> int:
                return sum(call(client, number).status_code == 200 for number in numbers)

            go(range(-WARM_UP_CALLS, 0))
            yield lambda: go(range(CALLS))

    return prepared


def _async_calls(call: Callable[[httpx2.AsyncClient, int], Awaitable[httpx2.Response]]) -> Prepared:
    async def go(client: httpx2.AsyncClient, numbers: range) -> int:
        return sum([(await call(client, number)).status_code == 200 for number in numbers])

    return _async(
        lambda client: go(client, range(CALLS)), lambda client: go(client, range(-WARM_UP_CALLS, 0))
    )


def _mcp_call(client: httpx.Client, number: int) -> httpx.Response:
    return client.post("/json", json={**CALL, "id": number}, headers=MCP_HEADERS)


async def _mcp_call_async(client: httpx2.AsyncClient, number: int) -> httpx2.Response:
    return await client.post("/json", json={**CALL, "id": number}, headers=MCP_HEADERS)


def _plain_call(client: httpx.Client, number: int) -> httpx.Response:
    return client.post("/plain", json=CALL) if number % 2 else client.get("/plain")


async def _plain_call_async(client: httpx2.AsyncClient, number: int) -> httpx2.Response:
    return await (client.post("/plain", json=CALL) if number % 2 else client.get("/plain"))


_PROMPT = {"model": "some-model", "stream": True, "messages": [{"role": "user", "content": "Tell me."}]}

_HTTPX, _HTTPX2 = "httpx, httpx-sse", "httpx2, EventSource"
_ALL = EVENTS + 1
_TWENTIES = EVENTS // 20 + 1

WORKS = (
    Work("a1", _HTTPX, _stream("/stream/progress-1"), _ALL, _ALL, _ALL),
    Work("a1", _HTTPX2, _async_stream("/stream/progress-1"), _ALL, _ALL, _ALL),
    Work("a20", _HTTPX, _stream("/stream/progress-20"), _ALL, _ALL, _TWENTIES),
    Work("a20", _HTTPX2, _async_stream("/stream/progress-20"), _ALL, _ALL, _TWENTIES),
    Work("b", _HTTPX, _stream("/stream/tokens", body=_PROMPT, headers={}), _ALL, _ALL, _ALL),
    Work("b", _HTTPX2, _async_stream("/stream/tokens", body=_PROMPT, headers={}), _ALL, _ALL, _ALL),
    Work("c", "httpx", _calls(_mcp_call), CALLS, 0),
    Work("c", "httpx2, async", _async_calls(_mcp_call_async), CALLS, 0),
    Work("d", "httpx", _calls(_plain_call), CALLS, 0),
    Work("d", "httpx2, async", _async_calls(_plain_call_async), CALLS, 0),
    Work("e", _HTTPX, _repeated(_stream("/stream/large"), LARGE_EVENTS), LARGE_EVENTS, LARGE_EVENTS),
)
"""Every row of the table but those that need a process of their own."""
