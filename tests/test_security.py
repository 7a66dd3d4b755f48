"""No secret leaves by any door: not by metrics, spans or logs, nor by a port that is open to others."""

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.conftest import Memory
from tests.ports import free_port

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._spans import Identifiers

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

CHECKOUT = Path(__file__).resolve().parents[1]

DEPENDENCIES = {
    "opentelemetry-api": "what spans and metrics are made with, and nothing else of OpenTelemetry's at run time",
    "opentelemetry-instrumentation": "the base class that the launcher calls, and the switch that suppresses",
    "opentelemetry-util-http": "the list of URLs that are left alone, read as all instrumentations read it",
    "wrapt": "the proxy around a response's stream that is an instance of its own class",
    "msgspec": "walks over JSON without keeping payload, in C, with a bound on depth; no dependency of its own",
}
"""What is installed beside this package, each with its reason. An audit needs the advisories of the day; this list
is what it has to look at."""

SECRETS = {
    "session": "sess-SECRET-1",
    "event id": "evt-SECRET-2",
    "token": "Bearer SECRET-3",
    "query": "SECRET-4",
    "argument": "SECRET-5",
    "result": "SECRET-6",
    "error": "SECRET-7",
    "question": "SECRET-8",
    "request id": "req-SECRET-9",
    "body": "SECRET-10",
    "path": "SECRET-11",
}


def test_each_dependency_has_a_reason() -> None:
    """Nothing is needed at run time that is not listed here with what for, and nothing is listed in vain."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {re.split(r"[ ~<>=!;\[]", wanted)[0] for wanted in project["dependencies"]} == set(DEPENDENCIES)


# ------------------------------------------------------------------ identifiers


def hashed(key: str | None, value: str) -> object:
    (shown,) = Identifiers("hash", key).session(value).values()
    return shown


def test_hashes_are_the_same_under_one_key() -> None:
    """Two processes that share a key can be compared."""
    assert hashed("k", "session-1") == hashed("k", "session-1")


def test_hashes_differ_between_keys_and_values() -> None:
    """Without the key a hash cannot be tried out, and two identifiers do not look alike."""
    shown = {hashed(key, value) for key in ("k", "l") for value in ("session-1", "session-2")}
    assert len(shown) == 4
    assert all(re.fullmatch(r"[0-9a-f]{16}", str(one)) for one in shown)


def test_without_a_key_the_hashes_of_two_installations_never_match() -> None:
    """Each process has a random key of its own."""
    assert hashed(None, "session-1") != hashed(None, "session-1")


# ------------------------------------------------------------------ logs


def test_the_log_of_a_contained_error_names_its_type_and_not_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The text of an error may quote what passed by."""
    with caplog.at_level(logging.DEBUG):
        Containment(strict=False).contain("receive", ValueError("SECRET"))
    assert "ValueError" in caplog.text
    assert "SECRET" not in caplog.text
    assert not any(record.exc_info for record in caplog.records)


def test_an_error_in_the_middle_of_a_body_leaves_no_text_in_any_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, memory: Memory
) -> None:
    """From the seam to the log: the program gets its bytes, the log gets a type."""

    def broken(exchange: Exchange, chunk: bytes) -> None:
        raise ValueError(f"SECRET in {chunk!r} of {exchange}")

    monkeypatch.setattr(Containment, "strict_by_default", False)
    monkeypatch.setattr(Exchange, "receive", broken)
    with caplog.at_level(logging.DEBUG), client_of(memory) as client:
        assert b"SECRET" in client.get("/stream", headers={"Accept": "text/event-stream"}).content
    assert "ValueError" in caplog.text
    ours = [r for r in caplog.records if r.name.startswith("opentelemetry")]
    assert not any("SECRET" in r.getMessage() or r.exc_info for r in ours)


# ------------------------------------------------------------------ telemetry


def answered(request: httpx.Request) -> httpx.Response:
    """A server that quotes secrets in everything."""
    events = {"Content-Type": "text/event-stream", "Mcp-Session-Id": SECRETS["session"]}
    message = {"jsonrpc": "2.0", "id": "q-" + SECRETS["question"], "method": "elicitation/create"}
    result = {"jsonrpc": "2.0", "id": SECRETS["request id"], "result": {"text": SECRETS["result"]}}
    body = "".join(
        f"id: {SECRETS['event id']}{n}\ndata: {json.dumps(one)}\n\n"
        for n, one in enumerate(
            (
                {**message, "params": {"message": SECRETS["question"]}},
                {**message, "params": {}},
                result,
                result,
            )
        )
    )
    if request.headers.get("last-event-id"):
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": SECRETS["error"]}}
        return httpx.Response(404, stream=httpx.ByteStream(json.dumps(error).encode()))
    if b"elicitation" in request.content or b"q-" in request.content:
        return httpx.Response(400, stream=httpx.ByteStream(SECRETS["body"].encode()))
    return httpx.Response(200, headers=events, stream=httpx.ByteStream(body.encode()))


def client_of(memory: Memory) -> "Watched":
    return Watched(memory)


class Watched:
    """A client that is watched while a `with` block lasts."""

    def __init__(self, memory: Memory) -> None:
        self.client = httpx.Client(transport=httpx.MockTransport(answered), base_url="http://example.org")
        self.memory = memory

    def __enter__(self) -> httpx.Client:
        HTTPXSSEInstrumentor.instrument_client(
            self.client,
            meter_provider=self.memory.meter_provider,
            tracer_provider=self.memory.tracer_provider,
        )
        return self.client

    def __exit__(self, *_: object) -> None:
        HTTPXSSEInstrumentor.uninstrument_client(self.client)
        self.client.close()


def told(memory: Memory) -> Iterator[str]:
    """Every text of metrics and spans."""
    reader: InMemoryMetricReader = memory.reader
    data = reader.get_metrics_data()
    if data is not None:
        yield data.to_json()
    for span in memory.exporter.get_finished_spans():
        yield str(span.to_json())


def test_nothing_that_passes_by_is_told(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """Identifiers, tokens, queries, paths, arguments, questions, results and error texts stay where they are."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        "Mcp-Session-Id": SECRETS["session"],
        "Authorization": SECRETS["token"],
    }
    url = f"/{SECRETS['path']}?key={SECRETS['query']}"
    call = {"name": SECRETS["argument"], "arguments": {"a": SECRETS["argument"]}}
    request = {"jsonrpc": "2.0", "id": SECRETS["request id"], "method": "tools/call", "params": call}
    answer = {"jsonrpc": "2.0", "id": "q-" + SECRETS["question"], "result": {"a": SECRETS["argument"]}}
    with caplog.at_level(logging.DEBUG, "opentelemetry"), client_of(memory) as client:
        client.post(url, json=request, headers=headers)
        client.post(url, json=answer, headers=headers)
        client.get(url, headers={**headers, "Last-Event-ID": SECRETS["event id"] + "3"})
        client.post(url, json={**request, "method": f"own/{SECRETS['argument']}", "id": 7}, headers=headers)
    texts = [*told(memory), caplog.text]
    assert len(texts) > 4
    assert not [text for text in texts if "SECRET" in text]


# ------------------------------------------------------------------ the port


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux to see who listens where")
def test_metrics_are_served_to_this_machine_alone(tmp_path: Path) -> None:
    """As the README switches it on, the endpoint listens on the loopback address and on no other."""
    port = free_port()
    variables = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")} | {
        "OTEL_METRICS_EXPORTER": "prometheus",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_PROMETHEUS_PORT": str(port),
    }
    launcher = Path(sys.executable).with_name("opentelemetry-instrument")
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('on', flush=True)\nsys.stdin.read()\n", encoding="utf-8")
    with subprocess.Popen(
        [str(launcher), sys.executable, str(program)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "on\n"
        found = listening(port)
        running.communicate("")
    assert found in ({"0100007F"}, {"0100007F", "0" * 24 + "01000000"})


def listening(port: int) -> set[str]:
    """The addresses, in the kernel's hex, at which anybody listens on a port."""
    give_up = time.monotonic() + 30
    found: set[str] = set()
    while not found and time.monotonic() < give_up:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                address, _, number = line.split()[1].partition(":")
                if int(number, 16) == port and line.split()[3] == "0A":
                    found.add(address)
    return found
