"""Scrape one Prometheus endpoint until standard input ends, then print every scrape as JSON.

    python -m tests.e2e.demo.watch http://127.0.0.1:9464/metrics

A process of its own: a scrape must not wait for whoever started it, and the parser is Prometheus' own.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

INTERVAL = 0.3
OURS = ("sse_", "mcp_")

Sample = tuple[str, dict[str, str], float]


def scrape(url: str) -> list[Sample] | None:
    """Our series at this moment, or None when nothing listens, yet or any more."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - a loopback address of ours
            text = response.read().decode("utf-8")
    except (urllib.error.URLError, ConnectionError):
        return None
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(OURS) and not sample.name.endswith("_bucket")
    ]


def main() -> None:
    over = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(over,), daemon=True).start()
    scrapes: list[list[Sample]] = []
    while not over.wait(INTERVAL):
        found = scrape(sys.argv[1])
        if found is not None:
            scrapes.append(found)
    print(json.dumps(scrapes))


def _wait_for_the_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


if __name__ == "__main__":
    main()
