"""What all exchanges of one installation share: the ledger and its lock, the clock, and the sink of verdicts."""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count

from ._collector import COLLECTOR
from ._envelope import sort
from ._events import Event, Message, PoolClosed, Sent
from ._exchange import Companion, Exchange
from ._ledger import Ledger, Thresholds
from ._locker import Locker
from ._request import Headers, Request, headers_of, may_matter
from ._scanner import Scanner
from ._skim import Skim
from ._verdicts import Redelivery, Snapshot, Standing, Verdict

Sink = Callable[[Exchange | None, tuple[Verdict, ...]], None]


class _Telling(threading.local):
    """What a thread has to tell."""

    def __init__(self) -> None:
        self.is_at_it = False
        self.untold: deque[tuple[Exchange | None, tuple[Verdict, ...]]] = deque()


class Observer(Locker):
    """What all exchanges of one installation share: the ledger, its lock, the clock and the sink.

    Args:
        sink: takes the verdicts of each fact, outside of the lock, in the thread that saw the fact.
        thresholds: limits of time that decide.
        liveness_key: the key of `params._meta` that asserts that a server request still lives.
        clock: seconds, steady.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        thresholds: Thresholds | None = None,
        liveness_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.liveness_key = liveness_key
        self._sink = sink
        self._ledger = Ledger(thresholds)
        self._numbers = count(1)
        self._pools: dict[int, tuple[weakref.ref[object], int]] = {}
        self.waiting: dict[int, Skim] = {}
        """Ordinary events that the ledger has not heard of yet, by exchange."""
        # Finalizers only append here: they run at any moment, inside anybody's lock.
        self._left: deque[tuple[Exchange | None, tuple[Event, ...], float]] = deque()
        # What was thrown away is looked at last: of one heap of garbage, a finalizer may still close a stream.
        self._garbage: deque[tuple[Exchange | None, tuple[Event, ...], float]] = deque()
        self._telling = _Telling()

    def begin(
        self,
        transport: object,
        request: Request,
        context: object,
        companion: Companion | None = None,
        *,
        headers: Headers | None = None,
        at: float | None = None,
        is_own: bool = False,
    ) -> Exchange:
        """A request is about to leave through `transport`, or has left.

        Args:
            transport: whose pool it belongs to.
            request: of either library.
            context: of OpenTelemetry, in which it was made.
            companion: who goes along with it.
            headers: what `headers_of` says of it, if that is known already.
            at: when it left, if it has.
            is_own: this package itself sends it.
        """
        headers = headers_of(request) if headers is None else headers
        with self._lock:
            # Without a GIL, two threads may be given the same by `next`.
            number = next(self._numbers)
        exchange = Exchange(self, number, request, headers, context, at)
        exchange.pool = self._pool(transport)
        exchange.companion, exchange.is_own = companion, is_own
        if self._left or self._garbage:
            self.drain()
        sent = None if self.is_plain(request.method, headers) else exchange.describe()
        if sent is not None and (sent.mcp or self._knows(sent)):
            exchange.announce(sent)
        return exchange

    def _knows(self, sent: Sent) -> bool:
        with self._lock:
            self._hand_over()
            return self._ledger.knows(sent)

    def is_plain(self, method: str, headers: Headers) -> bool:
        """Whether a request matters only if its answer turns out to be an event stream."""
        return not (self._ledger.awaits_plain or may_matter(method, headers))

    def observe(self, exchange: Exchange | None, events: Iterable[Event], at: float) -> None:
        """Facts go to the ledger, and what it concludes to the sink."""
        if COLLECTOR.is_here():
            self._left.append((exchange, tuple(events), at))
            return
        with self._lock:
            if self.waiting:
                self._hand_over()
            found: list[Verdict] = []
            for event in events:
                found += self._ledger.observe(event, at=at)
        if found:
            verdicts = tuple(found)
            if exchange is not None and exchange.companion is not None:
                verdicts = exchange.companion.hear(verdicts)
            self._tell(exchange, verdicts)

    def _tell(self, exchange: Exchange | None, verdicts: tuple[Verdict, ...]) -> None:
        """To the sink; later, if this very thread was interrupted in there, where locks may be held.

        Each thread tells what it has seen itself: of one exchange everything is told in the order in which it was seen.
        """
        telling = self._telling
        telling.untold.append((exchange, verdicts))
        if telling.is_at_it:
            return
        while telling.untold:
            telling.is_at_it = True
            try:
                while telling.untold:
                    self._sink(*telling.untold.popleft())
            finally:
                telling.is_at_it = False

    def report(self, exchange: Exchange, verdict: Verdict) -> None:
        """What was done about an exchange goes to the sink like what was seen of it."""
        self._tell(exchange, (verdict,))

    def standing(self, stream: int) -> Standing | None:
        """What is known of a logical stream now."""
        with self._lock:
            self._hand_over()
            return self._ledger.standing(stream)

    def redelivery(self, exchange: Exchange, message: Message) -> Redelivery | None:
        """What is known now of a server request that an exchange has brought again."""
        with self._lock:
            self._hand_over()
            return self._ledger.redelivery(exchange.number, message, at=self.clock())

    def skim(self, exchange: int, scanner: Scanner) -> Skim | None:
        """What may skim an exchange from now on, if one more ordinary event cannot decide anything there."""
        with self._lock:
            is_decided = self._ledger.has_progressed(exchange)
        return Skim(exchange, scanner, sort, self) if is_decided else None

    def shorten(self, skim: Skim) -> None:
        """While nobody takes what it has."""
        with self._lock:
            skim.shorten()

    def hand_over(self) -> None:
        """The ledger is to hear of everything that waits."""
        with self._lock:
            self._hand_over()

    def _hand_over(self) -> None:
        while self.waiting:
            _, skim = self.waiting.popitem()
            self._ledger.observe(skim.take(), at=skim.at)

    def collect(self) -> Snapshot:
        """Everything that is now; called by whoever collects metrics."""
        self.drain()
        with self._lock:
            self._hand_over()
            return self._ledger.snapshot(at=self.clock())

    def drain(self) -> None:
        """What finalizers left behind."""
        for queue in (self._left, self._garbage):
            while queue and not COLLECTOR.is_here():
                try:
                    exchange, events, at = queue.popleft()
                except IndexError:
                    break
                self.observe(exchange, events, at)

    def leave(self, exchange: Exchange, *events: Event) -> None:
        """From a finalizer: to be observed later."""
        self._garbage.append((exchange, events, self.clock()))

    def _pool(self, transport: object) -> int:
        """A number for a transport object; `id()` alone is used again after it is gone."""
        key = id(transport)
        held = self._pools.get(key)
        if held is not None and held[0]() is transport:
            return held[1]
        with self._lock:
            return self._new_pool(transport, key)

    def _new_pool(self, transport: object, key: int) -> int:
        held = self._pools.get(key)
        if held is not None and held[0]() is transport:
            return held[1]
        number = next(self._numbers)
        left, pools = self._left, self._pools

        def gone(ref: object, clock: Callable[[], float] = self.clock) -> None:
            if pools.get(key, (None,))[0] is ref:
                pools.pop(key, None)
            left.append((None, (PoolClosed(pool=number),), clock()))

        try:
            pools[key] = (weakref.ref(transport, gone), number)
        except TypeError:
            # Some third-party transport without weak references: its streams are told apart by request only.
            return 0
        return number
