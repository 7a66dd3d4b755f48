"""What the rules must look like, checked on their syntax trees: names, groupings, divisions, texts."""

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import promql_parser as pql
import pytest
import yaml
from dashboards.alerts import Alert, absent_alerts, alerts
from dashboards.catalogue import SERIES
from dashboards.details import GROUP
from dashboards.export import dashboards
from dashboards.recordings import PROCESS, SERVER, Recordings
from dashboards.rules import absent_rules, rules
from dashboards.thresholds import TABLE, Settings, duration
from tests.dashboards import lint
from tests.dashboards.promtool.expressions import Recorded, matches, nodes, parse, problems, selectors
from tests.dashboards.promtool.runner import rules_of
from tests.dashboards.promtool.scenario import ABOUT

SETTINGS = Settings()
RULES = [*rules_of(rules(SETTINGS)), *rules_of(absent_rules(SETTINGS))]
RECORDING = [rule for rule in RULES if "record" in rule]
ALERTING = [rule for rule in RULES if "alert" in rule]
INLINE = (*alerts(SETTINGS, Recordings(SETTINGS, inline=True)), *absent_alerts(SETTINGS))
RECORDED = {name: Recorded(name, labels) for name, labels in lint.RECORDED.items()}
SCRAPE = timedelta(seconds=30)
CHANGING = {"topk", "bottomk"}
"""Aggregations whose members come and go: an alert on them is another alert every time."""


def named(rule: dict[str, Any] | Alert) -> str:
    """A rule's name for a test's id."""
    return rule.name if isinstance(rule, Alert) else str(rule.get("record") or rule["alert"])


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_only_what_exists(rule: dict[str, Any]) -> None:
    """A rule names no series, label, value or grouping that the catalogue does not have, nor a bare counter."""
    assert problems(rule["expr"], RECORDED) == []


@pytest.mark.parametrize("alert", INLINE, ids=named)
def test_only_what_exists_written_out(alert: Alert) -> None:
    """The same holds for Grafana's alerts, where recordings are written out."""
    assert problems(alert.expr) == []


def test_recordings_have_conventional_names() -> None:
    """A recorded name is level:metric:operation, its level says what is kept, its window stands in the name."""
    for rule in RECORDING:
        level, metric, operation = rule["record"].split(":")
        ranges = {duration(r.total_seconds()) for r in _ranges(rule["expr"])}
        kept = RECORDED[rule["record"]].labels

        assert level == ("job_instance_server" if "instance" in kept else "job_server")
        assert kept >= {*SERVER}
        assert metric.startswith(("sse_client_", "mcp_client_"))
        assert not metric.endswith("_total")
        assert re.fullmatch(r"sum|(rate|increase)\d+[smh]", operation)
        assert ranges <= {operation.lstrip("abcdefghijklmnopqrstuvwxyz")}


def test_recordings_come_before_their_use() -> None:
    """In its group a series is recorded before a rule reads it, so both are of the same moment."""
    for group in yaml.safe_load(rules(SETTINGS))["groups"]:
        known: set[str] = set()
        for rule in group["rules"]:
            names = {selector.name for selector in selectors(parse(rule["expr"])) if selector.name}

            assert {name for name in names if ":" in name} <= known
            known.add(rule.get("record", ""))


def test_a_group_for_each_alert() -> None:
    """Every alert has a group of its own, panels have one together, and nothing is recorded twice."""
    names = [group["name"] for group in yaml.safe_load(rules(SETTINGS))["groups"]]

    assert names == [*(f"sse-client {alert}" for alert in TABLE if alert != "SSETelemetryAbsent"), GROUP]
    assert len({rule["record"] for rule in RECORDING}) == len(RECORDING)


def test_every_recording_is_read() -> None:
    """No series is recorded for nothing: a rule or a panel reads it."""
    asked = "".join(dashboards(SETTINGS).values())
    read = {selector.name for rule in RULES for selector in selectors(parse(rule["expr"]))}
    read |= {rule["record"] for rule in RECORDING if f"{rule['record']}{{" in asked}

    assert {rule["record"] for rule in RECORDING} <= read


@pytest.mark.parametrize("rule", ALERTING, ids=named)
def test_an_alert_compares_or_misses(rule: dict[str, Any]) -> None:
    """An alert's expression is a comparison on each side of its operators, or `absent`."""
    for branch in _branches(parse(rule["expr"])):
        compares = isinstance(branch, pql.BinaryExpr) and str(branch.op) in {">", ">=", "<", "<="}

        assert (
            compares or (isinstance(branch, pql.Call) and branch.func.name == "absent") or _aggregates(branch)
        )


@pytest.mark.parametrize("rule", ALERTING, ids=named)
def test_labels_are_the_severity(rule: dict[str, Any]) -> None:
    """No label but the severity, and the job where there is an alert for each; neither depends on a value."""
    own = {"job"} if rule["alert"] == "SSETelemetryAbsent" else set()

    assert set(rule["labels"]) == {"severity", *own}
    assert "{{" not in "".join(rule["labels"].values())
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


@pytest.mark.parametrize("rule", ALERTING, ids=named)
def test_texts(rule: dict[str, Any]) -> None:
    """Annotations are there, are sentences, name what the alert is about, and format what they show."""
    texts = rule["annotations"]
    placed = set(re.findall(r"\.Labels\.(\w+)", texts["description"]))

    assert set(texts) == {"summary", "description", "runbook_url", "dashboard"}
    assert "$" not in "".join(texts.values())
    assert "{{" not in texts["summary"]
    assert texts["summary"].endswith(".")
    assert re.search(r"\. First: [a-z].+\.$", texts["description"])
    assert placed == set(ABOUT[rule["alert"]])
    assert not re.search(r"\{\{ \.Value", texts["description"])
    assert texts["runbook_url"] == f"{SETTINGS.grafana}/d/sse-client-{rule['alert']}"
    assert texts["dashboard"].startswith(f"{SETTINGS.grafana}/d/sse-client-")


@pytest.mark.parametrize("rule", ALERTING, ids=named)
def test_an_alert_keeps_what_it_is_about(rule: dict[str, Any]) -> None:
    """The labels that are left on an alert are exactly those that its page is about, on every branch."""
    about = set(ABOUT[rule["alert"]])
    for branch in _branches(parse(rule["expr"])):
        kept = _kept(branch)

        assert kept is None or kept == about


@pytest.mark.parametrize("rule", ALERTING, ids=named)
def test_nothing_flaps(rule: dict[str, Any]) -> None:
    """No `topk`; what divides or misses holds for at least two scrapes; a window spans at least four."""
    tree = parse(rule["expr"])
    aggregations = {str(node.op) for node in nodes(tree) if isinstance(node, pql.AggregateExpr)}
    divides = any(isinstance(node, pql.BinaryExpr) and str(node.op) == "/" for node in nodes(tree))
    misses = any(isinstance(node, pql.Call) and node.func.name == "absent" for node in nodes(tree))
    hold = pql.parse_duration(rule.get("for", "0s")) if "for" in rule else timedelta(0)

    assert not aggregations & CHANGING
    assert not (divides or misses) or hold >= 2 * SCRAPE
    assert all(window >= 4 * SCRAPE for window in _ranges(rule["expr"]))


def test_nothing_is_divided_by_zero() -> None:
    """Whatever is divided by is kept from 0, and both sides are aggregated first."""
    for rule in RULES:
        for node in nodes(parse(rule["expr"])):
            if isinstance(node, pql.BinaryExpr) and str(node.op) == "/":
                assert isinstance(node.rhs, pql.Call)
                assert node.rhs.func.name == "clamp_min"
                assert all(":" in (s.name or "") for s in [*selectors(node.lhs), *selectors(node.rhs)])


UNZEROED = {
    ("SSEReconnectStorm", "sse_client_reconnects_total"): (
        "legacy and other streams: a storm is 3 a minute for minutes, so a series is there after its first 20 s; "
        "the alert is that much later, never missed"
    ),
    ("SSEEmptyReplayLoop", "sse_client_reconnect_outcomes_total"): (
        "listen, legacy and other streams, in the divisor: too high a share if many processes live for one good "
        "reconnect only; in one that goes on, one outcome of twenty"
    ),
    ("SSEAnswersRejected", "sse_client_answers_total"): (
        "roots/list and other requests that are no prompts: the first refused answer of each process is missed, so "
        "three processes with one each are; one that goes on is seen"
    ),
    ("SSERequestsLost", "sse_client_events_total"): (
        "responses, in the divisor: too high a share if processes live for one call only; in one that goes on, one "
        "answer of a hundred"
    ),
}
"""Label sets that an alert reads and that appear with their first event, whose first step increase() misses."""


@pytest.mark.parametrize("alert", INLINE, ids=named)
def test_alerts_read_series_that_begin_at_zero(alert: Alert) -> None:
    """What an alert counts is exported as 0 before it happens, or the table above says why a step may be missed."""
    for selector in selectors(parse(alert.expr)):
        series = SERIES.get(selector.name or "")
        if series is None or series.kind == "gauge":
            continue
        own = [
            (i, m) for i, key in enumerate(series.own) for m in selector.matchers.matchers if m.name == key
        ]
        read = {c for c in series.combinations if all(matches(m, c[i]) for i, m in own)}

        assert read <= series.zeroed or (alert.name, series.name) in UNZEROED


def test_unzeroed_is_current() -> None:
    """Every row of that table is about a series that its alert reads and that is not zeroed whole."""
    for name, series in UNZEROED:
        expr = next(alert.expr for alert in INLINE if alert.name == name)

        assert series in expr
        assert SERIES[series].zeroed != SERIES[series].combinations


def test_every_alert_of_the_table() -> None:
    """There is a rule for each row of the table of thresholds, and no other."""
    assert {rule["alert"] for rule in ALERTING} == set(TABLE)


def test_windows_and_holds_are_over_in_time() -> None:
    """Window, keep_firing_for and the two minutes for which a gauge remembers make 15 minutes at most."""
    for alert, row in TABLE.items():
        ends = (
            min(row[key] for key in ("short", "long", "window", "bridge") if key in row.numbers)
            if set(row.numbers) & {"short", "window", "bridge"}
            else 0
        )
        remembered = 120 if alert in {"SSEStreamStuck", "SSERepromptLoop", "SSERequestNotRecovering"} else 0

        assert ends + row["keep"] + remembered <= 14 * 60


def test_order_of_thresholds() -> None:
    """A short window is shorter than its long one."""
    for row in TABLE.values():
        pair = [row[key] for key in ("short", "long") if key in row.numbers]

        assert all(short < long for short, long in pairwise(pair))


def _ranges(expr: str) -> list[timedelta]:
    return [node.range for node in nodes(parse(expr)) if isinstance(node, pql.MatrixSelector)]


def _branches(tree: Any) -> Iterator[Any]:
    """What `and`, `or` and `unless` join."""
    if isinstance(tree, pql.ParenExpr):
        yield from _branches(tree.expr)
    elif isinstance(tree, pql.BinaryExpr) and str(tree.op) in {"and", "or", "unless"}:
        yield from _branches(tree.lhs)
        yield from _branches(tree.rhs)
    else:
        yield tree


def _aggregates(tree: Any) -> bool:
    """An aggregation of comparisons, such as `max by (server) (a > 1 unless b > 0)`."""
    return isinstance(tree, pql.AggregateExpr) and all(
        isinstance(branch, pql.BinaryExpr) for branch in _branches(tree.expr)
    )


def _kept(tree: Any) -> set[str] | None:
    """The labels that a branch leaves on its result; nothing if it only has those of a recorded series."""
    if isinstance(tree, pql.BinaryExpr):
        sides = [kept for side in (tree.lhs, tree.rhs) if (kept := _kept(side)) is not None]
        return sides[0] if sides else None
    if isinstance(tree, pql.AggregateExpr):
        return set(tree.modifier.labels) if tree.modifier else set()
    if isinstance(tree, pql.VectorSelector) and ":" in (tree.name or ""):
        return set(RECORDED[tree.name or ""].labels)
    if isinstance(tree, pql.Call) and tree.func.name == "absent":
        return {m.name for m in tree.args[0].matchers.matchers if m.op == pql.MatchOp.Equal}
    return _kept(tree.expr) if isinstance(tree, pql.ParenExpr) else None


assert set(PROCESS) > set(SERVER)
