"""What happened, written down by both sides while it happens: the soak's own books start from here."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Frame:
    """One piece of an event stream: a comment, or a block of fields."""

    id: str | None = None
    data: str | None = None
    retry: int | None = None
    comment: str | None = None

    def wire(self, newline: str, space: str) -> bytes:
        """As it goes over the wire."""
        if self.comment is not None:
            return f":{space}{self.comment}{newline}{newline}".encode()
        lines = [
            f"{name}:{space}{value}"
            for name, value in (("id", self.id), ("retry", self.retry), ("data", self.data))
            if value is not None
        ]
        return (newline.join(lines) + newline * 2).encode()


class Parser:
    """Bytes to frames, line by line; what has no blank line after it is no block."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> list[Frame]:
        whole = (self._rest + chunk).replace(b"\r\n", b"\n")
        *lines, self._rest = whole.split(b"\n")
        frames: list[Frame] = []
        for line in lines:
            if not line and self._fields:
                held, self._fields = self._fields, {}
                retry = held.get("retry")
                frames.append(Frame(held.get("id"), held.get("data"), None if retry is None else int(retry)))
            elif line.startswith(b":"):
                frames.append(Frame(comment=line[1:].decode().strip()))
            elif line:
                name, _, value = line.decode().partition(":")
                self._fields[name] = value.removeprefix(" ")
        return frames


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the client's journal; `n` is the request that it is about."""

    n: int
    at: float


@dataclass(frozen=True, slots=True)
class Sent(Entry):
    method: str
    client: str
    session: str | None
    cursor: str | None
    auth: str
    messages: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class NoAnswer(Entry):
    """`why` is `broken`, `timeout` or `cancelled`."""

    why: str


@dataclass(frozen=True, slots=True)
class Head(Entry):
    status: int
    is_stream: bool
    session: str | None


@dataclass(frozen=True, slots=True)
class Heard(Entry):
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Ended(Entry):
    """`how` is `clean`, `broken`, `timeout` or `closed`; `body` is what was read of no event stream."""

    how: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Collected(Entry):
    """Somebody looked at the metrics."""


@dataclass(slots=True)
class Served:
    """A line of the server's log: what it was asked, and what it did about it."""

    n: int
    method: str
    session: str | None
    cursor: str | None
    did: str
    status: int = 0
    is_stream: bool = False
    frames: list[Frame] = field(default_factory=list)
    hops: int = 0


@dataclass(slots=True)
class Journal:
    """Both books of one run."""

    entries: list[Entry] = field(default_factory=list)
    served: dict[int, Served] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def write(self, entry: Entry) -> None:
        with self.lock:
            self.entries.append(entry)

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def disagreements(self) -> list[str]:
        """Where client and server tell different stories of one request."""
        heard: dict[int, list[Frame]] = {}
        found = []
        for entry in self.entries:
            served = self.served.get(entry.n)
            if isinstance(entry, Head):
                heard[entry.n] = []
                if served is None or (served.status, served.is_stream) != (entry.status, entry.is_stream):
                    found.append(f"{entry.n}: {entry} but served {served}")
            elif isinstance(entry, Heard):
                heard[entry.n] += entry.frames
            elif isinstance(entry, Ended) and entry.n in heard and served is not None and served.is_stream:
                got = heard[entry.n]
                if got != served.frames[: len(got)]:
                    found.append(f"{entry.n}: heard {got}, served {served.frames}")
                if entry.how == "clean" and len(got) != len(served.frames) and served.did != "torn":
                    found.append(f"{entry.n}: a clean end after {len(got)} of {len(served.frames)} frames")
        return found
