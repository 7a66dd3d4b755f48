"""What is built and published: a wheel that works alone, with either library or none, and says what it is."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor, __version__, package

CHECKOUT = Path(__file__).resolve().parents[2]
NAME = "opentelemetry-instrumentation-httpx-sse"
HOME = "opentelemetry/instrumentation/httpx_sse/"

TARGETS: dict[str, list[str]] = {
    "httpx": ["httpx"],
    "httpx2": ["httpx2"],
    "both": ["httpx", "httpx2"],
    "neither": [],
    "too old": ["httpx < 0.27"],
}
"""What is installed beside the wheel."""

PROBE = """
import http.server, importlib, json, pkgutil, threading

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"data: hello\\n\\n")
    def log_message(self, *_): pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
read = {}
for name in ("httpx", "httpx2"):
    try:
        library = importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    read[name] = library.get(f"http://127.0.0.1:{server.server_port}/", trust_env=False).text
server.shutdown()

import opentelemetry.instrumentation.httpx_sse as ours
from opentelemetry.instrumentation.urllib import URLLibInstrumentor
print("REPORT", json.dumps({
    "read": read,
    "version": ours.__version__,
    "where": ours.__file__,
    "is_on": ours.HTTPXSSEInstrumentor().is_instrumented_by_opentelemetry,
    "other_is_on": URLLibInstrumentor().is_instrumented_by_opentelemetry,
    "modules": [m.name for m in pkgutil.walk_packages(ours.__path__, ours.__name__ + ".")],
}), flush=True)
"""


@dataclass(frozen=True)
class Run:
    """What the probe said under `opentelemetry-instrument`."""

    report: dict[str, Any]
    metrics: str
    """All that the console exporter printed."""
    errors: str


# ------------------------------------------------------------------ what the project says about itself


def metadata_extras(requires: list[str], extra: str) -> list[str]:
    """Requirements of an extra, without spaces and in one order of specifiers."""
    found = []
    for line in requires:
        name, _, marker = line.partition(";")
        if f"extra=='{extra}'" in marker.replace(" ", "").replace('"', "'"):
            found.append("".join(name.split()))
    return sorted(found)


def normal(requirement: str) -> str:
    """As the build backend writes it: specifiers sorted."""
    name = requirement.split(maxsplit=1)[0]
    return name + ",".join(sorted("".join(requirement[len(name) :].split()).split(",")))


def test_extras_are_what_the_package_checks() -> None:
    """`instruments` and `instruments-any` of the distribution are `_instruments` and `_instruments_any`."""
    requires = importlib.metadata.requires(NAME) or []
    assert metadata_extras(requires, "instruments") == sorted(map(normal, package._instruments))
    assert metadata_extras(requires, "instruments-any") == sorted(map(normal, package._instruments_any))
    assert tuple(HTTPXSSEInstrumentor().instrumentation_dependencies()) == package._instruments


def test_one_entry_point() -> None:
    """The distribution brings one instrumentor, called `httpx_sse`."""
    (ours,) = [
        point
        for point in importlib.metadata.entry_points(group="opentelemetry_instrumentor")
        if point.dist is not None and point.dist.name == NAME
    ]
    assert ours.name == "httpx_sse"
    assert ours.load() is HTTPXSSEInstrumentor


# ------------------------------------------------------------------ what is built


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheel and sdist, the wheel built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(CHECKOUT)],
        check=True,
        capture_output=True,
        text=True,
    )
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def wheel_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.e2e
def test_the_wheel_holds_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    """One package under the shared namespaces, which stay without `__init__`; a mark for types, a licence, no tests."""
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = archive.namelist()
    info = f"opentelemetry_instrumentation_httpx_sse-{__version__}.dist-info/"
    assert [name for name in names if not name.startswith((HOME, info))] == []
    assert {HOME + "py.typed", HOME + "__init__.py", info + "licenses/LICENSE"} <= set(names)
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name]


@pytest.mark.e2e
def test_the_wheel_says_what_it_is(built: dict[str, Path]) -> None:
    """Name, version, licence, Python and extras stand in its metadata."""
    about = wheel_metadata(built["wheel"])
    assert (about["Name"], about["Version"], about["License-Expression"]) == (NAME, __version__, "Apache-2.0")
    assert about["Requires-Python"] == ">=3.10"
    assert {"instruments", "instruments-any", "prometheus"} <= set(about.get_all("Provides-Extra", []))
    requires = about.get_all("Requires-Dist", [])
    assert metadata_extras(requires, "instruments-any") == sorted(map(normal, package._instruments_any))


@pytest.mark.e2e
def test_the_sdist_holds_what_is_needed_to_check_it(built: dict[str, Path]) -> None:
    """Source, tests, dashboards and the pages that the README names are in the sdist."""
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tests/conftest.py"}
    assert wanted <= names
    assert f"instrumentation/{HOME}py.typed" in names


# ------------------------------------------------------------------ what is installed


def clean_environ(**more: str) -> dict[str, str]:
    kept = {
        k: v
        for k, v in os.environ.items()
        if k not in {"PYTHONPATH", "PYTHONHOME"} and not k.startswith("OTEL_")
    }
    return kept | {"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"} | more


@pytest.fixture(scope="session")
def homes(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A new environment for each row of `TARGETS`."""
    base = tmp_path_factory.mktemp("environments")

    def make(name: str) -> Path:
        home = base / name.replace(" ", "-")
        venv.create(home, with_pip=True, symlinks=True)
        wanted = [
            str(built["wheel"]),
            *TARGETS[name],
            "opentelemetry-distro",
            "opentelemetry-instrumentation-urllib",
        ]
        subprocess.run(
            [
                str(home / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *wanted,
            ],
            check=True,
            env=clean_environ(),
        )
        return home

    with ThreadPoolExecutor(2) as workers:
        return dict(zip(TARGETS, workers.map(make, TARGETS), strict=True))


@pytest.fixture(scope="session")
def run(homes: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run the probe in one of the environments, away from the checkout."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run_it(name: str, **environ: str) -> Run:
        command = homes[name] / "bin" / "opentelemetry-instrument"
        done = subprocess.run(
            [str(command), str(homes[name] / "bin" / "python"), "-c", PROBE],
            check=True,
            capture_output=True,
            text=True,
            cwd=elsewhere,
            env=clean_environ(OTEL_METRICS_EXPORTER="console", **environ),
        )
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
        return Run(json.loads(line.removeprefix("REPORT ")), done.stdout, done.stderr)

    return run_it


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["httpx", "httpx2", "both"])
def test_with_the_libraries_that_are_there(run: Callable[..., Run], name: str) -> None:
    """Under the real command, whatever library is there is watched, and nothing is said."""
    seen = run(name)
    assert seen.report["read"] == dict.fromkeys(TARGETS[name], "data: hello\n\n")
    assert (seen.report["is_on"], seen.report["other_is_on"]) == (True, True)
    assert "sse.client.stream.duration" in seen.metrics
    assert seen.errors == ""


@pytest.mark.e2e
def test_without_any_library(run: Callable[..., Run]) -> None:
    """Without httpx and httpx2 it stays off, without a word, and other instrumentors load."""
    seen = run("neither")
    assert (seen.report["read"], seen.report["is_on"], seen.report["other_is_on"]) == ({}, False, True)
    assert seen.errors == ""


@pytest.mark.e2e
def test_with_a_library_that_is_too_old(run: Callable[..., Run]) -> None:
    """An unsupported version is left alone, which is said once, and other instrumentors load."""
    seen = run("too old")
    assert seen.report["read"] == {"httpx": "data: hello\n\n"}
    assert (seen.report["is_on"], seen.report["other_is_on"]) == (False, True)
    assert "Traceback" not in seen.errors
    assert [line.split()[0] for line in seen.errors.splitlines()] == ["httpx_sse"]
    assert "fall outside of that range" in seen.errors
    assert "sse.client" not in seen.metrics


@pytest.mark.e2e
@pytest.mark.parametrize("value", ["httpx_sse", "urllib3, httpx_sse"])
def test_disabled_by_name(run: Callable[..., Run], value: str) -> None:
    """`OTEL_PYTHON_DISABLED_INSTRUMENTATIONS` knows it as `httpx_sse`."""
    seen = run("both", OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=value)
    assert (seen.report["is_on"], seen.report["other_is_on"]) == (False, True)
    assert "sse.client" not in seen.metrics


@pytest.mark.e2e
def test_the_wheel_stands_alone(run: Callable[..., Run], homes: dict[str, Path]) -> None:
    """What was imported is the wheel, and every module of it can be imported with nothing but its dependencies."""
    seen = run("httpx")
    assert seen.report["version"] == __version__
    assert str(homes["httpx"]) in seen.report["where"]
    modules = [name for name in seen.report["modules"] if not name.endswith("__main__")]
    assert len(modules) > 10
    subprocess.run(
        [
            str(homes["httpx"] / "bin" / "python"),
            "-c",
            f"import importlib\nfor m in {modules}: importlib.import_module(m)",
        ],
        check=True,
        cwd=homes["httpx"],
        env=clean_environ(),
    )
