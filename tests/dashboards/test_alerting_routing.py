"""Alertmanager's example: who is told what, and what is held back behind its cause. Checked with amtool."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards.alerts import alerts
from dashboards.recordings import Recordings
from dashboards.rules import ALERTMANAGER_FILE, alertmanager, inhibitions
from dashboards.thresholds import TABLE, Settings
from tests.dashboards.promtool.runner import run
from tests.dashboards.promtool.scenario import ABOUT, PAGES

PATH = Path(__file__).parents[2] / "dashboards" / ALERTMANAGER_FILE
CONFIG: dict[str, Any] = yaml.safe_load(PATH.read_text(encoding="utf-8"))
SETTINGS = Settings()
ALERTS = alerts(SETTINGS, Recordings(SETTINGS))


def test_amtool_accepts_it() -> None:
    """The file is valid for Alertmanager 0.25."""
    done = run("amtool", "check-config", str(PATH))

    assert done.returncode == 0, done.stdout + done.stderr


def receiver(config: Path, **labels: str) -> str:
    """Who is told about an alert with these labels."""
    pairs = [f"{key}={value}" for key, value in labels.items()]
    done = run("amtool", "config", "routes", "test", f"--config.file={config}", *pairs)

    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert.name}-{alert.severity}")
def test_routes(alert: Any) -> None:
    """What pages goes to the pager, what waits goes to the tickets."""
    expected = "pager" if alert.name in PAGES and alert.severity == "critical" else "tickets"

    assert receiver(PATH, alertname=alert.name, severity=alert.severity, job="agents") == expected


def test_another_word_for_a_page(tmp_path: Path) -> None:
    """With `--severity-page` the routes follow."""
    config = tmp_path / "alertmanager.yml"
    config.write_text(alertmanager(Settings(severity_page="page")), encoding="utf-8")

    assert receiver(config, alertname="SSEStreamStuck", severity="page") == "pager"
    assert receiver(config, alertname="SSEStreamStuck", severity="critical") == "tickets"


def test_one_message_a_fault_and_server() -> None:
    """A fault at one server is one message, however many processes see it."""
    assert CONFIG["route"]["group_by"] == ["alertname", "job", "server_address", "server_port"]


def test_inhibitions_name_what_exists() -> None:
    """Each inhibition is between alerts of ours, and agrees in labels that the held back one has."""
    for row in inhibitions(SETTINGS):
        held = row.consequence.split('"')[1].split("|")

        assert set(held) <= set(TABLE)
        assert all(set(row.equal) <= set(ABOUT[name]) for name in held)


def test_no_page_is_held_back() -> None:
    """What wakes somebody up is never held back: each of them says something that no other does."""
    held = {name for row in inhibitions(SETTINGS) for name in row.consequence.split('"')[1].split("|")}

    assert held.isdisjoint(PAGES)
