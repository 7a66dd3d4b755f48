"""What was replayed from a dead session: kept for inspection up to a bound, never delivered."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

REPLAYS: Final = 16
"""Replays that are kept; the oldest goes first."""

REPLAY_LIMIT: Final = 256 * 1024
"""Bytes of one replay that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """One replay of a dead session. In memory only: it is never recorded or sent anywhere."""

    session: str
    at: float
    """Seconds, on the observer's clock."""
    data: bytes
    """The beginning of the event stream as it came."""


class Quarantine:
    """The newest replays of dead sessions, oldest first."""

    def __init__(self) -> None:
        self._replays: deque[Quarantined] = deque(maxlen=REPLAYS)

    def add(self, replay: Quarantined) -> None:
        self._replays.append(replay)

    def __iter__(self) -> Iterator[Quarantined]:
        return iter(tuple(self._replays))

    def __len__(self) -> int:
        return len(self._replays)

    def clear(self) -> None:
        self._replays.clear()
