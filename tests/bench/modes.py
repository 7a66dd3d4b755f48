"""The ways in which the same work is done: plain, over the floor, watched by us, traced by a peer."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import wrapt
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

Check = Callable[[], int]
Mode = Callable[[], AbstractContextManager[Check]]


class _Dropped(SpanProcessor):
    """Spans are recorded in full and then go nowhere: exporting is the same for every instrumentation."""

    def __init__(self) -> None:
        self.ended = 0

    def on_end(self, span: ReadableSpan) -> None:
        self.ended += 1


class _Providers:
    """A real SDK, as an application would set it up."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.meter = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracer = TracerProvider(shutdown_on_exit=False)
        self.spans = _Dropped()
        self.tracer.add_span_processor(self.spans)

    def events(self) -> int:
        """What our counter of events shows, summed over its series."""
        data = self.reader.get_metrics_data()
        scopes = (
            [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        )
        metrics = [m for scope in scopes for m in scope.metrics if m.name == "sse.client.events"]
        points = [point for metric in metrics for point in metric.data.data_points]
        return sum(int(point.value) for point in points if isinstance(point, NumberDataPoint))

    def shutdown(self) -> None:
        self.meter.shutdown()
        self.tracer.shutdown()


@contextlib.contextmanager
def plain() -> Iterator[Check]:
    """Nothing is installed."""
    yield lambda: 0


@contextlib.contextmanager
def ours() -> Iterator[Check]:
    """Watched by this package; the check tells how many events it has counted."""
    from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor  # noqa: PLC0415

    providers = _Providers()
    instrumentor = HTTPXSSEInstrumentor()
    instrumentor.instrument(
        meter_provider=providers.meter, tracer_provider=providers.tracer, skip_dep_check=True
    )
    try:
        yield providers.events
    finally:
        instrumentor.uninstrument()
        providers.shutdown()


@contextlib.contextmanager
def peer() -> Iterator[Check]:
    """Traced by opentelemetry-instrumentation-httpx, on whichever of the two libraries are there."""
    module = importlib.import_module("opentelemetry.instrumentation.httpx")
    providers = _Providers()
    names = [("HTTPXClientInstrumentor", "httpx"), ("HTTPX2ClientInstrumentor", "httpx2")]
    found = [getattr(module, name)() for name, library in names if importlib.util.find_spec(library)]
    for instrumentor in found:
        instrumentor.instrument(
            meter_provider=providers.meter, tracer_provider=providers.tracer, skip_dep_check=True
        )
    try:
        yield lambda: providers.spans.ended
    finally:
        for instrumentor in found:
            instrumentor.uninstrument()
        providers.shutdown()


class _Count:
    """A pass-through iterator that also counts, for the bench's own check of what reaches a client."""

    def __init__(self, chunks: Any, seen: list[int]) -> None:
        self._chunks = chunks
        self._seen = seen

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk: bytes = next(self._chunks)
        self._seen.append(len(chunk))
        return chunk

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk: bytes = await self._chunks.__anext__()
        self._seen.append(len(chunk))
        return chunk


class _Through:
    """The floor: the least that any observer of a body must do."""

    __slots__ = ("_next",)

    def __init__(self, step: Callable[[], Any]) -> None:
        self._next = step

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk: bytes = self._next()
        return chunk

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk: bytes = await self._next()
        return chunk


class _Body(wrapt.ObjectProxy):  # type: ignore[misc, type-arg, unused-ignore]
    def __iter__(self) -> Iterator[bytes]:
        return _Through(iter(self.__wrapped__).__next__)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Through(self.__wrapped__.__aiter__().__anext__)


class _CountedBody(wrapt.ObjectProxy):  # type: ignore[misc, type-arg, unused-ignore]
    def __init__(self, wrapped: Any, seen: list[int]) -> None:
        super().__init__(wrapped)
        self._self_seen = seen

    def __iter__(self) -> Iterator[bytes]:
        return _Count(iter(self.__wrapped__), self._self_seen)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Count(self.__wrapped__.__aiter__(), self._self_seen)


def _wrap(send: Callable[..., Any], body: Callable[[Any], Any]) -> Callable[..., Any]:
    def handle_request(self: Any, request: Any) -> Any:
        found = send(self, request)
        found.stream = body(found.stream)
        return found

    return handle_request


def _wrap_async(send: Callable[..., Any], body: Callable[[Any], Any]) -> Callable[..., Any]:
    async def handle_async_request(self: Any, request: Any) -> Any:
        found = await send(self, request)
        found.stream = body(found.stream)
        return found

    return handle_async_request


SEAMS = (
    ("HTTPTransport", "handle_request", _wrap),
    ("AsyncHTTPTransport", "handle_async_request", _wrap_async),
)


@contextlib.contextmanager
def _at_the_seam(body: Callable[[Any], Any]) -> Iterator[None]:
    """Every response's stream passes through `body`, in both libraries."""
    with contextlib.ExitStack() as undo:
        for library in ("httpx", "httpx2"):
            if importlib.util.find_spec(library) is None:
                continue
            module = importlib.import_module(library)
            for transport, name, wrap in SEAMS:
                owner = getattr(module, transport)
                original = vars(owner)[name]
                undo.callback(setattr, owner, name, original)
                setattr(owner, name, wrap(original, body))
        yield


@contextlib.contextmanager
def floor() -> Iterator[Check]:
    """A class iterator that does nothing stands at the place where ours stands."""
    with _at_the_seam(_Body):
        yield lambda: 0


@contextlib.contextmanager
def counted() -> Iterator[Check]:
    """The check tells how many pieces reached the client."""
    seen: list[int] = []
    with _at_the_seam(lambda stream: _CountedBody(stream, seen)):
        yield lambda: len(seen)


MODES: dict[str, Mode] = {"plain": plain, "ours": ours, "peer": peer, "floor": floor}
