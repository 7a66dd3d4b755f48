"""Virtual environments for the end-to-end tests: one per row of `ENVIRONMENTS`, made once and kept.

    python tests/e2e/environments.py              # prepare all of them
    python tests/e2e/environments.py mcp1 mcp2    # or some

They live in `.environments/<name>` beside `pyproject.toml`. The project is an editable install in each: an
edit of the source needs no new environment, an edit of `pyproject.toml` or of a row does. Needs nothing but
Python 3.10 and its standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".environments"
STAMP = "requirements.digest"
# The tables of pyproject.toml that decide what is installed; the others belong to linters and test runners.
READ_BY_PIP = ("[build-system]", "[project", "[tool.hatch")


@dataclass(frozen=True, slots=True)
class Environment:
    """What is installed beside the project itself, and which extras of the project."""

    requirements: tuple[str, ...]
    extras: tuple[str, ...] = ("prometheus",)


ENVIRONMENTS = {
    "mcp1": Environment(("mcp >= 1.30, < 2", "httpx >= 0.27, < 1", "uvicorn >= 0.30", "rich >= 13")),
    "mcp2": Environment(("mcp >= 2.3, < 3", "httpx2 >= 2, < 3", "uvicorn >= 0.30", "rich >= 13")),
    "fastmcp": Environment(("fastmcp >= 4", "uvicorn >= 0.30")),
    "models": Environment(("openai >= 3", "anthropic >= 2")),
}


class PreparationError(RuntimeError):
    """An environment could not be made; the message ends with what pip had to say."""


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made first if it is missing or out of date."""
    home = HOME / name
    wanted = _digest(ENVIRONMENTS[name])
    if _stamp(home) != wanted:
        with _alone(name):
            if _stamp(home) != wanted:  # another process may have made it while we waited
                _make(name, home, wanted)
    return home / "bin" / "python"


def prepare(names: Sequence[str]) -> dict[str, Path]:
    """Several environments, made side by side."""
    with ThreadPoolExecutor(max_workers=2) as workers:
        return dict(zip(names, workers.map(python_of, names), strict=True))


def _digest(environment: Environment) -> str:
    tables = re.split(r"(?m)^(?=\[)", (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    read_by_pip = (table for table in tables if table.startswith(READ_BY_PIP))
    parts = (sys.version, repr(environment), *read_by_pip)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _stamp(home: Path) -> str | None:
    try:
        return (home / STAMP).read_text(encoding="ascii")
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold the lock of one environment. It goes when the process goes, however that happens."""
    HOME.mkdir(exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(name, "another process is making it, waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(name: str, home: Path, digest: str) -> None:
    began = time.monotonic()
    environment = ENVIRONMENTS[name]
    _say(name, f"installing {', '.join(environment.requirements)} and the project")
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True, symlinks=True)
    project = f"{CHECKOUT}[{','.join(environment.extras)}]"
    python = str(home / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*install, *environment.requirements, "--editable", project],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}},
    )
    if done.returncode:
        raise PreparationError(f"environment {name}: pip failed\n{done.stdout[-4000:]}")
    # The stamp comes last: an environment without one is half made and is made again.
    (home / STAMP).write_text(digest, encoding="ascii")
    _say(name, f"ready after {time.monotonic() - began:.0f} s")


def _say(name: str, what: str) -> None:
    print(f"environment {name}: {what}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Prepare virtual environments for the end-to-end tests.")
    parser.add_argument(
        "name", nargs="*", metavar="NAME", help=f"one of {', '.join(ENVIRONMENTS)}; all by default"
    )
    names = parser.parse_args(arguments).name or list(ENVIRONMENTS)
    unknown = [name for name in names if name not in ENVIRONMENTS]
    if unknown:
        parser.error(f"no such environment: {', '.join(unknown)}")
    try:
        pythons = prepare(names)
    except PreparationError as error:
        print(error, file=sys.stderr)
        return 1
    for name, python in pythons.items():
        print(f"{name}: {python}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
