"""Each trust test leaves the libraries as it found them."""

from collections.abc import Iterator

import pytest
from tests.conftest import FAMILIES
from tests.lifecycle.world import seam

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._containment import Containment


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = {name: seam(family) for name, family in FAMILIES.items()}
    yield
    instrumentor = HTTPXSSEInstrumentor()
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()
    after = {name: seam(family) for name, family in FAMILIES.items()}
    assert all(after[name] is before[name] for name in before), after


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of ours are contained, as they are outside of a test suite."""
    monkeypatch.setattr(Containment, "strict_by_default", False)
