"""The guard around a transport of one's own, and how it is switched on."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import Family, Memory
from tests.guard.wire import PRIME, McpClient, request
from tests.guard.world import guarded
from tests.lifecycle.world import total

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._options import read_options
from opentelemetry.instrumentation.httpx_sse.guard import AsyncGuardTransport, GuardTransport

CALL = request(1)


def mock(family: Family) -> tuple[Any, list[Any]]:
    """A transport without any network, and what reached it: every resume is empty."""
    seen: list[Any] = []

    def handle(asked: Any) -> Any:
        seen.append(asked)
        if asked.method == "GET":
            return family.module.Response(
                200, headers={"content-type": "text/event-stream"}, stream=Nothing()
            )
        body = json.loads(asked.content)
        if body.get("method") == "ping":
            return family.module.Response(200, json={"jsonrpc": "2.0", "id": body["id"], "result": {}})
        stream = family.module.ByteStream(PRIME)
        return family.module.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

    library = family.module

    class Nothing(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            return iter(())

        async def __aiter__(self) -> Any:
            nothing: tuple[bytes, ...] = ()
            for chunk in nothing:
                yield chunk

    return family.module.MockTransport(handle), seen


def wrapped(family: Family, transport: Any, **options: Any) -> Any:
    kind: Callable[..., Any] = AsyncGuardTransport if family.is_async else GuardTransport
    return kind(transport, **options)


def resumes(family: Family, transport: Any) -> list[bool]:
    """Whether each of four resumes ended with the guard's error."""

    async def play() -> list[bool]:
        client = McpClient(family, "http://server/mcp", family.client(transport=transport))
        await client.post(CALL)
        got = [await client.get("e1") for _ in range(4)]
        await client.close()
        return [bool(each.failure) for each in got]

    return family.run(play)


def test_any_transport_can_be_guarded(family: Family, memory: Memory) -> None:
    """A mock, too; what is counted goes where it is told to go."""
    transport, seen = mock(family)
    guard = wrapped(
        family, transport, meter_provider=memory.meter_provider, tracer_provider=memory.tracer_provider
    )

    assert resumes(family, guard) == [False, False, True, True]
    assert sum(asked.method == "GET" for asked in seen) == 3
    assert total(memory, "sse.client.guard.actions", sse_guard_action="breaker_opened") == 1
    assert list(guard.quarantine) == []


def test_it_is_an_instance_of_its_librarys_own_class(family: Family) -> None:
    """And has everything that the wrapped transport has."""
    transport, _ = mock(family)
    guard = wrapped(family, transport)
    base = family.module.AsyncBaseTransport if family.is_async else family.module.BaseTransport

    assert isinstance(guard, base)
    assert isinstance(guard, AsyncGuardTransport if family.is_async else GuardTransport)
    assert guard.handler is transport.handler


def test_it_shares_the_ledger_of_instrument(family: Family, memory: Memory) -> None:
    """Whether that has a guard itself or not: everything is watched once."""
    for guard in (False, True):
        transport, _ = mock(family)
        with guarded(memory, guard=guard):
            assert resumes(family, wrapped(family, transport)) == [False, False, True, True]
        assert total(memory, "sse.client.reconnects") == 4 * (1 + guard)


def test_without_instrument_and_options_it_guards_in_silence(family: Family) -> None:
    """There need be no telemetry at all."""
    transport, _ = mock(family)

    assert resumes(family, wrapped(family, transport)) == [False, False, True, True]


def test_one_client_can_be_guarded(family: Family, memory: Memory) -> None:
    """`instrument_client(client, guard=True)`."""
    transport, _ = mock(family)
    client = family.client(transport=transport)
    HTTPXSSEInstrumentor.instrument_client(client, guard=True, meter_provider=memory.meter_provider)

    async def play() -> list[bool]:
        mcp = McpClient(family, "http://server/mcp", client)
        await mcp.post(CALL)
        got = [await mcp.get("e1") for _ in range(4)]
        await mcp.close()
        return [bool(each.failure) for each in got]

    assert family.run(play) == [False, False, True, True]
    HTTPXSSEInstrumentor.uninstrument_client(client)


def test_unknown_options_are_errors() -> None:
    """As they are for `instrument()`."""
    with pytest.raises(TypeError, match="guard_max_staled"):
        GuardTransport(None, guard_max_staled=1)


# ------------------------------------------------------------------ options


def test_options_come_from_the_environment() -> None:
    """Each in its own variable."""
    options = read_options(
        {},
        {
            "OTEL_PYTHON_HTTPX_SSE_GUARD": "on",
            "OTEL_PYTHON_HTTPX_SSE_GUARD_MAX_STALLED": "5",
            "OTEL_PYTHON_HTTPX_SSE_GUARD_PROBE": "off",
            "OTEL_PYTHON_HTTPX_SSE_GUARD_INCONCLUSIVE": "release",
            "OTEL_PYTHON_HTTPX_SSE_GUARD_DISABLED": "prompt_dropped, breaker_opened",
            "OTEL_PYTHON_HTTPX_SSE_GUARD_DRY_RUN": "on",
        },
    )

    assert options.guard
    assert options.guard_max_stalled == 5
    assert not options.guard_probe
    assert options.guard_inconclusive == "release"
    assert options.guard_disabled == {"prompt_dropped", "breaker_opened"}
    assert options.guard_dry_run


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MAX_STALLED", "0"), ("MAX_STALLED", "x"), ("INCONCLUSIVE", "maybe"), ("DISABLED", "brakes")],
)
def test_an_unusable_value_is_one_warning_and_the_default(
    variable: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Never a crash."""
    assert read_options({}, {f"OTEL_PYTHON_HTTPX_SSE_GUARD_{variable}": value}) == read_options({}, {})
    assert len(caplog.records) == 1
