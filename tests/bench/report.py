"""The bench's table, in plain text."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.bench.held import Held
from tests.bench.startup import Startup
from tests.bench.times import Result


class Bar(NamedTuple):
    """What a case is held to: the ratio of CPU time with and without; of `g`, KiB a stream."""

    what: str
    must: float
    goal: float


BARS = {
    "a1": Bar("20,000 progress events, one a chunk", 1.12, 1.07),
    "a20": Bar("20,000 progress events, twenty a chunk", 1.35, 1.20),
    "b": Bar("20,000 tokens of a language model, one a chunk", 1.10, 1.05),
    "c": Bar("300 MCP calls answered with JSON", 1.08, 1.04),
    "d": Bar("300 calls that are no MCP", 1.01, 1.00),
    "e": Bar("events of 2 MiB", 1.05, 1.02),
    "f": Bar("5,000 progress events of a tool call", 1.03, 1.01),
    "g": Bar("1,000 streams open at once", 8, 4),
}

COLUMNS = "{:<4}{:<22}{:>9}  {:>6}{:>7}{:>7}{:>7}  {:>6}{:>7}  {}"


def machine() -> str:
    """What the figures were measured on."""
    found = re.search(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    names = ("httpx", "httpx2", "httpx-sse", "opentelemetry-sdk", "opentelemetry-instrumentation-httpx")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    processor = found.group(1) if found else platform.processor() or platform.machine()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} x {processor}, {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}\n{versions}\nload {load} at the end"
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def verdict(value: float, bar: Bar) -> str:
    if value <= bar.goal:
        return "goal"
    return "must" if value <= bar.must else "MISSED"


def table(results: Iterable[Result]) -> Iterable[str]:
    """The ratios, case by case."""
    yield COLUMNS.format("", "", "plain ms", "ours", "floor", "peer", "wall", "must", "goal", "")
    last = ""
    for row in results:
        bar = BARS[row.case]
        if row.case != last:
            yield f"({row.case}) {bar.what}"
            last = row.case
        cpu = row.cpu
        yield COLUMNS.format(
            "", row.title, f"{row.plain_ms:.1f}", f"{cpu['ours']:.3f}", f"{cpu['floor']:.3f}", f"{cpu['peer']:.3f}",
            f"{row.wall['ours']:.3f}", f"{bar.must:.2f}", f"{bar.goal:.2f}",
            "; ".join(filter(None, (verdict(cpu["ours"], bar), row.note))),
        ).rstrip()  # fmt: skip


def held(found: Held) -> Iterable[str]:
    bar = BARS["g"]
    kib = {mode: size / 1024 for mode, size in found.traced.items()}
    yield f"(g) {bar.what}: KiB a stream, traced (resident)"
    for mode, size in kib.items():
        yield f"    {mode:<22}{size:>9.2f}  ({found.resident[mode] / 1024:.2f})"
    yield f"    must {bar.must:.0f}, goal {bar.goal:.0f}: {verdict(kib['ours'], bar)}"


def startup(found: Startup) -> Iterable[str]:
    yield "(h) ms of CPU time"
    for mode, spent in found.import_ms.items():
        yield f"    {mode:<22}{spent:>9.1f} to import, {found.instrument_ms[mode]:.1f} to instrument()"


def growth(found: dict[str, dict[int, float]]) -> Iterable[str]:
    yield "(i) operations, by how much else there is"
    for curve, counts in found.items():
        yield f"    {curve}: " + ", ".join(f"{size:,}: {count:.1f}" for size, count in counts.items())


def text(parts: Sequence[Iterable[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts)
