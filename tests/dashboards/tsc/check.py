"""Check dashboards against the types that Grafana publishes, with the TypeScript compiler.

Every panel becomes a literal of the type that its plugin publishes, so that the compiler rejects an option that is
unknown, misspelt or of another kind. Grafana itself drops such an option without a word.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.dashboards.lint import all_panels

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[2] / ".cache" / "grafana-schema"
PACKAGES: Final = ("@grafana/schema@13.2.2", "typescript@5")
SETTINGS: Final = {
    "compilerOptions": {
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "target": "es2022",
        "module": "esnext",
        "moduleResolution": "bundler",
        "types": [],
    },
    "include": ["checked/*.ts"],
}
_FINDING: Final = re.compile(r"checked/(?P<file>\w+)\.ts\(\d+,\d+\): error (?P<text>.*)")


def available() -> bool:
    return shutil.which("npm") is not None


def findings(dashboards: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What the compiler says of each dashboard, by the names given."""
    _install()
    folder = CACHE / "checked"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, dashboard in dashboards.items():
        (folder / f"{name}.ts").write_text(_source(dashboard), encoding="utf-8")
    shutil.copy(HERE / "types.ts", CACHE / "types.ts")
    (CACHE / "tsconfig.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    compiler = CACHE / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([compiler], cwd=CACHE, check=False, capture_output=True, text=True, timeout=170)
    found: dict[str, list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        finding = _FINDING.match(line)
        if finding:
            found[finding["file"]].append(finding["text"])
        elif not line.startswith(" "):
            found["compiler"].append(line)
    return found


def _install() -> None:
    if not (CACHE / "node_modules" / "@grafana" / "schema").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text('{"private": true}', encoding="utf-8")
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=CACHE, check=True
        )


def _source(dashboard: Mapping[str, Any]) -> str:
    lines = ["import type * as types from '../types';"]
    outside = {key: value for key, value in dashboard.items() if key != "panels"}
    literals = {"dashboard": outside} | {
        f"panel{panel['id']}: {panel['type']}Panel": panel for panel in all_panels(dashboard)
    }
    for name, literal in literals.items():
        variable, _, kind = name.partition(": ")
        lines.append(
            f"export const {variable}: types.{kind or 'dashboard'} = {json.dumps(literal, indent=1)};"
        )
    return "\n".join(lines)
