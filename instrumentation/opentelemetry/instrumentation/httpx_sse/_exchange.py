"""One HTTP exchange as the transport sees it: begin, head, `receive`, `exhausted`, `failed`, `closed`.

The facade between host and core. It turns what passes by into facts, stamps them with the time, and hands what
the ledger concludes to a sink. It knows neither httpx nor OpenTelemetry; requests and responses are met by shape.
"""

import os
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final, Literal, Protocol
from urllib.parse import urljoin

from ._envelope import digest, read_body, read_data, shorten
from ._events import (
    NO_BODY,
    Answered,
    Body,
    Concluded,
    Ended,
    ErrorKind,
    Event,
    Message,
    Origin,
    PoolClosed,
    Received,
    Sent,
    Skimmed,
    Unanswered,
)
from ._ledger import Ledger, Thresholds
from ._scanner import Block, Scanner
from ._verdicts import Redelivery, Snapshot, Standing, Verdict

ERROR_BODY_LIMIT: Final = 4 * 1024
"""Bytes of a failed exchange's body that are peeked at."""

RESULT_BODY_LIMIT: Final = 256 * 1024
"""Bytes of a JSON result that are peeked at; of a longer one, head and tail."""

REQUEST_BODY_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a request's body that are read for its JSON-RPC messages; of a longer one, head and tail."""

EDGE: Final = 4096
"""Bytes of head and tail that are kept of what is too long."""

INFLATE_STEP: Final = 64 * 1024
"""Bytes that a compressed chunk may grow to at a time, so that a bomb stays small here."""

_WINDOW: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NO_STREAM: Final = (204, 205, 304)


class Request(Protocol):
    """The part of an httpx or httpx2 request that is looked at."""

    method: str
    url: Any
    headers: Any


Sink = Callable[["Exchange | None", tuple[Verdict, ...]], None]


class Companion(Protocol):
    """Who goes along with one exchange and acts on what is concluded of it."""

    def hear(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Verdicts of the exchange, before the sink; what is returned goes there in their place."""


class Observer:
    """What all exchanges of one installation share: the ledger, its lock, the clock and the sink.

    Args:
        sink: takes the verdicts of each fact, outside of the lock, in the thread that saw the fact.
        thresholds: limits of time that decide.
        liveness_key: the key of `params._meta` that asserts that a server request still lives.
        clock: seconds, steady.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        thresholds: Thresholds | None = None,
        liveness_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.liveness_key = liveness_key
        self._sink = sink
        self._ledger = Ledger(thresholds)
        # A signal handler or a finalizer of the host may send a request while we hold it: never wait for ourselves.
        self._lock = threading.RLock()
        _OBSERVERS.add(self)
        self._numbers = count(1)
        self._pools: dict[int, tuple[weakref.ref[object], int]] = {}
        # Finalizers only append here: they run at any moment, inside anybody's lock.
        self._left: deque[tuple[Event, float]] = deque()

    def begin(
        self,
        transport: object,
        request: Request,
        context: object,
        companion: Companion | None = None,
        *,
        is_own: bool = False,
    ) -> "Exchange":
        """A request is about to leave through `transport`; `is_own` when this package itself sends it."""
        headers = {key.lower(): value for key, value in request.headers.raw}
        exchange = Exchange(self, next(self._numbers), request, headers, context)
        exchange.pool = self._pool(transport)
        exchange.companion, exchange.is_own = companion, is_own
        if self._left:
            self.drain()
        sent = exchange.describe() if _may_matter(request.method, headers, self._ledger) else None
        if sent is not None and (sent.mcp or self._ledger.knows(sent)):
            exchange.announce(sent)
        return exchange

    def observe(self, exchange: "Exchange | None", events: Iterable[Event], at: float) -> None:
        """Facts go to the ledger, and what it concludes to the sink."""
        with self._lock:
            verdicts = tuple(v for event in events for v in self._ledger.observe(event, at=at))
        if verdicts:
            if exchange is not None and exchange.companion is not None:
                verdicts = exchange.companion.hear(verdicts)
            self._sink(exchange, verdicts)

    def report(self, exchange: "Exchange", verdict: Verdict) -> None:
        """What was done about an exchange goes to the sink like what was seen of it."""
        self._sink(exchange, (verdict,))

    def standing(self, stream: int) -> Standing | None:
        """What is known of a logical stream now."""
        with self._lock:
            return self._ledger.standing(stream)

    def redelivery(self, exchange: "Exchange", message: Message) -> Redelivery | None:
        """What is known now of a server request that an exchange has brought again."""
        with self._lock:
            return self._ledger.redelivery(exchange.number, message, at=self.clock())

    def collect(self) -> Snapshot:
        """Everything that is now; called by whoever collects metrics."""
        self.drain()
        with self._lock:
            return self._ledger.snapshot(at=self.clock())

    def drain(self) -> None:
        """What finalizers left behind."""
        while self._left:
            event, at = self._left.popleft()
            self.observe(None, (event,), at)

    def leave(self, event: Event) -> None:
        """From a finalizer: to be observed later."""
        self._left.append((event, self.clock()))

    def _pool(self, transport: object) -> int:
        """A number for a transport object; `id()` alone is used again after it is gone."""
        key = id(transport)
        held = self._pools.get(key)
        if held is not None and held[0]() is transport:
            return held[1]
        number = next(self._numbers)
        left, pools = self._left, self._pools

        def gone(ref: object, clock: Callable[[], float] = self.clock) -> None:
            if pools.get(key, (None,))[0] is ref:
                pools.pop(key, None)
            left.append((PoolClosed(pool=number), clock()))

        try:
            pools[key] = (weakref.ref(transport, gone), number)
        except TypeError:
            # Some third-party transport without weak references: its streams are told apart by request only.
            return 0
        return number

    def after_fork(self) -> None:
        """In a child, a lock that another thread of the parent held would stay locked for ever."""
        self._lock = threading.RLock()


_OBSERVERS: Final["weakref.WeakSet[Observer]"] = weakref.WeakSet()


def _after_fork() -> None:
    for observer in list(_OBSERVERS):
        observer.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _may_matter(method: str, headers: Mapping[bytes, bytes], ledger: Ledger) -> bool:
    """A cheap look before the request is described: most requests of most programs end here."""
    return (
        b"mcp-session-id" in headers
        or b"mcp-protocol-version" in headers
        or b"last-event-id" in headers
        or (method == "POST" and _accepts_stream(headers))
        or ledger.awaits_plain
    )


def _accepts_stream(headers: Mapping[bytes, bytes]) -> bool:
    return b"text/event-stream" in headers.get(b"accept", b"").lower()


def error_kind(error: BaseException) -> ErrorKind:
    """Cancellation of every framework is no `Exception`; time limits of both libraries share a base class's name."""
    if not isinstance(error, Exception):
        return "cancelled"
    is_timeout = any(base.__name__ == "TimeoutException" for base in type(error).__mro__)
    return "timeout" if is_timeout else "network_error"


class Exchange:
    """One request and its response."""

    __slots__ = (
        "__weakref__", "_body", "_coding", "_headers", "_inflate", "_is_announced", "_is_over", "_observer",
        "_request", "_scanner", "_seen_comments", "bytes_read", "companion", "context", "error_name",
        "events_read", "is_opaque", "is_own", "is_stream", "is_watched", "last_byte_at", "number", "pool",
        "sent", "started_at", "status", "trace",
    )  # fmt: skip

    def __init__(
        self,
        observer: Observer,
        number: int,
        request: Request,
        headers: dict[bytes, bytes],
        context: object,
    ) -> None:
        self.number = number
        self.context = context
        self.pool = 0
        self.started_at = observer.clock()
        self.status: int | None = None
        self.is_stream = False
        self.is_watched = False
        self.is_opaque = False
        self.bytes_read = 0
        self.events_read = 0
        self.last_byte_at: float | None = None
        self.error_name = ""
        self.trace: Any = None
        self.companion: Companion | None = None
        self.is_own = False
        self.sent: Sent | None = None
        self._observer = observer
        self._request: Request | None = request
        self._headers = headers
        self._is_announced = False
        self._is_over = False
        self._scanner: Scanner | None = None
        self._seen_comments = 0
        self._coding = ""
        self._inflate: Any = None
        self._body: _Peek | None = None

    @property
    def http_method(self) -> str:
        return self._request.method if self._request is not None else ""

    @property
    def last_event_id(self) -> str:
        return self._scanner.last_event_id if self._scanner is not None else ""

    # -------------------------------------------------------------- the request

    def describe(self) -> Sent | None:
        """The facts of the request."""
        request, headers = self._request, self._headers
        if request is None:
            return None
        session, version = _text(headers, b"mcp-session-id"), _text(headers, b"mcp-protocol-version")
        messages: tuple[Message, ...] = ()
        accepts = _accepts_stream(headers)
        if request.method == "POST":
            messages = _messages(request, self._observer.liveness_key)
        named = session is not None or version is not None
        if request.method == "GET":
            is_mcp = named and accepts
        else:
            is_mcp = named or (request.method == "POST" and accepts and bool(messages))
        authorization = headers.get(b"authorization")
        return Sent(
            exchange=self.number,
            pool=self.pool,
            origin=_origin(request.url),
            target=_target(str(request.url)),
            http_method=request.method,
            mcp=is_mcp,
            session=session,
            cursor=_text(headers, b"last-event-id"),
            version=version,
            credentials=digest(authorization) if authorization else b"",
            messages=messages,
            is_own=self.is_own,
        )

    def announce(self, sent: Sent) -> None:
        """The ledger is to know of this exchange."""
        self._is_announced = True
        self.sent = sent
        self._observer.observe(self, (sent,), self.started_at)

    def unanswered(self, error: BaseException) -> None:
        """No response came: `error` was raised instead of one."""
        self._is_over = True
        self.error_name = type(error).__name__
        if self._is_announced:
            self._observe(Unanswered(exchange=self.number, error=error_kind(error)))

    def withdrawn(self) -> None:
        """The request is not sent after all."""
        self._is_over = True
        if self._is_announced:
            self._observe(Unanswered(exchange=self.number, error="cancelled"))

    # -------------------------------------------------------------- the response

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """The response's head came; whether its body is to be watched.

        Args:
            status: HTTP status code.
            headers: raw names and values.
        """
        found = {key.lower(): value for key, value in headers}
        media = found.get(b"content-type", b"").split(b";", 1)[0].strip().lower()
        self.status = status
        is_body = 200 <= status < 300 and status not in _NO_STREAM  # noqa: PLR2004
        self.is_stream = media == b"text/event-stream" and is_body and status != 202  # noqa: PLR2004
        if not self._is_announced:
            sent = self.describe() if self.is_stream else None
            if sent is None:
                return False
            self.announce(sent)
        coding = self._coding = found.get(b"content-encoding", b"").strip().lower().decode("latin-1")
        if coding in _WINDOW:
            self._inflate = zlib.decompressobj(_WINDOW[coding])
        elif coding not in ("", "identity"):
            self.is_opaque = True
        if self.is_stream and not self.is_opaque:
            self._scanner = Scanner()
        elif not self.is_opaque:
            limit = ERROR_BODY_LIMIT if status >= 400 else RESULT_BODY_LIMIT  # noqa: PLR2004
            self._body = _Peek(limit)
        self.is_watched = True
        self._observe(
            Answered(
                exchange=self.number,
                status=status,
                is_stream=self.is_stream,
                opaque=self.is_opaque,
                session=_text(found, b"mcp-session-id"),
                location=self._location(found, status),
            )
        )
        return True

    def _location(self, headers: Mapping[bytes, bytes], status: int) -> bytes:
        where = headers.get(b"location")
        if where is None or not 300 <= status < 400 or self._request is None:  # noqa: PLR2004
            return b""
        return self._joined(where.decode("latin-1"))

    def receive(self, chunk: bytes) -> None:
        """A chunk of the body is about to be given to the client."""
        if self._is_over:
            return
        at = self.last_byte_at = self._observer.clock()
        self.bytes_read += len(chunk)
        if self._scanner is None and self._body is None:
            return
        data: Iterable[bytes] = (chunk,) if self._inflate is None else self._inflated(chunk)
        for piece in data:
            if self._body is not None:
                self._body.add(piece)
            elif self._scanner is not None:
                self._scan(self._scanner, piece, at)

    def _scan(self, scanner: Scanner, piece: bytes, at: float) -> None:
        events: list[Event] = [self._received(block, scanner) for block in scanner.receive(piece)]
        if scanner.comments != self._seen_comments:
            fresh = scanner.comments - self._seen_comments
            self._seen_comments = scanner.comments
            events.append(Skimmed(exchange=self.number, event_type="comment", count=fresh))
        if events:
            self._observer.observe(self, events, at)

    def _received(self, block: Block, scanner: Scanner) -> Received:
        messages: tuple[Message, ...] = ()
        if block.size:
            messages = read_data(block.data, block.tail, liveness_key=self._observer.liveness_key)
        self.events_read += block.has_data
        return Received(
            exchange=self.number,
            event_type=block.type,
            event_id=block.id if block.id is None else shorten(block.id),
            cursor=scanner.last_event_id,
            retry=block.retry,
            has_data=block.has_data,
            messages=messages,
            is_empty=not block.size,
            endpoint=self._endpoint(block),
        )

    def _endpoint(self, block: Block) -> bytes:
        """MCP 2024-11-05: the first event names the URL that requests go to."""
        if block.type != "endpoint" or self.events_read != 1 or self._request is None:
            return b""
        return self._joined(block.data.decode("utf-8", "replace").strip())

    def _joined(self, reference: str) -> bytes:
        """Digest of the URL that a reference means here; empty when it means none."""
        try:
            return _target(urljoin(str(self._request.url), reference)) if self._request else b""
        except ValueError:
            return b""

    def _inflated(self, chunk: bytes) -> Iterable[bytes]:
        while chunk:
            try:
                piece = self._inflate.decompress(chunk, INFLATE_STEP)
            except zlib.error:
                if self._coding == "deflate" and self.bytes_read == len(chunk):
                    # Some servers send raw deflate under that name; both libraries try it second.
                    self._coding, self._inflate = "", zlib.decompressobj(-zlib.MAX_WBITS)
                    continue
                # Not what its header says: from here on only bytes and ends are seen.
                self.is_opaque, self._scanner, self._body = True, None, None
                return
            if piece:
                yield piece
            chunk = self._inflate.unconsumed_tail

    def exhausted(self) -> None:
        """The body ended by itself."""
        self._end("exhausted", None)

    def failed(self, error: BaseException) -> None:
        """Reading the body raised `error`."""
        self.error_name = type(error).__name__
        self._end("failed", error_kind(error))

    def closed(self) -> None:
        """The client closed the response. After one of the two others it means nothing."""
        self._end("closed", None)

    def _end(self, how: Literal["exhausted", "failed", "closed"], error: ErrorKind | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._observe(
            Ended(
                exchange=self.number,
                how=how,
                error=error,
                body=self._peeked(),
                last_byte_at=self.last_byte_at,
                opaque=self.is_opaque,
            )
        )

    def _peeked(self) -> Body:
        if self._body is None or not self._body.size:
            return NO_BODY
        return self._body.read(self._observer.liveness_key)

    def concluded(self, stream: int, error_code: int) -> None:
        """The client was given an error for everything that a logical stream owed it."""
        self._observe(Concluded(exchange=self.number, stream=stream, error_code=error_code))

    def _observe(self, event: Event) -> None:
        self._observer.observe(self, (event,), self._observer.clock())

    def __del__(self) -> None:
        if self.is_watched and not self._is_over:
            self._observer.leave(Ended(exchange=self.number, how="abandoned", last_byte_at=self.last_byte_at))


class _Peek:
    """The beginning of a body, up to a limit; of a longer one, head and tail."""

    __slots__ = ("_data", "_limit", "_tail", "size")

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._data = bytearray()
        self._tail = b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size <= self._limit:
            self._data += piece
            return
        room = self._limit - len(self._data)
        if room > 0:
            self._data += piece[:room]
        self._tail = (self._tail + piece[-EDGE:])[-EDGE:]

    def read(self, liveness_key: str | None) -> Body:
        if not self._tail:
            return read_body(bytes(self._data), liveness_key=liveness_key)
        head = bytes(self._data[:EDGE])
        return Body(read_body(head).text, read_data(head, self._tail))


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return shorten(value.decode("utf-8", "replace")) if value else None


def _messages(request: Request, liveness_key: str | None) -> tuple[Message, ...]:
    """What a request's body says, if it is in memory: a streaming body is never touched."""
    try:
        content = request.content  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - RequestNotRead of either library
        return ()
    if not isinstance(content, bytes):
        return ()
    if len(content) > REQUEST_BODY_LIMIT:
        return read_data(content[:EDGE], content[-EDGE:])
    return read_data(content, liveness_key=liveness_key)


def _origin(url: Any) -> Origin:
    scheme = str(url.scheme)
    return Origin(scheme, str(url.host), url.port or _DEFAULT_PORTS.get(scheme, 0))


def _target(url: str) -> bytes:
    return digest(url.encode("utf-8", "replace"))
