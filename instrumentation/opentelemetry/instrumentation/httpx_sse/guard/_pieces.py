"""Cut an event stream into events as bytes, so that one of them can be left out and the rest stays as it is.

WHATWG HTML, section 9.2.5: lines end with CRLF, LF or CR, and an event with an empty line. A comment outside of an
event is a piece of its own, since a keep-alive may have no empty line after it.
"""

import re
from typing import Final

_COLON: Final = 0x3A
_END: Final = re.compile(rb"\r\n|\n|\r")


class Cutter:
    """Cut the chunks of one stream. The pieces, joined, are the bytes that came."""

    __slots__ = ("_after_cr", "_has_fields", "rest")

    def __init__(self) -> None:
        self.rest = b""
        """The beginning of an event that is not complete yet."""
        self._has_fields = False
        self._after_cr = False

    @property
    def is_between(self) -> bool:
        """Whether what was received so far ends between two events."""
        return not self.rest

    def receive(self, chunk: bytes) -> list[bytes]:
        """The events and comments that `chunk` completes. What is left waits in `rest`."""
        pieces: list[bytes] = []
        data = self.rest + chunk
        start, at = 0, len(self.rest)
        if self._after_cr and chunk.startswith(b"\n"):
            # The second half of a line's end whose first half was taken for a whole one: it is no empty line.
            at += 1
        elif self.rest and not self.rest.endswith((b"\r", b"\n")):
            at = max(self.rest.rfind(b"\n"), self.rest.rfind(b"\r")) + 1
        for end in _END.finditer(data, len(self.rest) + (at > len(self.rest))):
            is_empty = end.start() == at
            if is_empty or (data[at] == _COLON and not self._has_fields):
                pieces.append(data[start : end.end()])
                start, self._has_fields = end.end(), False
            else:
                self._has_fields = True
            at = end.end()
        self.rest = data[start:]
        self._after_cr = chunk.endswith(b"\r") if chunk else self._after_cr
        return pieces
