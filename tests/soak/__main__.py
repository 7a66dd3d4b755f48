"""Plays chaos for a while and compares the telemetry with what happened.

python -m tests.soak --minutes 30 --seed 1
"""

import argparse
from collections.abc import Sequence

from .run import CREW, soak


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Chaos, and exact books of it.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--crew", type=int, default=len(CREW), help="how many clients play")
    asked = parser.parse_args(arguments)
    report = soak(asked.minutes, asked.seed, asked.crew)
    print(report)
    return 1 if report.differences or report.disagreements or report.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
