"""Write the committed output anew, or say whether it is current.

python -m dashboards
python -m dashboards --check
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .export import outdated, write
from .thresholds import Settings

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m dashboards",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something is old")
    if parser.parse_args(arguments).check:
        stale = outdated(HERE, Settings())
        for path in stale:
            print(f"not current: {path}", file=sys.stderr)
        return 1 if stale else 0
    for path in outdated(HERE, Settings()):
        print(path)
    write(HERE, Settings())
    return 0


if __name__ == "__main__":
    sys.exit(main())
