"""From a block's data to JSON-RPC messages: what kind, whose id, and the few fields that decide something.

Payload is skipped, not parsed: `msgspec` walks over it and keeps nothing. What must be compared later
(params, questions) leaves here as a digest under a key of this process. Nothing here raises for any input.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec

from ._events import Asked, Body, JsonId, Message, MessageKind

ERROR_TEXT_LIMIT: Final = 512
"""Characters of an error's message that are matched against phrases."""

BODY_TEXT_LIMIT: Final = 4096
"""Bytes of a failed exchange's body that are matched against phrases."""

IDENTIFIER_LIMIT: Final = 128
"""Characters of an id, a name or a method that is kept as it is; a longer one is kept as a digest."""

LONGEST_IDENTIFIER: Final = 4096
"""Characters of an identifier that are compared; the scanner cuts event ids there too."""

SUBJECT_LIMIT: Final = 256 * 1024
"""Bytes of `params` that are compared by meaning; longer ones are compared byte by byte."""

BATCH_LIMIT: Final = 256
"""Messages of one batch (MCP 2025-03-26) that are looked at."""

ASKED_LIMIT: Final = 64
"""Questions of one `input_required` result that are looked at."""

URL_ELICITATION_REQUIRED: Final = -32042
"""MCP 2025-11-25, client/elicitation, Error handling: URLElicitationRequiredError."""

LARGEST_ID: Final = 2**63
"""A JSON-RPC id that is no larger in size than that is kept; official clients count up from 0."""

_KEY: Final = secrets.token_bytes(32)
_NO_RAW: Final = msgspec.Raw(b"")
_VOLATILE: Final = ("_meta", "inputResponses", "requestState")


class _Wire(msgspec.Struct, gc=False):
    """JSON-RPC 2.0, sections 4 and 5; every value that may be a payload stays raw."""

    jsonrpc: str = ""
    method: str = ""
    id: msgspec.Raw = _NO_RAW
    params: msgspec.Raw = _NO_RAW
    result: msgspec.Raw = _NO_RAW
    error: msgspec.Raw = _NO_RAW


class _Params(msgspec.Struct, gc=False):
    """Parameters of requests and notifications that decide something."""

    meta: msgspec.Raw = msgspec.field(default=_NO_RAW, name="_meta")
    name: msgspec.Raw = _NO_RAW
    uri: msgspec.Raw = _NO_RAW
    requestId: msgspec.Raw = _NO_RAW
    requestState: msgspec.Raw = _NO_RAW
    inputResponses: msgspec.Raw = _NO_RAW
    protocolVersion: msgspec.Raw = _NO_RAW


class _Result(msgspec.Struct, gc=False):
    resultType: msgspec.Raw = _NO_RAW
    inputRequests: msgspec.Raw = _NO_RAW
    requestState: msgspec.Raw = _NO_RAW
    protocolVersion: msgspec.Raw = _NO_RAW


class _Error(msgspec.Struct, gc=False):
    code: msgspec.Raw = _NO_RAW
    message: msgspec.Raw = _NO_RAW
    data: msgspec.Raw = _NO_RAW


_decode_wire: Final = msgspec.json.Decoder(_Wire).decode
_decode_params: Final = msgspec.json.Decoder(_Params).decode
_decode_result: Final = msgspec.json.Decoder(_Result).decode
_decode_error: Final = msgspec.json.Decoder(_Error).decode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_map: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode

# What msgspec raises for bytes that are no JSON, are of another shape, or are nested too deep.
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)

OTHER_MESSAGE: Final = Message(kind=MessageKind.OTHER)


def shorten(identifier: str) -> str:
    """An identifier at its own length, or one of a bounded length that stands for it in this process."""
    if len(identifier) <= IDENTIFIER_LIMIT:
        return identifier
    return digest(identifier[:LONGEST_IDENTIFIER].encode("utf-8", "replace")).hex()


def _heads() -> dict[bytes, tuple[Message, ...]]:
    members = [(m, f'"method":"notifications/{m}"') for m in ("progress", "message")]
    return {
        head.encode(): (Message(kind=MessageKind.NOTIFICATION, method=f"notifications/{name}"),)
        for name, member in members
        for head in (f'{{"jsonrpc":"2.0",{member}', f"{{{member}")
    }


_ORDINARY: Final = _heads()
"""Notifications that come in masses, by how servers begin them: those are read no further. A notification has no
id and no answer, whatever may follow."""

_BEGINNINGS: Final = tuple(_ORDINARY)


class _Version(msgspec.Struct, gc=False):
    jsonrpc: msgspec.Raw = _NO_RAW


_decode_version: Final = msgspec.json.Decoder(_Version).decode


def sort(data: bytes) -> Literal["notification", "other"] | None:
    """What an object in an event's data is, if there is no more to know of it: an ordinary notification, or no
    JSON-RPC at all. None if it has to be read."""
    if data.startswith(_BEGINNINGS):
        return "notification"
    try:
        return None if _decode_version(data).jsonrpc else "other"
    except _UNREADABLE:
        return None


def digest(data: bytes) -> bytes:
    """16 bytes that stand for `data` in this process only."""
    return hashlib.blake2b(data, key=_KEY, digest_size=16).digest()


def read_data(data: bytes, tail: bytes = b"", *, liveness_key: str | None = None) -> tuple[Message, ...]:
    """The JSON-RPC messages in an event's data or in a body; none if it is no JSON-RPC.

    `tail` is not empty when the event was too large to be kept: then `data` is its head.
    """
    if data.startswith(_BEGINNINGS):
        return next(found for head, found in _ORDINARY.items() if data.startswith(head))
    if tail:
        return _guess(data, tail)
    start = data.lstrip()[:1]
    if start == b"{":
        message = _read_one(data, liveness_key)
        return () if message.kind is MessageKind.OTHER else (message,)
    if start == b"[":
        return _read_batch(data, liveness_key)
    return ()


def read_body(data: bytes, *, liveness_key: str | None = None) -> Body:
    """What a response's body, as far as it was read, says."""
    text = data[:BODY_TEXT_LIMIT].decode("utf-8", "replace").lower()
    return Body(text, read_data(data, liveness_key=liveness_key))


def _read_batch(data: bytes, liveness_key: str | None) -> tuple[Message, ...]:
    """MCP 2025-03-26, basic/transports: an array of requests, notifications and responses."""
    items = _attempt(_decode_list, data) or []
    messages = (_read_one(item, liveness_key) for item in items[:BATCH_LIMIT])
    return tuple(m for m in messages if m.kind is not MessageKind.OTHER)


def _read_one(data: bytes | msgspec.Raw, liveness_key: str | None) -> Message:
    wire = _attempt(_decode_wire, data)
    if wire is None or wire.jsonrpc != "2.0":
        return OTHER_MESSAGE
    if wire.method:
        identifier = _id(wire.id)
        if identifier is None:
            return _notification(wire)
        return _request(wire, identifier, liveness_key)
    if _present(wire.error):
        return _failure(wire)
    if wire.result:
        return _success(wire)
    return OTHER_MESSAGE


def _notification(wire: _Wire) -> Message:
    cancels = None
    if wire.method == "notifications/cancelled":
        params = _attempt(_decode_params, wire.params)
        cancels = _id(params.requestId) if params else None
    return Message(kind=MessageKind.NOTIFICATION, method=shorten(wire.method), cancels=cancels)


def _request(wire: _Wire, identifier: JsonId, liveness_key: str | None) -> Message:
    params = _attempt(_decode_params, wire.params) or _Params()
    meta = _attempt(_decode_map, params.meta) or {}
    return Message(
        kind=MessageKind.REQUEST,
        id=identifier,
        method=shorten(wire.method),
        name=_string(params.name) or _string(params.uri),
        subject=_subject(wire.params),
        state=digest(params.requestState) if _present(params.requestState) else b"",
        has_input=_present(params.inputResponses),
        progress_token=_id(meta.get("progressToken", _NO_RAW)),
        asserts_liveness=liveness_key is not None and liveness_key in meta,
        protocol_version=_string(params.protocolVersion),
    )


def _success(wire: _Wire) -> Message:
    raw = bytes(wire.result)
    # Most results are nothing but payload; only these two words make another look worth its price.
    if b"input_required" not in raw and b"protocolVersion" not in raw:
        return Message(kind=MessageKind.RESPONSE, id=_id(wire.id))
    result = _attempt(_decode_result, raw) or _Result()
    required = _string(result.resultType) == "input_required"
    return Message(
        kind=MessageKind.RESPONSE,
        id=_id(wire.id),
        input_required=required,
        state=digest(result.requestState) if required and _present(result.requestState) else b"",
        asked=_input_requests(result.inputRequests) if required else (),
        protocol_version=_string(result.protocolVersion),
    )


def _failure(wire: _Wire) -> Message:
    error = _attempt(_decode_error, wire.error) or _Error()
    code = _id(error.code)
    code = code if isinstance(code, int) else None
    return Message(
        kind=MessageKind.RESPONSE,
        id=_id(wire.id),
        is_error=True,
        error_code=code,
        error_text=_prose(error.message),
        asked=_url_elicitations(error.data) if code == URL_ELICITATION_REQUIRED else (),
    )


def _input_requests(raw: msgspec.Raw) -> tuple[Asked, ...]:
    """MCP 2026-07-28: `inputRequests` maps a key of the server's to a request without an id."""
    requests = _attempt(_decode_map, raw) or {}
    return tuple(_asked(key, value) for key, value in sorted(requests.items())[:ASKED_LIMIT])


def _asked(key: str, raw: msgspec.Raw) -> Asked:
    request = _attempt(_decode_any, raw)
    if not isinstance(request, dict):
        return Asked(method="", digest=digest(key.encode("utf-8", "replace") + bytes(raw)))
    method, params = request.get("method"), request.get("params")
    mode = params.get("mode") if isinstance(params, dict) else None
    return Asked(
        method=method if isinstance(method, str) else "",
        digest=digest(key.encode("utf-8", "replace") + b"\0" + _canonical(request)),
        is_url=mode == "url",
    )


def _url_elicitations(raw: msgspec.Raw) -> tuple[Asked, ...]:
    data = _attempt(_decode_map, raw) or {}
    pages = _attempt(_decode_list, data.get("elicitations", _NO_RAW)) or []
    return tuple(
        Asked(method="elicitation/create", digest=digest(bytes(page)), is_url=True)
        for page in pages[:ASKED_LIMIT]
    )


def _subject(raw: msgspec.Raw) -> bytes:
    if not raw:
        return b""
    if len(raw) <= SUBJECT_LIMIT:
        params = _attempt(_decode_any, raw)
        if isinstance(params, dict):
            return digest(_canonical({k: v for k, v in params.items() if k not in _VOLATILE}))
    return digest(raw)


def _canonical(value: object) -> bytes:
    """Equal bytes for equal JSON values, whatever the order of keys."""
    try:
        return _encode(value)
    except (*_UNREADABLE, TypeError, UnicodeError, OverflowError):
        return b""


def _attempt(decode: Callable[[bytes | msgspec.Raw], Any], data: bytes | msgspec.Raw) -> Any:
    """What `decode` makes of `data`, or None: no data, another shape, or no JSON at all."""
    if not data:
        return None
    try:
        return decode(data)
    except _UNREADABLE:
        return None


def _present(raw: msgspec.Raw) -> bool:
    return bool(raw) and bytes(raw) != b"null"


def _id(raw: msgspec.Raw) -> JsonId | None:
    """A JSON-RPC id: a string or an integer; null, fractions and everything else are none."""
    value = _attempt(_decode_any, raw)
    if isinstance(value, str):
        return shorten(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_ID
    return value if is_number else None


def _string(raw: msgspec.Raw) -> str:
    value = _attempt(_decode_any, raw)
    return shorten(value) if isinstance(value, str) else ""


def _prose(raw: msgspec.Raw) -> str:
    value = _attempt(_decode_any, raw)
    return value[:ERROR_TEXT_LIMIT].lower() if isinstance(value, str) else ""


# ------------------------------------------------------------------ events too large to keep

_PAYLOAD_KEY = re.compile(rb'"(params|result|error)"\s*:')
_HEAD_FIELD = re.compile(rb'"(jsonrpc|id|method)"\s*:\s*("(?:[^"\\]|\\.){0,256}"|-?\d{1,18})')
_TAIL_FIELD = rb',\s*"(?:jsonrpc|id|method)"\s*:\s*(?:"(?:[^"\\]|\\.){0,256}"|-?\d{1,18})\s*'
# The first one stands outside of the group: so the engine jumps from comma to comma.
_TAIL_FIELDS = re.compile(_TAIL_FIELD + b"(?:" + _TAIL_FIELD + rb"){0,2}\}\s*$")


def _guess(head: bytes, tail: bytes) -> tuple[Message, ...]:
    """The message of which only head and tail were kept: its short fields stand before or after the payload."""
    payload = _PAYLOAD_KEY.search(head)
    before = head[: payload.start()] if payload else head
    after = _TAIL_FIELDS.search(tail)
    fields = dict(_fields(_HEAD_FIELD.findall(before)))
    fields.update(_fields(_HEAD_FIELD.findall(after.group())) if after else ())
    if fields.get("jsonrpc") != "2.0" or payload is None:
        return ()
    identifier, method = fields.get("id"), fields.get("method", "")
    if method and isinstance(method, str):
        kind = MessageKind.NOTIFICATION if identifier is None else MessageKind.REQUEST
        return (Message(kind=kind, id=identifier, method=method),)
    if payload.group(1) == b"params":
        return ()
    is_error = payload.group(1) == b"error"
    return (Message(kind=MessageKind.RESPONSE, id=identifier, is_error=is_error),)


def _fields(pairs: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[str, JsonId]]:
    for key, raw in pairs:
        value = _attempt(_decode_any, raw)
        if isinstance(value, int | str):
            yield key.decode(), value
