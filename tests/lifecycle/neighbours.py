"""A program with everybody who traces httpx in it, in every order; run in an environment that has them.

python -m tests.lifecycle.neighbours http://127.0.0.1:8000

Prints one JSON object a line: an order, and what each was told by each family of clients, with all of them and after
ours has left. Each order has a process of its own, since not everybody can be taken out again.
"""

import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import permutations
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from tests.conftest import FAMILIES, in_memory
from tests.lifecycle.world import BODY, get, instrument, seam, streams, uninstrument

# Installed in the environment of this program only.
ddtrace: Any = import_module("ddtrace")
logfire: Any = import_module("logfire")
sentry: Any = import_module("sentry_sdk")

Told = Callable[[], int]
"""How many requests or streams somebody has seen until now."""


def ours() -> Told:
    memory = in_memory()
    instrument(memory)
    return lambda: int(streams(memory))


class _Spans(SpanProcessor):
    """Counts the spans of HTTP requests."""

    def __init__(self) -> None:
        self.count = 0

    def on_end(self, span: ReadableSpan) -> None:
        self.count += not {"http.request.method", "http.method"}.isdisjoint(span.attributes or {})


def with_logfire() -> Told:
    """Logfire stands on the instrumentation of OpenTelemetry's contrib."""
    spans = _Spans()
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[spans])
    logfire.instrument_httpx()
    return lambda: spans.count


def with_sentry() -> Told:
    seen: list[Any] = []

    def keep(event: Any, _: Any) -> None:
        seen.extend(span for span in event["spans"] if span["op"] == "http.client")

    sentry.init(
        dsn="http://key@127.0.0.1:9/1",
        default_integrations=False,
        integrations=[
            import_module("sentry_sdk.integrations.httpx").HttpxIntegration(),
            import_module("sentry_sdk.integrations.httpx2").Httpx2Integration(),
        ],
        traces_sample_rate=1.0,
        before_send_transaction=keep,
    )
    return lambda: len(seen)


def with_ddtrace() -> Told:
    seen: list[Any] = []

    class Keep(import_module("ddtrace.trace").TraceFilter):  # type: ignore[misc]
        def process_trace(self, trace: Any) -> None:
            """Kept here, and sent nowhere."""
            seen.extend(span for span in trace if span.name == "http.request")

    ddtrace.tracer.configure(trace_processors=[Keep()])
    ddtrace.patch(httpx=True, httpx2=True)
    return lambda: len(seen)


EVERYBODY: Final[dict[str, Callable[[], Told]]] = {
    "ours": ours,
    "logfire": with_logfire,
    "sentry": with_sentry,
    "ddtrace": with_ddtrace,
}


def play(order: tuple[str, ...], url: str) -> dict[str, Any]:
    """All are installed in this order; every family asks once; ours leaves; every family asks again."""
    originals = {name: seam(family) for name, family in FAMILIES.items()}
    told = {name: EVERYBODY[name]() for name in order}
    found: dict[str, Any] = {"order": order}
    for phase in ("together", "without ours"):
        before = Counter({name: count() for name, count in told.items()})
        for family in FAMILIES.values():
            with sentry.start_transaction(name="walk"):
                assert get(family, url) == BODY, family
        found[phase] = {name: count() - before[name] for name, count in told.items()}
        if phase == "together":
            uninstrument()
    found["left behind"] = [n for n, family in FAMILIES.items() if _is_ours(seam(family), originals[n])]
    return found


def _is_ours(now: Any, original: Any) -> bool:
    """Whether something of ours stands between the seam and the original."""
    while now is not original:
        if "httpx_sse" in getattr(now, "__module__", ""):
            return True
        now = now.__wrapped__
    return False


def main(url: str) -> int:
    failed = 0
    for order in permutations(EVERYBODY):
        child = os.fork()
        if not child:
            code = 1
            try:
                print(json.dumps(play(order, url)), flush=True)
                code = 0
            except BaseException:  # noqa: BLE001 - this process must not go on as its parent
                traceback.print_exc()
            finally:
                os._exit(code)
        failed += os.waitpid(child, 0)[1] != 0
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
