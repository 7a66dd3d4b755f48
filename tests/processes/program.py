"""What is started in the environment of these tests: a program with children, in several ways.

python program.py HOW URL        URL is that of a server of event streams; HOW is a function below

Each process resumes one stream in vain as often as it is told, so that each has a number of its own to tell.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import urllib.request
from importlib import import_module
from typing import Any

import httpx
from opentelemetry.metrics import get_meter_provider

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor

PARENT, CHILD = 1, 2
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
    "Mcp-Session-Id": "s",
}


def resume_in_vain(url: str, times: int) -> None:
    """A call whose stream ends early, and so many resumes that bring nothing."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
    with httpx.Client(trust_env=False, timeout=10) as client:
        client.post(url, json=call, headers=HEADERS)
        for _ in range(times):
            client.get(url, headers={**HEADERS, "Last-Event-ID": "e1"})


def flush() -> None:
    """Push now. A Prometheus reader is not asked: its exporter would show what it was made to collect twice."""
    if os.environ.get("OTEL_METRICS_EXPORTER") != "otlp":
        return
    force_flush = getattr(get_meter_provider(), "force_flush", None)
    if force_flush is not None:
        force_flush()


def tell(**facts: object) -> None:
    """One line of JSON, whole, whoever else prints."""
    os.write(1, json.dumps({"pid": os.getpid(), "watched": watched(), **facts}).encode() + b"\n")


def watched() -> bool:
    return HTTPXSSEInstrumentor._installation is not None


def work(url: str, times: int = CHILD) -> None:
    """What a child does."""
    resume_in_vain(url, times)
    flush()
    tell(role="child")


def scraped() -> dict[str, float]:
    """What this process's own endpoint says."""
    port = os.environ.get("OTEL_EXPORTER_PROMETHEUS_PORT")
    if port is None:
        return {}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    name = "sse_client_empty_replays_total"
    numbers = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + "{")]
    return {name: sum(numbers)}


def alone(url: str) -> None:
    work(url)


def subprocesses(url: str) -> None:
    subprocess.run([sys.executable, __file__, "alone", url], check=True)
    resume_in_vain(url, PARENT)


def fork(url: str) -> None:
    child = os.fork()
    if not child:
        work(url)
        os._exit(0)
    os.waitpid(child, 0)
    resume_in_vain(url, PARENT)


def pool(url: str, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    child = context.Process(target=work, args=(url,))
    child.start()
    child.join()
    resume_in_vain(url, PARENT)


def pool_fork(url: str) -> None:
    pool(url, "fork")


def pool_spawn(url: str) -> None:
    pool(url, "spawn")


def shared_directory(url: str) -> None:
    """The kept library for scraping several workers: each writes its counters into a directory that all share."""
    extension = import_module("opentelemetry.sdk.extension.prometheus_multiprocess")
    HTTPXSSEInstrumentor().instrument(meter_provider=extension.PrometheusMeterProvider())
    fork(url)


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A web application whose worker resumes in vain once a request, and says who it is."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    resume_in_vain(os.environ["STREAMS"], 1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})


def wsgi(_: dict[str, Any], start_response: Any) -> list[bytes]:
    """Same as asgi."""
    resume_in_vain(os.environ["STREAMS"], 1)
    start_response("200 OK", [])
    return [str(os.getpid()).encode()]


if __name__ == "__main__":
    how = {f.__name__: f for f in (alone, subprocesses, fork, pool_fork, pool_spawn, shared_directory)}
    how[sys.argv[1]](sys.argv[2])
    if sys.argv[1] != alone.__name__:
        flush()
        tell(role="parent", scraped=scraped() if watched() else {})
