"""Whole series as a fleet of clients would export them, out of a few lines that say what happened.

A process exports every label set of `zeroed` at 0 from its start, and others from their first event on. Each
series carries the labels of the target, of the scope and of the server. A restart makes counters begin at 0
after one missed scrape; a gauge whose subject has gone ends with a staleness marker, as a scrape leaves it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards.catalogue import METRICS, Series, exported, label

from opentelemetry.instrumentation.httpx_sse import _names

JOB: Final = "agents"
SCRAPE: Final = 30.0
"""Seconds between two samples."""

MINUTE: Final = 60.0
ADDED: Final = frozenset({"sse.client.logical_streams"})
"""Gauges that count; of the others the highest is shown."""

ABSENT: Final = "_"
STALE: Final = "stale"

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Events on a counter: so many a minute from `since` to `until`, or `times` at each moment of `at`."""

    metric: str
    labels: Labels = ()
    per_minute: float = 0.0
    at: tuple[float, ...] = ()
    times: float = 1.0
    since: float = 0.0
    until: float = math.inf
    on: tuple[str, ...] = ("app-1",)
    server: int = 0

    def between(self, start: float, end: float) -> float:
        """Events after `start` up to `end`, in minutes."""
        steady = max(0.0, min(end, self.until) - max(start, self.since)) * self.per_minute
        return steady + self.times * sum(start < moment <= end for moment in self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A gauge from `since` to `until`: `value`, growing by `per_minute` up to `stands`."""

    metric: str
    labels: Labels = ()
    value: float = 0.0
    per_minute: float = 0.0
    stands: float = math.inf
    since: float = 0.0
    until: float = math.inf
    on: tuple[str, ...] = ("app-1",)
    server: int = 0

    def shown(self, minute: float) -> float | None:
        if not self.since <= minute < self.until:
            return None
        return self.value + self.per_minute * (min(minute, self.stands) - self.since)


Happening = Count | Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One client process. Moments are minutes; it is not scraped at those of `missed`."""

    name: str
    born: float = 0.0
    died: float = math.inf
    restarts: tuple[float, ...] = ()
    missed: tuple[float, ...] = ()
    version: str = "0.1.0"

    def life(self, minute: float) -> tuple[float, bool]:
        """When the process of that minute began, and whether it was scraped then."""
        began = max(moment for moment in (self.born, *self.restarts) if moment <= max(minute, self.born))
        step = SCRAPE / MINUTE
        gap = any(moment <= minute < moment + step for moment in (*self.restarts, *self.missed))
        return began, self.born <= minute < self.died and not gap


SERVERS: Final = (("mcp.example.com", "443"), ("tools.example.org", "8443"), ("_OTHER", "0"))


@dataclass(frozen=True, slots=True)
class When:
    """When and where something happens: minutes, processes, a server."""

    since: float = 0.0
    until: float = math.inf
    on: tuple[str, ...] = ("app-1",)
    server: int = 0

    def count(
        self, metric: str, *labels: str, per_minute: float = 0, at: tuple[float, ...] = (), times: float = 1
    ) -> Count:
        return Count(
            metric=metric,
            labels=labels,
            per_minute=per_minute,
            at=at,
            times=times,
            since=self.since,
            until=self.until,
            on=self.on,
            server=self.server,
        )

    def level(
        self, metric: str, *labels: str, value: float = 0, per_minute: float = 0, stands: float = math.inf
    ) -> Level:
        return Level(
            metric=metric,
            labels=labels,
            value=value,
            per_minute=per_minute,
            stands=stands,
            since=self.since,
            until=self.until,
            on=self.on,
            server=self.server,
        )


def input_series(
    processes: Sequence[Process],
    happenings: Sequence[Happening],
    minutes: float,
    metrics: Iterable[str],
    *,
    servers: int = 1,
    scrape: float = SCRAPE,
) -> list[dict[str, str]]:
    """The `input_series` of a promtool test: all series of some metrics."""
    moments = [i * scrape / MINUTE for i in range(int(minutes * MINUTE / scrape) + 1)]
    return [
        {"series": name, "values": values}
        for process in processes
        for metric in (METRICS[name] for name in metrics)
        for server in range(servers if metric.by_server else 1)
        for name, values in _series(process, metric, happenings, server, moments)
    ]


def _series(
    process: Process,
    metric: _names.Metric,
    happenings: Sequence[Happening],
    server: int,
    moments: Sequence[float],
) -> Iterator[tuple[str, str]]:
    mine = [h for h in happenings if h.metric == metric.name and process.name in h.on and h.server == server]
    counts = [h for h in mine if isinstance(h, Count)]
    levels = [h for h in mine if isinstance(h, Level)]
    unknown = {h.labels for h in mine} - set(metric.reachable or ((),))
    if unknown:
        raise ValueError(f"{metric.name} never has {unknown}")
    for labels in dict.fromkeys((*metric.zeroed, *(h.labels for h in mine))):
        if metric.instrument in ("counter", "observable_counter"):
            shown = labels in metric.zeroed
            some = [count for count in counts if count.labels == labels]
            values = [_counted(process, some, moment, shown=shown) for moment in moments]
        else:
            values = [_levelled(process, [lv for lv in levels if lv.labels == labels], m) for m in moments]
        yield _selector(process, metric, labels, server), _written(values)


def _counted(process: Process, counts: Sequence[Count], minute: float, *, shown: bool) -> float | None:
    began, scraped = process.life(minute)
    if not scraped:
        return None
    value = math.floor(sum(count.between(began, minute) for count in counts) + 1e-9)
    return value if shown or value else None


def _levelled(process: Process, levels: Sequence[Level], minute: float) -> float | None:
    began, scraped = process.life(minute)
    now = [level.shown(minute) for level in levels if level.until > began]
    values = [value for value in now if value is not None]
    if not values or not scraped:
        return None
    return sum(values) if levels[0].metric in ADDED else max(values)


def _selector(process: Process, metric: _names.Metric, labels: Labels, server: int) -> str:
    address, port = SERVERS[server]
    pairs = {
        "job": JOB,
        "instance": f"{process.name}:9464",
        "otel_scope_name": _names.SCOPE,
        "otel_scope_version": process.version,
        **({"server_address": address, "server_port": port} if metric.by_server else {}),
        **dict(zip((label(a) for a in metric.attributes), labels, strict=True)),
    }
    return exported(metric) + "{" + ",".join(f'{key}="{value}"' for key, value in pairs.items()) + "}"


def _written(values: Sequence[float | None]) -> str:
    """Samples in promtool's notation: runs are shortened, and a series that ends is marked stale."""
    words: list[str] = []
    for i, value in enumerate(values):
        ended = value is None and i > 0 and values[i - 1] is not None
        word = STALE if ended else ABSENT if value is None else f"{value:.10g}"
        words.append(word)
    return " ".join(_runs(words))


def _runs(words: Sequence[str]) -> Iterator[str]:
    start = 0
    for i in range(1, len(words) + 1):
        if i < len(words) and words[i] == words[start]:
            continue
        word, length = words[start], i - start
        shortened = length > 2 and word != STALE
        yield from [f"{word}x{length if word == ABSENT else length - 1}"] if shortened else [word] * length
        start = i


def kinds(series: Iterable[Series]) -> frozenset[str]:
    """The OpenTelemetry names of the metrics behind some series."""
    return frozenset(one.metric.name for one in series if one.metric is not None)
