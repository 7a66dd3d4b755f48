"""Bytes to blocks: the leap and the crawl against a reading of the whole body at once."""

import re
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opentelemetry.instrumentation.httpx_sse._scanner import Block, Scanner

BIG = 10 * 1024 * 1024
PIECE = 64 * 1024


class Reading(NamedTuple):
    """All that a scanner says about a body."""

    blocks: list[Block]
    comments: int
    last_event_id: str
    retry: int | None


def reference(body: bytes, peek_limit: int = 256 * 1024) -> Reading:
    """WHATWG HTML 9.2.5 and 9.2.6, over the whole body, with no thought of speed or memory."""
    blocks: list[Block] = []
    comments, last_event_id, last_retry = 0, "", None
    fields: dict[str, Any] = {}
    *lines, _unfinished = re.split(rb"\r\n|\n|\r", body.removeprefix("\ufeff".encode()))
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        text = value.decode(errors="replace")
        if line == b"":
            if fields:
                data = b"\n".join(fields.get("data", ()))
                whole = len(data) <= peek_limit
                last_event_id = fields.get("id", last_event_id)
                blocks.append(
                    Block(
                        type=fields.get("event", ""),
                        data=data if whole else data[:4096],
                        tail=b"" if whole else data[-4096:],
                        size=len(data),
                        id=fields.get("id"),
                        retry=fields.get("retry"),
                        has_data="data" in fields,
                    )
                )
            fields = {}
        elif colon and not name:
            comments += 1
        elif name == b"data":
            fields.setdefault("data", []).append(value)
        elif name == b"event":
            fields["event"] = text[:256]
        elif name == b"id" and "\0" not in text:
            fields["id"] = text[:4096]
        elif name == b"retry" and re.fullmatch(r"[0-9]{1,15}", text):
            fields["retry"] = last_retry = int(text)
    return Reading(blocks, comments, last_event_id, last_retry)


def read(chunks: Iterable[bytes], peek_limit: int = 256 * 1024) -> Reading:
    scanner = Scanner(peek_limit)
    blocks = [block for chunk in chunks for block in scanner.receive(chunk)]
    return Reading(blocks, scanner.comments, scanner.last_event_id, scanner.retry)


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[i : i + size] for i in range(0, len(body), size)]


def block(data: bytes | None = None, **fields: Any) -> Block:
    """A block under the limit, named by its fields."""
    text = data or b""
    return Block(
        fields.get("type", ""), text, b"", len(text), fields.get("id"), fields.get("retry"), data is not None
    )


VALUES = st.sampled_from(
    [b"", b" ", b"  x", b"message", b"e1", b"17", b"0", b"-5", b"999999999999999", b"1000000000000000",
     b":", b'{"jsonrpc":"2.0","id":1}', b"a: b", b"a\0b", b"\xff", b"\xe2\x80",
     "é\u2028\x85".encode(), b"\xef\xbb\xbf", "٣".encode(), b"x" * 255, b"x" * 256, b"x" * 257, b"x" * 4100,
     "é".encode() * 200, b"\xf0\x9f" * 300]
)  # fmt: skip
NAMES = st.sampled_from(
    [b"data", b"data", b"data", b"id", b"event", b"retry", b"", b"dat", b"Data", b"id\0", b"\xef\xbb\xbf"]
)
COLONS = st.sampled_from([b": ", b": ", b":", b":  ", b""])
BOM = st.just(b"\xef\xbb\xbf")
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = st.tuples(NAMES, COLONS, VALUES).map(b"".join)


@st.composite
def regular_blocks(draw: st.DrawFn) -> bytes:
    """What servers write, with now and then a value that is not what it seems."""
    end = draw(ENDS)
    fields = draw(st.permutations([b"id", b"event", b"data"]))[draw(st.integers(0, 2)) :]
    lines = [name + draw(COLONS) + draw(VALUES) for name in fields]
    return end.join([*lines, b"", b""])


@st.composite
def loose_lines(draw: st.DrawFn) -> bytes:
    return b"".join(line + draw(ENDS) * draw(st.integers(0, 2)) for line in draw(st.lists(LINES, max_size=4)))


PARTS = st.lists(st.one_of(regular_blocks(), regular_blocks(), loose_lines(), ENDS, BOM), max_size=8)
ALPHABET = st.sampled_from(
    [bytes([byte]) for byte in b":\r\n datie0\0"] + [b"\xef\xbb\xbf", b"data:", b"id:", b"\n\n"]
)
SOUP = st.lists(ALPHABET, max_size=60)
LIMITS = st.sampled_from([0, 1, 20, 300, 5000, 256 * 1024])
CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@settings(max_examples=400, deadline=None)
@given(parts=st.one_of(PARTS, SOUP), limit=LIMITS, cuts=CUTS)
@example(parts=[b"data: a\rdata: b\r\n\r\n", b"data: c\r\n\r\n"], limit=300, cuts=[1])
@example(parts=[b"data: a\n\n", b"id: 1\rdata: x\r\nid: 2\r\ndata: y\r\n\r\n"], limit=300, cuts=[9])
@example(parts=[b"data: a\n\n", b"id: \xff\ndata: b\n\n", b"data: c\n\n"], limit=300, cuts=[12])
def test_any_cut_of_any_body_reads_like_the_whole(parts: list[bytes], limit: int, cuts: list[int]) -> None:
    """Blocks, comments, cursor and retry do not depend on how the bytes were cut."""
    body = b"".join(parts)
    uneven: list[bytes] = []
    left = body
    while left:
        size = cuts[len(uneven) % len(cuts)]
        uneven.append(left[:size])
        left = left[size:]
    expected = reference(body, limit)

    assert expected == read([body], limit)
    assert expected == read(parts, limit)
    assert expected == read(uneven, limit)
    assert expected == read(cut(body, 1), limit)


@settings(deadline=None)
@given(body=st.binary(max_size=200), size=st.integers(1, 50))
def test_no_bytes_raise(body: bytes, size: int) -> None:
    """Bytes that are no event stream at all are read as the standard says, and raise nothing."""
    assert reference(body) == read(cut(body, size))


FRAMING = {
    "CRLF everywhere": (b"id: 1\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [block(b"a", id="1"), block(b"b")]),
    "CR only, the stream ends in LF CR": (b"data: a\r\rdata: b\n\r", [block(b"a"), block(b"b")]),
    "CR only": (b"id: 1\rdata: a\r\r", [block(b"a", id="1")]),
    "LS, PS, NEL, VT and FF are text": (
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\n\n".encode(),
        [block("a\u2028b\u2029c\x85d\x0be\x0cf".encode())],
    ),
    "a keep-alive after an id": (b"id:1\n: ping\n\n: ping\n\n", [block(id="1")]),
    "comments only": (b": ping - 1\n\n: ping - 2\n\n", []),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [block(b"a")]),
    "a second byte order mark is text": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [block(b"b")]),
    "part of a byte order mark is text": (b"\xef\xbbdata: a\n\ndata: b\n\n", [block(b"b")]),
    "no blank line at the end": (b"data: a\n\ndata: b\n", [block(b"a")]),
    "no line end at the end": (b"data: a\n\nretry: 5", [block(b"a")]),
    "several data lines": (b'data: {"a":\ndata: 1}\n\n', [block(b'{"a":\n1}')]),
    "several empty data lines": (b"data\ndata:\ndata: \n\n", [block(b"\n\n")]),
    "no space after the colon": (b"id:1\nevent:e\ndata:x\n\n", [block(b"x", type="e", id="1")]),
    "one space is dropped, not two": (b"id:  1\ndata:  x\n\n", [block(b" x", id=" 1")]),
    "no event line": (b"data: a\n\n", [block(b"a")]),
    "an error event": (b"event: error\ndata: {}\n\n", [block(b"{}", type="error")]),
    "a ping event without data": (b"event: ping\n\n", [block(type="ping")]),
    "a keepalive event with empty data": (b"event: keepalive\ndata: \n\n", [block(b"", type="keepalive")]),
    "a heartbeat as data": (b'data: {"type":"heartbeat"}\n\n', [block(b'{"type":"heartbeat"}')]),
    "a primer": (b"event: prime\nid: 1\nretry: 9\ndata:\n\n", [block(b"", type="prime", id="1", retry=9)]),
    "only a retry, only an id": (b"retry: 100\n\nid: 2\n\n", [block(retry=100), block(id="2")]),
    "the id last": (b"event: message\ndata: a\nid: 9\n\n", [block(b"a", type="message", id="9")]),
    "the id twice": (b"id: 1\nevent: e\nid: 2\ndata: a\nid: 3\n\n", [block(b"a", type="e", id="3")]),
    "an emptied type": (b"event: a\nevent:\ndata: x\n\n", [block(b"x")]),
    "unknown fields": (b"foo: 1\nDATA: 2\n data: 3\ndatum\n\ndata: a\n\n", [block(b"a")]),
    "ignored fields only": (b"retry: x\nid: a\0b\nfoo\n\n", []),
    "blank lines": (b"\n\r\n\r\rdata: a\n\n\n\n", [block(b"a")]),
    "bytes that are no UTF-8": (
        b"id: \xff\nevent: \xe2\x80\ndata: \xff\n\n",
        [block(b"\xff", type="\ufffd", id="\ufffd")],
    ),
    "nothing": (b"", []),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMING)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_framing_of_real_servers(name: str, size: int) -> None:
    """Each framing met in the field yields its blocks, whole and in pieces, first in its stream or later."""
    body, expected = FRAMING[name]
    assert expected == read(cut(body, size)).blocks
    if not body.startswith(b"\xef\xbb\xbf"):
        assert expected == read([b"\n", *cut(body, size)]).blocks


def test_a_crlf_cut_in_two_is_one_line_end() -> None:
    """The LF that follows a CR in the next chunk is no blank line."""
    assert [block(b"a\nb")] == read([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]).blocks


def test_a_cr_closes_the_block_at_once() -> None:
    """A block that ends in CR is not held back until it is known whether an LF follows."""
    assert [block(b"a")] == Scanner().receive(b"data: a\r\r")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"3000", 3000),
        (b"0", 0),
        (b"007", 7),
        (b"999999999999999", 999_999_999_999_999),
        (b"1000000000000000", None),
        (b"9" * 100_000, None),
        (b"", None),
        (b"abc", None),
        (b"-5", None),
        (b"+5", None),
        (b"1.5", None),
        (b"1e3", None),
        (b" 5", None),
        (b"5 ", None),
        (b"1_000", None),
        ("٣٤".encode(), None),
        ("²".encode(), None),
    ],
)
def test_retry_is_ascii_digits(value: bytes, expected: int | None) -> None:
    """9.2.6: "If the field value consists of only ASCII digits"; anything else leaves the last one."""
    reading = read([b"retry: 42\n\nretry: " + value + b"\ndata: x\n\n"])
    assert (42 if expected is None else expected) == reading.retry
    assert expected == reading.blocks[-1].retry


def test_retry_applies_at_its_own_line_end() -> None:
    """A retry counts before its block is closed."""
    scanner = Scanner()
    scanner.receive(b"retry: 10")
    assert scanner.retry is None
    scanner.receive(b"\n")
    assert scanner.retry == 10


@pytest.mark.parametrize(
    ("chunk", "own", "cursor"),
    [
        (b"data: x\n\n", None, "1"),
        (b"id: 2\ndata: x\n\n", "2", "2"),
        (b"id: 2\n\n", "2", "2"),
        (b"id:\ndata: x\n\n", "", ""),
        (b"id\ndata: x\n\n", "", ""),
        (b"id: \ndata: x\n\n", "", ""),
        (b"id: 2\0\ndata: x\n\n", None, "1"),
        (b"id: 2\nid: 3\0\ndata: x\n\n", "2", "2"),
        (b"id: 2\nid: 3\ndata: x\n\n", "3", "3"),
    ],
)
def test_ids_stick_are_cleared_and_may_hold_no_nul(chunk: bytes, own: str | None, cursor: str) -> None:
    """A block without an id leaves the cursor, an empty id clears it, an id with NUL is ignored."""
    scanner = Scanner()
    scanner.receive(b"id: 1\ndata: a\n\n")
    assert [own] == [block.id for block in scanner.receive(chunk)]
    assert cursor == scanner.last_event_id


def test_the_cursor_moves_when_the_block_closes() -> None:
    """An id in a block that is not closed yet is no cursor."""
    scanner = Scanner()
    scanner.receive(b"id: 1\ndata: a\n")
    assert scanner.last_event_id == ""
    scanner.receive(b"\n")
    assert scanner.last_event_id == "1"


@pytest.mark.parametrize(
    "chunks", [[b"x" * 20_000], [b"x" * 20_000, b"\0", b"x"], [b"\0" + b"x" * 20_000], [b"x" * 5000 + b"\0"]]
)
def test_an_overlong_id_is_cut_and_still_searched_for_nul(chunks: list[bytes]) -> None:
    """Of an id the first 4096 characters are kept; a NUL voids it wherever it stands."""
    expected = None if b"\0" in b"".join(chunks) else "x" * 4096
    body = [b"id: ", *chunks, b"\ndata: a\n\n"]
    assert [expected] == [block.id for block in read(body).blocks]
    assert [expected] == [block.id for block in read([b"".join(body)]).blocks]
    assert [expected] == [block.id for block in read(cut(b"".join(body), 1)).blocks]


@pytest.mark.parametrize("char", ["x", "é", "€", "🎈", "\ufffd"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bounds_count_characters(char: str, end: str) -> None:
    """4096 characters of an id and 256 of a type are kept, however many bytes they take."""
    for length in (256, 257, 4096, 4097, 9000):
        for name, limit in (("id", 4096), ("type", 256)):
            field = {"id": "id: ", "type": "event: "}[name] + char * length
            body = end.join([field, "data: a", "", ""]).encode()
            for size in (13, 1000, len(body)):
                assert [block(b"a", **{name: (char * length)[:limit]})] == read(cut(body, size)).blocks


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b":\r\n"], [1]),
        ([b":"], [0]),
        ([b":", b"\r", b"\n"], [0, 1, 1]),
        ([b": a\n: b\n\n", b":\n\n"], [2, 3]),
        ([b"data: a\n: inside\ndata: b\n\n"], [1]),
        ([b":" + b"x" * 50_000, b"\n"], [0, 1]),
        ([b"\xef\xbb\xbf:\n"], [1]),
        ([b"data: x\n\n", b": ping\r\n", b"data: y\n\n"], [0, 1, 1]),
    ],
)
def test_comments_count_at_their_own_line_end(chunks: list[bytes], expected: list[int]) -> None:
    """A keep-alive needs no blank line to be seen."""
    scanner = Scanner()
    counts = []
    for chunk in chunks:
        scanner.receive(chunk)
        counts.append(scanner.comments)
    assert expected == counts


@pytest.mark.parametrize("size", [1, 1000, PIECE, BIG])
@pytest.mark.parametrize("over", [0, 1, 5000])
def test_oversize_data_keeps_both_ends(size: int, over: int) -> None:
    """Data over the limit keeps its length, its first 4096 and its last 4096 bytes: its kind can be told."""
    limit = 20_000
    data = (b'{"jsonrpc":"2.0","id":7,"result":"' + b"x" * (limit + over))[: limit + over - 2] + b'"}'
    (found,) = read(cut(b"id: 1\ndata: " + data + b"\n\n", size), limit).blocks
    whole = over == 0
    assert found == Block(
        "",
        data if whole else data[:4096],
        b"" if whole else data[-4096:],
        len(data),
        "1",
        None,
        has_data=True,
    )


def test_ends_of_data_in_many_lines() -> None:
    """Head, tail and length of oversize data count the LF between its lines."""
    lines = [b"%d" % i for i in range(5000)]
    body = b"".join(b"data: %s\r\n" % line for line in lines) + b"\r\n"
    data = b"\n".join(lines)
    for size in (1, 777, len(body)):
        assert [Block("", data[:4096], data[-4096:], len(data), None, None, has_data=True)] == read(
            cut(body, size), 10_000
        ).blocks


FLOOD = [b"x" * PIECE] * (BIG // PIECE)
ENDLESS: dict[str, Callable[[], list[bytes]]] = {
    "data": lambda: [b"data: ", *FLOOD, b"\n\n"],
    "data in one chunk": lambda: [b"data: " + b"x" * BIG + b"\n\n"],
    "data lines": lambda: [b"data:\n" * 2000] * 100,
    "data lines in one chunk": lambda: [b"data:\n" * 200_000 + b"\n"],
    "id": lambda: [b"id: ", *FLOOD, b"\n\n"],
    "id lines": lambda: [b"id: abc\n" * 2000] * 100,
    "event": lambda: [b"event: ", *FLOOD, b"\n\n"],
    "retry": lambda: [b"retry: ", *[b"1" * PIECE] * len(FLOOD), b"\n\n"],
    "comment": lambda: [b":", *FLOOD, b"\n\n"],
    "comment in one chunk": lambda: [b":" + b"x" * BIG + b"\n\n"],
    "unknown field": lambda: [b"foo: ", *FLOOD, b"\n\n"],
    "no field": lambda: FLOOD,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_memory_is_bounded(name: str) -> None:
    """Ten MB, or 200,000 lines, in one block take less than four peek limits, the block included."""
    limit = 64 * 1024
    chunks = ENDLESS[name]()
    scanner = Scanner(limit)
    tracemalloc.start()
    try:
        for chunk in chunks:
            scanner.receive(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit


GROWING: dict[str, Callable[[int], list[bytes]]] = {
    "one byte a chunk": lambda n: cut(b"data: " + b"x" * n + b"\n\n", 1),
    "one byte a chunk, lines": lambda n: cut(b"data:\n" * (n // 6), 1),
    "lines without CR": lambda n: [b"data:\n" * n],
    "lines without LF": lambda n: [b"data:\r" * n],
    "regular and irregular blocks in turn": lambda n: [b":\n", b"data: a\n\ndata: b\ndata: c\n\n" * (n // 8)],
    "an unfinished line": lambda n: [b":\n", b"data: a\n\nid: 1\nevent:  e\ndata: " + b"x" * n * 8],
    "blocks with a CR inside": lambda n: [b":\n", b"data: a\rb\r\n\r\n" * (n // 8)],
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("limit", [10_000, 1024 * 1024 * 1024])
def test_time_is_linear(name: str, limit: int) -> None:
    """Eight times the bytes take some eight times as long; a quadratic step would take 64 times."""

    def seconds(chunks: list[bytes]) -> float:
        times = []
        for _ in range(3):
            scanner = Scanner(limit)
            start = time.process_time()
            for chunk in chunks:
                scanner.receive(chunk)
            times.append(time.process_time() - start)
        return min(times)

    size = 20_000
    assert seconds(GROWING[name](8 * size)) < 30 * max(seconds(GROWING[name](size)), 1e-4)
