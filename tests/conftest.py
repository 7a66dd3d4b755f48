"""Shared by all tests: errors of ours raise, telemetry stays in memory, and there are several client families."""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import anyio
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from opentelemetry.instrumentation.httpx_sse._containment import Containment

T = TypeVar("T")

Containment.strict_by_default = True


@dataclass(frozen=True)
class Memory:
    """Providers whose output can be looked at."""

    reader: InMemoryMetricReader
    meter_provider: MeterProvider
    exporter: InMemorySpanExporter
    tracer_provider: TracerProvider

    def close(self) -> None:
        self.meter_provider.shutdown()
        self.tracer_provider.shutdown()


def in_memory() -> Memory:
    """New providers, of a process of their own as it were."""
    reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
    tracer_provider = TracerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Memory(reader, MeterProvider([reader], shutdown_on_exit=False), exporter, tracer_provider)


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Providers in memory, shut down afterwards."""
    made = in_memory()
    yield made
    made.close()


@dataclass(frozen=True)
class Family:
    """One library in one colour, and the framework that drives it."""

    library: str
    backend: str
    """`sync`, `asyncio` or `trio`."""

    @property
    def is_async(self) -> bool:
        return self.backend != "sync"

    @property
    def module(self) -> Any:
        return import_module(self.library)

    def client(self, **options: Any) -> Any:
        """A client of this family; proxies of the environment are left alone."""
        kind = self.module.AsyncClient if self.is_async else self.module.Client
        return kind(**{"timeout": 5, "trust_env": False, **options})

    def run(self, play: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function; in the sync families it must never wait for anything."""
        if self.is_async:
            return anyio.run(play, backend=self.backend)
        try:
            play().send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        raise AssertionError("a coroutine of a sync family waited")


FAMILIES = {
    "httpx-sync": Family("httpx", "sync"),
    "httpx-async": Family("httpx", "asyncio"),
    "httpx2-sync": Family("httpx2", "sync"),
    "httpx2-async": Family("httpx2", "asyncio"),
    "httpx-trio": Family("httpx", "trio"),
    "httpx2-trio": Family("httpx2", "trio"),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    """Each client family; tests that need asyncio itself skip those on trio."""
    return FAMILIES[request.param]
