"""What the accounting counts with: counters and thresholds."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from .journal import Json
from .state import Exchange, Scope

Counts = Counter[tuple[str, tuple[str, ...]]]

MARGIN: Final = 0.05
"""Seconds. A time that is nearer to a threshold than this was measured twice, here and there, and may be decided
either way: such a decision is written down as close."""


TIMED: Final = {
    "quiet": ("reconnect.outcomes", "classifications", "empty_replays", "reconnects"),
    "idle": ("reconnects",),
    "retry": ("reconnect.delay",),
    "deadline": ("server_requests", "reprompts"),
    "give up": ("streams_lost", "requests_lost"),
}
"""By threshold, the metrics of which one point may move from one label set to another for each close decision."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of the run that decide by time."""

    idle: float = 1.2
    quiet: float = 0.4
    give_up: float = 6.0
    deadline: float = 2.5
    liveness_key: str = "example.org/live"


class Books:
    """Counts.

    Args:
        limits: the options of the run.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.counts: Counts = Counter()
        self.close: list[str] = []
        self.slack: Counter[str] = Counter()
        self.exchanges: dict[int, Exchange] = {}
        self.sessions: dict[str, Scope] = {}
        self.clients: dict[str, Scope] = {}

    def count(self, metric: str, *labels: str, by: int = 1) -> None:
        self.counts[f"sse.client.{metric}", labels] += by

    def beyond(self, what: str, value: float, limit: float) -> bool:
        """Whether a time reached its threshold."""
        if abs(value - limit) < MARGIN:
            self.note_close(what, f"{value:.3f} s against {limit:.3f} s")
        return value >= limit

    def note_close(self, what: str, how: str) -> None:
        """A decision may have been made either way."""
        self.close.append(f"{what}: {how}")
        self.slack.update(f"sse.client.{metric}" for metric in TIMED[what])


def kind_of(message: Json) -> str:
    """What a message is to JSON-RPC."""
    if message.get("jsonrpc") != "2.0":
        return "other"
    if "method" in message:
        return "request" if "id" in message else "notification"
    return "response"
