"""OpenTelemetry instrumentation that tells whether a Server-Sent-Events client really recovered."""

from .version import __version__

__all__ = ["__version__"]
