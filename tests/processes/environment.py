"""The environment of these tests: exporters that push, and servers that have several workers."""

from pathlib import Path

from tests.e2e import environments

NAME = "processes"
environments.ENVIRONMENTS.setdefault(
    NAME,
    environments.Environment(
        (
            "opentelemetry-exporter-otlp-proto-http >= 1.37",
            "opentelemetry-sdk-extension-prometheus-multiprocess >= 1.4",
            "httpx >= 0.28, < 1",
            "uvicorn >= 0.30",
            "gunicorn >= 23",
        )
    ),
)


def python() -> Path:
    """Its interpreter; the environment is made if it is not there."""
    return environments.python_of(NAME)
