"""The causes of reconnects: every row is reached, and the first that fits decides."""

from typing import Any, get_args

import pytest

from opentelemetry.instrumentation.httpx_sse import _ledger
from opentelemetry.instrumentation.httpx_sse._dialect import DEFAULT
from opentelemetry.instrumentation.httpx_sse._events import Origin
from opentelemetry.instrumentation.httpx_sse._ledger._attempts import CAUSES
from opentelemetry.instrumentation.httpx_sse._ledger._records import Attempt, Dialogue, Logical, Place
from opentelemetry.instrumentation.httpx_sse._names import ReconnectCause

IDLE = _ledger.Thresholds().idle_threshold


def past(*, is_terminal: bool = False, had_poll: bool = False, **fields: Any) -> tuple[Logical, Attempt]:
    """A logical stream, and how its last attempt went."""
    origin = Origin("http", "h1", 80)
    stream = Logical(1, Place((origin, 1), origin), Dialogue(1), "response", DEFAULT, b"", 0.0)
    stream.is_terminal, stream.had_poll = is_terminal, had_poll
    attempt = Attempt(is_reconnect=False, started_at=0.0, has_cursor=False, credentials=b"")
    for name, value in fields.items():
        setattr(attempt, name, value)
    return stream, attempt


EXAMPLES: dict[str, tuple[Logical, Attempt]] = {
    "after_terminal": past(is_terminal=True, is_refused=True, ended_at=1.0),
    "refused": past(is_refused=True, ended_at=1.0, error="network_error"),
    "connect_error": past(error="timeout", ended_at=1.0),
    "client_timeout": past(opened_at=0.5, end="read_timeout", silence=60.0, ended_at=1.0),
    "idle_timeout": past(opened_at=0.5, end="network_error", silence=60.0, ended_at=1.0),
    "network_error": past(opened_at=0.5, end="network_error", ended_at=1.0),
    "server_poll": past(opened_at=0.5, end="server_closed", sent_poll=True, ended_at=1.0),
    "server_close": past(opened_at=0.5, end="server_closed", ended_at=1.0),
    "client_close": past(opened_at=0.5, end="abandoned", ended_at=1.0),
}


def fitting(stream: Logical, attempt: Attempt) -> list[str]:
    return [row.cause for row in CAUSES if row.fits(stream, attempt, IDLE)]


@pytest.mark.parametrize("cause", EXAMPLES)
def test_first_that_fits(cause: str) -> None:
    """An example comes to its cause, and all but the last would fit a later row as well."""
    found = fitting(*EXAMPLES[cause])
    assert cause == found[0]
    assert cause == "client_close" or len(found) > 1


def test_every_row_is_reached() -> None:
    """There is a row for each cause but `unknown`, which is what is left, and the examples reach them in order."""
    assert [*EXAMPLES, "unknown"] == list(get_args(ReconnectCause))
    assert list(EXAMPLES) == [row.cause for row in CAUSES]


def test_unknown() -> None:
    """While the attempt before is under way nothing is known."""
    assert fitting(*past(opened_at=0.5)) == []


@pytest.mark.parametrize(("had_poll", "cause"), [(True, "server_poll"), (False, "server_close")])
def test_quiet_poll(*, had_poll: bool, cause: str) -> None:
    """A quiet end is a poll where there was one before."""
    found = fitting(
        *past(had_poll=had_poll, opened_at=0.5, end="server_closed", outcome="quiet", ended_at=1.0)
    )
    assert cause == found[0]
