"""What is open or awaited stays known, however much is over already; and nothing is mixed up that comes at once."""

import gzip
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import pytest
from tests.bench.growth import _Request, _Transport

from opentelemetry.instrumentation.httpx_sse import _skim
from opentelemetry.instrumentation.httpx_sse._coding import Inflater
from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._events import (
    Answered,
    Ended,
    Event,
    Message,
    MessageKind,
    Origin,
    Received,
    Sent,
)
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger
from opentelemetry.instrumentation.httpx_sse._ledger._tables import LIMITS, PLACE_STREAMS
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._transport import SyncBody
from opentelemetry.instrumentation.httpx_sse.testing import observed, verdicts

HOME = Origin("http", "h", 80)
URL = "http://h/mcp"
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
    "Mcp-Session-Id": "S",
}
STREAM = {"content-type": "text/event-stream"}
NOTE = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'


def call(identifier: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": {"name": "x"}}


def answer(identifier: object) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": identifier, "result": {}}).encode() + b"\n\n"


class Pieces(httpx.SyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces


LONG = 10**6


def server(request: httpx.Request) -> httpx.Response:
    """Streams: one without a request, a long call that is cut, and others that are answered at once."""
    if request.method == "GET":
        return httpx.Response(200, headers=STREAM, stream=Pieces(b"id: g1\n" + NOTE))
    identifier = json.loads(request.content)["id"]
    said = b"id: L1\n" + NOTE if identifier == LONG else answer(identifier)
    return httpx.Response(200, headers=STREAM, stream=Pieces(said))


@pytest.mark.parametrize("answered", [PLACE_STREAMS + 50, LIMITS["streams"] + 50])
def test_streams_that_are_open_outlive_any_number_of_answered_calls(answered: int) -> None:
    """They show, and what joins them later is a reconnect: a second GET, and a resume of the long call."""
    others = httpx.MockTransport(server)
    with (
        httpx.Client(transport=httpx.MockTransport(server)) as client,
        httpx.Client(transport=others) as other,
        observed(client) as seen,
    ):
        with (
            client.stream("GET", URL, headers=HEADERS) as alone,
            client.stream("POST", URL, headers=HEADERS, json=call(LONG)) as long,
        ):
            opened = [(stream, stream.iter_bytes()) for stream in (alone, long)]
            for _, chunks in opened:
                next(chunks)
            for n in range(answered):
                # No session holds more than a few streams in the second case: the table of all is full.
                session = "S" if answered < LIMITS["streams"] else f"S{n % 100}"
                client.post(URL, headers={**HEADERS, "Mcp-Session-Id": session}, json=call(n))
            shown = seen.snapshot().logical_streams
            for _, chunks in opened:
                list(chunks)
        client.get(URL, headers=HEADERS)
        client.get(URL, headers={**HEADERS, "Last-Event-ID": "L1"})
        other.close()

    assert {key[1:]: n for key, n in shown.items()} == {
        ("standalone", "open"): 1,
        ("response", "open"): 1,
    }
    assert [(v.kind, v.cause, v.cursor) for v in seen.of(verdicts.Reconnected)] == [
        ("standalone", "server_close", "dropped"),
        ("response", "server_close", "sent"),
    ]


# ------------------------------------------------------------------ facts

CALL = Message(kind=MessageKind.REQUEST, id=1, method="tools/call")
RESULT = Message(kind=MessageKind.RESPONSE, id=1)


def sent(exchange: int, method: str = "POST", *messages: Message, target: bytes = b"t", **also: Any) -> Sent:
    fields = {"session": "S", "version": "2025-11-25", "mcp": True, "pool": 1, "origin": HOME, **also}
    return Sent(exchange=exchange, target=target, http_method=method, messages=messages, **fields)


def told(ledger: Ledger, *facts: Event) -> list[verdicts.Verdict]:
    return [verdict for n, fact in enumerate(facts) for verdict in ledger.observe(fact, at=n / 1000)]


def kinds(found: Iterable[verdicts.Verdict]) -> list[str]:
    return [type(verdict).__name__ for verdict in found]


def test_a_stream_that_had_to_go_while_it_was_open_counts_no_event_ids() -> None:
    """Only ids of streams that are known are held, so that the bound of all ids is never used up by none."""
    ledger = Ledger()
    many = PLACE_STREAMS * 2
    for n in range(1, many + 1):
        told(ledger, sent(n, "POST", CALL), Answered(exchange=n, status=200, is_stream=True))
    for n in range(1, many + 1):
        told(ledger, *(Received(exchange=n, event_id=f"{n}-{i}") for i in range(5)))

    state = ledger._state
    assert state.ids_held == sum(len(stream.ids) for stream in state.streams) == 5 * PLACE_STREAMS


def test_a_call_that_waits_is_known_after_any_number_of_answered_ones() -> None:
    """Its response is the first, and its stream complete."""
    ledger = Ledger()
    told(ledger, sent(1, "POST", CALL), Answered(exchange=1, status=200, is_stream=True))
    for n in range(2, LIMITS["requests"] + 100):
        other = Message(kind=MessageKind.REQUEST, id=n, method="ping")
        told(
            ledger,
            sent(n, "POST", other),
            Answered(exchange=n, status=200, is_stream=False),
            Ended(exchange=n, how="exhausted"),
        )

    found = told(ledger, Received(exchange=1, messages=(RESULT,)), Ended(exchange=1, how="exhausted"))

    assert [v.delivery for v in found if isinstance(v, verdicts.Responded)] == ["first"]
    assert [v.end for v in found if isinstance(v, verdicts.StreamEnded)] == ["complete"]


@pytest.mark.parametrize("first", ["GET", "POST"])
def test_requests_that_are_redirected_to_one_place_at_once_each_go_on(first: str) -> None:
    """Whoever follows first: the call is answered, and the stream without a request is one."""
    moved = {"status": 307, "location": b"new", "is_stream": False}
    ledger = Ledger()
    follows = [
        sent(3, "POST", CALL, target=b"new"),
        sent(4, "GET", target=b"new"),
    ]
    found = told(
        ledger,
        sent(1, "POST", CALL),
        sent(2, "GET"),
        Answered(exchange=1, **moved),  # type: ignore[arg-type]
        Answered(exchange=2, **moved),  # type: ignore[arg-type]
        Ended(exchange=1, how="exhausted"),
        Ended(exchange=2, how="exhausted"),
        *(follows if first == "POST" else reversed(follows)),
        Answered(exchange=3, status=200, is_stream=True),
        Answered(exchange=4, status=200, is_stream=True),
        Received(exchange=3, messages=(RESULT,)),
        Ended(exchange=3, how="exhausted"),
        Ended(exchange=4, how="exhausted"),
    )

    assert [v.delivery for v in found if isinstance(v, verdicts.Responded)] == ["first"]
    assert {v.exchange: v.kind for v in found if isinstance(v, verdicts.StreamEnded)} == {
        3: "response",
        4: "standalone",
    }


def test_a_redirect_that_nobody_follows_takes_no_other_request_along() -> None:
    """A loop of redirects was given up; the call that comes next to that place is a call of its own."""
    ledger = Ledger()
    found = told(
        ledger,
        sent(1, "GET"),
        Answered(exchange=1, status=307, location=b"t", is_stream=False),
        Ended(exchange=1, how="exhausted"),
        sent(2, "POST", CALL),
        Answered(exchange=2, status=200, is_stream=True),
        Received(exchange=2, messages=(RESULT,)),
        Ended(exchange=2, how="exhausted"),
    )

    assert "OperationEnded" in kinds(found)
    assert [v.kind for v in found if isinstance(v, verdicts.StreamEnded)] == ["response"]


@pytest.mark.parametrize("how", ["exhausted", "closed"])
def test_an_answer_that_cannot_be_read_is_no_loss(how: Any) -> None:
    """Of an opaque stream nobody knows whether it brought the answer, however long nobody comes back."""
    ledger = Ledger()
    told(
        ledger,
        sent(1, "POST", CALL),
        Answered(exchange=1, status=200, is_stream=True, opaque=True),
        Ended(exchange=1, how=how, opaque=True, last_byte_at=0.001),
    )

    assert "RequestLost" not in kinds(ledger.snapshot(at=1e6).settled)


# ------------------------------------------------------------------ what is skimmed


def test_event_ids_are_kept_behind_any_number_of_events_without_one() -> None:
    """The newest id is the cursor that the client comes back with."""
    events = [b"id: e%d\n" % n + NOTE for n in range(5)] + [NOTE] * 3 * _skim.IDS_LIMIT
    observer = Observer(lambda *_: None)
    exchange = observer.begin(_Transport(), _Request("s", 7), None)
    exchange.head(200, [(b"content-type", b"text/event-stream")])
    for _ in SyncBody(events, exchange, Containment(strict=True)):
        pass
    snapshot = observer.collect()

    (stream,) = observer._ledger._state.streams
    assert list(stream.ids) == [f"e{n}" for n in range(5)]
    assert snapshot.evictions["event_ids"] == 0
    assert sum(snapshot.events.values()) == len(events)


def test_a_chunk_of_many_events_is_not_read_to_its_end_for_every_event() -> None:
    """Without a CR in the chunk nobody looks for one."""
    assert b"(?=" not in _skim._MANY_LF.__self__.pattern  # type: ignore[attr-defined]


# ------------------------------------------------------------------ what libraries do to URLs and bodies


@pytest.mark.parametrize("location", ["http://h:80/mcp/", "HTTP://H/mcp/", "/mcp/?a=b c", '/mcp/?a="x"'])
def test_a_redirect_is_followed_however_its_location_is_written(location: str) -> None:
    """The library writes the URL in its own way, and so does what waits for it."""

    def moved(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/mcp":
            return httpx.Response(307, headers={"location": location})
        return httpx.Response(200, headers=STREAM, stream=Pieces(answer(json.loads(request.content)["id"])))

    with (
        httpx.Client(transport=httpx.MockTransport(moved), follow_redirects=True) as client,
        observed(client) as seen,
    ):
        client.post(URL, headers=HEADERS, json=call(1))

    assert [v.delivery for v in seen.of(verdicts.Responded)] == ["first"]
    assert [v.kind for v in seen.of(verdicts.StreamEnded)] == ["response"]


def test_a_response_that_is_complete_already_is_read_as_it_is() -> None:
    """Its library has undone the content coding when we are given the body."""

    def packed(request: httpx.Request) -> httpx.Response:
        body = gzip.compress(answer(json.loads(request.content)["id"]))
        return httpx.Response(200, headers={**STREAM, "content-encoding": "gzip"}, content=body)

    with httpx.Client(transport=httpx.MockTransport(packed)) as client, observed(client) as seen:
        client.post(URL, headers=HEADERS, json=call(1))

    assert [v.delivery for v in seen.of(verdicts.Responded)] == ["first"]
    assert [v.end for v in seen.of(verdicts.StreamEnded)] == ["complete"]


def test_a_cursor_is_looked_up_with_everything_that_waits() -> None:
    """A stream that is no MCP is open still, and its newest id has not been handed over when the client resumes."""
    events = [b'id: n%d\ndata: {"token":%d}\n\n' % (n, n) for n in range(10)]
    accept = {"Accept": "text/event-stream"}

    def plain(request: httpx.Request) -> httpx.Response:
        if "last-event-id" in request.headers:
            return httpx.Response(404, text="event not found")
        return httpx.Response(200, headers=STREAM, stream=Pieces(*events))

    with (
        httpx.Client(transport=httpx.MockTransport(plain)) as client,
        observed(client) as seen,
        client.stream("GET", "http://h/feed", headers=accept) as response,
    ):
        chunks = response.iter_raw()
        for _ in range(6):
            next(chunks)
        client.get("http://h/feed", headers={**accept, "Last-Event-ID": "n5"})

    assert [v.cursor for v in seen.of(verdicts.Reconnected)] == ["sent"]
    assert [v.reason for v in seen.of(verdicts.Classified)] == ["cursor_evicted"]


def test_what_follows_the_end_of_coded_data() -> None:
    """Neither library reads on after the end of a body's first gzip member: nothing of it is kept here."""
    inflater = Inflater("gzip")
    member = gzip.compress(NOTE)
    assert b"".join(inflater.feed(member + member)) == NOTE
    tracemalloc.start()
    for _ in range(2_000):
        assert list(inflater.feed(member)) == []
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 10_000


def test_a_transport_that_refuses_to_be_observed() -> None:
    """What was put on the others before it is taken off again."""

    class Slotted:
        """Takes no attributes."""

        __slots__ = ()

        def handle_request(self, _: httpx.Request) -> httpx.Response:
            raise AssertionError

    first = httpx.MockTransport(server)
    before = dict(vars(first))
    mounts: Any = {"http://other": Slotted()}
    client = httpx.Client(transport=first, mounts=mounts)
    with pytest.raises(TypeError), observed(client):
        raise AssertionError
    assert vars(first) == before
