"""A network in memory under the real connection pools: it says what it is asked, in order, and fails on demand.

Everything above it is the library's own: client, transport, pool, HTTP/1.1 or HTTP/2. What the network is asked
(connect, write, read, close) and what the consumer gets stand in one log, so that equal logs mean equal bytes,
equal order and equal back-pressure.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import anyio.lowlevel
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamReset
from tests.conftest import FAMILIES, Family
from tests.lifecycle.world import owner, seam

URL = "http://server.test/mcp"
Log = list[tuple[Any, ...]]
End = Literal["eof", "reset", "timeout", "hold"]


class Script(NamedTuple):
    """What the network delivers on one connection, read by read, and how it ends."""

    reads: tuple[bytes, ...]
    end: End = "eof"


class Peer:
    """The other side of HTTP/1.1: it delivers its script to every request."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._reads: list[bytes] = []

    def write(self, data: bytes) -> None:
        if data.startswith((b"GET ", b"POST ")):
            self._reads = [piece for piece in self._script.reads if piece]

    def read(self, most: int) -> bytes:
        if not self._reads:
            return b""
        piece = self._reads.pop(0)
        if len(piece) > most:
            self._reads.insert(0, piece[most:])
        return piece[:most]


class Peer2:
    """The other side of HTTP/2: it answers each request with the script's reads as DATA frames."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._h2 = H2Connection(H2Configuration(client_side=False))
        self._h2.initiate_connection()
        self._waiting: dict[int, list[bytes]] = {}

    def write(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, RequestReceived):
                self._h2.send_headers(
                    event.stream_id, [(":status", "200"), ("content-type", "text/event-stream")]
                )
                self._waiting[event.stream_id] = [piece for piece in self._script.reads if piece]
            elif isinstance(event, DataReceived):
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamReset):
                self._waiting.pop(event.stream_id, None)

    def read(self, most: int) -> bytes:
        """Frame by frame, so that the consumer sets the pace."""
        pending = self._h2.data_to_send()
        if pending:
            return pending
        for stream, pieces in list(self._waiting.items()):
            if pieces:
                self._h2.send_data(stream, pieces.pop(0))
            elif self._script.end == "eof":
                self._h2.end_stream(stream)
                del self._waiting[stream]
            elif self._script.end == "reset":
                self._h2.reset_stream(stream)
                del self._waiting[stream]
        return self._h2.data_to_send()


class Network:
    """A network backend of httpcore or httpcore2, for both colours.

    Args:
        family: whose exceptions are raised.
        script: what a connection delivers.
        at_step: called at each thing that is asked, with its number from 0.
    """

    def __init__(
        self,
        family: Family,
        script: Script,
        *,
        http2: bool = False,
        at_step: Callable[[int], None] | None = None,
    ) -> None:
        self.log: Log = []
        self.steps = 0
        self._script = script
        self._core = importlib.import_module("httpcore" if family.library == "httpx" else "httpcore2")
        self._peer = Peer2 if http2 else Peer
        self._at_step = at_step
        self.http2 = http2

    def step(self, *what: Any) -> None:
        self.log.append(what)
        number, self.steps = self.steps, self.steps + 1
        if self._at_step is not None:
            self._at_step(number)

    def sync(self) -> Any:
        net = self

        class Backend:
            def connect_tcp(self, *_: Any, **__: Any) -> Any:
                net.step("connect")
                return _Stream(net, net._peer(net._script))

        return Backend()

    def asynchronous(self) -> Any:
        net = self

        class Backend:
            async def connect_tcp(self, *_: Any, **__: Any) -> Any:
                net.step("connect")
                await anyio.lowlevel.checkpoint()
                return _AsyncStream(net, net._peer(net._script))

        return Backend()

    def deliver(self, peer: Peer | Peer2, most: int) -> bytes | None:
        """The next piece; None when nothing comes any more, and nothing ends either."""
        piece = peer.read(most)
        if piece or self._script.end == "eof":
            return piece
        if self._script.end == "hold":
            return None
        if self._script.end == "reset":
            raise self._core.ReadError("[Errno 104] Connection reset by peer")
        raise self._core.ReadTimeout("timed out")


class _Stream:
    def __init__(self, net: Network, peer: Peer | Peer2) -> None:
        self._net, self._peer = net, peer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._net.step("read")
        piece = self._net.deliver(self._peer, max_bytes)
        assert piece is not None, "a sync consumer waits for ever"
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._net.step("write", len(buffer))
        self._peer.write(buffer)

    def close(self) -> None:
        self._net.step("close")

    def get_extra_info(self, _: str) -> None:
        return None


class _AsyncStream:
    def __init__(self, net: Network, peer: Peer | Peer2) -> None:
        self._net, self._peer = net, peer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - the backend's interface
        self._net.step("read")
        await anyio.lowlevel.checkpoint()
        piece = self._net.deliver(self._peer, max_bytes)
        if piece is None:
            await anyio.sleep_forever()
        return piece or b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - likewise
        self._net.step("write", len(buffer))
        await anyio.lowlevel.checkpoint()
        self._peer.write(buffer)

    async def aclose(self) -> None:
        self._net.step("close")

    def get_extra_info(self, _: str) -> None:
        return None


def client_on(family: Family, net: Network) -> Any:
    """A client whose pool is the library's own, on a network in memory."""
    kind = family.module.AsyncHTTPTransport if family.is_async else family.module.HTTPTransport
    transport = kind(verify=False, http1=not net.http2, http2=net.http2)
    transport._pool._network_backend = net.asynchronous() if family.is_async else net.sync()
    return family.client(transport=transport)


def pool_of(client: Any) -> list[str]:
    """What each connection of a client's pool says of itself."""
    return [connection.info() for connection in client._transport._pool.connections]


ORIGINALS = {name: (owner(family), seam(family)) for name, family in FAMILIES.items()}
"""The seam as it was when nothing was installed."""


@contextmanager
def plain() -> Iterator[None]:
    """The libraries as if nothing had been installed."""
    installed = {name: seam(family) for name, family in FAMILIES.items()}
    for (transport, method), original in ORIGINALS.values():
        setattr(transport, method, original)
    try:
        yield
    finally:
        for name, ((transport, method), _) in ORIGINALS.items():
            setattr(transport, method, installed[name])
