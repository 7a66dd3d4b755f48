"""What may be concluded: the ledger's answers, each a value that telemetry turns into points and spans.

Field names are the last parts of the attribute names in `_names`, so that one table can map them.
"""

from ._events import JsonId, Origin, dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The root of all verdicts."""

    server: Origin
    exchange: int | None
    """The exchange that showed it; None when time alone did."""


# ------------------------------------------------------------------ streams and attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBegun(Verdict):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened(Verdict):
    """The event stream's headers came."""

    kind: StreamKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMoved(Verdict):
    """The first event showed that an open stream is of another kind than it was counted under."""

    kind: StreamKind
    before: StreamKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstEvent(Verdict):
    """The first event of a stream came, `seconds` after the start of its request."""

    kind: StreamKind
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnded(Verdict):
    """An open stream ended."""

    kind: StreamKind
    end: StreamEnd
    seconds: float
    """From the start of the request."""
    silence: float | None
    """Seconds without a byte before the end; None when the client chose the end, or the answer had come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Verdict):
    """An attempt is over, whether it got a stream or not; the last verdict of its span."""

    kind: StreamKind
    failed: bool
    error_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(Verdict):
    """An attempt to open a stream for a logical stream that had one, or had tried, before."""

    kind: StreamKind
    cause: ReconnectCause
    cursor: ReconnectCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectDelayed(Verdict):
    """How long a client waited before it reconnected."""

    seconds: float
    retry_hint: RetryHint


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectSettled(Verdict):
    """What a reconnect brought (design 3.2)."""

    kind: StreamKind
    outcome: ReconnectOutcome
    disposition: Disposition


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyReplay(Verdict):
    """A resume with a cursor was accepted and ended without one event."""

    kind: StreamKind
    request_state: RequestState


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLost(Verdict):
    """A standalone or listen stream ended for good while its session went on."""

    kind: StreamKind
    reason: LossReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLost(Verdict):
    """A client request's stream ended for good before its response."""

    method: str
    reason: LossReason


# ------------------------------------------------------------------ failures and retries


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified(Verdict):
    """A failed exchange, and whether another try can succeed (design 3.5)."""

    point: FailurePoint
    disposition: Disposition
    reason: FailureReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedAfterTerminal(Verdict):
    """Something that had failed for good was tried again."""

    point: RetryPoint


# ------------------------------------------------------------------ sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed(Verdict):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfirmed(Verdict):
    """A replay's doubt was settled, `seconds` after the replay's headers."""

    kind: ProbeKind
    outcome: ProbeOutcome
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLost(Verdict):
    """The server does not know the session any more."""

    phase: SessionPhase
    signal: SessionSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded(Verdict):
    """A session is over, `seconds` after it was first seen: deleted, lost, or its transport closed."""

    seconds: float
    version: str
    error_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRevived(Verdict):
    """A lost session answered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadSessionRequest(Verdict):
    """A request was sent on a session that was already lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadSessionEvents(Verdict):
    """Messages were replayed from a session that then proved dead."""

    count: int


# ------------------------------------------------------------------ dialogue


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequested(Verdict):
    """A server request was delivered."""

    method: str
    delivery: PromptDelivery
    liveness: PromptLiveness


@dataclass(frozen=True, slots=True, kw_only=True)
class Reprompted(Verdict):
    """A prompt was delivered again."""

    method: str
    trigger: RepromptTrigger
    liveness: PromptLiveness


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettled(Verdict):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerIneffective(Verdict):
    """A prompt was delivered again although its answer had been acknowledged."""

    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Responded(Verdict):
    """A response to a client request was delivered."""

    delivery: ResponseDelivery
    request_id: JsonId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnded(Verdict):
    """A client request had its response, `seconds` after it was sent."""

    method: str
    name: str
    seconds: float
    version: str
    error_code: int | None
    error_type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsEnded(Verdict):
    """An operation that took rounds of input ended."""

    method: str
    rounds: int


# ------------------------------------------------------------------ the guard


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardActed(Verdict):
    """The guard stopped something that could not succeed."""

    action: GuardAction
    is_dry_run: bool
    """It only says that it would have."""


# ------------------------------------------------------------------ what is now


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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
    is_answering: bool
    """An answer to one of its server requests is on its way: nobody knows yet whether it is taken."""
    has_server_requests: bool
    """Server requests were delivered in its session, or on itself without one, and may come again."""
    retry: int | None
    """The last `retry` of the server, in milliseconds."""
    has_retry: bool
    """The newest attempt brought it."""
    session: SessionStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class Redelivery:
    """What is known of a server request that was delivered again."""

    liveness: PromptLiveness
    is_covered: bool
    """The cursor of the resume that brought it stands at or after its first delivery."""
    is_answering: bool
    """An answer to it is on its way: nobody knows yet whether it is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
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
