"""What the lifecycle tests share: the seam, a server of event streams, one way to fetch, and telemetry to ask."""

import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from tests.conftest import Family, Memory

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

CHECKOUT: Final = Path(__file__).resolve().parents[2]
EVENT: Final = b"id: 1\ndata: hello\n\n"
BODY: Final = EVENT * 3
SYNC: Final = ("HTTPTransport", "handle_request")
ASYNC: Final = ("AsyncHTTPTransport", "handle_async_request")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Three events; `/many/<n>`: n events, each in an HTTP chunk of its own."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if not self.path.startswith("/many/"):
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(int(self.path.rpartition("/")[2])):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that goes away in the middle is no news here."""


@contextmanager
def serving() -> Iterator[str]:
    """A loopback server; its URL without a slash at the end."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def apart(script: str, *, seconds: float) -> str:
    """What a script prints that has a process for itself, which must end by itself within so many seconds."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        timeout=seconds,
    )
    return done.stdout


def owner(family: Family) -> tuple[Any, str]:
    """The class whose method is the seam of a family, and that method's name."""
    name, method = ASYNC if family.is_async else SYNC
    return getattr(family.module, name), method


def seam(family: Family) -> Any:
    """What stands at the seam now."""
    transport, method = owner(family)
    return vars(transport)[method]


def instrument(memory: Memory, **options: Any) -> None:
    """Switch on with providers in memory."""
    HTTPXSSEInstrumentor().instrument(
        tracer_provider=memory.tracer_provider, meter_provider=memory.meter_provider, **options
    )


def uninstrument() -> None:
    HTTPXSSEInstrumentor().uninstrument()


async def done(value: Any) -> Any:
    """The value, waited for where it has to be."""
    return await value if inspect.isawaitable(value) else value


async def fetch(
    family: Family, url: str, *, client: Any = None, headers: dict[str, str] | None = None
) -> bytes:
    """The body of a GET, by a client that is closed afterwards unless it is given."""
    ours = client if client is not None else family.client(verify=False)
    try:
        response = await done(ours.get(url, headers=headers or {}))
        content: bytes = response.content
        return content
    finally:
        if client is None:
            await done(ours.aclose() if family.is_async else ours.close())


def get(family: Family, url: str) -> bytes:
    """A GET by a new client."""
    return family.run(lambda: fetch(family, url))


def spans(memory: Memory, prefix: str = "sse.stream") -> list[ReadableSpan]:
    """Finished spans whose name begins so."""
    return [span for span in memory.exporter.get_finished_spans() if span.name.startswith(prefix)]


def total(memory: Memory, metric: str, **labels: str) -> float:
    """The sum of a metric's points that carry all labels; of a histogram, its recordings."""
    wanted = {name.replace("_", "."): value for name, value in labels.items()}
    found = 0.0
    data = memory.reader.get_metrics_data()
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for one in scope.metrics:
                for point in one.data.data_points if one.name == metric else ():
                    if wanted.items() <= dict(point.attributes or {}).items():
                        found += point.count if hasattr(point, "count") else getattr(point, "value", 0)
    return found


def streams(memory: Memory) -> float:
    """Streams that ended, by the metric."""
    return total(memory, "sse.client.stream.duration")
