"""The pure host: real exchanges and a real ledger, a clock that is set, and no connection at all. Time is literal."""

import asyncio
import gc
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urljoin

import httpx
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from tests.conftest import in_memory

from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._gauges import showing_of
from opentelemetry.instrumentation.httpx_sse._ledger import Thresholds
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._options import read_options
from opentelemetry.instrumentation.httpx_sse._spans import Identifiers, Spans
from opentelemetry.instrumentation.httpx_sse._telemetry import Telemetry

from .findings import Point, points_of
from .play import fields_of, headers_of
from .script import Head, Request, Story

START = 1000.0


class Transport:
    """Stands for an httpx transport object: only its identity counts."""


class Clock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Redirected(httpx.Request):
    """A redirected request has its body in a stream that nobody has read."""

    @property
    def content(self) -> bytes:
        raise httpx.RequestNotRead


class PureHost:
    """Builds the calls that a transport would make."""

    scale = 1.0

    def __init__(self, story: Story) -> None:
        options = read_options(story.options, {})
        self.story = story
        self.clock = Clock()
        self.memory = in_memory()
        containment = Containment()
        showing = showing_of(self.memory.meter_provider)
        server = partial(showing.servers.name, limit=options.server_limit)
        spans = Spans(
            self.memory.tracer_provider.get_tracer("t"),
            Identifiers(options.capture_ids, options.hash_key),
            server,
            containment,
            clock=self.clock,
        )
        self._telemetry = Telemetry(showing, spans, server, containment)
        self.observer = Observer(
            self._telemetry,
            thresholds=Thresholds(
                idle_threshold=options.idle_threshold,
                quiet_threshold=options.quiet_threshold,
                give_up_after=options.give_up_after,
                submission_deadline=options.submission_deadline,
            ),
            liveness_key=options.liveness_key,
            clock=self.clock,
        )
        self._telemetry.observe_through(self.observer)
        self._transports: dict[str, Transport] = {}
        self._open: dict[str, Exchange] = {}

    async def sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    async def send(self, name: str, request: Request, heads: Sequence[Head]) -> None:
        host = request.keys.get("at", "h1.test")
        url = f"http://{host}{request.keys.get('to', '/mcp')}"
        headers = headers_of(self.story, request)
        sent = httpx.Request(request.method, url, headers=headers, content=request.content or None)
        pool = request.keys.get("pool", "1")
        transport = self._transports.setdefault(pool, Transport())
        for head in heads:
            exchange = self.observer.begin(transport, sent, Context())
            if head.instead:
                exchange.unanswered(_error(head.instead, sent))
                return
            fields = [(k.encode(), v.encode()) for k, v in fields_of(head).items()]
            exchange.head(head.status, fields)
            if head.location:
                exchange.exhausted()
                exchange.closed()
                sent = _redirected(sent, head, headers)
            else:
                self._open[name] = exchange

    async def give(self, name: str, chunk: bytes) -> None:
        self._open[name].receive(chunk)

    async def end(self, name: str, how: str) -> None:
        exchange = self._open.pop(name)
        if how == "drop":
            del exchange
            gc.collect()
            return
        if how == "end":
            exchange.exhausted()
        elif how != "close":
            exchange.failed(_error(how, None))
        exchange.closed()

    async def gone(self, pool: str) -> None:
        del self._transports[pool]
        gc.collect()

    def collect(self) -> list[Point]:
        return points_of(self.memory.reader)

    def spans(self) -> Sequence[ReadableSpan]:
        return self.memory.exporter.get_finished_spans()


def _error(how: str, request: httpx.Request | None) -> BaseException:
    if how == "cancel":
        return asyncio.CancelledError()
    if how == "stall":
        return httpx.ReadTimeout("", request=request)
    return httpx.RemoteProtocolError("", request=request)


def _redirected(before: httpx.Request, head: Head, headers: Any) -> httpx.Request:
    """What both libraries make of a redirect: of a POST, 307 and 308 leave a POST, others a GET."""
    url = urljoin(str(before.url), head.location)
    if before.method == "POST" and head.status not in (307, 308):
        return httpx.Request("GET", url, headers=headers)
    return Redirected(before.method, url, headers=headers)
