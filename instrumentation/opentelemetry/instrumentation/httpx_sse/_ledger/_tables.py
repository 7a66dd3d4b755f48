"""Bounds of all state, and the table that keeps them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from .._names import EvictedTable

K = TypeVar("K")
V = TypeVar("V")

LIMITS: Final[dict[EvictedTable, int]] = {
    "sessions": 2048,
    "places": 4096,
    "streams": 4096,
    "requests": 8192,
    "prompts": 4096,
    "operations": 2048,
    "exchanges": 8192,
    "event_ids": 131_072,
    "spans": 8192,
}
"""Most entries of each table. When one is full, its least recently used entry goes, and is counted.

At about 1 KiB a session or stream and 100 bytes an event id, everything full stays below 40 MiB."""

PLACE_STREAMS: Final = 256
"""Logical streams that one session, or one transport without a session, can be resumed on."""

STREAM_IDS: Final = 1024
"""Event ids of one logical stream that are recognised when they come again."""

SPENT_STREAM_IDS: Final = 16
"""Event ids that are kept of a logical stream whose answer has come: enough to see it resumed all the same."""

STREAM_MESSAGES: Final = 256
"""Requests and responses of one logical stream that are recognised when they come again."""


class Table(Generic[K, V]):
    """A mapping that holds at most `limit` entries and lets go of the least recently used one."""

    __slots__ = ("_entries", "evicted", "limit", "name")

    def __init__(self, name: EvictedTable, limit: int | None = None) -> None:
        self.name = name
        self.limit = LIMITS[name] if limit is None else limit
        self.evicted = 0
        self._entries: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[V]:
        return iter(self._entries.values())

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The entry, which becomes the most recently used."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def peek(self, key: K) -> V | None:
        """The entry, left in its place."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> V | None:
        """Add or replace an entry; the one that had to go for it, if any."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) <= self.limit:
            return None
        self.evicted += 1
        return self._entries.pop(next(iter(self._entries)))

    def pop(self, key: K) -> V | None:
        return self._entries.pop(key, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits of time, in seconds, that decide; see design, Options."""

    idle_threshold: float = 25.0
    quiet_threshold: float = 1.0
    give_up_after: float = 30.0
    submission_deadline: float | None = None


LEAVES_AFTER: Final = 120.0
"""Seconds without an event after which an entry leaves the gauges (design 3.6)."""

SESSION_LEAVES_AFTER: Final = 600.0
"""Seconds without a stream or request after which a session leaves the gauges (design 3.6)."""

RETRY_FACTOR: Final = 5
"""Patience is never shorter than so many times the `retry` that the server asked for."""
