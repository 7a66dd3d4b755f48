"""The Prometheus rules, run by promtool on whole series: what fires, what stays silent, and when it is over."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dashboards import export, grafana_rules
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


def test_promtool_accepts_several_jobs(tmp_path: Path) -> None:
    """With several jobs, one of them given twice, the rules are still valid, and no two of them are the same."""
    options = [word for job in ("agents", "team.a/web", "agents") for word in ("--job", job)]
    assert export.main([str(tmp_path), *options]) == 0

    for name in (RULES_FILE, ABSENT_FILE):
        done = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(tmp_path / name))
        assert done.returncode == 0, done.stdout + done.stderr
    absent = rules_of((tmp_path / ABSENT_FILE).read_text(encoding="utf-8"))
    assert [rule["labels"]["job"] for rule in absent] == ["agents", "team.a/web"]


def test_a_job_is_matched_by_its_name(tmp_path: Path) -> None:
    """A point in a job's name stands for itself: a job that has another character there raises nothing."""
    assert export.main([str(tmp_path), "--job", "agents", "--job", "team.a"]) == 0
    labels = 'instance="a", server_address="s", server_port="443"'
    series = [
        {"series": f'sse_client_stalled_streak{{job="{job}", {labels}}}', "values": "50x30"}
        for job in ("team.a", "team-a", "others")
    ]
    asked = {"expr": 'count by (job) (ALERTS{alertname="SSEStreamStuck"})', "eval_time": "20m"}
    expected = {**asked, "exp_samples": [{"labels": '{job="team.a"}', "value": 1}]}
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [expected]}
    tests = {"rule_files": [RULES_FILE], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "tests.yml").write_text(json.dumps(tests), encoding="utf-8")

    done = run("promtool", "test", "rules", "tests.yml", cwd=tmp_path)

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
