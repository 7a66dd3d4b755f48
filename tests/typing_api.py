"""The public interface as a consumer with a strict type checker sees it. Checked, never run."""

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, TracerProvider

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor, __version__


def hook(span: Span, verdict: object) -> None:
    """What `verdict_hook` takes."""


def everything(tracers: TracerProvider, meters: MeterProvider, client: object) -> str:
    """Every call of the public interface."""
    instrumentor = HTTPXSSEInstrumentor()
    instrumentor.instrument(
        tracer_provider=tracers,
        meter_provider=meters,
        idle_threshold=25.0,
        server_limit=16,
        capture_ids="hash",
        verdict_hook=hook,
    )
    HTTPXSSEInstrumentor.instrument_client(client, quiet_threshold=0.5)
    HTTPXSSEInstrumentor.uninstrument_client(client)
    instrumentor.uninstrument()
    return __version__
