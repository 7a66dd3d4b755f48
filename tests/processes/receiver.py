"""An OTLP receiver: takes `ExportMetricsServiceRequest`s over HTTP and tells what each instance has sent last.

Run with the interpreter of the environment of these tests; the first line that it prints is its port.
`POST /v1/metrics` is the protocol's own address, `GET /` tells, as JSON: instance id to metric to number.
"""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

_SERVICE: Any = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")

_seen: dict[str, dict[str, float]] = {}
_lock = threading.Lock()


def take(request: Any) -> None:
    """Counts are cumulative: the newest number of each instance stands."""
    for resource in request.resource_metrics:
        about = {a.key: a.value.string_value for a in resource.resource.attributes}
        numbers: dict[str, float] = {}
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = metric.sum.data_points or metric.gauge.data_points
                total = sum(p.as_int or p.as_double for p in points)
                total += sum(p.count for p in metric.histogram.data_points)
                numbers[metric.name] = total
        with _lock:
            _seen[about.get("service.instance.id", "")] = numbers


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path != "/v1/metrics" or self.headers["Content-Type"] != "application/x-protobuf":
            self._reply(400, b"", "text/plain")
            return
        request = _SERVICE.ExportMetricsServiceRequest()
        request.ParseFromString(body)
        take(request)
        answer = _SERVICE.ExportMetricsServiceResponse().SerializeToString()
        self._reply(200, answer, "application/x-protobuf")

    def do_GET(self) -> None:
        with _lock:
            body = json.dumps(_seen).encode()
        self._reply(200, body, "application/json")

    def _reply(self, status: int, body: bytes, media: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    sys.stdin.close()
    server.serve_forever()
