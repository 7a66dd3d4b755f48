"""All tables of the ledger, and how their entries are found, made and let go."""

from collections.abc import Iterable, Sequence
from itertools import chain, count, islice
from typing import Final

from .._dialect import Dialect
from .._events import Digest, JsonId, Origin, Sent
from .._names import StreamKind
from ._records import (
    Dialogue,
    Flight,
    Logical,
    Operation,
    Place,
    Prompt,
    Request,
    Session,
    Tally,
)
from ._tables import LIMITS, PLACE_STREAMS, SPENT_STREAM_IDS, STREAM_IDS, Table, Thresholds

_REDIRECTS: Final = 256
_ENDPOINTS: Final = 1024
_TALLIES: Final = 4096

_REDIRECTS_TO_ONE: Final = 64
"""Requests that are expected at one URL at once."""

_MAKES_GET: Final = (301, 302, 303)
"""Statuses after which a POST is followed by a GET, by the standard or by custom."""

_FOLLOWED_WITHIN: Final = 5.0
"""Seconds after which nobody follows a redirect any more: libraries do so at once."""

_LOOKED_AT: Final = 64
"""Of a full table, so many of the oldest streams are looked at for one that is not needed any more."""

ELSEWHERE: Final = Origin("", "", 0)
"""Where events of servers are counted that come after too many others; telemetry names those `_OTHER` long since."""


def _goes_on(flight: Flight, after: Sent) -> bool:
    """RFC 9110, 15.4: a redirect keeps the method, or makes a GET of it; and all that this request is about."""
    before, status = flight.sent, flight.answered.status if flight.answered else 0
    if after.http_method != before.http_method and (after.http_method != "GET" or status not in _MAKES_GET):
        return False
    is_same = (before.session, before.cursor) == (after.session, after.cursor)
    return is_same and (not after.messages or after.messages == before.messages)


class State:
    """The ledger's memory. Every table is bounded by size."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.sessions: Table[tuple[Origin, str], Session] = Table("sessions")
        self.places: Table[tuple[Origin, str | int], Place] = Table("places")
        self.streams: Table[int, Logical] = Table("streams")
        self.requests: Table[tuple[int, JsonId], Request] = Table("requests")
        self.prompts: Table[tuple[int, JsonId], Prompt] = Table("prompts")
        self.operations: Table[tuple[object, ...], Operation] = Table("operations")
        self.flights: Table[int, Flight] = Table("exchanges")
        self.redirects: Table[tuple[int, Digest], tuple[tuple[Flight, float], ...]] = Table(
            "exchanges", _REDIRECTS
        )
        self.endpoints: Table[Digest, Logical] = Table("streams", _ENDPOINTS)
        self.tallies: dict[tuple[Origin, StreamKind], Tally] = {}
        self.ids_held = 0
        self.ids_evicted = 0
        self._numbers = count(1)

    def number(self) -> int:
        return next(self._numbers)

    def is_answering(self, prompt: Prompt) -> bool:
        """Whether an answer to a server request is on its way: nobody knows yet whether it is taken."""
        return prompt.answer is not None and prompt.answer in self.flights

    # -------------------------------------------------------------- redirects

    def redirected(self, flight: Flight, to: Digest, at: float) -> None:
        """The response of `flight` points elsewhere: the request that follows it is expected there."""
        key = (flight.sent.pool, to)
        expected = self.redirects.pop(key) or ()
        self.redirects.put(key, (*expected[1 - _REDIRECTS_TO_ONE :], (flight, at)))

    def followed(self, event: Sent, at: float) -> Flight | None:
        """The flight that a request goes on with, after a redirect; each goes on once."""
        key = (event.pool, event.target)
        expected = self.redirects.pop(key)
        if expected is None:
            return None
        fresh = tuple(each for each in expected if at - each[1] <= _FOLLOWED_WITHIN)
        found = next((each for each in fresh if _goes_on(each[0], event)), None)
        left = tuple(each for each in fresh if each is not found)
        if left:
            self.redirects.put(key, left)
        return None if found is None else found[0]

    # -------------------------------------------------------------- places and sessions

    def place(self, origin: Origin, pool: int) -> Place:
        """Where streams without a session are looked up."""
        key: tuple[Origin, str | int] = (origin, pool)
        place = self.places.get(key)
        if place is None:
            place = Place(key, origin)
            self._let_go(self.places.put(key, place))
        return place

    def session(self, origin: Origin, session_id: str, pool: int, at: float) -> Session:
        """The session, made on its first sight."""
        session = self.sessions.get((origin, session_id))
        if session is None:
            place = Place((origin, session_id), origin)
            session = Session(origin, session_id, place, Dialogue(self.number()), at, at)
            place.session = session
            gone = self.sessions.put((origin, session_id), session)
            self._let_go(gone.place if gone else None)
        session.pools.add(pool)
        session.used_at = at
        return session

    def _let_go(self, place: Place | None) -> None:
        for number in list(place.streams) if place else ():
            self.drop(number)

    # -------------------------------------------------------------- logical streams

    def stream(
        self,
        flight: Flight,
        kind: StreamKind,
        at: float,
        *,
        dialect: Dialect | None = None,
        subject: Digest = b"",
    ) -> Logical:
        """A new logical stream, begun by `flight`."""
        place = flight.place
        stream = Logical(
            number=self.number(),
            place=place,
            dialogue=flight.dialogue,
            kind=kind,
            dialect=dialect or flight.dialect,
            target=flight.sent.target,
            touched_at=at,
            subject=subject,
        )
        if len(place.streams) >= PLACE_STREAMS:
            self._make_room(place.streams.values())
        if len(self.streams) >= self.streams.limit:
            self._make_room(self.streams)
        place.streams[stream.number] = stream
        self.streams.put(stream.number, stream)
        return stream

    def _make_room(self, streams: Iterable[Logical]) -> None:
        """Let one go: of the oldest, the first that is over, else the first that is idle, else the oldest."""
        oldest = list(islice(streams, _LOOKED_AT))
        over = (stream for stream in oldest if stream.is_over)
        idle = (stream for stream in oldest if stream.is_idle)
        self.streams.evicted += 1
        self.drop(next(chain(over, idle, oldest)).number)

    def drop(self, number: int) -> None:
        """Let a logical stream go."""
        stream = self.streams.pop(number)
        if stream is not None:
            self._forget(stream)

    def _forget(self, stream: Logical) -> None:
        stream.place.streams.pop(stream.number, None)
        self.ids_held -= len(stream.ids)
        stream.ids = {}
        if stream.endpoint:
            self.endpoints.pop(stream.endpoint)

    # -------------------------------------------------------------- event ids

    def learn(self, stream: Logical, event_id: str) -> bool:
        """Remember an event id of a stream; whether it was new there."""
        return bool(event_id) and self.learn_all(stream, (event_id,)) > 0

    def learn_all(self, stream: Logical, event_ids: Sequence[str]) -> int:
        """Remember event ids of a stream, none of them empty; how many were new there.

        A stream that had to go while it was open remembers nothing: nobody would let go of it again.
        """
        if stream.number not in self.streams:
            return len(event_ids)
        at = fresh = 0
        while at < len(event_ids):
            room = STREAM_IDS + 1 - len(stream.ids)
            held = len(stream.ids)
            stream.ids.update(dict.fromkeys(event_ids[at : at + room]))
            grown = len(stream.ids) - held
            stream.has_cursor = True
            at += room
            fresh += grown
            self.ids_held += grown
            if len(stream.ids) > STREAM_IDS:
                self._shorten(stream, STREAM_IDS // 2)
            if self.ids_held > LIMITS["event_ids"]:
                self._relieve(stream)
        return fresh

    def spend(self, stream: Logical) -> None:
        """Its answer has come: few of its event ids matter any more."""
        if len(stream.ids) > SPENT_STREAM_IDS:
            evicted = self.ids_evicted
            self._shorten(stream, SPENT_STREAM_IDS)
            self.ids_evicted = evicted

    def _shorten(self, stream: Logical, keep: int) -> None:
        """Keep the newest event ids; half at a time, so that the price of an id stays flat."""
        ids = list(stream.ids)[-keep:]
        self.ids_evicted += len(stream.ids) - len(ids)
        self.ids_held -= len(stream.ids) - len(ids)
        stream.ids = dict.fromkeys(ids)

    def _relieve(self, busy: Logical) -> None:
        """Too many event ids in all: the streams that were used least recently keep only their newest."""
        for stream in self.streams:
            if self.ids_held <= LIMITS["event_ids"] // 2:
                break
            if stream is not busy and len(stream.ids) > SPENT_STREAM_IDS:
                self._shorten(stream, SPENT_STREAM_IDS)

    # -------------------------------------------------------------- counts

    def tally(self, stream: Logical) -> Tally:
        """Where the events of this stream's server and kind are counted."""
        key = (stream.origin, stream.kind)
        if key not in self.tallies and len(self.tallies) >= _TALLIES:
            key = (ELSEWHERE, stream.kind)
        return self.tallies.setdefault(key, {})

    def evictions(self) -> dict[str, int]:
        """Totals by table."""
        counts: dict[str, int] = {"event_ids": self.ids_evicted}
        tables: tuple[Table[object, object], ...] = (
            self.sessions, self.places, self.streams, self.requests, self.prompts,
            self.operations, self.flights, self.redirects, self.endpoints,
        )  # type: ignore[assignment]  # fmt: skip
        for table in tables:
            counts[table.name] = counts.get(table.name, 0) + table.evicted
        return counts
