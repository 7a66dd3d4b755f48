"""More sessions, streams and servers than the tables hold: memory and series stay bounded, and what is told is true.

The long form is `python -m tests.trust.bounds`.
"""

from typing import Final

import pytest
from tests.trust.bounds import GROWTH, KINDS, LEFT, MIXES, measured
from tests.trust.series import BUSY, QUIET, series

from opentelemetry.instrumentation.httpx_sse._names import SERIES_LIMIT
from opentelemetry.instrumentation.httpx_sse._options import Options

SHARE: Final = 0.025
EVICTED: Final[dict[str, set[str]]] = {
    "sessions": {"sessions"},
    "streams": {"streams"},
    "servers": set(),
}
"""The tables that so many walks fill; the servers of the short form all find room."""


@pytest.mark.parametrize("mix", [*MIXES, LEFT])
@pytest.mark.parametrize("kind", KINDS)
def test_more_than_is_held(kind: str, mix: str) -> None:
    """Every count is exact for what is still held, nothing overflows, evictions are counted, memory is bounded."""
    report = measured(kind, mix, SHARE)
    assert report.differences == {}
    assert report.overflows == 0
    assert report.most_series < SERIES_LIMIT
    assert report.growth < GROWTH
    assert EVICTED[kind] <= set(report.evictions)


@pytest.mark.parametrize("walks", [QUIET, BUSY])
def test_series_grow_with_the_servers_that_are_named_and_then_no_more(walks: int) -> None:
    """Two servers past the limit cost what one of them does: they share their series."""
    limit = Options().server_limit
    one, two = series(1, walks), series(2, walks)
    named, past, further = (series(limit + n, walks) for n in (0, 1, 2))
    assert named - one == (limit - 1) * (two - one)
    assert past - named == two - one
    assert further == past
