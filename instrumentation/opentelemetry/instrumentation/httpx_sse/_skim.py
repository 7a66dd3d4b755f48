"""Events that decide nothing, counted as they pass and handed to the ledger in bulk.

Once an attempt has shown progress, one more notification or one more piece of a completion changes nothing but
counts and cursors. Such events wait here, and whoever asks the ledger anything hands them over first: so nobody
can tell that they waited.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ._envelope import IDENTIFIER_LIMIT, shorten
from ._events import Skimmed
from ._names import EventType

Sort = TypeVar("Sort")

IDS_LIMIT: Final = 1024
"""Event ids that wait at most. The ledger recognises no more of one stream, so the older half may go."""


_CR: Final = 0x0D


def _one(newline: bytes) -> Callable[[bytes], "re.Match[bytes] | None"]:
    # A chunk that is one whole notification of those that come in masses. `.`, any byte but LF, is much faster than
    # a set; so that it takes no CR either, the first CR is looked for in advance.
    event = (
        rb"(?:id: ?([!-~]{1,128})NL|)(?:event: ?messageNL|)"
        rb'data: ?\{(?:"jsonrpc":"2\.0",|)"method":"notifications/(?:progress|message)"(?=[^\r]*NLNL).*NLNL'
    )
    return re.compile(event.replace(b"NL", newline)).fullmatch


_ONE_CRLF: Final = _one(rb"\r\n")
_ONE_LF: Final = _one(rb"\n")


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
        "_desk", "_dropped", "_exchange", "_ids", "_one", "_scanner", "_sort", "_taken", "at", "bytes", "event_type"
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
        self._one = _ONE_CRLF
        self._desk = desk
        self._ids: list[bytes | None] = []
        self._dropped = 0
        self._taken = 0

    @property
    def total(self) -> int:
        """Events so far, handed over or not."""
        return self._taken + self._dropped + len(self._ids)

    def read(self, chunk: bytes, at: float) -> bool:
        """Whether a chunk is nothing but ordinary events, and is done with."""
        match = self._one(chunk) if self.event_type == "notification" and self._scanner.is_clear else None
        if match is None:
            return self._read_many(chunk, at)
        ids = self._ids
        ids.append(match[1])
        self.at = at
        self.bytes += len(chunk)
        if len(ids) == 1:
            self._desk.waiting[self._exchange] = self
        elif len(ids) > IDS_LIMIT:
            self._desk.shorten(self)
        return True

    def _read_many(self, chunk: bytes, at: float) -> bool:
        found: tuple[EventType, list[bytes]] | None = None
        if self._scanner.is_clear:
            found = self._scanner.skim(self._sort, chunk)
        if found is None:
            # What waits came before what the scanner is about to read.
            self._desk.hand_over()
            return False
        event_type, ids = found
        if event_type != self.event_type:
            self._desk.hand_over()
            self.event_type = event_type
        self._one = _ONE_CRLF if _CR in chunk else _ONE_LF
        self.bytes += len(chunk)
        held = self._ids
        held.extend(ids)
        self.at = at
        if len(held) <= len(ids):
            self._desk.waiting[self._exchange] = self
        elif len(held) > IDS_LIMIT:
            self._desk.shorten(self)
        return True

    def tell(self) -> None:
        """The scanner goes on by itself: it has to know the newest id."""
        newest = next(filter(None, reversed(self._ids)), None)
        if newest:
            self._scanner.last_event_id = newest.decode("utf-8", "replace")

    def shorten(self) -> None:
        """Keep the newer half of the ids."""
        self.tell()
        older = len(self._ids) - IDS_LIMIT // 2
        del self._ids[:older]
        self._dropped += older

    def take(self) -> Skimmed:
        """What waits, as one fact."""
        self.tell()
        ids = self._ids[:]
        del self._ids[: len(ids)]
        dropped, self._dropped = self._dropped, 0
        self._taken += len(ids) + dropped
        if self._ids:
            self._desk.waiting[self._exchange] = self
        named = [event_id for event_id in ids if event_id]
        return Skimmed(
            exchange=self._exchange,
            event_type=self.event_type,
            count=len(ids) + dropped,
            event_ids=_texts(named),
            forgotten=dropped if named else 0,
        )
