"""Draw a dashboard with the components that Grafana itself uses, without a Grafana server.

    python -m tests.dashboards.look.render dashboards/grafana/dashboards/sse-overview.json http://localhost:9090 out.png

Runs every query of every panel against a Prometheus, bundles the answers with @grafana/ui and takes a picture
with headless Chromium. Draws timeseries, stat, table, text and row; the plugins of other types are not published.
Needs node, npm (460 MB of packages, installed once into `.cache/`) and Debian's `chromium`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.dashboards.lint import all_panels, fill

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "grafana-ui"
GRAFANA = "13.2.2"
PACKAGES = (
    "react@19",
    "react-dom@19",
    f"@grafana/ui@{GRAFANA}",
    f"@grafana/data@{GRAFANA}",
    f"@grafana/schema@{GRAFANA}",
    "esbuild",
    "rxjs@7",
)
BUNDLE = (
    "node_modules/.bin/esbuild",
    "page.tsx",
    "--bundle",
    "--outfile=page.js",
    "--format=iife",
    "--loader:.svg=text",
    "--loader:.ttf=dataurl",
    "--loader:.woff2=dataurl",
    '--define:process.env.NODE_ENV="development"',
    "--log-level=error",
)
CHROMIUM = (
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--virtual-time-budget=30000",
)
UNIT = 38
MARGIN = 16
WIDTH = 1616
PAGE = """<!doctype html><meta charset=utf-8>
<style>*{{box-sizing:border-box}}body{{margin:8px;position:relative}}</style>
<div id=root style="position:relative"></div>
<script>window.__grafana_public_path__="public/";window.grafanaBootData={{settings:{{buildInfo:{{}}}}}};
window.__BUNDLE__={payload}</script>
<link rel=stylesheet href="{folder}/page.css"><script src="{folder}/page.js"></script>"""


class Prometheus:
    """The part of the HTTP API that a panel needs."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def _get(self, path: str, **query: object) -> Any:
        url = f"{self._url}{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - the caller's own server
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode()[:300]) from error

    def instant(self, query: str, at: float) -> Any:
        return self._get("/api/v1/query", query=query, time=at)

    def range(self, query: str, start: float, end: float, step: int) -> Any:
        return self._get("/api/v1/query_range", query=query, start=start, end=end, step=step)


def answers(
    dashboard: Mapping[str, Any],
    prometheus: Prometheus,
    *,
    end: float,
    span: int,
    step: int,
    values: Mapping[str, str],
) -> dict[str, Any]:
    """What the server says to every query, by panel id and refId, the way a Grafana asks it."""
    macros = {"__range": f"{span}s", "__interval": f"{step}s", "__rate_interval": "1m", **values}
    found = {}
    for panel in all_panels(dashboard):
        for target in panel.get("targets", ()):
            query = fill(target["expr"], dashboard, macros)
            if target.get("instant"):
                found[f"{panel['id']}:{target['refId']}"] = prometheus.instant(query, end)
            else:
                found[f"{panel['id']}:{target['refId']}"] = prometheus.range(query, end - span, end, step)
    return found


def bundle() -> Path:
    """The page's script; made again when its source changes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    source = (HERE / "page.tsx").read_text(encoding="utf-8")
    if not (CACHE / "node_modules/@grafana/ui").exists():
        (CACHE / "package.json").write_text('{"private": true}', encoding="utf-8")
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=CACHE, check=True
        )
    built = CACHE / "page.tsx"
    if not (CACHE / "page.js").exists() or built.read_text(encoding="utf-8") != source:
        built.write_text(source, encoding="utf-8")
        subprocess.run(BUNDLE, cwd=CACHE, check=True)
    return CACHE


def height(dashboard: Mapping[str, Any]) -> int:
    lowest: int = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in all_panels(dashboard))
    return lowest * UNIT + MARGIN


def draw(dashboard: Mapping[str, Any], found: Mapping[str, Any], out: Path, **about: Any) -> None:
    folder = bundle()
    payload = json.dumps({"dashboard": dashboard, "results": found, **about}).replace("</", "<\\/")
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(PAGE.format(payload=payload, folder=folder), encoding="utf-8")
        window = f"--window-size={WIDTH},{height(dashboard)}"
        profile = f"--user-data-dir={scratch}/profile"
        subprocess.run(
            [*CHROMIUM, window, profile, f"--screenshot={out.resolve()}", page.as_uri()],
            check=True,
            capture_output=True,
            timeout=180,
        )


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.dashboards.look.render",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dashboard", type=Path)
    parser.add_argument("prometheus", help="its URL")
    parser.add_argument("out", type=Path, help="a PNG")
    parser.add_argument("--end", type=float, default=time.time(), help="seconds since 1970; now by default")
    parser.add_argument("--span", type=int, default=3600, help="seconds")
    parser.add_argument("--mode", choices=("dark", "light"), default="dark")
    parser.add_argument("--rate-interval", default="1m", help="what $__rate_interval stands for")
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE")
    return parser.parse_args(given)


def main() -> int:
    wanted = arguments()
    dashboard = json.loads(wanted.dashboard.read_text(encoding="utf-8"))
    chosen = dict(pair.split("=", 1) for pair in wanted.set)
    step = max(wanted.span // 240, 1)
    values = {"__rate_interval": wanted.rate_interval, **chosen}
    found = answers(
        dashboard, Prometheus(wanted.prometheus), end=wanted.end, span=wanted.span, step=step, values=values
    )
    for panel in all_panels(dashboard):
        for target in panel.get("targets", ()):
            count = len(found[f"{panel['id']}:{target['refId']}"]["result"])
            print(f"{count:4d} series  {panel['type']:12s} {panel['title']}")
    draw(
        dashboard,
        found,
        wanted.out,
        **{"from": wanted.end - wanted.span, "to": wanted.end},
        step=step,
        shown=chosen,
        mode=wanted.mode,
    )
    print("drawn:", wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
