"""The runbooks: written by hand, except for the table of numbers at the end of each, which is the settings'.

They are written out as files to be served anywhere, and as pages that Grafana shows: so the link in an alert
leads somewhere as soon as the dashboards do.
"""

import re
from pathlib import Path
from typing import Final

from .frame import SCHEMA, TAG, link_to
from .panels import Json, json_text
from .thresholds import OVERVIEW_UID, RUNBOOK_UID, Number, Row, Settings, duration

FOLDER: Final = "runbooks"
GRAFANA_FOLDER: Final = "grafana/runbooks"
HOME: Final = Path(__file__).parent / FOLDER
HEADING: Final = "## Numbers\n"
CONTENTS: Final = "README"
"""The page that lists the others."""

_SECONDS: Final = frozenset({"window", "age"})
_LINK: Final = re.compile(r"\]\((\w+)\.md\)")
_LINES: Final = 1.2
"""Units of a panel's height that a line of text takes."""


def files(settings: Settings) -> dict[str, str]:
    """Every page by its path under `dashboards/`, for people and for Grafana."""
    pages = {
        path.stem: _page(path.read_text(encoding="utf-8"), path.stem, settings)
        for path in sorted(HOME.glob("*.md"))
    }
    return {
        **{f"{FOLDER}/{name}.md": text for name, text in pages.items()},
        **{f"{GRAFANA_FOLDER}/{name}.json": json_text(_shown(name, text)) for name, text in pages.items()},
    }


def _shown(name: str, text: str) -> Json:
    """A dashboard that is one page of text."""
    title, _, body = text.partition("\n")
    heading = title.removeprefix("# ")
    return {
        "uid": f"{RUNBOOK_UID}{name}",
        "title": heading if name == CONTENTS else f"Runbook: {heading}",
        "description": "What an alert means, who notices, how to find out, and what to do.",
        "tags": [TAG, "runbook"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "links": [link_to(OVERVIEW_UID)],
        "templating": {"list": []},
        "annotations": {"list": []},
        "panels": [
            {
                "id": 1,
                "type": "text",
                "title": "",
                "gridPos": {"x": 0, "y": 0, "w": 24, "h": round(_LINES * body.count("\n"))},
                "options": {
                    "mode": "markdown",
                    "content": _LINK.sub(rf"](/d/{RUNBOOK_UID}\1)", body).strip(),
                },
            }
        ],
    }


def _page(text: str, alert: str, settings: Settings) -> str:
    if alert not in settings.table:
        return text
    written = text.partition(HEADING)[0].rstrip()
    return f"{written}\n\n{HEADING}\n{numbers(alert, settings.table[alert])}"


def numbers(alert: str, row: Row) -> str:
    """The table of one alert's numbers, with what changes them."""
    lines = [
        f"Each can be changed: `export DIR --threshold {alert}.NUMBER=VALUE`.\n",
        "| number | value | why |",
        "|---|---|---|",
        *(f"| `{key}` | {_value(number)} | {number.why} |" for key, number in row.numbers.items()),
    ]
    return "\n".join(lines) + "\n"


def _value(number: Number) -> str:
    if number.unit in _SECONDS:
        return duration(number.value)
    return f"{number.value:g}" + (" a minute" if number.unit == "per_minute" else "")
