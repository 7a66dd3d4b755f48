"""The Prometheus rules, run by promtool on whole series: what fires, what stays silent, and when it is over."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dashboards import grafana_rules
from dashboards.rules import ABSENT_FILE, PROMETHEUS_FILE, RULES_FILE, absent_rules, rules
from dashboards.thresholds import TABLE, Settings
from tests.dashboards.promtool.edges_dialogue import ABSENT
from tests.dashboards.promtool.runner import check, from_grafana, rules_of, run
from tests.dashboards.promtool.scenario import ABOUT, SETTINGS, Scenario
from tests.dashboards.promtool.tables import EVERY, SCENARIOS

HOME = Path(__file__).parents[2] / "dashboards"
BATCH = 12


def failures(text: str, scenarios: tuple[Scenario, ...]) -> str:
    """What promtool says against some scenarios, two runs at a time."""
    batches = [scenarios[i : i + BATCH] for i in range(0, len(scenarios), BATCH)]
    with ThreadPoolExecutor(max_workers=2) as workers:
        return "".join(workers.map(lambda batch: check(text, batch), batches))


def test_promtool_accepts_the_rules() -> None:
    """Both files pass `promtool check rules` with all its lints, on Prometheus 2.42."""
    for name in (RULES_FILE, ABSENT_FILE):
        done = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(HOME / name))

        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_example() -> None:
    """The example configuration is valid and finds the rules beside it."""
    done = run("promtool", "check", "config", str(HOME / PROMETHEUS_FILE))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


@pytest.mark.timeout(900)
def test_scenarios() -> None:
    """Every scenario raises the alerts that it names, in time and no longer, and no others."""
    assert failures(rules(SETTINGS), SCENARIOS) == ""


def test_absence() -> None:
    """A job that reports nothing for a quarter of an hour is told; its file is loaded only where that is wanted."""
    assert failures(absent_rules(SETTINGS), ABSENT) == ""


@pytest.mark.timeout(900)
def test_grafana_means_the_same() -> None:
    """With recordings written out and Grafana's names for fields, the same scenarios raise the same alerts."""
    text = from_grafana(grafana_rules.provisioning(SETTINGS))

    assert failures(text, tuple(s for s in SCENARIOS if not s.fires or s.minutes <= 60)) == ""


def test_both_sides_of_every_alert() -> None:
    """Each alert has a scenario in which it fires and is seen to end, and a silent one that moves what it reads."""
    over = {one.alert for scenario in EVERY for one in scenario.fires if one.over is not None}

    assert over == set(ABOUT) == set(TABLE)


@pytest.mark.parametrize(
    "scenario", [s for s in EVERY if s.fires], ids=lambda s: re.sub(r"\W+", "-", s.title)
)
def test_over_within_fifteen_minutes(scenario: Scenario) -> None:
    """Where a scenario says when an alert is over, that is at most fifteen minutes after its fault."""
    overs = [one.over for one in scenario.fires if one.over is not None]

    assert all(over <= scenario.fault_ends + 15 for over in overs)


def test_every_job_can_be_selected() -> None:
    """With `--job` every expression that reads a series of ours selects that job."""
    text = rules(Settings(job="agents|workers"))
    for rule in rules_of(text):
        for found in re.finditer(r"sse_client_\w+(?=[\[{)\s])(?P<rest>\{[^}]*\})?", rule["expr"]):
            if ":" not in rule["expr"][max(0, found.start() - 1) : found.end() + 1]:
                assert 'job=~"agents|workers"' in (found["rest"] or "")
