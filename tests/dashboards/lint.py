"""What Grafana's own dashboard linter asks, and what the catalogue asks, of a dashboard.

Each rule is a function from a dashboard to its findings; `RULES` has them by the name that the linter gives them.
The linter is written in Go and in no package index, so its seventeen rules are written again here. One is kept
otherwise on purpose, see `template_instance`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeGuard

import promql_parser as promql
from dashboards.catalogue import (
    CLOSED,
    EVERY_METRIC,
    FOREIGN,
    OVERFLOW_LABEL,
    SERIES,
    TARGET_LABELS,
    Series,
)
from dashboards.details import recordings
from dashboards.recordings import Recordings
from dashboards.thresholds import Settings

Json = Mapping[str, Any]
Rule = Callable[[Json], Iterator[str]]

MACROS: Final = {"__rate_interval": "5m", "__range": "1h", "__interval": "30s"}
QUERIED: Final = ("stat", "timeseries", "table", "gauge", "heatmap")
VISIBLE: Final = (*QUERIED, "text")
# Units that panels here may have, all of them in the linter's list.
BOOK: Final = Recordings(Settings())
RECORDED: Final = {row.name: frozenset(row.labels) for row in (*BOOK.rows.values(), *recordings(BOOK))}
"""The labels of every recording."""
UNITS: Final = frozenset({"none", "short", "s", "percentunit", "dateTimeFromNow"})
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_INTERVAL: Final = timedelta(minutes=5)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)(?::\w+)?\}?")


def all_panels(dashboard: Json) -> Iterator[Json]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def targets(dashboard: Json) -> Iterator[tuple[Json, Json]]:
    for panel in all_panels(dashboard):
        for target in panel.get("targets", ()):
            yield panel, target


def variables(dashboard: Json) -> dict[str, Json]:
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


def fill(expression: str, dashboard: Json, values: Mapping[str, str] = MACROS) -> str:
    """An expression as Grafana sends it when every variable stands on All; a name that it has not is an error."""
    chosen = {
        name: variable["allValue"]
        for name, variable in variables(dashboard).items()
        if "allValue" in variable
    } | dict(values)
    return _VARIABLE.sub(lambda found: chosen[found[1]], expression)


def parsed(expression: str) -> promql.Expr:
    """Macros that stand for a duration are filled in; variables stay, for they stand in strings."""
    return promql.parse(_VARIABLE.sub(lambda found: MACROS.get(found[1], found[0]), expression))


# ------------------------------------------------------------------ walking


def nodes(expression: promql.Expr) -> Iterator[tuple[promql.Expr, tuple[promql.Expr, ...]]]:
    """Every node with those above it."""

    def walk(node: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        yield node, above
        for child in _children(node):
            yield from walk(child, (*above, node))

    return walk(expression, ())


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, promql.Call):
        yield from node.args
    for name in ("lhs", "rhs", "expr", "param", "vector_selector", "vs"):
        child = getattr(node, name, None)
        if isinstance(child, promql.Expr):
            yield child


# ------------------------------------------------------------------ rules on the whole


def template_datasource(dashboard: Json) -> Iterator[str]:
    variable = variables(dashboard).get("datasource", {})
    wanted = {"type": "datasource", "query": "prometheus", "label": "Data source"}
    yield from _differences("datasource", variable, wanted)


def template_job(dashboard: Json) -> Iterator[str]:
    wanted = {"type": "query", "label": "Job", "multi": True, "allValue": ".+", "datasource": _DATASOURCE}
    yield from _differences("job", variables(dashboard).get("job", {}), wanted)


def template_instance(dashboard: Json) -> Iterator[str]:
    """The linter wants `.+`. Over OTLP a series need not have an `instance`: `.+` would hide all such users."""
    wanted = {
        "type": "query",
        "label": "Instance",
        "multi": True,
        "allValue": ".*",
        "datasource": _DATASOURCE,
    }
    yield from _differences("instance", variables(dashboard).get("instance", {}), wanted)


def template_label_promql(dashboard: Json) -> Iterator[str]:
    for name, variable in variables(dashboard).items():
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            if not found:
                yield f"${name} is no label_values"
            else:
                yield from _errors(found[1]) or known(parsed(found[1]), f"${name}")


def template_on_time_change_reload(dashboard: Json) -> Iterator[str]:
    for name, variable in variables(dashboard).items():
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"${name} does not follow the time range"


def uneditable_dashboard(dashboard: Json) -> Iterator[str]:
    if dashboard["editable"] is not False:
        yield "the dashboard can be edited"


def _differences(name: str, variable: Json, wanted: Json) -> Iterator[str]:
    for key, value in wanted.items():
        if variable.get(key) != value:
            yield f"${name} has {key}={variable.get(key)!r}, not {value!r}"


# ------------------------------------------------------------------ rules on panels


def panel_datasource(dashboard: Json) -> Iterator[str]:
    for panel in all_panels(dashboard):
        if panel["type"] in QUERIED and panel.get("datasource") != _DATASOURCE:
            yield f"{panel['title']}: another data source"


def panel_title_description(dashboard: Json) -> Iterator[str]:
    for panel in all_panels(dashboard):
        if panel["type"] in VISIBLE and not (panel.get("title") and panel.get("description")):
            yield f"{panel.get('title')}: no title or no description"


def panel_units(dashboard: Json) -> Iterator[str]:
    for panel in all_panels(dashboard):
        if panel["type"] in QUERIED and panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield f"{panel['title']}: unit {panel['fieldConfig']['defaults'].get('unit')!r}"


def panel_no_targets(dashboard: Json) -> Iterator[str]:
    for panel in all_panels(dashboard):
        if panel["type"] in QUERIED and not panel.get("targets"):
            yield f"{panel['title']}: asks nothing"


# ------------------------------------------------------------------ rules on targets


def target_logql(dashboard: Json) -> Iterator[str]:
    """Nothing here asks Loki."""
    for panel, target in targets(dashboard):
        if target["datasource"] != _DATASOURCE:
            yield f"{panel['title']}: asks {target['datasource']}"


def target_promql(dashboard: Json) -> Iterator[str]:
    for panel, target in targets(dashboard):
        yield from (f"{panel['title']}: {error}" for error in _errors(target["expr"]))


def target_rate_interval(dashboard: Json) -> Iterator[str]:
    """`rate` over the interval that Grafana works out, or over a window of the alert that the panel shows."""
    windows = alert_windows()
    for panel, target in targets(dashboard):
        for call in (node for node, _ in nodes(parsed(target["expr"])) if isinstance(node, promql.Call)):
            if call.func.name in {"rate", "irate"} and _range(call) not in {_INTERVAL, *windows}:
                yield f"{panel['title']}: {call.prettify()}"


def target_job(dashboard: Json) -> Iterator[str]:
    yield from _required(dashboard, "job", {"$job"})


def target_instance(dashboard: Json) -> Iterator[str]:
    """`$instance|` is for what alerts and recordings leave without an instance."""
    yield from _required(dashboard, "instance", {"$instance", "$instance|"})


def target_counter_agg(dashboard: Json) -> Iterator[str]:
    for panel, target in targets(dashboard):
        for selector, above in nodes(parsed(target["expr"])):
            if not isinstance(selector, promql.VectorSelector):
                continue
            function = above[-2].func.name if len(above) > 1 and isinstance(above[-2], promql.Call) else None
            counts = kind_of(selector) in {"counter", "bucket"}
            if counts != (function in {"rate", "irate", "increase"}):
                yield f"{panel['title']}: {selector.name} in {function}"


def _errors(expression: str) -> list[str]:
    try:
        parsed(expression)
    except ValueError as error:
        return [str(error)]
    return []


def _range(call: promql.Call) -> timedelta | None:
    return getattr(call.args[0], "range", None)


def _required(dashboard: Json, label: str, values: set[str]) -> Iterator[str]:
    for panel, target in targets(dashboard):
        for selector in selectors(parsed(target["expr"])):
            matchers = [m for m in selector.matchers.matchers if m.name == label]
            if not any(m.op == promql.MatchOp.Re and m.value in values for m in matchers):
                yield f"{panel['title']}: {selector.prettify()} without {label}"


RULES: Final[Mapping[str, Rule]] = {
    "template-datasource-rule": template_datasource,
    "template-job-rule": template_job,
    "template-instance-rule": template_instance,
    "template-label-promql-rule": template_label_promql,
    "template-on-time-change-reload-rule": template_on_time_change_reload,
    "panel-datasource-rule": panel_datasource,
    "panel-title-description-rule": panel_title_description,
    "panel-units-rule": panel_units,
    "panel-no-targets-rule": panel_no_targets,
    "target-logql-rule": target_logql,
    "target-logql-auto-rule": target_logql,
    "target-promql-rule": target_promql,
    "target-rate-interval-rule": target_rate_interval,
    "target-job-rule": target_job,
    "target-instance-rule": target_instance,
    "target-counter-agg-rule": target_counter_agg,
    "uneditable-dashboard": uneditable_dashboard,
}


# ------------------------------------------------------------------ the catalogue


def selectors(expression: promql.Expr) -> list[promql.VectorSelector]:
    return [node for node, _ in nodes(expression) if isinstance(node, promql.VectorSelector)]


def kind_of(selector: promql.VectorSelector) -> str | None:
    series = SERIES.get(selector.name or "")
    return series.kind if series else None


def known(expression: promql.Expr, where: str) -> Iterator[str]:
    """Only names, labels and label values of the catalogue, or of what Prometheus itself makes."""
    for selector in selectors(expression):
        labels = labels_of(selector)
        if labels is None:
            yield f"{where}: no series {selector.prettify()}"
            continue
        series = SERIES.get(selector.name or "") or FOREIGN.get(selector.name or "")
        for matcher in selector.matchers.matchers:
            if matcher.name not in labels:
                yield f"{where}: {selector.name} has no label {matcher.name}"
            for value in _unknown_values(series, matcher):
                yield f"{where}: {matcher.name} of {selector.name} is never {value}"


def labels_of(selector: promql.VectorSelector) -> frozenset[str] | None:
    """The labels that a selector can have; None if there is no such series."""
    name = selector.name or ""
    if not name:
        pattern = [matcher.value for matcher in selector.matchers.matchers if matcher.name == "__name__"]
        every = {"__name__", OVERFLOW_LABEL, *TARGET_LABELS}
        return frozenset(every) if pattern == [EVERY_METRIC] else None
    if name in RECORDED:
        return RECORDED[name] | set(TARGET_LABELS)
    series = SERIES.get(name) or FOREIGN.get(name.removesuffix("_FOR_STATE"))
    return series.labels | set(TARGET_LABELS) if series else None


def _unknown_values(series: Series | None, matcher: promql.Matcher) -> list[str]:
    values = (series.values if series else CLOSED).get(matcher.name)
    if values is None:
        return []
    given = matcher.value.split("|")
    if matcher.name == "le":
        bounds = {float(value) for value in values}
        return [value for value in given if float(value) not in bounds]
    return [value for value in given if value not in values]


def kept(expression: promql.Expr) -> set[str]:
    """Labels that aggregations keep or `label_replace` makes."""
    labels = set()
    for node, _ in nodes(expression):
        if isinstance(node, promql.AggregateExpr) and node.modifier:
            labels |= set(node.modifier.labels)
        if isinstance(node, promql.Call) and node.func.name == "label_replace":
            labels.add(node.args[1].val)
    return labels


def keeps(node: Any) -> TypeGuard[promql.AggregateExpr]:
    """Whether only the labels that it names come through. `topk` lets all of them through."""
    return isinstance(node, promql.AggregateExpr) and str(node.op) not in {"topk", "bottomk"}


def renames(node: Any) -> TypeGuard[promql.Call]:
    return isinstance(node, promql.Call) and node.func.name == "label_replace"


def unaggregated(expression: promql.Expr) -> Iterator[str]:
    """Selectors that keep the labels of the scope, which change with a release."""
    for node, above in nodes(expression):
        if isinstance(node, promql.VectorSelector):
            over = [up for up in above if keeps(up)]
            if not over or any(str(up.modifier).startswith("without") for up in over):
                yield node.prettify()


def alert_windows() -> set[timedelta]:
    """Every window of every alert."""
    table = Settings().table.values()
    return {
        timedelta(seconds=number.value)
        for row in table
        for number in row.numbers.values()
        if number.unit == "window"
    }
