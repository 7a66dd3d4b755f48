"""May a stream be resumed, and what does the answer to a resume mean: for whoever writes a client.

An event id is a cursor into a stream, not proof that the stream can be resumed. The failure table decides what an
answer means; here is only remembered what it must be told: which requests are terminal, and where their cursors are.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .._envelope import read_body
from .._events import JsonId
from .._failure import Failure, Ruling, classify, classify_replay, refused_for_good
from .._ledger import Table
from .._names import Disposition, FailureReason
from ._errors import Advice, InvalidResumptionError, advice_of

REQUEST_IDS: Final = 1024
"""Event ids of one request that are recognised when they come again."""


class Reading(NamedTuple):
    """What the answer to a resume means."""

    disposition: Disposition
    """`continue`, `ambiguous`, `retryable` or `terminal`."""
    reason: FailureReason | None
    """The word of the failure table; None when nothing failed."""
    advice: Advice
    """What to do next; `guard.NEXT` has the sentences."""


@dataclass(slots=True)
class _Request:
    """What is remembered of one request, over all its streams."""

    cursor: str | None = None
    is_terminal: bool = False
    refusal: Ruling | None = None
    ids: dict[str, None] = field(default_factory=dict)


class ResumptionGuard:
    """The terminal flags and cursors of one session's requests.

    Args:
        session: the `Mcp-Session-Id`; None for a server that gave none.
    """

    def __init__(self, session: str | None = None) -> None:
        self.session = session
        self._requests: Table[JsonId, _Request] = Table("requests")

    def observe_event(self, request: JsonId, event_id: str | None = None, *, terminal: bool = False) -> bool:
        """An event came on a stream of `request`.

        Args:
            request: the JSON-RPC id of the client's request, whichever of its streams this is.
            event_id: the event's own id.
            terminal: it is the response.

        Returns:
            Whether it is new. Deduplication is scoped to the request, not to the stream: a second terminal event, or
            an id that this request's streams have brought before, must not be processed again.
        """
        entry = self._entry(request)
        is_known = entry.is_terminal if terminal else event_id is not None and event_id in entry.ids
        entry.is_terminal = entry.is_terminal or terminal
        if event_id is not None:
            entry.cursor = event_id or None
            entry.ids[event_id] = None
            if len(entry.ids) > REQUEST_IDS:
                del entry.ids[next(iter(entry.ids))]
        return not is_known

    def is_terminal(self, request: JsonId) -> bool:
        """Whether the terminal event of a request was seen."""
        entry = self._requests.get(request)
        return entry is not None and entry.is_terminal

    def may_resume(self, request: JsonId) -> bool:
        """Whether a resume of this request's stream can bring anything: a cursor, no answer yet, no final refusal."""
        return self._obstacle(request) is None

    def headers(self, request: JsonId) -> dict[str, str]:
        """The headers of a resume.

        Raises:
            InvalidResumptionError: it must not be made.
        """
        obstacle = self._obstacle(request)
        if obstacle is not None:
            raise obstacle
        cursor = self._entry(request).cursor or ""
        return {**self._named(), "Last-Event-ID": cursor}

    def reopening_headers(self, request: JsonId) -> dict[str, str]:
        """The headers of a stream that the transport opens although the request is terminal.

        It carries no cursor and is a new logical stream: what was known of event ids is forgotten.
        """
        entry = self._entry(request)
        entry.cursor, entry.ids = None, {}
        return self._named()

    def interpret(
        self, request: JsonId, status: int, *, body_empty: bool, body: bytes = b"", is_stream: bool = True
    ) -> Reading:
        """What the answer to a resume means (design 3.2 and 3.5).

        Args:
            request: whose stream was resumed.
            status: of the answer.
            body_empty: an accepted stream ended without one event.
            body: of a refusal, as far as it was read: what it says decides before the status does.
            is_stream: the media type was `text/event-stream`.

        Raises:
            InvalidResumptionError: a status that no resume is answered with, such as a redirect that nobody followed.
        """
        if 200 <= status < 300 and is_stream:  # noqa: PLR2004
            if not body_empty:
                return Reading("continue", None, "go_on")
            ruling: Ruling | None = classify_replay(empty=True, terminal=self.is_terminal(request))
        else:
            ruling = classify(
                Failure(
                    "resume",
                    is_get=True,
                    has_session=self.session is not None,
                    status=status,
                    body=read_body(body),
                    media_refused=not is_stream and 200 <= status < 300,  # noqa: PLR2004
                )
            )
        if ruling is None:
            raise InvalidResumptionError(f"A resume was answered with status {status}.", reason="bad_request")
        if status >= 400 and refused_for_good(ruling):  # noqa: PLR2004
            self._entry(request).refusal = ruling
        return Reading(ruling.disposition, ruling.reason, advice_of(ruling))

    def forget(self, request: JsonId) -> None:
        """The request is over, and nobody will ask about it again."""
        self._requests.pop(request)

    def _obstacle(self, request: JsonId) -> InvalidResumptionError | None:
        entry = self._requests.get(request)
        if entry is not None and entry.is_terminal:
            return InvalidResumptionError(
                f"Request {request!r} has its answer: a resume would only bring it again.",
                reason="after_terminal",
                advice="nothing",
            )
        if entry is not None and entry.refusal is not None:
            ruling = entry.refusal
            return InvalidResumptionError(
                f"The server has refused for good to resume the stream of request {request!r}.",
                reason=ruling.reason,
                advice=advice_of(ruling),
            )
        if entry is None or entry.cursor is None:
            return InvalidResumptionError(
                f"Request {request!r} has no cursor: no event of its stream had an id.", reason="unsupported"
            )
        return None

    def _entry(self, request: JsonId) -> _Request:
        entry = self._requests.get(request)
        if entry is None:
            entry = _Request()
            self._requests.put(request, entry)
        return entry

    def _named(self) -> dict[str, str]:
        return {} if self.session is None else {"Mcp-Session-Id": self.session}
