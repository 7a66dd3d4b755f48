"""Bodies and heads that somebody made to hurt whoever reads them, at any size."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
PIECE: Final = 64 * KIB
"""Bytes of one read, as both libraries ask for them."""

SSE: Final = {"Content-Type": "text/event-stream"}
JSON: Final = {"Content-Type": "application/json"}
HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
    "Mcp-Session-Id": "s",
}
CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'


@dataclass(frozen=True)
class Attack:
    """An exchange whose body has a size.

    Attributes:
        body: the response's body at a size, piece by piece; the same each time.
        content: the request's body at a size.
        most: bytes that watching it may hold at any size, above what the client holds.
        is_crowd: it is made of many small things.
    """

    body: Callable[[int], Iterator[bytes]]
    status: int = 200
    answer: dict[str, str] = field(default_factory=lambda: SSE)
    asked: dict[str, str] = field(default_factory=lambda: HEADERS)
    content: Callable[[int], bytes] = lambda _: CALL
    most: int = 2 * MIB
    is_crowd: bool = False


def pieces(whole: bytes) -> Iterator[bytes]:
    """As it comes from a socket."""
    for at in range(0, len(whole), PIECE):
        yield whole[at : at + PIECE]


def event(data: str) -> Callable[[int], Iterator[bytes]]:
    """One event; `…` stands for as much as the size asks, of what stands between it and the next `…`."""

    def body(size: int) -> Iterator[bytes]:
        return pieces(b"id: 1\ndata: " + grown(data, size) + b"\n\n")

    return body


def grown(text: str, size: int) -> bytes:
    """`a…b…c`: an `a`, about `size` bytes of `b`, a `c`."""
    before, unit, after = text.encode().split("…".encode())
    return before + unit * max(size // len(unit), 1) + after


def whole(text: str) -> Callable[[int], Iterator[bytes]]:
    """A body that is no event stream."""
    return lambda size: pieces(grown(text, size))


def many(line: str) -> Callable[[int], Iterator[bytes]]:
    """As many small things as fill the size; `#` is their number."""

    def body(size: int) -> Iterator[bytes]:
        count = max(size // len(line.replace("#", "0")), 1)
        numbers = iter(range(count))
        while batch := list(islice(numbers, 4096)):
            yield b"".join(line.replace("#", str(number)).encode() for number in batch)

    return body


def crowd(line: str, *, most: int = 2 * MIB) -> Attack:
    return Attack(many(line), most=most, is_crowd=True)


def bomb(size: int) -> Iterator[bytes]:
    """Events that their coding makes a thousand times smaller."""
    return pieces(gzip.compress(b"data: " + b"0" * size + b"\n\n", mtime=0))


def nothing(_: int) -> Iterator[bytes]:
    return iter(())


SURROGATE: Final = "\\ud800"
DIGITS: Final = "٣"

ATTACKS: Final[dict[str, Attack]] = {
    # One event that is deep, long, wide or strange.
    "deep arrays": Attack(event("…[…")),
    "deep objects": Attack(event('…{"a":…1')),
    "deep params": Attack(event('{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":…[…}')),
    "deep result": Attack(event('{"jsonrpc":"2.0","id":1,"result":…{"a":…1}')),
    "deep input requests": Attack(
        event('{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":…{"a":…1}}')
    ),
    "long string": Attack(event('{"jsonrpc":"2.0","id":1,"result":"…x…"}')),
    "long line without an end": Attack(event("…x…")),
    "long line of escapes": Attack(event('{"jsonrpc":"2.0","id":"…\\u0041…","method":"roots/list"}')),
    "long method": Attack(event('{"jsonrpc":"2.0","id":1,"method":"…x…/create"}')),
    "long error": Attack(event('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"…session …"}}')),
    "duplicate keys": Attack(event('{"jsonrpc":"2.0","id":9,"method":"a","method":"roots/list"…,"id":7…}')),
    "duplicate params": Attack(event('{"jsonrpc":"2.0","id":9,"method":"roots/list"…,"params":{}…}')),
    "surrogates": Attack(
        event(f'{{"jsonrpc":"2.0","id":"{SURROGATE}","method":"roots/list","params":["…{SURROGATE}…"]}}')
    ),
    "surrogates in questions": Attack(
        event(f'{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","inputRequests":{{"{SURROGATE}":"…{SURROGATE}…"}}}}}}')
    ),
    "huge number": Attack(event('{"jsonrpc":"2.0","id":…9…,"method":"roots/list"}')),
    "huge exponent": Attack(event('{"jsonrpc":"2.0","id":1e…9…,"result":{}}')),
    "huge progress token": Attack(
        event('{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"_meta":{"progressToken":…9…}}}')
    ),
    "huge batch": Attack(event('[{}…,{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}…]')),
    "many questions": Attack(
        event('{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":1…,"b":{"mode":"url"}…}}}')
    ),
    "many pages": Attack(
        event('{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"data":{"elicitations":[{}…,{"url":"u"}…]}}}')
    ),
    "brackets that nobody closes": Attack(event('…{"method":"…')),
    "quotes": Attack(event('…\\"…')),
    "fields that look like the end": Attack(event('{"jsonrpc":"2.0","result":"…,"id":1…"')),
    # Many small things.
    "tiny events": crowd("data:\n\n"),
    "tiny events with ids": crowd("id:#\n\n"),
    "tiny events with carriage returns": crowd("data\r\r"),
    "empty lines": crowd("\n"),
    "comments": crowd(":\n"),
    "empty data lines of one event": crowd("data\n"),
    "long event of short lines": crowd("data: x\n"),
    "NULs": crowd("data: \0\n\n"),
    "byte order marks": crowd("\ufeff"),
    "questions": crowd('data: {"jsonrpc":"2.0","id":#,"method":"elicitation/create"}\n\n', most=12 * MIB),
    "answers": crowd('data: {"jsonrpc":"2.0","id":#,"result":{}}\n\n', most=4 * MIB),
    "fields that nobody knows": crowd("a#: b\n"),
    "broken UTF-8": Attack(lambda size: pieces(b"id: \xff\xfe\ndata: \xc3\n\n" * max(size // 22, 1)), is_crowd=True),
    # Identifiers and numbers of the transport.
    "long event id": Attack(lambda size: pieces(b"id: " + b"x" * size + b"\ndata: 1\n\n")),
    "long event type": Attack(lambda size: pieces(b"event: " + b"x" * size + b"\ndata: 1\n\n")),
    "long session id": Attack(event("…x…"), answer={**SSE, "Mcp-Session-Id": "x" * MIB}, most=8 * MIB),
    "long endpoint": Attack(lambda size: pieces(b"event: endpoint\ndata: /" + b"x" * size + b"\n\n")),
    "retry of zero": crowd("retry: 0\n\n"),
    "retry below zero": crowd("retry: -1\n\n"),
    "retry in Arabic digits": crowd(f"retry: {DIGITS}\n\n"),
    "retry of many digits": Attack(lambda size: pieces(b"retry: " + b"9" * size + b"\n\n")),
    # Bodies that are no event stream, and codings.
    "deep JSON result": Attack(whole("…[…"), answer=JSON),
    "long JSON result": Attack(whole('{"jsonrpc":"2.0","id":1,"result":"…x…"}'), answer=JSON),
    "long refusal": Attack(whole("…session not found …"), status=404, answer=JSON),
    "deep refusal": Attack(whole('…{"error":…1'), status=400, answer=JSON),
    "bomb": Attack(bomb, answer={**SSE, "Content-Encoding": "gzip"}),
    "no bomb": Attack(event("…x…"), answer={**SSE, "Content-Encoding": "gzip"}),
    # What the host itself sends.
    "deep call": Attack(
        nothing, content=lambda size: grown('{"jsonrpc":"2.0","id":1,"method":"m","params":…[…}', size)
    ),
    "long call": Attack(
        nothing, content=lambda size: grown('{"jsonrpc":"2.0","id":1,"method":"m","params":"…x…"}', size)
    ),
    "huge batch of calls": Attack(
        nothing, content=lambda size: grown('[{}…,{"jsonrpc":"2.0","id":1,"method":"tools/call"}…]', size), most=4 * MIB
    ),
    "long cursor": Attack(event("…x…"), asked={**HEADERS, "Last-Event-ID": "x" * MIB}, most=8 * MIB),
}  # fmt: skip
"""By name. Each is built at several sizes, so that its price can be compared."""
