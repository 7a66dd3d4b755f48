"""One HTTP exchange as the transport sees it: begin, head, `receive`, `exhausted`, `failed`, `closed`.

The facade between host and core. It turns what passes by into facts, stamps them with the time, and hands what
the ledger concludes to a sink. It knows neither httpx nor OpenTelemetry; requests and responses are met by shape.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol
from urllib.parse import urljoin

from ._coding import IDENTITY, Inflater, UnreadableError
from ._envelope import read_data, shorten
from ._events import (
    NO_BODY,
    Answered,
    Body,
    Concluded,
    Ended,
    ErrorKind,
    Event,
    Message,
    Received,
    Sent,
    Skimmed,
    Unanswered,
)
from ._peek import Peek
from ._request import Headers, Request, describe, target, text
from ._scanner import Block, Scanner
from ._skim import Skim
from ._verdicts import Verdict

ERROR_BODY_LIMIT: Final = 4 * 1024
"""Bytes of a failed exchange's body that are peeked at."""

RESULT_BODY_LIMIT: Final = 256 * 1024
"""Bytes of a JSON result that are peeked at; of a longer one, head and tail."""

EVENT_STREAM: Final = b"text/event-stream"
"""WHATWG, Server-sent events, 9.2.1."""

_NO_STREAM: Final = (204, 205, 304)
_NO_HEADERS: Final[Headers] = {}


class Companion(Protocol):
    """Who goes along with one exchange and acts on what is concluded of it."""

    def hear(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Verdicts of the exchange, before the sink; what is returned goes there in their place."""


class Home(Protocol):
    """What an exchange needs of its observer."""

    liveness_key: str | None

    def clock(self) -> float:
        """Seconds, steady."""

    def observe(self, exchange: "Exchange | None", events: Iterable[Event], at: float) -> None:
        """Facts go to the ledger, and what it concludes to the sink."""

    def skim(self, exchange: int, scanner: Scanner) -> Skim | None:
        """What may skim an exchange from now on."""

    def leave(self, exchange: "Exchange", *events: Event) -> None:
        """From a finalizer: to be observed later."""


def _refuse(_: bytes) -> bool:
    return False


def error_kind(error: BaseException) -> ErrorKind:
    """Cancellation of every framework is no `Exception`; time limits of both libraries share a base class's name."""
    if not isinstance(error, Exception):
        return "cancelled"
    is_timeout = any(base.__name__ == "TimeoutException" for base in type(error).__mro__)
    return "timeout" if is_timeout else "network_error"


def media_type(value: bytes) -> bytes:
    """Of a `Content-Type`: in lower case and without parameters."""
    return value.split(b";", 1)[0].strip().lower()


def is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a response is one, by its raw headers."""
    for name, value in headers:  # noqa: SIM110 - a generator would cost more than all the rest
        if name.lower() == b"content-type" and media_type(value) == EVENT_STREAM:
            return True
    return False


class Exchange:
    """One request and its response."""

    __slots__ = (
        "__weakref__", "_body", "_bytes", "_clock", "_events", "_headers", "_inflater",
        "_is_announced", "_is_over", "_last_byte_at", "_observer", "_request", "_scanner",
        "_seen_comments", "_skim", "_untold", "companion", "context", "error_name", "is_opaque", "is_own",
        "is_stream", "is_watched", "number", "pool", "sent", "started_at", "status", "trace",
    )  # fmt: skip

    def __init__(
        self,
        observer: Home,
        number: int,
        request: Request,
        headers: Headers,
        context: object,
        started_at: float | None = None,
    ) -> None:
        self.is_watched, self._is_over = False, False
        self.number = number
        self.context = context
        self.pool = 0
        self.started_at = observer.clock() if started_at is None else started_at
        self.status: int | None = None
        self.is_stream = False
        self.is_opaque = False
        self._bytes = 0
        self._events = 0
        self._skim: Skim | None = None
        self._clock = observer.clock
        self._last_byte_at: float | None = None
        self.error_name = ""
        self.trace: Any = None
        self.companion: Companion | None = None
        self.is_own = False
        self.sent: Sent | None = None
        self._observer = observer
        self._request: Request | None = request
        self._headers = headers
        self._is_announced = False
        self._scanner: Scanner | None = None
        self._seen_comments = 0
        self._inflater: Inflater | None = None
        self._body: Peek | None = None
        self._untold: tuple[Event, ...] = ()

    @property
    def http_method(self) -> str:
        return self._request.method if self._request is not None else ""

    @property
    def bytes_read(self) -> int:
        return self._bytes + (self._skim.bytes if self._skim is not None else 0)

    @property
    def last_byte_at(self) -> float | None:
        """When the last chunk came, on the observer's clock."""
        if self._skim is None or not self._skim.at:
            return self._last_byte_at
        return max(self._last_byte_at or 0.0, self._skim.at)

    @property
    def events_read(self) -> int:
        return self._events + (self._skim.total if self._skim is not None else 0)

    @property
    def last_event_id(self) -> str:
        if self._skim is not None:
            return self._skim.last_event_id
        return self._scanner.last_event_id if self._scanner is not None else ""

    # -------------------------------------------------------------- the request

    def describe(self) -> Sent | None:
        """The facts of the request."""
        if self._request is None:
            return None
        return describe(
            self._request,
            self._headers,
            exchange=self.number,
            pool=self.pool,
            liveness_key=self._observer.liveness_key,
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

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]], *, is_decoded: bool = False) -> bool:
        """The response's head came; whether its body is to be watched.

        Args:
            status: HTTP status code.
            headers: raw names and values.
            is_decoded: what `receive` will be told has its content coding undone already.
        """
        found = {key.lower(): value for key, value in headers}
        media = media_type(found.get(b"content-type", b""))
        self.status = status
        is_body = 200 <= status < 300 and status not in _NO_STREAM  # noqa: PLR2004
        self.is_stream = media == EVENT_STREAM and is_body and status != 202  # noqa: PLR2004
        if not self._is_announced:
            sent = self.describe() if self.is_stream else None
            if sent is None:
                return False
            self.announce(sent)
        self._headers = _NO_HEADERS  # described; a stream may be open for long
        coding = "" if is_decoded else found.get(b"content-encoding", b"").strip().lower().decode("latin-1")
        try:
            self._inflater = None if coding in IDENTITY else Inflater(coding)
        except UnreadableError:
            self.is_opaque = True
        if self.is_stream and not self.is_opaque:
            self._scanner = Scanner()
        elif not self.is_opaque:
            limit = ERROR_BODY_LIMIT if status >= 400 else RESULT_BODY_LIMIT  # noqa: PLR2004
            self._body = Peek(limit)
        self.is_watched = True
        answered = Answered(
            exchange=self.number,
            status=status,
            is_stream=self.is_stream,
            opaque=self.is_opaque,
            session=text(found, b"mcp-session-id"),
            location=self._location(found, status),
        )
        if self.is_stream or answered.session or answered.location:
            self._observe(answered)
        else:
            # By itself such a head decides nothing: it is told with the end.
            self._untold = (answered,)
        return True

    def _location(self, headers: Headers, status: int) -> bytes:
        where = headers.get(b"location")
        if where is None or not 300 <= status < 400 or self._request is None:  # noqa: PLR2004
            return b""
        return self._joined(where.decode("latin-1"))

    @property
    def quick(self) -> Callable[[bytes], bool]:
        """What is offered the next chunk before `receive` is: True if it took it. Not the same after a `receive`."""
        return self._skim.read if self._skim is not None and self._skim.is_ready else _refuse

    def receive(self, chunk: bytes) -> None:
        """A chunk of the body is about to be given to the client."""
        at = self._clock()
        if self._skim is not None and self._skim.read_many(chunk, at):
            return
        if self._is_over:
            return
        self._last_byte_at = at
        self._bytes += len(chunk)
        if self._scanner is None and self._body is None:
            return
        try:
            for piece in (chunk,) if self._inflater is None else self._inflater.feed(chunk):
                self._take(piece, at)
        except UnreadableError:
            # From here on only bytes and ends are seen.
            self.is_opaque, self._scanner, self._body = True, None, None

    def _take(self, piece: bytes, at: float) -> None:
        if self._body is not None:
            self._body.add(piece)
        elif self._scanner is not None:
            self._scan(self._scanner, piece, at)

    def _scan(self, scanner: Scanner, piece: bytes, at: float) -> None:
        blocks = scanner.receive(piece)
        has_comments = scanner.comments != self._seen_comments
        if self._skim is not None and not has_comments and self._skim.take_in(blocks, at):
            return
        events: list[Event] = [self._received(block) for block in blocks]
        if has_comments:
            fresh = scanner.comments - self._seen_comments
            self._seen_comments = scanner.comments
            events.append(Skimmed(exchange=self.number, event_type="comment", count=fresh))
        if events:
            if self._skim is not None:
                self._skim.give_way()
            self._observer.observe(self, events, at)
            if self._skim is None and self._inflater is None:
                self._skim = self._observer.skim(self.number, scanner)

    def _received(self, block: Block) -> Received:
        messages: tuple[Message, ...] = ()
        if block.size:
            messages = read_data(block.data, block.tail, liveness_key=self._observer.liveness_key)
        self._events += block.has_data
        return Received(
            exchange=self.number,
            event_type=block.type,
            event_id=block.id if block.id is None else shorten(block.id),
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
        if self._request is None:
            return b""
        url = self._request.url
        try:
            # By the library's own rules, where it has them: it will write the request's URL so.
            return target(str(url.join(reference) if hasattr(url, "join") else urljoin(str(url), reference)))
        except Exception:  # noqa: BLE001 - `ValueError`, or `InvalidURL` of either library
            return b""

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
            *self._untold,
            Ended(
                exchange=self.number,
                how=how,
                error=error,
                body=self._peeked(),
                last_byte_at=self.last_byte_at,
                opaque=self.is_opaque,
            ),
        )

    def _peeked(self) -> Body:
        if self._body is None or not self._body.size:
            return NO_BODY
        return self._body.read(self._observer.liveness_key)

    def concluded(self, stream: int, error_code: int) -> None:
        """The client was given an error for everything that a logical stream owed it."""
        self._observe(Concluded(exchange=self.number, stream=stream, error_code=error_code))

    def _observe(self, *events: Event) -> None:
        self._observer.observe(self, events, self._observer.clock())

    def __del__(self) -> None:
        if self.is_watched and not self._is_over:
            ended = Ended(exchange=self.number, how="abandoned", last_byte_at=self.last_byte_at)
            # It lives on until that is told: its span ends with it. Until then it may still be closed, by another
            # finalizer of the same garbage.
            self._observer.leave(self, *self._untold, ended)
