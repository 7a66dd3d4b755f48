"""What the ledger remembers. Records are plain state; the rules that change them live in the other modules."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .._dialect import Dialect
from .._events import Answered, Digest, ErrorKind, JsonId, Message, Origin, Sent
from .._failure import Ruling
from .._names import (
    AnswerTiming,
    EventType,
    ProbeKind,
    ReconnectOutcome,
    RepromptTrigger,
    RequestState,
    StreamEnd,
    StreamKind,
)
from ._tables import LEAVES_AFTER, RETRY_FACTOR

Tally = dict[EventType, int]


@dataclass(slots=True, eq=False)
class Dialogue:
    """Where JSON-RPC ids mean the same thing: a session; without one, an exchange and the stream that it began."""

    number: int
    has_server_requests: bool = False
    """A server request was delivered in it, and may come again."""


@dataclass(slots=True, eq=False)
class Place:
    """Where cursors, standalone and listen streams are looked up: a session, or an origin and a transport."""

    key: tuple[Origin, str | int]
    origin: Origin
    session: "Session | None" = None
    streams: "dict[int, Logical]" = field(default_factory=dict)
    """By number, oldest first."""
    used_at: float = 0.0
    """When the last request other than DELETE was sent."""

    def newest_first(self) -> "Iterator[Logical]":
        return reversed(self.streams.values())


@dataclass(slots=True, eq=False)
class Session:
    """A session of MCP as the client sees it: `Mcp-Session-Id` at an origin."""

    origin: Origin
    id: str
    place: Place
    dialogue: Dialogue
    born_at: float
    used_at: float
    version: str = ""
    state: str = "alive"
    """`alive`, `lost` or `ended`."""
    pools: set[int] = field(default_factory=set)
    unconfirmed_since: float | None = None
    """When the first replay came that no request has confirmed since."""
    replay: "Logical | None" = None
    """The logical stream of the newest such replay."""
    replayed: int = 0
    """Messages delivered on the session's streams since then."""
    requests_open: int = 0
    is_over: bool = False
    """Its duration has been told."""


@dataclass(slots=True, eq=False)
class Request:
    """A request of the client."""

    id: JsonId
    method: str
    name: str
    sent_at: float
    message: Message
    version: str
    stream: "Logical | None" = None
    operation: "Operation | None" = None
    answered_by: int | None = None
    """The exchange that brought the response."""
    is_over: bool = False
    """Answered, cancelled or lost: no gauge shows it any more."""


@dataclass(slots=True, eq=False)
class Prompt:
    """A request of the server. Those that reach nobody (`roots/list`) are kept too; `is_prompt` tells."""

    id: JsonId
    method: str
    is_prompt: bool
    first_at: float
    last_at: float
    progress_token: JsonId | None
    stream: "Logical | None"
    """The logical stream that delivered it first."""
    cursor: str | None = None
    """The last event id of that stream then: its own, or the one before it."""
    is_cancelled: bool = False
    is_rejected: bool = False
    is_answered: bool = False
    ack_unspent: bool = False
    """An acknowledged answer that has not yet shown itself ineffective."""
    answer: int | None = None
    """The exchange that carries the newest answer to it."""
    hopeless_with: Digest | None = None
    """The credentials of the answer that was refused as unknown or for a lost session."""
    streak: int = 0
    trigger: RepromptTrigger = "replay"


@dataclass(slots=True, eq=False)
class Operation:
    """A request that is made again until what it asks for is given (`input_required`, -32042)."""

    method: str
    keys: set[tuple[object, ...]] = field(default_factory=set)
    rounds: int = 0
    asked: frozenset[Digest] = frozenset()
    answered: frozenset[Digest] | None = None
    """What the last round asked for that the client has answered."""
    seen: set[Digest] = field(default_factory=set)
    streak: int = 0
    trigger: RepromptTrigger = "input_required"
    place: Place | None = None
    last_at: float = 0.0


@dataclass(slots=True, eq=False)
class Attempt:
    """One try to open a stream for a logical stream, and what it brought."""

    is_reconnect: bool
    started_at: float
    has_cursor: bool
    credentials: Digest
    after_rejection: bool = False
    """When it began, an answer to one of the logical stream's server requests had been refused for good."""
    kind: StreamKind = "other"
    """The kind under which its stream is open."""
    opened_at: float | None = None
    ended_at: float | None = None
    events: int = 0
    primings: int = 0
    new_cursors: int = 0
    has_progress: bool = False
    is_opaque: bool = False
    sent_poll: bool = False
    """It sent a priming event or a `retry` field."""
    has_retry: bool = False
    """It sent a usable `retry`."""
    is_redirected: bool = False
    is_settled: bool = False
    outcome: ReconnectOutcome | None = None
    is_refused: bool = False
    """Status >= 400, or a body that is no event stream."""
    end: StreamEnd | None = None
    silence: float = 0.0
    error: ErrorKind | None = None


@dataclass(slots=True, eq=False)
class Logical:
    """A logical stream: a chain of streams joined by reconnects."""

    number: int
    place: Place
    dialogue: Dialogue
    kind: StreamKind
    dialect: Dialect
    target: Digest
    touched_at: float
    subject: Digest = b""
    """`subscriptions/listen`: the digest of its filter."""
    requests: dict[JsonId, Request] = field(default_factory=dict)
    """Those that wait for their response."""
    is_terminal: bool = False
    is_cancelled: bool = False
    is_lost: bool = False
    had_stream: bool = False
    had_poll: bool = False
    ids: dict[str, None] = field(default_factory=dict)
    """Event ids seen, oldest first."""
    known: dict[tuple[bool, JsonId | None], None] = field(default_factory=dict)
    """Requests (True) and responses (False) seen."""
    has_cursor: bool = False
    retry: int | None = None
    attempts: int = 0
    streak: int = 0
    attempt: Attempt | None = None
    """The newest one."""
    refusal: Ruling | None = None
    """The terminal classification of an attempt; gone when a later one gets a stream."""
    refused_with: Digest = b""
    rejected_with: Digest | None = None
    """The credentials of an answer that was refused for good."""
    prompts: list[Prompt] = field(default_factory=list)
    endpoint: Digest = b""
    """2024-11-05: where its POSTs go."""

    @property
    def origin(self) -> Origin:
        return self.place.origin

    @property
    def is_open(self) -> bool:
        return self.attempt is not None and self.attempt.opened_at is not None and not self.is_idle

    @property
    def is_idle(self) -> bool:
        """No attempt is under way."""
        return self.attempt is None or self.attempt.ended_at is not None

    @property
    def is_over(self) -> bool:
        """It is not open, and nothing more is awaited of it."""
        is_complete = self.attempt is not None and self.attempt.end == "complete"
        return self.is_idle and (self.is_terminal or self.is_lost or self.is_cancelled or is_complete)

    @property
    def request_state(self) -> RequestState:
        if self.is_terminal:
            return "terminal"
        return "in_flight" if self.requests else "none"

    @property
    def state(self) -> str:
        """Where it stands: `open`, `answered`, `lost`, `cancelled`, `complete`, `refused`, `waiting` or `opening`."""
        attempt = self.attempt
        refused = self.refusal is not None and self.refusal.reason != "unauthorized"
        findings = (
            (self.is_open, "open"),
            (self.is_terminal, "answered"),
            (self.is_lost, "lost"),
            (self.is_cancelled, "cancelled"),
            (attempt is not None and attempt.end == "complete", "complete"),
            (refused, "refused"),
            (attempt is not None and (attempt.is_reconnect or attempt.ended_at is not None), "waiting"),
        )
        return next((state for fits, state in findings if fits), "opening")

    def cancel(self) -> None:
        """The client does not want the responses any more."""
        for request in self.requests.values():
            request.is_over = True
        self.requests.clear()
        self.is_cancelled = True

    def patience(self, seconds: float) -> float:
        """`seconds`, or longer where the server asks for longer waits."""
        return max(seconds, RETRY_FACTOR * (self.retry or 0) / 1000)

    def is_shown(self, at: float) -> bool:
        """Whether gauges still show it: its session goes on, and something happened lately."""
        session = self.place.session
        if session is not None and session.state != "alive":
            return False
        return self.is_open or at - self.touched_at <= self.patience(LEAVES_AFTER)


@dataclass(slots=True)
class Probe:
    """A request whose answer shows whether its session lives."""

    kind: ProbeKind
    after_replay: bool


@dataclass(slots=True)
class Reply:
    """An answer of the client to a server request, on its way."""

    message: Message
    prompt: Prompt | None
    timing: AnswerTiming

    @property
    def counts(self) -> bool:
        """`ping` is no server request, so its answer is none either."""
        return self.prompt is None or self.prompt.method != "ping"


@dataclass(slots=True, eq=False)
class Flight:
    """An exchange that is under way."""

    sent: Sent
    at: float
    place: Place
    dialogue: Dialogue
    dialect: Dialect
    session: Session | None = None
    requests: list[Request] = field(default_factory=list)
    replies: tuple[Reply, ...] = ()
    probe: Probe | None = None
    met_doubt: bool = False
    """It was sent to an unconfirmed session."""
    met_lost: bool = False
    """The session was already lost when the request was sent."""
    legacy: Logical | None = None
    """2024-11-05: the stream that answers what is POSTed here."""
    stream: Logical | None = None
    attempt: Attempt | None = None
    answered: Answered | None = None
    assigned: Session | None = None
    """The session that the response gave to an `initialize`."""

    @property
    def exchange(self) -> int:
        return self.sent.exchange

    @property
    def cursor(self) -> str | None:
        """What a GET resumes from. Some clients send `Last-Event-ID` on every POST, where it means nothing."""
        # A listen stream has none, also when its GET is what a redirect has made of a POST.
        is_listen = self.stream is not None and self.stream.kind == "listen"
        return self.sent.cursor if self.sent.http_method == "GET" and not is_listen else None

    @property
    def is_answer(self) -> bool:
        return any(reply.counts for reply in self.replies)
