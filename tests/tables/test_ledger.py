"""The ledger's world is closed: whatever it is told, it answers, and its answers are lawful."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from opentelemetry.instrumentation.httpx_sse._events import Answered, Event, Sent
from opentelemetry.instrumentation.httpx_sse._gauges import GAUGES
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger, Thresholds
from opentelemetry.instrumentation.httpx_sse._names import METRICS
from opentelemetry.instrumentation.httpx_sse._telemetry import TABLE
from opentelemetry.instrumentation.httpx_sse._verdicts import (
    AttemptBegun,
    AttemptEnded,
    Reconnected,
    ReconnectSettled,
    Snapshot,
    StreamEnded,
    StreamMoved,
    StreamOpened,
    Verdict,
)

from .worlds import WILD_WORLDS, lawful_worlds, timed

World = list[tuple[Event, float, bool]]
THRESHOLDS = (Thresholds(), Thresholds(submission_deadline=1.0, quiet_threshold=0.0, give_up_after=0.0))
LEDGERS = st.sampled_from(THRESHOLDS)


class Watcher:
    """Looks at everything that a ledger says."""

    def __init__(self) -> None:
        self.active: Counter[str] = Counter()
        self.reconnects: set[int] = set()
        self.outcomes: Counter[int] = Counter()
        self.over: Counter[int] = Counter()

    def see(self, verdict: Verdict) -> None:
        for row in TABLE.get(type(verdict), ()):
            value = getattr(verdict, row.value) if isinstance(row.value, str) else row.value
            if value is None:
                continue
            labels = tuple(getattr(verdict, label) for label in row.labels)
            assert labels in METRICS[row.metric].reachable, (row.metric, labels)
            assert row.value == -1 or value >= 0, verdict
        if isinstance(verdict, AttemptBegun):
            assert verdict.streak >= 0
            assert verdict.attempt >= 1
        if isinstance(verdict, StreamOpened):
            self.active[verdict.kind] += 1
        elif isinstance(verdict, StreamMoved):
            self.active[verdict.before] -= 1
            self.active[verdict.kind] += 1
        elif isinstance(verdict, StreamEnded):
            self.active[verdict.kind] -= 1
        elif isinstance(verdict, Reconnected) and verdict.exchange is not None:
            self.reconnects.add(verdict.exchange)
        elif isinstance(verdict, ReconnectSettled) and verdict.exchange is not None:
            self.outcomes[verdict.exchange] += 1
        elif isinstance(verdict, AttemptEnded) and verdict.exchange is not None:
            self.over[verdict.exchange] += 1
        assert all(count >= 0 for count in self.active.values()), self.active

    def collect(self, snapshot: Snapshot) -> None:
        for verdict in snapshot.settled:
            self.see(verdict)
        for name, (field, attributes) in GAUGES.items():
            for key, value in getattr(snapshot, field).items():
                labels = key[1:] if attributes else ()
                assert labels in METRICS[name].reachable, (name, labels)
                assert value >= 0, (name, value)
        assert set(snapshot.evictions) <= {
            table for (table,) in METRICS["sse.client.instrumentation.evictions"].reachable
        }
        # In sum: of two streams of one logical stream, the older may show that both are of another kind.
        open_now = sum(n for (_, _, state), n in snapshot.logical_streams.items() if state == "open")
        assert open_now <= sum(self.active.values()), (open_now, self.active)


def watched(world: World, thresholds: Thresholds) -> Watcher:
    """A whole world, seen by a ledger."""
    ledger, watcher = Ledger(thresholds), Watcher()
    at = 0.0
    for event, at, collects in timed(world):
        for verdict in ledger.observe(event, at=at):
            watcher.see(verdict)
        if collects:
            watcher.collect(ledger.snapshot(at=at))
    watcher.collect(ledger.snapshot(at=at + 10_000))
    return watcher


@settings(max_examples=400, deadline=None)
@given(WILD_WORLDS, LEDGERS)
def test_wild(world: World, thresholds: Thresholds) -> None:
    """Facts in an impossible order are a finding, never an exception, and no label leaves its closed set."""
    watched(world, thresholds)


@settings(max_examples=400, deadline=None)
@given(lawful_worlds(), LEDGERS)
def test_lawful(world: World, thresholds: Thresholds) -> None:
    """When all exchanges are over no stream is open, and every reconnect has had exactly one outcome."""
    watcher = watched(world, thresholds)
    assert {0} >= set(watcher.active.values())
    redirected = {e.exchange for e, _, _ in world if isinstance(e, Answered) and 300 <= e.status < 400}
    assert all(count == 1 for count in watcher.over.values())
    wanted = watcher.reconnects - redirected
    assert dict.fromkeys(wanted, 1) == {e: watcher.outcomes[e] for e in wanted}
    assert set() == set(watcher.outcomes) - watcher.reconnects - _following(world, redirected)


def _following(world: World, redirected: set[int]) -> set[int]:
    """An exchange after a redirect may be the same attempt, and then settles what the other began."""
    return {event.exchange for event, _, _ in world if isinstance(event, Sent)} if redirected else set()


@settings(max_examples=200, deadline=None)
@given(lawful_worlds())
def test_pure(world: World) -> None:
    """The same facts at the same times lead to the same verdicts; looking at the ledger changes none of them."""
    assert list(_verdicts(world)) == list(_verdicts(world))
    looked = [verdict for verdict in _verdicts(world, looks=True) if verdict.exchange is not None]
    assert looked == [verdict for verdict in _verdicts(world) if verdict.exchange is not None]


def _verdicts(world: World, *, looks: bool = False) -> Iterator[Verdict]:
    ledger = Ledger(Thresholds(give_up_after=1e9))
    for event, at, _ in timed(world):
        yield from ledger.observe(event, at=at)
        if looks:
            yield from ledger.snapshot(at=at).settled
