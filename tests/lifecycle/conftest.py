"""Each lifecycle test leaves the libraries as it found them."""

from collections.abc import Iterator

import pytest
from tests.conftest import FAMILIES
from tests.lifecycle.world import seam, serving

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server that answers everything with an event stream."""
    with serving() as url:
        yield url


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = {name: seam(family) for name, family in FAMILIES.items()}
    yield
    instrumentor = HTTPXSSEInstrumentor()
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()
    after = {name: seam(family) for name, family in FAMILIES.items()}
    assert all(after[name] is before[name] for name in before), after
