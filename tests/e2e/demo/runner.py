"""Put one unmodified client through one fault and compare what its metrics said with the table."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

from tests.e2e.demo.scenarios import FEATURES, Row, Scenario
from tests.e2e.environments import CHECKOUT, python_of
from tests.ports import free_port

SERVER_ENVIRONMENT = "mcp2"
STARTING_SECONDS = 30.0
WORKERS = 5
Case = tuple[Scenario, str]
Key = tuple[str, str, bool]
"""A fault, a client, and whether it has the guard."""
Scrape = Sequence[tuple[str, Mapping[str, str], float]]


class DemoError(RuntimeError):
    """A process of the demo did not do its part; the message ends with what it had to say."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the table, and the highest value that was seen."""

    row: Row
    highest: float

    @property
    def holds(self) -> bool:
        return self.row.holds(self.highest)

    def __str__(self) -> str:
        return f"{self.row} {self.row.comparison} {self.row.value:g}, but was {self.highest:g}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one client under one fault."""

    scenario: Scenario
    client: str
    diary: Mapping[str, Any]
    wire: Mapping[str, int]
    driven: tuple[Finding, ...]
    expected: tuple[Finding, ...]
    absent: tuple[Finding, ...]
    series: Sequence[Scrape]
    seconds: float
    noise: str

    @property
    def scrapes(self) -> int:
        return len(self.series)

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(found for found in (*self.driven, *self.expected, *self.absent) if not found.holds)

    def judged(self, rows: Sequence[Row], wire: Sequence[Row] = ()) -> tuple[Finding, ...]:
        """Rows of another table, held against what was scraped and what passed on the wire."""
        return (
            *(Finding(row, highest(row, self.series)) for row in rows),
            *(Finding(row, self.wire.get(row.name, 0)) for row in wire),
        )


class Children:
    """The processes of a demo. `close` ends all of them, and none is started once that has begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._living: set[subprocess.Popen[str]] = set()

    @contextmanager
    def running(
        self, command: Sequence[str], environment: Mapping[str, str], log: IO[str]
    ) -> Iterator[subprocess.Popen[str]]:
        """A child process for the length of a block. Its standard error goes to the log."""
        with self._lock:
            if self._closed:
                raise DemoError("the demo is being ended")
            child = subprocess.Popen(
                command,
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # an interrupt from the terminal is for us; we end them
            )
            self._living.add(child)
        try:
            yield child
        finally:
            with self._lock:
                self._living.discard(child)
            _end(child)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            living = tuple(self._living)
        for child in living:
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def run(scenario: Scenario, client: str, children: Children, features: Collection[str] = FEATURES) -> Outcome:
    """Run one client against one fault for the scenario's time, and judge what was scraped meanwhile."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        try:
            diary, wire, scrapes = _play(scenario, client, children, log)
        except (DemoError, ValueError, OSError) as error:
            raise DemoError(f"{scenario.fault}, {client}: {error}\n{_tail(log)}") from error
        noise = _tail(log)

    def judge(rows: Sequence[Row]) -> tuple[Finding, ...]:
        return tuple(Finding(row, highest(row, scrapes)) for row in rows if row.feature in features)

    return Outcome(
        scenario,
        client,
        diary,
        wire,
        driven=tuple(Finding(row, wire.get(row.name, 0)) for row in scenario.wire),
        expected=judge(scenario.expected),
        absent=judge(scenario.absent),
        series=scrapes,
        seconds=time.monotonic() - began,
        noise=noise,
    )


@contextmanager
def at_work(
    cases: Iterable[Case], features: Collection[str] = FEATURES, workers: int = WORKERS
) -> Iterator[dict[Key, Future[Outcome]]]:
    """Runs by fault, client and guard, several at a time: they mostly wait. What still runs at the end is ended."""
    with closing(Children()) as children, ThreadPoolExecutor(workers) as pool:
        try:
            yield {
                (scenario.fault, client, scenario.guard): pool.submit(
                    run, scenario, client, children, features
                )
                for scenario, client in cases
            }
        finally:
            children.close()
            pool.shutdown(cancel_futures=True)


def highest(row: Row, scrapes: Sequence[Scrape]) -> float:
    """The highest sum of a row's series in any scrape; not a number when nothing was ever scraped."""
    sums = (
        sum(
            value
            for name, labels, value in scrape
            if name == row.name and row.labels.items() <= labels.items()
        )
        for scrape in scrapes
    )
    return max(sums, default=math.nan)


def _play(
    scenario: Scenario, client: str, children: Children, log: IO[str]
) -> tuple[dict[str, Any], dict[str, int], list[Scrape]]:
    """Start the server, the client and the one that scrapes it; what each of them tells in the end."""
    port = str(free_port())
    plain = _environment()
    metered = {
        **plain,
        "OTEL_METRICS_EXPORTER": "prometheus",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": port,
        **scenario.environment,
    }
    python = python_of(client)
    instrument = str(python.with_name("opentelemetry-instrument"))
    module = [str(python), "-m"]
    serve = [str(python_of(SERVER_ENVIRONMENT)), "-m", "tests.e2e.demo.server", "--fault", scenario.fault]
    watch = [*module, "tests.e2e.demo.watch", f"http://127.0.0.1:{port}/metrics"]
    work = [instrument, *module, f"tests.e2e.demo.client_{client}", "--tool", scenario.tool]
    work += ["--seconds", str(scenario.seconds), *scenario.arguments]
    with children.running(serve, plain, log) as server:
        url = json.loads(_first_line(server))["url"]
        with (
            children.running(watch, plain, log) as watcher,
            children.running([*work, url], metered, log) as worker,
        ):
            diary = _last_words(worker, scenario.seconds + STARTING_SECONDS)
            scrapes = _last_words(watcher, STARTING_SECONDS)
        wire = _last_words(server, STARTING_SECONDS)
    return diary, wire, scrapes


def _first_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def _last_words(child: subprocess.Popen[str], seconds: float) -> Any:
    """Close a child's standard input, wait until it ends and read its last line, which is JSON."""
    try:
        printed, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise DemoError(f"process {child.args!r} did not end within {seconds:g} s") from None
    return json.loads(printed.rpartition("\n")[0].rpartition("\n")[2])


def _environment() -> dict[str, str]:
    """Ours without what would reach into a child: other telemetry settings, other Pythons, proxies."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OTEL_", "PYTHON")) and not key.lower().endswith("_proxy")
    }


def _tail(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-2000:]
