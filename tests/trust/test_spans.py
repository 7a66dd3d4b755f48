"""Spans: whatever happens to an exchange, each that was begun ends once, and the hook may write on it before."""

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Span
from tests.conftest import Memory, in_memory
from tests.lifecycle.world import spans, total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._ledger._tables import LIMITS
from opentelemetry.instrumentation.httpx_sse._verdicts import AttemptBegun, Verdict

STREAM = {"content-type": "text/event-stream"}
EVENTS = b"id: 1\ndata: x\n\nid: 2\ndata: y\n\n"
QUESTION = b'id: a1\ndata: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}\n\n'
HEADERS = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": "s"}
Behaviour = Callable[[httpx.Request], httpx.Response]


class Pieces(httpx.SyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces


def streaming(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers=STREAM, stream=Pieces(EVENTS))


def client_of(memory: Memory, behaviour: Behaviour = streaming, **options: Any) -> httpx.Client:
    client = httpx.Client(transport=httpx.MockTransport(behaviour))
    providers = {"tracer_provider": memory.tracer_provider, "meter_provider": memory.meter_provider}
    HTTPXSSEInstrumentor.instrument_client(client, **{**providers, **options})
    return client


class Started(SpanProcessor):
    """Keeps all that begins; slowly, if it is told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.spans: list[ReadableSpan] = []
        self.seconds = seconds

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Keep it."""
        self.spans.append(span)
        time.sleep(self.seconds)


def tracing(started: Started) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(started)
    return provider


def left_alone(client: httpx.Client) -> None:
    """An open response that nobody holds any more."""
    response = client.send(client.build_request("GET", "http://h/"), stream=True)
    next(response.iter_raw())


def test_an_abandoned_stream_has_a_span(memory: Memory) -> None:
    """The leak that one looks for has a trace: with all that is known of other streams, and its end."""
    client = client_of(memory)
    left_alone(client)
    gc.collect()
    assert total(memory, "sse.client.stream.duration", sse_stream_end="abandoned") == 1
    (span,) = spans(memory)
    attributes = dict(span.attributes or {})
    assert attributes["sse.stream.end"] == "abandoned"
    assert attributes["sse.stream.bytes"] == len(EVENTS)


def test_what_a_finalizer_closes_is_not_abandoned(memory: Memory) -> None:
    """Of one heap of garbage nobody knows which finalizer is first: that of the stream, or one that closes it."""
    client = client_of(memory)
    response = client.send(client.build_request("GET", "http://h/"), stream=True)
    bound: Any = response.stream
    exchange, _ = bound._stream._self_parts
    exchange.__del__()
    response.close()
    assert total(memory, "sse.client.stream.duration", sse_stream_end="client_closed") == 1
    assert total(memory, "sse.client.stream.duration") == 1
    (span,) = spans(memory)
    assert (span.attributes or {})["sse.stream.end"] == "client_closed"


def test_what_is_pushed_out_of_a_full_table_ends(memory: Memory) -> None:
    """More exchanges at once than are watched: the span of each ends, as its metric does, and only once."""
    started = Started()
    client = client_of(memory, tracer_provider=tracing(started))
    many = LIMITS["exchanges"] + 20
    asked = [client.send(client.build_request("GET", f"http://h/{n}"), stream=True) for n in range(many)]
    assert total(memory, "sse.client.stream.duration", sse_stream_end="abandoned") == 20
    pushed = [span for span in started.spans if span.end_time is not None]
    assert [dict(span.attributes or {})["sse.stream.end"] for span in pushed] == ["abandoned"] * 20
    for response in asked:
        response.read()
    assert all(span.end_time is not None for span in started.spans)
    assert len(started.spans) == many


def test_links_that_are_forgotten_are_counted(memory: Memory) -> None:
    """The newest span of each logical stream is known of so many streams only."""
    client = client_of(memory)
    many = LIMITS["spans"] + 5
    for n in range(many):
        client.get(f"http://h/{n}")
    assert total(memory, "sse.client.instrumentation.evictions", sse_instrumentation_table="spans") == 5


def test_threads_tell_what_they_have_seen_themselves() -> None:
    """While an exporter is slow, verdicts of one exchange stay in order: no span is begun after its end."""
    memory, started, told = in_memory(), Started(0.0005), []

    def hook(_: Span, verdict: Verdict) -> None:
        if isinstance(verdict, AttemptBegun):
            told.append(threading.get_ident())

    client = client_of(memory, tracer_provider=tracing(started), verdict_hook=hook)

    def work(_: int) -> int:
        before = told.count(threading.get_ident())
        client.get("http://h/")
        return told.count(threading.get_ident()) - before

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(work, range(800))) == {1}
    assert all(span.end_time is not None for span in started.spans)


@pytest.mark.parametrize(
    ("version", "shown", "is_probed"),
    [("2025-06-18", "2025-06-18", True), ("2099-01-01", "2099-01-01", False), ("no date", "_OTHER", True)],
)
def test_all_spans_of_a_session_name_one_version(
    memory: Memory, version: str, shown: str, *, is_probed: bool
) -> None:
    """What the client says, as the metrics have it, on streams, answers, and probes where there are sessions."""

    def behave(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content or b"{}")
        if request.method == "GET":
            return httpx.Response(200, headers=STREAM, stream=Pieces(b""))
        if "method" not in body:
            return httpx.Response(202)
        return httpx.Response(200, headers=STREAM, stream=Pieces(QUESTION))

    client = client_of(memory, behave)
    headers = {**HEADERS, "MCP-Protocol-Version": version}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
    client.post("http://h/mcp", json=call, headers=headers)
    client.get("http://h/mcp", headers={**headers, "Last-Event-ID": "a1"})
    client.post("http://h/mcp", json={"jsonrpc": "2.0", "id": "q", "result": {}}, headers=headers)
    found = spans(memory, "sse.")
    names = {span.name.partition(" ")[0] for span in found}
    assert names == {"sse.stream", "sse.answer", *(["sse.probe"] if is_probed else [])}
    assert {(span.attributes or {}).get("mcp.protocol.version") for span in found} == {shown}


def test_an_error_in_a_fine_status_is_no_status(memory: Memory) -> None:
    """`error.type` names a class of errors: of a 200 that refuses an answer, what became of the answer."""

    def behave(request: httpx.Request) -> httpx.Response:
        if "method" in json.loads(request.content):
            return httpx.Response(200, headers=STREAM, stream=Pieces(QUESTION))
        error = {"jsonrpc": "2.0", "id": "q", "error": {"code": -32602, "message": "unknown request id"}}
        return httpx.Response(200, json=error)

    client = client_of(memory, behave)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}
    client.post("http://h/mcp", json=call, headers=HEADERS)
    client.post("http://h/mcp", json={"jsonrpc": "2.0", "id": "q", "result": {}}, headers=HEADERS)
    (span,) = spans(memory, "sse.answer")
    attributes = dict(span.attributes or {})
    assert attributes["error.type"] == attributes["sse.answer.outcome"] != "acknowledged"


def test_the_hook_writes_on_every_span(memory: Memory) -> None:
    """Of each span that ends one verdict comes while it still records."""

    def hook(span: Span, verdict: Verdict) -> None:
        if span.is_recording():
            span.set_attribute("example.verdict", type(verdict).__name__)

    def behave(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content or b"{}")
        if request.method == "GET" or body.get("method") == "tools/call":
            return httpx.Response(200, headers=STREAM, stream=Pieces(QUESTION))
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": body["id"], "result": {}})

    client = client_of(memory, behave, verdict_hook=hook)
    headers = {**HEADERS, "MCP-Protocol-Version": "2025-06-18"}
    for message in (
        {"id": 1, "method": "tools/call"},
        {"id": "q", "result": {}},
        {"id": 2, "method": "ping"},
    ):
        client.post("http://h/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)
    written = {span.name: (span.attributes or {}).get("example.verdict") for span in spans(memory, "sse.")}
    assert written == {
        "sse.stream response": "AttemptEnded",
        "sse.answer": "AnswerSettled",
        "sse.probe": "Probed",
    }
