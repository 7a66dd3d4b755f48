"""When the guard acts: tables over what the ledger says of a logical stream. No rule of the ledger's stands here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from .._ledger import Table
from .._names import GuardAction
from .._steps import Substitute
from .._verdicts import Classified, Standing, Verdict
from ._answers import event, retry, session_gone, stream, unsupported
from ._confirmation import unconfirmed
from ._errors import GuardError, InvalidResumptionError, StaleElicitationError, StalledResumptionError
from ._quarantine import Quarantine

SLOWEST: Final = 60_000
"""Milliseconds of `retry` beyond which a standalone stream is not slowed down."""

DEFAULT_PACE: Final = 1_000
"""Milliseconds that the official clients wait when no server tells them how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user wants of the guard; see `Options`."""

    max_stalled: int = 3
    probe: bool = True
    inconclusive: Literal["fail", "release"] = "fail"
    disabled: frozenset[GuardAction] = frozenset()
    dry_run: bool = False


@dataclass(slots=True)
class Memory:
    """What the guard has done that later exchanges must know."""

    dead: Table[int, bool] = field(default_factory=lambda: Table("streams"))
    """Logical streams whose replay was quarantined."""
    owed: Table[int, bool] = field(default_factory=lambda: Table("streams"))
    """Logical streams whose client left while their answer was held back from it."""
    slowed: Table[int, int] = field(default_factory=lambda: Table("streams"))
    """Logical streams that were slowed down, and the client's own pace before, in milliseconds."""
    quarantine: Quarantine = field(default_factory=Quarantine)


# ------------------------------------------------------------------ a resume is about to leave


class Refusal(NamedTuple):
    """A resume is answered here, and no request leaves."""

    action: GuardAction
    error: GuardError
    answer: Substitute


class _Hopeless(NamedTuple):
    action: GuardAction
    fits: Callable[["Resume"], bool]
    error: Callable[[Standing], GuardError]


class Resume(NamedTuple):
    """A resume, and what is known of its logical stream."""

    standing: Standing
    is_dead: bool
    """A replay on it was quarantined before, and the client was told so."""
    is_owed: bool
    """Its answer has come, but was held back when the client left."""
    max_stalled: int

    @property
    def is_awaited(self) -> bool:
        """A request of the client waits for its response on it."""
        return self.standing.kind == "response" and bool(self.standing.pending)


def _refused(standing: Standing) -> GuardError:
    lost = standing.refusal == "session_lost"
    return InvalidResumptionError(
        "The server has refused for good to resume this stream.",
        reason=standing.refusal or "bad_request",
        advice="new_session" if lost else "retry_from_scratch",
    )


def _rejected(_: Standing) -> GuardError:
    return StaleElicitationError(
        "The answer to a server request of this operation was refused for good.", reason="rejected"
    )


def _answered(_: Standing) -> GuardError:
    return InvalidResumptionError(
        "This stream has brought its answer: a resume would only bring it again.",
        reason="after_terminal",
        advice="nothing",
    )


def _stuck(standing: Standing) -> GuardError:
    return StalledResumptionError(
        f"The last {standing.streak} reconnects of this stream brought nothing new.",
        reason="nothing_new",
        disposition="ambiguous",
    )


HOPELESS: Final = (
    _Hopeless("session_quarantined", lambda r: r.is_dead, lambda _: unconfirmed("dead")),
    _Hopeless("operation_failed", lambda r: r.is_awaited and r.standing.is_rejected, _rejected),
    _Hopeless("resume_refused", lambda r: r.standing.refusal is not None, _refused),
    _Hopeless("resume_refused", lambda r: r.standing.is_answered and not r.is_owed, _answered),
    _Hopeless(
        "breaker_opened",
        lambda r: r.standing.kind == "response" and r.standing.streak >= r.max_stalled,
        _stuck,
    ),
)
"""Resumes that cannot bring anything, first that fits. The last is for a stream that ended in the middle of an event,
so that its end could not say so, and for one that is resumed although its request was cancelled."""


def at_resume(resume: Resume) -> Refusal | None:
    """What becomes of a resume before it leaves; None to let it go."""
    standing = resume.standing
    row = next((row for row in HOPELESS if row.fits(resume)), None)
    if row is None:
        return None
    error = row.error(standing)
    if standing.kind != "standalone":
        answer = stream(error, standing.pending)
    else:
        answer = session_gone(error) if resume.is_dead else unsupported(error)
    return Refusal(row.action, error, answer)


# ------------------------------------------------------------------ a stream has ended


class Ending(NamedTuple):
    """The last chunk of a stream that has ended, before the client learns of its end."""

    action: GuardAction | None
    """None for what is only put right again."""
    chunk: bytes
    error: GuardError | None = None
    """The client's requests on it end with this."""
    pace: int | None = None
    """A stream is slowed down that the client reads at this pace, in milliseconds."""


class End(NamedTuple):
    """How a stream ended."""

    standing: Standing
    verdicts: tuple[Verdict, ...]
    stream: int
    streak_before: int
    """Reconnects without progress before it."""
    waited: float
    """Seconds that the client waited before it."""
    failure: GuardError | None
    """It brought a server request that the operation needs an answer to, and nobody can give one any more."""

    @property
    def is_stalled(self) -> bool:
        """It was one more reconnect without progress, by the ledger's count."""
        return self.standing.streak > self.streak_before


def at_end(end: End, settings: Settings, memory: Memory) -> Iterable[Ending]:
    """What the client is to be told before the end of a stream that did not end by its own will; first that is
    enabled."""
    standing = end.standing
    is_too_much = end.is_stalled and standing.streak >= settings.max_stalled
    if standing.kind == "response" and standing.pending:
        if end.failure is not None:
            yield _failing("operation_failed", end.failure, standing)
        if standing.is_rejected:
            yield _failing("operation_failed", _rejected(standing), standing)
        if is_too_much:
            yield _failing("breaker_opened", _stalled(end), standing)
    elif standing.kind == "standalone":
        if is_too_much:
            yield _slowing(end)
        elif (
            not end.is_stalled
            and (own := memory.slowed.pop(end.stream)) is not None
            and not standing.has_retry
        ):
            yield Ending(None, retry(own))


def _failing(action: GuardAction, error: GuardError, standing: Standing) -> Ending:
    return Ending(action, event(error, standing.pending), error)


def _stalled(end: End) -> StalledResumptionError:
    said = [verdict for verdict in end.verdicts if isinstance(verdict, Classified)]
    return StalledResumptionError(
        f"The last {end.standing.streak} reconnects of this stream brought nothing new.",
        reason=said[-1].reason if said else "nothing_new",
        disposition=said[-1].disposition if said else "ambiguous",
    )


def _slowing(end: End) -> Ending:
    """Twice the client's own pace each time, and never faster than that pace."""
    pace = max(round(end.waited * 1000), end.standing.retry or 0, DEFAULT_PACE)
    return Ending("stream_slowed", retry(max(pace, min(2 * pace, SLOWEST))), pace=pace)
