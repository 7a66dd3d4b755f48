"""What is kept of a body that is no event stream."""

from typing import Final

from ._envelope import read_body, read_data
from ._events import Body

EDGE: Final = 4096
"""Bytes of head and tail that are kept of what is too long."""


class Peek:
    """The beginning of a body, up to a limit; of a longer one, head and tail."""

    __slots__ = ("_data", "_limit", "_tail", "size")

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._data = bytearray()
        self._tail = b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size <= self._limit:
            self._data += piece
            return
        room = self._limit - len(self._data)
        if room > 0:
            self._data += piece[:room]
        self._tail = (self._tail + piece[-EDGE:])[-EDGE:]

    def read(self, liveness_key: str | None) -> Body:
        if not self._tail:
            return read_body(bytes(self._data), liveness_key=liveness_key)
        head = bytes(self._data[:EDGE])
        return Body(read_body(head).text, read_data(head, self._tail))
