"""OpenTelemetry instrumentation that tells whether a Server-Sent-Events client really recovered.

Switched on by `opentelemetry-instrument`, or by hand:

    from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

    HTTPXSSEInstrumentor().instrument()
"""

from ._instrumentor import HTTPXSSEInstrumentor
from .version import __version__

__all__ = ["HTTPXSSEInstrumentor", "__version__"]
