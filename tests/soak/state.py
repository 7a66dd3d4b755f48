"""What the oracle remembers: exchanges, logical streams, sessions, requests and questions."""

from dataclasses import dataclass, field

from .journal import Head, Json, Sent
from .rulings import Ruling


@dataclass(slots=True, eq=False)
class Request:
    """A request of the client."""

    id: object
    method: str
    stream: "Stream | None" = None
    heard_on: int | None = None
    """The exchange that brought its response."""
    is_over: bool = False


@dataclass(slots=True, eq=False)
class Question:
    """A request of the server."""

    method: str
    at: float
    token: object
    stream: "Stream | None"
    is_cancelled: bool = False
    is_rejected: bool = False
    is_answered: bool = False
    is_acknowledged_anew: bool = False
    hopeless_auth: str | None = None

    @property
    def reaches_somebody(self) -> bool:
        return self.method.endswith(("/create", "/createMessage"))


@dataclass(slots=True, eq=False)
class Talk:
    """Where JSON-RPC ids mean the same."""

    requests: dict[object, Request] = field(default_factory=dict)
    questions: dict[object, Question] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Scope:
    """Where cursors mean the same: a session, or a client without one."""

    is_session: bool
    talk: Talk
    streams: "list[Stream]" = field(default_factory=list)
    state: str = "alive"
    doubted_since: float | None = None
    told_since: int = 0
    used: float = 0.0
    used_before: float = 0.0
    used_by: "Exchange | None" = None


@dataclass(slots=True, eq=False)
class Try:
    """One attempt to open a stream."""

    is_reconnect: bool
    cursor: str | None
    after_rejection: bool = False
    opened: float | None = None
    over: float | None = None
    last_byte: float | None = None
    events: int = 0
    primes: int = 0
    fresh_primes: int = 0
    progressed: bool = False
    asked_to_poll: bool = False
    end: str = ""
    silence: float = 0.0
    was_refused: bool = False
    had_no_answer: bool = False
    outcome: str = ""


@dataclass(slots=True, eq=False)
class Stream:
    """A logical stream."""

    kind: str
    scope: Scope
    talk: Talk
    pending: dict[object, Request] = field(default_factory=dict)
    is_terminal: bool = False
    is_lost: bool = False
    had_stream: bool = False
    has_polled: bool = False
    ids: set[str] = field(default_factory=set)
    messages: set[tuple[str, object]] = field(default_factory=set)
    retry: int | None = None
    tries: list[Try] = field(default_factory=list)
    hopeless_auth: str | None = None
    """The credentials with which it was refused for good, or became terminal."""
    is_hopeless: bool = False
    rejected_auth: str | None = None
    is_doubtful: bool = False
    """Whether it was given up when somebody last looked is too close to call."""
    came_back: tuple[float, float] = (-1.0, 0.0)
    """When it was last tried again before it was given up, and since when it had waited then."""

    @property
    def last(self) -> Try:
        return self.tries[-1]

    @property
    def is_idle(self) -> bool:
        return not self.tries or self.last.over is not None

    @property
    def request_state(self) -> str:
        return "terminal" if self.is_terminal else "in_flight" if self.pending else "none"


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and its response, while it lasts."""

    sent: Sent
    scope: Scope
    talk: Talk
    requests: list[Request] = field(default_factory=list)
    answers: list[tuple[Json, Question | None, str]] = field(default_factory=list)
    probe: str = ""
    probe_left: bool = False
    """Its answer has not settled anything yet."""
    in_doubt: bool = False
    met_lost: bool = False
    stream: Stream | None = None
    attempt: Try | None = None
    head: Head | None = None
    ruling: Ruling | None = None

    @property
    def is_answer(self) -> bool:
        return any(question is None or question.method != "ping" for _, question, _ in self.answers)

    @property
    def point(self) -> str:
        if self.is_answer:
            return "answer"
        if self.in_doubt or any(request.method == "ping" for request in self.requests):
            return "probe"
        if self.sent.method == "GET":
            return "resume" if self.sent.cursor else "open"
        return "request"
