"""The two dashboards: what they ask, what they draw, and that the linter would let them pass."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from dashboards import colours, endpoint, export, overview, queries, tiles
from dashboards.catalogue import METRICS, SERIES, name_of
from dashboards.endpoint_sessions import ADVICE
from dashboards.frame import TITLES
from dashboards.thresholds import ENDPOINT_UID, OVERVIEW_UID, RUNBOOK_UID, TABLE, Settings
from tests.dashboards import lint
from tests.dashboards.tsc import check

from opentelemetry.instrumentation.httpx_sse import _names

DASHBOARDS = Path(export.__file__).parent
BUILT = {OVERVIEW_UID: overview.build(Settings()), ENDPOINT_UID: endpoint.build(Settings())}
TARGETS = [
    pytest.param(panel, target, id=f"{uid}-{panel['id']}{target['refId']}")
    for uid, dashboard in BUILT.items()
    for panel, target in lint.targets(dashboard)
]


def panels(*kinds: str) -> list[Any]:
    return [
        pytest.param(panel, id=f"{uid}-{panel['id']}")
        for uid, dashboard in BUILT.items()
        for panel in lint.all_panels(dashboard)
        if panel["type"] in kinds
    ]


PANELS = panels("stat", "timeseries", "table")
both = pytest.mark.parametrize("dashboard", BUILT.values(), ids=BUILT)

Dashboard = dict[str, Any]


def first(dashboard: Dashboard, kind: str) -> Dashboard:
    found: Dashboard = next(panel for panel in dashboard["panels"] if panel["type"] == kind)
    return found


def variable(dashboard: Dashboard, name: str) -> Dashboard:
    found: Dashboard = next(v for v in dashboard["templating"]["list"] if v["name"] == name)
    return found


# ------------------------------------------------------------------ output


def test_the_committed_output_is_current() -> None:
    """Whoever changes a generator, a name or a number commits what comes of it: `python -m dashboards`."""
    assert export.outdated(DASHBOARDS, Settings()) == []


def test_both_dashboards_can_be_loaded_by_grafana_12_and_later() -> None:
    """They are classic dashboards with identifiers that do not change and are short enough."""
    for uid, dashboard in BUILT.items():
        assert dashboard["uid"] == uid
        assert len(uid) <= 40
        assert dashboard["title"] == TITLES[uid]
        assert dashboard["schemaVersion"] in {41, 42}


# ------------------------------------------------------------------ linter


@both
@pytest.mark.parametrize("rule", lint.RULES.values(), ids=lint.RULES)
def test_the_linter_finds_nothing(dashboard: Dashboard, rule: lint.Rule) -> None:
    """Every rule of Grafana's dashboard linter holds, with no exclusion."""
    assert list(rule(dashboard)) == []


DEFECTS: Mapping[str, Callable[[Dashboard], object]] = {
    "template-datasource-rule": lambda d: variable(d, "datasource").update(query="loki"),
    "template-job-rule": lambda d: variable(d, "job").update(multi=False),
    "template-instance-rule": lambda d: variable(d, "instance").update(allValue=".+"),
    "template-label-promql-rule": lambda d: variable(d, "server")["query"].update(
        query="label_values(up{, job)"
    ),
    "template-on-time-change-reload-rule": lambda d: variable(d, "job").update(refresh=1),
    "panel-datasource-rule": lambda d: first(d, "stat").update(datasource={"uid": "mine"}),
    "panel-title-description-rule": lambda d: first(d, "timeseries").update(description=""),
    "panel-units-rule": lambda d: first(d, "table")["fieldConfig"]["defaults"].pop("unit"),
    "panel-no-targets-rule": lambda d: first(d, "stat").update(targets=[]),
    "target-logql-rule": lambda d: first(d, "stat")["targets"][0].update(datasource={"type": "loki"}),
    "target-logql-auto-rule": lambda d: first(d, "stat")["targets"][0].update(datasource={"type": "loki"}),
    "target-promql-rule": lambda d: ask(d, "sum(rate("),
    "target-rate-interval-rule": lambda d: ask(d, "sum(rate(sse_client_reconnects_total[7m]))"),
    "target-job-rule": lambda d: ask(d, 'sum(sse_client_stalled_streak{instance=~"$instance"})'),
    "target-instance-rule": lambda d: ask(d, 'sum(sse_client_stalled_streak{job=~"$job"})'),
    "target-counter-agg-rule": lambda d: ask(d, "sum(sse_client_reconnects_total)"),
    "uneditable-dashboard": lambda d: d.update(editable=True),
}


def ask(dashboard: Dashboard, expression: str) -> None:
    first(dashboard, "stat")["targets"][0]["expr"] = expression


@pytest.mark.parametrize("rule", lint.RULES)
def test_the_linter_finds_a_defect(rule: str) -> None:
    """Each rule notices what it is there for."""
    broken = copy.deepcopy(BUILT[OVERVIEW_UID])
    DEFECTS[rule](broken)

    assert list(lint.RULES[rule](broken))


@pytest.mark.e2e
@pytest.mark.skipif(not check.available(), reason="npm is not installed")
def test_the_types_that_grafana_publishes_accept_all_and_no_defect() -> None:
    """Every option is one that the plugin of its panel has; a misspelt or impossible one is found."""
    pages = {
        Path(path).stem: json.loads(text)
        for path, text in export.files(Settings()).items()
        if path.startswith("grafana/runbooks/")
    }
    defects: dict[str, Callable[[Dashboard], object]] = {
        "no_such_mode": lambda d: first(d, "timeseries")["options"]["tooltip"].update(mode="all"),
        "no_such_option": lambda d: first(d, "stat")["options"].update(grafMode="area"),
        "misspelt": lambda d: first(d, "timeseries")["fieldConfig"]["defaults"]["custom"].update(lineWidht=2),
        "missing": lambda d: first(d, "timeseries")["options"]["legend"].pop("calcs"),
        "override": lambda d: first(d, "table")["fieldConfig"]["overrides"][0]["properties"].append(
            {"id": "custom.width", "value": "wide"}
        ),
        "target": lambda d: first(d, "table")["targets"][0].update(exemplars=True),
        "variable": lambda d: variable(d, "job").update(refresh=7),
        "dashboard": lambda d: d.update(timzone="utc"),
    }
    broken = {name: copy.deepcopy(BUILT[OVERVIEW_UID]) for name in defects}
    for name, defect in defects.items():
        defect(broken[name])

    broken["page"] = copy.deepcopy(pages["SSEStreamStuck"])
    broken["page"]["panels"][0]["options"].update(mode="markup")
    whole = {"overview": BUILT[OVERVIEW_UID], "endpoint": BUILT[ENDPOINT_UID], **pages}

    found = check.findings({**whole, **broken})

    assert set(found) == set(broken), found


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_a_query_uses_what_the_catalogue_has(panel: Dashboard, target: Dashboard) -> None:
    """It parses, and its names, labels and label values are those of this package."""
    assert list(lint.known(lint.parsed(target["expr"]), panel["title"])) == []


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_a_query_aggregates_the_labels_of_the_scope_away(panel: Dashboard, target: Dashboard) -> None:
    """A release changes those labels; a line must not break when it does."""
    assert list(lint.unaggregated(lint.parsed(target["expr"]))) == []


@pytest.mark.parametrize(("panel", "target"), TARGETS)
def test_a_legend_names_labels_that_are_kept(panel: Dashboard, target: Dashboard) -> None:
    """What stands in a legend or in a link of a line is in the answer."""
    links = json.dumps(panel["fieldConfig"]["defaults"].get("links", []))
    named = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) | set(
        re.findall(r"__field\.labels\.(\w+)", links)
    )

    assert named <= lint.kept(lint.parsed(target["expr"]))


@pytest.mark.parametrize("panel", panels("table"))
def test_a_column_shows_what_a_query_answers(panel: Dashboard) -> None:
    """A table has no label that it does not show, and shows none that is not there."""
    several = len(panel["targets"]) > 1
    answered = {"Time"} | {f"Value #{t['refId']}" if several else "Value" for t in panel["targets"]}
    for target in panel["targets"]:
        answered |= outermost(target["expr"])
    organize = panel["transformations"][-1]["options"]

    assert {*organize["renameByName"], "Time"} == answered
    assert {override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]} == set(
        organize["renameByName"].values()
    )
    assert {sort["displayName"] for sort in panel["options"]["sortBy"]} <= set(
        organize["renameByName"].values()
    )


def outermost(expression: str) -> set[str]:
    """The labels of an answer: those of the aggregations that no other aggregation is around."""
    labels = set()
    for node, above in lint.nodes(lint.parsed(expression)):
        if lint.keeps(node) and node.modifier and not any(lint.keeps(up) for up in above):
            labels |= set(node.modifier.labels)
        if lint.renames(node) and not any(lint.keeps(up) for up in above):
            labels.add(node.args[1].val)
    return labels


UNSEEN = {
    "sse.client.active_streams": "the open part of sse.client.logical_streams",
    "mcp.client.session.duration": "a standard metric that says nothing of recovery",
}


def test_every_metric_is_on_a_panel() -> None:
    """Nothing is exported for nobody."""
    asked = {
        selector.name
        for dashboard in BUILT.values()
        for _, target in lint.targets(dashboard)
        for selector in lint.selectors(lint.parsed(target["expr"]))
    }
    shown = {series.metric.name for name, series in SERIES.items() if series.metric and name in asked}

    assert set(METRICS) - shown == set(UNSEEN)


def test_idle_limits_stand_between_bounds_of_the_histogram() -> None:
    """A limit that is no bound of a bucket would find nothing, for ever."""
    bounds = SERIES[name_of("sse.client.stream.silence", "_bucket")].values["le"]
    for band in (queries.SOON, *queries.LIMITS):
        assert f"{float(band.below)}" in bounds
        assert f"{float(band.above)}" in bounds | {"0.0"}
        assert float(band.above) < float(re.findall(r"\d+", band.name)[0]) <= float(band.below)


# ------------------------------------------------------------------ drawing


@both
def test_ids_and_places_are_unique(dashboard: Dashboard) -> None:
    """Links and alerts name a panel by its id; no panel lies over another or beyond the edge."""
    everything = list(lint.all_panels(dashboard))
    ids = [panel["id"] for panel in everything]
    cells = [cell for panel in everything for cell in covered(panel["gridPos"])]

    assert len(ids) == len(set(ids))
    assert len(cells) == len(set(cells))
    assert all(x < 24 for x, _ in cells)
    for panel in everything:
        refs = [target["refId"] for target in panel.get("targets", ())]
        assert len(refs) == len(set(refs))


def covered(place: Mapping[str, int]) -> list[tuple[int, int]]:
    xs = range(place["x"], place["x"] + place["w"])
    ys = range(place["y"], place["y"] + place["h"])
    return list(itertools.product(xs, ys))


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_is_normal_and_what_to_do(panel: Dashboard) -> None:
    """Whoever is woken has never seen it before."""
    assert re.fullmatch(r"[^*]+\n\n\*\*Normal:\*\* [^*]+\n\n\*\*Otherwise:\*\* [^*]+", panel["description"])
    assert panel["fieldConfig"]["defaults"]["noValue"]


def test_the_overview_answers_in_order() -> None:
    """From whether anything is wrong to whether the telemetry itself can be trusted."""
    rows = [panel["title"] for panel in BUILT[OVERVIEW_UID]["panels"] if panel["type"] == "row"]

    assert [re.findall(r"\w+", row.lower())[:3] for row in rows] == [
        ["is", "anything", "wrong"],
        ["streams", "and", "their"],
        ["reconnects"],
        ["what", "reconnects", "brought"],
        ["sessions", "and", "requests"],
        ["prompts", "and", "answers"],
        ["terminal", "or", "retryable"],
        ["silence", "before", "a"],
        ["servers", "worst", "first"],
        ["health", "of", "the"],
    ]


def test_every_coloured_value_exists_and_every_shown_value_has_a_colour() -> None:
    """A legend never falls back to a colour that would mean something else."""
    closed: dict[str, set[str]] = defaultdict(set)
    for series in SERIES.values():
        for label, values in series.values.items():
            closed[label] |= values
    closed["fault"] = set(queries.FAULTS)
    closed["sse_failure_point"] = set(get_args(_names.RetryPoint))
    closed["limit"] = {band.name for band in (*queries.LIMITS, queries.SOON, queries.BETWEEN)}

    for label, colour_of in colours.COLOURS.items():
        assert set(colour_of) == closed[label], label


def test_a_colour_has_one_meaning() -> None:
    """No shade belongs to two of the five meanings."""
    meanings = (
        colours.HEALTHY,
        colours.WAITING,
        colours.NOTHING_NEW,
        {*colours.RETRYABLE, *colours.IDLE},
        colours.TERMINAL,
        {colours.IDENTITY},
    )

    assert sum(len(set(shades)) for shades in meanings) == len(set(itertools.chain(*meanings)))


@pytest.mark.parametrize("panel", PANELS)
def test_a_legend_of_values_is_coloured(panel: Dashboard) -> None:
    """Where a line is named by a closed set, its last value decides the colour."""
    for target in panel["targets"]:
        labels = re.findall(r"{{(\w+)}}", target["legendFormat"])
        if panel["type"] == "timeseries" and labels and labels[-1] in colours.COLOURS:
            value = next(iter(colours.COLOURS[labels[-1]]))
            patterns = [o["matcher"]["options"] for o in panel["fieldConfig"]["overrides"]]
            assert f"/(^|· ){value}$/" in patterns


def test_advice_is_given_for_every_reason() -> None:
    """The table of failures tells what to do for each."""
    assert set(ADVICE) == set(get_args(_names.FailureReason))


# ------------------------------------------------------------------ alerts


def steps(panel: Dashboard) -> set[float]:
    found = json.dumps(panel["fieldConfig"])
    return {float(value) for value in re.findall(r'"value": ([\d.]+)}', found)}


@pytest.mark.parametrize("build", [overview, endpoint], ids=["overview", "endpoint"])
def test_the_number_of_an_alert_is_drawn_where_it_is_seen(build: Any) -> None:
    """The line on a panel moves with the number of the alert, and its panel links to the runbook."""
    places = build.panels_of_alerts(Settings())
    shown = {panel["id"]: panel for panel in build.build(Settings())["panels"]}

    for alert, number in places.items():
        drawn = steps(shown[number])
        assert drawn & {n.value or 0.5 for n in TABLE[alert].numbers.values() if n.unit != "window"}
        if shown[number]["type"] == "timeseries":
            assert f"/d/{RUNBOOK_UID}{alert}" in json.dumps(shown[number]["links"])


def test_every_alert_has_its_place_on_the_overview() -> None:
    """All but the one on missing telemetry, which has nothing to draw."""
    assert set(overview.panels_of_alerts(Settings())) == set(TABLE) - {"SSETelemetryAbsent"}


def test_another_threshold_moves_the_line() -> None:
    """Who exports with a number of his own sees that number."""
    settings = Settings().override(["SSEStreamStuck.streak=23", "SSEReconnectStorm.rate=7"])
    places = overview.panels_of_alerts(settings)
    shown = {panel["id"]: panel for panel in overview.build(settings)["panels"]}

    assert 23 in steps(shown[places["SSEStreamStuck"]])
    assert 7 in steps(shown[places["SSEReconnectStorm"]])


def test_the_colour_of_a_limit_is_the_severity_of_its_alert() -> None:
    """Red pages, amber waits for the morning; a severity of one's own is followed."""
    milder = Settings().override(["SSEStreamStuck.severity=warning"])
    for settings, colour in ((Settings(), colours.TERMINAL[0]), (milder, colours.RETRYABLE[0])):
        stuck = tiles.tiles(settings)[1].json
        assert stuck["title"] == "Stuck streak"
        assert stuck["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["color"] == colour


# ------------------------------------------------------------------ links


def test_links_lead_to_dashboards_that_exist() -> None:
    """In panels, in tables, and in the annotations of alerts; and each dashboard leads to the other."""
    everything = export.files(Settings())
    found = {uid for text in everything.values() for uid in re.findall(r"/d/([\w-]+)", text)}
    there = {json.loads(text)["uid"] for path, text in everything.items() if path.endswith(".json")}

    assert found - {RUNBOOK_UID} <= there
    assert {OVERVIEW_UID, ENDPOINT_UID, *(f"{RUNBOOK_UID}{alert}" for alert in TABLE)} <= found
    for uid, dashboard in BUILT.items():
        (link,) = dashboard["links"]
        assert link["url"] == f"/d/{next(other for other in BUILT if other != uid)}"
        assert link["keepTime"]
        assert link["includeVars"]


@both
def test_links_set_variables_that_exist(dashboard: Dashboard) -> None:
    """A drill-down arrives at the server, with the job and the time that were chosen."""
    everything = json.dumps(dashboard)
    names = {v["name"] for v in BUILT[ENDPOINT_UID]["templating"]["list"]}

    assert set(re.findall(r"[?&]var-(\w+)=", everything)) <= names
    assert set(re.findall(r"\$\{(\w+):queryparam\}", everything)) <= names
    for panel in lint.all_panels(dashboard):
        for titles in re.findall(r"\$\{__data\.fields\.(\w+)\}", json.dumps(panel)):
            assert titles in panel["transformations"][-1]["options"]["renameByName"].values()
