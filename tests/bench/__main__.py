"""What watching costs, as ratios; `tests/bench/README.md` says how to read them.

python -m tests.bench
python -m tests.bench --only a1,c --rounds 15 --json figures.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench import report
from tests.bench.growth import measure_growth
from tests.bench.held import measure_held
from tests.bench.measure import measure
from tests.bench.official import measure_official
from tests.bench.server import serving
from tests.bench.startup import measure_startup
from tests.bench.times import Result
from tests.bench.works import WORKS

CASES = ("a1", "a20", "b", "c", "d", "e", "f", "g", "h", "i")
ROUNDS = 11
OFFICIAL_ROUNDS = 5


def _cases(text: str) -> list[str]:
    """`a` stands for both `a1` and `a20`."""
    chosen = [case for name in text.split(",") for case in CASES if name in (case, case[0])]
    if not chosen:
        raise argparse.ArgumentTypeError(f"none of {', '.join(CASES)}")
    return chosen


def _run(cases: Sequence[str], rounds: int) -> tuple[list[Iterable[str]], dict[str, Any]]:
    figures: dict[str, Any] = {}
    parts: list[Iterable[str]] = [[report.machine()]]
    with serving() as url:
        results: list[Result] = []
        for work in WORKS:
            if work.case in cases:
                _say(f"({work.case}) {work.title}")
                results.append(measure(work, url, rounds))
        if "f" in cases:
            _say("(f)")
            results += measure_official(url, min(rounds, OFFICIAL_ROUNDS))
        if results:
            figures["results"] = [asdict(row) for row in results]
            parts.append(report.table(results))
        if "g" in cases:
            _say("(g)")
            held = measure_held(url)
            figures["held"] = asdict(held)
            parts.append(report.held(held))
    if "h" in cases:
        _say("(h)")
        startup = measure_startup(rounds)
        figures["startup"] = asdict(startup)
        parts.append(report.startup(startup))
    if "i" in cases:
        _say("(i)")
        figures["growth"] = measure_growth()
        parts.append(report.growth(figures["growth"]))
    return parts, figures


def _say(what: str) -> None:
    print(f"measuring {what}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", type=_cases, default=list(CASES), help="cases, such as a1,c; all by default"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each case (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    chosen = parser.parse_args(arguments)
    parts, figures = _run(chosen.only, chosen.rounds)
    print(report.text(parts))
    if chosen.json is not None:
        chosen.json.write_text(
            json.dumps({"machine": report.machine(), **figures}, indent=2) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
