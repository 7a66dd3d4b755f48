"""Terminal or retryable: one table from what a failed exchange shows to what another try is worth (design 3.5).

The first row that fits decides. A row is a condition with a name, a disposition and a reason; to change a rule,
change its row.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ._events import NO_BODY, Body, ErrorKind
from ._names import Disposition, FailurePoint, FailureReason, SessionSignal

METHOD_NOT_FOUND: Final = -32601
"""JSON-RPC 2.0, section 5.1."""

_GONE = r"(?: \S{1,80})? (?:was |is |has |have )?(?:been )?"
"""Between a noun and what became of it: perhaps an identifier, perhaps a verb."""

SESSION_PHRASES: Final = (
    # what is said, and a server that says it
    (rf"\bsession(?: id)?{_GONE}not found\b", "official Python and TypeScript servers, FastMCP, C# server"),
    (rf"\bsession(?: id)?{_GONE}terminated\b", "official Python server, after DELETE"),
    (rf"\bsession(?: id)?{_GONE}expired\b", "Java and Spring servers, gateways"),
    (rf"\bsession(?: id)?{_GONE}(?:closed|closing)\b", "Java, C# and Playwright servers"),
    (rf"\bsession(?: id)?{_GONE}unknown\b", "Rust server behind a balancer"),
    (r"\binvalid (?:or expired )?session\b", "Go servers, gateways"),
    (r"\bno valid session\b", "examples of the TypeScript server"),
    (r"\bcould not find session\b", "official Python server, two-endpoint transport"),
    (r"\bunknown session\b", "gateways"),
    (r"\bserver not initialized\b", "TypeScript server after a restart"),
)
"""What servers say when a session is gone: patterns over lower case."""

MISSING_SESSION_PHRASES: Final = ((r"\bmissing session id\b", "official Python server"),)
"""What servers say when a request names no session: no loss."""

CURSOR_PHRASES: Final = (
    (rf"\bevent(?: id)?{_GONE}not found\b", "TypeScript server, servers with a bounded event store"),
    (rf"\bevent(?: id)?{_GONE}(?:unknown|expired|evicted)\b", "gateways"),
    (rf"\bevent(?: id)?{_GONE}no longer available\b", "servers with a bounded event store"),
    (r"\b(?:unknown|expired|evicted) event\b", "gateways"),
    (r"\binvalid event id\b", "TypeScript server"),
    (r"\blast[-_ ]event[-_ ]id\b", "any that names the header; stream APIs: `invalid_last_event_id`"),
    (r"_last_event_id\b", "stream APIs: `invalid_last_event_id`"),
    (r"\bcursor\b", "gateways"),
    (r"\bstream[_ ](?:has )?expired\b", "stream APIs: 410 `stream_expired`"),
)
"""What servers say when a cursor cannot be replayed: patterns over lower case."""

ACTIVE_PHRASES: Final = (
    (r"\balready\b", "C# and TypeScript servers: `session already exists`, `stream already active`"),
    (r"\bonly one sse stream\b", "TypeScript server"),
    (r"\bstill active\b", "gateways"),
)
"""What servers say when an earlier stream of the session still holds its place: patterns over lower case."""


class Failure(NamedTuple):
    """What a failed exchange shows."""

    point: FailurePoint
    is_get: bool = False
    has_session: bool = False
    status: int | None = None
    """None when there was no response."""
    error: ErrorKind | None = None
    """The request or its body broke."""
    body: Body = NO_BODY
    stray_error: bool = False
    """2xx with a JSON-RPC error whose id is null, absent or no id of a request in flight."""
    answer_error: bool = False
    """An answer was met by a JSON-RPC error, whatever the status."""
    media_refused: bool = False
    """A GET was answered 2xx with something that is no event stream."""


class Ruling(NamedTuple):
    """What another try is worth, and why."""

    disposition: Disposition
    reason: FailureReason


class Row(NamedTuple):
    """One line of the table."""

    signal: str
    fits: Callable[[Failure], bool]
    disposition: Disposition | Callable[[Failure], Disposition]
    reason: FailureReason | Callable[[Failure], FailureReason]


def _any_of(phrases: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile("|".join(pattern for pattern, _ in phrases))


_SESSION, _MISSING_SESSION = _any_of(SESSION_PHRASES), _any_of(MISSING_SESSION_PHRASES)
_CURSOR, _ACTIVE = _any_of(CURSOR_PHRASES), _any_of(ACTIVE_PHRASES)


def names_lost_session(body: Body) -> bool:
    """Whether a body says that its session is gone."""
    return bool(_SESSION.search(body.text)) and not _MISSING_SESSION.search(body.text)


def _refused(f: Failure) -> bool:
    return f.status is not None and f.status >= 400  # noqa: PLR2004


def _broke(f: Failure) -> bool:
    return f.error is not None and f.error != "cancelled"


def _method_missing(f: Failure) -> bool:
    return f.status == 404 and any(m.error_code == METHOD_NOT_FOUND for m in f.body.messages)  # noqa: PLR2004


def _conflict(f: Failure) -> bool:
    if not f.is_get:
        return False
    if f.status == 409:  # noqa: PLR2004
        return not _CURSOR.search(f.body.text)
    return f.status == 400 and bool(_ACTIVE.search(f.body.text))  # noqa: PLR2004


def _session_named(f: Failure) -> bool:
    return f.has_session and (_refused(f) or f.stray_error) and names_lost_session(f.body)


def _cursor_named(f: Failure) -> bool:
    return f.point == "resume" and _refused(f) and bool(_CURSOR.search(f.body.text))


def _answer_refused(f: Failure) -> bool:
    return f.point == "answer" and (
        f.answer_error or (f.status is not None and 400 <= f.status < 500)  # noqa: PLR2004
    )


def _session_gone(f: Failure) -> bool:
    if f.status == 410:  # noqa: PLR2004
        return True
    route_missing = f.point == "open" and f.body.was_read and not f.body.is_jsonrpc
    return f.status == 404 and f.has_session and not route_missing  # noqa: PLR2004


def _status(*codes: int) -> Callable[[Failure], bool]:
    return lambda f: f.status in codes


TABLE: Final = (
    Row("exception before headers, or cut before anything new", _broke, "retryable",
        lambda f: "timeout" if f.error == "timeout" else "network_error"),
    Row("404 with -32601", _method_missing, "terminal", "method_missing"),
    Row("409 to a GET that names no cursor; 400 to a GET that says a stream is already active", _conflict,
        lambda f: "retryable" if f.body.was_read else "ambiguous", "conflict"),
    Row("401, 403", _status(401, 403), "terminal", "unauthorized"),
    Row("the body of a request with a session says that the session is gone", _session_named,
        "terminal", "session_lost"),
    Row("the body of a refused resume says that the cursor is gone", _cursor_named,
        "terminal", "cursor_evicted"),
    Row("408, 425, 429", _status(408, 425, 429), "retryable", "throttled"),
    Row("5xx, except 501", lambda f: f.status is not None and f.status >= 500 and f.status != 501,  # noqa: PLR2004
        "retryable", "server_error"),
    Row("an answer refused with any other 4xx, or met by a JSON-RPC error", _answer_refused,
        "terminal", "unknown_request"),
    Row("410; 404 with a session, unless a GET without a cursor hit a missing route", _session_gone,
        "terminal", "session_lost"),
    Row("other 404 to a resume", lambda f: f.status == 404 and f.point == "resume",  # noqa: PLR2004
        "terminal", "cursor_evicted"),
    Row("other 404 to a GET", lambda f: f.status == 404 and f.is_get, "terminal", "unsupported"),  # noqa: PLR2004
    Row("405, 406, 415, 501", _status(405, 406, 415, 501), "terminal", "unsupported"),
    Row("other 4xx", _refused, "terminal", "bad_request"),
    Row("2xx, not SSE, to a GET", lambda f: f.media_refused, "terminal", "not_sse"),
)  # fmt: skip


def classify(failure: Failure) -> Ruling | None:
    """The first row that fits; None when nothing failed."""
    for row in TABLE:
        if row.fits(failure):
            disposition, reason = row.disposition, row.reason
            return Ruling(
                disposition if isinstance(disposition, str) else disposition(failure),
                reason if isinstance(reason, str) else reason(failure),
            )
    return None


def classify_replay(*, empty: bool, terminal: bool) -> Ruling:
    """An accepted resume that brought no event (`empty`), or nothing new."""
    return Ruling("terminal" if terminal else "ambiguous", "empty_replay" if empty else "nothing_new")


_SIGNALS: Final[dict[int, SessionSignal]] = {404: "http_404", 410: "http_410", 400: "http_400"}


def signal_of(status: int | None) -> SessionSignal:
    """By which signal a lost session showed."""
    if status is None or status < 400:  # noqa: PLR2004
        return "error_body"
    return _SIGNALS.get(status, "http_other")


def refused_for_good(ruling: Ruling) -> bool:
    """A terminal classification, except that a fresh token cures `unauthorized`."""
    return ruling.disposition == "terminal" and ruling.reason != "unauthorized"
