"""The same targets, with inputs that atheris chooses by coverage. Needs atheris, which is not on every interpreter.

python -m tests.fuzz.guided --target ledger --executions 1000000
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

PACKAGE = "opentelemetry.instrumentation.httpx_sse"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.guided", description="Input chosen by coverage."
    )
    parser.add_argument("--target", default="ledger")
    parser.add_argument("--executions", type=int, default=1_000_000)
    asked = parser.parse_args(arguments)
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=[PACKAGE]):
        fuzz: Any = import_module("tests.fuzz.__main__")
    longest = fuzz.TARGETS[asked.target][1]
    options = [sys.argv[0], f"-runs={asked.executions}", f"-max_len={longest}", "-verbosity=0"]
    atheris.Setup(options, partial(fuzz.attempt, asked.target))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
