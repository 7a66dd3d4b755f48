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
LARGE_EVENTS = 4

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
            client.get("/plain")

            def go() -> int:
                with httpx_sse.connect_sse(client, "POST", path, json=body, headers=headers) as source:
                    return sum(1 for _ in source.iter_sse())

            yield go

    return prepared


def _repeated(prepared: Prepared, times: int) -> Prepared:
    @contextlib.contextmanager
    def again(url: str) -> Iterator[Go]:
        with prepared(url) as go:
            yield lambda: sum(go() for _ in range(times))

    return again


def _async(
    work: Callable[[httpx2.AsyncClient], Awaitable[int]],
) -> Prepared:
    """`work` with a client and an event loop that are ready."""

    @contextlib.contextmanager
    def prepared(url: str) -> Iterator[Go]:
        loop = asyncio.new_event_loop()
        client = httpx2.AsyncClient(base_url=url, timeout=60)

        async def do() -> int:
            return await work(client)

        try:
            loop.run_until_complete(client.get("/plain"))
            yield lambda: loop.run_until_complete(do())
        finally:
            loop.run_until_complete(client.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    return prepared


def _async_stream(path: str, *, body: object = CALL, headers: dict[str, str] = MCP_HEADERS) -> Prepared:
    async def work(client: httpx2.AsyncClient) -> int:
        count = 0
        async with client.stream("POST", path, json=body, headers=headers) as response:
            async for _ in httpx2.EventSource(response):
                count += 1
        return count

    return _async(work)


@contextlib.contextmanager
def _mcp_calls(url: str) -> Iterator[Go]:
    with httpx.Client(base_url=url, timeout=60) as client:
        client.get("/plain")

        def go() -> int:
            return sum(
                client.post("/json", json={**CALL, "id": number}, headers=MCP_HEADERS).status_code == 200
                for number in range(CALLS)
            )

        yield go


async def _mcp_calls_async(client: httpx2.AsyncClient) -> int:
    done = 0
    for number in range(CALLS):
        response = await client.post("/json", json={**CALL, "id": number}, headers=MCP_HEADERS)
        done += response.status_code == 200
    return done


@contextlib.contextmanager
def _plain_calls(url: str) -> Iterator[Go]:
    with httpx.Client(base_url=url, timeout=60) as client:
        client.get("/plain")

        def go() -> int:
            half = CALLS // 2
            read = sum(client.get("/plain").status_code == 200 for _ in range(half))
            return read + sum(client.post("/plain", json=CALL).status_code == 200 for _ in range(half))

        yield go


async def _plain_calls_async(client: httpx2.AsyncClient) -> int:
    done = 0
    for number in range(CALLS):
        response = await (client.post("/plain", json=CALL) if number % 2 else client.get("/plain"))
        done += response.status_code == 200
    return done


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
    Work("c", "httpx", _mcp_calls, CALLS, 0),
    Work("c", "httpx2, async", _async(_mcp_calls_async), CALLS, 0),
    Work("d", "httpx", _plain_calls, CALLS, 0),
    Work("d", "httpx2, async", _async(_plain_calls_async), CALLS, 0),
    Work("e", _HTTPX, _repeated(_stream("/stream/large"), LARGE_EVENTS), LARGE_EVENTS, LARGE_EVENTS),
)
"""Every row of the table but those that need a process of their own."""
