"""What a client is to do and what it tells in the end: shared by the tests and the clients that they start.

A plan goes to the client in the environment variable `PEER_PLAN`, its report comes back in the file that
`PEER_REPORT` names: some clients are started by a suite that wants the command line and the output for itself.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

PLAN, REPORT = "PEER_PLAN", "PEER_REPORT"
Action = Literal["list", "call", "keep", "resume", "get", "pause"]
Sample = tuple[str, Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: `keep` calls a tool and keeps its first cursor, `resume` calls it with that cursor."""

    do: Action
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 12.0
    """The longest that it may take; of a pause, how long it is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one client does in one session."""

    steps: tuple[Step, ...]
    answer_after: float = 0.0
    """How long the person in front of the client thinks."""
    settle: float = 0.0
    """How long the client stays connected when it has nothing more to do."""

    def dump(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> Plan:
        told = json.loads(text)
        return cls(**{**told, "steps": tuple(Step(**step) for step in told["steps"])})


@dataclass(slots=True)
class Report:
    """What one client did, seen from inside it, and what its metrics said."""

    client: str
    results: list[str] = field(default_factory=list)
    """Of each step in order: what it came to, or the error."""
    asked: int = 0
    """How often the person was asked."""
    progress: int = 0
    """Progress notifications that reached the caller."""
    error: str | None = None
    """What ended the whole client."""
    during: list[Sample] = field(default_factory=list)
    """Every series before the session was closed."""
    after: list[Sample] = field(default_factory=list)
    """Every series at the end."""
    timings: dict[str, float] = field(default_factory=dict)
    """What the client measured itself."""

    def dump(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> Report:
        return cls(**json.loads(text))


DECISIONS = frozenset({
    "answers", "classifications", "dead_session_events", "dead_session_requests", "empty_replays",
    "guard_actions", "ineffective_answers", "instrumentation_errors", "probes", "reconnect_delay", "reconnect_outcomes",
    "reconnects", "reprompts", "requests_lost", "responses", "retries_after_terminal", "server_requests",
    "sessions_lost", "sessions_revived", "stream_duration", "streams_lost",
})  # fmt: skip
"""The metrics whose every series is told by `told`: what was decided, not how long it took."""


def told(samples: Sequence[Sample], names: frozenset[str] = DECISIONS) -> dict[str, float]:
    """Every series that is not 0, as `name value value…`: its labels' values in the order of the labels' names.

    A histogram counts its recordings. Left out are servers, the labels that the exporter adds, and how a standalone
    stream ended: at the end of a session client and server close it both, and either may be first.
    """
    found: dict[str, float] = {}
    for name, values, value in _series(samples):
        if name in names and value and not (name == "stream_duration" and "standalone" in values):
            key = " ".join((name, *values))
            found[key] = found.get(key, 0.0) + value
    return dict(sorted(found.items()))


def pinged(unguarded: Mapping[str, float], *, on_a_stream: bool) -> dict[str, float]:
    """What is told of a client whose guard has asked once whether the session lives, after a replay.

    Its ping is one exchange more, and proves what the client's own next request proves without the guard.
    """
    found = dict(unguarded)
    del found["probes after_replay implicit live"]
    found["probes after_replay active live"] = 1
    found["responses first"] += 1
    if on_a_stream:
        found["stream_duration complete response"] += 1
    return found


def total(samples: Sequence[Sample], series: str, **labels: str) -> float:
    """The sum of the series of this name in the exposition that carry these labels."""
    return sum(
        value for name, carried, value in samples if name == series and labels.items() <= carried.items()
    )


def _series(samples: Sequence[Sample]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for name, labels, value in samples:
        if not name.startswith("sse_client_") or name.endswith(("_bucket", "_sum")):
            continue
        short = name.removeprefix("sse_client_").removesuffix("_total").removesuffix("_count")
        values = [labels[key] for key in sorted(labels) if not key.startswith(("otel_", "server_"))]
        yield short.removesuffix("_seconds"), tuple(value for value in values if value), value
