"""With others on the same seam: whoever comes or goes first, each works while it is there, and leaves no trace."""

import copy
import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest
import wrapt
from tests.conftest import Family, Memory
from tests.lifecycle.world import BODY, done, get, instrument, owner, seam, spans, streams, uninstrument

from opentelemetry.instrumentation import httpx as contrib
from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor, _guided

Undo = Callable[[], None]


def install_contrib(family: Family, memory: Memory) -> Undo:
    """The HTTP instrumentation of the same library, on the same providers."""
    name = "HTTPXClientInstrumentor" if family.library == "httpx" else "HTTPX2ClientInstrumentor"
    kind = getattr(contrib, name, None)
    if kind is None:
        pytest.skip(f"this opentelemetry-instrumentation-httpx has no {name}")
    instrumentor = kind()
    instrumentor.instrument(tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider)
    undo: Undo = instrumentor.uninstrument
    return undo


def install_ours(family: Family, memory: Memory) -> Undo:
    instrument(memory)
    return uninstrument


BOTH = {"ours": install_ours, "contrib": install_contrib}


@pytest.mark.parametrize("leaves", ["ours", "contrib"])
@pytest.mark.parametrize("comes", ["ours", "contrib"])
def test_contrib_comes_and_goes_in_any_order(
    family: Family, memory: Memory, server: str, comes: str, leaves: str
) -> None:
    """Both record while both are there, the one that stays goes on, and at the end the original is back."""
    original = seam(family)
    second = next(name for name in BOTH if name != comes)
    stays = next(name for name in BOTH if name != leaves)
    undo = {name: BOTH[name](family, memory) for name in (comes, second)}

    assert get(family, server) == BODY
    assert (len(spans(memory)), len(spans(memory, "GET"))) == (1, 1)

    undo[leaves]()
    memory.exporter.clear()
    assert get(family, server) == BODY
    assert (len(spans(memory)), len(spans(memory, "GET"))) == (stays == "ours", stays == "contrib")

    undo[stays]()
    memory.exporter.clear()
    assert get(family, server) == BODY
    assert memory.exporter.get_finished_spans() == ()
    assert seam(family) is original


@pytest.mark.parametrize("comes", ["ours", "contrib"])
def test_the_http_span_is_the_parent(family: Family, memory: Memory, server: str, comes: str) -> None:
    """The span of a stream is a child of the HTTP span of its request, whoever was installed first."""
    second = next(name for name in BOTH if name != comes)
    undo = [BOTH[name](family, memory) for name in (comes, second)]
    get(family, server)
    for one in undo:
        one()
    (stream,), (http,) = spans(memory), spans(memory, "GET")
    assert stream.parent is not None
    assert stream.parent.span_id == http.context.span_id
    assert stream.context.trace_id == http.context.trace_id


def wrap_with_wrapt(target: Any, name: str, calls: list[str]) -> None:
    def wrapper(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        calls.append("called")
        return wrapped(*args, **kwargs)

    wrapt.wrap_function_wrapper(target, name, wrapper)


def wrap_plainly(target: Any, name: str, calls: list[str]) -> None:
    inner = vars(target)[name]

    @functools.wraps(inner)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls.append("called")
        return inner(*args, **kwargs)

    setattr(target, name, wrapper)


WRAPPERS: dict[str, Callable[[Any, str, list[str]], None]] = {
    "wrapt": wrap_with_wrapt,
    "plain": wrap_plainly,
}


@pytest.mark.parametrize("how", WRAPPERS)
def test_a_wrapper_that_was_there_before(family: Family, memory: Memory, server: str, how: str) -> None:
    """It is called once a request with ours and after ours has left, and comes off as it went on."""
    original, calls = seam(family), list[str]()
    target, method = owner(family)
    WRAPPERS[how](target, method, calls)
    theirs = seam(family)
    try:
        instrument(memory)
        assert get(family, server) == BODY
        assert (len(calls), streams(memory)) == (1, 1)
        uninstrument()
        assert seam(family) is theirs
        assert get(family, server) == BODY
        assert (len(calls), streams(memory)) == (2, 1)
    finally:
        setattr(target, method, original)


def test_a_wrapt_wrapper_that_came_after(family: Family, memory: Memory, server: str) -> None:
    """Ours is taken out from under it, and the original stands there again."""
    original, calls = seam(family), list[str]()
    target, method = owner(family)
    instrument(memory)
    wrap_with_wrapt(target, method, calls)
    try:
        assert get(family, server) == BODY
        assert (len(calls), streams(memory)) == (1, 1)
        uninstrument()
        assert seam(family).__wrapped__ is original
        assert get(family, server) == BODY
        assert (len(calls), streams(memory)) == (2, 1)
    finally:
        setattr(target, method, original)


def test_a_plain_wrapper_that_came_after(
    family: Family, memory: Memory, server: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours cannot be reached under it: it stays, lets everything pass, and says so once at debug level."""
    original, calls = seam(family), list[str]()
    target, method = owner(family)
    instrument(memory)
    wrap_plainly(target, method, calls)
    try:
        with caplog.at_level(logging.DEBUG, logger="opentelemetry.instrumentation.httpx_sse"):
            uninstrument()
        said = [record for record in caplog.records if "hides ours" in record.getMessage()]
        assert [record.levelname for record in said] == ["DEBUG"]
        assert get(family, server) == BODY
        assert (len(calls), streams(memory)) == (1, 0)
    finally:
        setattr(target, method, original)


def test_installed_again_over_a_plain_wrapper(family: Family, memory: Memory, server: str) -> None:
    """The one that stayed behind does not count the same stream a second time."""
    original, calls = seam(family), list[str]()
    target, method = owner(family)
    instrument(memory)
    wrap_plainly(target, method, calls)
    theirs = seam(family)
    try:
        uninstrument()
        for times in range(1, 4):
            instrument(memory)
            assert get(family, server) == BODY
            assert (len(calls), streams(memory)) == (times, times)
            uninstrument()
            assert seam(family) is theirs
    finally:
        setattr(target, method, original)


@pytest.mark.parametrize("guard", [False, True])
def test_whoever_wraps_ours_sees_the_librarys_own_stream(family: Family, memory: Memory, guard: bool) -> None:
    """What an outer transport is given is of its own class, shows itself as itself, and so does a copy of it."""
    library = family.module

    class Stream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc,name-defined]
        pass

    own = Stream()
    answer = library.Response(200, headers={"content-type": "text/event-stream"}, stream=own)
    transport = library.MockTransport(lambda _: answer)
    client = family.client(transport=transport)
    HTTPXSSEInstrumentor.instrument_client(
        client, tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider, guard=guard
    )
    send = transport.handle_async_request if family.is_async else transport.handle_request
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    asked = library.Request("POST", "http://server.test/", headers={"Mcp-Session-Id": "s"}, json=call)
    seen = family.run(lambda: done(send(asked))).stream

    assert seen is not own
    assert isinstance(seen, Stream)
    assert guard == (type(seen).__module__ == _guided.__name__)
    assert repr(seen) == repr(own)
    assert [type(again) for again in (copy.copy(seen), copy.deepcopy(seen))] == [Stream, Stream]
