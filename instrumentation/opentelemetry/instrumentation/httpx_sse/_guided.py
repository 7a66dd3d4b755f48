"""The driver of scripts: what `_steps` says, done synchronously and asynchronously.

Beside `_transport`, the only module that knows one from the other. It is loaded when a first script is to be driven.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import anyio
import wrapt

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

if TYPE_CHECKING:
    Proxy = wrapt.ObjectProxy[Any]
else:
    Proxy = wrapt.ObjectProxy

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

    def next(self, within: float | None) -> bytes | Quiet | None:
        if within is not None and not self._wait(within):
            return QUIET
        if self._chunks is None:
            self._chunks = iter(self._stream)
        return next(self._chunks, None)

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

    async def next(self, within: float | None) -> bytes | Quiet | None:
        if self._coming is None and within is None:
            return await self._read()
        if not self._is_asyncio():
            return await self._read() if await self._wait(within or 0.0) else QUIET
        coming = self._coming
        if coming is None:
            coming = self._coming = asyncio.ensure_future(self._read())
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

    async def _read(self) -> bytes | None:
        if self._chunks is None:
            self._chunks = self._stream.__aiter__()
        try:
            return await self._chunks.__anext__()
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

    async def close(self) -> None:
        if self._coming is not None:
            # It is not waited for: whoever closes may have been cancelled, and the connection must be closed.
            self._coming.cancel()
        await self._stream.aclose()


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
        self._is_over = False

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
        self._is_over = True
        self._script.closed()


class SyncGuide(_Guide):
    """Does what a script says."""

    def head(self, request: Any) -> Any:
        """The response that the client is given."""
        while (response := self._response(self._turn(), request, _SyncBody)) is None:
            pass
        return response

    def _turn(self) -> Given:
        """Until the client is given something."""
        answer: Any = None
        error: BaseException | None = None
        while True:
            step = self._script.step(answer, error)
            if isinstance(step, GIVEN):
                return step
            answer, error = None, None
            try:
                answer = self._do(step)
            except BaseException as raised:  # noqa: BLE001 - the script gives it to the client
                error = raised

    def _do(self, step: Step) -> Any:
        match step:
            case Next(source, within):
                return source.next(within)  # type: ignore[attr-defined]
            case Send(request):
                return _SyncSource(self._send(request))
            case Close(source):
                return source.close()  # type: ignore[attr-defined]
            case Sleep(seconds):
                return time.sleep(seconds)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self._is_over:
            self._is_over = True
            step = self._turn()
            if isinstance(step, Deliver):
                self._is_over = False
                return step.chunk
        raise StopIteration


class AsyncGuide(_Guide):
    """Same as SyncGuide, for asynchronous transports."""

    async def head(self, request: Any) -> Any:
        while (response := self._response(await self._turn(), request, _AsyncBody)) is None:
            pass
        return response

    async def _turn(self) -> Given:
        answer: Any = None
        error: BaseException | None = None
        while True:
            step = self._script.step(answer, error)
            if isinstance(step, GIVEN):
                return step
            answer, error = None, None
            try:
                answer = await self._do(step)
            except BaseException as raised:  # noqa: BLE001 - the script gives it to the client
                error = raised

    async def _do(self, step: Step) -> Any:
        match step:
            case Next(source, within):
                return await source.next(within)  # type: ignore[attr-defined]
            case Send(request):
                return _AsyncSource(await self._send(request))
            case Close(source):
                return await source.close()  # type: ignore[attr-defined]
            case Sleep(seconds):
                return await anyio.sleep(seconds)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._is_over:
            self._is_over = True
            step = await self._turn()
            if isinstance(step, Deliver):
                self._is_over = False
                return step.chunk
        raise StopAsyncIteration


class _SyncBody(Proxy):
    """A response's stream whose chunks a script gives out."""

    def __init__(self, stream: Any, guide: SyncGuide, source: _SyncSource) -> None:
        super().__init__(stream)
        self._self_parts = (guide, source)

    def __iter__(self) -> Iterator[bytes]:
        return self._self_parts[0]

    def close(self) -> None:
        guide, source = self._self_parts
        try:
            source.close()
        finally:
            guide.closed()


class _AsyncBody(Proxy):
    """Same as _SyncBody, for asynchronous streams."""

    def __init__(self, stream: Any, guide: AsyncGuide, source: _AsyncSource) -> None:
        super().__init__(stream)
        self._self_parts = (guide, source)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._self_parts[0]

    async def aclose(self) -> None:
        guide, source = self._self_parts
        try:
            await source.close()
        finally:
            guide.closed()
