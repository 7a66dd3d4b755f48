"""Unmodified MCP clients under the instrumentation, in front of the demo's faulty servers, for a Prometheus to scrape.

The environments of the end-to-end tests are used; the clients and servers are those of the demo.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.e2e.demo.runner import Children
from tests.e2e.environments import python_of
from tests.ports import free_port

SERVER_ENVIRONMENT: Final = "mcp2"
CLIENTS: Final = {
    "mcp1": ("mcp1", "tests.e2e.demo.client_mcp1"),
    "mcp2": ("mcp2", "tests.e2e.demo.client_mcp2"),
    "agent": ("mcp2", "tests.dashboards.live.agent"),
}
"""The environment and the module of each client."""

_SERVE: Final = (
    "import sys; from tests.e2e.demo import faults, server; "
    "faults.QUIET_SECONDS = float(sys.argv.pop(1)); server.main()"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One server with a fault, and clients that work with it for some seconds."""

    fault: str
    tool: str
    clients: tuple[str, ...] = ("mcp2",)
    arguments: tuple[str, ...] = ()
    quiet: float = 2.0
    """Seconds after which the fault `quiet` ends a stream."""


@dataclass(frozen=True, slots=True)
class Running:
    """A case at work: where its server listens, and where its clients are scraped."""

    case: Case
    port: str
    targets: tuple[str, ...]


@contextmanager
def at_work(cases: dict[str, Case], *, seconds: float) -> Iterator[dict[str, Running]]:
    """All cases at once, for so long; what still runs at the end of the block is ended."""
    children = Children()
    with ExitStack() as stacked:
        log = stacked.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        stacked.callback(children.close)
        started: dict[str, Running] = {}
        for name, case in cases.items():
            server = stacked.enter_context(children.running(_server(case, seconds), _environment(), log))
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            ports = [str(free_port()) for _ in case.clients]
            for client, port in zip(case.clients, ports, strict=True):
                command = _client(client, case, seconds, url)
                stacked.enter_context(children.running(command, _environment(port), log))
            targets = tuple(f"127.0.0.1:{port}" for port in ports)
            started[name] = Running(case, url.rpartition(":")[2].partition("/")[0], targets)
        yield started


def _server(case: Case, seconds: float) -> list[str]:
    python = str(python_of(SERVER_ENVIRONMENT))
    return [python, "-c", _SERVE, str(case.quiet), "--fault", case.fault, "--seconds", str(seconds + 60)]


def _client(client: str, case: Case, seconds: float, url: str) -> list[str]:
    environment, module = CLIENTS[client]
    python = python_of(environment)
    instrument = str(python.with_name("opentelemetry-instrument"))
    work = [instrument, str(python), "-m", module]
    return [*work, "--tool", case.tool, "--seconds", str(seconds), *case.arguments, url]


def _environment(port: str | None = None) -> dict[str, str]:
    """Ours without what would reach into a child, and with the exporter's port."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OTEL_", "PYTHON")) and not key.lower().endswith("_proxy")
    }
    if port is None:
        return kept
    return {
        **kept,
        "OTEL_METRICS_EXPORTER": "prometheus",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": port,
    }
