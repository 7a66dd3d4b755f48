"""What a story left behind, and whether it is what the story expects.

A line of `expect` is `METRIC{attribute=value,…} = NUMBER [@ SUM]`. Attributes may be left out, but every point of
a metric that is named, if it is not 0, must be told by exactly one line. A histogram's number is its count; `SUM` is
the sum of what it recorded, and like every gauge of seconds it is compared only where time is literal.

A line of `spans` is `NAME{attribute=value,…} [ERROR] [fine] [linked] [root] [event=NAME] = NUMBER`; lines are
independent of each other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan

from opentelemetry.instrumentation.httpx_sse._names import MCP_METRICS, METRICS, SERVER

_EXPECT = re.compile(
    r"(?P<name>sse\.stream [a-z]+|[^{= ]+)(?:\{(?P<where>.*)\})?(?P<flags>(?: [^ =]+(?:=[^ ]+)?)*)"
    r" = (?P<number>[\d.]+)(?: @ (?P<sum>[\d.]+))?"
)


@dataclass(frozen=True)
class Point:
    """One series at one collection."""

    metric: str
    attributes: Mapping[str, Any]
    value: float
    sum: float

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of the metric's own attributes, in the order of the catalogue."""
        return tuple(str(self.attributes[key]) for key in METRICS[self.metric].attributes)


@dataclass(frozen=True)
class Expectation:
    """One line, read."""

    line: str
    name: str
    where: Mapping[str, str]
    flags: tuple[str, ...]
    number: float
    sum: float | None

    def fits(self, attributes: Mapping[str, Any]) -> bool:
        return all(str(attributes.get(key)) == value for key, value in self.where.items())


def expectation(line: str) -> Expectation:
    match = _EXPECT.fullmatch(line)
    if match is None:
        raise ValueError(f"no expectation: {line}")
    pairs = [pair.partition("=") for pair in (match["where"] or "").split(",") if pair]
    return Expectation(
        line,
        match["name"],
        {key.strip(): value for key, _, value in pairs},
        tuple(match["flags"].split()),
        float(match["number"]),
        float(match["sum"]) if match["sum"] else None,
    )


def points_of(reader: InMemoryMetricReader) -> list[Point]:
    """All points of one collection."""
    data = reader.get_metrics_data()
    found: list[Point] = []
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    value = getattr(point, "value", None)
                    count = getattr(point, "count", 0) if value is None else value
                    total = getattr(point, "sum", count)
                    found.append(Point(metric.name, dict(point.attributes or {}), count, total))
    return found


def wrong_points(lines: Iterable[str], points: Sequence[Point], *, literal: bool) -> list[str]:
    """What is not as expected; `literal` when the story's seconds were seconds."""
    expected = [expectation(line) for line in lines]
    faults = []
    for name in dict.fromkeys(one.name for one in expected):
        metric = METRICS.get(name) or MCP_METRICS.get(name)
        if metric is None:
            faults.append(f"{name} is no metric")
            continue
        wanted = [one for one in expected if one.name == name]
        left = [point for point in points if point.metric == name and point.value]
        for one in wanted:
            if unknown := set(one.where) - {*metric.attributes, *metric.optional, *SERVER}:
                faults.append(f"{name} has no {unknown}")
            fitting = [point for point in left if one.fits(point.attributes)]
            left = [point for point in left if point not in fitting]
            got = sum(point.value for point in fitting)
            is_time = metric.unit == "s" and metric.instrument == "observable_gauge"
            if not _close(got, one.number) and (literal or not is_time or not got):
                faults.append(f"{one.line}: got {got}")
            total = sum(point.sum for point in fitting)
            if literal and one.sum is not None and not _close(total, one.sum):
                faults.append(f"{one.line}: got a sum of {total}")
        faults += [f"{name} also has {dict(point.attributes)} = {point.value}" for point in left]
    return faults


def wrong_spans(lines: Iterable[str], spans: Sequence[ReadableSpan]) -> list[str]:
    """What is not as expected of finished spans."""
    faults = []
    for one in map(expectation, lines):
        got = [span for span in spans if span.name == one.name and one.fits(span.attributes or {})]
        got = [span for span in got if all(_has(span, flag) for flag in one.flags)]
        if len(got) != one.number:
            shown = [(span.name, dict(span.attributes or {})) for span in spans]
            faults.append(f"{one.line}: got {len(got)} of {shown}")
    return faults


def _has(span: ReadableSpan, flag: str) -> bool:
    if flag == "ERROR":
        return span.status.status_code.name == "ERROR"
    if flag == "fine":
        return span.status.status_code.name != "ERROR"
    if flag == "linked":
        return bool(span.links)
    if flag == "root":
        return span.parent is None
    return any(event.name == flag.removeprefix("event=") for event in span.events)


def _close(got: float, wanted: float) -> bool:
    return abs(got - wanted) < 1e-6


def unlawful(points: Iterable[Point]) -> list[str]:
    """Points that no story may leave behind: label sets or key sets that the catalogue does not have."""
    faults = []
    for point in points:
        metric = METRICS.get(point.metric)
        if metric is None:
            continue
        keys = {*metric.attributes, *(SERVER if metric.by_server else ())}
        if set(point.attributes) != keys:
            faults.append(f"{point.metric} has the keys {sorted(point.attributes)}")
        elif point.labels not in metric.reachable:
            faults.append(f"{point.metric}{point.labels} = {point.value} is not reachable")
        elif point.metric == "sse.client.instrumentation.errors" and point.value:
            faults.append(f"an error of ours: {point.labels}")
    return faults
