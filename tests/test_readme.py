"""The README says what is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import readme

from opentelemetry.instrumentation.httpx_sse._names import SERVER_LIMIT_MAX
from opentelemetry.instrumentation.httpx_sse._options import PREFIX, Options, read_options

TEXT = readme.README.read_text()
CHECKOUT = Path(readme.__file__).resolve().parents[1]
HOUSE = CHECKOUT / "instrumentation/opentelemetry/instrumentation/httpx_sse"


def test_generated_parts_are_current() -> None:
    """The table and the diagrams are what the code gives now."""
    assert readme.current(TEXT) == TEXT


def test_every_make_target_named_exists() -> None:
    """Each `make x` of the README is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"\bmake ([a-z]+)", TEXT)) <= targets


def test_every_option_is_told_once() -> None:
    """The table of options has the fields of `Options`, each in one row."""
    table = TEXT[TEXT.index("| option | variable") :].split("\n\n", 1)[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]

    assert sorted(told) == sorted(Options.__dataclass_fields__)


@pytest.mark.parametrize("variable", re.findall(r"\b(OTEL_PYTHON_HTTPX_SSE_[A-Z_]+)\b", TEXT))
def test_every_variable_named_is_read(variable: str) -> None:
    """A variable of ours that the README names belongs to an option."""
    assert variable.removeprefix(PREFIX).lower() in Options.__dataclass_fields__


def test_the_example_runs() -> None:
    """The lines for switching on by hand run as they stand."""
    example = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert example is not None
    program = "import httpx\nclient = httpx.Client()\n" + example.group(1)

    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_defaults_are_those_of_the_table() -> None:
    """The defaults that the README gives for times are the options' own."""
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) s \|", TEXT, re.MULTILINE)
    options = read_options({}, {})

    assert {name: float(seconds) for name, seconds in rows} == {
        name: getattr(options, name) for name, _ in rows
    }
    assert len(rows) == 3


def test_every_module_is_on_the_tour() -> None:
    """The first table of the tour has each module of the house in one row."""
    table = TEXT[TEXT.index("| what | where |") :].split("\n\n", 1)[0]
    told = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    house = {path.stem if path.suffix else path.name for path in HOUSE.iterdir() if path.suffix != ".typed"}

    assert sorted(told) == sorted(house - {"__init__", "__pycache__"})


def test_the_most_servers_that_can_be_named() -> None:
    """The bound that the table of options gives for `server_limit` is the one that is held."""
    (most,) = re.findall(r"^\| `server_limit` \|[^|]*\| \d+, at most (\d+) \|", TEXT, re.MULTILINE)

    assert read_options({"server_limit": int(most)}, {}).server_limit == int(most) == SERVER_LIMIT_MAX


@pytest.mark.parametrize("module", sorted(set(re.findall(r"`(_[a-z]+)`", TEXT))))
def test_every_module_of_the_tour_exists(module: str) -> None:
    """The tour names modules that are there."""
    found = [
        *HOUSE.glob(f"{module}.py"),
        *HOUSE.glob(f"{module}/__init__.py"),
        *HOUSE.glob(f"_ledger/{module}.py"),
    ]

    assert len(found) == 1
