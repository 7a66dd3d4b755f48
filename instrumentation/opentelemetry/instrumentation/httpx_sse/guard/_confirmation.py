"""Replay, then probe, then release or quarantine: a successful replay does not confirm that the session lives."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

from .._envelope import read_body
from .._failure import Failure, classify
from .._ledger._sessions import probe_outcome
from .._names import ProbeOutcome
from ._errors import SessionResumptionError, advice_of
from ._procedure import Procedure, Steps

E = TypeVar("E")

PROBES: Final = 3
"""Probes that are sent before a session's life is called unknowable."""

Probe = int | tuple[int, bytes] | None
"""The answer to a probe: its status, perhaps with the body; None for no answer."""


def judge_probe(answer: Probe) -> ProbeOutcome:
    """What the answer to a session-scoped request says of its session (design 3.3)."""
    status, body = answer if isinstance(answer, tuple) else (answer, b"")
    said = read_body(body)
    is_stray = status is not None and 200 <= status < 300 and any(m.is_error for m in said.messages)  # noqa: PLR2004
    ruling = classify(Failure("probe", has_session=True, status=status, body=said, stray_error=is_stray))
    return probe_outcome(status, ruling, proves=said.is_jsonrpc)


def confirm_session(
    session: str,
    cursor: str,
    open_sse: Callable[[str, str], Any],
    probe_liveness: Callable[[str], Any],
    *,
    attempts: int = PROBES,
    on_inconclusive: Literal["fail", "release"] = "fail",
) -> "Procedure[list[E]]":
    """Resume a stream, and give its events out only when the session is known to live.

    Args:
        session: the `Mcp-Session-Id`.
        cursor: sent as `Last-Event-ID`.
        open_sse: called with both; gives (status, events of the replay).
        probe_liveness: called with the session; sends a request that the server must check against its session
            store, such as a `ping`, never the GET itself. Gives a status, or a status and the body; may raise
            OSError for no answer.
        attempts: how often an inconclusive probe is made.
        on_inconclusive: what becomes of the replay after so many: an error, or delivery all the same.

    Returns:
        A procedure whose result are the events; run it, or await it if the two calls return awaitables.

    Raises:
        SessionResumptionError: the resume was refused, the session is gone, or its life could not be shown; the
            events of the replay are quarantined in it.
    """

    def steps() -> "Steps[list[E]]":
        opened: tuple[int, Sequence[E]] = yield lambda: open_sse(session, cursor)
        status, events = opened
        if not 200 <= status < 300:  # noqa: PLR2004
            raise _refused(status)
        outcome: ProbeOutcome = "inconclusive"
        for _ in range(attempts):
            try:
                answer: Probe = yield lambda: probe_liveness(session)
            except OSError:
                answer = None
            outcome = judge_probe(answer)
            if outcome != "inconclusive":
                break
        if outcome == "live" or (outcome == "inconclusive" and on_inconclusive == "release"):
            return list(events)
        raise unconfirmed(outcome, tuple(events))

    return Procedure(steps())


def _refused(status: int) -> SessionResumptionError:
    ruling = classify(Failure("resume", is_get=True, has_session=True, status=status))
    if ruling is None:
        return SessionResumptionError(f"The resume was answered with status {status}.", reason="bad_request")
    return SessionResumptionError(
        f"The resume itself was refused with status {status}.",
        reason=ruling.reason,
        disposition=ruling.disposition,
        advice=advice_of(ruling),
    )


def unconfirmed(outcome: ProbeOutcome, quarantined: tuple[object, ...] = ()) -> SessionResumptionError:
    """The error for a replay whose session is `dead`, or whose life could not be shown (`inconclusive`)."""
    kept = f"; {len(quarantined)} replayed events are quarantined." if quarantined else "."
    if outcome == "dead":
        return SessionResumptionError(
            f"The replay succeeded, but its session is gone{kept}", reason="dead", quarantined=quarantined
        )
    return SessionResumptionError(
        f"The replay succeeded, but no probe could show whether its session lives{kept}",
        reason="inconclusive",
        disposition="ambiguous",
        quarantined=quarantined,
    )
