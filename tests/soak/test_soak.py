"""The short form of the soak, and what it has found."""

import asyncio
import random
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.conftest import FAMILIES

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
from opentelemetry.instrumentation.httpx_sse._verdicts import Classified, ReconnectSettled, Verdict

from .books import Limits
from .journal import Frame, Journal, Parser
from .oracle import Oracle
from .run import instrumented, soak, told
from .server import ChaosServer
from .wire import Wire, cancelled_after, seeded

HOME = Origin("http", "a", 80)
CALL = Message(kind=MessageKind.REQUEST, id=1, method="tools/call")
RESULT = Message(kind=MessageKind.RESPONSE, id=1)


@pytest.mark.e2e
@pytest.mark.timeout(400)
def test_the_books_of_two_chaotic_minutes_agree() -> None:
    """Every count that is exported is what client and server wrote down: difference 0."""
    report = soak(minutes=2, seed="short")
    assert report.compared > 12_000
    assert not report.differences, str(report)
    assert not report.disagreements, str(report)
    assert not report.faults, str(report)


@pytest.mark.e2e
@pytest.mark.parametrize("family", [name for name in FAMILIES if name.endswith("-async")])
def test_the_books_agree_on_what_is_cancelled(family: str) -> None:
    """Whenever a client gives up on the refusal of its answer: both sides count it, or neither does."""
    journal, reader, limits = Journal(), InMemoryMetricReader(), Limits()
    server, rng = ChaosServer(journal), random.Random(family)
    answer = {"jsonrpc": "2.0", "id": "q", "result": {}}

    async def play() -> None:
        wire = Wire(FAMILIES[family], server.url, journal, 1)
        for n in range(150):
            wish = seeded(rng, do="refuse", status=429, body="rpc")
            await cancelled_after(0.05 * (n / 150) ** 2, wire.send("POST", wish, [answer], session="s"))
        await wire.close()

    with instrumented(reader, limits):
        asyncio.run(play())
        counts, faults = told(reader.get_metrics_data())
    server.stop()

    assert 0 < counts["sse.client.classifications", ("answer", "retryable", "throttled")] < 150
    assert counts == Oracle(limits).read(journal.entries)
    assert not faults


def test_the_parser_of_the_books_reads_what_the_server_writes() -> None:
    """However a body is cut and its lines end, the same frames are read."""
    frames = [Frame("1", "", 300), Frame(comment="ping"), Frame(None, "{}"), Frame("2", "{}")]
    for newline in ("\n", "\r\n"):
        body = b"".join(frame.wire(newline, " ") for frame in frames)
        for size in (1, 2, 7, len(body)):
            parser = Parser()
            read = [f for at in range(0, len(body), size) for f in parser.feed(body[at : at + size])]
            assert read == frames


def sent(exchange: int, method: str, cursor: str | None = None, *messages: Message) -> Sent:
    return Sent(
        exchange=exchange,
        pool=1,
        origin=HOME,
        target=b"t",
        http_method=method,
        mcp=True,
        session="s",
        cursor=cursor,
        version="2025-11-25",
        messages=messages,
    )


def stream(exchange: int, *events: Message) -> Iterator[Event]:
    yield Answered(exchange=exchange, status=200, is_stream=True)
    for n, message in enumerate(events):
        yield Received(exchange=exchange, event_id=f"e{n}", messages=(message,))


def played(*facts: Event) -> list[Verdict]:
    one = Ledger()
    return [verdict for n, fact in enumerate(facts) for verdict in one.observe(fact, at=n / 100)]


def test_a_cut_request_that_met_an_unconfirmed_session_counts_at_probe() -> None:
    """Where a failure counts is settled when the request is sent, not by its headers."""
    found = played(
        sent(1, "POST", None, CALL),
        *stream(1, RESULT),
        Ended(exchange=1, how="exhausted"),
        sent(2, "GET", "e0"),
        *stream(2),
        Ended(exchange=2, how="exhausted"),
        sent(3, "POST", None, Message(kind=MessageKind.REQUEST, id=2, method="tools/list")),
        *stream(3),
        Ended(exchange=3, how="failed", error="network_error"),
    )
    assert [v.point for v in found if isinstance(v, Classified)][-1] == "probe"


def test_a_cut_resume_of_a_terminal_stream_is_interrupted() -> None:
    """Only a clean end makes a replay of known events `repeated`."""
    found = played(
        sent(1, "POST", None, CALL),
        *stream(1, Message(kind=MessageKind.NOTIFICATION, method="notifications/x"), RESULT),
        Ended(exchange=1, how="exhausted"),
        sent(2, "GET", "e0"),
        Answered(exchange=2, status=200, is_stream=True),
        Received(exchange=2, event_id="e1", messages=(RESULT,)),
        Ended(exchange=2, how="failed", error="network_error"),
    )
    assert [v.outcome for v in found if isinstance(v, ReconnectSettled)] == ["interrupted"]


def test_a_redirected_request_that_met_an_unconfirmed_session_counts_at_probe() -> None:
    """The request that follows a 307 is the same one, and fails where the first would have."""
    found = played(
        sent(1, "POST", None, CALL),
        *stream(1, RESULT),
        Ended(exchange=1, how="exhausted"),
        sent(2, "GET", "e0"),
        *stream(2),
        Ended(exchange=2, how="exhausted"),
        sent(3, "POST", None, Message(kind=MessageKind.REQUEST, id=2, method="tools/list")),
        Answered(exchange=3, status=307, is_stream=False, location=b"t"),
        Ended(exchange=3, how="exhausted"),
        sent(4, "POST", None, Message(kind=MessageKind.REQUEST, id=2, method="tools/list")),
        Answered(exchange=4, status=400, is_stream=False),
        Ended(exchange=4, how="exhausted"),
    )
    assert [v.point for v in found if isinstance(v, Classified)][-1] == "probe"
