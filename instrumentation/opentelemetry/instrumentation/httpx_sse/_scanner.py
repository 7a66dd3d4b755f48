"""Cut the bytes of an event stream into event blocks.

The grammar is the WHATWG HTML standard, section 9.2.5 "Parsing an event stream", and the meaning of a field
is section 9.2.6 "Interpreting an event stream". Three things differ, since this is a witness and not a client:

- A block without data is reported as well. A client fires no event for it, but its ``id`` moves the cursor.
- Nothing grows with what a server sends: of long data, ids and types only a bounded part is kept.
- A comment is counted at the end of its own line. A keep-alive is often a bare ``:`` with no blank line.

There are two ways through the bytes. `Scanner._leap` reads runs of regular blocks (at most one id, one type and
one line of data) with one regular expression. `Scanner._crawl` goes line by line and knows the whole grammar.
Each yields what the other would.
"""

import re
from dataclasses import dataclass
from typing import Final

PEEK_LIMIT: Final = 256 * 1024
"""Data of one event that is kept whole. The MCP clients abort at 1 MiB, browsers never."""

HEAD: Final = 4096
TAIL: Final = 4096
"""Bytes kept from either end of longer data: enough to read the kind of a JSON-RPC message and its id."""

ID_LIMIT: Final = 4096
"""Characters kept of an event id, which a client has to send back in one header line; h11 and most servers
take 8 to 16 KiB for all headers together."""

TYPE_LIMIT: Final = 256
"""Characters kept of an event type; it is only compared with a few known ones."""

RETRY_DIGITS: Final = 15
"""Digits of a usable ``retry``: below 2**53, where every reader of JSON and of floats still agrees."""

_UTF8_WIDTH: Final = 4
_LINE_LIMIT: Final = len(b"event: ") + _UTF8_WIDTH * ID_LIMIT
_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 0x0D
_LF: Final = 0x0A
_NUL: Final = 0x00

# What becomes of the rest of a line that outgrew _LINE_LIMIT.
_KEEP: Final = 0  # it has not
_DATA: Final = 1
_ID: Final = 2
_SKIP: Final = 3


def _regular(newline: bytes) -> re.Pattern[bytes]:
    # `(?:x|)` instead of `(?:x)?`, since the engine tries a branch by its first byte. An empty id is left to the
    # careful way: an empty group would not tell it from none. The last group takes all that is not regular.
    field_id = rb"(?:id: ?([^ \n].{0,%d})\n|)" % (ID_LIMIT - 1)
    field_type = rb"(?:event: ?(.{0,%d})\n|)" % TYPE_LIMIT
    block = field_id + field_type + field_id + rb"data: ?(.*)\n\n"
    # `.` and `[^ \n]` stand for a carriage return too: who uses the pattern looks for one.
    return re.compile(block.replace(rb"\n|", newline + rb"|").replace(rb"\n\n", newline * 2) + rb"|((?s:.+))")


_LF_BLOCKS: Final = _regular(rb"\n").findall
_CRLF_BLOCKS: Final = _regular(rb"\r\n").findall


@dataclass(slots=True)
class Block:
    """An event block as it stood on the wire, closed by a blank line."""

    type: str
    """Value of ``event``, "" without one, cut at `TYPE_LIMIT` characters."""
    data: bytes
    """The data lines joined by LF; of data over the peek limit the first `HEAD` bytes."""
    tail: bytes
    """Of data over the peek limit the last `TAIL` bytes, else nothing."""
    size: int
    """Length of the whole data in bytes."""
    id: str | None
    """The block's own ``id``, "" if that clears the cursor, None without a usable one; cut at `ID_LIMIT`."""
    retry: int | None
    """Milliseconds, None without a usable ``retry``."""
    has_data: bool
    """Whether there was a data field, be it an empty one."""


class Scanner:
    """Read one event stream, however its bytes are cut into chunks.

    Any bytes are accepted; what the standard ignores is ignored. Work is linear in the bytes received, and memory
    is bounded by the peek limit and the constants above.

    Args:
        peek_limit: Data of one event, in bytes, above which only both its ends are kept.
    """

    __slots__ = (
        "_after_cr",
        "_bom",
        "_clear",
        "_data",
        "_fields",
        "_has_data",
        "_id",
        "_limit",
        "_line",
        "_rest",
        "_retry",
        "_size",
        "_tail",
        "_type",
        "comments",
        "last_event_id",
        "retry",
    )

    def __init__(self, peek_limit: int = PEEK_LIMIT) -> None:
        self.comments = 0
        self.last_event_id = ""
        self.retry: int | None = None
        self._limit = peek_limit
        self._clear = False  # between two blocks, with nothing pending at all
        self._bom = 0  # bytes of a byte order mark seen; all of them once that is settled
        self._after_cr = False
        self._line = bytearray()  # the line that has no end yet
        self._rest = _KEEP
        self._tail = bytearray()
        self._data = bytearray()
        self._begin()

    def receive(self, chunk: bytes) -> list[Block]:
        """The blocks that this chunk completes, in order.

        A block of which every field is ignored (unknown, an unusable ``retry``, an ``id`` with a NUL) is none.
        """
        blocks: list[Block] = []
        at = 0
        if not self._clear:
            at = self._crawl(chunk, 0, blocks, pause=True)
        # At most one leap a chunk: it copies what it cannot read, and leaping on from each irregular block would
        # be quadratic.
        if self._clear and _NUL not in chunk and len(chunk) <= self._limit:
            at = self._leap(chunk, at, blocks)
        if at < len(chunk):
            self._crawl(chunk, at, blocks, pause=False)
        return blocks

    def _leap(self, chunk: bytes, at: int, blocks: list[Block]) -> int:
        """Read regular blocks from the boundary `at`; where they stop."""
        crlf = _CR in chunk
        blank = b"\r\n\r\n" if crlf else b"\n\n"
        stop = len(chunk)
        if not chunk.endswith(blank):
            # Without this an unfinished line would be tried, and given up byte by byte, by each part of the pattern.
            stop = chunk.rfind(blank, at) + len(blank)
            if stop < at + len(blank):
                return at
        found = (_CRLF_BLOCKS if crlf else _LF_BLOCKS)(chunk, at, stop)
        if found and (irregular := found[-1][-1]):
            found.pop()
            stop -= len(irregular)
        last_id = None
        regular = []
        try:
            for early_id, type_, late_id, data, _ in found:
                event_id = (late_id or early_id).decode() or None
                if crlf and (_CR in data or _CR in early_id or _CR in late_id or _CR in type_):
                    return at
                if event_id:
                    last_id = event_id
                regular.append(Block(type_.decode(), data, b"", len(data), event_id, None, True))
        except UnicodeDecodeError:
            return at
        if last_id:
            self.last_event_id = last_id
        blocks += regular
        return stop

    def _crawl(self, chunk: bytes, at: int, blocks: list[Block], *, pause: bool) -> int:
        """Read line by line from `at`; where that ended: between two blocks if `pause`, else with the chunk."""
        size = len(chunk)
        if self._bom < len(_BOM):
            at = self._skip_bom(chunk, at)
        if self._after_cr and at < size:
            self._after_cr = False
            at += chunk[at] == _LF
        # The next of each, remembered: a search for the one that never comes must not start again at every line.
        cr = lf = -1
        while at < size:
            if pause and not self._fields and not self._line:
                self._clear = True
                return at
            if cr < at:
                cr = chunk.find(b"\r", at)
                cr = size if cr < 0 else cr
            if lf < at:
                lf = chunk.find(b"\n", at)
                lf = size if lf < 0 else lf
            end = min(cr, lf)
            if end == size:
                self._take(chunk, at, size)
                at = size
                break
            if self._line or self._rest or end - at > _LINE_LIMIT:
                self._take(chunk, at, end)
                self._end_line()
            elif end > at:
                self._field(chunk[at:end])
            else:
                self._end_block(blocks)
            at = end + 1
            if end == cr:
                self._after_cr = at == size
                at += lf == at
        self._clear = not (self._fields or self._line or self._after_cr or self._bom < len(_BOM))
        return at

    def _skip_bom(self, chunk: bytes, at: int) -> int:
        """9.2.5: "stream = [ bom ] *event"."""
        while at < len(chunk) and self._bom < len(_BOM):
            if chunk[at] != _BOM[self._bom]:
                self._line += _BOM[: self._bom]
                self._bom = len(_BOM)
                break
            self._bom += 1
            at += 1
        return at

    def _take(self, chunk: bytes, start: int, end: int) -> None:
        """Add a piece to the line that has no end yet."""
        if self._rest == _KEEP:
            room = _LINE_LIMIT - len(self._line)
            self._line += chunk[start : min(end, start + room)]
            start += room
            if start >= end:
                return
            self._rest = self._overflow()
        if self._rest == _DATA:
            self._append(chunk, start, end)
        elif self._rest == _ID and chunk.find(b"\0", start, end) >= 0:
            self._line += b"\0"
            self._rest = _SKIP

    def _overflow(self) -> int:
        if self._line.startswith(b"data:"):
            line = bytes(self._line)
            self._line.clear()
            self._field(line)
            return _DATA
        return _ID if self._line.startswith(b"id:") else _SKIP

    def _end_line(self) -> None:
        if self._rest != _DATA:
            self._field(bytes(self._line))
            self._line.clear()
        self._rest = _KEEP

    def _field(self, line: bytes) -> None:
        """9.2.6: "Collect the characters on the line before the first U+003A COLON character (:) [...]"."""
        name, colon, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            if self._has_data:
                self._append(b"\n", 0, 1)
            self._has_data = True
            self._append(value, 0, len(value))
        elif name == b"id" and _NUL not in value:
            self._id = value[: _UTF8_WIDTH * ID_LIMIT].decode("utf-8", "replace")[:ID_LIMIT]
        elif name == b"event":
            self._type = value[: _UTF8_WIDTH * TYPE_LIMIT].decode("utf-8", "replace")[:TYPE_LIMIT]
        elif name == b"retry" and value.isdigit() and len(value) <= RETRY_DIGITS:
            self.retry = self._retry = int(value)
        else:
            self.comments += bool(colon and not name)
            return
        self._fields = True

    def _append(self, source: bytes, start: int, end: int) -> None:
        """Add a piece to the data, of which both ends remain once it is over the limit."""
        held = self._size
        self._size += end - start
        if self._size <= self._limit:
            self._data += source[start:end]
            return
        if held <= self._limit:
            self._tail += self._data[-TAIL:]
            del self._data[HEAD:]
        if len(self._data) < HEAD:
            self._data += source[start : min(end, start + HEAD - len(self._data))]
        self._tail += source[max(start, end - TAIL) : end]
        # Cut now and then only: a cut for every byte would move all the others.
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def _end_block(self, blocks: list[Block]) -> None:
        """9.2.6: "Set the last event ID string of the event source to the value of the last event ID buffer."."""
        if self._fields:
            if self._id is not None:
                self.last_event_id = self._id
            tail = bytes(self._tail[-TAIL:])
            blocks.append(
                Block(self._type, bytes(self._data), tail, self._size, self._id, self._retry, self._has_data)
            )
            self._begin()

    def _begin(self) -> None:
        self._fields = False  # none yet that is not ignored
        self._type = ""
        self._data.clear()
        self._tail.clear()
        self._size = 0
        self._id: str | None = None
        self._retry: int | None = None
        self._has_data = False
