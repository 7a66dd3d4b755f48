"""What rules would have recorded in an hour that is over: blocks made by promtool, beside those of the hour.

Promtool does not show a rule what another one recorded, so recordings that read recordings come in later passes,
each with a Prometheus that has the blocks of the passes before.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import yaml
from dashboards.details import EVERY
from tests.dashboards.promtool.expressions import selected
from tests.dashboards.promtool.runner import rules_of

RULES: Final = "rules.yml"
"""Named without its folder: the second at which a group is evaluated follows from the name of its file."""

Serving = Callable[[Path], AbstractContextManager[str]]
"""A Prometheus over a folder of blocks; its URL."""


def passes(text: str) -> Iterator[list[dict[str, Any]]]:
    """The recordings of a rules file, those first that read no other."""
    waiting = [rule for rule in rules_of(text) if "record" in rule]
    while waiting:
        names = {rule["record"] for rule in waiting}
        ready = [rule for rule in waiting if not selected(rule["expr"]) & names]
        yield ready
        waiting = [rule for rule in waiting if rule not in ready]


def record(text: str, data: Path, serving: Serving, *, start: float, end: float) -> None:
    """Add everything that a rules file records to a folder of blocks, every two minutes from start to end."""
    for some in passes(text):
        group = {"name": "recorded", "interval": f"{EVERY:g}s", "rules": some}
        with tempfile.TemporaryDirectory() as folder, serving(data) as url:
            Path(folder, RULES).write_text(yaml.safe_dump({"groups": [group]}), encoding="utf-8")
            span = [
                f"--start={start:.0f}",
                f"--end={end:.0f}",
                f"--url={url}",
                f"--output-dir={data.resolve()}",
            ]
            command = ["promtool", "tsdb", "create-blocks-from", "rules", *span, RULES]
            subprocess.run(command, check=True, capture_output=True, cwd=folder)
