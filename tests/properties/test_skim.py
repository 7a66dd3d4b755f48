"""The fast way and the careful way give the same facts."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.bench.growth import _Request, _Transport

from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._exchange import Exchange
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._transport import SyncBody

IDS = ("", "id: a#\n", "id:b#\n", "id: \n", "id: x\0\n", "id: ü#\n", "id:  c\n", f"id: {'y' * 129}\n")
TYPES = ("", "event: message\n", "event: endpoint\n", "event: delta\n")
DATA = (
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":#}}',
    '{"method":"notifications/message","params":{},"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}',
    '{"jsonrpc":"2.0","id":#,"method":"elicitation/create","params":{}}',
    '{"id":"chatcmpl-#","choices":[]}',
    '{"id":"chatcmpl-#","choices":["\\n"]}',
    '{"id":#,"result":{},"json\\u0072pc":"2.0"}',
    '{"id":#,"result":{}, "jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":#,"result":{}}',
    "[DONE]",
    "",
    '{"jsonrpc":"2.0","method":"notifications/progress",\r"x":#}',
    "not json #",
)
EXTRA = ("", "", "", ": comment\n", "retry: 5\n", "data: more\n")


class Part(NamedTuple):
    """One event, before its number and its line ends are put in."""

    fields: tuple[str, str]
    """Id and type, in the order of either SDK."""
    data: str
    extra: str
    newline: str

    def told(self, number: int) -> bytes:
        event = f"{''.join(self.fields)}data: {self.data}\n{self.extra}\n"
        return event.replace("#", str(number)).replace("\n", self.newline).encode()


PART = st.builds(
    Part,
    st.tuples(st.sampled_from(IDS), st.sampled_from(TYPES))
    | st.tuples(st.sampled_from(TYPES), st.sampled_from(IDS)),
    *map(st.sampled_from, (DATA, EXTRA, ("\n", "\r\n"))),
)
# Servers write runs of events that are all alike; what differs comes in between.
PARTS = st.lists(st.tuples(PART, st.integers(1, 4)).map(lambda run: [run[0]] * run[1]), max_size=12).map(
    lambda runs: [part for run in runs for part in run]
)


@settings(max_examples=300, deadline=None)
@given(
    PARTS,
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
    for number, _ in enumerate(SyncBody(pieces, exchange, Containment(strict=True))):
        if number == look:
            shown.append(_state(observer, exchange))
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


NOISE = (
    b"\r",
    b"\n",
    b"\0",
    b" ",
    b"x",
    b"\r\r",
    b"\n\n",
    b"\\u",
    b"jsonrpc",
    b"\ndata: {}\n\ndata: {",
    b"\nretry: 9",
    b"\rid: z\rx",
)
SPOILT = st.tuples(st.sampled_from(DATA), st.sampled_from(NOISE), st.floats(0, 1))


@settings(max_examples=500, deadline=None)
@example(Part(("", ""), "", "", "\n"), [('{"id":"chatcmpl-#","choices":[]}', b"\rid: z\rx", 0.5)])
@example(Part(("", ""), DATA[11], "", "\n"), [(DATA[4], b"\r", 0.0)])
@given(PART, st.lists(SPOILT, min_size=1, max_size=4))
def test_what_is_seen_at_once_is_what_is_read_with_care(
    form: Part, spoilt: list[tuple[str, bytes, float]]
) -> None:
    """After events of its form, one with anything put in anywhere is seen for what a careful reading sees."""
    pieces = [form._replace(data=DATA[0], extra="").told(0)]
    for number, (data, noise, where) in enumerate(spoilt, 1):
        event = form._replace(data=data, extra="").told(number)
        at = round(where * len(event))
        pieces += [event, event, event[:at] + noise + event[at:], form.told(number), event]
        pieces += [event, event[:-1] + noise[:1], b"\n\n", event]

    assert _seen(pieces, 10**6, fast=True) == _seen(pieces, 10**6, fast=False)
