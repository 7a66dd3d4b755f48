"""Targets of what decides: the ledger alone, and the whole core behind the facade of the exchange."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, get_args

from opentelemetry.instrumentation.httpx_sse._events import (
    Answered,
    Asked,
    Body,
    Ended,
    ErrorKind,
    Event,
    JsonId,
    Message,
    MessageKind,
    Origin,
    PoolClosed,
    Received,
    Sent,
    Skimmed,
    Unanswered,
)
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger, Thresholds, _state
from opentelemetry.instrumentation.httpx_sse._ledger._tables import LIMITS
from opentelemetry.instrumentation.httpx_sse._names import METRICS, EventType
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._telemetry import TABLE
from opentelemetry.instrumentation.httpx_sse._verdicts import (
    Reconnected,
    ReconnectSettled,
    Snapshot,
    StreamEnded,
    StreamMoved,
    StreamOpened,
    Verdict,
)

from .draw import Draw
from .reading import STATUSES, TEXTS, VERSIONS, json_like, stream_body

REACHABLE: Final = {name: frozenset(metric.reachable) for name, metric in METRICS.items()}
_ROWS: Final = {
    kind: tuple((row.metric, row.labels, row.value) for row in rows) for kind, rows in TABLE.items()
}


SHOWN: Final = {
    "sse.client.logical_streams": "logical_streams",
    "sse.client.stalled_streak": "stalled_streak",
    "sse.client.oldest_request.age": "oldest_request_age",
    "sse.client.unconfirmed_sessions": "unconfirmed_sessions",
    "sse.client.reprompt_streak": "reprompt_streak",
    "sse.client.events": "events",
}
"""Which field of a snapshot a metric shows."""


def listed(verdicts: Iterable[Verdict]) -> None:
    """Every label set that a verdict feeds is one that its metric lists."""
    for verdict in verdicts:
        for metric, fields, value in _ROWS.get(type(verdict), ()):
            if isinstance(value, str) and getattr(verdict, value) is None:
                continue
            labels = tuple([getattr(verdict, field) for field in fields])
            if labels not in REACHABLE[metric]:
                raise AssertionError(f"{metric} {labels} is not listed")


def sound(snapshot: Snapshot) -> None:
    """A snapshot shows listed label sets and no number below zero."""
    listed(snapshot.settled)
    for metric, field in SHOWN.items():
        for key, value in getattr(snapshot, field).items():
            labels = key[1:] if METRICS[metric].attributes else ()
            if labels not in REACHABLE[metric] or value < 0:
                raise AssertionError(f"{metric} {labels} = {value}")


# ------------------------------------------------------------------ facts

ORIGINS: Final = (Origin("http", "a", 80), Origin("https", "b", 443))
SESSIONS: Final = (None, "s1", "s1", "s2")
CURSORS: Final = (None, None, "e0", "e1", "e2", "e3", "x" * 300)
METHODS: Final = ("GET", "POST", "POST", "GET", "DELETE", "PUT")
CALLS: Final = ("tools/call", "initialize", "ping", "subscriptions/listen", "tools/list", "own/method", "")
ASKS: Final = (
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "ping",
    "own/create",
    "tasks/get",
    "own",
)
IDS: Final[tuple[JsonId, ...]] = (1, 2, 3, "a", 1)
TARGETS: Final = (b"t1", b"t2", b"t3")
KEYS: Final = (b"", b"k1", b"k2")
ERRORS: Final[tuple[ErrorKind, ...]] = get_args(ErrorKind)
HOWS: Final = ("exhausted", "failed", "closed", "abandoned")
TYPES: Final[tuple[EventType, ...]] = get_args(EventType)


def message(draw: Draw, *, from_server: bool) -> Message:
    kind = draw.below(5)
    if kind == 0:
        cancels = draw.pick(IDS) if draw.chance(2) else None
        return Message(kind=MessageKind.NOTIFICATION, method="notifications/x", cancels=cancels)
    if kind < 3:
        return Message(
            kind=MessageKind.REQUEST,
            id=draw.pick(IDS),
            method=draw.pick(ASKS if from_server else CALLS) or "m",
            name=draw.pick(("", "tool")),
            subject=draw.pick(KEYS),
            state=draw.pick(KEYS),
            has_input=draw.chance(3),
            progress_token=draw.pick((None, 1, 2)),
            asserts_liveness=draw.chance(4),
            protocol_version=draw.pick(("", "2025-11-25")),
        )
    is_error = draw.chance(3)
    required = not is_error and draw.chance(4)
    return Message(
        kind=MessageKind.RESPONSE,
        id=None if draw.chance(6) else draw.pick(IDS),
        is_error=is_error,
        error_code=draw.pick((-32042, -32601, -32001, None)) if is_error else None,
        error_text=draw.pick(TEXTS) if is_error else "",
        input_required=required,
        state=draw.pick(KEYS),
        asked=tuple(
            Asked(method=draw.pick(ASKS), digest=draw.pick(KEYS), is_url=draw.chance(3))
            for _ in range(draw.below(3))
        )
        if required or is_error
        else (),
        protocol_version=draw.pick(("", "2025-06-18", "2026-07-28")),
    )


def messages(draw: Draw, *, from_server: bool) -> tuple[Message, ...]:
    count = draw.pick((1, 1, 1, 0, 2, 3))
    return tuple(message(draw, from_server=from_server) for _ in range(count))


def sent(draw: Draw, exchange: int) -> Sent:
    method = draw.pick(METHODS)
    return Sent(
        exchange=exchange,
        pool=1 + draw.below(2),
        origin=draw.pick(ORIGINS),
        target=draw.pick(TARGETS),
        http_method=method,
        mcp=not draw.chance(5),
        session=draw.pick(SESSIONS),
        cursor=draw.pick(CURSORS) if method == "GET" or draw.chance(9) else None,
        version=draw.pick((None, "2025-11-25", "2025-11-25", *VERSIONS)),
        credentials=draw.pick(KEYS),
        messages=messages(draw, from_server=False) if method == "POST" else (),
    )


def answered(draw: Draw, exchange: int) -> Answered:
    is_stream = draw.chance(2)
    return Answered(
        exchange=exchange,
        status=200 if is_stream else draw.pick(STATUSES),
        is_stream=is_stream,
        opaque=draw.chance(12),
        session=draw.pick(SESSIONS) if draw.chance(3) else None,
        location=draw.pick(TARGETS) if draw.chance(3) else b"",
    )


def received(draw: Draw, exchange: int) -> Event:
    event_id = draw.pick(CURSORS)
    if draw.chance(8):
        ids = tuple(i for i in (draw.pick(CURSORS),) if i)
        return Skimmed(exchange=exchange, event_type=draw.pick(TYPES), count=1 + draw.below(3), event_ids=ids)
    held = messages(draw, from_server=True) if draw.chance(2) else ()
    is_empty = not held and draw.chance(2)
    return Received(
        exchange=exchange,
        event_type=draw.pick(("", "message", "endpoint", "ping")),
        event_id=event_id,
        retry=draw.pick((None, None, 0, 500, 10**14)),
        has_data=bool(held) or not draw.chance(3),
        messages=held,
        is_empty=is_empty,
        endpoint=draw.pick(TARGETS) if draw.chance(10) else b"",
    )


def ended(draw: Draw, exchange: int, at: float) -> Ended:
    how = draw.pick(HOWS)
    text = " ".join(draw.pick(TEXTS) for _ in range(draw.below(3)))
    return Ended(
        exchange=exchange,
        how=how,  # type: ignore[arg-type]
        error=draw.pick(ERRORS) if how == "failed" else None,
        body=Body(text, messages(draw, from_server=True) if draw.chance(3) else ()),
        last_byte_at=draw.pick((None, at, at - 0.5)),
        opaque=draw.chance(20),
    )


# ------------------------------------------------------------------ the ledger alone

THRESHOLDS: Final = (Thresholds(), Thresholds(submission_deadline=1.0, give_up_after=2.0))
SMALL: Final = 3
FEWER: Final = {"PLACE_STREAMS": 2, "STREAM_IDS": 4, "SPENT_STREAM_IDS": 1}


@contextmanager
def small_tables() -> Iterator[None]:
    """Tables of three entries: everything is evicted at some time."""
    before = dict(LIMITS)
    held = {name: getattr(_state, name) for name in FEWER}
    LIMITS.update(dict.fromkeys(LIMITS, SMALL))
    vars(_state).update(FEWER)
    try:
        yield
    finally:
        LIMITS.update(before)
        vars(_state).update(held)


class _Life:
    """The exchanges of one run. A lawful run keeps to the order of facts, a lawless one does not."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lawful = not draw.chance(4)
        self.open: dict[int, str] = {}
        self.numbers = 0

    def next(self, at: float) -> Event:
        draw = self.draw
        if not self.open or draw.chance(4):
            return self._begin()
        exchange = list(self.open)[draw.below(len(self.open))]
        if not self.lawful and draw.chance(3):
            exchange = 1 + draw.below(9)
        phase = self.open.get(exchange, "stream")
        if phase == "sent":
            if draw.chance(6):
                self.open.pop(exchange)
                return Unanswered(exchange=exchange, error=draw.pick(ERRORS))
            fact = answered(draw, exchange)
            self.open[exchange] = "stream" if fact.is_stream else "body"
            return fact
        if phase == "stream" and not draw.chance(4):
            return received(draw, exchange)
        if not self.lawful and draw.chance(8):
            return PoolClosed(pool=1 + draw.below(2))
        self.open.pop(exchange, None)
        return ended(draw, exchange, at)

    def _begin(self) -> Event:
        self.numbers += 1
        if self.draw.chance(30):
            return PoolClosed(pool=1 + self.draw.below(2))
        self.open[self.numbers] = "sent"
        return sent(self.draw, self.numbers)


def ledger(draw: Draw) -> None:
    """Any facts in any order are verdicts or none; what opens is closed; all tables stay bounded."""
    if draw.chance(4):
        with small_tables():
            _observe(draw)
    else:
        _observe(draw)


def _observe(draw: Draw) -> None:
    life, one = _Life(draw), Ledger(draw.pick(THRESHOLDS))
    at = 100.0
    found: list[Verdict] = []
    while not draw.is_spent:
        at += draw.pick((0.0, 0.0, 0.01, 0.5, 2.0, 40.0, 700.0))
        found += one.observe(life.next(at), at=at)
        if draw.chance(16):
            sound(one.snapshot(at=at))
    for exchange, phase in list(life.open.items()):
        fact = (
            Unanswered(exchange=exchange, error="timeout") if phase == "sent" else ended(draw, exchange, at)
        )
        found += one.observe(fact, at=at)
    listed(found)
    for later in (0.0, 31.0, 700.0):
        sound(one.snapshot(at=at + later))
    _bounded(one._state)
    if life.lawful:
        _balanced(found)


def _balanced(found: Iterable[Verdict]) -> None:
    open_now: Counter[str] = Counter()
    begun = settled = 0
    for verdict in found:
        if isinstance(verdict, StreamOpened):
            open_now[verdict.kind] += 1
        elif isinstance(verdict, StreamMoved):
            open_now[verdict.before] -= 1
            open_now[verdict.kind] += 1
        elif isinstance(verdict, StreamEnded):
            open_now[verdict.kind] -= 1
        begun += isinstance(verdict, Reconnected)
        settled += isinstance(verdict, ReconnectSettled)
    if any(open_now.values()):
        raise AssertionError(f"streams that stay open: {open_now}")
    if settled > begun:
        raise AssertionError(f"{begun} reconnects, {settled} outcomes")


def _bounded(state: _state.State) -> None:
    tables: tuple[Any, ...] = (
        state.sessions, state.places, state.streams, state.requests, state.prompts, state.operations, state.flights,
    )  # fmt: skip
    for table in tables:
        if len(table) > table.limit:
            raise AssertionError(f"{table.name} holds {len(table)}")
    held = sum(len(stream.ids) for stream in state.streams)
    if held > state.ids_held:
        raise AssertionError(f"{held} event ids, {state.ids_held} counted")


# ------------------------------------------------------------------ the whole core


@dataclass(frozen=True)
class _Url:
    scheme: str
    host: str
    port: int | None
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}{self.path}"


@dataclass
class _Headers:
    raw: list[tuple[bytes, bytes]]


@dataclass
class _Request:
    method: str
    url: _Url
    headers: _Headers
    content: object


class _Transport:
    """What weak references are kept to."""


MEDIA: Final = (b"text/event-stream", b"Text/Event-Stream; charset=x", b"application/json", b"", b"text/html")
CODINGS: Final = (b"", b"", b"", b"gzip", b"deflate", b"identity", b"br", b"nonsense")
HEADS: Final = (
    b"mcp-session-id",
    b"Mcp-Session-Id",
    b"mcp-protocol-version",
    b"last-event-id",
    b"authorization",
)
VALUES: Final = (b"s1", b"2025-11-25", b"2026-07-28", b"1", b"", b"\xff\xfe", b"0" * 5000, b"Bearer x")


def _request(draw: Draw) -> _Request:
    method = draw.pick(("POST", "GET", "POST", "DELETE", "HEAD"))
    raw = [(draw.pick(HEADS), draw.pick(VALUES)) for _ in range(draw.below(4))]
    if not draw.chance(4):
        raw.append((b"Accept", b"application/json, text/event-stream"))
    content: object = json_like(draw) if method == "POST" else b""
    if draw.chance(12):
        content = None
    url = _Url("http", draw.pick(("a", "b")), draw.pick((None, 8080)), draw.pick(("/mcp", "/mcp/", "/é")))
    return _Request(method, url, _Headers(raw), content)


def _chunks(draw: Draw) -> Iterator[bytes]:
    while not draw.is_spent and not draw.chance(6):
        kind = draw.below(4)
        if kind == 0:
            yield stream_body(draw, 10)
        elif kind == 1:
            yield b"id: 1\ndata: " + json_like(draw) + b"\n\n"
        elif kind == 2:
            yield json_like(draw)
        else:
            yield draw.raw(20)


class _Ticks:
    """A clock that goes on by itself."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        self.at += 0.001
        return self.at


def exchange(draw: Draw) -> None:
    """Whatever passes through a transport, the core takes it and names only what it lists."""
    clock = _Ticks()
    observer = Observer(lambda _, verdicts: listed(verdicts), clock=clock, liveness_key="live")
    transports = [_Transport(), _Transport()]
    while not draw.is_spent:
        clock.at += draw.pick((0.0, 0.0, 2.0, 40.0))
        _one(draw, observer.begin(draw.pick(transports), _request(draw), None))
        if draw.chance(8):
            transports[0] = _Transport()
    clock.at += 100
    sound(observer.collect())


def _one(draw: Draw, one: Exchange) -> None:
    if draw.chance(8):
        one.unanswered(draw.pick((ValueError("x"), KeyboardInterrupt(), TimeoutError())))
        return
    coding = draw.pick(CODINGS)
    head = [(b"Content-Type", draw.pick(MEDIA)), (b"Content-Encoding", coding)]
    head += [(draw.pick((b"Location", b"Mcp-Session-Id")), draw.pick((b"/mcp", b"s1", b"http://[", b"\xff")))]
    if not one.head(draw.pick((200, 200, 200, *STATUSES)), head):
        return
    coder = zlib.compressobj(wbits=31 if coding == b"gzip" else 15) if draw.chance(2) else None
    for chunk in _chunks(draw):
        one.receive(chunk if coder is None else coder.compress(chunk) + coder.flush(zlib.Z_SYNC_FLUSH))
    end = draw.below(5)
    if end == 0:
        one.failed(draw.pick((ValueError("x"), GeneratorExit(), TimeoutError())))
    elif end < 3:
        one.exhausted()
    elif end == 3:
        one.closed()
    one.closed() if draw.chance(3) else None
