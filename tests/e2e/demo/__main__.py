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
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
if str(CHECKOUT) not in sys.path:
    sys.path.insert(0, str(CHECKOUT))

from tests.e2e import environments  # noqa: E402 - the path comes first
from tests.e2e.demo.runner import Children, DemoError, Outcome, run  # noqa: E402
from tests.e2e.demo.scenarios import BOTH, FEATURES, SCENARIOS, Scenario  # noqa: E402

WORKERS = 5


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
    features = wanted.feature or FEATURES
    chosen = [scenario for scenario in SCENARIOS if not wanted.fault or scenario.fault in wanted.fault]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()

    from tests.e2e.demo.report import Report  # noqa: PLC0415 - needs an environment, which is there only now

    report = Report()
    wrong: list[str] = []
    with closing(Children()) as children, ThreadPoolExecutor(wanted.workers) as workers:
        try:
            plans = [
                (scenario, _start(scenario, clients, children, features, workers)) for scenario in chosen
            ]
            for scenario, runs in plans:
                try:
                    outcomes = [one.result() for one in runs]
                except DemoError as error:
                    report.say(str(error))
                    wrong.append(scenario.fault)
                    continue
                if outcomes:
                    report.show(outcomes)
                wrong += [scenario.fault for outcome in outcomes if outcome.failures]
        except BaseException:
            children.close()
            workers.shutdown(wait=True, cancel_futures=True)
            raise
    verdict = (
        f"not as expected: {', '.join(dict.fromkeys(wrong))}"
        if wrong
        else "every fault was named, and nothing else"
    )
    report.say(f"{verdict} ({time.monotonic() - began:.0f} s)")
    return 1 if wrong else 0


def _start(
    scenario: Scenario,
    clients: Sequence[str],
    children: Children,
    features: Sequence[str],
    workers: ThreadPoolExecutor,
) -> list[Future[Outcome]]:
    return [
        workers.submit(run, scenario, client, children, features)
        for client in scenario.clients
        if client in clients
    ]


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
