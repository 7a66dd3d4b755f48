"""On and off: any number of times, with streams open across it, and nothing is kept."""

import gc
import sys
import weakref
from typing import Any

import pytest
from tests.conftest import FAMILIES, Family, Memory, in_memory
from tests.lifecycle.world import (
    BODY,
    EVENT,
    done,
    fetch,
    get,
    instrument,
    seam,
    spans,
    streams,
    total,
    uninstrument,
)

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

TIMES = 1000
ACROSS = 1000


def test_the_original_is_back_after_any_number_of_times(memory: Memory, server: str) -> None:
    """After a thousand times on and off the very function objects are back, with as many references as before."""
    originals = [seam(family) for family in FAMILIES.values()]
    gc.collect()  # what earlier tests left in cycles
    references = [sys.getrefcount(original) for original in originals]
    for _ in range(TIMES):
        instrument(memory)
        assert all(seam(family) not in originals for family in FAMILIES.values())
        uninstrument()
    gc.collect()
    assert [seam(family) for family in FAMILIES.values()] == originals
    assert [sys.getrefcount(original) for original in originals] == references
    instrument(memory)
    assert get(FAMILIES["httpx2-async"], server) == BODY
    assert streams(memory) == 1


def test_a_stream_that_is_open_across_it(family: Family, memory: Memory, server: str) -> None:
    """A stream is told to the providers under which it began, once, however often others come meanwhile."""
    later = in_memory()

    async def play() -> bytes:
        client = family.client(verify=False)
        request = client.build_request("GET", f"{server}/many/{ACROSS}")
        response = await done(client.send(request, stream=True))
        body = b""
        chunks = response.aiter_raw() if family.is_async else response.iter_raw()
        while True:
            uninstrument()
            try:
                body += await done(chunks.__anext__() if family.is_async else next(chunks))
            except (StopIteration, StopAsyncIteration):
                break
            finally:
                instrument(later)
        await done(response.aclose() if family.is_async else response.close())
        await done(client.aclose() if family.is_async else client.close())
        return body

    instrument(memory)
    assert family.run(play) == EVENT * ACROSS
    (span,) = spans(memory)
    assert dict(span.attributes or {})["sse.stream.events"] == ACROSS
    assert (streams(memory), streams(later)) == (1, 0)
    assert total(memory, "sse.client.active_streams") == 0


def test_other_providers(family: Family, memory: Memory, server: str) -> None:
    """Installed again with other providers, it tells those, and the old ones nothing more."""
    later = in_memory()
    instrument(memory)
    get(family, server)
    uninstrument()
    instrument(later)
    get(family, server)
    get(family, server)
    for seen, expected in ((memory, 1), (later, 2)):
        assert (len(spans(seen)), streams(seen)) == (expected, expected)
    assert total(later, "sse.client.events") == 6


def test_the_same_providers_again(family: Family, memory: Memory, server: str) -> None:
    """Installed again on the same meter, its observable instruments go on counting like all others."""
    for expected in (1, 2, 3):
        instrument(memory)
        get(family, server)
        assert streams(memory) == expected
        assert total(memory, "sse.client.events") == 3 * expected
        uninstrument()


def test_on_twice_or_off_twice(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A second `instrument` or `uninstrument` is one warning and changes nothing."""
    instrument(memory)
    installed = seam(FAMILIES["httpx-sync"])
    instrument(memory)
    assert seam(FAMILIES["httpx-sync"]) is installed
    uninstrument()
    uninstrument()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_nothing_of_ours_is_kept(family: Family, server: str) -> None:
    """Once it is off, installation, observer and telemetry are gone, and so are the providers that it was given."""
    memory = in_memory()
    instrument(memory)
    get(family, server)
    assert streams(memory) == 1
    installation: Any = HTTPXSSEInstrumentor._installation
    kept = [
        weakref.ref(thing)
        for thing in (
            installation,
            installation.observer,
            installation.telemetry,
            installation.watch,
            memory.meter_provider,
            memory.tracer_provider,
        )
    ]
    uninstrument()
    memory.meter_provider.shutdown()
    memory.tracer_provider.shutdown()
    del installation, memory
    gc.collect()
    assert [ref() for ref in kept] == [None] * len(kept)


def test_nothing_of_the_host_is_kept(family: Family, memory: Memory, server: str) -> None:
    """While it is on, no client, transport, request, response or chunk lives longer for having been watched."""
    instrument(memory)
    kept: list[weakref.ref[Any]] = []

    async def play() -> None:
        client = family.client(verify=False)
        response = await done(client.get(server))
        assert response.content == BODY
        transport = client._transport
        kept.extend(weakref.ref(thing) for thing in (client, transport, response, response.request))
        await done(client.aclose() if family.is_async else client.close())

    family.run(play)
    gc.collect()
    assert [ref() for ref in kept] == [None] * len(kept)


def test_the_pool_outlives_nothing(family: Family, memory: Memory, server: str) -> None:
    """Clients that come and go leave no entry behind where transports are numbered."""
    instrument(memory)
    observer = HTTPXSSEInstrumentor._installation.observer  # type: ignore[union-attr]

    async def play() -> None:
        for _ in range(10):
            assert await fetch(family, server) == BODY

    family.run(play)
    gc.collect()
    assert observer._pools == {}
