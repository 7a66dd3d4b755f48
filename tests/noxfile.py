"""The matrix: the tests of the core on each Python, those of the seam on the oldest of what this package stands on.

nox -f tests/noxfile.py                 # all of it
nox -f tests/noxfile.py -t pythons -t versions   # what `make test` runs
nox -f tests/noxfile.py -s python-3.12  # one cell
ACCEPTANCE=PROGRAM nox -f tests/noxfile.py       # every cell has to pass that program, too
"""

import os
import shutil
from pathlib import Path
from typing import Final

import nox

CHECKOUT: Final = Path(__file__).resolve().parents[1]
FAST: Final = ("-m", "not e2e", "-q", "-p", "no:cacheprovider")
CORE: Final = (
    "tests/properties",
    "tests/stories/test_pure.py",
    "tests/tables",
    "tests/test_names.py",
    "tests/lifecycle",
    *FAST,
)
OLD: Final = (
    "-W",
    "ignore::DeprecationWarning",
)  # versions that are held back may use what is deprecated now
SEAM: Final = (
    "tests/lifecycle",
    "tests/trust/test_transparency.py",
    "tests/trust/test_containment.py",
    *FAST,
)
STORIES: Final = (
    "tests/stories/test_loopback.py",
    "-k",
    "httpx-sync or httpx2-async",
    "-q",
    "-p",
    "no:cacheprovider",
)
"""Stories over a connection, by each library and each colour once."""
ACCEPTANCE: Final = os.environ.get("ACCEPTANCE", "")
"""A program that every cell has to pass as well; none unless it is named."""
PYTHONS: Final = ("3.10", "3.11", "3.12", "3.13", "3.14")
FREE_THREADED: Final = "3.14t"
"""The first that the dependencies are made for; few machines have it."""
THREADS: Final = (
    "tests/trust/test_concurrency.py",
    "tests/trust/test_full_tables.py",
    "tests/trust/test_spans.py",
    "tests/trust/test_transparency.py",
    "tests/trust/test_containment.py",
    "tests/guard",
)

CELLS: Final[dict[str, tuple[str, ...]]] = {
    "httpx-oldest": ("httpx == 0.27.0",),
    "httpx2-oldest": ("httpx2 == 2.0.0",),
    "wrapt-1": ("wrapt < 2",),
    "wrapt-2": ("wrapt >= 2",),
    "otel-1": ("opentelemetry-sdk ~= 1.45.0", "opentelemetry-instrumentation-httpx >= 0.66b0, < 0.67.dev0"),
    "otel-2": ("opentelemetry-sdk ~= 1.44.0", "opentelemetry-instrumentation-httpx >= 0.65b0, < 0.66.dev0"),
    "otel-3": ("opentelemetry-sdk ~= 1.43.0", "opentelemetry-instrumentation-httpx >= 0.64b0, < 0.65.dev0"),
    "otel-4": ("opentelemetry-sdk ~= 1.42.0", "opentelemetry-instrumentation-httpx >= 0.63b0, < 0.64.dev0"),
}
"""What is held back in each cell; everything else is the newest that fits."""

QUICK: Final = ("httpx-oldest", "httpx2-oldest", "wrapt-1", "otel-4")
"""The cells of `make test`: the oldest of everything."""

nox.options.default_venv_backend = "venv"
nox.options.envdir = str(CHECKOUT / ".nox")
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False


def interpreter(version: str) -> str | None:
    """The path of a Python of that version that works, if the machine has one."""
    number, is_free = version.rstrip("t"), version.endswith("t")
    managed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{number}.*/bin/python"))
    fitting = [path for path in managed if path.parents[1].name.endswith("t") == is_free]
    return str(fitting[-1]) if fitting else shutil.which(f"python{version}")


def prepare(session: nox.Session, *requirements: str) -> None:
    """The project as an editable install, what its tests need, and what is held back."""
    session.chdir(CHECKOUT)
    session.install("--quiet", "--upgrade", "pip")
    session.install("--quiet", "--group", "test", "--editable", ".[prometheus]")
    if requirements:
        # Afterwards, since some are older than what the group of the tests asks for.
        session.install("--quiet", *requirements)


def told(session: nox.Session, *options: str) -> None:
    """The stories, and the acceptance program if there is one; posargs choose among the other tests only."""
    if not session.posargs:
        session.run("python", "-m", "pytest", *STORIES, *options)
    if ACCEPTANCE:
        session.run("python", ACCEPTANCE)


def on_python(version: str) -> None:
    found = interpreter(version)

    # 3.11 is where everything else runs.
    @nox.session(
        name=f"python-{version}", python=found or version, tags=[] if version == "3.11" else ["pythons"]
    )
    def fast(session: nox.Session) -> None:
        """The fast tests on one Python."""
        if found is None:
            session.skip(f"no Python {version} under ~/.pyenv/versions or on PATH")
        prepare(session)
        session.run("python", "-m", "pytest", *CORE, *session.posargs)
        told(session)


@nox.session(name="free-threaded", python=interpreter(FREE_THREADED) or FREE_THREADED)
def free_threaded(session: nox.Session) -> None:
    """The tests of the core, of the seam and of threads, without a GIL."""
    if interpreter(FREE_THREADED) is None:
        session.skip(f"no Python {FREE_THREADED} under ~/.pyenv/versions or on PATH")
    prepare(session)
    session.env["PYTHON_GIL"] = "0"
    session.run("python", "-m", "pytest", *THREADS, *CORE, *session.posargs)
    told(session)


def with_versions(name: str, requirements: tuple[str, ...]) -> None:
    @nox.session(name=name, python=interpreter("3.11") or None, tags=["versions"] if name in QUICK else [])
    def seam(session: nox.Session) -> None:
        """The tests of the seam on versions that are held back."""
        prepare(session, *requirements)
        session.run("python", "-m", "pytest", *SEAM, *OLD, *session.posargs)
        told(session, *OLD)


for _version in PYTHONS:
    on_python(_version)
for _name, _requirements in CELLS.items():
    with_versions(_name, _requirements)
