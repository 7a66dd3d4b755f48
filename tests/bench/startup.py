"""What switching on costs: importing the package and calling `instrument()`, in fresh interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from statistics import median

from tests.bench.server import CHECKOUT

_TIMED = """
import json, time
import httpx, httpx2, opentelemetry.sdk.metrics, opentelemetry.sdk.trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
began = time.process_time()
from {module} import {name}
imported = time.process_time()
{name}().instrument(meter_provider=MeterProvider(), tracer_provider=TracerProvider(), skip_dep_check=True)
print(json.dumps([imported - began, time.process_time() - imported]))
"""

SWITCHES = {
    "ours": ("opentelemetry.instrumentation.httpx_sse", "HTTPXSSEInstrumentor"),
    "peer": ("opentelemetry.instrumentation.httpx", "HTTPXClientInstrumentor"),
}


@dataclass(frozen=True, slots=True)
class Startup:
    """Milliseconds of CPU time, in a program that has imported its HTTP library and the SDK."""

    import_ms: dict[str, float]
    instrument_ms: dict[str, float]


def measure_startup(rounds: int) -> Startup:
    """Medians of `rounds` interpreters for each."""
    told: dict[str, list[list[float]]] = {name: [] for name in SWITCHES}
    for _ in range(rounds):
        for name, (module, instrumentor) in SWITCHES.items():
            script = _TIMED.format(module=module, name=instrumentor)
            done = subprocess.run(
                [sys.executable, "-c", script], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True
            )
            told[name].append(json.loads(done.stdout))
    return Startup(
        {name: median(times[0] for times in all_) * 1000 for name, all_ in told.items()},
        {name: median(times[1] for times in all_) * 1000 for name, all_ in told.items()},
    )
