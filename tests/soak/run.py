"""One run: server, clients, collections, and the comparison of the telemetry with the books."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import NoOpTracerProvider
from tests.conftest import FAMILIES

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._names import METRICS, SERVER

from .actor import Actor
from .books import Counts, Limits
from .journal import Collected, Journal
from .oracle import Oracle
from .server import ChaosServer
from .wire import Wire

CREW: Final = (
    ("httpx-sync", True), ("httpx2-sync", True), ("httpx-sync", False), ("httpx-async", True), ("httpx-async", True),
    ("httpx2-async", True), ("httpx2-async", True), ("httpx2-async", False), ("httpx2-sync", True),
    ("httpx-async", False),
)  # fmt: skip
"""Who plays: a client family, and whether it has sessions."""

COUNTED: Final = frozenset(
    name
    for name, metric in METRICS.items()
    if metric.by_server and metric.instrument in ("counter", "histogram", "observable_counter")
)
NOUGHT: Final = ("sse.client.active_streams", "sse.client.instrumentation.errors")
OPERATIONS: Final = "mcp.client.operation.duration"


@dataclass(slots=True)
class Report:
    """What came of a run."""

    expected: Counts
    got: Counts
    close: list[str]
    slack: "Counter[str]"
    disagreements: list[str]
    requests: int
    minutes: float
    faults: list[str] = field(default_factory=list)
    journal: Journal = field(default_factory=Journal)

    @property
    def compared(self) -> int:
        return sum(self.expected.values())

    @property
    def differences(self) -> list[str]:
        """Series that were told otherwise, beyond what decisions too close to call can explain."""
        keys = sorted(set(self.expected) | set(self.got))
        off: Counter[str] = Counter()
        for key in keys:
            off[key[0]] += abs(self.got[key] - self.expected[key])
        return [
            f"{metric} {', '.join(labels)}: told {self.got[metric, labels]}, was {self.expected[metric, labels]}"
            for metric, labels in keys
            if self.got[metric, labels] != self.expected[metric, labels]
            and off[metric] > 2 * self.slack[metric]
        ]

    def __str__(self) -> str:
        lines = [
            f"{self.minutes:.1f} minutes, {self.requests:,} requests",
            f"{len(self.expected)} series, {self.compared:,} counts compared, {len(self.differences)} series differ",
            f"{len(self.close)} decisions too close to a threshold to call",
            *self.differences,
            *self.disagreements[:20],
            *self.faults,
            *self.close[:20],
        ]
        return "\n".join(lines)


def soak(minutes: float, seed: int | str, crew: int = len(CREW), limits: Limits | None = None) -> Report:
    """Play, and compare."""
    limits = limits or Limits()
    journal, stop = Journal(), threading.Event()
    reader = InMemoryMetricReader()
    began = time.monotonic()
    server = ChaosServer(journal)
    with instrumented(reader, limits):
        _note_collections(journal)
        threads = _play(journal, server, seed, crew, stop)
        while time.monotonic() - began < minutes * 60:
            stop.wait(1.0)
            reader.get_metrics_data()
        stop.set()
        for thread in threads:
            thread.join()
        # Whoever is still awaited is given up: the longest patience, and a look.
        time.sleep(limits.give_up + 1.0)
        got, faults = told(reader.get_metrics_data())
    server.stop()
    oracle = Oracle(limits)
    return Report(
        oracle.read(journal.entries),
        got,
        oracle.close,
        oracle.slack,
        journal.disagreements(),
        len(journal.served),
        (time.monotonic() - began) / 60,
        faults,
        journal,
    )


@contextmanager
def instrumented(reader: InMemoryMetricReader, limits: Limits) -> Iterator[None]:
    """Everything in this process, told to `reader`."""
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instrumentor = HTTPXSSEInstrumentor()
    instrumentor.instrument(
        meter_provider=provider,
        tracer_provider=NoOpTracerProvider(),
        idle_threshold=limits.idle,
        quiet_threshold=limits.quiet,
        give_up_after=limits.give_up,
        submission_deadline=limits.deadline,
        liveness_key=limits.liveness_key,
    )
    try:
        yield
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def _play(
    journal: Journal, server: ChaosServer, seed: int | str, crew: int, stop: threading.Event
) -> list[threading.Thread]:
    """Sync actors in threads of their own, async ones as tasks of one loop."""
    cast = [(FAMILIES[name], sessions) for name, sessions in CREW[:crew]]
    tasks = [(n, family, sessions) for n, (family, sessions) in enumerate(cast) if family.is_async]

    def actor(n: int, family: Any, sessions: Any) -> Actor:
        wire = Wire(family, server.url, journal, n)
        return Actor(wire, server, f"{seed}/{n}", stop, with_sessions=sessions)

    async def together() -> None:
        await asyncio.gather(*(actor(*one).live() for one in tasks))

    def alone(n: int, family: Any, sessions: Any) -> None:
        family.run(actor(n, family, sessions).live)

    threads = [threading.Thread(target=asyncio.run, args=(together(),), name="tasks")] if tasks else []
    threads += [
        threading.Thread(target=alone, args=(n, family, sessions), name=f"actor {n}")
        for n, (family, sessions) in enumerate(cast)
        if not family.is_async
    ]
    for thread in threads:
        thread.start()
    return threads


def _note_collections(journal: Journal) -> None:
    """At the moment that the ledger takes for now: a whole collection takes longer than some patience is exact."""
    ledger: Any = HTTPXSSEInstrumentor._installation.observer._ledger  # type: ignore[union-attr]
    snapshot = ledger.snapshot

    def noted(*, at: float) -> Any:
        journal.write(Collected(0, at))
        return snapshot(at=at)

    ledger.snapshot = noted


def told(data: Any) -> tuple[Counts, list[str]]:
    """The counts that were exported, and what must not be."""
    counts: Counts = Counter()
    faults = []
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            value = getattr(point, "value", None)
            value = point.count if value is None else value
            labels = {k: v for k, v in (point.attributes or {}).items() if k not in SERVER}
            if metric.name == OPERATIONS:
                counts["sse.client.operations", (str(labels["mcp.method.name"]),)] += value
            elif metric.name in NOUGHT:
                faults += [f"{metric.name} {labels} = {value}"] if value else []
            elif metric.name in COUNTED:
                counts[metric.name, tuple(str(v) for v in labels.values())] += value
    return +counts, faults
