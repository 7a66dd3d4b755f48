"""Draw both dashboards from a live run: real clients, real faults, a real Prometheus.

    python -m tests.dashboards.look.live dashboards/pictures --seconds 1500

The rules run at their own pace, since the committed dashboards read what they record: give it a quarter of an hour
at least.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from dashboards.thresholds import Settings
from tests.dashboards.live import live
from tests.dashboards.live.clients import Case, at_work
from tests.e2e.environments import prepare

CHECKOUT: Final = Path(__file__).resolve().parents[3]
DASHBOARDS: Final = CHECKOUT / "dashboards" / "grafana" / "dashboards"
SCRAPE: Final = 15.0
"""Seconds between two scrapes, as in the example."""

PICTURES: Final = {"sse-overview": None, "sse-endpoint": "stale prompt"}
"""Each dashboard, and the case whose server it is narrowed to."""

CASES: Final = {
    "empty resume": Case("empty-resume", "report", ("mcp1", "mcp2")),
    "stale prompt": Case("stale-prompt", "wipe"),
    "dead after replay": Case("dead-after-replay", "report"),
    "after the answer": Case("after-answer", "report", ("mcp2",), ("--resume",)),
    "input required": Case("input-required-loop", "wipe_again", ("mcp2",), ("--mode", "auto")),
    "polling": Case("healthy-polling", "report_later", ("mcp1", "mcp2")),
    "quiet": Case("quiet", "report", ("mcp1", "mcp2"), quiet=30.0),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--seconds", type=float, default=1500.0, help="how long the clients work")
    wanted = parser.parse_args()
    prepare(("mcp1", "mcp2"))
    settings = Settings(absent_jobs=(live.JOB,), interval=SCRAPE)
    with live.stack(settings) as stack, at_work(CASES, seconds=wanted.seconds) as running:
        for one in running.values():
            stack.watch(*one.targets)
        time.sleep(wanted.seconds - 10)
        end = str(time.time())
        for name, case in PICTURES.items():
            source, picture = DASHBOARDS / f"{name}.json", wanted.folder.resolve() / f"{name}.png"
            command = ["tests.dashboards.look.render", str(source), stack.prometheus, str(picture)]
            chosen = ["--set", f"port={running[case].port}"] if case else []
            span = ["--end", end, "--span", str(int(wanted.seconds))]
            subprocess.run([sys.executable, "-m", *command, *span, *chosen], check=True, cwd=CHECKOUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
