"""With and without: the same bytes, exceptions, order, back-pressure and pool, whatever comes and whoever consumes."""

import asyncio
import gc
import os
import re
import sys
import threading
import warnings
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import FAMILIES, Family, Memory, in_memory
from tests.lifecycle.world import done, instrument, streams, total
from tests.trust.consumers import CONSUMERS, END, STREAM, Chunks, Consumer, close, generating, met
from tests.trust.net import URL, End, Log, Network, Script, client_on, plain, pool_of

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

EXAMPLES = int(os.environ.get("TRUST_EXAMPLES", "60"))
ASYNC = [name for name, family in FAMILIES.items() if family.is_async]
HEADERS = {"Accept": "text/event-stream", "Mcp-Session-Id": "s", "MCP-Protocol-Version": "2025-11-25"}
LEAVING = ("twice", "shut", "dropped")
"""Consumers that leave an iterator in the middle, or read it on after the response was closed."""
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'
Asked = tuple[str, dict[str, str], bytes | None]
"""A request: its method, its headers beside `HEADERS`, and its body."""


# ------------------------------------------------------------------ what comes


def gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "none": ("", bytes),
    "identity": ("identity", bytes),
    "gzip": ("gzip", gzip),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "broken gzip": ("gzip", bytes),
    "unknown": ("snappy", bytes),
    "two": ("gzip, deflate", lambda body: zlib.compress(gzip(body))),
}

LINES = (
    b"data: hello\n", b"id: 1\n", b"id: 2\n", b"\n", b"\r\n", b"\r", b":\n", b"retry: 10\n", b"event: endpoint\n",
    b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
    b'data: {"jsonrpc":"2.0","id":9,"method":"elicitation/create"}\n\n',
    b"data: [1, 2\n\n", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe",
)  # fmt: skip
BODIES = st.lists(st.sampled_from(LINES) | st.binary(max_size=8), max_size=12).map(b"".join)
PROGRESS = (
    b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n\n'
)
QUIET_LINES = (PROGRESS, *(line for line in LINES if b"jsonrpc" not in line))
HEALTHY = st.lists(st.sampled_from(QUIET_LINES) | st.binary(max_size=8), max_size=12).map(b"".join)
"""Of a replay that repeats neither an answer nor a question."""
MEDIA = st.sampled_from(
    ["text/event-stream", "text/event-stream; charset=utf-8", "application/json", "text/plain", ""]
)
STATUSES = st.sampled_from([200, 200, 200, 202, 400, 404, 500])


@st.composite
def scripts(draw: st.DrawFn, *, is_healthy: bool = False) -> Script:
    """A response in pieces: any body, framing, coding and cut; it may end before it is whole.

    A healthy one is an event stream with status 200.
    """
    coding, encode = CODINGS[draw(st.sampled_from(sorted(CODINGS)))]
    body = encode(draw(HEALTHY if is_healthy else BODIES))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    status, media = (200, "text/event-stream") if is_healthy else (draw(STATUSES), draw(MEDIA))
    head = [f"HTTP/1.1 {status} x", f"Content-Type: {media}"]
    head += [f"Content-Encoding: {coding}"] if coding else []
    head += {"length": [f"Content-Length: {len(body)}"], "chunked": ["Transfer-Encoding: chunked"]}.get(
        framing, []
    )
    if framing == "chunked":
        at = sorted(draw(st.lists(st.integers(0, len(body)), max_size=4)))
        parts = [body[a:b] for a, b in zip([0, *at], [*at, len(body)], strict=True) if b > a]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    first = ("\r\n".join(head) + "\r\n\r\n").encode()
    cut = draw(st.none() | st.integers(0, len(body)))
    wire = body if cut is None else body[:cut]
    splits = sorted(draw(st.lists(st.integers(0, len(wire)), max_size=5)))
    reads = [wire[a:b] for a, b in zip([0, *splits], [*splits, len(wire)], strict=True)]
    end: End = draw(st.sampled_from(["eof", "reset", "timeout"]))
    return Script((first, *reads), end)


@st.composite
def frames(draw: st.DrawFn, *, is_healthy: bool = False) -> Script:
    """A response over HTTP/2: any DATA frames, ended by the server or reset by it."""
    reads = draw(st.lists(HEALTHY if is_healthy else BODIES, max_size=4))
    return Script(tuple(reads), draw(st.sampled_from(["eof", "reset"])))


# ------------------------------------------------------------------ the comparison


REQUESTS: dict[str, tuple[Asked, Asked]] = {
    "GET": (("GET", {}, None),) * 2,
    "POST": (("POST", {}, None),) * 2,
    "call": (("POST", {}, CALL),) * 2,
    "resume": (("POST", {}, CALL), ("GET", {"Last-Event-ID": "1", "Accept-Encoding": "identity"}, None)),
}
"""What is asked in two exchanges. A resume asks for plain text itself here, so that the guard need not."""


async def exchange(
    family: Family,
    net: Network,
    consumer: Consumer,
    after: int,
    asked: tuple[Asked, Asked] = REQUESTS["GET"],
    session: Mapping[str, str] | None = None,
) -> Log:
    """One exchange and one more on the same client; everything that happened."""
    client, log = client_on(family, net), net.log
    try:
        for method, more, content in asked:
            try:
                opened = client.stream(
                    method, URL, headers={**HEADERS, **(session or {}), **more}, content=content
                )
                if family.is_async:
                    async with opened as response:
                        await consumer(family, response, log, after)
                else:
                    with opened as response:
                        await consumer(family, response, log, after)
                log.append(("left", response.is_closed, response.num_bytes_downloaded))
            except Exception as error:  # noqa: BLE001
                log.append(
                    ("raised", type(error), str(error), type(error.__cause__), type(error.__context__))
                )
            log.append(("pool", pool_of(client)))
    finally:
        await done(client.aclose() if family.is_async else client.close())
    return log


def both(family: Family, play: Callable[[], Log]) -> tuple[Log, Log]:
    """The log without and with the instrumentation, which is installed."""
    with plain():
        without = play()
    return without, play()


def same(
    family: Family, consumer: str, http2: bool, examples: int, asked: st.SearchStrategy[str], guard: bool
) -> Memory:
    """Compare plain with watched, or guarded, exchanges. What was told of them.

    Of a resume the response is a healthy one. Each example is a session of its own: its streams were not resumed in
    vain by the one before it.
    """
    memory, sessions = in_memory(), count(100_000)
    responses = frames if http2 else scripts
    cases = asked.flatmap(lambda name: st.tuples(st.just(name), responses(is_healthy=name == "resume")))

    @settings(
        max_examples=examples,
        derandomize=guard,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, after=st.integers(0, 4))
    def holds(case: tuple[str, Script], after: int) -> None:
        name, script = case
        session = {"Mcp-Session-Id": str(next(sessions))}

        def play() -> Log:
            net = Network(family, script, http2=http2)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # see test_generators_are_closed
                log = family.run(
                    lambda: exchange(family, net, CONSUMERS[consumer], after, REQUESTS[name], session)
                )
                gc.collect()
            return log

        without, watched = both(family, play)
        assert watched == without

    # Without the guard's own ping, which is a request more.
    instrument(memory, **({"guard": True, "guard_probe": False} if guard else {}))
    gc.collect()
    gc.freeze()  # so that a collection looks at one exchange, not at the whole process
    try:
        holds()
    finally:
        gc.unfreeze()
    assert next(sessions) > 100_000
    return memory


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_any_response_and_any_consumer(family: Family, consumer: str, http2: bool) -> None:
    """What the network is asked and what the consumer meets is the same, in the same order, to the last byte."""
    same(family, consumer, http2, EXAMPLES // 10 or 1, st.sampled_from(["GET", "POST"]), guard=False)


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_any_healthy_exchange_under_the_guard(family: Family, consumer: str, http2: bool) -> None:
    """With the guard on it is the same, too, for streams, calls and resumes that are healthy; it does nothing."""
    asked = st.sampled_from(["GET", "call", "resume"])
    memory = same(family, consumer, http2, EXAMPLES // 15 or 1, asked, guard=True)
    assert total(memory, "sse.client.guard.actions") == 0


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("consumer", LEAVING)
def test_iterators_that_are_left_under_the_guard(
    family: Family, memory: Memory, consumer: str, http2: bool
) -> None:
    """Whoever leaves an iterator in the middle, or reads on after he closed, meets what he meets plain."""
    instrument(memory, guard=True, guard_probe=False)
    script = Script((b"data: 1\n\n", b"data: 2\n\n") if http2 else (*REPLY, b"0\r\n\r\n"))

    def play() -> Log:
        net = Network(family, script, http2=http2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            log = family.run(lambda: exchange(family, net, CONSUMERS[consumer], 1))
            gc.collect()
        return log

    without, guarded = both(family, play)
    assert guarded == without


def test_it_was_watched(family: Family, memory: Memory) -> None:
    """The comparison is one of something: the same exchanges leave streams behind."""
    instrument(memory)
    script = Script(
        (b"HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\n", b"data: x\n\n")
    )
    family.run(lambda: exchange(family, Network(family, script), CONSUMERS["raw"], 0))
    assert streams(memory) == 2


# ------------------------------------------------------------------ chunks


def test_the_very_same_chunk_objects(family: Family, memory: Memory) -> None:
    """The client gets the object that the transport gave, be it bytes or something that pretends to be."""

    class Odd(bytes):
        """Not quite bytes."""

    given = [b"data: 1\n\n", Odd(b"data: 2\n\n"), bytes(bytearray(b"data: 3\n\n"))]
    library = family.module

    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Iterator[bytes]:
            yield from given

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in given:
                yield chunk

    answer = library.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())
    client = family.client(transport=library.MockTransport(lambda _: answer))
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider
    )
    got: list[Any] = []

    async def play() -> None:
        response = await done(client.send(client.build_request("GET", URL), stream=True))
        chunks, log = Chunks(family, response, "iter_raw"), Log()
        while (chunk := await chunks.next(log)) is not END:
            got.append(chunk)
        await close(family, response)

    family.run(play)
    assert streams(memory) == 1
    assert [id(chunk) for chunk in got] == [id(chunk) for chunk in given]


@pytest.mark.parametrize("guard", [False, True], ids=["watched", "guarded"])
@pytest.mark.parametrize("whose", ["iter_raw", STREAM])
@pytest.mark.parametrize("how", ["close", "throw"])
def test_generators_are_closed(family: Family, memory: Memory, how: str, whose: str, guard: bool) -> None:
    """When an iterator is closed or thrown into, a generator of the transport under it is closed as early as plain.

    Be it the response's iterator or that of its stream; those that are made afterwards meet what they meet plain.
    """
    library, options = family.module, {"guard": guard, "meter_provider": memory.meter_provider}

    def play(is_plain: bool) -> Log:
        log: Log = []
        stream = generating(library, log)
        answer = library.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)
        client = family.client(transport=library.MockTransport(lambda _: answer), headers=HEADERS)

        async def consume() -> None:
            if not is_plain:
                HTTPXSSEInstrumentor.instrument_client(
                    client, tracer_provider=memory.tracer_provider, **options
                )
            response = await done(client.send(client.build_request("GET", URL), stream=True))
            for reads in (1, 3, 1):
                chunks = Chunks(family, response, whose)
                for _ in range(reads):
                    await met(chunks.next(log), log)
                await met(chunks.leave(how), log)
                log.append(("left",))
                await met(chunks.next(log), log)
            await close(family, response)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            family.run(consume)
            gc.collect()
        return log

    assert play(is_plain=False) == play(is_plain=True)
    assert streams(memory) == 1


# ------------------------------------------------------------------ cancellation

REPLY = (
    b"HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"9\r\ndata: 1\n\n\r\n",
    b"9\r\ndata: 2\n\n\r\n",
)


def cancelled(family: Family, kind: str, at: int, end: End, http2: bool) -> tuple[Log, bool]:
    """An exchange that is cancelled at one of its awaits; whether it came so far."""
    reached: list[int] = []
    victim: list[Any] = []

    def step(number: int) -> None:
        if number == at and victim:
            reached.append(number)
            victim[0].cancel()

    script = Script((b"data: 1\n\n", b"data: 2\n\n") if http2 else REPLY, end)
    net = Network(family, script, http2=http2, at_step=step)

    async def consume(client: Any) -> None:
        try:
            async with client.stream("GET", URL, headers=HEADERS) as response:
                async for chunk in response.aiter_raw():
                    net.log.append(("chunk", chunk))
            await anyio.lowlevel.checkpoint()
            net.log.append(("left",))
        except BaseException as error:
            net.log.append(("raised", type(error), re.sub("[0-9a-f]{8,}", "", str(error))))
            if not isinstance(error, Exception):
                raise

    async def play() -> Log:
        client = client_on(family, net)
        if kind == "task":
            task = asyncio.ensure_future(consume(client))
            victim.append(task)
            await asyncio.wait({task})
            net.log.append(("task", task.cancelled()))
        else:
            with anyio.CancelScope() as scope:
                victim.append(scope)
                await consume(client)
            net.log.append(("scope", scope.cancelled_caught))
        victim.clear()
        net.log.append(("pool", pool_of(client)))
        await client.aclose()
        return net.log

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        log = family.run(play)
        gc.collect(0)
    return log, bool(reached)


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("end", ["eof", "reset"])
@pytest.mark.parametrize("kind", ["scope", "task"])
@pytest.mark.parametrize("name", ASYNC)
@pytest.mark.parametrize("guard", [False, True], ids=["watched", "guarded"])
def test_cancelled_at_every_await(
    memory: Memory, guard: bool, name: str, kind: str, end: End, http2: bool
) -> None:
    """Cancelled at its first await, its second and so on to the last, an exchange ends as it does plain."""
    family = FAMILIES[name]
    if kind == "task" and family.backend == "trio":
        pytest.skip("tasks of trio are cancelled by scopes only")
    instrument(memory, guard=guard)
    for at in range(60):
        with plain():
            without = cancelled(family, kind, at, end, http2)
        assert cancelled(family, kind, at, end, http2) == without
        if not without[1]:
            break
    assert 4 < at < 59


# ------------------------------------------------------------------ never closed


def left_open(family: Family, when: str) -> list[Any]:
    """A response that is never closed, collected as garbage while its loop runs or afterwards; what was heard."""
    heard: list[Any] = []
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda fault: heard.append((type(fault.exc_value), str(fault.exc_value)))
    kept: list[Any] = []

    async def play() -> Log:
        net = Network(family, Script((*REPLY, b"0\r\n\r\n")))
        client = client_on(family, net)
        response = await done(client.send(client.build_request("GET", URL, headers=HEADERS), stream=True))
        chunks = Chunks(family, response, "iter_raw")
        await chunks.next(net.log)
        if when == "after":
            kept.extend([client, response, chunks])
            return net.log
        del response, chunks
        gc.collect()
        for _ in range(5 if family.is_async else 0):
            await anyio.lowlevel.checkpoint()
        net.log.append(("pool", pool_of(client)))
        await done(client.aclose() if family.is_async else client.close())
        return net.log

    try:
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            log = family.run(play)
            kept.clear()
            gc.collect()
    finally:
        sys.unraisablehook = unraisable
    return [log, heard, sorted(str(warning.category.__name__) for warning in met)]


@pytest.mark.parametrize("when", ["meanwhile", "after"])
def test_never_closed(family: Family, memory: Memory, when: str) -> None:
    """A response that is forgotten leaves the same pool and the same warnings, and one abandoned stream."""
    instrument(memory)
    gc.collect()
    with plain():
        without = left_open(family, when)
    assert left_open(family, when) == without
    assert streams(memory) == 1


# ------------------------------------------------------------------ threads


def test_read_in_another_thread(memory: Memory) -> None:
    """A response may be opened in one thread, read in a second and closed in a third."""
    family = FAMILIES["httpx-sync"]

    def play() -> Log:
        net = Network(family, Script((*REPLY, b"0\r\n\r\n")))
        client = client_on(family, net)
        response = client.send(client.build_request("GET", URL, headers=HEADERS), stream=True)
        steps: list[Callable[[], Any]] = [
            lambda: net.log.extend(("chunk", chunk) for chunk in response.iter_raw()),
            response.close,
        ]
        for step in steps:
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
        return [*net.log, ("pool", pool_of(client))]

    instrument(memory)
    without, watched = both(family, play)
    assert watched == without
    assert streams(memory) == 1
