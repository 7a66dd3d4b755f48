"""Defects that fuzzing has found and that are not mended yet: each is told once, and passed over from then on."""

import re
from typing import Final, NamedTuple


class Known(NamedTuple):
    """A defect."""

    target: str
    pattern: str
    """What the error says."""
    reason: str


KNOWN: Final[tuple[Known, ...]] = ()


def is_known(target: str, error: Exception) -> bool:
    text = f"{type(error).__name__}: {error}"
    return any(one.target in (target, "*") and re.search(one.pattern, text) for one in KNOWN)
