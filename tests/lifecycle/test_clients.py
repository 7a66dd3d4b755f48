"""One client at a time, whatever its transport is, and together with the patch on the classes."""

import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import wrapt
from tests.conftest import Family, Memory
from tests.lifecycle.world import BODY, EVENT, done, fetch, instrument, spans, streams, total

from opentelemetry.instrumentation import httpx as contrib
from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

URL = "http://mock.test/"
SSE = {"content-type": "text/event-stream"}


class Events:
    """A body of three events, in either colour; mixed with a library's own stream classes below."""

    def __iter__(self) -> Iterator[bytes]:
        yield from (EVENT, EVENT, EVENT)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in (EVENT, EVENT, EVENT):
            yield event


def events(family: Family) -> Any:
    """A stream that both colours of the family's library accept."""
    library = family.module
    return type("Stream", (Events, library.SyncByteStream, library.AsyncByteStream), {})()


def mock(family: Family) -> Any:
    return family.module.MockTransport(
        lambda _: family.module.Response(200, headers=SSE, stream=events(family))
    )


def third_party(family: Family) -> Any:
    """A transport that somebody derived from the base class."""
    library = family.module

    class Sync(library.BaseTransport):  # type: ignore[misc,name-defined]
        def handle_request(self, _: Any) -> Any:
            return library.Response(200, headers=SSE, stream=events(family))

    class Async(library.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        async def handle_async_request(self, _: Any) -> Any:
            return library.Response(200, headers=SSE, stream=events(family))

    return Async() if family.is_async else Sync()


def duck(family: Family) -> Any:
    """A transport that derives from nothing."""
    library = family.module

    class Duck:
        def handle_request(self, request: Any) -> Any:
            return library.Response(200, headers=SSE, stream=events(family))

        async def handle_async_request(self, request: Any) -> Any:
            return self.handle_request(request)

        def close(self) -> None:
            """Nothing to close."""

        async def aclose(self) -> None:
            """Nothing to close."""

        __enter__ = __exit__ = lambda self, *_: None
        __aenter__ = __aexit__ = aclose

    return Duck()


async def app(_: Any, receive: Any, send: Any) -> None:
    """An ASGI application."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
    )
    await send({"type": "http.response.body", "body": BODY, "more_body": False})


TRANSPORTS: dict[str, Callable[[Family], Any]] = {
    "mock": mock,
    "asgi": lambda family: family.module.ASGITransport(app=app),
    "third-party": third_party,
    "duck": duck,
}


def on(memory: Memory) -> dict[str, Any]:
    return {"tracer_provider": memory.tracer_provider, "meter_provider": memory.meter_provider}


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_that_the_classes_cannot_see(family: Family, memory: Memory, name: str) -> None:
    """It is watched from `instrument_client` to `uninstrument_client`, not before and not after."""
    if name == "asgi" and not family.is_async:
        pytest.skip("ASGI transports are asynchronous")
    transport = TRANSPORTS[name](family)
    client = family.client(transport=transport)
    before = dict(vars(transport))

    async def play() -> list[tuple[bytes, float]]:
        seen = []
        for step in (None, HTTPXSSEInstrumentor.instrument_client, HTTPXSSEInstrumentor.uninstrument_client):
            if step is not None:
                step(client, **(on(memory) if step is HTTPXSSEInstrumentor.instrument_client else {}))
            seen.append((await fetch(family, URL, client=client), streams(memory)))
        return seen

    assert family.run(play) == [(BODY, 0), (BODY, 1), (BODY, 1)]
    assert vars(transport) == before
    assert "_otel_httpx_sse" not in vars(client)


@pytest.mark.parametrize("order", ["class first", "client first"])
def test_class_and_client_count_once(family: Family, memory: Memory, server: str, order: str) -> None:
    """A client that is watched by itself and by its class is counted once, whichever came first."""

    async def play() -> bytes:
        client = family.client(verify=False)
        if order == "class first":
            instrument(memory)
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        if order == "client first":
            instrument(memory)
        content = await fetch(family, server, client=client)
        await done(client.aclose() if family.is_async else client.close())
        return content

    assert family.run(play) == BODY
    assert (streams(memory), len(spans(memory))) == (1, 1)


@pytest.mark.parametrize("switch", ["class", "client", "both"])
def test_a_transport_that_wraps_another(family: Family, memory: Memory, server: str, switch: str) -> None:
    """A retrying transport around a library's own one: what passes is counted once, by whoever is outermost."""
    library = family.module

    class Sync(library.BaseTransport):  # type: ignore[misc,name-defined]
        inner = library.HTTPTransport(verify=False)

        def handle_request(self, request: Any) -> Any:
            return self.inner.handle_request(request)

    class Async(library.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        inner = library.AsyncHTTPTransport(verify=False)

        async def handle_async_request(self, request: Any) -> Any:
            return await self.inner.handle_async_request(request)

    transport = Async() if family.is_async else Sync()

    async def play() -> bytes:
        client = family.client(transport=transport)
        if switch != "client":
            instrument(memory)
        if switch != "class":
            HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        content = await fetch(family, server, client=client)
        await done(transport.inner.aclose() if family.is_async else transport.inner.close())
        return content

    assert family.run(play) == BODY
    assert (streams(memory), len(spans(memory))) == (1, 1)


def test_mounts(family: Family, memory: Memory) -> None:
    """Every transport of a client is watched, those of its mounts too, and each is left as it was."""
    transports = {name: mock(family) for name in ("http://one.test", "http://two.test")}
    client = family.client(transport=mock(family), mounts=transports)

    async def play() -> None:
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        for url in ("http://one.test/", "http://two.test/", URL):
            assert await fetch(family, url, client=client) == BODY
        assert streams(memory) == 3
        HTTPXSSEInstrumentor.uninstrument_client(client)
        for url in ("http://one.test/", "http://two.test/", URL):
            assert await fetch(family, url, client=client) == BODY
        assert streams(memory) == 3

    family.run(play)


def test_one_transport_on_two_mounts(family: Family, memory: Memory) -> None:
    """It is watched once, and nothing stays on it."""
    shared = mock(family)
    client = family.client(transport=shared, mounts={"http://one.test": shared, "http://two.test": shared})

    async def play() -> None:
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        assert await fetch(family, "http://two.test/", client=client) == BODY
        HTTPXSSEInstrumentor.uninstrument_client(client)

    family.run(play)
    assert streams(memory) == 1
    assert "handle_request" not in vars(shared)
    assert "handle_async_request" not in vars(shared)


def test_without_options_it_joins_the_installation(family: Family, memory: Memory) -> None:
    """Without options of its own a client reports where `instrument` was told to."""
    instrument(memory)
    client = family.client(transport=mock(family))

    async def play() -> None:
        HTTPXSSEInstrumentor.instrument_client(client)
        await fetch(family, URL, client=client)

    family.run(play)
    assert streams(memory) == 1
    assert total(memory, "sse.client.events") == 3


def test_twice_is_one_warning(family: Family, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A second `instrument_client` changes nothing, and an `uninstrument_client` too many neither."""
    client = family.client(transport=mock(family))
    HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
    HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    family.run(lambda: fetch(family, URL, client=client))
    assert streams(memory) == 1
    HTTPXSSEInstrumentor.uninstrument_client(client)
    HTTPXSSEInstrumentor.uninstrument_client(client)


def test_a_client_is_not_kept(family: Family, memory: Memory) -> None:
    """A client that was never un-instrumented goes like any other, and its transport and installation with it."""

    async def play() -> list[weakref.ref[Any]]:
        client: Any = family.client(transport=mock(family))
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        assert await fetch(family, URL, client=client) == BODY
        return [weakref.ref(thing) for thing in (client, client._transport, client._otel_httpx_sse)]

    kept = family.run(play)
    gc.collect()
    assert [ref() for ref in kept] == [None, None, None]


def test_what_was_put_on_the_object_before(family: Family, memory: Memory) -> None:
    """A method that the host put on the transport object itself stays in the way of its requests."""
    client = family.client(transport=mock(family))
    name = "handle_async_request" if family.is_async else "handle_request"

    def sync(_: Any) -> Any:
        return family.module.Response(418)

    async def asynchronous(_: Any) -> Any:
        return family.module.Response(418)

    setattr(client._transport, name, asynchronous if family.is_async else sync)

    async def play() -> list[int]:
        statuses = []
        for switch in (HTTPXSSEInstrumentor.instrument_client, HTTPXSSEInstrumentor.uninstrument_client):
            switch(client, **(on(memory) if switch is HTTPXSSEInstrumentor.instrument_client else {}))
            statuses.append((await done(client.get(URL))).status_code)
        return statuses

    assert family.run(play) == [418, 418]


@pytest.mark.parametrize(
    "comes",
    ["ours", "contrib"],
)
def test_contrib_on_the_same_client(family: Family, memory: Memory, comes: str) -> None:
    """Both `instrument_client`s record, whichever was called first."""
    kind = getattr(contrib, "HTTPX2ClientInstrumentor", None)
    kind = contrib.HTTPXClientInstrumentor if family.library == "httpx" else kind
    if kind is None:
        pytest.skip("this opentelemetry-instrumentation-httpx knows no httpx2")
    client = family.client(transport=mock(family))
    switch = [
        lambda: HTTPXSSEInstrumentor.instrument_client(client, **on(memory)),
        lambda: kind.instrument_client(client, tracer_provider=memory.tracer_provider),
    ]
    for one in switch if comes == "ours" else reversed(switch):
        one()
    family.run(lambda: fetch(family, URL, client=client))
    assert (len(spans(memory)), len(spans(memory, "GET"))) == (1, 1)


def test_a_wrapper_on_the_object_that_came_after(family: Family, memory: Memory) -> None:
    """Somebody's wrapper over ours goes on working when ours leaves, and ours lets everything pass."""
    client = family.client(transport=mock(family))
    name, calls = "handle_async_request" if family.is_async else "handle_request", []

    def wrapper(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        calls.append(name)
        return wrapped(*args, **kwargs)

    async def play() -> None:
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        wrapt.wrap_function_wrapper(client._transport, name, wrapper)
        assert await fetch(family, URL, client=client) == BODY
        HTTPXSSEInstrumentor.uninstrument_client(client)
        assert await fetch(family, URL, client=client) == BODY

    family.run(play)
    assert (len(calls), streams(memory)) == (2, 1)


def test_a_bound_method_outlives_the_client(family: Family, memory: Memory) -> None:
    """`transport.handle_request`, taken while a client is watched, works when the client is gone, as it does plain."""
    client: Any = family.client(transport=mock(family))
    HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
    send = client._transport.handle_async_request if family.is_async else client._transport.handle_request
    request = client.build_request("GET", URL)
    del client
    gc.collect()

    async def play() -> int:
        status: int = (await done(send(request))).status_code
        return status

    assert family.run(play) == 200


def test_two_clients_on_one_transport(family: Family, memory: Memory) -> None:
    """When one of two clients that share a transport is left alone again, the other is still watched."""
    shared = mock(family)
    first, second = family.client(transport=shared), family.client(transport=shared)

    async def play() -> None:
        HTTPXSSEInstrumentor.instrument_client(first, **on(memory))
        HTTPXSSEInstrumentor.instrument_client(second, **on(memory))
        HTTPXSSEInstrumentor.uninstrument_client(second)
        await fetch(family, URL, client=first)

    family.run(play)
    assert streams(memory) == 1


def test_two_clients_on_one_meter(family: Family, memory: Memory) -> None:
    """Clients that were switched on one by one, on the same provider, are all in its observable instruments."""
    clients = [family.client(transport=mock(family)) for _ in range(2)]

    async def play() -> None:
        for client in clients:
            HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
        for client in clients:
            await fetch(family, URL, client=client)

    family.run(play)
    assert streams(memory) == 2
    assert total(memory, "sse.client.events") == 6


def test_a_client_that_goes_gives_the_gauges_back(family: Family, memory: Memory, server: str) -> None:
    """A client with options of its own, on the same meter, leaves what `instrument` shows as it is."""
    instrument(memory)
    client: Any = family.client(transport=mock(family))
    HTTPXSSEInstrumentor.instrument_client(client, **on(memory), idle_threshold=3)
    HTTPXSSEInstrumentor.uninstrument_client(client)
    del client
    gc.collect()
    family.run(lambda: fetch(family, server))
    assert total(memory, "sse.client.events") == 3


def test_a_mock_with_content(family: Family, memory: Memory) -> None:
    """A mock that answers with `content=` is watched like one that streams."""
    library = family.module
    transport = library.MockTransport(lambda _: library.Response(200, headers=SSE, content=BODY))
    client = family.client(transport=transport)
    HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
    assert family.run(lambda: fetch(family, URL, client=client)) == BODY
    assert (streams(memory), total(memory, "sse.client.events")) == (1, 3)
    assert total(memory, "sse.client.stream.duration", sse_stream_end="complete") == 1


def test_a_transport_that_takes_no_attributes(family: Family, memory: Memory) -> None:
    """A `TypeError` says so, and nothing is left half done."""
    library = family.module

    class Slots:
        __slots__ = ()

        def handle_request(self, _: Any) -> Any:
            return library.Response(200)

        handle_async_request = handle_request

    first = mock(family)
    client = family.client(transport=first, mounts={"http://slots.test": Slots()})
    with pytest.raises(TypeError, match="Slots"):
        HTTPXSSEInstrumentor.instrument_client(client, **on(memory))
    assert "handle_request" not in vars(first)


def test_an_unknown_option(family: Family) -> None:
    """A `TypeError`, and the client is left as it was."""
    client = family.client(transport=mock(family))
    with pytest.raises(TypeError, match="idle_treshold"):
        HTTPXSSEInstrumentor.instrument_client(client, idle_treshold=3)
    assert "handle_request" not in vars(client._transport)
    assert "_otel_httpx_sse" not in vars(client)
