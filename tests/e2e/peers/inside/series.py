"""The series that this process exposes to Prometheus at this moment."""

from __future__ import annotations

import sys

from tests.e2e.peers.plan import Sample


def series() -> list[Sample]:
    """Ours, as they would be scraped; none where nothing is instrumented."""
    prometheus = sys.modules.get("prometheus_client")
    if prometheus is None:
        return []
    return [
        (sample.name, sample.labels, sample.value)
        for family in prometheus.REGISTRY.collect()
        for sample in family.samples
        if sample.name.startswith(("sse_", "mcp_"))
    ]
