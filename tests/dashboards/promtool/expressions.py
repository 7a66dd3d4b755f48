"""What can be said of a PromQL expression without running it: which names, labels and values it uses.

`problems()` is the strictest check there is on a query: whatever it selects must exist in the catalogue.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import promql_parser as pql
from dashboards.catalogue import (
    EVERY_METRIC,
    FOREIGN,
    OVERFLOW_LABEL,
    SCOPE_LABELS,
    SERIES,
    TARGET_LABELS,
    Series,
)

COUNTER_FUNCTIONS: Final = frozenset({"rate", "increase", "irate", "resets"})
EXISTENCE: Final = frozenset({"absent", "timestamp", "count", "group"})
VARIABLE: Final = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")
MACROS: Final = {
    "__rate_interval": "5m",
    "__interval": "1m",
    "__range": "1h",
    "__range_s": "3600",
    "__range_ms": "3600000",
    "__interval_ms": "60000",
}
"""Grafana's own variables, filled in so that the expression parses."""

AnyExpr = Any


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded series, and the labels that it keeps."""

    name: str
    labels: frozenset[str]


def fill(expr: str, variables: Mapping[str, str] | None = None) -> str:
    """An expression with Grafana's variables filled in; those that are not given become `.+`."""
    known = {**MACROS, **(variables or {})}
    return VARIABLE.sub(lambda match: known.get(match[1], ".+"), expr)


def parse(expr: str) -> AnyExpr:
    return pql.parse(fill(expr))


def nodes(expr: AnyExpr) -> Iterator[AnyExpr]:
    """Every node, depth first; the selector inside a range selector too."""
    found: list[AnyExpr] = []
    pql.walk(expr, found.append)
    return iter(found)


def selectors(expr: AnyExpr) -> list[pql.VectorSelector]:
    return [node for node in nodes(expr) if isinstance(node, pql.VectorSelector)]


def selected(expr: str) -> frozenset[str]:
    """The names of all series that an expression selects."""
    return frozenset(name for selector in selectors(parse(expr)) if (name := selector.name))


def problems(expr: str, recorded: Mapping[str, Recorded] | None = None) -> list[str]:
    """Why an expression cannot be right: what it names does not exist, or a counter has no rate."""
    try:
        tree = parse(expr)
    except ValueError as error:
        return [f"does not parse: {error}"]
    found = [problem for selector in selectors(tree) for problem in _selector(selector, recorded or {})]
    found += _bare_counters(tree)
    found += _groupings(tree, recorded or {})
    return found


def _selector(selector: pql.VectorSelector, recorded: Mapping[str, Recorded]) -> Iterator[str]:
    name = selector.name
    matchers = {matcher.name: matcher for matcher in selector.matchers.matchers}
    if name is None:
        pattern = matchers.pop("__name__", None)
        if pattern is None or str(pattern) != f'__name__=~"{EVERY_METRIC}"':
            yield f"selects by a name that is not {EVERY_METRIC!r}"
        unknown = set(matchers) - {OVERFLOW_LABEL, *TARGET_LABELS}
        yield from (f"label {key} on every metric" for key in sorted(unknown))
        return
    series = SERIES.get(name) or FOREIGN.get(name)
    if series is None and name not in recorded:
        yield f"no series is called {name}"
        return
    labels = series.labels if series else recorded[name].labels
    for key, matcher in matchers.items():
        if key not in labels | {*TARGET_LABELS}:
            yield f"{name} has no label {key}"
        elif series is not None:
            yield from _values(series, key, matcher)
    if series is not None:
        yield from _combination(series, matchers)


def _values(series: Series, key: str, matcher: pql.Matcher) -> Iterator[str]:
    known = series.values.get(key)
    if known is None or ".+" in matcher.value or ".*" in matcher.value:
        return
    regex = matcher.op in (pql.MatchOp.Re, pql.MatchOp.NotRe)
    for value in matcher.value.split("|") if regex else [matcher.value]:
        if value not in known:
            yield f"{key} of {series.name} is never {value!r}"


def _combination(series: Series, matchers: Mapping[str, pql.Matcher]) -> Iterator[str]:
    """A selector that no label set of the metric can satisfy."""
    own = [(i, matchers[key]) for i, key in enumerate(series.own) if key in matchers]
    reachable = any(all(matches(m, c[i]) for i, m in own) for c in series.combinations)
    if series.combinations and own and not reachable:
        yield f"no series of {series.name} has {', '.join(str(m) for _, m in own)}"


def matches(matcher: pql.Matcher, value: str) -> bool:
    """Whether a label's value satisfies a matcher."""
    equal = matcher.op in (pql.MatchOp.Equal, pql.MatchOp.Re)
    regex = matcher.op in (pql.MatchOp.Re, pql.MatchOp.NotRe)
    return equal == (bool(re.fullmatch(matcher.value, value)) if regex else matcher.value == value)


def _bare_counters(tree: AnyExpr) -> Iterator[str]:
    """Counters and buckets mean nothing but by their rate; a gauge has none."""
    ranged = Counter(n.vector_selector.name for n in nodes(tree) if isinstance(n, pql.MatrixSelector))
    ranged += Counter(name for node in nodes(tree) if (name := _only_there(node)))
    for name, count in Counter(selector.name for selector in selectors(tree)).items():
        series = SERIES.get(name or "")
        if series and series.kind != "gauge" and count > ranged[name]:
            yield f"{name} is used without a rate"
    for node in nodes(tree):
        if isinstance(node, pql.Call):
            ranges = [a for a in node.args if isinstance(a, pql.MatrixSelector)]
            for argument in ranges:
                yield from _function(node.func.name, argument.vector_selector.name)


def _only_there(node: AnyExpr) -> str | None:
    """The counter of which a node asks only whether it is there, such as `absent(x)` or `count by (job) (x)`."""
    inner = None
    if isinstance(node, pql.Call) and node.func.name in EXISTENCE:
        inner = node.args[0]
    if isinstance(node, pql.AggregateExpr) and str(node.op) in EXISTENCE:
        inner = node.expr
    return inner.name if isinstance(inner, pql.VectorSelector) else None


def _function(function: str, name: str | None) -> Iterator[str]:
    series = SERIES.get(name or "")
    if series is None:
        return
    if series.kind == "gauge" and function in COUNTER_FUNCTIONS:
        yield f"{function} of the gauge {name}"
    if series.kind != "gauge" and function not in COUNTER_FUNCTIONS | {"changes", "count_over_time"}:
        yield f"{function} of the counter {name}"


def _groupings(tree: AnyExpr, recorded: Mapping[str, Recorded]) -> Iterator[str]:
    """An aggregation keeps labels by name, and what it keeps exists on what it aggregates."""
    for node in nodes(tree):
        if not isinstance(node, pql.AggregateExpr):
            continue
        if node.modifier is None:
            continue
        if node.modifier.type != pql.AggModifierType.By:
            yield f"aggregates without({', '.join(node.modifier.labels)}): name what is kept"
            continue
        for selector in selectors(node.expr):
            series = SERIES.get(selector.name or "") or FOREIGN.get(selector.name or "")
            rec = recorded.get(selector.name or "")
            labels = series.labels if series else rec.labels if rec else None
            if labels is None:
                continue
            for key in set(node.modifier.labels) - labels - {*TARGET_LABELS}:
                yield f"keeps {key}, which {selector.name} does not have"
            for key in set(node.modifier.labels) & {*SCOPE_LABELS}:
                yield f"keeps {key}, which changes with a release"


def windows(tree: AnyExpr) -> list[timedelta]:
    """The range of every range selector."""
    return [node.range for node in nodes(tree) if isinstance(node, pql.MatrixSelector)]
