"""Several processes: who is watched, who can be scraped, and what is left of it when everybody pushes."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port

from .environment import python

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
PARENT, CHILD = 1, 2
REPLAYS = "sse.client.empty_replays"
PATIENCE = 60
"""Seconds after which something that must come is missed."""


class Streams(BaseHTTPRequestHandler):
    """A call's stream ends after its first cursor; a resume brings nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._stream(b"id: e1\ndata:\n\n")

    def do_GET(self) -> None:
        self._stream(b"")

    def _stream(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def streams() -> Iterator[str]:
    """The address of a server of event streams."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Streams)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass(frozen=True)
class Receiver:
    """A receiver of OTLP that runs."""

    port: int

    def told(self) -> dict[str, float]:
        """By instance, how many empty replays it has told of; helpers of `multiprocessing` have none."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=10) as page:
            seen: dict[str, dict[str, float]] = json.load(page)
        told = {instance: numbers.get(REPLAYS, 0.0) for instance, numbers in seen.items()}
        return {instance: number for instance, number in told.items() if number}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of OTLP, for one test."""
    command = [str(python()), str(HERE / "receiver.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        if running.stdout is None:
            raise AssertionError("no output")
        try:
            yield Receiver(int(running.stdout.readline()))
        finally:
            running.kill()


def environment(**more: str) -> dict[str, str]:
    """The variables of a program whose traces and logs go nowhere."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PYTHON"))}
    return {**kept, "OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", **more}


def pushing(to: Receiver, **more: str) -> dict[str, str]:
    """The variables of the recipe."""
    return environment(
        OTEL_METRICS_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{to.port}",
        # No export is under way when a process forks: its lock would stay locked in the child for ever, and
        # nothing that the child counts would be exported (SDK 1.45).
        OTEL_METRIC_EXPORT_INTERVAL="4000",
        **more,
    )


def run(how: str, url: str, variables: dict[str, str], *, launched: bool = True) -> list[dict[str, Any]]:
    """What the processes of a program tell, children first."""
    home = python().parent
    launcher = [str(home / "opentelemetry-instrument")] if launched else []
    command = [*launcher, str(home / "python"), str(HERE / "program.py"), how, url]
    done = subprocess.run(
        command, env=variables, check=False, text=True, timeout=PATIENCE * 2, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def until(fits: Callable[[], bool], said: Callable[[], object]) -> None:
    """Wait for what must come."""
    give_up = time.monotonic() + PATIENCE
    while not fits():
        assert time.monotonic() < give_up, said()
        time.sleep(0.1)


# ------------------------------------------------------------------ scraped


def scraped_variables() -> dict[str, str]:
    return environment(OTEL_METRICS_EXPORTER="prometheus", OTEL_EXPORTER_PROMETHEUS_PORT=str(free_port()))


@pytest.mark.parametrize("how", ["subprocesses", "pool_spawn"])
def test_a_child_that_inherits_the_port_is_not_watched_and_the_parent_is(streams: str, how: str) -> None:
    """The port is taken, so nothing is instrumented in the child; it runs all the same, and the parent counts."""
    child, parent = run(how, streams, scraped_variables())
    assert not child["watched"]
    assert parent["watched"]
    assert parent["scraped"] == {"sse_client_empty_replays_total": PARENT}


@pytest.mark.parametrize("how", ["fork", "pool_fork"])
def test_a_forked_child_is_watched_but_nobody_can_scrape_it(streams: str, how: str) -> None:
    """It has no endpoint of its own, and the parent's shows the parent's counts alone; nothing blocks."""
    child, parent = run(how, streams, scraped_variables())
    assert child["watched"]
    assert parent["scraped"] == {"sse_client_empty_replays_total": PARENT}


# ------------------------------------------------------------------ pushed


@pytest.mark.parametrize("how", ["subprocesses", "pool_spawn", "fork", "pool_fork"])
def test_pushed_each_process_tells_its_own_counts_as_its_own_instance(
    streams: str, receiver: Receiver, how: str
) -> None:
    """Parent and child have different ids of instance, and the sum of what they tell is what happened."""
    told = run(how, streams, pushing(receiver))
    assert all(one["watched"] for one in told)
    until(lambda: sorted(receiver.told().values()) == [PARENT, CHILD], receiver.told)


SERVERS = {
    "uvicorn": ("uvicorn", "program:asgi", "--workers", "2", "--log-level", "warning", "--port", "{port}"),
    "gunicorn": (
        "gunicorn",
        "program:wsgi",
        "--workers",
        "2",
        "--log-level",
        "warning",
        "--bind",
        "127.0.0.1:{port}",
    ),
}


@contextlib.contextmanager
def serving(name: str, variables: dict[str, str]) -> Iterator[str]:
    """A web server with two workers, each watched; its address."""
    port = free_port()
    home = python().parent
    program, *arguments = (part.format(port=port) for part in SERVERS[name])
    command = [str(home / "opentelemetry-instrument"), str(home / program), *arguments]
    with subprocess.Popen(command, env=variables, cwd=HERE, start_new_session=True) as running:
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)


@pytest.mark.parametrize("name", SERVERS)
def test_pushed_the_workers_of_a_web_server_are_instances_of_their_own(
    streams: str, receiver: Receiver, name: str
) -> None:
    """Every worker tells its own requests, whether it was spawned or forked; together they tell all."""
    asked: dict[str, int] = {}

    def ask(url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=20) as page:  # noqa: S310 - our own
                worker = page.read().decode()
        except OSError:
            return False
        asked[worker] = asked.get(worker, 0) + 1
        return len(asked) > 1

    with serving(name, pushing(receiver, STREAMS=streams)) as url:
        until(lambda: ask(url), lambda: asked)
        until(
            lambda: sorted(receiver.told().values()) == sorted(asked.values()),
            lambda: (receiver.told(), asked),
        )


# ------------------------------------------------------------------ several workers scraped as one


def test_a_meter_without_observable_instruments_is_no_error(streams: str, tmp_path: Path) -> None:
    """The library that shares counters between workers has none; what can be counted is counted."""
    variables = environment(PROMETHEUS_MULTIPROC_DIR=str(tmp_path))
    child, parent = run("shared_directory", streams, variables, launched=False)
    assert child["watched"]
    assert parent["watched"]
