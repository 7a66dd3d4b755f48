"""Defects that fuzzing has found and that are not mended yet: each is told once, and passed over from then on."""

import re
from typing import Final, NamedTuple


class Known(NamedTuple):
    """A defect."""

    target: str
    pattern: str
    """What the error says."""
    reason: str


KNOWN: Final = (
    Known("exchange", r"^ValueError: Invalid IPv6 URL", "a `Location` or `endpoint` that is no URL raises"),
    Known("*", r"classifications \('\w+', '(ambiguous|terminal)', '(empty_replay|nothing_new)'\)",
          "a `subscriptions/listen` that carries a cursor yields label sets that are not listed"),
    Known("*", r"(reconnects|empty_replays) \('listen', ", "likewise"),
    Known("*", r"classifications \('(answer|probe|request)', '(retryable|ambiguous)', 'conflict'\)",
          "a POST that is redirected to a GET, and refused there with 409, yields label sets that are not listed"),
    Known("*", r"classifications \('(answer|probe|request)', 'terminal', '(not_sse|cursor_evicted)'\)", "likewise"),
    Known("ledger", r"streams that stay open: .*'legacy': -",
          "two open streams of one logical stream: only one is moved to `legacy`"),
)  # fmt: skip


def is_known(target: str, error: Exception) -> bool:
    text = f"{type(error).__name__}: {error}"
    return any(one.target in (target, "*") and re.search(one.pattern, text) for one in KNOWN)
