"""Bounds: far more sessions, streams and servers than the tables hold, through an instrumented client.

    python -m tests.trust.bounds                          # 100,000 sessions, 100,000 streams, 20,000 servers
    python -m tests.trust.bounds --share 0.05             # a part of each

Each *walk* is one client that calls, is cut off, resumes and goes on. What the telemetry has to say of it follows
from its number alone, so what is counted is compared with what was played, exactly.
"""

import argparse
import gc
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._ledger._tables import LIMITS, PLACE_STREAMS

MIB: Final = 1024 * 1024
SESSIONS: Final = 100_000
STREAMS: Final = 100_000
SERVERS: Final = 20_000

WINDOW: Final = 200
"""Walks that are under way at once where they are woven together; fewer than any table holds."""
ASKED: Final = 1_000
"""Of walks that were all left in the middle, so many of the newest come back, and of the oldest."""
SCRAPE: Final = 1_000
"""Walks between two collections."""
WARM: Final = 0.5
"""The part of the walks after which memory has to be flat; it fills every table."""

STREAM: Final = {"content-type": "text/event-stream"}
HEADERS: Final = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
NOTE: Final = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}'
QUESTION: Final = '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}'

Counts = Counter[tuple[str, tuple[str, ...]]]


# ------------------------------------------------------------------ what is played


class Walk(NamedTuple):
    """One client's way. Its number decides everything that happens on it."""

    number: int
    host: str = "server.test"
    has_session: bool = True

    @property
    def progresses(self) -> bool:
        """Its resume brings the answer; else it brings nothing."""
        return self.number % 2 == 0

    @property
    def asks(self) -> bool:
        """The server has a question for the user, and asks it again in the replay."""
        return self.number % 3 == 0

    @property
    def dies(self) -> bool:
        """The session is gone when the client goes on."""
        return self.has_session and self.number % 10 == 0

    @property
    def session(self) -> dict[str, str]:
        return {"Mcp-Session-Id": f"session-{self.number}"} if self.has_session else {}

    @property
    def cursor(self) -> str:
        return f"{self.number}-1"


def answer(request: httpx.Request) -> httpx.Response:
    """The server of every walk."""
    walk = Walk(int(request.headers["x-walk"]), has_session="mcp-session-id" in request.headers)
    if request.method == "GET":
        return httpx.Response(200, headers=STREAM, text=_replay(walk))
    method = json.loads(request.content)["method"]
    if method == "tools/call":
        first = f"id: {walk.cursor}\ndata: {QUESTION if walk.asks else NOTE}\n\n"
        return httpx.Response(200, headers=STREAM, stream=_Pieces(first.encode(), b": nothing more\n\n"))
    if method == "tools/list" and walk.dies:
        return httpx.Response(404, json={"error": "session not found"})
    given = {"Mcp-Session-Id": f"session-{walk.number}"} if method == "initialize" else {}
    return httpx.Response(200, headers=given, json={"jsonrpc": "2.0", "id": 0, "result": {}})


def _replay(walk: Walk) -> str:
    if not walk.progresses:
        return ""
    again = f"id: {walk.cursor}\ndata: {QUESTION}\n\n" if walk.asks else ""
    return f'{again}id: {walk.number}-2\ndata: {{"jsonrpc":"2.0","id":{walk.number},"result":{{}}}}\n\n'


class _Pieces(httpx.SyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces


class Host:
    """The program that walks: one client, and the responses that are open."""

    def __init__(self) -> None:
        self.client = httpx.Client(transport=httpx.MockTransport(answer), trust_env=False)
        HTTPXSSEInstrumentor.instrument_client(self.client)
        self._open: dict[int, tuple[httpx.Response, Iterator[bytes]]] = {}

    def _post(self, walk: Walk, method: str, *, stream: bool = False) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": walk.number, "method": method, "params": {}}
        own = {**HEADERS, "x-walk": str(walk.number), **walk.session}
        if method == "initialize":
            own.pop("Mcp-Session-Id")
        request = self.client.build_request("POST", f"http://{walk.host}/mcp", headers=own, json=body)
        return self.client.send(request, stream=stream)

    def begin(self, walk: Walk) -> None:
        if walk.has_session:
            self._post(walk, "initialize")

    def call(self, walk: Walk) -> None:
        response = self._post(walk, "tools/call", stream=True)
        self._open[walk.number] = response, response.iter_raw()

    def read(self, walk: Walk) -> None:
        next(self._open[walk.number][1])

    def end(self, walk: Walk) -> None:
        """The server ends the stream before the answer."""
        response, pieces = self._open.pop(walk.number)
        for _ in pieces:
            pass
        response.close()

    def resume(self, walk: Walk) -> None:
        own = {**HEADERS, "x-walk": str(walk.number), "Last-Event-ID": walk.cursor, **walk.session}
        self.client.get(f"http://{walk.host}/mcp", headers=own)

    def go_on(self, walk: Walk) -> None:
        if walk.has_session:
            self._post(walk, "tools/list")


STAGES: Final[tuple[Callable[[Host, Walk], None], ...]] = (
    Host.begin,
    Host.call,
    Host.read,
    Host.end,
    Host.resume,
    Host.go_on,
)
CUT: Final = STAGES.index(Host.end) + 1
"""The stages of a walk until it is cut off."""


# ------------------------------------------------------------------ what has to be told

TOLD: Final = (
    "sse.client.reconnects",
    "sse.client.reconnect.outcomes",
    "sse.client.empty_replays",
    "sse.client.server_requests",
    "sse.client.reprompts",
    "sse.client.probes",
    "sse.client.sessions_lost",
    "sse.client.requests_lost",
    "sse.client.instrumentation.errors",
)
"""The counters that are compared."""


def expected(walks: Iterable[Walk]) -> Counts:
    """What is told of walks that were known to their end."""
    found: Counts = Counter()
    for walk in walks:
        found["sse.client.reconnects", ("response", "server_close", "sent")] += 1
        outcome = ("progressed", "continue") if walk.progresses else ("empty", "ambiguous")
        found["sse.client.reconnect.outcomes", ("response", *outcome)] += 1
        if not walk.progresses:
            found["sse.client.empty_replays", ("response", "in_flight")] += 1
        if walk.asks:
            found["sse.client.server_requests", ("elicitation/create", "first", "live")] += 1
        if walk.asks and walk.progresses:
            found["sse.client.server_requests", ("elicitation/create", "redelivered", "unverified")] += 1
            found["sse.client.reprompts", ("elicitation/create", "replay", "unverified")] += 1
        if walk.has_session:
            found["sse.client.probes", ("implicit", "dead" if walk.dies else "live", "after_replay")] += 1
        if walk.dies:
            found["sse.client.sessions_lost", ("after_replay", "http_404")] += 1
    return found


class Ticks:
    """A clock that goes on by itself, so that no pause of the machine is taken for silence."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        self.at += 0.0001
        return self.at


class Books:
    """The telemetry of one installation, and what is wrong with it."""

    def __init__(self, server_limit: int = 16) -> None:
        self.reader = InMemoryMetricReader()
        self._provider = MeterProvider([self.reader], shutdown_on_exit=False)
        HTTPXSSEInstrumentor().instrument(
            meter_provider=self._provider, tracer_provider=TracerProvider(), server_limit=server_limit
        )
        installation: Any = HTTPXSSEInstrumentor._installation
        installation.observer.clock = Ticks()

    def points(self) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """Every point that is exported now: metric, attributes, point."""
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        yield metric.name, dict(point.attributes or {}), point

    def counts(self) -> Counts:
        """The compared counters by their own labels, all servers together."""
        found: Counts = Counter()
        for name, attributes, point in self.points():
            if name in TOLD:
                labels = tuple(v for k, v in attributes.items() if not k.startswith("server."))
                found[name, labels] += int(point.value)
        return +found

    def evictions(self) -> dict[str, int]:
        """Entries that had to go, by table."""
        return {
            str(attributes["sse.instrumentation.table"]): int(point.value)
            for name, attributes, point in self.points()
            if name == "sse.client.instrumentation.evictions"
        }

    def series(self) -> Counter[str]:
        """Series of each instrument."""
        return Counter(name for name, _, _ in self.points())

    def overflows(self) -> int:
        """Series that the SDK made because there were too many."""
        return sum("otel.metric.overflow" in attributes for _, attributes, _ in self.points())

    def close(self) -> None:
        HTTPXSSEInstrumentor().uninstrument()
        self._provider.shutdown()


@contextmanager
def books(server_limit: int = 16) -> Iterator[Books]:
    """An installation of its own."""
    made = Books(server_limit)
    try:
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------ how walks are mixed


def apart(host: Host, walks: Sequence[Walk]) -> None:
    """One after the other."""
    for walk in walks:
        for stage in STAGES:
            stage(host, walk)


def woven(host: Host, walks: Sequence[Walk]) -> None:
    """A window of them at once, stage by stage."""
    for at in range(0, len(walks), WINDOW):
        for stage in STAGES:
            for walk in walks[at : at + WINDOW]:
                stage(host, walk)


MIXES: Final[dict[str, Callable[[Host, Sequence[Walk]], None]]] = {"apart": apart, "woven": woven}

KINDS: Final[dict[str, tuple[int, Callable[[int], Walk]]]] = {
    "sessions": (SESSIONS, Walk),
    "streams": (STREAMS, lambda n: Walk(n, has_session=False)),
    "servers": (SERVERS, lambda n: Walk(n, host=f"server-{n}.test")),
}
"""What there is many of."""
LEFT: Final = "left"


@dataclass
class Report:
    """What a run has shown. Sizes in bytes, of the resident set."""

    name: str
    walks: int
    seconds: float
    differences: dict[str, tuple[int, int]]
    """Of each counter that is wrong: told, and played."""
    overflows: int
    most_series: int
    """Series of the instrument that has most."""
    evictions: dict[str, int]
    growth: int
    """From before the first walk to after the last."""
    growth_warm: int
    """From when every table was full."""

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.walks:,} walks in {self.seconds:.0f} s, {len(self.differences)} counts wrong, "
            f"{self.overflows} overflows, {self.most_series} series at most; resident set +{self.growth / MIB:.1f} "
            f"MiB in all, {self.growth_warm / MIB:+.1f} MiB when warm; evicted {self.evictions}"
        )


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def differences(told: Counts, played: Counts) -> dict[str, tuple[int, int]]:
    """Where two books differ."""
    return {
        f"{name} {' '.join(labels)}": (told[name, labels], played[name, labels])
        for name, labels in sorted({*told, *played})
        if told[name, labels] != played[name, labels]
    }


def shared(host: Host, walk: Callable[[int], Walk], told: Books) -> Counts:
    """What all share is made by the first few, code, instruments and named servers; what is told of those."""
    apart(host, [walk(-n) for n in range(1, WINDOW)])
    return told.counts()


def run(kind: str, mix: str, share: float = 1.0) -> Report:
    """So many walks of one kind, mixed so."""
    most, walk = KINDS[kind]
    numbers = range(int(most * share))
    with books() as told:
        host = Host()
        settled = shared(host, walk, told)
        sizes, began = [resident()], time.monotonic()
        warm = int(len(numbers) * WARM)
        played: Counts = Counter()
        for part in (numbers[:warm], numbers[warm:]):
            for at in range(0, len(part), SCRAPE):
                walks = [walk(n) for n in part[at : at + SCRAPE]]
                MIXES[mix](host, walks)
                played += expected(walks)
                told.reader.collect()
                told.reader.get_metrics_data()
            sizes.append(resident())
        return Report(
            f"{kind} {mix}",
            len(numbers),
            time.monotonic() - began,
            differences(told.counts() - settled, played),
            told.overflows(),
            max(told.series().values()),
            {table: count for table, count in told.evictions().items() if count},
            sizes[-1] - sizes[0],
            sizes[-1] - sizes[1],
        )


def left(kind: str, share: float = 1.0) -> Report:
    """All are cut off before the first comes back: of the newest everything is known, of the oldest nothing."""
    most, walk = KINDS[kind]
    walks = [walk(n) for n in range(int(most * share))]
    held = LIMITS["sessions"] if walks[0].has_session else PLACE_STREAMS
    newest, oldest = walks[-min(ASKED, held) :], walks[:-held][:ASKED]
    with books() as told:
        host, began = Host(), time.monotonic()
        shared(host, walk, told)
        size = resident()
        for each in walks:
            for stage in STAGES[:CUT]:
                stage(host, each)
        warm = resident()
        before = told.counts()
        for each in newest:
            for stage in STAGES[CUT:]:
                stage(host, each)
        known = told.counts()
        for each in oldest:
            host.resume(each)
        after = resident()
        first = ("sse.client.server_requests", ("elicitation/create", "first", "live"))
        of_newest = expected(newest)
        of_newest.pop(first)
        wrong = differences(known - before, of_newest) | differences(told.counts() - known, strangers(oldest))
        return Report(
            f"{kind} left",
            len(walks),
            time.monotonic() - began,
            wrong,
            told.overflows(),
            max(told.series().values()),
            {table: count for table, count in told.evictions().items() if count},
            after - size,
            after - warm,
        )


def strangers(walks: Iterable[Walk]) -> Counts:
    """What is told when walks that are not known any more are resumed: that nothing is known of them."""
    found: Counts = Counter()
    for walk in walks:
        found["sse.client.reconnects", ("standalone", "unknown", "foreign")] += 1
        outcome = ("progressed", "continue") if walk.progresses else ("empty", "ambiguous")
        found["sse.client.reconnect.outcomes", ("standalone", *outcome)] += 1
        if not walk.progresses:
            found["sse.client.empty_replays", ("standalone", "none")] += 1
        if walk.asks and walk.progresses:
            found["sse.client.server_requests", ("elicitation/create", "first", "live")] += 1
    return found


GROWTH: Final = 40 * MIB
"""What everything may cost together, with every table full."""
GROWTH_WARM: Final = 8 * MIB
"""What the allocator may still move about when every table was full before."""


def measured(kind: str, mix: str, share: float = 1.0) -> Report:
    """A run in a process of its own, whose memory nobody has used before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(left, (kind, share)) if mix == LEFT else pool.apply(run, (kind, mix, share))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.bounds", description="More than is held.")
    parser.add_argument("--share", type=float, default=1.0, help="the part of all walks that is played")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--mix", choices=[*MIXES, LEFT], action="append")
    asked = parser.parse_args(arguments)
    is_sound = True
    for kind in asked.kind or KINDS:
        for mix in asked.mix or [*MIXES, LEFT]:
            report = measured(kind, mix, asked.share)
            print(report, flush=True)
            for what, (told, played) in report.differences.items():
                print(f"  {what}: told {told}, played {played}")
            is_flat = report.growth < GROWTH and report.growth_warm < GROWTH_WARM
            is_sound = is_sound and is_flat and not report.differences and not report.overflows
    return 0 if is_sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
