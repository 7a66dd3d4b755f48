"""The alerts as Grafana reads them from its provisioning folder, field by field.

The fields and their defaults are those of Grafana's own reader; what it does not know it drops without a word.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards.alerts import absent_alerts, alerts
from dashboards.grafana_rules import FILE, provisioning
from dashboards.recordings import Recordings
from dashboards.thresholds import Settings, duration

HOME = Path(__file__).parents[2] / "dashboards"
GROUP_FIELDS = {"orgId", "name", "folder", "interval", "rules"}
RULE_FIELDS = {
    "uid": str,
    "title": str,
    "condition": str,
    "data": list,
    "dashboardUid": str,
    "panelId": int,
    "noDataState": str,
    "execErrState": str,
    "for": str,
    "keepFiringFor": str,
    "missing_series_evals_to_resolve": int,
    "annotations": dict,
    "labels": dict,
    "isPaused": bool,
    "notification_settings": dict,
    "record": dict,
}
QUERY_FIELDS = {
    "refId": str,
    "queryType": str,
    "relativeTimeRange": dict,
    "datasourceUid": str,
    "model": dict,
}
NO_DATA = {"OK", "NoData", "Alerting", "KeepLast"}
ERROR = {"OK", "Error", "Alerting", "KeepLast"}
DURATION = re.compile(r"\d+(ms|s|m|h)")

SETTINGS = Settings()
FILE_DATA: dict[str, Any] = yaml.safe_load((HOME / FILE).read_text(encoding="utf-8"))
GROUP = FILE_DATA["groups"][0]
RULES: list[dict[str, Any]] = GROUP["rules"]
EXPECTED = [*alerts(SETTINGS, Recordings(SETTINGS, inline=True)), *absent_alerts(SETTINGS)]


def test_file() -> None:
    """One group, evaluated every 30 s, a multiple of Grafana's ten; no contact points, no policies."""
    assert set(FILE_DATA) == {"apiVersion", "groups"}
    assert FILE_DATA["apiVersion"] == 1
    assert len(FILE_DATA["groups"]) == 1
    assert set(GROUP) == GROUP_FIELDS
    assert GROUP["interval"] == "30s"


def test_identifiers() -> None:
    """Identifiers and titles are unique; identifiers are short, and the same whatever severity is chosen."""
    other = yaml.safe_load(
        provisioning(Settings(severity_page="page").override(["SSEStreamStuck.streak=20"]))
    )

    assert len({rule["uid"] for rule in RULES}) == len({rule["title"] for rule in RULES}) == len(RULES)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", rule["uid"]) for rule in RULES)
    assert [rule["uid"] for rule in RULES] == [rule["uid"] for rule in other["groups"][0]["rules"]]


def test_identifiers_of_many_jobs() -> None:
    """Jobs that differ at the end of a long name, or in a character that an identifier has not, stay apart."""
    jobs = ("first", "a.b", "a-b", *(f"agents-of-the-production-in-region-{n}" for n in range(3)))
    found = yaml.safe_load(provisioning(Settings(absent_jobs=jobs)))["groups"][0]["rules"]
    uids = [rule["uid"] for rule in found]

    assert len(set(uids)) == len(uids) == len(RULES) + len(jobs) - 1
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", uid) for uid in uids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["title"])
def test_fields(rule: dict[str, Any]) -> None:
    """Every field is one that Grafana knows, spelt as it spells it, of its type."""
    assert set(rule) <= set(RULE_FIELDS)
    assert all(isinstance(value, RULE_FIELDS[key]) for key, value in rule.items())
    assert rule["noDataState"] in NO_DATA
    assert rule["execErrState"] in ERROR
    assert DURATION.fullmatch(rule["for"])
    assert DURATION.fullmatch(rule.get("keepFiringFor", "0s"))
    for query in rule["data"]:
        assert set(query) <= set(QUERY_FIELDS)
        assert all(isinstance(value, QUERY_FIELDS[key]) for key, value in query.items())
        assert set(query["relativeTimeRange"]) == {"from", "to"}
        assert query["model"]["refId"] == query["refId"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["title"])
def test_health_is_no_data(rule: dict[str, Any]) -> None:
    """A comparison finds nothing when all is well, so no data is health."""
    assert rule["noDataState"] == "OK"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["title"])
def test_query_and_condition(rule: dict[str, Any]) -> None:
    """An instant query of the provisioned data source, and a threshold on whether it left anything."""
    query, condition = rule["data"]

    assert query["datasourceUid"] == SETTINGS.datasource
    assert query["model"]["instant"] is True
    assert query["model"]["range"] is False
    assert condition["datasourceUid"] == "__expr__"
    assert condition["model"]["type"] == "threshold"
    assert condition["model"]["expression"] == query["refId"]
    assert condition["model"]["conditions"] == [{"evaluator": {"type": "gt", "params": [0]}}]
    assert rule["condition"] == condition["refId"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["title"])
def test_nothing_is_expanded(rule: dict[str, Any]) -> None:
    """No `$`, which Grafana would take for a variable of its environment; values by their Grafana name."""
    texts = [*rule["annotations"].values(), *rule["labels"].values(), rule["data"][0]["model"]["expr"]]

    assert "$" not in "".join(texts)
    assert not re.search(r"(?<!\w)\.Value\b", "".join(texts))
    assert ".Value" not in rule["annotations"]["description"].replace(".Values.A.Value", "")


def test_the_same_alerts() -> None:
    """Rule by rule the file says what the Prometheus rules say; recordings are written out."""
    assert len(RULES) == len(EXPECTED)
    for rule, alert in zip(RULES, EXPECTED, strict=True):
        assert rule["title"].startswith(alert.name)
        assert rule["data"][0]["model"]["expr"] == alert.expr
        assert ":" not in re.sub(r'"[^"]*"|\[[^\]]*\]', "", alert.expr)
        assert rule["for"] == duration(alert.hold)
        assert rule.get("keepFiringFor", "0s") == duration(alert.keep)
        assert rule["labels"] == alert.labels
        assert set(rule["annotations"]) == set(alert.annotations)


def test_only_the_alert_on_missing_telemetry_is_paused() -> None:
    """Jobs without clients are normal, so that rule waits to be switched on."""
    assert [rule["title"] for rule in RULES if rule["isPaused"]] == ["SSETelemetryAbsent"]
