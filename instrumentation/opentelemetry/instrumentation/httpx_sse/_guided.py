"""The driver of scripts: what `_steps` says, done synchronously and asynchronously.

Beside `_transport`, the only module that knows one from the other. It is loaded when a first script is to be driven.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import anyio

from ._proxy import StandIn
from ._steps import (
    GIVEN,
    QUIET,
    Close,
    Deliver,
    Given,
    Next,
    Quiet,
    Respond,
    Script,
    Send,
    Sleep,
    Step,
    Substitute,
    Watch,
)

_POLL: Final = 0.002
"""Seconds between two looks at a socket, where nothing better tells whether bytes are there."""


def _library(request: Any) -> Any:
    """The library of a request: where its response has to come from."""
    for base in type(request).__mro__:
        module = sys.modules.get(base.__module__.partition(".")[0])
        if hasattr(module, "ByteStream") and hasattr(module, "Response"):
            return module
    raise TypeError("a request of an unknown library")


def _is_readable(response: Any) -> bool | None:
    """Whether bytes of a response wait at its connection; None where that cannot be told."""
    stream = response.extensions.get("network_stream")
    if stream is None or response.extensions.get("http_version") not in (b"HTTP/1.1", b"HTTP/1.0"):
        return None
    encrypted = stream.get_extra_info("ssl_object")
    if encrypted is not None and hasattr(encrypted, "pending") and encrypted.pending():
        return True
    readable: bool | None = stream.get_extra_info("is_readable")
    return readable


class _SyncSource:
    """A response that a script reads."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self._stream = response.stream
        self._chunks: Iterator[bytes] | None = None

    def next(self, within: float | None, chunks: Iterator[bytes] | None) -> bytes | Quiet | None:
        """The next chunk, of the transport's iterator that the client's own stands on.

        Args:
            within: see `_steps.Next`.
            chunks: None of a response that the client is not given: its iterator is kept here.
        """
        if within is not None and not self._wait(within):
            return QUIET
        if chunks is None:
            chunks = self._chunks = self._chunks or iter(self._stream)
        return next(chunks, None)

    def _wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (ready := _is_readable(self.response)) is False and time.monotonic() < until:
            time.sleep(_POLL)
        return bool(ready)

    def close(self) -> None:
        self._stream.close()


def _retrieve(task: "asyncio.Task[bytes | None]") -> None:
    """The error of a read that nobody waits for any more is no news."""
    if not task.cancelled():
        task.exception()


class _AsyncSource:
    """Same as _SyncSource, for asynchronous streams.

    Under asyncio a chunk that did not come in time is still waited for, in a task of its own, and comes later: a
    read that is cancelled would end the connection.
    """

    def __init__(self, response: Any) -> None:
        self.response = response
        self._stream = response.stream
        self._chunks: AsyncIterator[bytes] | None = None
        self._coming: asyncio.Task[bytes | None] | None = None

    async def next(self, within: float | None, chunks: AsyncIterator[bytes] | None) -> bytes | Quiet | None:
        if chunks is None:
            chunks = self._chunks = self._chunks or self._stream.__aiter__()
        if self._coming is None and within is None:
            return await self._read(chunks)
        if not self._is_asyncio():
            return await self._read(chunks) if await self._wait(within or 0.0) else QUIET
        coming = self._coming
        if coming is None:
            coming = self._coming = asyncio.ensure_future(self._read(chunks))
            coming.add_done_callback(_retrieve)
        try:
            await asyncio.wait((coming,), timeout=within)
        except BaseException:
            coming.cancel()
            raise
        if not coming.done():
            return QUIET
        self._coming = None
        return coming.result()

    @staticmethod
    async def _read(chunks: AsyncIterator[bytes]) -> bytes | None:
        try:
            return await chunks.__anext__()
        except StopAsyncIteration:
            return None

    @staticmethod
    def _is_asyncio() -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    async def _wait(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while (ready := _is_readable(self.response)) is False:  # noqa: ASYNC110 - a socket sets no event
                await anyio.sleep(_POLL)
            return bool(ready)
        return False

    async def give_up(self) -> None:
        """End a read that nobody waits for any more, so that its iterator can be closed."""
        coming, self._coming = self._coming, None
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))

    async def close(self, chunks: AsyncIterator[bytes] | None = None) -> None:
        """Close the response.

        Args:
            chunks: see `next`; None as well when it is the client who closes.
        """
        unfinished = chunks or self._chunks
        try:
            if self._coming is not None:
                # It is not waited for: whoever closes may have been cancelled, and the connection must be closed.
                self._coming.cancel()
            elif unfinished is not None:
                await self._leave(unfinished)
        finally:
            await self._stream.aclose()

    async def _leave(self, chunks: AsyncIterator[bytes]) -> None:
        """Finish the transport's generators by a read that is cancelled, since closing one leaves those below it."""
        with anyio.CancelScope() as scope, suppress(Exception):
            scope.cancel()
            # What has come already is read without waiting, so that no cancellation is met.
            while await self._read(chunks) is not None:
                pass


class _Guide:
    """What both colours of driver share.

    Args:
        script: says what is to be done.
        send: sends a request through the wrapped transport.
        let_go: takes a response that is only to be watched from here on.
    """

    def __init__(self, script: Script, send: Callable[[Any], Any], let_go: Callable[..., None]) -> None:
        self._script = script
        self._send = send
        self._let_go = let_go
        self.is_over = False
        """The script is: whoever reads all the same gets what the transport has to say."""

    def _response(self, step: Given, request: Any, guided: Any) -> Any:
        """What the client is given for a head; None when we could not make it."""
        try:
            if isinstance(step, Substitute):
                library = _library(request)
                stream = library.ByteStream(step.content)
                return library.Response(step.status, headers=list(step.headers), stream=stream)
            assert isinstance(step, Respond | Watch)  # noqa: S101 - a head is one of the three
            response = step.source.response
            if isinstance(step, Respond):
                response.stream = guided(response.stream, self, step.source)
            else:
                self._let_go(response, is_begun=step.is_begun)
        except Exception as error:  # noqa: BLE001
            self._script.failed(error)
            return None
        else:
            return response

    def closed(self) -> None:
        """The client has closed the response."""
        self.is_over = True
        self._script.closed()


class SyncGuide(_Guide):
    """Does what a script says."""

    def head(self, request: Any) -> Any:
        """The response that the client is given."""
        while (response := self._response(self._turn(None), request, _SyncBody)) is None:
            pass
        return response

    def chunk(self, chunks: Iterator[bytes]) -> bytes | None:
        """What the client is given next; None at the end of the body.

        Args:
            chunks: the transport's iterator.
        """
        self.is_over, step = True, self._turn(chunks)
        if not isinstance(step, Deliver):
            return None
        self.is_over = False
        return step.chunk

    def _turn(self, chunks: Iterator[bytes] | None) -> Given:
        """Until the client is given something."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            step = self._script.step(answer, error)
            if isinstance(step, GIVEN):
                return step
            answer, error = None, None
            try:
                answer = self._do(step, chunks)
            except BaseException as raised:  # noqa: BLE001 - the script gives it to the client
                error = raised

    def _do(self, step: Step, chunks: Iterator[bytes] | None) -> Any:
        match step:
            case Next(source, within):
                return source.next(within, chunks)  # type: ignore[attr-defined]
            case Send(request):
                return _SyncSource(self._send(request))
            case Close(source):
                return source.close()  # type: ignore[attr-defined]
            case Sleep(seconds):
                return time.sleep(seconds)


class AsyncGuide(_Guide):
    """Same as SyncGuide, for asynchronous transports."""

    async def head(self, request: Any) -> Any:
        while (response := self._response(await self._turn(None), request, _AsyncBody)) is None:
            pass
        return response

    async def chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        self.is_over, step = True, await self._turn(chunks)
        if not isinstance(step, Deliver):
            return None
        self.is_over = False
        return step.chunk

    async def _turn(self, chunks: AsyncIterator[bytes] | None) -> Given:
        answer: Any = None
        error: BaseException | None = None
        while True:
            step = self._script.step(answer, error)
            if isinstance(step, GIVEN):
                return step
            answer, error = None, None
            try:
                answer = await self._do(step, chunks)
            except BaseException as raised:  # noqa: BLE001 - the script gives it to the client
                error = raised

    async def _do(self, step: Step, chunks: AsyncIterator[bytes] | None) -> Any:
        match step:
            case Next(source, within):
                return await source.next(within, chunks)  # type: ignore[attr-defined]
            case Send(request):
                return _AsyncSource(await self._send(request))
            case Close(source):
                return await source.close(chunks)  # type: ignore[attr-defined]
            case Sleep(seconds):
                return await anyio.sleep(seconds)


class _SyncChunks:
    """What the client iterates over. Only it holds the transport's iterator, which goes when it goes."""

    __slots__ = ("_chunks", "_guide")

    def __init__(self, guide: SyncGuide, chunks: Iterator[bytes]) -> None:
        self._guide = guide
        self._chunks: Any = chunks

    def __iter__(self) -> Iterator[bytes]:
        return self

    def close(self) -> None:
        """See `_transport`: what a generator can."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()

    def __next__(self) -> bytes:
        if self._guide.is_over:
            chunk: bytes = next(self._chunks)
            return chunk
        given = self._guide.chunk(self._chunks)
        if given is None:
            raise StopIteration
        return given


class _AsyncChunks:
    """Same as _SyncChunks, for asynchronous streams."""

    __slots__ = ("_chunks", "_guide", "_source")

    def __init__(self, guide: AsyncGuide, chunks: AsyncIterator[bytes], source: _AsyncSource) -> None:
        self._guide = guide
        self._chunks: Any = chunks
        self._source = source

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def aclose(self) -> None:
        await self._source.give_up()
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    async def asend(self, _: Any) -> bytes:
        return await self.__anext__()

    async def athrow(self, *error: Any) -> bytes:
        chunk: bytes = await self._chunks.athrow(*error)
        return chunk

    async def __anext__(self) -> bytes:
        if self._guide.is_over:
            chunk: bytes = await self._chunks.__anext__()
            return chunk
        given = await self._guide.chunk(self._chunks)
        if given is None:
            raise StopAsyncIteration
        return given


class _SyncBody(StandIn):
    """A response's stream whose chunks a script gives out."""

    def __init__(self, stream: Any, guide: SyncGuide, source: _SyncSource) -> None:
        super().__init__(stream)
        self._self_parts = (guide, source)

    def __iter__(self) -> Iterator[bytes]:
        return _SyncChunks(self._self_parts[0], iter(self.__wrapped__))

    def close(self) -> None:
        guide, source = self._self_parts
        try:
            source.close()
        finally:
            guide.closed()


class _AsyncBody(StandIn):
    """Same as _SyncBody, for asynchronous streams."""

    def __init__(self, stream: Any, guide: AsyncGuide, source: _AsyncSource) -> None:
        super().__init__(stream)
        self._self_parts = (guide, source)

    def __aiter__(self) -> AsyncIterator[bytes]:
        guide, source = self._self_parts
        return _AsyncChunks(guide, self.__wrapped__.__aiter__(), source)

    async def aclose(self) -> None:
        guide, source = self._self_parts
        try:
            await source.close()
        finally:
            guide.closed()
