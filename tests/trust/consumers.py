"""Ways to consume a response, each writing what it gets and what it meets into one log."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio.lowlevel
from tests.conftest import Family
from tests.lifecycle.world import done
from tests.trust.net import Log

Consumer = Callable[[Family, Any, Log, int], Awaitable[None]]
"""Takes the family, an open response, the log and after how many chunks something happens."""

END = object()
STREAM = "stream"
"""Stands for the iterator of a response's stream, which is none of the response's own."""


class Chunks:
    """An iterator of a response, in either colour."""

    def __init__(self, family: Family, response: Any, how: str) -> None:
        self._is_async = family.is_async
        self.iterator: Any
        if how == STREAM:
            self.iterator = aiter(response.stream) if family.is_async else iter(response.stream)
        else:
            self.iterator = getattr(response, ("a" if family.is_async else "") + how)()

    async def next(self, log: Log) -> Any:
        try:
            item = await self.iterator.__anext__() if self._is_async else next(self.iterator)
        except (StopIteration, StopAsyncIteration):
            log.append(("end",))
            return END
        log.append(("chunk", item))
        return item

    async def leave(self, how: str) -> None:
        """Close the iterator, or throw into it."""
        arguments = (ValueError("the host's own"),) if how == "throw" else ()
        await done(getattr(self.iterator, ("a" if self._is_async else "") + how)(*arguments))


async def met(what: Awaitable[Any], log: Log) -> None:
    """Wait for something; an error is written down, and that is that."""
    try:
        await what
    except Exception as error:  # noqa: BLE001
        log.append(("raised", type(error), str(error)))


def generating(library: Any, log: Log) -> Any:
    """A transport's stream that says when it and its generators are closed."""

    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from (b"data: 1\n\n", b"data: 2\n\n")
            finally:
                log.append(("generator closed",))

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                yield b"data: 1\n\n"
                yield b"data: 2\n\n"
            finally:
                log.append(("generator closed",))

        def close(self) -> None:
            log.append(("stream closed",))

        async def aclose(self) -> None:
            log.append(("stream closed",))

    return Stream()


async def close(family: Family, response: Any) -> None:
    await done(response.aclose() if family.is_async else response.close())


def whole(how: str) -> Consumer:
    async def consume(family: Family, response: Any, log: Log, after: int) -> None:
        chunks = Chunks(family, response, how)
        while await chunks.next(log) is not END:
            pass

    return consume


async def read(family: Family, response: Any, log: Log, after: int) -> None:
    log.append(("read", await done(response.aread() if family.is_async else response.read())))


async def _some(family: Family, response: Any, log: Log, after: int) -> Chunks:
    chunks = Chunks(family, response, "iter_raw")
    for _ in range(after):
        if await chunks.next(log) is END:
            break
    return chunks


async def early(family: Family, response: Any, log: Log, after: int) -> None:
    """Stops after some chunks; whoever opened the response closes it."""
    await _some(family, response, log, after)


async def twice(family: Family, response: Any, log: Log, after: int) -> None:
    """Closes twice, then reads on all the same."""
    chunks = await _some(family, response, log, after)
    await close(family, response)
    await close(family, response)
    log.append(("closed", response.is_closed, response.num_bytes_downloaded))
    await chunks.next(log)


async def thrown(family: Family, response: Any, log: Log, after: int) -> None:
    """Throws into the iterator."""
    await (await _some(family, response, log, after)).leave("throw")


async def shut(family: Family, response: Any, log: Log, after: int) -> None:
    """Closes the iterator, not the response."""
    await (await _some(family, response, log, after)).leave("close")
    log.append(("shut", response.is_closed))


async def again(family: Family, response: Any, log: Log, after: int) -> None:
    """Iterates a second time."""
    await _some(family, response, log, after)
    await Chunks(family, response, "iter_raw").next(log)


async def dropped(family: Family, response: Any, log: Log, after: int) -> None:
    """Forgets the iterator in the middle, and lets the garbage be collected."""
    await _some(family, response, log, after)
    gc.collect()
    # Garbage of trio is closed by a task of its own, some turns of the scheduler later.
    for _ in range(12 if family.is_async else 0):
        await anyio.lowlevel.checkpoint()
    log.append(("dropped", response.is_closed, response.is_stream_consumed))


CONSUMERS: dict[str, Consumer] = {
    "raw": whole("iter_raw"),
    "bytes": whole("iter_bytes"),
    "lines": whole("iter_lines"),
    "read": read,
    "early": early,
    "twice": twice,
    "thrown": thrown,
    "shut": shut,
    "again": again,
    "dropped": dropped,
}
