"""Cut the bytes of an event stream into event blocks.

The grammar is section 9.2.5 of the WHATWG HTML standard, "Parsing an event stream"; what a field means is
section 9.2.6, "Interpreting an event stream". This is a witness and no client, hence three differences:

- A block without data is reported as well. A client fires no event for it, but its ``id`` moves the cursor.
- Nothing grows with what a server sends: of long data, ids and types only a bounded part is kept.
- A comment counts at the end of its own line: a keep-alive may be a bare ``:`` with no blank line.

There are two ways through the bytes. The leap, in `Scanner.receive`, reads a run of regular blocks (one line
of data, at most a type and an id) with one regular expression. The crawl goes line by line and knows the
whole grammar. Where both can go, they yield the same.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

Sort = TypeVar("Sort")

PEEK_LIMIT: Final = 256 * 1024
"""Bytes of one event's data that are kept whole. httpx2 gives up at 1 MiB, httpx-sse never."""

HEAD: Final = 4096
TAIL: Final = 4096
"""Bytes kept from either end of longer data: enough to see the kind of a JSON-RPC message and its id."""

ID_LIMIT: Final = 4096
"""Characters kept of an event id. It is sent back in a header, and h11 takes 16 KiB for all of them."""

SKIMMED_ID_LIMIT: Final = 128
"""Bytes of an event id that is skimmed; a longer one is kept in another form."""

TYPE_LIMIT: Final = 256
"""Characters kept of an event type, which is only compared with a few known ones."""

RETRY_DIGITS: Final = 15
"""Digits of a usable ``retry``: whatever reads it, in floats too, reads the same number (below 2**53)."""

EASY_LIMIT: Final = 1024
"""Size of a chunk that is tried without a look at its end: little is wasted on an unfinished block."""

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


def _regular(newline: bytes, any_byte: bytes) -> Callable[[bytes, int, int], list[tuple[bytes, ...]]]:
    # The id stands first as Python servers write it, second as TypeScript does, last as Rust does.
    # `(?:x|)` for `(?:x)?`, since the engine skips a branch by its first byte. An empty id is not regular:
    # its group would look like that of no id. The last group takes all from where regular blocks end.
    optional_id = rb"(?:id: ?([^ \r\n]ANY{0,%d})NL|)" % (ID_LIMIT - 1)
    optional_type = rb"(?:event: ?(ANY{0,%d})NL|)" % TYPE_LIMIT
    block = optional_id + optional_type + optional_id + rb"data: ?(.*)NL" + optional_id + rb"NL|((?s:.+))"
    return re.compile(block.replace(b"ANY", any_byte).replace(b"NL", newline)).findall


# The engine is several times faster with `.`, any byte but LF, than with a set. So `.` it is where the chunk
# has no CR, and for data, in which a CR is looked for afterwards.
_LF_BLOCKS: Final = _regular(rb"\n", rb".")
_CRLF_BLOCKS: Final = _regular(rb"\r\n", rb"[^\r\n]")


def _objects(newline: bytes) -> Callable[[bytes], list[tuple[bytes, ...]]]:
    # Blocks that may be skimmed: the data begins like a JSON object. `.` throughout, as above.
    optional_id = rb"(?:id: ?([^ \r\n].{0,%d})NL|)" % (SKIMMED_ID_LIMIT - 1)
    optional_type = rb"(?:event: ?(?!endpoint)[!-~]{0,%d}NL|)" % TYPE_LIMIT
    block = optional_id + optional_type + optional_id + rb"data: ?(\{.*)NLNL|((?s:.+))"
    return re.compile(block.replace(b"NL", newline)).findall


_LF_OBJECTS: Final = _objects(rb"\n")
_CRLF_OBJECTS: Final = _objects(rb"\r\n")


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

    Any bytes are accepted. Work is linear in the bytes received; memory is bounded by the peek limit and the
    constants above.

    Args:
        peek_limit: Data of one event, in bytes, above which only both its ends are kept.
    """

    __slots__ = (
        "_after_cr",
        "_bom",
        "_data",
        "_easy",
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
        "is_clear",
        "last_event_id",
        "retry",
    )

    comments: int
    """Comment lines so far."""
    last_event_id: str
    """What a client would send as its cursor now: the id of the last block that had one, "" at first. Whoever
    skims a chunk sets it."""
    is_clear: bool
    """Between two blocks, with nothing pending at all."""
    retry: int | None
    """Milliseconds of the last usable ``retry``."""

    _id: str | None
    _retry: int | None
    _has_data: bool

    def __init__(self, peek_limit: int = PEEK_LIMIT) -> None:
        self.comments = 0
        self.last_event_id = ""
        self.retry = None
        self._limit = peek_limit
        self._easy = min(peek_limit, EASY_LIMIT)
        self.is_clear = False  # between two blocks, with nothing pending at all
        self._bom = 0  # bytes of a byte order mark seen; all of them once that is settled
        self._after_cr = False
        self._line = bytearray()  # the line that has no end yet
        self._rest = _KEEP
        self._tail = bytearray()
        self._data: list[bytes | bytearray] = []
        self._begin()

    def skim(self, sort: Callable[[bytes], Sort | None], chunk: bytes) -> tuple[Sort, list[bytes]] | None:
        """The ids of a chunk that is nothing but regular blocks of one sort, "" for none; else nothing is read.

        Args:
            sort: of a block's data; None if it has to be looked at.
            chunk: the next bytes of the stream.
        """
        crlf = _CR in chunk
        if not self.is_clear or _NUL in chunk:
            return None
        if len(chunk) > self._easy and not chunk.endswith(b"\r\n\r\n" if crlf else b"\n\n"):
            return None
        ids: list[bytes] = []
        found: Sort | None = None
        for id1, id2, data, rest in (_CRLF_OBJECTS if crlf else _LF_OBJECTS)(chunk):
            event_id = id2 or id1
            own = sort(data)
            if own is None or rest or (crlf and (_CR in data or _CR in event_id)):
                return None
            if own is not found:
                if found is not None:
                    return None
                found = own
            ids.append(event_id)
        if found is None:
            return None
        return found, ids

    def receive(self, chunk: bytes) -> list[Block]:
        """The blocks that this chunk completes, in order.

        A block whose fields are all ignored (unknown, an unusable ``retry``, an ``id`` with NUL) is none.
        """
        blocks: list[Block] = []
        stop = size = len(chunk)
        at = 0 if self.is_clear else self._crawl(chunk, 0, blocks, pause=True)
        if at == size:
            return blocks
        # At most one leap a chunk: it copies what it cannot read, and to leap on after each irregular block
        # would be quadratic.
        crlf = _CR in chunk
        if size > self._easy or _NUL in chunk:
            stop = self._leap_end(chunk, at, b"\r\n\r\n" if crlf else b"\n\n")
        crawled = len(blocks)
        last_id = None
        try:
            for id1, type_, id2, data, id3, rest in (_CRLF_BLOCKS if crlf else _LF_BLOCKS)(chunk, at, stop):
                if rest:
                    stop -= len(rest)
                    break
                if crlf and _CR in data:
                    raise ValueError  # noqa: TRY301  # the same way out as for what is no UTF-8
                if raw_id := id3 or id2 or id1:
                    last_id = event_id = raw_id.decode()
                else:
                    event_id = None
                # Keywords would cost a tenth of all this.
                blocks.append(Block(type_.decode(), data, b"", len(data), event_id, None, True))  # noqa: FBT003
        except ValueError:
            del blocks[crawled:]
            stop = at
        if last_id:
            self.last_event_id = last_id
        if stop < size:
            self._crawl(chunk, stop, blocks, pause=False)
        return blocks

    def _leap_end(self, chunk: bytes, at: int, blank: bytes) -> int:
        """Where the leap has to stop, in a chunk that is not plainly small and clean."""
        if len(chunk) > self._limit or _NUL in chunk:
            return at
        if chunk.endswith(blank):
            return len(chunk)
        # An unfinished line of some length would be given up byte by byte, once for each way to begin it.
        boundary = chunk.rfind(blank, at)
        return at if boundary < 0 else boundary + len(blank)

    def _crawl(self, chunk: bytes, at: int, blocks: list[Block], *, pause: bool) -> int:
        """Read line by line from `at`; where it ended: between two blocks if `pause`, else with the chunk."""
        size = len(chunk)
        at = self._skip(chunk, at)
        # The next of each, remembered: to look again at every line for one that never comes is quadratic.
        cr = lf = -1
        while at < size:
            if pause and not self._fields and not self._line:
                self.is_clear = True
                return at
            if cr < at:
                cr = chunk.find(b"\r", at) % (size + 1)  # of -1: size
            if lf < at:
                lf = chunk.find(b"\n", at) % (size + 1)
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
                at += lf == at != size
        self.is_clear = not (self._fields or self._line or self._after_cr or self._bom < len(_BOM))
        return at

    def _skip(self, chunk: bytes, at: int) -> int:
        """Pass over the rest of a byte order mark (9.2.5: "stream = [ bom ] *event") and of a CRLF."""
        while self._bom < len(_BOM) and at < len(chunk):
            if chunk[at] != _BOM[self._bom]:
                self._line += _BOM[: self._bom]
                self._bom = len(_BOM)
            else:
                self._bom += 1
                at += 1
        if self._after_cr and at < len(chunk):
            self._after_cr = False
            at += chunk[at] == _LF
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
            self._hold(source[start:end])
            return
        if held <= self._limit:
            self._tail += b"".join(piece[-TAIL:] for piece in self._data)[-TAIL:]
            self._data = [b"".join(piece[:HEAD] for piece in self._data)[:HEAD]]
        missing = HEAD - sum(map(len, self._data))
        if missing:
            self._hold(source[start : min(end, start + missing)])
        self._tail += source[max(start, end - TAIL) : end]
        # Cut now and then only: a cut for every byte would move all the others.
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def _hold(self, piece: bytes) -> None:
        """Large pieces are kept as they are: to copy them would cost as much as all the rest."""
        if len(piece) >= HEAD:
            self._data.append(piece)
        elif self._data and isinstance(last := self._data[-1], bytearray):
            last += piece
        else:
            self._data.append(bytearray(piece))

    def _end_block(self, blocks: list[Block]) -> None:
        """9.2.6: "Set the last event ID string [...] to the value of the last event ID buffer"."""
        if self._fields:
            if self._id is not None:
                self.last_event_id = self._id
            tail = bytes(self._tail[-TAIL:])
            blocks.append(
                Block(
                    self._type, b"".join(self._data), tail, self._size, self._id, self._retry, self._has_data
                )
            )
            self._begin()

    def _begin(self) -> None:
        self._fields = False  # none yet that is not ignored
        self._type = ""
        self._data = []
        self._tail.clear()
        self._size = 0
        self._id = None
        self._retry = None
        self._has_data = False
