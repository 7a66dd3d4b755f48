"""Beside the real others: logfire, which stands on contrib's instrumentation, sentry-sdk and ddtrace."""

import json
import os
import subprocess
from math import factorial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import FAMILIES
from tests.e2e import environments

NAME: Final = "neighbours"
environments.ENVIRONMENTS.setdefault(
    NAME,
    environments.Environment(
        (
            "logfire >= 5",
            "sentry-sdk >= 2.75",
            "ddtrace >= 4.16",
            "opentelemetry-instrumentation-httpx >= 0.66b0",
            "httpx >= 0.28, < 1",
            "httpx2 >= 2, < 3",
            "pytest >= 8.3",
            "anyio >= 4",
            "trio >= 0.30",
        )
    ),
)
EVERYBODY: Final = ("ours", "logfire", "sentry", "ddtrace")
QUIET: Final = {
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    "DD_TRACE_AGENT_URL": "http://127.0.0.1:9",
}
"""Nobody calls home."""


@pytest.fixture(scope="module")
def told(server: str) -> list[dict[str, Any]]:
    """What everybody was told, by order."""
    command = [str(environments.python_of(NAME)), "-m", "tests.lifecycle.neighbours", server]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **QUIET},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_in_every_order_each_sees_every_request_once(told: list[dict[str, Any]]) -> None:
    """Whoever came first: each of the four is told of one request by each family, and of the same stream once."""
    assert len({tuple(one["order"]) for one in told}) == factorial(len(EVERYBODY))
    for one in told:
        assert one["together"] == dict.fromkeys(EVERYBODY, len(FAMILIES)), one["order"]


def test_ours_leaves_from_between_the_others(told: list[dict[str, Any]]) -> None:
    """Wherever it stood, nothing of it is left at the seam, and the others see what they saw before."""
    for one in told:
        assert one["without ours"] == {**dict.fromkeys(EVERYBODY, len(FAMILIES)), "ours": 0}, one["order"]
        assert one["left behind"] == [], one["order"]
