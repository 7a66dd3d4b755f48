"""The short form of the fuzzing: a few seconds, and what it has found."""

import tracemalloc
from collections.abc import Iterable

import pytest

from opentelemetry.instrumentation.httpx_sse._envelope import read_data
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
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._verdicts import (
    EmptyReplay,
    StreamEnded,
    StreamMoved,
    StreamOpened,
    Verdict,
)

from . import deciding
from .__main__ import TARGETS, fuzz, shares
from .draw import Draw

SHORT = 6_000
HOME = Origin("http", "a", 80)
MIB = 1024 * 1024


@pytest.mark.parametrize("name", TARGETS)
def test_random_input_breaks_nothing(name: str) -> None:
    """No input of a short run raises, names a label set that is not listed, or outgrows a bound."""
    fuzz(name, shares(SHORT)[name], "short")


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_at_all_breaks_nothing(name: str) -> None:
    """The empty input is one too."""
    TARGETS[name][0](Draw(b""))


def played(facts: Iterable[Event], *, step: float = 1.0) -> list[Verdict]:
    """What a new ledger concludes from facts that are `step` seconds apart."""
    one = Ledger()
    return [verdict for n, fact in enumerate(facts) for verdict in one.observe(fact, at=n * step)]


def get(exchange: int, **also: object) -> Sent:
    fields: dict[str, object] = {
        "pool": 1,
        "origin": HOME,
        "target": b"t",
        "http_method": "GET",
        "mcp": False,
    }
    return Sent(exchange=exchange, **{**fields, **also})  # type: ignore[arg-type]


def opened(exchange: int) -> Answered:
    return Answered(exchange=exchange, status=200, is_stream=True)


def test_a_location_that_is_no_url_is_no_error() -> None:
    """A redirect to `http://[` is watched like any other."""
    observer = Observer(lambda exchange, verdicts: None)
    request = deciding._Request(
        "GET",
        deciding._Url("http", "a", 80, "/mcp"),
        deciding._Headers([(b"Accept", b"text/event-stream"), (b"Mcp-Session-Id", b"s")]),
        b"",
    )
    one = observer.begin(deciding._Transport(), request, None)
    one.head(307, [(b"Location", b"http://[")])


def test_an_endpoint_that_is_no_url_is_no_error() -> None:
    """The rest of a stream is read although its first event names no URL."""
    observer = Observer(lambda exchange, verdicts: None)
    url = deciding._Url("http", "a", 80, "/sse")
    request = deciding._Request("GET", url, deciding._Headers([(b"Accept", b"text/event-stream")]), b"")
    one = observer.begin(deciding._Transport(), request, None)
    one.head(200, [(b"Content-Type", b"text/event-stream")])
    one.receive(b"event: endpoint\ndata: http://[\n\n")


def test_a_listen_request_that_carries_a_cursor_names_listed_label_sets() -> None:
    """Some clients send `Last-Event-ID` on every POST; what follows has a place in the catalogue."""
    listen = Message(kind=MessageKind.REQUEST, id=1, method="subscriptions/listen")
    facts: list[Event] = []
    for n in (1, 2):
        sent = get(n, http_method="POST", mcp=True, version="2026-07-28", cursor="e1", messages=(listen,))
        facts += [sent, opened(n), Ended(exchange=n, how="exhausted")]
    deciding.listed(played(facts))


def test_a_listen_request_that_is_redirected_names_listed_label_sets() -> None:
    """Also while its body is still being read, and with the cursor of another stream on the GET."""
    listen = Message(kind=MessageKind.REQUEST, id=1, method="subscriptions/listen")
    facts: list[Event] = [
        get(1, http_method="POST", mcp=True, session="s", messages=(listen,)),
        Answered(exchange=1, status=301, is_stream=False, location=b"u"),
        get(2, target=b"u", mcp=True, session="s", cursor="e3"),
        opened(2),
        Ended(exchange=2, how="exhausted"),
    ]
    deciding.listed(played(facts))


def test_a_post_that_is_redirected_to_a_get_names_listed_label_sets() -> None:
    """Clients follow a 303 with a GET; what that is refused with has a place in the catalogue."""
    answer = Message(kind=MessageKind.RESPONSE, id="q")
    facts: list[Event] = [
        get(1, http_method="POST", mcp=True, session="s", messages=(answer,)),
        Answered(exchange=1, status=303, is_stream=False, location=b"u"),
        Ended(exchange=1, how="exhausted"),
        get(2, target=b"u", mcp=True, session="s"),
        Answered(exchange=2, status=409, is_stream=False),
        Ended(exchange=2, how="closed"),
    ]
    deciding.listed(played(facts))


def test_streams_that_open_under_one_kind_end_under_the_same() -> None:
    """Of each kind as many streams end as have opened or were moved there."""
    verdicts = played(
        [
            get(1),
            opened(1),
            Received(exchange=1, event_id="e1"),
            get(2, cursor="e1"),
            opened(2),
            Received(exchange=2, event_type="endpoint", endpoint=b"u"),
            Ended(exchange=2, how="exhausted"),
            Ended(exchange=1, how="exhausted"),
        ]
    )
    assert [v.kind for v in verdicts if isinstance(v, StreamOpened)] == ["other", "other"]
    moved = sum(isinstance(v, StreamMoved) for v in verdicts)
    assert sum(v.kind == "legacy" for v in verdicts if isinstance(v, StreamEnded)) == moved


def test_the_ledger_stays_small_when_everything_is_new() -> None:
    """3,000 sessions with a stream and a question each hold less than 12 MiB."""
    assert held_by(3_000, size=20) < 12 * MIB


def test_the_ledger_stays_small_when_identifiers_are_long() -> None:
    """300 questions whose ids have 200 KiB hold less than 40 MiB, as all tables full are said to do."""
    assert held_by(300, size=200 * 1024) < 40 * MIB


def held_by(count: int, *, size: int) -> int:
    """Bytes that a ledger keeps after so many sessions whose server asks with an id of `size` characters."""
    one = Ledger()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(1, count + 1):
            identifier = f"{n:x}".rjust(size, "q")
            data = f'{{"jsonrpc":"2.0","id":"{identifier}","method":"elicitation/create"}}'.encode()
            (asked,) = read_data(data)
            for fact in (
                get(n, mcp=True, session=f"s{n}", version="2025-11-25"),
                opened(n),
                Received(exchange=n, event_id="e1", messages=(asked,)),
                Ended(exchange=n, how="exhausted"),
            ):
                one.observe(fact, at=float(n))
        after, _ = tracemalloc.get_traced_memory()
        return after - before
    finally:
        tracemalloc.stop()


def test_a_get_with_the_cursor_of_a_listen_stream_names_listed_label_sets() -> None:
    """No revision resumes a listen stream so, but a client may try."""
    listen = Message(kind=MessageKind.REQUEST, id=1, method="subscriptions/listen")
    deciding.listed(
        played(
            [
                get(1, http_method="POST", mcp=True, version="2026-07-28", messages=(listen,)),
                opened(1),
                Received(exchange=1, event_id="e1", is_empty=True),
                Ended(exchange=1, how="exhausted"),
                get(2, mcp=True, version="2026-07-28", cursor="e1"),
            ]
        )
    )


@pytest.mark.parametrize(
    "carried",
    [
        Message(kind=MessageKind.RESPONSE, id="q"),
        Message(kind=MessageKind.REQUEST, id=1, method="ping"),
        Message(kind=MessageKind.REQUEST, id=1, method="tools/call"),
    ],
    ids=["answer", "ping", "call"],
)
def test_an_empty_replay_that_a_redirect_led_to_names_listed_label_sets(carried: Message) -> None:
    """Some clients send `Last-Event-ID` on every POST; the GET that a redirect makes of one is a resume."""
    facts: list[Event] = [
        get(1, mcp=True, session="s"),
        opened(1),
        Received(exchange=1, event_id="e1", has_data=True),
        Ended(exchange=1, how="exhausted"),
        get(2, http_method="POST", mcp=True, session="s", messages=(carried,)),
        Answered(exchange=2, status=303, is_stream=False, location=b"u"),
        Ended(exchange=2, how="exhausted"),
        get(3, target=b"u", mcp=True, session="s", cursor="e1"),
        opened(3),
        Ended(exchange=3, how="exhausted"),
    ]
    found = played(facts, step=0.01)
    deciding.listed(found)
    assert sum(isinstance(verdict, EmptyReplay) for verdict in found) == 1
