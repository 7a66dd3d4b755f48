"""Choices out of bytes: whoever mutates the bytes, by chance or by coverage, mutates what is tried."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Reads choices off the front of some bytes; after their end every choice is the first one."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_spent(self) -> bool:
        return self._at >= len(self._data)

    def below(self, bound: int) -> int:
        """A number from 0, below `bound`, which is 256 at most."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % bound

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, one_in: int) -> bool:
        """True once in so many; never after the end."""
        return self.below(one_in) == one_in - 1

    def number(self) -> int:
        """A number of up to 16 bits."""
        return self.below(256) << 8 | self.below(256)

    def raw(self, most: int) -> bytes:
        """Bytes as they stand."""
        size = self.below(most + 1)
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken
