"""A TCP proxy between a client and a server, which cuts connections where a test wants them cut.

Requests are read whole, so that a rule can look at one and act before it is sent on. What the server says passes
byte by byte as it comes; a cut closes the connection to the client after the last byte that was let through.
"""

from __future__ import annotations

import contextlib
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

CHUNK = 65536
HEAD_END = b"\r\n\r\n"
EVENT_END = re.compile(rb"\r?\n\r?\n")
Until = Callable[[bytes], "int | None"]
"""From what the server has said of a response so far, how many of these bytes are let through; None: go on."""


@dataclass(slots=True)
class Cut:
    """The first response to a request that contains `request` is cut; the next ones pass."""

    until: Until
    request: bytes = b'"tools/call"'
    server_knows: bool = True
    """Otherwise the connection to the server is left open, as by a middlebox that lost its state."""
    moves_to: str | None = None
    """The server for all later requests, as behind a balancer that forgets."""


@dataclass(slots=True)
class Before:
    """Something is done just before the nth request that contains `request` is sent on."""

    nth: int
    act: Callable[[bytes], None]
    request: bytes = b'"tools/call"'
    seen: int = 0


@dataclass(slots=True)
class Proxy:
    """Where it listens, what it does, and what it saw."""

    upstream: str
    cut: Cut | None = None
    before: Before | None = None
    address: str = ""
    requests: list[bytes] = field(default_factory=list)
    """Every request, head and body, in the order in which they were sent on."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    held: list[socket.socket] = field(default_factory=list)
    """Connections to the server that nobody uses any more, and of whose end it has not heard."""

    def count(self, pattern: bytes) -> int:
        return sum(re.search(pattern, request) is not None for request in tuple(self.requests))

    def meet(self, request: bytes) -> Cut | None:
        """Note a request, act before it, and say how its response is to be cut."""
        act = None
        with self.lock:
            self.requests.append(request)
            if self.before is not None and self.before.request in request:
                self.before.seen += 1
                act = self.before.act if self.before.seen == self.before.nth else None
            cut = self.cut if self.cut is not None and self.cut.request in request else None
            if cut is not None:
                self.cut = None
        if act is not None:
            act(request)
        return cut


@contextlib.contextmanager
def proxy(upstream: str, *, cut: Cut | None = None, before: Before | None = None) -> Iterator[Proxy]:
    """A proxy to `host:port` for the length of a block."""
    made = Proxy(upstream, cut, before)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                _converse(self.request, made)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        made.address = f"127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
            for connection in made.held:
                connection.close()


def _converse(client: socket.socket, proxy: Proxy) -> None:
    """One connection: request after request, each sent on to the same connection to the server."""
    passage: _Passage | None = None
    pending = b""
    try:
        while True:
            request, pending = _request(client, pending)
            if not request:
                return
            cut = proxy.meet(request)
            if passage is None:
                passage = _Passage(client, proxy)
            passage.send(request, cut)
    finally:
        if passage is not None:
            passage.close()


def _request(client: socket.socket, pending: bytes) -> tuple[bytes, bytes]:
    """The next whole request, and what came after it; nothing at the end."""
    while HEAD_END not in pending:
        received = client.recv(CHUNK)
        if not received:
            return b"", b""
        pending += received
    head_size = pending.index(HEAD_END) + len(HEAD_END)
    length = re.search(rb"\r\ncontent-length: *(\d+)", pending[:head_size], re.IGNORECASE)
    size = head_size + (int(length[1]) if length else 0)
    while len(pending) < size:
        pending += client.recv(CHUNK)
    return pending[:size], pending[size:]


class _Passage:
    """A connection to the server, whose bytes a thread hands to the client."""

    def __init__(self, client: socket.socket, proxy: Proxy) -> None:
        host, _, port = proxy.upstream.rpartition(":")
        self._client = client
        self._proxy = proxy
        self._server = socket.create_connection((host, int(port)), timeout=30)
        self._server.settimeout(None)
        self._lock = threading.Lock()
        self._cut: Cut | None = None
        self._said = b""
        threading.Thread(target=self._pump, daemon=True).start()

    def send(self, request: bytes, cut: Cut | None) -> None:
        with self._lock:
            self._cut, self._said = cut, b""
        self._server.sendall(request)

    def close(self) -> None:
        _shut(self._client)
        if self._cut is not None and not self._cut.server_knows:
            self._proxy.held.append(self._server)
        else:
            _shut(self._server)
            self._server.close()

    def _pump(self) -> None:
        with contextlib.suppress(OSError):
            while received := self._server.recv(CHUNK):
                passing = self._passing(received)
                self._client.sendall(received if passing is None else received[:passing])
                if passing is not None:
                    break
        self.close()

    def _passing(self, received: bytes) -> int | None:
        """How much of what was received may pass before the cut; None when there is none yet."""
        with self._lock:
            if self._cut is None:
                return None
            before = len(self._said)
            self._said += received
            limit = self._cut.until(self._said)
            if limit is None:
                return None
            self._proxy.upstream = self._cut.moves_to or self._proxy.upstream
            return max(0, limit - before)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


# ---------------------------------------------------------------- points to cut at


def at_headers(said: bytes) -> int | None:
    """Right after the response's head: not one event has come."""
    at = said.find(HEAD_END)
    return None if at < 0 else at + len(HEAD_END)


def after_event(pattern: bytes) -> Until:
    """Right after the end of the first event that contains `pattern`."""

    def until(said: bytes) -> int | None:
        found = re.search(pattern, said)
        end = EVENT_END.search(said, found.end()) if found else None
        return end.end() if end else None

    return until


def inside_event(pattern: bytes) -> Until:
    """In the middle of the first event that contains `pattern`, right behind it."""

    def until(said: bytes) -> int | None:
        found = re.search(pattern, said)
        return found.end() if found else None

    return until
