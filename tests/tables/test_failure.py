"""Table 3.5 and the table of causes: every row is reached, and the first that fits decides."""

from typing import Any, get_args

import pytest

from opentelemetry.instrumentation.httpx_sse import _failure as failure
from opentelemetry.instrumentation.httpx_sse._envelope import read_body
from opentelemetry.instrumentation.httpx_sse._failure import TABLE, Failure, classify
from opentelemetry.instrumentation.httpx_sse._names import Disposition, FailureReason


def error(code: int, text: str) -> bytes:
    return b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s"}}' % (code, text.encode())


def shown(point: Any, body: bytes = b"", **fields: Any) -> Failure:
    return Failure(point, body=read_body(body), **fields)


EXAMPLES: tuple[tuple[Failure, str, str], ...] = (
    (shown("resume", is_get=True, error="timeout", status=404), "retryable", "timeout"),
    (shown("open", is_get=True, error="network_error", status=409), "retryable", "network_error"),
    (
        shown("resume", error(-32601, "session not found"), is_get=True, status=404, has_session=True),
        "terminal",
        "method_missing",
    ),
    (
        shown("resume", b"session expired; busy", is_get=True, status=409, has_session=True),
        "retryable",
        "conflict",
    ),
    (
        shown("open", b"session already active, session closed", is_get=True, status=400, has_session=True),
        "retryable",
        "conflict",
    ),
    (shown("open", is_get=True, status=409), "ambiguous", "conflict"),
    (shown("request", b"session not found", status=401, has_session=True), "terminal", "unauthorized"),
    (
        shown("resume", b"session not found: cursor", is_get=True, status=503, has_session=True),
        "terminal",
        "session_lost",
    ),
    (shown("resume", b"event not found", is_get=True, status=429), "terminal", "cursor_evicted"),
    (shown("answer", status=429), "retryable", "throttled"),
    (shown("answer", error(-32603, "oops"), status=500, answer_error=True), "retryable", "server_error"),
    (shown("answer", status=410, has_session=True), "terminal", "unknown_request"),
    (shown("resume", is_get=True, status=410), "terminal", "session_lost"),
    (shown("resume", is_get=True, status=404), "terminal", "cursor_evicted"),
    (shown("open", b"no route", is_get=True, status=404, has_session=True), "terminal", "unsupported"),
    (shown("request", status=405), "terminal", "unsupported"),
    (shown("request", status=418), "terminal", "bad_request"),
    (shown("open", is_get=True, status=202, media_refused=True), "terminal", "not_sse"),
)
"""What a failed exchange shows, and what it comes to; each but the last would fit a later row as well."""


def first(example: Failure) -> int:
    return next(n for n, row in enumerate(TABLE) if row.fits(example))


@pytest.mark.parametrize(("example", "disposition", "reason"), EXAMPLES)
def test_ruling(example: Failure, disposition: str, reason: str) -> None:
    """An example comes to what its first row says."""
    assert (disposition, reason) == classify(example)


def test_every_row_is_reached() -> None:
    """The examples reach every row, in the order of the table."""
    assert list(range(len(TABLE))) == sorted({first(example) for example, _, _ in EXAMPLES})


@pytest.mark.parametrize("number", range(len(TABLE) - 3))
def test_order_matters(number: int) -> None:
    """A row stands where it stands for a reason: an example of it would fit a later row as well."""
    own = [example for example, _, _ in EXAMPLES if first(example) == number]
    assert any(row.fits(example) for example in own for row in TABLE[number + 1 :])


def test_nothing_failed() -> None:
    """What did not fail is not classified."""
    assert None is classify(shown("request", status=200))
    assert None is classify(shown("open", is_get=True, status=307))
    assert None is classify(shown("open", is_get=True, error="cancelled"))


def test_dispositions() -> None:
    """Rows and replays come to nothing but the closed sets."""
    rulings = [classify(example) for example, _, _ in EXAMPLES]
    rulings += [failure.classify_replay(empty=e, terminal=t) for e in (True, False) for t in (True, False)]
    assert {r.reason for r in rulings if r} == set(get_args(FailureReason))
    assert {r.disposition for r in rulings if r} == set(get_args(Disposition)) - {"continue"}


SAID = {
    "session": (
        "Session not found", "session s-1 not found", "Session ID not found", "Session has been terminated",
        "session expired", "Session closed", "session is closing", "Invalid session", "invalid or expired session",
        "No valid session ID provided", "Could not find session", "unknown session",
        "session 7 unknown on this instance", "Server not initialized",
    ),
    "cursor": (
        "Event not found", "event id e1 not found", "event 7 unknown", "event expired", "event evicted",
        "event is no longer available", "unknown event", "Invalid event ID", "invalid_last_event_id",
        "bad Last-Event-ID", "cursor too old", "stream_expired", "stream has expired",
    ),
    "neither": (
        "Missing session ID", "Bad Request: Missing session ID", "method not found", "request not found",
        "obsession not founded", "event loop is busy", "tool wipe not found", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", SAID["session"])
def test_session_phrases(text: str) -> None:
    """A text that says that the session is gone is understood."""
    assert failure.names_lost_session(read_body(text.encode()))


@pytest.mark.parametrize("text", [*SAID["cursor"], *SAID["neither"]])
def test_no_session_phrases(text: str) -> None:
    """A text about anything else is not."""
    assert not failure.names_lost_session(read_body(text.encode()))


@pytest.mark.parametrize("text", SAID["cursor"])
def test_cursor_phrases(text: str) -> None:
    """A text that says that the cursor is gone is understood on a refused resume."""
    assert classify(shown("resume", text.encode(), is_get=True, status=400)) == ("terminal", "cursor_evicted")


@pytest.mark.parametrize("text", SAID["neither"])
def test_no_cursor_phrases(text: str) -> None:
    """A text about anything else is not."""
    assert classify(shown("resume", text.encode(), is_get=True, status=400)) == ("terminal", "bad_request")


@pytest.mark.parametrize(
    "phrases",
    [
        failure.SESSION_PHRASES,
        failure.MISSING_SESSION_PHRASES,
        failure.CURSOR_PHRASES,
        failure.ACTIVE_PHRASES,
    ],
)
def test_phrases_name_their_servers(phrases: tuple[tuple[str, str], ...]) -> None:
    """Every phrase stands beside a server that says it, and is a pattern over lower case."""
    assert all(
        pattern.replace(r"\S", "") == pattern.replace(r"\S", "").lower() and who for pattern, who in phrases
    )


def test_token_cures() -> None:
    """What a fresh token cures is not refused for good."""
    assert not failure.refused_for_good(failure.Ruling("terminal", "unauthorized"))
    assert not failure.refused_for_good(failure.Ruling("ambiguous", "conflict"))
    assert failure.refused_for_good(failure.Ruling("terminal", "session_lost"))
