"""Between an httpx transport and its client: the only module that knows sync from async.

The response's stream is replaced by one that yields the very same chunks. Nothing else is touched, and whatever
fails in here is contained: the client never sees it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Protocol

from opentelemetry.context import get_current
from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from ._containment import Containment
from ._exchange import Exchange, is_event_stream
from ._names import Site
from ._observer import Observer
from ._proxy import StandIn
from ._request import headers_of
from ._steps import Script

_BUSY: set[int] = set()
"""Requests, by `id()`, that are inside a watched transport now. A transport may wrap another, and one client may
be watched by itself and by its class: the outermost watcher is the only one."""

Moment = float
"""When a request left that matters only if its answer turns out to be an event stream: most of most programs."""


class Guardian(Protocol):
    """Who guards the exchanges of an installation."""

    def companion(self) -> Any:
        """For one exchange: a `Companion` that is a `Script` as well, if it `joins` it."""


class Watch:
    """The calls from host to core, each contained.

    Args:
        observer: where exchanges begin.
        containment: where errors end.
        is_excluded: whether requests to a URL are left alone.
        guard: who goes along with exchanges and acts on them; None to watch only.
    """

    def __init__(
        self,
        observer: Observer,
        containment: Containment,
        is_excluded: Callable[[str], bool] | None = None,
        guard: "Guardian | None" = None,
    ) -> None:
        self._observer = observer
        self._containment = containment
        self._is_excluded = is_excluded
        self._guard = guard

    def begin(self, transport: object, request: Any) -> "Exchange | Moment | None":
        """None when the request is to be left alone."""
        try:
            if id(request) in _BUSY:
                return None
            headers = headers_of(request)
            if self._observer.is_plain(request.method, headers):
                return self._observer.clock()
            if self._is_left_alone(request):
                return None
            companion = self._guard.companion() if self._guard is not None else None
            return self._observer.begin(transport, request, get_current(), companion, headers=headers)
        except Exception as error:  # noqa: BLE001
            self._containment.contain("begin", error)
            return None

    def _is_left_alone(self, request: Any) -> bool:
        if not is_instrumentation_enabled():
            return True
        return self._is_excluded is not None and self._is_excluded(str(request.url))

    def _begin_late(self, transport: object, request: Any, response: Any, at: float) -> Exchange | None:
        """A plain request turns out to have opened an event stream."""
        if not is_event_stream(response.headers.raw) or self._is_left_alone(request):
            return None
        return self._observer.begin(transport, request, get_current(), at=at)

    def script(self, exchange: Exchange, transport: object, request: Any) -> Script | None:
        """Who conducts an exchange that has a companion; None when it is only to be watched."""
        companion: Any = exchange.companion
        try:
            if companion.joins(exchange, transport, request):
                script: Script = companion
                return script
            exchange.companion = None
        except Exception as error:  # noqa: BLE001
            self._containment.contain("guard", error)
        return None

    def let_go(
        self, exchange: Exchange, response: Any, *, body: type["SyncBody | AsyncBody"], is_begun: bool
    ) -> None:
        """Same as adopt, for a response that a script has let go; `is_begun` when the exchange knows its head."""
        if not is_begun:
            self.adopt(exchange, response, body)
        elif exchange.is_watched:
            response.stream = body(response.stream, exchange, self._containment)

    def unanswered(self, begun: "Exchange | Moment", error: BaseException) -> None:
        try:
            if isinstance(begun, Exchange):
                begun.unanswered(error)
        except Exception as own:  # noqa: BLE001
            self._containment.contain("begin", own)

    def answered(
        self,
        begun: "Exchange | Moment",
        transport: object,
        request: Any,
        response: Any,
        body: type["SyncBody | AsyncBody"],
    ) -> None:
        """What `begin` gave for a request has its response now."""
        try:
            exchange = (
                begun
                if isinstance(begun, Exchange)
                else self._begin_late(transport, request, response, begun)
            )
            if exchange is not None:
                self.adopt(exchange, response, body)
        except Exception as error:  # noqa: BLE001
            self._containment.contain("head", error)

    def adopt(self, exchange: Exchange, response: Any, body: type["SyncBody | AsyncBody"]) -> None:
        """The response's body passes through `body` from now on, if it is worth watching."""
        try:
            is_whole = response.is_closed
            if not exchange.head(response.status_code, response.headers.raw, is_decoded=is_whole):
                return
            if is_whole:
                # A mock's response that carries its body already: nobody will iterate over its stream.
                exchange.receive(response.content)
                exchange.exhausted()
                return
            response.stream = body(response.stream, exchange, self._containment)
        except Exception as error:  # noqa: BLE001
            self._containment.contain("head", error)


class _Chunks:
    """What both colours of iterator share: each step of the body is told to the exchange."""

    __slots__ = ("_containment", "_exchange", "_quick")

    def __init__(self, exchange: Exchange, containment: Containment) -> None:
        self._exchange = exchange
        self._quick = exchange.quick
        self._containment = containment

    def receive(self, chunk: bytes) -> None:
        """A chunk that `_quick` did not take."""
        self._exchange.receive(chunk)
        self._quick = self._exchange.quick

    def broke(self, error: Exception) -> None:
        """Our own error: the rest of this body is let pass."""
        self._quick = _ignore
        self._containment.contain("receive", error)

    def ended(self, site: Site, *error: BaseException) -> None:
        _tell(self._exchange, self._containment, site, *error)


def _tell(exchange: Exchange, containment: Containment, site: Site, *error: BaseException) -> None:
    """How a body ended."""
    try:
        getattr(exchange, site)(*error)
    except Exception as own:  # noqa: BLE001
        containment.contain(site, own)


def _ignore(_: bytes) -> bool:
    """After an error of ours in the middle of a body its rest cannot be understood."""
    return True


class _SyncChunks(_Chunks):
    __slots__ = ("_chunks",)

    def __init__(self, chunks: Iterator[bytes], exchange: Exchange, containment: Containment) -> None:
        super().__init__(exchange, containment)
        self._chunks: Any = chunks

    def __iter__(self) -> Iterator[bytes]:
        return self

    def close(self) -> None:
        """What a generator can: a library may close the iterator that it stops reading."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()

    def __next__(self) -> bytes:
        try:
            chunk: bytes = next(self._chunks)
        except StopIteration:
            self.ended("exhausted")
            raise
        except BaseException as error:
            self.ended("failed", error)
            raise
        try:
            if not self._quick(chunk):
                self.receive(chunk)
        except Exception as error:  # noqa: BLE001
            self.broke(error)
        return chunk


class _AsyncChunks(_Chunks):
    """A class, not a second asynchronous generator: closing one of those from another task is an error.

    It can do what a generator can, since httpx2 closes a stream's iterator only if it looks like one.
    """

    __slots__ = ("_chunks",)

    def __init__(self, chunks: AsyncIterator[bytes], exchange: Exchange, containment: Containment) -> None:
        super().__init__(exchange, containment)
        self._chunks: Any = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def aclose(self) -> None:
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    async def asend(self, value: Any) -> bytes:
        chunk: bytes = await self._chunks.asend(value)
        return chunk

    async def athrow(self, *error: Any) -> bytes:
        chunk: bytes = await self._chunks.athrow(*error)
        return chunk

    async def __anext__(self) -> bytes:
        try:
            chunk: bytes = await anext(self._chunks)
        except StopAsyncIteration:
            self.ended("exhausted")
            raise
        except BaseException as error:
            self.ended("failed", error)
            raise
        try:
            if not self._quick(chunk):
                self.receive(chunk)
        except Exception as error:  # noqa: BLE001
            self.broke(error)
        return chunk


class _Body(StandIn):
    """A response's stream, as its library's own in every respect but iteration and close."""

    def __init__(self, stream: Any, exchange: Exchange, containment: Containment) -> None:
        super().__init__(stream)
        self._self_parts = (exchange, containment)


class SyncBody(_Body):
    """Of a synchronous client."""

    def __iter__(self) -> Iterator[bytes]:
        return _SyncChunks(iter(self.__wrapped__), *self._self_parts)

    def close(self) -> None:
        try:
            self.__wrapped__.close()
        finally:
            _tell(*self._self_parts, "closed")


class AsyncBody(_Body):
    """Of an asynchronous client."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _AsyncChunks(self.__wrapped__.__aiter__(), *self._self_parts)

    async def aclose(self) -> None:
        try:
            await self.__wrapped__.aclose()
        finally:
            _tell(*self._self_parts, "closed")


def watched(send: Callable[..., Any], watch: Callable[[], Watch | None]) -> Callable[..., Any]:
    """`handle_request`, watched while `watch` gives somebody who does."""

    def handle_request(self: Any, request: Any) -> Any:
        watcher = watch()
        begun = watcher.begin(self, request) if watcher is not None else None
        if watcher is None or begun is None:
            return send(self, request)
        if isinstance(begun, Exchange) and begun.companion is not None:
            exchange = begun
            script = watcher.script(exchange, self, request)
            if script is not None:
                from ._guided import SyncGuide  # noqa: PLC0415 - loads frameworks that most programs do without

                def send_on(sent: Any) -> Any:
                    _BUSY.add(id(sent))
                    try:
                        return send(self, sent)
                    finally:
                        _BUSY.discard(id(sent))

                return SyncGuide(script, send_on, partial(watcher.let_go, exchange, body=SyncBody)).head(
                    request
                )
        _BUSY.add(id(request))
        try:
            response = send(self, request)
        except BaseException as error:
            watcher.unanswered(begun, error)
            raise
        finally:
            _BUSY.discard(id(request))
        watcher.answered(begun, self, request, response, SyncBody)
        return response

    return handle_request


def watched_async(
    send: Callable[..., Awaitable[Any]], watch: Callable[[], Watch | None]
) -> Callable[..., Awaitable[Any]]:
    """Same as watched, for `handle_async_request`."""

    async def handle_async_request(self: Any, request: Any) -> Any:
        watcher = watch()
        begun = watcher.begin(self, request) if watcher is not None else None
        if watcher is None or begun is None:
            return await send(self, request)
        if isinstance(begun, Exchange) and begun.companion is not None:
            exchange = begun
            script = watcher.script(exchange, self, request)
            if script is not None:
                from ._guided import AsyncGuide  # noqa: PLC0415 - as above

                async def send_on(sent: Any) -> Any:
                    _BUSY.add(id(sent))
                    try:
                        return await send(self, sent)
                    finally:
                        _BUSY.discard(id(sent))

                let_go = partial(watcher.let_go, exchange, body=AsyncBody)
                return await AsyncGuide(script, send_on, let_go).head(request)
        _BUSY.add(id(request))
        try:
            response = await send(self, request)
        except BaseException as error:
            watcher.unanswered(begun, error)
            raise
        finally:
            _BUSY.discard(id(request))
        watcher.answered(begun, self, request, response, AsyncBody)
        return response

    return handle_async_request
