"""Nothing of what peers say leaves the process: marked secrets go in everywhere, and telemetry is searched for them.

Each exchange of `SCRIPT` really takes place, over loopback, with every client family. Whatever a peer can choose is
marked: parameters, results, error texts and codes, string ids, event ids and types, cursors, session ids, paths and
queries, credentials, error bodies, unknown methods, tokens, headers, and what is no protocol at all.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.conftest import FAMILIES, Family, Memory

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._names import METRICS

MARK = "s3cr3t"
LAST_EVENT_ID = "sse.stream.last_event_id"
ALL_NAMES = {
    "sse.stream", "sse.probe", "sse.answer",
    "sse.reprompt", "sse.response.duplicate", "sse.empty_replay", "sse.retry_after_terminal",
}  # fmt: skip
SSE, JSON = "text/event-stream", "application/json"
WHO = "x-exchange"
GIVE_UP_SECONDS = 0.1


def secret(name: str) -> str:
    """A marked value; a name that is given twice is the same value."""
    return f"{MARK}-{name}"


HIDDEN = {
    secret("key"): [secret("value"), {secret("inner key"): secret("inner value")}],
    "text": secret("text"),
}
META = {"_meta": {"progressToken": secret("token"), secret("meta"): secret("meta value")}}
FORM = {
    "message": secret("question"),
    "requestedSchema": {"type": "object", "properties": {secret("field"): {"type": "string"}}},
    **META,
}
ERROR = {"code": -32000, "message": secret("error text"), "data": HIDDEN}


def call(name: str, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    params = {"name": secret("tool"), "arguments": HIDDEN, **META, **params}
    return {"jsonrpc": "2.0", "id": secret(name), "method": method, "params": params}


def told(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {**HIDDEN, **params}}


def done(name: str, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": secret(name), "result": {"content": HIDDEN, **result}}


def failed(name: str | None, **error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name and secret(name), "error": {**ERROR, **error}}


def event(data: Any, event_id: str = "", event_type: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    lines = [
        f"id: {secret(event_id)}" if event_id else "",
        f"event: {event_type}" if event_type else "",
        f"data: {text}",
    ]
    return "\n".join(line for line in lines if line) + "\n\n"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, and what it is answered with."""

    method: str
    body: Any = None
    reply: Any = ""
    status: int = 200
    type: str = ""
    cursor: str = ""
    session: str | None = "session"
    version: str = "2025-11-25"
    path: str = "mcp"
    cut: bool = False
    """The connection is closed inside the last event."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def sent(self) -> dict[str, str]:
        sent = {
            "accept": f"{SSE}, {JSON}", "content-type": JSON, "authorization": f"Bearer {secret('bearer')}",
            "cookie": secret("cookie"), "mcp-name": secret("tool"), "mcp-method": secret("method header"),
        }  # fmt: skip
        sent |= {"mcp-session-id": secret(self.session)} if self.session else {}
        sent |= {"mcp-protocol-version": self.version} if self.version else {}
        sent |= {"last-event-id": secret(self.cursor)} if self.cursor else {}
        return sent | dict(self.headers)

    @property
    def media(self) -> str:
        return self.type or (SSE if isinstance(self.reply, str) else JSON)


def post(body: Any, reply: Any = "", **options: Any) -> Exchange:
    return Exchange("POST", body, reply, **options)


def get(reply: Any = "", **options: Any) -> Exchange:
    return Exchange("GET", None, reply, **options)


PROMPT = call("prompt", "elicitation/create", **FORM)
ANSWER = done("prompt", action="accept")
NEEDS_INPUT = done("round", resultType="input_required", requestState=secret("state"),
                   inputRequests={secret("asked"): {"method": "elicitation/create", "params": FORM}})  # fmt: skip
NEEDS_URL = {
    "elicitations": [{"mode": "url", "url": f"https://{MARK}.example/{MARK}", "elicitationId": secret("e")}]
}

SCRIPT = (
    # A session of 2025-11-25: a call, its prompt, replays, a refused answer, the end of the session.
    post(call("first", "initialize"), done("first", protocolVersion="2025-11-25"), session=None, version="",
         headers={"x-reply-session": secret("session")}),
    post(told("notifications/initialized"), status=202, type=JSON),
    post(call("1"), f": {secret('comment')}\n\n" + event("", "e1")
         + event(told(secret("a method")), "e2", secret("type"))
         + event(told("notifications/progress", progressToken=secret("token")), "e3")
         + event(PROMPT, "e4") + event(call("other", secret("another method")), "e5")
         + event(f"{{{secret('no json')}", "e6") + f"retry: {MARK}\nid: {secret('e7')}\n\n" + event(done("1")),
         cut=True),
    post(ANSWER, failed("prompt", message=f"{MARK} unknown request"), status=404),
    get(event(PROMPT, "e4") + event(told("notifications/cancelled", requestId=secret("prompt"), reason=MARK), "e8"),
        cursor="e7"),
    get("", cursor="e8"),
    get(event(PROMPT, "e4") + event(failed("1"), "e9") + event(failed("1"), "e10"), cursor="e8"),
    get(failed(None, message=f"event {MARK} not found"), cursor="e9", status=404),
    get("<html>" + MARK, cursor="e9", type="text/html"),
    post(ANSWER, status=202, type=JSON),
    post(ANSWER, failed("prompt"), status=200),
    get(event(PROMPT, "e11"), cursor="e10"),
    post(call("url"), failed("url", code=-32042, data=NEEDS_URL)),
    post(call("url again"), failed("url again", code=-32042, data=NEEDS_URL)),
    post(call("orphan"), done("nobody asked")),
    post(call("odd"), failed("odd", code=secret("code"))),
    get(event(told("notifications/message", data=HIDDEN), "e12")),
    get(failed(None, message=f"{MARK} already active"), status=409),
    post(call("ping", "ping"), failed(None, message=f"Session {MARK} not found"), status=404),
    post(call("late"), f"{MARK} session expired", status=410, type="text/plain"),
    post(call("revived"), done("revived")),
    Exchange("DELETE", reply=f"{MARK} down", status=503, type="text/plain"),
    # A session that lives on after a replay, and ends as it should; a call that nothing can resume.
    post(call("2"), event("", "f1"), session="second"),
    get(event(done("2"), "f2"), cursor="f1", session="second"),
    post(call("ping2", "ping"), done("ping2"), session="second"),
    post(call("3"), event(told("notifications/progress")), session="second", cut=True),
    Exchange("DELETE", reply="", status=200, type=JSON, session="second"),
    # One that dies of its replay.
    post(call("4"), event("", "h1"), session="third"),
    get(event(done("4"), "h2"), cursor="h1", session="third"),
    post(call("5"), failed(None, message=f"session {MARK} not found"), status=404, session="third"),
    # The other revisions: input in rounds, batches, two endpoints.
    post(call("round"), NEEDS_INPUT, version="2026-07-28", session=None),
    post(call("round", requestState=secret("state"), inputResponses={secret("asked"): HIDDEN}), NEEDS_INPUT,
         version="2026-07-28", session=None),
    post(call("round", requestState=secret("state"), inputResponses={secret("asked"): HIDDEN}), done("round"),
         version="2026-07-28", session=None),
    post(call("listen", "subscriptions/listen", filter=HIDDEN), event(told("notifications/subscriptions/acknowledged")),
         version="2026-07-28", session=None, cut=True),
    post([call("b1"), call("b2"), told("notifications/progress")], event([done("b1"), failed("b2")], "g1"),
         version="2025-03-26", session="batch"),
    get(event(f"/{MARK}/messages?{MARK}={MARK}", event_type="endpoint") + event(done("l1")), session=None, version="",
        path=f"{MARK}/sse"),
    post(call("l1"), status=202, type=JSON, session=None, version="", path=f"{MARK}/messages?{MARK}={MARK}"),
    # Plain events: a stream that is cut and opened again, and one that is refused.
    get(event(secret("plain"), "p1", secret("kind")) + event(HIDDEN, "p2"), cut=True, session=None, version="",
        path=f"{MARK}/feed?{MARK}={MARK}#{MARK}"),
    get(event(HIDDEN, "p3"), cursor="p1", session=None, version="", path=f"{MARK}/feed?{MARK}={MARK}"),
    get(f"{MARK} is not here", cursor="p3", status=403, type="text/plain", session=None, version="",
        path=f"{MARK}/feed?{MARK}={MARK}"),
    get("", status=307, session=None, version="", path=MARK, headers={"x-reply-location": f"/{MARK}?{MARK}"}),
    # A question that is asked again and is open in the end.
    post(call("6"), event(PROMPT, "i1"), session="fourth"),
    get(event(PROMPT, "i2"), cursor="i1", session="fourth"),
)  # fmt: skip
VERSIONS = (
    post(call("first"), event(done("first")), version=secret("version"), session="versions"),
    post(
        call("second", "initialize"),
        event(done("second", protocolVersion=secret("agreed"))),
        version="",
        session=None,
    ),
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: tuple[Exchange, ...] = ()

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        exchange = self.script[int(self.headers[WHO])]
        self.send_response(exchange.status, secret("reason"))
        self.send_header("content-type", exchange.media)
        self.send_header("set-cookie", secret("cookie"))
        self.send_header("connection", "close")
        for name in ("session", "location"):
            if value := self.headers.get(f"x-reply-{name}"):
                self.send_header("mcp-session-id" if name == "session" else name, value)
        body = (exchange.reply if isinstance(exchange.reply, str) else json.dumps(exchange.reply)).encode()
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            if body:
                self.wfile.write(f"{len(body):x}\r\n".encode() + body[: -9 if exchange.cut else None])
            if not exchange.cut:
                self.wfile.write(b"\r\n0\r\n\r\n" if body else b"0\r\n\r\n")

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - likewise
        pass


@contextmanager
def serving(script: tuple[Exchange, ...]) -> Iterator[str]:
    """A server that tells a script, at a URL with a user and a password."""
    handler = type("Handler", (_Handler,), {"script": script})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://{MARK}:{MARK}@127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def play(family: Family, url: str, script: tuple[Exchange, ...], before_close: Callable[[], None]) -> None:
    """Every exchange in order, each read to its end."""

    async def one(client: Any, number: int, exchange: Exchange) -> None:
        content = None if exchange.body is None else json.dumps(exchange.body)
        headers = {**exchange.sent(), WHO: str(number)}
        request = client.build_request(
            exchange.method, f"{url}/{exchange.path}", headers=headers, content=content
        )
        with suppress(family.module.HTTPError):
            if family.is_async:
                response = await client.send(request, stream=True)
                try:
                    await response.aread()
                finally:
                    await response.aclose()
            else:
                response = client.send(request, stream=True)
                try:
                    response.read()
                finally:
                    response.close()

    async def all_of_them() -> None:
        client = family.client()
        for number, exchange in enumerate(script):
            await one(client, number, exchange)
        before_close()
        await client.aclose() if family.is_async else client.close()

    family.run(all_of_them)


@dataclass(frozen=True, slots=True)
class Told:
    """All that was exported."""

    metrics: dict[str, str]
    """By name: every point, as text."""
    spans: tuple[Any, ...]
    logs: str


def watched(
    family: Family,
    script: tuple[Exchange, ...],
    memory: Memory,
    caplog: pytest.LogCaptureFixture,
    capture_ids: str,
) -> Told:
    """Everything that is exported while a script is told."""
    instrumentor = HTTPXSSEInstrumentor()
    metrics: dict[str, str] = {}

    def look() -> None:
        data = memory.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    metrics[metric.name] = metrics.get(metric.name, "") + metric.to_json()

    def look_twice() -> None:
        """First at what is going on; then at what is lost when nobody comes back for it."""
        look()
        time.sleep(2 * GIVE_UP_SECONDS)
        look()

    with serving(script) as url, caplog.at_level(logging.DEBUG):
        instrumentor.instrument(
            meter_provider=memory.meter_provider,
            tracer_provider=memory.tracer_provider,
            capture_ids=capture_ids,
            give_up_after=GIVE_UP_SECONDS,
        )
        try:
            play(family, url, script, look_twice)
            look()
        finally:
            instrumentor.uninstrument()
    # The libraries' own records name URLs; ours must not.
    ours = [record for record in caplog.records if record.name.startswith("opentelemetry")]
    logs = "\n".join(f"{record.getMessage()} {record.exc_text} {record.args}" for record in ours)
    return Told(metrics, memory.exporter.get_finished_spans(), logs)


def leaks(told: Told) -> dict[str, set[str]]:
    """Where the mark is found: metrics by name, keys of attributes, other parts of spans, logs."""
    carriers = [carrier for span in told.spans for carrier in (span, *span.events, *span.links)]
    attributes = [(key, value) for carrier in carriers for key, value in (carrier.attributes or {}).items()]
    parts = [
        f"{span.name} {span.status.description} {[each.name for each in span.events]}" for span in told.spans
    ]
    found = {
        "metrics": {name for name, text in told.metrics.items() if MARK in text.lower()},
        "attributes": {key for key, value in attributes if MARK in f"{key} {value}".lower()},
        "spans": {part for part in parts if MARK in part.lower()},
        "logs": {line for line in told.logs.splitlines() if MARK in line.lower()},
    }
    return {where: what for where, what in found.items() if what}


@pytest.fixture(params=[name for name in FAMILIES if not name.endswith("trio")])
def family(request: pytest.FixtureRequest) -> Family:
    """What is said does not depend on who drives the asynchronous clients: four families are enough."""
    return FAMILIES[request.param]


@pytest.mark.parametrize("capture_ids", ["off", "hash"])
def test_nothing_leaves(
    capture_ids: str, family: Family, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """No metric, span, event, link or log has in it what a peer has chosen; with `hash`, identifiers are hashes."""
    told = watched(family, SCRIPT, memory, caplog, capture_ids)
    identifiers = [
        str(span.attributes[LAST_EVENT_ID]) for span in told.spans if LAST_EVENT_ID in span.attributes
    ]

    assert leaks(told) == {}
    assert bool(identifiers) == (capture_ids == "hash")
    assert all(re.fullmatch("[0-9a-f]{16}", identifier) for identifier in identifiers)


def test_the_search_finds_what_is_there(
    family: Family, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """The script reaches every metric, span and span event; with `raw`, three attributes show identifiers, no more."""
    told = watched(family, SCRIPT, memory, caplog, "raw")
    names = {span.name.partition(" ")[0] for span in told.spans}

    assert leaks(told) == {"attributes": {"mcp.session.id", LAST_EVENT_ID, "jsonrpc.request.id"}}
    assert set(METRICS) - set(told.metrics) == set()
    assert names | {each.name for span in told.spans for each in span.events} == ALL_NAMES


@pytest.mark.parametrize("capture_ids", ["off", "hash"])
def test_versions(capture_ids: str, family: Family, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A version that is none of the protocol's is a peer's text like any other, and stays inside."""
    assert leaks(watched(family, VERSIONS, memory, caplog, capture_ids)) == {}
