"""Times in turn, ratios within a round, medians over rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(slots=True)
class Times:
    """Seconds of one work by mode, one of each a round."""

    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def add(self, mode: str, cpu: float, wall: float) -> None:
        self.cpu.setdefault(mode, []).append(cpu)
        self.wall.setdefault(mode, []).append(wall)


@dataclass(frozen=True, slots=True)
class Result:
    """What one row of the table says."""

    case: str
    title: str
    plain_ms: float
    """Median CPU time without anything installed."""
    cpu: dict[str, float]
    """Median ratio of CPU time to that of the same round's plain run, by mode."""
    wall: dict[str, float]
    note: str = ""


class WrongWorkError(RuntimeError):
    """A run did not do what it was to do: its time means nothing."""


def result(case: str, title: str, times: Times, note: str = "") -> Result:
    return Result(
        case,
        title,
        median(times.cpu["plain"]) * 1000,
        ratios(times.cpu),
        ratios(times.wall),
        note,
    )


def ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    """The median over rounds of the ratio within a round: what drifts slowly cancels out."""
    base = seconds["plain"]
    return {
        mode: median(own / plain for own, plain in zip(values, base, strict=True))
        for mode, values in seconds.items()
        if mode != "plain"
    }


def turned(modes: Sequence[str], number: int) -> Iterable[str]:
    """Another one begins each time, and every other round goes backwards."""
    start = number % len(modes)
    order = [*modes[start:], *modes[:start]]
    return reversed(order) if number % 2 else order
