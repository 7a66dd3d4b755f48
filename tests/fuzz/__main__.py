"""Tries random input on everything that reads the wire or decides.

    python -m tests.fuzz --executions 5000000

An input that fails is printed as hex; `--replay HEX --target NAME` tries it again.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from . import deciding, guarding, reading
from .draw import Draw
from .known import is_known

Target = Callable[[Draw], None]

TARGETS: Final[dict[str, tuple[Target, int, int]]] = {
    "scanner": (reading.scanner, 96, 4),
    "envelope": (reading.envelope, 64, 4),
    "dialect": (reading.dialect, 16, 1),
    "failure": (reading.failure, 24, 4),
    "ledger": (deciding.ledger, 400, 5),
    "exchange": (deciding.exchange, 400, 2),
    "guard": (guarding.guard, 300, 1),
}
"""By name: what is tried, the bytes of its longest input, its share of the executions."""


class FoundError(Exception):
    """An input that breaks a target."""


def fuzz(name: str, executions: int, seed: int | str) -> None:
    """Try so many random inputs on one target.

    Raises:
        FoundError: one of them breaks it.
    """
    _, longest, _ = TARGETS[name]
    rng = random.Random(f"{seed}/{name}")
    for _ in range(executions):
        attempt(name, rng.randbytes(rng.randrange(1, longest)))


def attempt(name: str, data: bytes) -> None:
    """Try one input.

    Raises:
        FoundError: it breaks the target.
    """
    try:
        TARGETS[name][0](Draw(data))
    except Exception as error:
        if not is_known(name, error):
            raise FoundError(f"{name}: {type(error).__name__}: {error}\n{data.hex()}") from error


def shares(executions: int) -> dict[str, int]:
    """The executions of each target; no fewer in all than were asked for."""
    total = sum(share for _, _, share in TARGETS.values())
    return {name: -(-executions * share // total) for name, (_, _, share) in TARGETS.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random input for the core.")
    parser.add_argument("--executions", type=int, default=5_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--replay", help="hex of one input of the target")
    asked = parser.parse_args(arguments)
    if asked.replay is not None:
        TARGETS[asked.target or "ledger"][0](Draw(bytes.fromhex(asked.replay)))
        return 0
    plan = {asked.target: asked.executions} if asked.target else shares(asked.executions)
    failed = 0
    for name, executions in plan.items():
        began = time.monotonic()
        try:
            fuzz(name, executions, asked.seed)
        except FoundError as found:
            print(found)
            failed += 1
            continue
        took = time.monotonic() - began
        print(f"{name}: {executions:,} executions in {took:.0f} s, nothing found", flush=True)
    print(f"{sum(plan.values()):,} executions, {failed} targets broken")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
