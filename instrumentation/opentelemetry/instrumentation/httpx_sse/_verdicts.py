"""What may be concluded: the ledger's answers, each a value that telemetry turns into points and spans.

Field names are the last parts of the attribute names in `_names`, so that one table can map them.
"""

from msgspec import Struct

from ._events import JsonId, Origin
from ._names import (
    AnswerOutcome,
    AnswerTiming,
    Disposition,
    EventType,
    FailurePoint,
    FailureReason,
    GuardAction,
    LossReason,
    ProbeContext,
    ProbeKind,
    ProbeOutcome,
    PromptDelivery,
    PromptLiveness,
    ReconnectCause,
    ReconnectCursor,
    ReconnectOutcome,
    RepromptTrigger,
    RequestState,
    ResponseDelivery,
    RetryHint,
    RetryPoint,
    SessionPhase,
    SessionSignal,
    SessionStanding,
    StreamEnd,
    StreamKind,
    StreamState,
)


class Verdict(Struct, frozen=True, kw_only=True, gc=False):
    """The root of all verdicts."""

    server: Origin
    exchange: int | None
    """The exchange that showed it; None when time alone did."""


# ------------------------------------------------------------------ streams and attempts


class AttemptBegun(Verdict, frozen=True, kw_only=True):
    """A request that opens a stream, or tries to, belongs to this logical stream."""

    kind: StreamKind
    stream: int
    """The logical stream's number."""
    attempt: int
    """1 for the first."""
    streak: int
    """Reconnects without progress before this attempt."""
    session: str | None
    version: str
    method: str
    request_id: JsonId | None


class StreamOpened(Verdict, frozen=True, kw_only=True):
    """The event stream's headers came."""

    kind: StreamKind


class StreamMoved(Verdict, frozen=True, kw_only=True):
    """The first event showed that an open stream is of another kind than it was counted under."""

    kind: StreamKind
    before: StreamKind


class FirstEvent(Verdict, frozen=True, kw_only=True):
    """The first event of a stream came, `seconds` after the start of its request."""

    kind: StreamKind
    seconds: float


class StreamEnded(Verdict, frozen=True, kw_only=True):
    """An open stream ended."""

    kind: StreamKind
    end: StreamEnd
    seconds: float
    """From the start of the request."""
    silence: float | None
    """Seconds without a byte before the end; None when the client chose the end, or the answer had come."""


class AttemptEnded(Verdict, frozen=True, kw_only=True):
    """An attempt is over, whether it got a stream or not; the last verdict of its span."""

    kind: StreamKind
    failed: bool
    error_type: str | None


class Reconnected(Verdict, frozen=True, kw_only=True):
    """An attempt to open a stream for a logical stream that had one, or had tried, before."""

    kind: StreamKind
    cause: ReconnectCause
    cursor: ReconnectCursor


class ReconnectDelayed(Verdict, frozen=True, kw_only=True):
    """How long a client waited before it reconnected."""

    seconds: float
    retry_hint: RetryHint


class ReconnectSettled(Verdict, frozen=True, kw_only=True):
    """What a reconnect brought (design 3.2)."""

    kind: StreamKind
    outcome: ReconnectOutcome
    disposition: Disposition


class EmptyReplay(Verdict, frozen=True, kw_only=True):
    """A resume with a cursor was accepted and ended without one event."""

    kind: StreamKind
    request_state: RequestState


class StreamLost(Verdict, frozen=True, kw_only=True):
    """A standalone or listen stream ended for good while its session went on."""

    kind: StreamKind
    reason: LossReason


class RequestLost(Verdict, frozen=True, kw_only=True):
    """A client request's stream ended for good before its response."""

    method: str
    reason: LossReason


# ------------------------------------------------------------------ failures and retries


class Classified(Verdict, frozen=True, kw_only=True):
    """A failed exchange, and whether another try can succeed (design 3.5)."""

    point: FailurePoint
    disposition: Disposition
    reason: FailureReason


class RetriedAfterTerminal(Verdict, frozen=True, kw_only=True):
    """Something that had failed for good was tried again."""

    point: RetryPoint


# ------------------------------------------------------------------ sessions


class Probed(Verdict, frozen=True, kw_only=True):
    """A request's answer showed something of the session's life (design 3.3)."""

    kind: ProbeKind
    outcome: ProbeOutcome
    context: ProbeContext
    method: str
    version: str
    request_id: JsonId | None
    session: str
    stream: int | None
    """The logical stream whose replay it follows."""


class SessionConfirmed(Verdict, frozen=True, kw_only=True):
    """A replay's doubt was settled, `seconds` after the replay's headers."""

    kind: ProbeKind
    outcome: ProbeOutcome
    seconds: float


class SessionLost(Verdict, frozen=True, kw_only=True):
    """The server does not know the session any more."""

    phase: SessionPhase
    signal: SessionSignal


class SessionEnded(Verdict, frozen=True, kw_only=True):
    """A session is over, `seconds` after it was first seen: deleted, lost, or its transport closed."""

    seconds: float
    version: str
    error_type: str | None


class SessionRevived(Verdict, frozen=True, kw_only=True):
    """A lost session answered again."""


class DeadSessionRequest(Verdict, frozen=True, kw_only=True):
    """A request was sent on a session that was already lost."""


class DeadSessionEvents(Verdict, frozen=True, kw_only=True):
    """Messages were replayed from a session that then proved dead."""

    count: int


# ------------------------------------------------------------------ dialogue


class ServerRequested(Verdict, frozen=True, kw_only=True):
    """A server request was delivered."""

    method: str
    delivery: PromptDelivery
    liveness: PromptLiveness


class Reprompted(Verdict, frozen=True, kw_only=True):
    """A prompt was delivered again."""

    method: str
    trigger: RepromptTrigger
    liveness: PromptLiveness


class AnswerSettled(Verdict, frozen=True, kw_only=True):
    """What became of an answer to a server request."""

    method: str
    outcome: AnswerOutcome
    disposition: Disposition
    timing: AnswerTiming
    version: str
    request_id: JsonId | None
    session: str | None
    stream: int | None
    """The logical stream that had delivered the server request."""


class AnswerIneffective(Verdict, frozen=True, kw_only=True):
    """A prompt was delivered again although its answer had been acknowledged."""

    method: str


class Responded(Verdict, frozen=True, kw_only=True):
    """A response to a client request was delivered."""

    delivery: ResponseDelivery
    request_id: JsonId | None


class OperationEnded(Verdict, frozen=True, kw_only=True):
    """A client request had its response, `seconds` after it was sent."""

    method: str
    name: str
    seconds: float
    version: str
    error_code: int | None
    error_type: str | None


class RoundsEnded(Verdict, frozen=True, kw_only=True):
    """An operation that took rounds of input ended."""

    method: str
    rounds: int


# ------------------------------------------------------------------ the guard


class GuardActed(Verdict, frozen=True, kw_only=True):
    """The guard stopped something that could not succeed."""

    action: GuardAction
    is_dry_run: bool
    """It only says that it would have."""


# ------------------------------------------------------------------ what is now


class Standing(Struct, frozen=True, kw_only=True, gc=False):
    """What the tables hold of one logical stream at one moment, for whoever acts on it."""

    server: Origin
    kind: StreamKind
    pending: tuple[JsonId, ...]
    """Client requests that wait for their response on it."""
    streak: int
    """Reconnects without progress."""
    is_answered: bool
    """All its requests have their responses, and the newest attempt comes with the credentials they came to."""
    refusal: FailureReason | None
    """Why a resume with the credentials of the newest attempt was refused for good."""
    is_rejected: bool
    """An answer to one of its server requests was refused for good, with the credentials of the newest attempt."""
    has_server_requests: bool
    """Server requests were delivered in its session, or on itself without one, and may come again."""
    retry: int | None
    """The last `retry` of the server, in milliseconds."""
    session: SessionStanding


class Redelivery(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a server request that was delivered again."""

    liveness: PromptLiveness
    is_covered: bool
    """The cursor of the resume that brought it stands at or after its first delivery."""


class Snapshot(Struct, frozen=True, kw_only=True, gc=False):
    """The state of all tables at one moment; counts of events and evictions are totals since the start."""

    logical_streams: dict[tuple[Origin, StreamKind, StreamState], int]
    stalled_streak: dict[Origin, int]
    oldest_request_age: dict[Origin, float]
    unconfirmed_sessions: dict[Origin, int]
    reprompt_streak: dict[tuple[Origin, RepromptTrigger], int]
    events: dict[tuple[Origin, StreamKind, EventType], int]
    evictions: dict[str, int]
    settled: tuple[Verdict, ...]
    """What the passing of time alone decided since the last snapshot."""
