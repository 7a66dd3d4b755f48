"""Runs promtool on rules and scenarios; every run has a folder of its own."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from dashboards.catalogue import SERIES

from .expressions import selected
from .scenario import Scenario
from .series import kinds

EVALUATION: Final = "30s"
_ENVIRONMENT: Final = {**os.environ, "GOGC": "400"}
"""Short runs: less garbage is collected, and a fifth of the time is saved."""


class MissingToolError(RuntimeError):
    """A Debian package that the tests need is not installed."""


def tool(name: str) -> str:
    """The path of `promtool` and its like; Debian's `prometheus` and `prometheus-alertmanager` bring them."""
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(f"{name} is missing: apt-get install prometheus prometheus-alertmanager")
    return found


def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """One of the tools, its output caught."""
    path = tool(command[0])
    return subprocess.run(
        [path, *command[1:]], cwd=cwd, check=False, capture_output=True, text=True, env=_ENVIRONMENT
    )


def rules_of(text: str) -> list[dict[str, Any]]:
    """All rules of a rules file."""
    groups = yaml.safe_load(text)["groups"]
    return [rule for group in groups for rule in group["rules"]]


def read_by(rules: Iterable[dict[str, Any]]) -> frozenset[str]:
    """The metrics, by their OpenTelemetry names, that some rules read."""
    names = {name for rule in rules for name in selected(rule["expr"])}
    return kinds(SERIES[name] for name in names if name in SERIES)


@functools.lru_cache(maxsize=1024)
def _test(scenario: Scenario, reads: frozenset[str], alerts: frozenset[str]) -> dict[str, Any]:
    """A mutation run asks for the same few hundred tests again and again."""
    return scenario.test(reads, alerts)


def check(rules: str, scenarios: Sequence[Scenario]) -> str:
    """What promtool has to say against some rules; nothing if every scenario came out as it should."""
    parsed = rules_of(rules)
    reads = read_by(parsed)
    alerts = frozenset(rule["alert"] for rule in parsed if "alert" in rule)
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": EVALUATION,
        "tests": [_test(scenario, reads, alerts) for scenario in scenarios],
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rules.yml").write_text(rules, encoding="utf-8")
        # JSON is YAML, and is written ten times as fast.
        Path(folder, "tests.yml").write_text(json.dumps(tests), encoding="utf-8")
        done = run("promtool", "test", "rules", "tests.yml", cwd=Path(folder))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def from_grafana(text: str) -> str:
    """Grafana's provisioning file as a rules file, so that promtool can run the same alerts."""
    provisioned = yaml.safe_load(text)["groups"]
    translated = [
        {
            "alert": rule["title"].partition(" (")[0],
            "expr": rule["data"][0]["model"]["expr"],
            "for": rule["for"],
            **({"keep_firing_for": rule["keepFiringFor"]} if "keepFiringFor" in rule else {}),
            "labels": rule["labels"],
            "annotations": {
                key: value.replace(".Values.A.Value", ".Value") for key, value in rule["annotations"].items()
            },
        }
        for group in provisioned
        for rule in group["rules"]
        if not rule["isPaused"]
    ]
    group = {"name": "grafana", "interval": provisioned[0]["interval"], "rules": translated}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False)
