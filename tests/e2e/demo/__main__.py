"""The demo: both official MCP clients, unmodified, put through every fault, and what their metrics say of it.

What the guard can stop is shown with the guard off and on, side by side.

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
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parents[3]
if str(CHECKOUT) not in sys.path:
    sys.path.insert(0, str(CHECKOUT))

from tests.e2e import environments  # noqa: E402 - the path comes first
from tests.e2e.demo.guard import CASES, STOPPED  # noqa: E402
from tests.e2e.demo.runner import WORKERS, Case, DemoError, Key, Outcome, at_work  # noqa: E402
from tests.e2e.demo.scenarios import BOTH, FEATURES, SCENARIOS  # noqa: E402

if TYPE_CHECKING:
    from tests.e2e.demo.report import Report

COMPARED_SECONDS = 4.0
"""How long a client works that is there for the comparison alone."""

FAULTS = tuple(dict.fromkeys([*(scenario.fault for scenario in SCENARIOS), *STOPPED]))


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.e2e.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("fault", nargs="*", help="all by default: " + ", ".join(FAULTS))
    parser.add_argument("--client", action="append", choices=BOTH, help="both by default")
    parser.add_argument(
        "--feature", action="append", choices=FEATURES, help="judge only rows of this feature"
    )
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many clients run at a time")
    wanted = parser.parse_args(given)
    unknown = set(wanted.fault) - set(FAULTS)
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    return wanted


def main() -> int:
    wanted = arguments()
    chosen = cases(wanted.fault or FAULTS, wanted.client or BOTH)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()

    from tests.e2e.demo.report import Report  # noqa: PLC0415 - needs rich, which is there only now

    report = Report()
    with at_work(chosen, wanted.feature or FEATURES, wanted.workers) as runs:
        named = {scenario.fault for scenario in SCENARIOS}
        wrong = [
            fault
            for fault in dict.fromkeys(fault for fault, _, _ in runs if fault in named)
            if not _tell(report, [run for key, run in runs.items() if key[0] == fault and not key[2]])
        ]
        if not _compare(report, runs):
            wrong.append("the guard")
    verdict = (
        f"not as expected: {', '.join(wrong)}"
        if wrong
        else "every fault was named, and stopped where the guard can"
    )
    report.say(f"{verdict} ({time.monotonic() - began:.0f} s)")
    return 1 if wrong else 0


def cases(faults: Collection[str], clients: Collection[str]) -> list[Case]:
    """Every run of the demo; a fault that runs without the guard anyway is compared by that run."""
    named = [scenario for scenario in SCENARIOS if scenario.fault in faults]
    there = {scenario.fault for scenario in named}
    compared = [
        CASES[fault].run(guard=guard, seconds=COMPARED_SECONDS)
        for fault in STOPPED
        for guard in (False, True)
        if fault in faults and (guard or fault not in there)
    ]
    return [
        (scenario, client)
        for scenario in (*named, *compared)
        for client in scenario.clients
        if client in clients
    ]


def _compare(report: Report, runs: Mapping[Key, Future[Outcome]]) -> bool:
    """Show what the guard changed; whether all was as expected, with it and without."""
    try:
        pairs = [
            (runs[fault, client, False].result(), run.result())
            for (fault, client, guard), run in runs.items()
            if guard
        ]
    except DemoError as error:
        report.say(str(error))
        return False
    return report.compare(pairs) if pairs else True


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
