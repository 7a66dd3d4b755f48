"""Threads, tasks, loops, forks and garbage: counts are exact, and nothing waits for ever."""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FAMILIES, Family, Memory
from tests.lifecycle.world import apart, spans, total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse import _observer as observer_module
from opentelemetry.instrumentation.httpx_sse._collector import Collector
from opentelemetry.instrumentation.httpx_sse._events import PoolClosed
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger
from opentelemetry.instrumentation.httpx_sse._locker import Locker
from opentelemetry.instrumentation.httpx_sse._observer import Observer

URL = "http://server.test/"
PATIENCE = 60
"""Seconds after which what still runs is taken to wait for ever."""


SHORT = tuple(b"id: %d\ndata: x\n\n" % number for number in range(3))
LONG = tuple(
    b'id: %d\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n' % number
    for number in range(2_000)
)


def client_of(family: Family, memory: Memory, chunks: tuple[bytes, ...] = SHORT) -> Any:
    """A watched client of a server in memory; each answer is a stream of these chunks."""
    library = family.module

    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Iterator[bytes]:
            for chunk in chunks:
                time.sleep(0)
                yield chunk

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in chunks:
                await asyncio.sleep(0)
                yield chunk

    def answer(_: Any) -> Any:
        return library.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())

    client = family.client(transport=library.MockTransport(answer))
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider
    )
    return client


@contextmanager
def collecting(memory: Memory) -> Iterator[None]:
    """Metrics are collected all the time, and threads change as often as they can."""
    interval, stop = sys.getswitchinterval(), threading.Event()

    def collect() -> None:
        while not stop.is_set():
            memory.reader.get_metrics_data()

    thread = threading.Thread(target=collect, daemon=True)
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join(PATIENCE)
        assert not thread.is_alive()


def exact(memory: Memory, expected: int) -> None:
    """So many streams, begun and ended, with three events each."""
    gc.collect()
    assert total(memory, "sse.client.stream.duration") == expected
    assert total(memory, "sse.client.stream.duration", sse_stream_end="complete") == expected
    assert total(memory, "sse.client.events") == 3 * expected
    assert total(memory, "sse.client.active_streams") == 0
    assert len(spans(memory)) == expected


@pytest.mark.parametrize("name", ["httpx-sync", "httpx2-sync"])
def test_one_client_in_many_threads(memory: Memory, name: str) -> None:
    """32 threads with one client, and a collection always under way: every stream and event is counted."""
    client = client_of(FAMILIES[name], memory)
    with collecting(memory), ThreadPoolExecutor(32) as pool:
        sizes = list(pool.map(lambda n: len(client.get(f"{URL}{n}").content), range(320)))
    assert sizes == [sum(map(len, SHORT))] * 320
    exact(memory, 320)


@pytest.mark.parametrize("name", ["httpx-sync", "httpx2-sync"])
def test_what_is_counted_in_one_thread_and_taken_in_another(memory: Memory, name: str) -> None:
    """Events that come in masses are handed over by whoever collects: none is lost on the way, and none told twice."""
    client = client_of(FAMILIES[name], memory, LONG)
    with collecting(memory), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: client.get(f"{URL}{n}"), range(16)))
    assert total(memory, "sse.client.events", sse_event_type="notification") == 16 * len(LONG)
    assert total(memory, "sse.client.stream.duration", sse_stream_end="complete") == 16


@pytest.mark.parametrize("name", ["httpx-async", "httpx2-async"])
def test_one_client_in_many_tasks(memory: Memory, name: str) -> None:
    """1,000 tasks with one client."""
    client = client_of(FAMILIES[name], memory)

    async def play() -> None:
        await asyncio.gather(*(client.get(f"{URL}{n}") for n in range(1000)))

    with collecting(memory):
        asyncio.run(play())
    exact(memory, 1000)


@pytest.mark.parametrize("name", ["httpx-async", "httpx2-async"])
def test_two_loops(memory: Memory, name: str) -> None:
    """Two event loops in two threads, one client on the same telemetry."""
    client = client_of(FAMILIES[name], memory)

    async def play() -> None:
        await asyncio.gather(*(client.get(f"{URL}{n}") for n in range(100)))

    with collecting(memory), ThreadPoolExecutor(2) as pool:
        list(pool.map(asyncio.run, [play(), play()]))
    exact(memory, 200)


def in_thread(action: Callable[[], Any]) -> list[Any]:
    """What an action gives, or nothing if it does not come to an end."""
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(action()), daemon=True)
    thread.start()
    thread.join(PATIENCE if given else 10)
    return given


def test_no_lock_is_held_while_the_hook_runs(memory: Memory) -> None:
    """A `verdict_hook` may wait for another thread that uses the same client."""
    family = FAMILIES["httpx-sync"]
    client: Any = None
    seen: list[int] = []
    asking = threading.Lock()

    def hook(*_: Any) -> None:
        if asking.acquire(blocking=False):
            seen.extend(in_thread(lambda: client.get(URL).status_code))

    client = client_of(family, memory)
    HTTPXSSEInstrumentor.uninstrument_client(client)
    HTTPXSSEInstrumentor.instrument_client(client, meter_provider=memory.meter_provider, verdict_hook=hook)
    assert client.get(URL).status_code == 200
    assert seen == [200]


def forgotten(client: Any) -> None:
    """Leave an open stream behind in a cycle, with a `finally` that closes it when it is collected."""

    def events() -> Iterator[bytes]:
        with client.stream("GET", URL) as response:
            yield from response.iter_raw()

    class Cycle:
        """Holds itself."""

    cycle: Any = Cycle()
    cycle.itself, cycle.events = cycle, events()
    next(cycle.events)


def test_garbage_that_closes_a_stream_under_our_lock(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection inside the ledger may close a stream of the host in the same thread: it does not wait for itself."""
    client = client_of(FAMILIES["httpx-sync"], memory)
    observe = Ledger.observe
    armed = [True]

    def collected(self: Ledger, event: Any, *, at: float) -> Any:
        if armed:
            armed.clear()
            gc.collect()
        return observe(self, event, at=at)

    gc.collect()
    armed.clear()
    forgotten(client)
    armed.append(True)
    monkeypatch.setattr(Ledger, "observe", collected)
    assert in_thread(lambda: client.get(URL).status_code) == [200]
    assert total(memory, "sse.client.stream.duration") == 2
    assert total(memory, "sse.client.active_streams") == 0


def test_garbage_that_closes_a_stream_under_the_lock_of_the_sdk() -> None:
    """A collection inside the SDK's aggregation may close a stream of the host: the thread does not wait for itself."""
    run_apart(
        """
client = client_of(FAMILIES["httpx-sync"], memory)
def early():
    with client.stream("GET", URL) as response:
        next(response.iter_raw())
class Collecting:
    def __init__(self): self.lock = threading.Lock()
    def __enter__(self): self.lock.acquire(); gc.collect()
    def __exit__(self, *_): self.lock.release()
early()
for storage in memory.meter_provider._measurement_consumer._reader_storages.values():
    for instrument, matches in storage._instrument_view_instrument_matches.items():
        if instrument.name == "sse.client.stream.duration":
            for series in matches[0]._attributes_aggregation.values():
                series._lock = Collecting()
forgotten(client)
early()
assert total(memory, "sse.client.stream.duration") == 3
"""
    )


def run_apart(script: str) -> str:
    """Run a script with this module's names in a process of its own, which must end by itself."""
    names = "from tests.trust.test_concurrency import *\nfrom tests.conftest import in_memory\nmemory = in_memory()\n"
    return apart(names + script, seconds=20)


def test_fork_while_our_lock_is_held() -> None:
    """A process that forks while another thread is in the ledger has a child that works, and reports for itself."""
    printed = run_apart(
        """
import os
client = client_of(FAMILIES["httpx-sync"], memory)
inside, leave = threading.Event(), threading.Event()
observe = Ledger.observe
def slow(self, event, *, at):
    if threading.current_thread() is not threading.main_thread():
        inside.set(); leave.wait()
    return observe(self, event, at=at)
Ledger.observe = slow
thread = threading.Thread(target=client.get, args=(URL,)); thread.start(); inside.wait()
child = os.fork()
if not child:
    client.get(URL)
    print("child", int(total(memory, "sse.client.stream.duration")), flush=True)
    os._exit(0)
leave.set(); thread.join()
assert os.waitpid(child, 0)[1] == 0
print("parent", int(total(memory, "sse.client.stream.duration")))
"""
    )
    assert printed.split() == ["child", "1", "parent", "1"]


LOCKED = {
    "counts of calls": ("_gauges", "Counts()", "it.count(lambda *_: None, {}, 1)"),
    "names of servers": ("_meters", "Servers()", "it.name(Origin('https', 'server.test', 443), 1)"),
    "spans": ("_spans", "Spans(None, Identifiers(), None, None)", "it._link(1)"),
    "what is shown": ("_gauges", "Showing(NoOpMeter('t'))", "it.shown('sse.client.events')"),
    "contained errors": ("_containment", "Containment(strict=False)", "it.contain('begin', ValueError())"),
    "ledger": ("_observer", "Observer(lambda *_: None)", "it.observe(None, (PoolClosed(pool=1),), at=0.0)"),
}
"""What holds a lock while a call of the host passes: its module, how to make one, and the call."""


@pytest.mark.parametrize("holder", LOCKED)
def test_fork_while_another_thread_holds_the_lock(holder: str) -> None:
    """In a child, no call waits for a lock that a thread which it does not have held when it was made."""
    module, make, call = LOCKED[holder]
    printed = run_apart(
        f"""
import os, signal
from opentelemetry.metrics import NoOpMeter
from opentelemetry.instrumentation.httpx_sse._events import Origin
from opentelemetry.instrumentation.httpx_sse.{module} import *
it = {make}
inside, leave = threading.Event(), threading.Event()
def hold():
    with it._lock:
        inside.set(); leave.wait()
thread = threading.Thread(target=hold); thread.start(); inside.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    {call}
    print("child went on", flush=True)
    os._exit(0)
leave.set(); thread.join()
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert printed.strip() == "child went on"


def test_fork_while_another_thread_is_telling() -> None:
    """What the threads of a parent were at means nothing to those of a child, though they may be named alike."""
    printed = run_apart(
        """
import os
inside, leave, parent = threading.Event(), threading.Event(), os.getpid()
def hook(span, verdict):
    if os.getpid() == parent and threading.current_thread() is not threading.main_thread():
        inside.set(); leave.wait()
client = client_of(FAMILIES["httpx-sync"], memory)
HTTPXSSEInstrumentor.uninstrument_client(client)
HTTPXSSEInstrumentor.instrument_client(client, meter_provider=memory.meter_provider, verdict_hook=hook)
before = threading.Thread(target=client.get, args=(URL,)); before.start(); inside.wait()
child = os.fork()
if not child:
    # The memory of threads that are gone is used again, and with it their names: one of so many has the same.
    ready = threading.Barrier(9)
    def work(): client.get(URL); ready.wait()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    ready.wait()
    is_met = before.ident in [thread.ident for thread in threads]
    print(is_met, int(total(memory, "sse.client.stream.duration")), flush=True)
    os._exit(0)
leave.set(); before.join()
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert printed.split() == ["True", "8"]


def test_fork_while_another_thread_collects_garbage() -> None:
    """The same for a collection that was under way."""
    collector = Collector()
    collector.notice("start", {})
    collector._threads.add(-1)
    collector.after_fork()
    assert collector.is_here()
    collector.notice("stop", {})
    assert not collector._threads


def test_clients_come_and_go_during_collections(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A collection is never disturbed by a client that is watched from now on, or no more."""
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            client_of(FAMILIES["httpx-sync"], memory).get(URL)

    with hurried(), ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(come_and_go) for _ in range(2)]
        for _ in range(60):
            memory.reader.get_metrics_data()
        stop.set()
        assert [each.result() for each in busy] == [None, None]
    assert caplog.records == []
    gc.collect()
    assert total(memory, "sse.client.events") == 3 * total(memory, "sse.client.stream.duration")


@pytest.mark.parametrize("holder", LOCKED)
def test_a_signal_while_the_lock_is_held(holder: str) -> None:
    """A signal handler that sends a request does not wait for the thread that it interrupted."""
    module, make, call = LOCKED[holder]
    printed = run_apart(
        f"""
import signal
from opentelemetry.metrics import NoOpMeter
from opentelemetry.instrumentation.httpx_sse._events import Origin
from opentelemetry.instrumentation.httpx_sse.{module} import *
it = {make}
def handle(*_):
    {call}
signal.signal(signal.SIGUSR1, handle)
with it._lock:
    signal.raise_signal(signal.SIGUSR1)
print("went on")
"""
    )
    assert printed.strip() == "went on"


def test_all_locks_are_known() -> None:
    """Every lock of this package is one that is made anew in a child: nothing else in it makes a lock."""
    package = Path(observer_module.__file__).parent
    makers = [path.name for path in package.rglob("*.py") if "Lock()" in path.read_text()]
    holders = {cls.__module__.rpartition(".")[2] for cls in Locker.__subclasses__()}
    assert makers == ["_locker.py"]
    assert holders == {module for module, _, _ in LOCKED.values()}


def test_workers_that_are_forked() -> None:
    """Workers that were forked after `instrument_client` each watch what they do themselves."""
    printed = run_apart(
        """
import multiprocessing
client = client_of(FAMILIES["httpx-sync"], memory)
client.get(URL)
def work(n):
    before = total(memory, "sse.client.stream.duration")
    client.get(URL)
    return int(total(memory, "sse.client.stream.duration") - before)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(6)))
"""
    )
    assert printed.strip() == "[1, 1, 1, 1, 1, 1]"


@contextmanager
def hurried() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


class Yielding(dict[Any, Any]):
    """A dictionary in which a look-up lets other threads run."""

    def get(self, *args: Any) -> Any:
        found = super().get(*args)
        time.sleep(0.001)
        return found


def test_a_transport_has_one_number() -> None:
    """Threads that use a transport for the first time at once find the same scope for its cursors."""

    class Transport:
        """Some transport."""

    observer, transport = Observer(lambda *_: None), Transport()
    observer._pools = Yielding()
    with ThreadPoolExecutor(8) as pool:
        numbers = set(pool.map(lambda _: observer._pool(transport), range(8)))
    assert len(numbers) == 1


def test_two_threads_drain_at_once() -> None:
    """What finalizers left is observed once, and nobody is surprised that it is gone."""

    class Slow(list[Any]):
        """A queue in which asking lets other threads run."""

        def __bool__(self) -> bool:
            found = len(self) > 0
            time.sleep(0.001)
            return found

        def popleft(self) -> Any:
            return self.pop(0)

    observer, numbers = Observer(lambda *_: None), count(1)
    observer._left = Slow((None, (PoolClosed(pool=next(numbers)),), 0.0) for _ in range(50))  # type: ignore[assignment]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: observer.drain(), range(8)))
