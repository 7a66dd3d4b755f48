"""The price of an event and of a call does not depend on how much else there is or was."""

import pytest
from tests.bench.growth import CURVES

SLACK = 1.05
"""Bounded tables are tidied now and then, so an operation more or less is no growth."""


@pytest.mark.parametrize("curve", CURVES)
def test_flat(curve: str) -> None:
    cost, sizes = CURVES[curve]
    counts = {size: cost(size) for size in sizes}
    assert max(counts.values()) <= SLACK * min(counts.values()), counts
    assert min(counts.values()) > 0, counts
