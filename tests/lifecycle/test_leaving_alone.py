"""What is left alone: excluded URLs, suppressed contexts, a disabled SDK."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from opentelemetry.instrumentation.utils import suppress_http_instrumentation, suppress_instrumentation
from tests.conftest import Family, Memory, in_memory
from tests.lifecycle.world import BODY, fetch, get, instrument, spans, streams

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

Suppress = Callable[[], AbstractContextManager[Any]]

EXCLUSIONS = {
    "keyword": ({"excluded_urls": "nowhere, /private"}, {}),
    "own variable": ({}, {"OTEL_PYTHON_HTTPX_SSE_EXCLUDED_URLS": "/private"}),
    "general variable": ({}, {"OTEL_PYTHON_EXCLUDED_URLS": "/priv.te,other"}),
    "own before general": (
        {},
        {"OTEL_PYTHON_HTTPX_SSE_EXCLUDED_URLS": "/private", "OTEL_PYTHON_EXCLUDED_URLS": "/public"},
    ),
    "keyword before all": (
        {"excluded_urls": "/private"},
        {"OTEL_PYTHON_HTTPX_SSE_EXCLUDED_URLS": "/public", "OTEL_PYTHON_EXCLUDED_URLS": "/public"},
    ),
}


@pytest.mark.parametrize("how", EXCLUSIONS)
def test_excluded_urls(
    family: Family, memory: Memory, server: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL that matches is left alone, any other is watched."""
    keywords, variables = EXCLUSIONS[how]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    instrument(memory, **keywords)
    assert get(family, f"{server}/private") == BODY
    assert (streams(memory), len(spans(memory))) == (0, 0)
    assert get(family, f"{server}/public") == BODY
    assert (streams(memory), len(spans(memory))) == (1, 1)


@pytest.mark.parametrize(
    ("suppress", "expected"), [(suppress_instrumentation, 0), (suppress_http_instrumentation, 1)]
)
def test_suppression(family: Family, memory: Memory, server: str, suppress: Suppress, expected: int) -> None:
    """Under `suppress_instrumentation` nothing is recorded; when only HTTP spans are suppressed, all of it is."""
    instrument(memory)

    async def play() -> bytes:
        with suppress():
            return await fetch(family, server)

    assert family.run(play) == BODY
    assert (streams(memory), len(spans(memory))) == (expected, expected)
    assert get(family, server) == BODY
    assert streams(memory) == expected + 1


def test_a_disabled_sdk(family: Family, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `OTEL_SDK_DISABLED` the client gets what it always got, and nobody hears of it."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    memory = in_memory()
    instrument(memory)
    assert get(family, server) == BODY
    assert (streams(memory), spans(memory)) == (0, [])


def test_no_providers_at_all(family: Family, server: str) -> None:
    """Without any SDK set up, the API's own no-op providers do."""
    HTTPXSSEInstrumentor().instrument()
    assert get(family, server) == BODY
