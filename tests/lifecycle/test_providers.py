"""Providers: that come late, are shared by many, are not there at all, or are broken. Nothing counted is lost."""

import gc
import weakref
from typing import Any

import pytest
from opentelemetry.metrics import Meter, NoOpMeter
from tests.conftest import FAMILIES, Family, Memory
from tests.lifecycle.world import BODY, apart, get, instrument, spans, total, uninstrument

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

SYNC = FAMILIES["httpx-sync"]
URL = "http://server.test/"


def answering(family: Family) -> Any:
    """A transport in memory whose every answer is a stream of three events."""
    library = family.module
    headers = {"content-type": "text/event-stream"}
    return library.MockTransport(lambda _: library.Response(200, headers=headers, content=BODY))


BEGIN = """
from opentelemetry import metrics
from tests.conftest import in_memory
from tests.lifecycle.test_providers import *
memory = in_memory()
def switch_on(**options): HTTPXSSEInstrumentor().instrument(**options)
def late(): metrics.set_meter_provider(memory.meter_provider)
def ask(**options):
    client = SYNC.client(transport=answering(SYNC))
    HTTPXSSEInstrumentor.instrument_client(client, **options)
    client.get(URL)
"""


def by_itself(script: str) -> str:
    """What a script prints that has a process, and so the global providers, for itself."""
    return apart(BEGIN + script, seconds=60).strip()


LATE = {
    "before": "late(); switch_on(); ask()",
    "after": "switch_on(); late(); ask()",
    "on again after it": "switch_on(); late(); uninstrument(); switch_on(); ask()",
    "a client by itself, too": "switch_on(); late(); ask(idle_threshold=50)",
    "a client by itself, and it is named": "switch_on(); late(); ask(meter_provider=memory.meter_provider)",
    "two before it": "c = SYNC.client(); HTTPXSSEInstrumentor.instrument_client(c); switch_on(); late(); ask()",
}


@pytest.mark.parametrize("when", LATE)
def test_a_global_provider_that_comes_late(when: str) -> None:
    """Whenever a program sets its provider: what is observed at collections is told like what is counted at once."""
    printed = by_itself(
        LATE[when]
        + """
for name in ("events", "stream.duration"):
    print(int(total(memory, "sse.client." + name)))
"""
    )
    assert printed.split() == ["3", "1"]


def test_without_a_provider_nothing_piles_up() -> None:
    """A client for each request, each with options of its own, and no SDK: what was made for it goes with it, at the
    latest when the next one comes."""
    printed = by_itself(
        """
import tracemalloc
for _ in range(20): ask(idle_threshold=50)
gc.collect(); tracemalloc.start(); before = tracemalloc.get_traced_memory()[0]
for _ in range(200): ask(idle_threshold=50)
for _ in range(2): gc.collect(); ask()
gc.collect(); print((tracemalloc.get_traced_memory()[0] - before) // 200)
"""
    )
    assert int(printed) < 1024


@pytest.mark.parametrize("is_collected", [False, True])
def test_what_an_installation_has_counted_outlives_it(
    family: Family, memory: Memory, server: str, *, is_collected: bool
) -> None:
    """Switched off, and thrown away, before anybody has looked: all of its counts are told."""
    instrument(memory)
    assert get(family, server) == BODY
    uninstrument()
    if is_collected:
        gc.collect()
    assert total(memory, "sse.client.events") == 3
    assert total(memory, "sse.client.active_streams") == 0
    gc.collect()
    assert total(memory, "sse.client.events") == 3


def test_clients_of_one_request_each(memory: Memory) -> None:
    """What each has counted is told, although each is gone before the next collection."""
    for _ in range(20):
        client = SYNC.client(transport=answering(SYNC))
        HTTPXSSEInstrumentor.instrument_client(client, meter_provider=memory.meter_provider)
        client.get(URL)
        client.close()
        del client
        gc.collect()
    assert total(memory, "sse.client.events") == 60
    assert total(memory, "sse.client.stream.duration") == 20


def test_so_many_servers_are_named_in_a_process(memory: Memory) -> None:
    """Not so many for each client: all installations on one meter share the names (design, section 4)."""
    kept = []
    for n in range(12):
        client = SYNC.client(transport=answering(SYNC))
        HTTPXSSEInstrumentor.instrument_client(
            client,
            meter_provider=memory.meter_provider,
            tracer_provider=memory.tracer_provider,
            server_limit=4,
        )
        client.get(f"http://s{n}.test/")
        kept.append(client)
    named = {str((span.attributes or {})["server.address"]) for span in spans(memory)}
    assert named == {"s0.test", "s1.test", "s2.test", "s3.test", "_OTHER"}
    assert total(memory, "sse.client.stream.duration", server_address="_OTHER") == 8


def test_a_transport_that_knows_its_client(family: Family, memory: Memory) -> None:
    """One that refreshes tokens, say: both are freed as they would be without us."""
    inner = answering(family)
    client = family.client(transport=inner)
    inner.client = client
    HTTPXSSEInstrumentor.instrument_client(client, meter_provider=memory.meter_provider)
    seen = weakref.ref(client)
    del client, inner
    gc.collect()
    assert seen() is None


class _NoMeter:
    def get_meter(self, *_: Any, **__: Any) -> Any:
        """Nothing."""

    get_tracer = get_meter


class _OldMeter(NoOpMeter):
    def create_histogram(self, name: str, unit: str = "", description: str = "") -> Any:  # type: ignore[override]
        """Knows no boundaries."""
        return super().create_histogram(name, unit, description)


class _OldProvider:
    def get_meter(self, *_: Any, **__: Any) -> Meter:
        return _OldMeter("old")


BROKEN: dict[str, dict[str, Any]] = {
    "no meter": {"meter_provider": _NoMeter()},
    "no tracer": {"tracer_provider": _NoMeter()},
    "a meter of an old API": {"meter_provider": _OldProvider()},
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_provider(
    family: Family, memory: Memory, server: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, its signal is not recorded, and the other one is."""
    providers: dict[str, Any] = {
        "meter_provider": memory.meter_provider,
        "tracer_provider": memory.tracer_provider,
    }
    HTTPXSSEInstrumentor().instrument(**{**providers, **BROKEN[how]})
    assert get(family, server) == BODY
    is_tracing = how == "no tracer"
    assert total(memory, "sse.client.stream.duration") == (1 if is_tracing else 0)
    assert len(spans(memory)) == (0 if is_tracing else 1)
    assert len(caplog.records) == 1


def test_what_many_instrumentations_are_given(memory: Memory) -> None:
    """Whoever switches on several at once may hand a logger provider to each: it is no unknown option here."""
    instrument(memory, logger_provider=None)
    assert HTTPXSSEInstrumentor._installation is not None
