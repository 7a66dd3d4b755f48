"""Growth: how many operations an event and a call cost, counted, with few and with many beside it.

An operation is a line or a call of this package, or a call that it makes into C. Counts do not depend on the
machine, nor on what else it does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from types import FrameType
from typing import Any

from tests.bench.bodies import CALL, progress

import opentelemetry.instrumentation.httpx_sse as package
from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._transport import SyncBody

HOME = str(Path(package.__file__).parent)
EVENTS = 200

STREAMS = (1, 10, 100, 1_000)
SESSIONS = (1, 10, 100, 1_000, 10_000)


class _Url:
    scheme, host, port = "http", "server.example", 8080

    def __str__(self) -> str:
        return "http://server.example:8080/mcp"


class _Headers:
    def __init__(self, session: str) -> None:
        names = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        self.raw = [(k.encode(), v.encode()) for k, v in {**names, "Mcp-Session-Id": session}.items()]


class _Request:
    method = "POST"
    url = _Url()

    def __init__(self, session: str, number: int) -> None:
        self.headers = _Headers(session)
        self.content = str({**CALL, "id": number}).replace("'", '"').encode()


class _Transport:
    pass


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """Counts operations in the block."""
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(HOME):
            return None
        seen += 1
        return trace

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal seen
        seen += event == "c_call" and frame.f_code.co_filename.startswith(HOME)

    # A coverage tool may be tracing: it goes on afterwards.
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        yield lambda: seen
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def _opened(observer: Observer, transport: object, session: str, number: int) -> Exchange:
    exchange = observer.begin(transport, _Request(session, number), None)
    assert exchange is not None
    assert exchange.head(200, [(b"Content-Type", b"text/event-stream")])
    return exchange


def _called(observer: Observer, transport: object, session: str, number: int) -> None:
    exchange = observer.begin(transport, _Request(session, number), None)
    assert exchange is not None
    exchange.head(200, [(b"Content-Type", b"application/json")])
    exchange.receive(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number)
    exchange.exhausted()
    exchange.closed()


def _observer() -> Observer:
    return Observer(lambda exchange, verdicts: None)


def _read(exchange: Exchange) -> Iterator[bytes]:
    """The endless body of an open stream, as a client iterates over it."""
    return iter(SyncBody(map(progress, count()), exchange, Containment(strict=True)))


def _spent(body: Iterator[bytes], before: int) -> float:
    """Operations of one event after so many on the same body."""
    for _ in islice(body, before):
        pass
    with counting() as operations:
        for _ in islice(body, EVENTS):
            pass
        return operations() / EVENTS


def event_with_streams(streams: int) -> float:
    """Operations of one event on a stream among so many that are open at once."""
    observer, transport = _observer(), _Transport()
    bodies = [_read(_opened(observer, transport, f"session {n % 50}", n)) for n in range(streams)]
    for body in bodies:
        next(body)
    return _spent(bodies[len(bodies) // 2], 1)


def event_with_sessions(sessions: int) -> float:
    """Operations of one event after so many sessions were seen."""
    observer, transport = _seen(sessions)
    return _spent(_read(_opened(observer, transport, "the session", 10**6)), 2)


def call_with_sessions(sessions: int) -> float:
    """Operations of one JSON call after so many sessions were seen."""
    observer, transport = _seen(sessions)
    _called(observer, transport, "the session", 10**6)
    with counting() as operations:
        for number in range(EVENTS):
            _called(observer, transport, "the session", 10**6 + 1 + number)
        return operations() / EVENTS


def _seen(sessions: int) -> tuple[Observer, _Transport]:
    observer, transport = _observer(), _Transport()
    for number in range(sessions):
        _called(observer, transport, f"session {number}", number)
    return observer, transport


def event_with_events(events: int) -> float:
    """Operations of one event after so many on the same stream."""
    observer, transport = _observer(), _Transport()
    return _spent(_read(_opened(observer, transport, "the session", 1)), events)


CURVES: dict[str, tuple[Callable[[int], float], tuple[int, ...]]] = {
    "an event, by streams open at once": (event_with_streams, STREAMS),
    "an event, by sessions seen": (event_with_sessions, SESSIONS),
    "a JSON call, by sessions seen": (call_with_sessions, SESSIONS),
    "an event, by events before it": (event_with_events, (2, 100, 1_000, 10_000)),
}
"""What must be flat."""


def measure_growth() -> dict[str, dict[int, float]]:
    """Operations by size, for each curve."""
    return {name: {size: cost(size) for size in sizes} for name, (cost, sizes) in CURVES.items()}
