"""Series of one process, by the servers that it talks to, as a Prometheus sees them.

python -m tests.trust.series
"""

from typing import Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import REGISTRY, generate_latest
from tests.trust.bounds import Host, Walk, apart

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

SERVERS: Final = (1, 3, 16)
"""One, some, and as many as are named unless another `server_limit` is given."""
QUIET: Final = 1
BUSY: Final = 60
"""Walks on each server: with one, a stream was cut and resumed; with so many, all that can happen on a walk has."""


def series(servers: int, walks: int) -> int:
    """Series that a process exports after so many walks on each of its servers."""
    before = _samples()
    provider = MeterProvider([PrometheusMetricReader()], shutdown_on_exit=False)
    HTTPXSSEInstrumentor().instrument(meter_provider=provider, tracer_provider=TracerProvider())
    try:
        host = Host()
        for server in range(servers):
            apart(host, [Walk(n, host=f"server-{server}.test") for n in range(1, walks + 1)])
        _samples()
        return _samples() - before
    finally:
        HTTPXSSEInstrumentor().uninstrument()
        provider.shutdown()


def _samples() -> int:
    return sum(bool(line) and not line.startswith(b"#") for line in generate_latest(REGISTRY).splitlines())


def main() -> None:
    for servers in SERVERS:
        quiet, busy = series(servers, QUIET), series(servers, BUSY)
        print(f"{servers} servers: {quiet} series when quiet, {busy} when busy")


if __name__ == "__main__":
    main()
