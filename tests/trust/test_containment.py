"""Errors of ours stay ours: the host's result is untouched, each is counted by site, and logged once per site."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NoOpTracerProvider
from tests.conftest import Family, Memory
from tests.lifecycle.world import done, total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor, _exchange, _request, _transport
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._scanner import Scanner
from opentelemetry.instrumentation.httpx_sse._spans import Spans
from opentelemetry.instrumentation.httpx_sse._telemetry import Telemetry

Log = list[tuple[Any, ...]]
EVENT = b'id: 1\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'
HEADERS = {"Accept": "text/event-stream", "Mcp-Session-Id": "s", "MCP-Protocol-Version": "2025-11-25"}

FAULTS: dict[str, tuple[Any, str, set[str]]] = {
    "suppression": (_transport, "is_instrumentation_enabled", {"begin"}),
    "context": (_transport, "get_current", {"begin"}),
    "begin": (Observer, "begin", {"begin"}),
    "describe": (Exchange, "describe", {"begin"}),
    "announce": (Exchange, "announce", {"begin"}),
    "unanswered": (Exchange, "unanswered", {"begin"}),
    "head": (Exchange, "head", {"head"}),
    "receive": (Exchange, "receive", {"receive"}),
    "scan": (Scanner, "receive", {"receive"}),
    "peek": (_request, "read_data", {"begin"}),
    "read": (_exchange, "read_data", {"receive"}),
    "exhausted": (Exchange, "exhausted", {"exhausted"}),
    "failed": (Exchange, "failed", {"failed"}),
    "closed": (Exchange, "closed", {"closed"}),
    "observe": (Observer, "observe", {"begin"}),
    "ledger": (Ledger, "observe", {"begin"}),
    "telemetry": (Telemetry, "_record", {"telemetry"}),
    "spans": (Spans, "_see", {"telemetry"}),
    "snapshot": (Ledger, "snapshot", {"collect"}),
}
"""What is made to raise, and the sites at which that is contained."""


class HostError(Exception):
    """Raised by the transport."""


def stream(library: Any, error: Exception | None) -> Any:
    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            yield from (EVENT, EVENT)
            if error is not None:
                raise error

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for event in (EVENT, EVENT):
                yield event
            if error is not None:
                raise error

    return Stream()


def client_of(family: Family) -> Any:
    """A client of a server that answers by path: whole, cut, refused or with JSON."""
    library = family.module

    def answer(request: Any) -> Any:
        path = request.url.path
        if path == "/refused":
            raise library.ConnectError("nobody there", request=request)
        if path == "/json":
            return library.Response(404, json={"error": "session not found"})
        error = HostError("cut") if path == "/cut" else None
        return library.Response(
            200, headers={"content-type": "text/event-stream"}, stream=stream(library, error)
        )

    return family.client(transport=library.MockTransport(answer))


async def exchanges(family: Family, client: Any) -> Log:
    """Every kind of end of an exchange, and what the host saw of it."""
    log: Log = []
    for path in ("/whole", "/cut", "/refused", "/json", "/early"):
        request = client.build_request(
            "POST", f"http://server.test{path}", headers=HEADERS, json={"jsonrpc": "2.0"}
        )
        try:
            response = await done(client.send(request, stream=True))
            if path == "/early":
                await done(response.aclose() if family.is_async else response.close())
            else:
                await done(response.aread() if family.is_async else response.read())
            log.append((path, response.status_code, "" if path == "/early" else response.content))
        except Exception as error:  # noqa: BLE001
            log.append((path, type(error), str(error), error.__cause__, error.__context__))
    return log


def fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a secret of the user")


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_any_call(
    family: Family,
    memory: Memory,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The host sees what it sees plain; the fault is counted at its site, logged once there, without its text."""
    owner, attribute, sites = FAULTS[name]
    client = client_of(family)
    without = family.run(lambda: exchanges(family, client))
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider
    )
    monkeypatch.setattr(owner, attribute, fail)
    for _ in range(2):
        assert family.run(lambda: exchanges(family, client)) == without
        memory.reader.get_metrics_data()
    containment = client._otel_httpx_sse.installation.containment
    assert sites <= {site for site, count in containment.errors.items() if count > 1}
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == len(containment.errors)
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("lenient")
def test_a_broken_hook(family: Family, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A `verdict_hook` that raises changes nothing, and its errors are a metric."""
    client = client_of(family)
    without = family.run(lambda: exchanges(family, client))
    HTTPXSSEInstrumentor.instrument_client(
        client,
        tracer_provider=memory.tracer_provider,
        meter_provider=memory.meter_provider,
        verdict_hook=fail,
    )
    assert family.run(lambda: exchanges(family, client)) == without
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert total(memory, "sse.client.stream.duration") == 3
    assert total(memory, "sse.client.instrumentation.errors", sse_instrumentation_site="hook") > 1


class Broken:
    """Whatever is asked of it is a thing that raises when it is called."""

    def __getattr__(self, _: str) -> Callable[..., Any]:
        return fail


class BrokenMeters(NoOpMeterProvider):
    """Instruments are given out, and fail."""

    def get_meter(self, *args: Any, **kwargs: Any) -> Any:
        meter = super().get_meter(*args, **kwargs)
        for name in ("create_counter", "create_up_down_counter", "create_histogram"):
            setattr(meter, name, lambda *_, **__: Broken())
        return meter


class BrokenTracers(NoOpTracerProvider):
    """No span can be started."""

    def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
        return Broken()


class BrokenSpans(NoOpTracerProvider):
    """Spans can be started, and nothing else."""

    def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
        tracer = super().get_tracer(*args, **kwargs)
        tracer.start_span = lambda *_, **__: Broken()  # type: ignore[assignment,method-assign]
        return tracer


BROKEN: dict[str, Callable[[], dict[str, Any]]] = {
    "meter": lambda: {"meter_provider": BrokenMeters()},
    "tracer": lambda: {"tracer_provider": BrokenTracers()},
    "span": lambda: {"tracer_provider": BrokenSpans()},
}


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_provider(family: Family, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Instruments, tracers and spans that raise are contained as telemetry."""
    client = client_of(family)
    without = family.run(lambda: exchanges(family, client))
    HTTPXSSEInstrumentor.instrument_client(client, **BROKEN[name]())
    assert family.run(lambda: exchanges(family, client)) == without
    assert set(client._otel_httpx_sse.installation.containment.errors) == {"telemetry"}
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("keyword", ["meter_provider", "tracer_provider"])
def test_a_provider_that_raises(keyword: str) -> None:
    """`instrument` does not raise: under `opentelemetry-instrument` that would stop every later instrumentor."""
    HTTPXSSEInstrumentor().instrument(**{keyword: Broken()})


@pytest.mark.usefixtures("lenient")
def test_a_clock_that_raises(family: Family, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even an exchange that could not be made is thrown away without a sound."""
    client = client_of(family)
    without = family.run(lambda: exchanges(family, client))
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider
    )
    monkeypatch.setattr(client._otel_httpx_sse.installation.observer, "clock", fail)
    assert family.run(lambda: exchanges(family, client)) == without


# ------------------------------------------------------------------ exporters

LONG = 30.0
"""Seconds after which something that is blocked will not come back by itself."""
PAUSE = 0.01
"""Seconds between exports."""


class Gate:
    """Where an exporter is stuck until somebody lets it through."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self._is_open = threading.Event()

    def pass_through(self) -> None:
        self.is_reached.set()
        assert self._is_open.wait(LONG), "nobody opened it"

    def open(self) -> None:
        self._is_open.set()


class StuckMetrics(MetricExporter):
    """Takes metrics, and does not come back."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def export(self, *_: Any, **__: Any) -> MetricExportResult:
        self._gate.pass_through()
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:
        self._gate.open()


class StuckSpans(SpanExporter):
    """Takes spans, and does not come back."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def export(self, *_: Any) -> SpanExportResult:
        self._gate.pass_through()
        return SpanExportResult.SUCCESS


class Stuck(NamedTuple):
    """Providers whose telemetry gets stuck."""

    providers: dict[str, Any]
    shut_down: Callable[[], object]
    begin: Callable[[], object] = lambda: None
    """Called when instruments are made: nobody can make any while a collection is stuck."""


def stuck_metrics(gate: Gate) -> Stuck:
    reader = PeriodicExportingMetricReader(StuckMetrics(gate), export_interval_millis=PAUSE * 1000)
    provider = MeterProvider([reader], shutdown_on_exit=False)
    return Stuck({"meter_provider": provider}, provider.shutdown)


def stuck_collection(gate: Gate) -> Stuck:
    """Somebody else's instrument on the same provider blocks a collection in the middle."""

    def block(_: Any) -> list[Any]:
        gate.pass_through()
        return []

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    provider.get_meter("somebody else").create_observable_gauge("stuck", callbacks=[block])
    scrape = threading.Thread(target=reader.get_metrics_data)

    def shut_down() -> None:
        scrape.join(LONG)
        provider.shutdown()

    return Stuck({"meter_provider": provider}, shut_down, scrape.start)


def stuck_spans(gate: Gate) -> Stuck:
    """Its queue is full after a few spans, and overflows."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(
            StuckSpans(gate), max_queue_size=2, max_export_batch_size=1, schedule_delay_millis=PAUSE * 1000
        )
    )
    provider.get_tracer("somebody else").start_span("first").end()
    return Stuck({"tracer_provider": provider}, provider.shutdown)


STUCK: dict[str, Callable[[Gate], Stuck]] = {
    "metric exporter": stuck_metrics,
    "collection": stuck_collection,
    "span exporter": stuck_spans,
}


@pytest.mark.parametrize("name", STUCK)
def test_an_exporter_that_blocks(family: Family, name: str) -> None:
    """While telemetry is stuck on its way out, the host goes on as if there were none."""
    gate, client, met = Gate(), client_of(family), list[Log]()
    without = family.run(lambda: exchanges(family, client))
    stuck = STUCK[name](gate)
    HTTPXSSEInstrumentor.instrument_client(client, **stuck.providers)
    stuck.begin()
    try:
        assert gate.is_reached.wait(LONG)

        def play() -> None:
            met.extend(family.run(lambda: exchanges(family, client)) for _ in range(4))

        host = threading.Thread(target=play, daemon=True)
        host.start()
        host.join(LONG / 2)
        assert not host.is_alive(), "the host waits for an exporter"
    finally:
        gate.open()
        stuck.shut_down()
    assert met == [without] * 4
    assert not client._otel_httpx_sse.installation.containment.errors
