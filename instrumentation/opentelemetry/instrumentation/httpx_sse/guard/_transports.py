"""The guard around any transport of httpx or httpx2, for clients that one makes oneself."""

from collections.abc import Awaitable
from typing import Any

from .._containment import Containment
from .._instrumentor import HTTPXSSEInstrumentor, Installation
from .._observer import Observer
from .._options import Options, read_options
from .._proxy import Proxy
from .._transport import Watch, watched, watched_async
from ._decisions import Settings
from ._quarantine import Quarantine
from ._script import Guard


def guard_of(observer: Observer, containment: Containment, options: Options) -> Guard:
    """The guard of an installation."""
    settings = Settings(
        max_stalled=options.guard_max_stalled,
        probe=options.guard_probe,
        inconclusive=options.guard_inconclusive,
        disabled=options.guard_disabled,
        dry_run=options.guard_dry_run,
    )
    return Guard(observer, containment, settings)


_OWN: list[Installation] = []
"""That of all guarded transports in a process that did not call `instrument()`."""


def _installation(options: dict[str, Any]) -> Installation:
    if options:
        return Installation(read_options({"guard": True, **options}))
    shared = HTTPXSSEInstrumentor._installation  # noqa: SLF001 - as for instrument_client
    if shared is not None:
        return shared
    if not _OWN:
        _OWN.append(Installation(read_options({})))
    return _OWN[0]


class _Guarded(Proxy):
    """The wrapped transport in every respect but the handling of requests."""

    def __init__(self, transport: Any, **options: Any) -> None:
        super().__init__(transport)
        self._self_installation = _installation(options)

    @property
    def quarantine(self) -> Quarantine:
        """What was replayed from dead sessions, and never delivered."""
        self._self_installation.guarded()
        quarantine: Quarantine = self._self_installation.guard.memory.quarantine
        return quarantine

    def _self_watch(self) -> Watch:
        return self._self_installation.guarded()


class GuardTransport(_Guarded):
    """A transport that stops what cannot succeed: `httpx.Client(transport=GuardTransport(httpx.HTTPTransport()))`.

    Args:
        transport: any synchronous transport of httpx or httpx2.
        **options: the fields of `Options`; without any, those of `instrument()` if that was called.

    Raises:
        TypeError: an unknown option.
    """

    def handle_request(self, request: Any) -> Any:
        return watched(lambda inner, sent: inner.handle_request(sent), self._self_watch)(
            self.__wrapped__, request
        )


class AsyncGuardTransport(_Guarded):
    """Same as GuardTransport, for asynchronous transports."""

    def handle_async_request(self, request: Any) -> Awaitable[Any]:
        send = watched_async(lambda inner, sent: inner.handle_async_request(sent), self._self_watch)
        return send(self.__wrapped__, request)
