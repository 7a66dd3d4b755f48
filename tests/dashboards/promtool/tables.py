"""All scenarios together, and which of them an alert can notice."""

from typing import Final

from .behaviour import BUSY
from .edges_dialogue import ABSENT, DIALOGUE_EDGES
from .edges_streams import STREAM_EDGES
from .mutants import originals
from .runner import read_by
from .scenario import Scenario
from .silent import SILENT

SCENARIOS: Final = (*SILENT, *STREAM_EDGES, *DIALOGUE_EDGES)
"""Those of the rules file that everybody loads."""

EVERY: Final = (*SCENARIOS, *ABSENT)

_BACKGROUND: Final = frozenset(BUSY)


def noticing(alert: str) -> tuple[tuple[Scenario, ...], tuple[Scenario, ...]]:
    """The scenarios in which an alert fires, and those others in which something moves that it reads."""
    reads = read_by(originals(alert))
    fires = tuple(s for s in EVERY if any(one.alert == alert for one in s.fires))
    moves = tuple(
        s
        for s in EVERY
        if s not in fires and any(h.metric in reads for h in s.happenings if h not in _BACKGROUND)
    )
    return fires, moves
