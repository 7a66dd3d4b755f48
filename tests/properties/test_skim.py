"""The fast way and the careful way give the same facts."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench.growth import _Request, _Transport

from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._observer import Observer

IDS = ("", "id: a#\n", "id:b#\n", "id: \n", "id: x\0\n", "id: ü#\n")
TYPES = ("", "event: message\n", "event: endpoint\n", "event: delta\n")
DATA = (
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":#}}',
    '{"method":"notifications/message","params":{},"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}',
    '{"jsonrpc":"2.0","id":#,"method":"elicitation/create","params":{}}',
    '{"id":"chatcmpl-#","choices":[]}',
    '{"jsonrpc":"2.0","id":#,"result":{}}',
    "[DONE]",
    "",
    '{"jsonrpc":"2.0","method":"notifications/progress",\r"x":#}',
    "not json #",
)
EXTRA = ("", "", "", ": comment\n", "retry: 5\n", "data: more\n")


class Part(NamedTuple):
    """One event, before its number and its line ends are put in."""

    id: str
    type: str
    data: str
    extra: str
    newline: str

    def told(self, number: int) -> bytes:
        event = f"{self.id}{self.type}data: {self.data}\n{self.extra}\n"
        return event.replace("#", str(number)).replace("\n", self.newline).encode()


PARTS = st.builds(Part, *map(st.sampled_from, (IDS, TYPES, DATA, EXTRA, ("\n", "\r\n"))))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PARTS, max_size=30),
    st.none() | st.lists(st.integers(0, 4000), max_size=12),
    st.integers(0, 40),
)
def test_skimming_shows_nothing_else(parts: list[Part], cuts: list[int] | None, look: int) -> None:
    """Whatever is skimmed, at every look the counts, cursors, verdicts and state are those of reading with care."""
    events = [part.told(number) for number, part in enumerate(parts)]
    body = b"".join(events)
    bounds = sorted({0, len(body), *(cut for cut in cuts or () if cut < len(body))})
    pieces = events if cuts is None else [body[begin:end] for begin, end in pairwise(bounds)]

    assert _seen(pieces, look, fast=True) == _seen(pieces, look, fast=False)


def _seen(pieces: list[bytes], look: int, *, fast: bool) -> object:
    verdicts: list[object] = []
    observer = Observer(lambda _, found: verdicts.extend(found), clock=lambda: 1.0)
    if not fast:
        observer.skim = lambda *_: None  # type: ignore[method-assign]
    exchange = observer.begin(_Transport(), _Request("s", 7), None)
    exchange.head(200, [(b"content-type", b"text/event-stream")])
    shown: list[object] = []
    for number, piece in enumerate(pieces):
        exchange.receive(piece)
        if number == look:
            shown.append(_state(observer, exchange))
    shown.append(_state(observer, exchange))
    exchange.exhausted()
    shown.append(_state(observer, exchange))
    return shown, verdicts


def _state(observer: Observer, exchange: Exchange) -> object:
    snapshot = observer.collect()
    streams = [
        (tuple(stream.ids), stream.has_cursor, stream.touched_at, stream.attempt and stream.attempt.events)
        for stream in observer._ledger._state.streams
    ]
    read = (exchange.events_read, exchange.bytes_read, exchange.last_event_id, exchange.last_byte_at)
    return snapshot, streams, read
