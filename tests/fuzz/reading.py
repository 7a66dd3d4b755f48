"""Targets of the reading layer: scanner, envelope, dialect and failure table."""

from typing import Final, get_args

from opentelemetry.instrumentation.httpx_sse import _scanner
from opentelemetry.instrumentation.httpx_sse._dialect import DIALECTS, dialect_of, is_prompt
from opentelemetry.instrumentation.httpx_sse._envelope import (
    ASKED_LIMIT,
    BATCH_LIMIT,
    ERROR_TEXT_LIMIT,
    read_body,
    read_data,
)
from opentelemetry.instrumentation.httpx_sse._events import Body, ErrorKind, Message, MessageKind
from opentelemetry.instrumentation.httpx_sse._failure import Failure, classify, classify_replay, signal_of
from opentelemetry.instrumentation.httpx_sse._names import METRICS, FailurePoint, SessionSignal
from opentelemetry.instrumentation.httpx_sse._scanner import Block, Scanner

from .draw import Draw

# ------------------------------------------------------------------ scanner

FRAGMENTS: Final = (
    b"\n", b"\r\n", b"\r", b"data: ", b"data:", b"data", b"id: ", b"id:", b"id", b"event: ", b"event:", b"retry: ",
    b"retry:", b":", b": ping", b" ", b"7", b"-5", b"1.5", b"0", "٣".encode(), b"\0", "\ufeff".encode(), b"\xff\xfe",
    "\u2028".encode(), "é".encode()[:1], b"\x85", b"{}", b'{"jsonrpc":"2.0","id":1,"result":{}}', b"message",
    b"\n\n", b"\r\n\r\n", b"\r\r", b"data: x\n\n", b"id: 1\r\ndata: y\r\n\r\n", b"event: message\ndata: z\nid: 9\n\n",
)  # fmt: skip
PEEK_LIMITS: Final = (_scanner.PEEK_LIMIT, 32, 5000)
RUNS: Final = (1, 1, 1, 1, 1, 1, 2, 3, 17, 1100, 4097, 17_000)
SEEN_OF_A_BLOCK: Final = _scanner.HEAD + _scanner.TAIL


def stream_body(draw: Draw, fragments: int = 24) -> bytes:
    """Something like an event stream."""
    parts = []
    for _ in range(1 + draw.below(fragments)):
        part = draw.raw(12) if draw.chance(8) else draw.pick(FRAGMENTS)
        parts.append(part * (draw.pick(RUNS) if draw.chance(60) else 1))
    return b"".join(parts)


def scanner(draw: Draw) -> None:
    """However a body is cut, the same is read; what is held does not grow with it."""
    limit = draw.pick(PEEK_LIMITS)
    body = stream_body(draw)
    whole, cut = Scanner(limit), Scanner(limit)
    expected = whole.receive(body)
    blocks: list[Block] = []
    at = 0
    while at < len(body):
        step = 1 + draw.below(16) if not draw.is_spent else 1 + len(body) // 3
        step *= 1 + 400 * draw.chance(4)
        blocks += cut.receive(body[at : at + step])
        at += step
        _held(cut, limit)
    _same(blocks, expected)
    left, right = _state(cut), _state(whole)
    if left != right:
        raise AssertionError(f"cut {left} whole {right}")
    for block in expected:
        if len(block.data) > max(limit, _scanner.HEAD) or len(block.tail) > _scanner.TAIL:
            raise AssertionError("a block is over its bound")
        read_data(block.data, block.tail)


def _state(one: Scanner) -> tuple[int, str, int | None]:
    return one.comments, one.last_event_id, one.retry


def _same(blocks: list[Block], expected: list[Block]) -> None:
    if blocks != expected:
        raise AssertionError(f"cut {blocks[:4]} whole {expected[:4]}")


def _held(one: Scanner, limit: int) -> None:
    held = len(one._line), len(one._data), len(one._tail)
    bounds = (_scanner._LINE_LIMIT + 1, max(limit, _scanner.HEAD), 2 * _scanner.TAIL)
    if any(size > bound for size, bound in zip(held, bounds, strict=True)):
        raise AssertionError(f"held {held}, bounds {bounds}")


# ------------------------------------------------------------------ envelope

WORDS: Final = (
    b'{"jsonrpc":"2.0",', b'"id":', b'"method":', b'"params":', b'"result":', b'"error":', b"{", b"}", b"[", b"]", b",",
    b":", b'"', b"null", b"true", b"1", b"-1", b"1e400", b"1.0", b"18446744073709551616", b'"a"', b'"\\ud800"',
    b'"\\u0000"',
    b'"initialize"', b'"ping"', b'"tools/call"', b'"elicitation/create"', b'"notifications/cancelled"', b'"requestId":',
    b'"_meta":', b'"progressToken":', b'"name":', b'"uri":', b'"requestState":', b'"inputResponses":', b'"resultType":',
    b'"input_required"', b'"inputRequests":', b'"code":', b"-32042", b"-32601", b'"message":', b'"data":',
    b'"elicitations":', b'"mode":', b'"url"', b'"protocolVersion":', b'"2025-11-25"',
    b'"jsonrpc":"2.0"', b'"Session not found"',
)  # fmt: skip
TEMPLATES: Final = (
    (b'{"jsonrpc":"2.0","id":', b',"method":', b',"params":', b"}"),
    (b'{"jsonrpc":"2.0","id":', b',"result":', b"}"),
    (b'{"jsonrpc":"2.0","id":', b',"error":{"code":', b',"message":', b',"data":', b"}}"),
    (
        b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":',
        b',"requestState":',
        b"}}",
    ),
    (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":', b"}}"),
    (b'[{"jsonrpc":"2.0","id":', b',"method":', b"},", b"]"),
    (b'{"result":', b',"id":', b',"jsonrpc":"2.0"}'),
)


def json_like(draw: Draw) -> bytes:
    """Something like a JSON-RPC message, or a batch of them."""
    parts: list[bytes] = []
    if draw.chance(3):
        parts = [draw.pick(WORDS) for _ in range(1 + draw.below(20))]
    else:
        for piece in draw.pick(TEMPLATES):
            parts += [piece, draw.raw(6) if draw.chance(6) else draw.pick(WORDS)]
        parts.pop()
    if draw.chance(12):
        parts[draw.below(len(parts))] *= draw.pick(RUNS)
    return b"".join(parts)


def envelope(draw: Draw) -> None:
    """Any bytes are messages or none, and of a message only bounded parts are kept."""
    data = json_like(draw)
    tail = draw.raw(40) + json_like(draw)[-_scanner.TAIL :] if draw.chance(4) else b""
    messages = read_data(data, tail, liveness_key="live" if draw.chance(2) else None)
    if len(messages) > BATCH_LIMIT:
        raise AssertionError("more messages than a batch may have")
    for message in messages:
        _bounded(message)
    body = read_body(data)
    if not tail and body.messages != messages and not any(m.asserts_liveness for m in messages):
        raise AssertionError("body and event are read differently")


def _bounded(message: Message) -> None:
    if len(message.error_text) > ERROR_TEXT_LIMIT or len(message.asked) > ASKED_LIMIT:
        raise AssertionError("a message keeps more than its bounds")
    if message.kind is MessageKind.REQUEST and (message.id is None or not message.method):
        raise AssertionError("a request without id or method")
    hash(message)


# ------------------------------------------------------------------ dialect

VERSIONS: Final = (
    *DIALECTS,
    "",
    "2027-01-01",
    "2024-10-07",
    "1.0",
    "\u0662\u0660\u0662\u0667-\u0660\u0661-\u0660\u0661",
    "2026-07-29",
    "9999-99-99",
    "draft",
)


def dialect(draw: Draw) -> None:
    """Every version is read as a revision, and a newer one as the newest."""
    version = draw.pick(VERSIONS)
    if draw.chance(2):
        at = draw.below(len(version) + 1)
        version = version[:at] + draw.raw(4).decode("utf-8", "replace") + version[at:]
    found = dialect_of(version)
    if found not in DIALECTS.values():
        raise AssertionError("no revision")
    if version in DIALECTS and found.version != version:
        raise AssertionError("a revision read as another")
    is_prompt(version)


# ------------------------------------------------------------------ failure table

POINTS: Final[tuple[FailurePoint, ...]] = get_args(FailurePoint)
ERRORS: Final[tuple[ErrorKind | None, ...]] = (None, None, None, *get_args(ErrorKind))
STATUSES: Final = (200, 202, 204, 301, 400, 401, 403, 404, 405, 406, 408, 409, 410, 415, 418, 422, 425, 429, 499,
                   500, 501, 502, 503, 504, 599, 999)  # fmt: skip
TEXTS: Final = (
    "", "session", "not found", "session not found", "event", "event not found", "missing session id", "already",
    "session id abc not found", "last-event-id", "cursor", "stream expired", "server not initialized", "<html>", " ",
    "only one sse stream", "invalid or expired session", "no valid session", "session has been terminated", "expired",
)  # fmt: skip
REACHABLE: Final = frozenset(METRICS["sse.client.classifications"].reachable)
SIGNALS: Final = frozenset(get_args(SessionSignal))


def failure(draw: Draw) -> None:
    """What the table says of a failure is a label set that is listed."""
    point = draw.pick(POINTS)
    text = " ".join(draw.pick(TEXTS) for _ in range(draw.below(4)))
    messages = tuple(
        Message(kind=MessageKind.RESPONSE, is_error=True, error_code=draw.pick((None, -32601, -32001, 0)))
        for _ in range(draw.below(2))
    )
    is_get = point in ("open", "resume")
    has_response = not draw.chance(5)
    status = draw.pick(STATUSES) if has_response else None
    ruling = classify(
        Failure(
            point,
            is_get=is_get,
            has_session=draw.chance(2),
            status=status,
            error=draw.pick(ERRORS) if not has_response else None,
            body=Body(text, messages),
            stray_error=status == 200 and draw.chance(2),
            answer_error=point == "answer" and bool(messages),
            media_refused=is_get and has_response and status in (200, 202, 204),
        )
    )
    if ruling is not None and (point, ruling.disposition, ruling.reason) not in REACHABLE:
        raise AssertionError(f"{point} {ruling} at {status} is not listed")
    if signal_of(status) not in SIGNALS:
        raise AssertionError("no signal")
    classify_replay(empty=draw.chance(2), terminal=draw.chance(2))
