"""Whether a session lives: design 3.3. Replay is a log operation, liveness a store operation.

Only sessions with an `Mcp-Session-Id`, and only in revisions that have sessions.
"""

from collections.abc import Iterator

from .._failure import Ruling, signal_of
from .._names import ProbeKind, ProbeOutcome, SessionPhase, SessionStanding
from .._verdicts import (
    DeadSessionEvents,
    DeadSessionRequest,
    Probed,
    SessionConfirmed,
    SessionEnded,
    SessionLost,
    SessionRevived,
    Verdict,
)
from ._records import Flight, Probe, Session
from ._state import State

Verdicts = Iterator[Verdict]


def sent(flight: Flight, at: float) -> Verdicts:
    """A request leaves on a session: it may be a probe, or be lost on a dead one."""
    session = flight.session
    if session is None:
        return
    session.used_at = at
    session.requests_open += 1
    if flight.sent.http_method != "DELETE":
        session.place.used_at = at
    is_initialize = any(request.method == "initialize" for request in flight.requests)
    if session.state == "lost":
        flight.met_lost = True
        if not is_initialize:
            yield DeadSessionRequest(server=session.origin, exchange=flight.exchange)
    is_ping = any(request.method == "ping" for request in flight.requests)
    is_checked = flight.sent.http_method in ("POST", "DELETE")
    if is_checked and session.unconfirmed_since is not None:
        kind: ProbeKind = "active" if flight.sent.is_own else "ping" if is_ping else "implicit"
        flight.met_doubt = True
        flight.probe = Probe(kind, after_replay=True)
    elif is_ping and not flight.sent.is_own:
        flight.probe = Probe("ping", after_replay=False)


def replayed(flight: Flight, at: float) -> None:
    """A stream was opened with a cursor: from now on the session is unconfirmed."""
    session = flight.session
    if session is None or session.state != "alive" or not flight.cursor:
        return
    session.replay = flight.stream
    if session.unconfirmed_since is None:
        session.unconfirmed_since = at
        session.replayed = 0


def delivered(flight: Flight, messages: int) -> None:
    """Messages came on one of the session's streams."""
    if flight.session is not None and flight.session.unconfirmed_since is not None:
        flight.session.replayed += messages


def probe_outcome(status: int | None, ruling: Ruling | None, *, proves: bool) -> ProbeOutcome:
    """What the answer to a session-scoped request says of its session, first that fits (design 3.3).

    Args:
        status: of the answer; None for no response at all.
        ruling: its classification, if it failed.
        proves: it has a JSON-RPC body, and is no refusal of an answer: whoever wrote it has looked into the session.
    """
    if ruling is not None and ruling.reason == "session_lost":
        return "dead"
    return "live" if status is not None and (200 <= status < 300 or proves) else "inconclusive"  # noqa: PLR2004


def settled(
    flight: Flight, *, status: int | None, ruling: Ruling | None, is_jsonrpc: bool, at: float
) -> Verdicts:
    """The answer to a request on a session is known, as far as it will be; None for no response at all."""
    session = flight.session
    if session is None:
        return
    outcome = probe_outcome(status, ruling, proves=is_jsonrpc and not flight.is_answer)
    is_lost = outcome == "dead"
    is_ok = status is not None and 200 <= status < 300 and not is_lost  # noqa: PLR2004
    phase: SessionPhase = "on_resume" if flight.cursor else "in_use"
    if flight.probe is not None:
        since, probe = session.unconfirmed_since, flight.probe
        flight.probe = None
        in_doubt = probe.after_replay and since is not None
        if in_doubt or probe.kind == "ping":
            yield _probed(flight, session, probe, outcome, in_doubt=in_doubt)
        if in_doubt and since is not None and outcome != "inconclusive":
            phase = "after_replay"
            session.unconfirmed_since = None
            yield SessionConfirmed(
                server=session.origin,
                exchange=flight.exchange,
                kind=probe.kind,
                outcome=outcome,
                seconds=max(at - since, 0.0),
            )
    if is_lost:
        yield from _lost(flight, session, phase, status, at)
    elif is_ok and flight.sent.http_method == "DELETE":
        yield from end(session, at, exchange=flight.exchange)
    elif is_ok and flight.met_lost and session.state == "lost" and flight.sent.http_method == "POST":
        session.state = "alive"
        yield SessionRevived(server=session.origin, exchange=flight.exchange)


def standing(session: Session | None) -> SessionStanding:
    """What is known of a session now."""
    if session is None:
        return "none"
    if session.state != "alive":
        return "lost"
    return "confirmed" if session.unconfirmed_since is None else "unconfirmed"


def _probed(
    flight: Flight, session: Session, probe: Probe, outcome: ProbeOutcome, *, in_doubt: bool
) -> Probed:
    request = flight.requests[0] if flight.requests else None
    return Probed(
        server=session.origin,
        exchange=flight.exchange,
        kind=probe.kind,
        outcome=outcome,
        context="after_replay" if in_doubt else "routine",
        method=request.method if request else "",
        version=flight.sent.version or flight.dialect.version,
        request_id=request.id if request else None,
        session=session.id,
        stream=session.replay.number if session.replay else None,
    )


def _lost(flight: Flight, session: Session, phase: SessionPhase, status: int | None, at: float) -> Verdicts:
    if session.state != "alive":
        return
    session.state, session.unconfirmed_since = "lost", None
    yield SessionLost(server=session.origin, exchange=flight.exchange, phase=phase, signal=signal_of(status))
    if phase == "after_replay" and session.replayed:
        yield DeadSessionEvents(server=session.origin, exchange=flight.exchange, count=session.replayed)
    yield from _over(session, at, exchange=flight.exchange, error_type="session_lost")


def end(session: Session, at: float, *, exchange: int | None) -> Verdicts:
    """The client has deleted it."""
    if session.state == "alive":
        yield from _over(session, at, exchange=exchange, error_type=None)
    session.state, session.unconfirmed_since = "ended", None
    for stream in session.place.streams.values():
        stream.cancel()


def _over(session: Session, at: float, *, exchange: int | None, error_type: str | None) -> Verdicts:
    """Its duration is told once."""
    if not session.is_over:
        session.is_over = True
        yield SessionEnded(
            server=session.origin,
            exchange=exchange,
            seconds=max(at - session.born_at, 0.0),
            version=session.version,
            error_type=error_type,
        )


def pool_closed(state: State, pool: int, at: float) -> Verdicts:
    """A transport is gone, and with it every session that no other transport uses.

    What it leaves behind still shows, and is lost, like anything that nobody comes back for: a client that was
    thrown away in the middle of a storm must not take the evidence along.
    """
    for session in list(state.sessions):
        if pool in session.pools:
            session.pools.discard(pool)
            if not session.pools and session.state == "alive":
                yield from _over(session, at, exchange=None, error_type=None)


def landed(flight: Flight, at: float) -> None:
    """The exchange is over."""
    if flight.session is not None:
        flight.session.used_at = at
        flight.session.requests_open -= 1


def assigned(state: State, flight: Flight, session_id: str, at: float) -> None:
    """`initialize` was given a session: what it began belongs there (MCP, Session Management)."""
    session = state.session(flight.sent.origin, session_id, flight.sent.pool, at)
    session.born_at = min(session.born_at, flight.at)
    if session.state != "alive":
        # The server gave an id out again that was lost or deleted: it is a new session.
        session.state, session.born_at, session.unconfirmed_since = "alive", flight.at, None
        session.is_over = False
    flight.assigned = session
    flight.place, flight.dialogue = session.place, session.dialogue
    for request in flight.requests:
        state.requests.put((session.dialogue.number, request.id), request)
