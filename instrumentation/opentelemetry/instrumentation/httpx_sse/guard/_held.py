"""What is held back of a resumed stream: server requests that were delivered before, and all that follows them."""

from collections.abc import Callable
from typing import Final

from .._envelope import read_data
from .._events import Message
from .._scanner import Scanner
from .._verdicts import Redelivery
from ._errors import StaleElicitationError
from ._replay import RULES, stale

SECONDS: Final = 1.0
"""The longest that anything is held back, in seconds: a stream that is never quiet is judged then."""

BYTES: Final = 1024 * 1024
"""The most that is held back, in bytes."""


def last_id(piece: bytes) -> str:
    """The event id that a client knows after a piece, if the piece has one."""
    return next((block.id for block in reversed(Scanner().receive(piece)) if block.id), "")


def primer(event_id: str) -> bytes:
    """MCP 2025-11-25, Streamable HTTP: "an SSE event consisting of an event ID and an empty `data` field", with which a
    client can come back from there."""
    return f"id: {event_id}\ndata:\n\n".encode()


class Held:
    """Pieces of one stream in their order, those in doubt among them."""

    __slots__ = ("_pieces", "_ready", "_since", "_size", "is_whole", "rest")

    def __init__(self) -> None:
        self.is_whole = False
        """Events are given to the client whole, so that each can still be left out when it has been read."""
        self.rest = b""
        """The beginning of an event that is not complete, when events are given whole."""
        self._ready: list[bytes] = []
        self._pieces: list[tuple[bytes, Message | None]] = []
        self._since = 0.0
        self._size = 0

    @property
    def has_doubts(self) -> bool:
        return bool(self._pieces)

    @property
    def doubts(self) -> list[Message]:
        """The server requests that are in doubt."""
        return [message for _, message in self._pieces if message is not None]

    def is_full(self, at: float) -> bool:
        """Whether it is time to judge, quiet or not."""
        return bool(self._pieces) and (at - self._since >= SECONDS or self._size + len(self.rest) >= BYTES)

    def pass_on(self, piece: bytes) -> None:
        """An event for the client; behind one in doubt it waits."""
        if not self._pieces:
            self._ready.append(piece)
            return
        self._pieces.append((piece, None))
        self._size += len(piece)

    def doubt(self, piece: bytes, message: Message, at: float) -> None:
        """A server request that was delivered before."""
        if not self._pieces:
            self._since = at
        self._pieces.append((piece, message))
        self._size += len(piece)

    def settle(self, drops: Callable[[Message], bool], *, has_primers: bool) -> None:
        """Leave out what `drops` says, and let go of the rest.

        The event id of what is left out stays where `has_primers` and no other follows: else the client would come
        back from before it, and be told the same again for ever.
        """
        pieces, self._pieces, self._size = self._pieces, [], 0
        left_out = ""
        for piece, message in pieces:
            if message is None or not drops(message):
                self._ready.append(piece)
                left_out = "" if left_out and last_id(piece) else left_out
            else:
                left_out = last_id(piece)
        if left_out and has_primers:
            self._ready.append(primer(left_out))

    def release(self) -> bytes:
        """What may be given to the client now."""
        ready, self._ready = self._ready, []
        return b"".join(ready)

    def copy(self) -> bytes:
        """All that is here, left where it is."""
        return b"".join([*self._ready, *(piece for piece, _ in self._pieces), self.rest])

    def everything(self, *, with_rest: bool = True) -> bytes:
        """All that is here, judged or not."""
        pieces, self._pieces = self._pieces, []
        rest, self.rest = self.rest, b""
        return b"".join([self.release(), *(piece for piece, _ in pieces), rest if with_rest else b""])

    @staticmethod
    def only_message(piece: bytes, liveness_key: str | None) -> Message | None:
        """The message of an event that has exactly one: of a batch nothing is left out."""
        blocks = Scanner().receive(piece)
        messages = [m for b in blocks for m in read_data(b.data, b.tail, liveness_key=liveness_key)]
        return messages[0] if len(messages) == 1 else None

    @staticmethod
    def rule(message: Message, known: Redelivery) -> tuple[StaleElicitationError | None, bool]:
        """What follows for a server request that came again: the failure of its operation, and whether it is dropped.

        One that may still live is dropped only if the client has had it: then it is on somebody's screen already.
        """
        rule = RULES[known.liveness]
        if rule.presents:
            return None, known.is_covered and known.liveness == "unverified"
        failure = stale(message.id, known.liveness) if rule.fails and message.id is not None else None
        return failure, True
