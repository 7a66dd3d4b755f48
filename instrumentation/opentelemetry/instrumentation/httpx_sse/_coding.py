"""Content codings: `gzip` and `deflate` are undone as they pass, any other is opaque (RFC 9110, section 8.4)."""

import zlib
from collections.abc import Iterator
from typing import Final

STEP: Final = 64 * 1024
"""Bytes that a compressed chunk may grow to at a time, so that a bomb stays small here."""

IDENTITY: Final = ("", "identity")
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class UnreadableError(ValueError):
    """The bytes are not what their coding says, or nobody here knows the coding."""


class Inflater:
    """Undoes one body's coding.

    Args:
        coding: as in `Content-Encoding`, in lower case.

    Raises:
        UnreadableError: the coding is none of `gzip`, `x-gzip` and `deflate`.
    """

    def __init__(self, coding: str) -> None:
        if coding not in _WINDOWS:
            raise UnreadableError(coding)
        self._inflate = zlib.decompressobj(_WINDOWS[coding])
        # Some servers send raw deflate under that name; both libraries try it second.
        self._may_be_raw = coding == "deflate"

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk holds, piece by piece.

        Raises:
            UnreadableError: it is not in this coding.
        """
        # What follows the end of the coded data is read by neither library.
        while chunk and not self._inflate.eof:
            try:
                piece = self._inflate.decompress(chunk, STEP)
            except zlib.error:
                if not self._may_be_raw:
                    raise UnreadableError from None
                self._may_be_raw, self._inflate = False, zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._may_be_raw = False
            if piece:
                yield piece
            chunk = self._inflate.unconsumed_tail
