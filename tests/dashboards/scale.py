"""How far the rules carry: many processes, each with several servers, one hour, in a real Prometheus.

    python -m tests.dashboards.scale --processes 200
    python -m tests.dashboards.scale --processes 2000 --interval 60 --folder /var/tmp/scale

Every process exports what the instrumentation exports for a server from the start, and moves a little of it. The
hour is written as OpenMetrics, made into blocks by `promtool tsdb create-blocks-from openmetrics`, a batch of
processes at a time, and read by a Prometheus that scrapes nothing; what the rules would have recorded in that hour is
added. Reported are the series of a process, the time of every query of both dashboards, at one moment and as the graph
of the hour, the time of every rule and of all groups, and memory; and, by scraping, what one series costs in the head
of a Prometheus.
"""

import argparse
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import promql_parser as pql
import yaml
from dashboards import endpoint, overview
from dashboards.catalogue import METRICS, exported, label
from dashboards.rules import rules
from dashboards.thresholds import Settings
from tests.dashboards import lint
from tests.dashboards.live.live import JOB
from tests.dashboards.promtool.behaviour import BUSY, polling
from tests.dashboards.promtool.series import Level, When
from tests.dashboards.recorded import record
from tests.ports import free_port

from opentelemetry.instrumentation.httpx_sse import _names

HOUR: Final = 3600
BLOCK: Final = 7200
BATCH: Final = 250
REPEATS: Final = 3
HEAD_PROCESSES: Final = 100
HEAD_SECONDS: Final = 90
HISTOGRAM: Final = {
    "sse.client.stream.duration": (("response", "complete"), ("standalone", "server_closed")),
    "sse.client.stream.silence": (("standalone", "server_closed"),),
    "sse.client.stream.time_to_first_event": (("response",), ("standalone",)),
    "sse.client.reconnect.delay": (("honored",), ("absent",)),
    "sse.client.confirmation.duration": (("implicit", "live"),),
    "mcp.client.operation.duration": (
        ("tools/call", "2025-11-25", "tcp"),
        ("tools/list", "2025-11-25", "tcp"),
    ),
    "mcp.client.session.duration": (("2025-11-25", "tcp"),),
}
"""Histograms, and the label sets that an ordinary client fills; the others appear with their first value."""


BUILT: Final = {"overview": overview.build(Settings()), "endpoint": endpoint.build(Settings())}


@dataclass(frozen=True, slots=True)
class Series:
    """One series of one server: its name, its own labels, and how it grows a minute."""

    name: str
    labels: str
    per_minute: float
    value: float = 0
    by_server: bool = True


def series_of_a_server() -> list[Series]:
    """What one process exports for one server."""
    moving = {
        (h.metric, h.labels): h for h in (*BUSY, *polling(When(), 2)) if "app-1" in h.on and h.server == 0
    }
    found: list[Series] = []
    for metric in METRICS.values():
        shown = dict.fromkeys((*metric.zeroed, *(k[1] for k in moving if k[0] == metric.name)))
        for labels in shown:
            happening = moving.get((metric.name, labels))
            rate = happening.per_minute if happening else 0.0
            value = happening.value if isinstance(happening, Level) else 0.0
            found.append(
                Series(exported(metric), _labels(metric, labels), rate, value, by_server=metric.by_server)
            )
        for labels in HISTOGRAM.get(metric.name, ()):
            found += _histogram(metric, labels)
        if metric.name in {"sse.client.oldest_request.age", "sse.client.unconfirmed_sessions"}:
            found.append(Series(exported(metric), "", 0))
    return found


def _labels(metric: _names.Metric, labels: Sequence[str]) -> str:
    pairs = zip(map(label, metric.attributes), labels, strict=True)
    return "".join(f',{key}="{value}"' for key, value in pairs)


def _histogram(metric: _names.Metric, labels: Sequence[str]) -> Iterator[Series]:
    own = _labels(metric, labels)
    bounds = [*(str(float(bound)) for bound in metric.buckets), "+Inf"]
    for i, bound in enumerate(bounds):
        yield Series(f"{exported(metric)}_bucket", f'{own},le="{bound}"', (i + 1) / len(bounds))
    yield Series(f"{exported(metric)}_sum", own, 2.5)
    yield Series(f"{exported(metric)}_count", own, 1)


def lines(processes: range, servers: int, moments: Sequence[int]) -> Iterator[str]:
    """The hour of some processes, series by series."""
    every = series_of_a_server()
    scope = f'otel_scope_name="{_names.SCOPE}",otel_scope_version="0.1.0"'
    stamps = [f" {moment}\n" for moment in moments]
    minutes = [(moment - moments[0]) / 60 for moment in moments]
    for process in processes:
        target = f'{{job="{JOB}",instance="agent-{process}:9464",{scope}'
        for server in range(servers):
            where = f',server_address="mcp-{server}.example.com",server_port="443"'
            for one in every:
                if not one.by_server and server:
                    continue
                head = f"{one.name}{target}{where if one.by_server else ''}{one.labels}}} "
                if one.per_minute:
                    phase = process % 7 / 7
                    values = [int(one.value + one.per_minute * minute + phase) for minute in minutes]
                    yield "".join(f"{head}{v}{stamp}" for v, stamp in zip(values, stamps, strict=True))
                else:
                    still = f"{head}{one.value:g}"
                    yield "".join(still + stamp for stamp in stamps)


def write_blocks(data: Path, processes: int, servers: int, moments: Sequence[int]) -> None:
    """Blocks for all processes, a batch at a time, so that no text is larger than some hundred megabytes."""
    for first in range(0, processes, BATCH):
        text = data.parent / "hour.om"
        with text.open("w", encoding="ascii", buffering=1 << 20) as file:
            file.writelines(lines(range(first, min(first + BATCH, processes)), servers, moments))
            file.write("# EOF\n")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        text.unlink()
        print(f"{min(first + BATCH, processes)} processes written", flush=True)


@contextmanager
def prometheus(home: Path, data: Path, config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """A Prometheus over some data: its URL and its process id."""
    file = home / "prometheus.yml"
    file.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.retention.time=100y",
        "--query.timeout=10m",
        "--query.max-samples=500000000",
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(home / "log").open("w"))
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=2).close()  # noqa: S310 - our own
                break
            except OSError:
                time.sleep(0.5)
        yield url, child.pid
    finally:
        child.terminate()
        child.wait()


@contextmanager
def url_of(home: Path, data: Path) -> Iterator[str]:
    """The URL of a Prometheus over some data."""
    with prometheus(home, data, {}) as (url, _):
        yield url


@dataclass(frozen=True, slots=True)
class Cost:
    """What a query returns and takes: seconds by the clock, the best of some, and of the processor, on average."""

    series: int
    clock: float
    processor: float


def at(moment: float) -> dict[str, float]:
    """One moment, as a table or a rule asks."""
    return {"time": moment}


def until(moment: float) -> dict[str, float]:
    """The hour before, as a graph of 240 points asks."""
    return {"start": moment - HOUR, "end": moment, "step": HOUR / 240}


def ask(url: str, pid: int, expr: str, when: Mapping[str, float], *, repeats: int = REPEATS) -> Cost:
    """Ask the same several times. On a busy machine the processor's time is the one to trust."""
    query = urllib.parse.urlencode({"query": expr, **when, "timeout": "10m"})
    path = "query" if "time" in when else "query_range"
    times, found, before = [], 0, processor(pid)
    for _ in range(repeats):
        began = time.perf_counter()
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=600) as answer:  # noqa: S310 - as above
            found = len(json.load(answer)["data"]["result"])
        times.append(time.perf_counter() - began)
    return Cost(found, min(times), (processor(pid) - before) / repeats)


def processor(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Resident memory of a process, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(kilobytes) / 1024


def measure_rules(home: Path, data: Path, moment: float) -> None:
    """Every rule of the group by itself, as the group would run it: one after the other."""
    with prometheus(home, data, {}) as (url, pid):
        print(f"memory before the rules: {memory(pid):.0f} MB")
        total = 0.0
        print("  clock      cpu  series")
        for group in yaml.safe_load(rules(Settings()))["groups"]:
            together = 0.0
            for rule in group["rules"]:
                cost = ask(url, pid, rule["expr"], at(moment))
                together += cost.processor
                name = rule.get("record") or rule["alert"]
                print(f"{cost.clock:7.3f}  {cost.processor:7.3f}  {cost.series:6d}  {name}", flush=True)
            seconds = pql.parse_duration(group["interval"]).total_seconds()
            total += together * Settings().interval / seconds
            print(f"         {together:7.3f}          {group['name']}, every {seconds:g} s")
        print(f"         {total:7.3f}          all groups, every {Settings().interval:g} s")
        print(f"memory after the rules: {memory(pid):.0f} MB")


def measure_dashboards(home: Path, data: Path, moment: float) -> None:
    """Every query of both dashboards, once: at one moment, and as it is asked, which is the whole hour for a graph."""
    with prometheus(home, data, {}) as (url, pid):
        for name, dashboard in BUILT.items():
            costs = []
            for panel, target in lint.targets(dashboard):
                expr = lint.fill(target["expr"], dashboard)
                now = ask(url, pid, expr, at(moment), repeats=1)
                asked = now if target["instant"] else ask(url, pid, expr, until(moment), repeats=1)
                costs.append((asked.processor, now.processor, now.series, panel["title"]))
            costs.sort(reverse=True)
            once, whole = sum(now for _, now, *_ in costs), sum(asked for asked, *_ in costs)
            print(
                f"{name}: {len(costs)} queries, {once:.1f} s of the processor at one moment, {whole:.1f} s as asked"
            )
            for asked_seconds, now_seconds, series, title in costs[:12]:
                print(f"  {asked_seconds:7.3f}  {now_seconds:7.3f}  {series:6d}  {title}", flush=True)


def measure_head(home: Path, processes: int, servers: int) -> None:
    """What a series costs while it is scraped, and what the groups take when they really run."""
    with _exporters(processes, servers) as addresses:
        (home / "rules.yml").write_text(rules(Settings()), encoding="utf-8")
        config = {
            "global": {"scrape_interval": "10s", "evaluation_interval": "10s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": JOB, "honor_labels": True, "static_configs": [{"targets": addresses}]}
            ],
        }
        with prometheus(home, home / "head", config) as (url, pid):
            time.sleep(HEAD_SECONDS)
            series = _number(url, "prometheus_tsdb_head_series")
            groups = _number(url, "prometheus_rule_group_last_duration_seconds")
            resident = memory(pid)
        print(f"head: {series:.0f} series of {processes} processes, {resident:.0f} MB resident")
        print(f"      {resident * 1024 / series:.1f} KB a series, all groups {groups:.3f} s by the clock")


def _number(url: str, name: str) -> float:
    text = urllib.request.urlopen(f"{url}/metrics", timeout=60).read().decode()  # noqa: S310 - as above
    rows = [row.split() for row in text.splitlines() if row.startswith((f"{name} ", f"{name}{{"))]
    return sum(float(row[-1]) for row in rows)


@contextmanager
def _exporters(processes: int, servers: int) -> Iterator[list[str]]:
    """One HTTP server on as many loopback addresses as there are processes."""
    began = time.time()

    class Handler(http.server.BaseHTTPRequestHandler):
        """Shows the process whose number is the last part of the address."""

        def do_GET(self) -> None:
            number = int(self.headers["Host"].partition(":")[0].rpartition(".")[2])
            minutes = [began - HOUR, time.time()]
            shown = (
                one.rpartition("\n")[0].rpartition("\n")[2]
                for one in lines(range(number, number + 1), servers, [int(m) for m in minutes])
            )
            body = "".join(f"{one.rpartition(' ')[0]}\n" for one in shown).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield [f"127.0.1.{number}:{server.server_port}" for number in range(1, processes + 1)]
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--interval", type=int, default=30, help="seconds between two samples")
    parser.add_argument("--folder", type=Path, help="keep the blocks here, and use them if they are there")
    given = parser.parse_args()
    start = int(time.time()) // BLOCK * BLOCK - BLOCK + HOUR // 2
    with tempfile.TemporaryDirectory(prefix="sse-scale-") as temporary:
        home = given.folder or Path(temporary)
        home.mkdir(parents=True, exist_ok=True)
        stamp, data = home / "start", home / "data"
        per_server = len(series_of_a_server())
        print(f"series of a process for one server: {per_server}")
        began = time.monotonic()
        if stamp.exists():
            start = int(stamp.read_text(encoding="ascii"))
        else:
            moments = range(start, start + HOUR + 1, given.interval)
            write_blocks(data, given.processes, given.servers, moments)
            print(f"blocks written in {time.monotonic() - began:.0f} s")
            stamp.write_text(str(start), encoding="ascii")
        began = time.monotonic()
        record(rules(Settings()), data, lambda folder: url_of(home, folder), start=start, end=start + HOUR)
        print(f"recordings added in {time.monotonic() - began:.0f} s")
        measure_dashboards(home, data, start + HOUR)
        measure_rules(home, data, start + HOUR)
        measure_head(home, min(given.processes, HEAD_PROCESSES), given.servers)


if __name__ == "__main__":
    main()
