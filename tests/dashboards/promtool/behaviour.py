"""What clients and servers do, as happenings on the metrics that see it. Times are minutes.

Each function is one behaviour, healthy or not, with every metric that it moves: a loop is seen by the
reconnects, their outcomes, the streak, the empty replays and the age of the request at once.
"""

from dataclasses import replace
from typing import Final

from .series import Happening, When

Happenings = tuple[Happening, ...]

ALL: Final = ("app-1", "app-2", "app-3")
ASK: Final = "elicitation/create"
FORGET: Final = 2.0
"""Minutes after which the instrument forgets a stream that nobody came back to."""

AGE: Final = "sse.client.oldest_request.age"
ANSWERS: Final = "sse.client.answers"
EMPTY: Final = "sse.client.empty_replays"
ERRORS: Final = "sse.client.instrumentation.errors"
GUARD: Final = "sse.client.guard.actions"
EVENTS: Final = "sse.client.events"
INEFFECTIVE: Final = "sse.client.ineffective_answers"
OUTCOMES: Final = "sse.client.reconnect.outcomes"
PROBES: Final = "sse.client.probes"
RECONNECTS: Final = "sse.client.reconnects"
REPROMPTS: Final = "sse.client.reprompts"
REPROMPT_STREAK: Final = "sse.client.reprompt_streak"
REQUESTS_LOST: Final = "sse.client.requests_lost"
RETRIES: Final = "sse.client.retries_after_terminal"
SESSIONS_LOST: Final = "sse.client.sessions_lost"
STREAK: Final = "sse.client.stalled_streak"
STREAMS: Final = "sse.client.logical_streams"
STREAMS_LOST: Final = "sse.client.streams_lost"

RETRIED: Final = {
    "failed": ("connect_error", "failed", "retryable"),
    "refused": ("refused", "refused", "retryable"),
    "not found": ("refused", "refused", "terminal"),
    "empty": ("server_close", "empty", "ambiguous"),
    "quiet": ("idle_timeout", "quiet", "continue"),
    "recovered": ("network_error", "progressed", "continue"),
}
"""What a reconnect that is repeated looks like: its cause, its outcome and the disposition."""

COUNTED: Final = frozenset({"not found", "empty"})
"""Those that add to the streak."""


def traffic(when: When, per_minute: float = 10) -> Happenings:
    """Calls that are answered on their streams, a prompt now and then, sessions that live."""
    rare = per_minute / 50
    return (
        when.count(EVENTS, "response", "response", per_minute=per_minute),
        when.count(EVENTS, "response", "notification", per_minute=per_minute * 3),
        when.count(RECONNECTS, "response", "network_error", "sent", per_minute=rare),
        when.count(OUTCOMES, "response", "progressed", "continue", per_minute=rare),
        when.count(PROBES, "implicit", "live", "after_replay", per_minute=rare),
        when.count(PROBES, "ping", "live", "routine", per_minute=per_minute),
        when.count(ANSWERS, ASK, "acknowledged", "continue", "in_time", per_minute=rare * 5),
        when.level(STREAMS, "response", "open", value=max(1, per_minute // 10)),
        when.level(STREAK),
    )


EVERYWHERE: Final = When(on=ALL)
BUSY: Final = traffic(EVERYWHERE)


def polling(
    when: When, streams: float = 1, *, every: float = 5, kind: str = "standalone", age: float | None = None
) -> Happenings:
    """Legal polling: the server primes each stream, closes it and is asked again after so many seconds.

    `age`: the streams carry requests, the oldest so many minutes old at the beginning.
    """
    rate = streams * 60 / every
    request = when.level(AGE, value=60 * (age or 0), per_minute=60)
    return (
        when.count(RECONNECTS, kind, "server_poll", "sent", per_minute=rate),
        when.count(OUTCOMES, kind, "primed", "continue", per_minute=rate),
        when.level(STREAMS, kind, "waiting", value=streams),
        when.level(STREAK),
        *(() if age is None else (request,)),
    )


def reconnecting(
    when: When,
    streams: float = 1,
    *,
    per_minute: float = 60,
    how: str = "failed",
    kind: str = "standalone",
    shown: float = 0,
) -> Happenings:
    """Each stream reconnects so often, always in the same way; the streak is shown for `shown` minutes more."""
    cause, outcome, disposition = RETRIED[how]
    if kind != "response" and outcome == "empty":
        disposition = "ambiguous"
    growing = per_minute if how in COUNTED else 0
    remembered = replace(when, until=when.until + shown)
    seen: list[Happening] = [
        when.count(RECONNECTS, kind, cause, "sent", per_minute=streams * per_minute),
        when.count(OUTCOMES, kind, outcome, disposition, per_minute=streams * per_minute),
        when.level(STREAMS, kind, "waiting", value=streams),
        remembered.level(STREAK, per_minute=growing, stands=when.until),
    ]
    if how == "empty":
        state = "in_flight" if kind == "response" else "none"
        seen.append(when.count(EMPTY, kind, state, per_minute=streams * per_minute))
    if how == "not found":
        seen.append(when.count(RETRIES, "resume", per_minute=streams * per_minute))
    if kind == "response":
        seen.append(remembered.level(AGE, per_minute=60))
    return tuple(seen)


def dropped(
    when: When, streams: float, at: tuple[float, ...], *, attempts: int = 3, empty: bool = False
) -> Happenings:
    """Standalone streams are all dropped at these moments and come back; `empty`: without their past."""
    outcome = ("empty", "ambiguous") if empty else ("progressed", "continue")
    again = streams * (attempts - 1)
    return (
        when.level(STREAMS, "standalone", "open", value=streams),
        when.count(RECONNECTS, "standalone", "network_error", "sent", at=at, times=streams),
        when.count(RECONNECTS, "standalone", "connect_error", "sent", at=at, times=again),
        when.count(OUTCOMES, "standalone", "failed", "retryable", at=at, times=again),
        when.count(OUTCOMES, "standalone", *outcome, at=at, times=streams),
        when.count(EMPTY, "standalone", "none", at=at if empty else (), times=streams),
        when.count(PROBES, "implicit", "live", "after_replay", at=at, times=streams),
        *(replace(when, since=t, until=t + 1).level(STREAK, value=float(empty)) for t in at),
    )


def reprompted(when: When, streak: float, trigger: str = "replay", *, per_minute: float = 0) -> Happenings:
    """One prompt was shown again so often, and is still open."""
    liveness = {"input_required": "answered"}.get(trigger, "unverified")
    return (
        when.level(REPROMPT_STREAK, trigger, value=streak, per_minute=per_minute),
        when.count(REPROMPTS, ASK, trigger, liveness, at=(when.since,), times=streak),
    )


def replayed(when: When, live: float, dead: float, *, at: float) -> Happenings:
    """Sessions that were probed after a replay, at one moment: some live, some are dead."""
    return (
        when.count(PROBES, "implicit", "live", "after_replay", at=(at,), times=live),
        when.count(PROBES, "implicit", "dead", "after_replay", at=(at,), times=dead),
        when.count(SESSIONS_LOST, "after_replay", "http_404", at=(at,), times=dead),
    )


def answered(when: When, good: float, bad: float, *, at: float, outcome: str = "rejected") -> Happenings:
    """Answers at one moment: some acknowledged, some not; `ineffective` ones are acknowledged for nothing."""
    disposition = "retryable" if outcome == "retryable_error" else "terminal"
    useless = outcome == "ineffective"
    refused = when.count(
        ANSWERS, ASK, "rejected" if useless else outcome, disposition, "in_time", at=(at,), times=bad
    )
    return (
        when.count(ANSWERS, ASK, "acknowledged", "continue", "in_time", at=(at,), times=good + bad * useless),
        when.count(INEFFECTIVE, ASK, at=(at,), times=bad) if useless else refused,
    )


def lost(when: When, answered_on_streams: float, requests: float, *, at: float) -> Happenings:
    """Requests on streams at one moment: some answered, some lost."""
    return (
        when.count(EVENTS, "response", "response", per_minute=0.5),
        when.count(EVENTS, "response", "response", at=(at,), times=answered_on_streams),
        when.count(REQUESTS_LOST, "tools/call", "gave_up", at=(at,), times=requests),
    )
