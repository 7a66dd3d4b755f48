"""Commands of this package.

python -m opentelemetry.instrumentation.httpx_sse export DIR
"""

import argparse
import sys
from collections.abc import Sequence

from opentelemetry.instrumentation.httpx_sse.dashboards import export

PROGRAM = "python -m opentelemetry.instrumentation.httpx_sse"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Commands beside the instrumentation itself.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "export",
        help="write dashboards, rules, alerts, provisioning, runbooks and examples to a folder",
        description="Write dashboards, rules, alerts, provisioning, runbooks and examples to a folder. Files of "
        "the same names are replaced, all others stay.",
    )
    export.add_arguments(command)
    command.set_defaults(run=export.run)
    given = parser.parse_args(arguments)
    status: int = given.run(given)
    return status


if __name__ == "__main__":
    sys.exit(main())
