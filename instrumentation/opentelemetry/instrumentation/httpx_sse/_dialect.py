"""What each revision of MCP allows, one frozen row per revision, the specification's sentence beside each field.

The ledger asks a row, never a version.
"""

from dataclasses import dataclass
from typing import Final

from ._names import OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The rules of one protocol revision."""

    version: str

    has_sessions: bool
    """2025-03-26, basic/transports, Session Management: "A server using the Streamable HTTP transport MAY
    assign a session ID at initialization time, by including it in an `Mcp-Session-Id` header".
    2026-07-28, basic/transports: the protocol is stateless and has no session header."""

    has_resumption: bool
    """2025-03-26, basic/transports, Resumability and Redelivery: "If the client wishes to resume after a
    broken connection, it SHOULD issue an HTTP GET to the MCP endpoint, and include the `Last-Event-ID`
    header". 2026-07-28: streams are not resumable; a request whose stream broke is sent again."""

    close_cancels: bool
    """2025-06-18, basic/transports: "Disconnection SHOULD NOT be interpreted as the client cancelling its
    request." 2026-07-28: closing the response stream cancels the request."""

    has_server_requests: bool
    """2025-06-18, basic/transports: "The server MAY send JSON-RPC requests and notifications before sending
    the JSON-RPC response." 2026-07-28: what a server needs it asks for by `input_required` results."""

    has_batches: bool
    """2025-03-26, basic/transports: the body of a POST may be "an array batching one or more requests and/or
    notifications". 2025-06-18, changelog: batching was removed."""

    has_polling: bool
    """2025-11-25, basic/transports (SEP-1699): "the server SHOULD immediately send an SSE event consisting of
    an event ID and an empty `data` field", and then "MAY close the connection"."""

    has_input_rounds: bool
    """2026-07-28: a result may have `resultType: "input_required"`; the client sends the request again with
    `inputResponses` and the `requestState` that it was given."""

    has_listen: bool
    """2026-07-28: notifications come on the response stream of `subscriptions/listen`, not on a GET."""

    has_ping: bool
    """2024-11-05 to 2025-11-25, basic/utilities/ping: "The receiver MUST respond promptly with an empty
    response." 2026-07-28 has no ping."""


_2024_11_05 = Dialect(
    version="2024-11-05",
    has_sessions=False,
    has_resumption=False,
    close_cancels=False,
    has_server_requests=True,
    has_batches=True,
    has_polling=False,
    has_input_rounds=False,
    has_listen=False,
    has_ping=True,
)
_2025_03_26 = Dialect(
    version="2025-03-26",
    has_sessions=True,
    has_resumption=True,
    close_cancels=False,
    has_server_requests=True,
    has_batches=True,
    has_polling=False,
    has_input_rounds=False,
    has_listen=False,
    has_ping=True,
)
_2025_06_18 = Dialect(
    version="2025-06-18",
    has_sessions=True,
    has_resumption=True,
    close_cancels=False,
    has_server_requests=True,
    has_batches=False,
    has_polling=False,
    has_input_rounds=False,
    has_listen=False,
    has_ping=True,
)
_2025_11_25 = Dialect(
    version="2025-11-25",
    has_sessions=True,
    has_resumption=True,
    close_cancels=False,
    has_server_requests=True,
    has_batches=False,
    has_polling=True,
    has_input_rounds=False,
    has_listen=False,
    has_ping=True,
)
_2026_07_28 = Dialect(
    version="2026-07-28",
    has_sessions=False,
    has_resumption=False,
    close_cancels=True,
    has_server_requests=False,
    has_batches=False,
    has_polling=False,
    has_input_rounds=True,
    has_listen=True,
    has_ping=False,
)

DIALECTS: Final = {d.version: d for d in (_2024_11_05, _2025_03_26, _2025_06_18, _2025_11_25, _2026_07_28)}

DEFAULT: Final = _2025_03_26
"""2025-06-18, basic/transports, Protocol Version Header: "if the server does not receive an
`MCP-Protocol-Version` header … the server SHOULD assume protocol version `2025-03-26`"."""

NEWEST: Final = _2026_07_28


def dialect_of(version: str | None) -> Dialect:
    """The row of `version`; a newer unknown one is read as the newest known, any other as the default."""
    if not version:
        return DEFAULT
    known = DIALECTS.get(version)
    if known is not None:
        return known
    return NEWEST if _is_date(version) and version > NEWEST.version else DEFAULT


def version_name(version: str) -> str:
    """A revision as telemetry names it: peers write the header and the field, so what is no date is `_OTHER`."""
    return version if version in DIALECTS or not version or _is_date(version) else OTHER


def _is_date(version: str) -> bool:
    """Revisions are dates, `YYYY-MM-DD` (MCP, specification/versioning)."""
    year, _, rest = version.partition("-")
    month, _, day = rest.partition("-")
    return all(part.isascii() and part.isdigit() for part in (year, month, day)) and len(version) == 10  # noqa: PLR2004


def is_prompt(method: str) -> bool:
    """Whether a server request reaches a person or a model (design, Terms)."""
    return method.endswith(("/create", "/createMessage"))
