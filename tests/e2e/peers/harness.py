"""Real peers for the length of a test: Node packages, servers, clients with and without the instrumentation."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import pytest
from tests.e2e.demo.runner import Children
from tests.e2e.environments import HOME, python_of
from tests.e2e.peers.plan import PLAN, REPORT, Plan, Report

NODE_PACKAGES = {
    "conformance": "@modelcontextprotocol/conformance@0.1.13",
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
}
STARTING_SECONDS = 30.0
RUNNING_SECONDS = 90.0
WORKERS = 6
INSTRUMENTED = {
    "OTEL_METRICS_EXPORTER": "prometheus",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
    "OTEL_EXPORTER_PROMETHEUS_PORT": "0",  # any: a client reads its own registry at the end
}
GUARDS: dict[str, dict[str, str]] = {"off": {}, "on": {"OTEL_PYTHON_HTTPX_SSE_GUARD": "on"}}
"""The environment of a client with the guard off, as it is unless asked for, and on."""
CLIENT = "tests.e2e.peers.inside.client"

needs_npm = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
T = TypeVar("T")


class PeerError(RuntimeError):
    """A peer did not do its part; the message ends with what it had to say."""


# ---------------------------------------------------------------- jobs side by side


@contextlib.contextmanager
def at_work(
    jobs: Mapping[str, Callable[[Children], T]], request: pytest.FixtureRequest
) -> Iterator[Mapping[str, Future[T]]]:
    """Those jobs whose names the chosen tests of a module ask for, side by side: they mostly wait.

    A test asks by its parameters, joined by a hyphen. What still runs at the end is ended.
    """
    ids = {item.name.partition("[")[2].removesuffix("]") for item in request.session.items}
    chosen = {name: job for name, job in jobs.items() if name in ids}
    with contextlib.closing(Children()) as children, ThreadPoolExecutor(WORKERS) as pool:
        try:
            yield {name: pool.submit(job, children) for name, job in chosen.items()}
        finally:
            children.close()
            pool.shutdown(cancel_futures=True)


# ---------------------------------------------------------------- Node


@functools.cache
def node_package(name: str) -> Path:
    """The home of an npm package, installed once for this checkout."""
    spec = NODE_PACKAGES[name]
    home, stamp = HOME / f"npm-{name}", HOME / f"npm-{name}" / "installed"
    package = home / "node_modules" / spec.rpartition("@")[0]
    HOME.mkdir(exist_ok=True)
    with (HOME / f"npm-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text(encoding="ascii") != spec:
            shutil.rmtree(home, ignore_errors=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), spec]
            done = subprocess.run(command, check=False, text=True, capture_output=True, timeout=300)
            if done.returncode:
                raise PeerError(f"npm package {spec} cannot be installed\n{done.stderr[-4000:]}")
            stamp.write_text(spec, encoding="ascii")
    return package


# ---------------------------------------------------------------- servers


@contextlib.contextmanager
def serving(
    children: Children, command: Sequence[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A server for the length of a block, from when it listens. Its host and port."""
    with _log() as log, children.running(command, {**plain(), **(environment or {})}, log) as child:
        until = time.monotonic() + STARTING_SECONDS
        while not _listens(port):
            if child.poll() is not None or time.monotonic() > until:
                raise PeerError(f"{command} does not listen\n{_tail(log)}")
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


# ---------------------------------------------------------------- clients


@dataclass(frozen=True, slots=True)
class Ended:
    """A client that has ended: what it reports, its exit status, what it printed and the end of its log."""

    report: Report
    status: int
    printed: str
    noise: str


def client_command(environment: str, *, instrumented: bool, module: str = CLIENT) -> list[str]:
    """How a client is started, its address yet to come."""
    python = python_of(environment)
    launcher = [str(python.with_name("opentelemetry-instrument"))] if instrumented else []
    return [*launcher, str(python), "-m", module, environment]


def run_client(
    children: Children,
    environment: str,
    url: str,
    plan: Plan,
    *,
    options: Mapping[str, str] | None = None,
    module: str = CLIENT,
) -> Report:
    """An instrumented client from its start to its end."""
    command = [*client_command(environment, instrumented=True, module=module), url]
    return run(children, command, plan, {**INSTRUMENTED, **(options or {})}).report


def run(children: Children, command: Sequence[str], plan: Plan, environment: Mapping[str, str]) -> Ended:
    """A command that starts a client, which follows a plan and reports."""
    with tempfile.TemporaryDirectory() as folder, _log() as log:
        report = Path(folder) / "report.json"
        told = {**plain(), **environment, PLAN: plan.dump(), REPORT: str(report)}
        with children.running(command, told, log) as child:
            try:
                printed, _ = child.communicate(timeout=RUNNING_SECONDS)
            except subprocess.TimeoutExpired:
                raise PeerError(f"{command} did not end\n{_tail(log)}") from None
        if not report.exists():
            raise PeerError(f"{command} left no report\n{printed[-2000:]}\n{_tail(log)}")
        loaded = Report.load(report.read_text(encoding="utf-8"))
        return Ended(loaded, child.returncode, printed, _tail(log))


def plain() -> dict[str, str]:
    """Our environment without what would reach into a child: other telemetry, other Pythons, proxies."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OTEL_", "PYTHON")) and not key.lower().endswith("_proxy")
    }


@contextlib.contextmanager
def _log() -> Iterator[IO[str]]:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        yield log


def _tail(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-4000:]
