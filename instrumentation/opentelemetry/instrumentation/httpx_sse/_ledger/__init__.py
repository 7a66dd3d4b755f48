"""The ledger: from facts to verdicts, without clock, I/O, OpenTelemetry or httpx.

Laws
====
An event id is a cursor, not a promise. Replay restores the transcript, not the conversation. A 200 on a resume
proves neither progress nor a live session. Judge a reconnect by what is new, never by its status. Watching is
total: an impossible sequence is a finding, never an exception.

Theory of operation
===================
An *exchange* (one request and its response) is a `Flight` while it lasts. A flight may belong to a *logical
stream*, the chain of event streams that reconnects join; each flight on it is one `Attempt`. Whatever must
outlive a flight stands in a table of `_state`, bounded by size.

Each fact is handled by the aspects that it concerns, in this order:

- `_sessions`: does the session live;
- `_dialogue`: who asked what, what was answered, and with `_rounds` what is asked again;
- `_attempts`, `_progress`, `_outcomes`: which stream, why a reconnect, what was new, what it brought.

`_departures` tells what is now, and what the passing of time alone has decided. It is asked at every collection
of metrics: the collector is the clock.

Early closes are ambiguous before 2026-07-28: "Disconnection SHOULD NOT be interpreted as the client cancelling
its request". So a stream that its consumer closed before the answer is neither complete nor lost; only a
reconnect, a cancellation, or long silence tells what it was.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from .._dialect import Dialect, dialect_of
from .._events import (
    NO_BODY,
    Answered,
    Body,
    Concluded,
    Ended,
    Event,
    Message,
    MessageKind,
    PoolClosed,
    Received,
    Sent,
    Skimmed,
    Unanswered,
)
from .._failure import Failure, Ruling, classify
from .._names import StreamKind
from .._verdicts import Redelivery, Snapshot, Standing, Verdict
from . import _attempts, _departures, _dialogue, _outcomes, _progress, _sessions
from ._records import Dialogue, Flight, Logical
from ._state import State
from ._tables import Table, Thresholds

__all__ = ["Ledger", "Table", "Thresholds"]

Verdicts = Iterator[Verdict]

_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)


class Ledger:
    """Everything known about sessions, streams, requests and prompts of this process."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self._state = State(thresholds or Thresholds())

    def observe(self, event: Event, *, at: float) -> tuple[Verdict, ...]:
        """What `event`, seen at `at` (seconds on any steady clock), lets one conclude."""
        return tuple(_RULES[type(event)](self, event, at))

    def snapshot(self, *, at: float) -> Snapshot:
        """What is at `at`, and what time alone has decided since the last snapshot."""
        return _departures.snapshot(self._state, at=at)

    def has_progressed(self, exchange: int) -> bool:
        """Whether the attempt of an exchange is settled as far as more ordinary events could settle it."""
        flight = self._state.flights.peek(exchange)
        return flight is not None and flight.attempt is not None and flight.attempt.has_progress

    def standing(self, stream: int) -> Standing | None:
        """What is known of a logical stream now, by its number; None when it is not known any more."""
        logical = self._state.streams.peek(stream)
        return None if logical is None else _outcomes.standing(self._state, logical)

    def redelivery(self, exchange: int, message: Message, *, at: float) -> Redelivery | None:
        """What is known at `at` of a server request that `exchange` has brought, if it had been delivered before."""
        flight = self._state.flights.peek(exchange)
        if flight is None or message.id is None:
            return None
        prompt = self._state.prompts.peek((flight.dialogue.number, message.id))
        return None if prompt is None else _dialogue.redelivery(self._state, flight, prompt, message, at)

    @property
    def awaits_plain(self) -> bool:
        """Whether requests that do not look like MCP may matter: to the endpoint of a two-endpoint stream
        (MCP 2024-11-05), or as the second half of a redirect."""
        return len(self._state.endpoints) > 0 or len(self._state.redirects) > 0

    def knows(self, event: Sent) -> bool:
        """Whether a request that is not MCP-shaped continues something that is known here."""
        state = self._state
        if event.target in state.endpoints or (event.pool, event.target) in state.redirects:
            return True
        if not event.cursor or event.http_method != "GET":
            return False
        place = state.places.peek((event.origin, event.pool))
        return place is not None and any(event.cursor in s.ids for s in place.newest_first())

    # -------------------------------------------------------------- a request leaves

    def _sent(self, event: Sent, at: float) -> Verdicts:
        state = self._state
        before = state.followed(event, at)
        legacy = state.endpoints.get(event.target) if event.http_method == "POST" else None
        flight = self._flight(event, at, legacy)
        if event.http_method != "DELETE":
            flight.place.used_at = at
        yield from self._keep(flight, at)
        if before is not None:
            yield from self._follow(flight, before, at)
            return
        yield from _dialogue.sent(state, flight)
        yield from _sessions.sent(flight, at)
        if legacy is not None:
            self._carry(flight, legacy)
        elif event.http_method == "GET" and (event.mcp or self.knows(event)):
            yield from self._stream_requested(flight, at)
        elif any(request.method == "subscriptions/listen" for request in flight.requests):
            yield from self._listen_requested(flight, at)

    def _keep(self, flight: Flight, at: float) -> Verdicts:
        """Too many exchanges at once: the one that was quiet longest is not watched to its end."""
        gone = self._state.flights.put(flight.exchange, flight)
        if gone is not None:
            yield from _outcomes.ended(self._state, gone, Ended(exchange=gone.exchange, how="abandoned"), at)
            _sessions.landed(gone, at)

    def _flight(self, event: Sent, at: float, legacy: Logical | None) -> Flight:
        state = self._state
        session = None
        if event.session and dialect_of(event.version).has_sessions:
            session = state.session(event.origin, event.session, event.pool, at)
        dialect = self._dialect(event, session.version if session else "")
        if not dialect.has_sessions:
            session = None
        place = session.place if session else state.place(event.origin, event.pool)
        dialogue = session.dialogue if session else Dialogue(state.number())
        if legacy is not None:
            return Flight(event, at, legacy.place, legacy.dialogue, legacy.dialect, legacy=legacy)
        return Flight(event, at, place, dialogue, dialect, session)

    @staticmethod
    def _dialect(event: Sent, agreed: str) -> Dialect:
        """From the header, else from the session's `initialize` (design, Terms: dialect)."""
        return dialect_of(event.version or agreed)

    def _follow(self, flight: Flight, before: Flight, at: float) -> Verdicts:
        """A redirect is followed: the same request, and the same attempt, at another place."""
        flight.at, flight.place, flight.dialogue = before.at, before.place, before.dialogue
        flight.session, flight.dialect, flight.legacy = before.session, before.dialect, before.legacy
        flight.requests, flight.replies = before.requests, before.replies
        flight.probe, flight.met_lost, flight.met_doubt = before.probe, before.met_lost, before.met_doubt
        if flight.session is not None:
            flight.session.requests_open += 1
        if before.stream is not None:
            yield from _attempts.begin(self._state, flight, before.stream, at)

    def _stream_requested(self, flight: Flight, at: float) -> Verdicts:
        """A GET that asks for a stream."""
        known = _attempts.by_cursor(flight) if flight.cursor else _attempts.standalone(flight)
        foreign = known is None and bool(flight.cursor)
        stream = known or self._state.stream(flight, "standalone", at)
        flight.dialogue = stream.dialogue
        yield from _attempts.begin(self._state, flight, stream, at, foreign=foreign)

    def _listen_requested(self, flight: Flight, at: float) -> Verdicts:
        """MCP 2026-07-28: a `subscriptions/listen` opens a stream of its own, again and again."""
        subject = flight.requests[0].message.subject
        stream = _attempts.listening(flight, subject) or self._state.stream(
            flight, "listen", at, subject=subject
        )
        stream.requests.clear()
        stream.dialogue = flight.dialogue
        self._carry(flight, stream)
        yield from _attempts.begin(self._state, flight, stream, at)

    @staticmethod
    def _carry(flight: Flight, stream: Logical) -> None:
        """The requests of a POST are answered on its stream."""
        for request in flight.requests:
            request.stream = stream
            if request.answered_by is None:
                stream.requests[request.id] = request

    # -------------------------------------------------------------- the head of the response

    def _answered(self, event: Answered, at: float) -> Verdicts:
        flight = self._state.flights.get(event.exchange)
        if flight is None:
            return
        flight.answered = event
        is_given = event.session and event.session != flight.sent.session and event.status in _OK
        if event.session and is_given and flight.dialect.has_sessions:
            _sessions.assigned(self._state, flight, event.session, at)
        if event.status in _REDIRECT and event.location:
            self._state.redirected(flight, event.location, at)
        if event.is_stream:
            yield from self._stream_opened(flight, event, at)

    def _stream_opened(self, flight: Flight, event: Answered, at: float) -> Verdicts:
        if flight.stream is None:
            yield from self._stream_appeared(flight, at)
        yield from _attempts.opened(flight, event, at)
        _sessions.replayed(flight, at)
        if flight.sent.http_method != "GET":
            yield from _sessions.settled(flight, status=event.status, ruling=None, is_jsonrpc=False, at=at)

    def _stream_appeared(self, flight: Flight, at: float) -> Verdicts:
        """Only the answer showed that the request opens a stream."""
        sent = flight.sent
        if sent.http_method == "POST":
            kind: StreamKind = "response" if flight.requests else "other"
            stream = self._state.stream(flight, kind, at)
            self._carry(flight, stream)
            yield from _attempts.begin(self._state, flight, stream, at)
            return
        known = None if flight.cursor else _attempts.plain(flight)
        stream = known or self._state.stream(flight, "other", at)
        flight.dialogue = stream.dialogue
        yield from _attempts.begin(
            self._state, flight, stream, at, foreign=known is None and bool(flight.cursor)
        )

    # -------------------------------------------------------------- events

    def _received(self, event: Received, at: float) -> Verdicts:
        flight = self._state.flights.get(event.exchange)
        if flight is None:
            return
        yield from _progress.received(self._state, flight, event, at)
        if event.messages:
            _sessions.delivered(flight, len(event.messages))
            yield from self._delivered(flight, event.messages, at)
            for message in event.messages:
                if self._is_stray(flight, message):
                    yield from self._stray(flight, message, at)

    def _skimmed(self, event: Skimmed, at: float) -> Verdicts:
        flight = self._state.flights.get(event.exchange)
        if flight is None:
            return
        yield from _progress.skimmed(self._state, flight, event, at)
        if event.event_type == "notification":
            _sessions.delivered(flight, event.count)

    def _delivered(self, flight: Flight, messages: tuple[Message, ...], at: float) -> Verdicts:
        for message in messages:
            yield from _dialogue.delivered(self._state, flight, message, at)
            self._agreed(flight, message)

    @staticmethod
    def _agreed(flight: Flight, message: Message) -> None:
        """The result of `initialize` names the revision of its session."""
        if flight.assigned is not None and message.protocol_version:
            flight.assigned.version = message.protocol_version

    def _is_stray(self, flight: Flight, message: Message) -> bool:
        """A JSON-RPC error that belongs to no request that is known here (design 3.5)."""
        if message.kind is not MessageKind.RESPONSE or not message.is_error:
            return False
        return message.id is None or _dialogue.asked(self._state, flight, message.id) is None

    def _stray(self, flight: Flight, message: Message, at: float) -> Verdicts:
        """An event stream that brings nothing but the news that its session is gone."""
        body = Body(message.error_text, (message,))
        ruling = classify(
            Failure(
                _outcomes.point_of(flight),
                has_session=flight.session is not None,
                status=200,
                body=body,
                stray_error=True,
            )
        )
        if ruling is not None and flight.session is not None and flight.session.state == "alive":
            yield _outcomes.classified(flight, ruling)
            yield from _sessions.settled(flight, status=200, ruling=ruling, is_jsonrpc=True, at=at)

    # -------------------------------------------------------------- the end

    def _pool_closed(self, event: PoolClosed, at: float) -> Verdicts:
        yield from _sessions.pool_closed(self._state, event.pool, at)

    def _concluded(self, event: Concluded, at: float) -> Verdicts:
        stream = self._state.streams.peek(event.stream)
        if stream is None:
            return
        for request in stream.requests.values():
            if not request.is_over:
                yield _dialogue.given_up(stream, request, event, at)
        yield from _outcomes.concluded(self._state, stream, exchange=event.exchange)

    def _unanswered(self, event: Unanswered, at: float) -> Verdicts:
        flight = self._state.flights.pop(event.exchange)
        if flight is None:
            return
        ruling = None
        if event.error != "cancelled":
            ruling = self._rule(flight, NO_BODY, error=event)
            if ruling is not None:
                yield _outcomes.classified(flight, ruling)
            yield from _dialogue.answers_settled(flight, ruling)
            yield from _dialogue.unanswered(flight, event.error, at)
        yield from _outcomes.failed(flight, event.error, at)
        if event.error != "cancelled":
            yield from _sessions.settled(flight, status=None, ruling=ruling, is_jsonrpc=False, at=at)
        _sessions.landed(flight, at)

    def _ended(self, event: Ended, at: float) -> Verdicts:
        flight = self._state.flights.pop(event.exchange)
        if flight is None or flight.answered is None:
            return
        if flight.answered.is_stream:
            yield from _outcomes.ended(self._state, flight, event, at)
            yield from _dialogue.answers_settled(flight, None)
        elif flight.answered.status in _REDIRECT and flight.answered.location:
            yield from _outcomes.refused(flight, None, at)
        else:
            yield from self._body_ended(flight, event, flight.answered.status, at)
        _sessions.landed(flight, at)

    def _body_ended(self, flight: Flight, event: Ended, status: int, at: float) -> Verdicts:
        """A response that is no event stream was read, as far as the client read it."""
        point = _outcomes.point_of(flight)
        ruling = self._rule(flight, event.body, error=None)
        yield from self._delivered(flight, self._countable(flight, event.body, status), at)
        if ruling is not None:
            yield _outcomes.classified(flight, ruling, point)
        if flight.replies:
            yield from _dialogue.answers_settled(flight, ruling)
        if ruling is not None:
            yield from _dialogue.unanswered(flight, str(status), at)
        if flight.stream is not None:
            yield from _outcomes.refused(flight, ruling, at)
        yield from _sessions.settled(
            flight, status=status, ruling=ruling, is_jsonrpc=event.body.is_jsonrpc, at=at
        )

    @staticmethod
    def _countable(flight: Flight, body: Body, status: int) -> tuple[Message, ...]:
        """Messages of a body; in a refusal, only what answers a request of the same exchange is a response."""
        if status in _OK and not flight.is_answer:
            return body.messages
        asked = [request.id for request in flight.requests]
        return tuple(message for message in body.messages if message.id in asked)

    def _rule(self, flight: Flight, body: Body, *, error: Unanswered | None) -> Ruling | None:
        status = flight.answered.status if flight.answered else None
        errors = [m for m in body.messages if m.is_error]
        # A redirect may make a GET of a POST; what it carried is still no request for a stream.
        is_get = flight.sent.http_method == "GET" and not flight.requests and not flight.replies
        is_ok = status is not None and status in _OK
        if is_ok and not errors and not is_get:
            # Most exchanges: nothing failed, so no row can fit.
            return None
        return classify(
            Failure(
                _outcomes.point_of(flight),
                is_get=is_get,
                has_session=flight.session is not None,
                status=status,
                error=error.error if error else None,
                body=body,
                stray_error=is_ok and any(self._is_stray(flight, m) for m in errors),
                answer_error=flight.is_answer and bool(errors),
                media_refused=is_get and is_ok and flight.stream is not None,
            )
        )


_RULES: Final[dict[type[Event], Callable[[Ledger, Any, float], Verdicts]]] = {
    Sent: Ledger._sent,  # noqa: SLF001
    Answered: Ledger._answered,  # noqa: SLF001
    Received: Ledger._received,  # noqa: SLF001
    Skimmed: Ledger._skimmed,  # noqa: SLF001
    Ended: Ledger._ended,  # noqa: SLF001
    Unanswered: Ledger._unanswered,  # noqa: SLF001
    Concluded: Ledger._concluded,  # noqa: SLF001
    PoolClosed: Ledger._pool_closed,  # noqa: SLF001
}
"""What is done about each kind of fact."""
