"""What can be seen: the facts that reach the ledger, each a value without behaviour.

An exchange is one HTTP request and its response. Its facts come in this order:
`Sent`, then `Unanswered` or `Answered`, then any number of `Received` and `Skimmed`, then one `Ended`.
Times are no part of a fact: they are given to the ledger beside it.
"""

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

from ._names import EventType

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - the verdicts are made by it as well
else:

    def dataclass(*, frozen: bool, **options: bool) -> Callable[[type], type]:
        """Frozen for whoever checks types: a dataclass that is frozen at run time takes three times as long to make,
        and several are made of every call."""
        return dataclasses.dataclass(**options, unsafe_hash=frozen)


JsonId = int | str
"""A JSON-RPC request id. Ids are scoped by direction (MCP, basic protocol, Messages)."""

Digest = bytes
"""A keyed digest that stands for a value which must not be kept."""

ErrorKind = Literal["network_error", "timeout", "cancelled"]
"""Why an exchange broke: the transport failed, the client's own time limit passed, or the client let go."""


class Origin(NamedTuple):
    """Where a server is: the parts of a URL that make an origin (RFC 6454), the port always explicit."""

    scheme: str
    host: str
    port: int


class MessageKind(Enum):
    """What a block of data is to JSON-RPC 2.0."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"
    OTHER = "other"
    """No JSON-RPC message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One thing that a server asks for inside a result or an error: its method and whether it is a page to visit."""

    method: str
    digest: Digest
    is_url: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One JSON-RPC message, without its payload.

    Digests are taken of `params` so that equal questions can be told from different ones.
    """

    kind: MessageKind
    id: JsonId | None = None
    method: str = ""
    name: str = ""
    """The tool, prompt or resource that a request names; compared, never exported unless asked for."""
    subject: Digest = b""
    """Requests: digest of `params` without `_meta`, `inputResponses` and `requestState`."""
    state: Digest = b""
    """Digest of `requestState`, empty without one."""
    has_input: bool = False
    """Requests: `inputResponses` is there."""
    progress_token: JsonId | None = None
    asserts_liveness: bool = False
    """Server requests: `params._meta` carries the key named by the option `liveness_key`."""
    cancels: JsonId | None = None
    """`notifications/cancelled`: the request that it names."""
    error_code: int | None = None
    is_error: bool = False
    error_text: str = ""
    """Errors: the message in lower case, cut at a bound; matched against phrases and dropped, never kept."""
    input_required: bool = False
    """Results: `resultType` is `input_required` (MCP 2026-07-28)."""
    asked: tuple[Asked, ...] = ()
    """What an `input_required` result or a -32042 error asks for."""
    protocol_version: str = ""
    """`initialize`: the revision that is asked for or agreed on."""


class Body(NamedTuple):
    """What the client itself read of a response that is no event stream, peeked at up to a bound."""

    text: str
    """In lower case, for phrases; "" when nothing was read."""
    messages: tuple[Message, ...]

    @property
    def was_read(self) -> bool:
        return bool(self.text)

    @property
    def is_jsonrpc(self) -> bool:
        return bool(self.messages)


NO_BODY = Body("", ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request leaves the client."""

    exchange: int
    pool: int
    """The httpx transport object, as a number that is never used again."""
    origin: Origin
    target: Digest
    """Digest of the URL."""
    http_method: str
    mcp: bool
    """MCP-shaped: see design, Terms."""
    session: str | None = None
    cursor: str | None = None
    version: str | None = None
    credentials: Digest = b""
    """Digest of `Authorization`, empty without it."""
    messages: tuple[Message, ...] = ()
    is_own: bool = False
    """Sent by this package, to learn whether a session lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """The request ended without a response: connecting, sending or waiting for headers failed."""

    exchange: int
    error: ErrorKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The head of the response came."""

    exchange: int
    status: int
    is_stream: bool
    """The media type is `text/event-stream`, and the status allows a body."""
    opaque: bool = False
    """The content coding cannot be read here: only bytes and ends are seen."""
    session: str | None = None
    location: Digest = b""
    """3xx: digest of the URL that the response points to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """An event came on a stream (WHATWG, Server-sent events, dispatch the event)."""

    exchange: int
    event_type: str = ""
    event_id: str | None = None
    """The event's own id field, not the sticky one."""
    retry: int | None = None
    """Milliseconds."""
    has_data: bool = True
    messages: tuple[Message, ...] = ()
    """Empty for a priming event and for data that is no JSON-RPC."""
    is_empty: bool = False
    """The data is the empty string."""
    endpoint: Digest = b""
    """2024-11-05: digest of the URL that an `endpoint` event names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skimmed:
    """Events of one type that decide nothing by themselves, counted in bulk."""

    exchange: int
    event_type: EventType
    count: int
    event_ids: tuple[str, ...] = ()
    """Their own id fields, in order; fewer than `count` when some had none."""
    forgotten: int = 0
    """How many of them had an id that is no longer known: older ones, when there were too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The response's body ended, or the client stopped reading it."""

    exchange: int
    how: Literal["exhausted", "failed", "closed", "abandoned"]
    error: ErrorKind | None = None
    body: Body = NO_BODY
    last_byte_at: float | None = None
    """When the last chunk came, in seconds on the ledger's clock; None without any."""
    opaque: bool = False
    """The content coding proved unreadable on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """In the server's place, the client was given an error as the response to all that a logical stream owed it."""

    exchange: int
    stream: int
    """The logical stream's number."""
    error_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolClosed:
    """An httpx transport object is gone, and with it every connection that it held."""

    pool: int


Event = Sent | Unanswered | Answered | Received | Skimmed | Ended | Concluded | PoolClosed
