"""Replay, then probe, then release or quarantine, in one exchange: the session is asked before the client is answered.

The probe is a JSON-RPC `ping` on a connection of its own. The ledger counts it as `active`, and what it says of the
session afterwards decides: so a request of the client that settled it meanwhile serves as well.
"""

import json
import secrets
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from .._dialect import dialect_of
from .._names import GuardAction, ProbeOutcome, SessionStanding
from .._scanner import Scanner
from .._steps import QUIET, Close, Next, Send, Sleep, Source, Step
from ._answers import OWN_ID, session_gone, stream
from ._confirmation import PROBES, unconfirmed
from ._quarantine import REPLAY_LIMIT, Quarantined

if TYPE_CHECKING:
    from ._script import GuardScript

PATIENCE: Final = 5.0
"""Seconds that a probe may take to connect, and to be answered."""

PAUSE: Final = 0.1
"""Seconds before the second probe; twice as many before the third."""

ANSWER_LIMIT: Final = 64 * 1024
"""Bytes of a probe's answer that are read."""

AT_ONCE: Final = 0.05
"""Seconds without a chunk after which what could be replayed at once has been."""

ACTS: Final[frozenset[GuardAction]] = frozenset({"session_quarantined", "probe_inconclusive"})
"""What a probe can lead to: with both switched off, none is sent."""

_OWN_HEADERS: Final = frozenset(
    {
        b"accept",
        b"accept-encoding",
        b"connection",
        b"content-length",
        b"content-type",
        b"last-event-id",
        b"transfer-encoding",
    }
)
"""Headers of the resume that are not those of a POST; all others, credentials among them, are copied."""

_OUTCOMES: Final[dict[SessionStanding, ProbeOutcome]] = {
    "none": "live",
    "confirmed": "live",
    "lost": "dead",
    "unconfirmed": "inconclusive",
}

_IN_DOUBT: Final[frozenset[SessionStanding]] = frozenset({"unconfirmed", "lost"})
"""Sessions that are asked: also one that is known to be lost may have come back, or its log outlives it."""

Turn = Generator[Step, Any, bool]


def probed(script: "GuardScript") -> Turn:
    """Confirm the session of a resumed stream; whether the client has been answered instead."""
    standing, exchange = script.standing, script.exchange
    if standing is None or exchange.sent is None or standing.session not in _IN_DOUBT:
        return False
    dialect = dialect_of(exchange.sent.version)
    settings = script.settings
    if not settings.probe or settings.dry_run or settings.disabled >= ACTS:
        return False
    if not (dialect.has_sessions and dialect.has_ping):
        return False
    source = script.source
    assert source is not None  # noqa: S101 - its head has just come
    try:
        outcome = yield from _outcome(script)
    except GeneratorExit:
        # A coroutine that is closed can wait for nothing more.
        raise
    except Exception as error:  # noqa: BLE001 - of our own ping: what the client asked for passes
        script.guard.containment.contain("guard", error)
        return False
    except BaseException as error:
        # The client has no response that it could close.
        script.tell("failed", error)
        yield Close(source)
        raise
    if outcome == "dead" and script.acts("session_quarantined"):
        yield from _quarantine(script, source)
        return True
    if outcome == "inconclusive" and standing.pending and script.settings.inconclusive == "fail":
        return (yield from _give_up(script, source))
    return False


def _outcome(script: "GuardScript") -> Generator[Step, Any, ProbeOutcome]:
    outcome: ProbeOutcome = "inconclusive"
    for n in range(PROBES):
        if n:
            yield Sleep(PAUSE * n)
        could_ask = yield from _ping(script)
        standing = script.standing
        outcome = _OUTCOMES[standing.session] if standing is not None else "live"
        if outcome != "inconclusive":
            break
        if not could_ask:
            return "live"
    return outcome


def _ping(script: "GuardScript") -> Turn:
    """Ask once; False when the client's own limits leave no connection for it."""
    exchange = script.observer.begin(
        script.transport, request := ping_of(script.request), script.exchange.context, is_own=True
    )
    try:
        source: Source = yield Send(request)
    except BaseException as error:
        exchange.unanswered(error)
        if not isinstance(error, Exception):
            raise
        return type(error).__name__ != "PoolTimeout"
    before, until = _session(script), script.observer.clock() + PATIENCE
    try:
        exchange.head(source.response.status_code, source.response.headers.raw)
        # A server may answer on an event stream that it leaves open: of one that is known to live, what comes at once.
        while exchange.bytes_read < ANSWER_LIMIT and script.observer.clock() < until:
            chunk = yield Next(source, None if _session(script) == before else AT_ONCE)
            if chunk is QUIET:
                break
            if chunk is None:
                exchange.exhausted()
                break
            exchange.receive(chunk)
    except GeneratorExit:
        raise
    except BaseException as error:
        exchange.failed(error)
        if not isinstance(error, Exception):
            yield Close(source)
            raise
    yield Close(source)
    exchange.closed()
    return True


def _session(script: "GuardScript") -> SessionStanding | None:
    standing = script.standing
    return None if standing is None else standing.session


def ping_of(request: Any) -> Any:
    """A `ping` to where a resume goes, with its credentials (MCP, basic/utilities/ping)."""
    body = {"jsonrpc": "2.0", "id": OWN_ID + secrets.token_hex(8), "method": "ping"}
    headers = [(key, value) for key, value in request.headers.raw if key.lower() not in _OWN_HEADERS]
    headers += [
        (b"Accept", b"application/json, text/event-stream"),
        (b"Accept-Encoding", b"identity"),
        (b"Content-Type", b"application/json"),
    ]
    limits = {key: min(value, PATIENCE) for key, value in _timeouts(request).items() if value is not None}
    timeouts = {**dict.fromkeys(("connect", "read", "write", "pool"), PATIENCE), **limits}
    return type(request)(
        "POST",
        request.url,
        headers=headers,
        content=json.dumps(body).encode(),
        extensions={**request.extensions, "timeout": timeouts},
    )


def _timeouts(request: Any) -> dict[str, float | None]:
    found: dict[str, float | None] = request.extensions.get("timeout", {})
    return found


def without_coding(request: Any) -> Any:
    """The same resume, asking for an event stream that can be read: compressed events cannot be left out."""
    if "content-length" in request.headers or "transfer-encoding" in request.headers:
        return request
    coding = b"accept-encoding"
    headers = [(k, b"identity" if k.lower() == coding else value) for k, value in request.headers.raw]
    if "accept-encoding" not in request.headers:
        headers.append((b"Accept-Encoding", b"identity"))
    return type(request)(
        request.method,
        request.url,
        headers=headers,
        extensions=request.extensions,
    )


def _quarantine(script: "GuardScript", source: Source) -> Generator[Step, Any, None]:
    """Take what was replayed at once, and tell the client that the session is gone."""
    sent, taken = script.exchange.sent, b""
    while len(taken) < REPLAY_LIMIT:
        try:
            chunk = yield Next(source, AT_ONCE)
        except Exception as error:  # noqa: BLE001 - the replay broke: what there is, there is
            script.tell("failed", error)
            break
        if chunk is None or chunk is QUIET:
            break
        # The ledger is not told: what no client was given is no response to anybody.
        taken += chunk
    yield Close(source)
    script.tell("closed")
    memory, at = script.guard.memory, script.observer.clock()
    memory.quarantine.add(
        Quarantined(session=(sent.session if sent else None) or "", at=at, data=taken[:REPLAY_LIMIT])
    )
    script.remember_dead()
    yield session_gone(unconfirmed("dead", tuple(block.id for block in Scanner().receive(taken))))


def _give_up(script: "GuardScript", source: Source) -> Turn:
    if not script.acts("probe_inconclusive"):
        return False
    standing = script.standing
    yield Close(source)
    script.tell("closed")
    pending = standing.pending if standing is not None else ()
    if standing is not None:
        script.conclude(standing)
    yield stream(unconfirmed("inconclusive"), pending)
    return True
