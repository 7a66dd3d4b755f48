"""The demo: both official MCP clients, unmodified, put through every fault, and what their metrics say of it.

    python -m tests.e2e.demo                          # all, in under a minute once the environments are there
    python tests/e2e/demo empty-resume --client mcp1  # some

The exit status is 0 only if every expected series was there and every forbidden one was not.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parents[3]
if str(CHECKOUT) not in sys.path:
    sys.path.insert(0, str(CHECKOUT))

from tests.e2e import environments  # noqa: E402 - the path comes first
from tests.e2e.demo.runner import WORKERS, DemoError, Outcome, at_work  # noqa: E402
from tests.e2e.demo.scenarios import BOTH, FEATURES, SCENARIOS  # noqa: E402

if TYPE_CHECKING:
    from tests.e2e.demo.report import Report


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.e2e.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("fault", nargs="*", help="all by default: " + ", ".join(s.fault for s in SCENARIOS))
    parser.add_argument("--client", action="append", choices=BOTH, help="both by default")
    parser.add_argument(
        "--feature", action="append", choices=FEATURES, help="judge only rows of this feature"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many clients run at a time")
    wanted = parser.parse_args(given)
    unknown = set(wanted.fault) - {scenario.fault for scenario in SCENARIOS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    return wanted


def main() -> int:
    wanted = arguments()
    clients = wanted.client or BOTH
    chosen = [
        (scenario, client)
        for scenario in SCENARIOS
        for client in scenario.clients
        if client in clients and (not wanted.fault or scenario.fault in wanted.fault)
    ]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()

    from tests.e2e.demo.report import Report  # noqa: PLC0415 - needs rich, which is there only now

    report = Report()
    with at_work(chosen, wanted.feature or FEATURES, wanted.workers) as runs:
        faults = dict.fromkeys(fault for fault, _ in runs)
        wrong = [
            fault
            for fault in faults
            if not _tell(report, [run for key, run in runs.items() if key[0] == fault])
        ]
    verdict = f"not as expected: {', '.join(wrong)}" if wrong else "every fault was named"
    report.say(f"{verdict} ({time.monotonic() - began:.0f} s)")
    return 1 if wrong else 0


def _tell(report: Report, runs: Sequence[Future[Outcome]]) -> bool:
    """Wait for the clients of one fault and show what they did; whether all was as expected."""
    try:
        outcomes = [run.result() for run in runs]
    except DemoError as error:
        report.say(str(error))
        return False
    report.show(outcomes)
    return not any(outcome.failures for outcome in outcomes)


def _inside_an_environment() -> None:
    """Prepare the environments and go on inside one of them, where the tables can be drawn."""
    try:
        pythons = environments.prepare(BOTH)
    except environments.PreparationError as error:
        raise SystemExit(str(error)) from error
    if importlib.util.find_spec("rich") is None:
        os.chdir(CHECKOUT)
        python = str(pythons["mcp2"])
        os.execv(python, [python, "-m", "tests.e2e.demo", *sys.argv[1:]])  # noqa: S606 - our own interpreter


if __name__ == "__main__":
    arguments()
    _inside_an_environment()
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
