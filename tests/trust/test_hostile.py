"""Hostile input through the seam: nothing raises, the bytes are the same, memory is bounded and work is linear."""

import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest
from tests.bench.growth import counting
from tests.conftest import FAMILIES, Family, Memory
from tests.lifecycle.world import done, total
from tests.trust.hostile import ATTACKS, HEADERS, KIB, MIB, Attack

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

SMALL: Final = 32 * KIB
LARGE: Final = 8 * SMALL
HUGE: Final = 10 * MIB
CROWD: Final = int(os.environ.get("TRUST_CROWD", MIB))
"""Bytes of small things that are held against a bound; each takes its time while memory is traced."""

BOTH: Final = ("httpx-sync", "httpx2-async")
"""Each library and each colour once: how a body is read is the matter of the transparency tests."""

Got = tuple[Any, ...]


def streaming(library: Any, body: Callable[[], Iterator[bytes]]) -> Any:
    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            return body()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in body():
                yield piece

    return Stream()


def client_of(family: Family, attack: Attack, size: int) -> Any:
    """A client of somebody who attacks whoever asks."""
    library = family.module

    def answer(_: Any) -> Any:
        stream = streaming(library, lambda: attack.body(size))
        return library.Response(attack.status, headers=attack.answer, stream=stream)

    return family.client(transport=library.MockTransport(answer))


def watched(family: Family, attack: Attack, size: int, memory: Memory) -> Any:
    client = client_of(family, attack, size)
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider
    )
    return client


async def suffer(family: Family, client: Any, content: bytes, asked: dict[str, str] = HEADERS) -> Got:
    """One exchange; what the host saw of it."""
    request = client.build_request("POST", "http://server.test/mcp", headers=asked, content=content)
    digest, count = hashlib.sha256(), 0
    response = await done(client.send(request, stream=True))
    if family.is_async:
        async for piece in response.aiter_raw():
            digest.update(piece)
            count += 1
    else:
        for piece in response.iter_raw():
            digest.update(piece)
            count += 1
    await done(response.aclose() if family.is_async else response.close())
    return response.status_code, count, digest.hexdigest()


def suffered(family: Family, client: Any, attack: Attack, size: int) -> Got:
    content = attack.content(size)
    return family.run(lambda: suffer(family, client, content, attack.asked))


def peak(play: Callable[[], object]) -> int:
    """The most bytes that were held at once beyond what was held before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        play()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def operations(family: Family, attack: Attack, size: int, memory: Memory) -> int:
    """What watching one exchange takes, counted."""
    client = watched(family, attack, size, memory)
    suffered(family, client, attack, SMALL)
    with counting() as count:
        suffered(family, client, attack, size)
    return count()


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", ATTACKS)
def test_the_host_is_not_hurt(memory: Memory, name: str, library: str) -> None:
    """Whatever comes, twice on one client: no error of ours, and to the host it is what it is without us."""
    family, attack = FAMILIES[library], ATTACKS[name]
    plain = suffered(family, client_of(family, attack, LARGE), attack, LARGE)
    client = watched(family, attack, LARGE, memory)
    assert [suffered(family, client, attack, LARGE) for _ in range(2)] == [plain] * 2
    assert not client._otel_httpx_sse.installation.containment.errors
    assert total(memory, "sse.client.active_streams") == 0


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_held_has_a_bound(memory: Memory, name: str) -> None:
    """However much comes, watching it holds no more than its bound at any moment."""
    family, attack = FAMILIES["httpx2-sync"], ATTACKS[name]
    size = CROWD if attack.is_crowd else HUGE
    plain = client_of(family, attack, size)
    without = peak(lambda: suffered(family, plain, attack, size))
    client = watched(family, attack, size, memory)
    assert peak(lambda: suffered(family, client, attack, size)) - without < attack.most


@pytest.mark.parametrize("name", ATTACKS)
def test_work_is_linear(memory: Memory, name: str) -> None:
    """Eight times as much takes about eight times the operations at most; if work grew with its square, 64 times."""
    family, attack = FAMILIES["httpx2-sync"], ATTACKS[name]
    assert operations(family, attack, LARGE, memory) <= 12 * operations(family, attack, SMALL, memory)
