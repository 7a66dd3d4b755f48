"""What a request says: from an httpx or httpx2 request, met by shape, to the fact that it was sent."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from ._envelope import digest, read_data, shorten
from ._events import Message, Origin, Sent
from ._peek import EDGE

REQUEST_BODY_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a request's body that are read for its JSON-RPC messages; of a longer one, head and tail."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_TELLING: Final = frozenset((b"mcp-session-id", b"mcp-protocol-version", b"last-event-id"))

Headers = Mapping[bytes, bytes]
"""Raw names in lower case, and values."""


class Request(Protocol):
    """The part of an httpx or httpx2 request that is looked at."""

    method: str
    url: Any
    headers: Any


def headers_of(request: Request) -> Headers:
    """Its headers, by names in lower case."""
    return {key.lower(): value for key, value in request.headers.raw}


def may_matter(method: str, headers: Headers) -> bool:
    """A cheap look before a request is described: most requests of most programs end here."""
    return not _TELLING.isdisjoint(headers) or (method == "POST" and accepts_stream(headers))


def accepts_stream(headers: Headers) -> bool:
    return b"text/event-stream" in headers.get(b"accept", b"").lower()


def describe(
    request: Request,
    headers: Headers,
    *,
    exchange: int,
    pool: int,
    liveness_key: str | None,
    is_own: bool,
) -> Sent:
    """The facts of a request; whether it is MCP-shaped is told in design, Terms."""
    session, version = text(headers, b"mcp-session-id"), text(headers, b"mcp-protocol-version")
    is_post = request.method == "POST"
    messages = _messages(request, liveness_key) if is_post else ()
    accepts, named = accepts_stream(headers), session is not None or version is not None
    is_mcp = (
        named and accepts if request.method == "GET" else named or (is_post and accepts and bool(messages))
    )
    authorization = headers.get(b"authorization")
    return Sent(
        exchange=exchange,
        pool=pool,
        origin=_origin(request.url),
        target=target(str(request.url)),
        http_method=request.method,
        mcp=is_mcp,
        session=session,
        cursor=text(headers, b"last-event-id"),
        version=version,
        credentials=digest(authorization) if authorization else b"",
        messages=messages,
        is_own=is_own,
    )


def text(headers: Headers, name: bytes) -> str | None:
    """A header's value; an empty one is none."""
    value = headers.get(name)
    return shorten(value.decode("utf-8", "replace")) if value else None


def target(url: str) -> bytes:
    """What stands for a URL."""
    return digest(url.encode("utf-8", "replace"))


def _messages(request: Request, liveness_key: str | None) -> tuple[Message, ...]:
    """What a request's body says, if it is in memory: a streaming body is never touched."""
    try:
        content = request.content  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - RequestNotRead of either library
        return ()
    if not isinstance(content, bytes):
        return ()
    if len(content) > REQUEST_BODY_LIMIT:
        return read_data(content[:EDGE], content[-EDGE:])
    return read_data(content, liveness_key=liveness_key)


def _origin(url: Any) -> Origin:
    scheme = str(url.scheme)
    return Origin(scheme, str(url.host), url.port or _DEFAULT_PORTS.get(scheme, 0))
