"""A scrape target without a client: an HTTP server that shows what a test says, in Prometheus' own format."""

import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dashboards.catalogue import METRICS, exported, label

from opentelemetry.instrumentation.httpx_sse import _names

SERVER: Final = {"server_address": "mcp.example.com", "server_port": "443"}


@dataclass(slots=True)
class Imitation:
    """Series by metric and label values; every zeroed one is there from the start."""

    address: str = ""
    values: dict[tuple[str, tuple[str, ...]], float] = field(
        default_factory=lambda: {(m.name, labels): 0.0 for m in METRICS.values() for labels in m.zeroed}
    )

    def add(self, metric: str, *labels: str, by: float = 1) -> None:
        """Count."""
        self.values[metric, labels] = self.values.get((metric, labels), 0) + by

    def set(self, metric: str, *labels: str, to: float) -> None:
        """Show a gauge."""
        self.values[metric, labels] = to

    def text(self) -> str:
        """The exposition."""
        lines = []
        for (name, labels), value in sorted(self.values.items()):
            metric = METRICS[name]
            pairs: Mapping[str, str] = {
                **(SERVER if metric.by_server else {}),
                **dict(zip(map(label, metric.attributes), labels, strict=True)),
                "otel_scope_name": _names.SCOPE,
            }
            shown = ",".join(f'{key}="{val}"' for key, val in pairs.items())
            lines.append(f"{exported(metric)}{{{shown}}} {value}\n")
        return "".join(lines)


@contextmanager
def imitation(tick: Callable[[Imitation], None] | None = None) -> Iterator[Imitation]:
    """Serve one on a loopback port; `tick` is called before each scrape."""
    shown = Imitation()

    class Handler(http.server.BaseHTTPRequestHandler):
        """Shows the series."""

        def do_GET(self) -> None:
            if tick is not None:
                tick(shown)
            body = shown.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shown.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield shown
        finally:
            server.shutdown()
            thread.join()
