"""Terminal or retryable, read off the contract's table once more; and what bodies of our catalogue say."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from .catalogue import BODIES, Body
from .journal import Json

_KNOWN: Final[dict[bytes, Body]] = {body.wire(): body for body in BODIES.values() if body.wire()}


@dataclass(frozen=True, slots=True)
class Case:
    """A failed exchange."""

    point: str
    is_get: bool
    with_session: bool
    status: int | None
    broke: str = ""
    """`broken` or `timeout`: no response, or cut before anything new."""
    read: bytes = b""
    """What the client read of the body."""
    in_flight: tuple[object, ...] = ()
    """Ids of requests that may be answered."""

    @property
    def body(self) -> Body:
        return _KNOWN.get(self.read, Body("", ""))

    @property
    def rpc(self) -> Json | None:
        """The body as a JSON-RPC message."""
        try:
            found = json.loads(self.read)
        except ValueError:
            return None
        return found if isinstance(found, dict) and found.get("jsonrpc") == "2.0" else None


Ruling = tuple[str, str]


def rule(case: Case) -> Ruling | None:
    """Disposition and reason, the first that fits; None when nothing failed."""
    status, body = case.status, case.body
    if case.broke:
        return "retryable", "timeout" if case.broke == "timeout" else "network_error"
    if status is None:
        return None
    if status >= 400:
        return _refused(case, status, body)
    return _accepted(case, status, body)


def _accepted(case: Case, status: int, body: Body) -> Ruling | None:
    error = case.rpc.get("error") if case.rpc else None
    if error is not None and case.rpc is not None:
        is_stray = case.rpc.get("id") is None or case.rpc["id"] not in case.in_flight
        if is_stray and case.with_session and body.says == "session gone":
            return "terminal", "session_lost"
        if case.point == "answer":
            return "terminal", "unknown_request"
    return ("terminal", "not_sse") if case.is_get else None


def _refused(case: Case, status: int, body: Body) -> Ruling:
    return next((row.disposition, row.reason) for row in REFUSED if row.fits(case, status, body))


class Row(NamedTuple):
    """A refusal, what it is worth, and why."""

    fits: Callable[[Case, int, Body], object]
    disposition: str
    reason: str


def _is_conflict(case: Case, status: int, body: Body) -> bool:
    return case.is_get and status == 409 and body.says != "cursor gone"


def _is_answer_refused(case: Case, status: int) -> bool:
    return case.point == "answer" and (status < 500 or bool(case.rpc and "error" in case.rpc))


def _names_session(case: Case, status: int) -> bool:
    names_route = case.point == "open" and case.read and case.rpc is None
    return status == 410 or (status == 404 and case.with_session and not names_route)


REFUSED: Final = (
    Row(lambda c, s, b: s == 404 and b.says == "method missing", "terminal", "method_missing"),
    Row(lambda c, s, b: _is_conflict(c, s, b) and c.read, "retryable", "conflict"),
    Row(_is_conflict, "ambiguous", "conflict"),
    Row(lambda c, s, b: c.is_get and s == 400 and b.says == "already active", "retryable", "conflict"),
    Row(lambda c, s, b: s in (401, 403), "terminal", "unauthorized"),
    Row(lambda c, s, b: c.with_session and b.says == "session gone", "terminal", "session_lost"),
    Row(lambda c, s, b: c.point == "resume" and b.says == "cursor gone", "terminal", "cursor_evicted"),
    Row(lambda c, s, b: s in (408, 425, 429), "retryable", "throttled"),
    Row(lambda c, s, b: s >= 500 and s != 501, "retryable", "server_error"),
    Row(lambda c, s, b: _is_answer_refused(c, s), "terminal", "unknown_request"),
    Row(lambda c, s, b: _names_session(c, s), "terminal", "session_lost"),
    Row(lambda c, s, b: s == 404 and c.point == "resume", "terminal", "cursor_evicted"),
    Row(lambda c, s, b: (s == 404 and c.is_get) or s in (405, 406, 415, 501), "terminal", "unsupported"),
    Row(lambda c, s, b: True, "terminal", "bad_request"),
)
"""The rows of the contract about refusals, the first that fits."""


def for_good(ruling: Ruling) -> bool:
    """No other try can succeed; a fresh token cures `unauthorized`."""
    return ruling[0] == "terminal" and ruling[1] != "unauthorized"
