"""Events that decide nothing, counted as they pass and handed to the ledger in bulk.

Once an attempt has shown progress, one more notification or one more piece of a completion changes nothing but
counts and cursors. Such events wait here, and whoever asks the ledger anything hands them over first: so nobody
can tell that they waited.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from ._envelope import IDENTIFIER_LIMIT, shorten
from ._events import Skimmed
from ._names import EventType
from ._scanner import SKIMMED_ID_LIMIT, Block

Sort = TypeVar("Sort")

IDS_LIMIT: Final = 1024
"""Event ids that wait at most. The ledger recognises no more of one stream, so the older half may go."""


_CR: Final = 0x0D
_LF: Final = 0x0A
_BACKSLASH: Final = 0x5C

Look = Callable[[bytes], "re.Match[bytes] | tuple[bytes, None] | None"]
"""Whether a chunk is one whole event of a certain kind: at 1 its id or None, if it is."""


# What of one whole notification of those that come in masses is the same everywhere. `.`, any byte but LF, is much
# faster than a set; so that it takes no CR either, the first CR is looked for in advance.
_ID: Final = rb"([!-~]{1,%d})" % SKIMMED_ID_LIMIT
_TYPE: Final = rb"(?:event: ?messageNL|)"
_HEAD: Final = rb'\{(?:"jsonrpc":"2\.0",|)"method":"notifications/(?:progress|message)"'
_TAIL: Final = rb"(?=[^\r]*NLNL).*NLNL"


def _compiled(pattern: bytes, newline: bytes) -> "re.Pattern[bytes]":
    return re.compile(pattern.replace(b"NL", newline))


# The ids of many: first in their events, as Python servers write them, or second, as TypeScript does. From where the
# run of such events ends, all the rest is one without an id.
_MANY: Final = _TYPE + b"id: ?" + _ID + b"NL" + _TYPE + b"data: ?" + _HEAD
_MANY_CRLF: Final = _compiled(_MANY + _TAIL + b"|(?s:.+)", rb"\r\n").findall
# In a chunk without CR nobody looks for one: from every event, that would be to the end of the chunk.
_MANY_LF: Final = _compiled(_MANY + b".*NLNL|(?s:.+)", rb"\n").findall


# Only few forms of an event of that type fit, so there are only few patterns to make of them.
_FORM: Final = _compiled(
    b"(?:(" + _TYPE + rb"id: ?)[!-~]+(?=[\r\n])|)((?:NL|)" + _TYPE + rb"data: ?)\{", rb"\r?\n"
).match
_LEAD: Final = re.compile(rb"(?:event: ?[!-~]*\n|)data: ?\{").match
_NO_ID: Final = (b"", None)


@lru_cache(64)
def _notification(lead: bytes | None, between: bytes, newline: bytes) -> Look:
    """One notification of those that come in masses, as this server writes it.

    Args:
        lead: what stands before the id; None if there is none.
        between: what stands between the id and the payload.
        newline: what ends a line.
    """
    lines = (re.escape(lead) + _ID if lead else b"()") + re.escape(between)
    return _compiled(lines + _HEAD + _TAIL, newline).fullmatch


@lru_cache(64)
def _piece(lead: bytes) -> Look:
    """One event without an id that is no JSON-RPC.

    Bytes that are no part of "jsonrpc" are no JSON-RPC either, unless JSON hides a letter of it in an escape.

    Args:
        lead: how the last one began, up to the payload's first byte.
    """
    start = len(lead)

    def look(chunk: bytes) -> tuple[bytes, None] | None:
        if (
            chunk.startswith(lead)
            and chunk.find(_LF, start) == len(chunk) - 2
            and chunk[-1] == _LF
            and _CR not in chunk
            and chunk.find(b"jsonrpc", start) < 0
            and (_BACKSLASH not in chunk or chunk.find(rb"\u", start) < 0)
        ):
            return _NO_ID
        return None

    return look


def _is_plain(block: Block) -> bool:
    if block.retry is not None or not block.size or block.tail or block.type.startswith("endpoint"):
        return False
    return block.id is None or 0 < len(block.id) <= SKIMMED_ID_LIMIT


def _never(_: bytes) -> None:
    return None


def _like(chunk: bytes, event_type: EventType) -> Look:
    """What sees at once that an event is like the one that this chunk is."""
    if event_type == "notification":
        form = _FORM(chunk)
        return _notification(form[1], form[2], b"\r\n" if _CR in chunk else b"\n") if form else _never
    lead = _LEAD(chunk)
    return _piece(lead[0]) if lead else _never


def _texts(ids: list[bytes]) -> tuple[str, ...]:
    """Event ids as the ledger knows them; all at once, since there are many."""
    if not ids:
        return ()
    texts = b"\n".join(ids).decode("utf-8", "replace").split("\n")
    if max(map(len, texts)) <= IDENTIFIER_LIMIT:
        return tuple(texts)
    return tuple(map(shorten, texts))


class Reader(Protocol):
    """The part of a scanner that is needed here."""

    is_clear: bool
    last_event_id: str

    def skim(self, sort: Callable[[bytes], Sort | None], chunk: bytes) -> tuple[Sort, list[bytes]] | None:
        """Sort and ids of all events of a chunk."""


class Desk(Protocol):
    """Where skims are filed, and who may touch what readers of several threads share."""

    waiting: "dict[int, Skim]"

    def clock(self) -> float:
        """Seconds, steady."""

    def hand_over(self) -> None:
        """Take everything that waits."""

    def shorten(self, skim: "Skim") -> None:
        """Call its `shorten` while nobody takes."""


class Skim:
    """The ordinary events of one exchange that the ledger has not heard of yet.

    Its reader's thread adds, any thread takes, one at a time. What both use is touched by single list operations
    only; `read` files the skim after adding and `take` after taking, so nothing is lost in between.

    Args:
        exchange: number of the exchange.
        scanner: reads what is not ordinary.
        sort: what an object in an event's data is; None if it has to be read with care.
        desk: where to be filed.
    """

    __slots__ = (
        "_clock", "_desk", "_dropped", "_exchange", "_forgotten", "_ids", "_look", "_newest", "_scanner", "_sort",
        "_taken", "at", "bytes", "event_type",
    )  # fmt: skip

    def __init__(
        self, exchange: int, scanner: Reader, sort: Callable[[bytes], EventType | None], desk: Desk
    ) -> None:
        self.bytes = 0
        self.at = 0.0
        """When the newest came."""
        self.event_type: EventType = "notification"
        """Of all that wait."""
        self._exchange = exchange
        self._scanner = scanner
        self._sort = sort
        self._look: Look = _never
        self._desk = desk
        self._clock = desk.clock
        self._ids: list[bytes | None] = []
        self._newest = b""
        """The newest id that does not wait any more, unless the scanner has read on since."""
        self._dropped = 0
        self._forgotten = 0
        self._taken = 0

    @property
    def total(self) -> int:
        """Events so far, handed over or not."""
        return self._taken + self._dropped + len(self._ids)

    @property
    def is_ready(self) -> bool:
        """Whether `read` may be called: nothing that the scanner has begun is left to finish."""
        return self._scanner.is_clear

    def read(self, chunk: bytes) -> bool:
        """Whether a chunk is one ordinary event like the last one, and is done with."""
        event = self._look(chunk)
        if event is None:
            return False
        self.bytes += len(chunk)
        ids = self._ids
        ids.append(event[1])
        self.at = self._clock()
        if not 1 < len(ids) <= IDS_LIMIT:
            self._file(1)
        return True

    def read_many(self, chunk: bytes, at: float) -> bool:
        """Whether a chunk is nothing but ordinary events, of whatever kind and number, and is done with."""
        found: tuple[EventType, list[bytes]] | None = None
        if self._scanner.is_clear:
            ids = (_MANY_CRLF if _CR in chunk else _MANY_LF)(chunk)
            found = ("notification", ids) if ids and ids[-1] else self._scanner.skim(self._sort, chunk)
        if found is None:
            newest = self._latest()
            if newest:
                self._scanner.last_event_id = newest.decode("utf-8", "replace")
            return False
        event_type, ids = found
        self.bytes += len(chunk)
        self._add(event_type, ids, at)
        self._look = _like(chunk, event_type) if len(ids) == 1 else _never
        return True

    def take_in(self, blocks: list[Block], at: float) -> bool:
        """Whether what the scanner has read is nothing but ordinary events too, and is done with."""
        sorts = {self._sort(block.data) if _is_plain(block) else None for block in blocks}
        event_type = sorts.pop() if len(sorts) == 1 else None
        if event_type is not None:
            self._add(event_type, [block.id.encode() if block.id else b"" for block in blocks], at)
        return event_type is not None

    def give_way(self) -> None:
        """Something else is about to be observed: what waits came before it, and the scanner knows the newest id."""
        self._desk.hand_over()
        self._newest = b""

    def _add(self, event_type: EventType, ids: list[bytes], at: float) -> None:
        if event_type != self.event_type:
            self._desk.hand_over()
            self.event_type, self._look = event_type, _never
        self._ids.extend(ids)
        self.at = at
        self._file(len(ids))

    def _file(self, added: int) -> None:
        if len(self._ids) <= added:
            self._desk.waiting[self._exchange] = self
        if len(self._ids) > IDS_LIMIT:
            self._desk.shorten(self)

    def _latest(self) -> bytes:
        return next(filter(None, reversed(self._ids)), self._newest)

    @property
    def last_event_id(self) -> str:
        """Of all that was read, by whomever."""
        return self._latest().decode("utf-8", "replace") or self._scanner.last_event_id

    def shorten(self) -> None:
        """Keep the newest ids, as many as half of the limit; of events without an id only their number."""
        self._newest = self._latest()
        held = len(self._ids)
        newest_first = dict.fromkeys(reversed(self._ids))
        newest_first.pop(None, None)
        newest_first.pop(b"", None)
        self._ids[:] = reversed(list(newest_first)[: IDS_LIMIT // 2])
        self._dropped += held - len(self._ids)
        self._forgotten += len(newest_first) - len(self._ids)

    def take(self) -> Skimmed:
        """What waits, as one fact."""
        self._newest = self._latest()
        ids = self._ids[:]
        del self._ids[: len(ids)]
        dropped, self._dropped = self._dropped, 0
        forgotten, self._forgotten = self._forgotten, 0
        self._taken += len(ids) + dropped
        if self._ids:
            self._desk.waiting[self._exchange] = self
        named = [event_id for event_id in ids if event_id]
        return Skimmed(
            exchange=self._exchange,
            event_type=self.event_type,
            count=len(ids) + dropped,
            event_ids=_texts(named),
            forgotten=forgotten,
        )
