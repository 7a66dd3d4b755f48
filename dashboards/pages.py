"""The runbooks: written by hand, except for the numbers, which are the settings'.

These stand in the table at the end of each page and in its queries. Prose calls a number by its name: no sentence is
wrong when somebody has another one.

They are written out as files to be served anywhere, and as pages that Grafana shows: so the link in an alert
leads somewhere as soon as the dashboards do.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .frame import SCHEMA, TAG, link_to
from .panels import Json, json_text
from .thresholds import MINUTE, OVERVIEW_UID, RUNBOOK_UID, TABLE, Number, Row, Settings, duration

FOLDER: Final = "runbooks"
GRAFANA_FOLDER: Final = "grafana/runbooks"
HOME: Final = Path(__file__).parent / FOLDER
HEADING: Final = "## Numbers\n"
CONTENTS: Final = "README"
"""The page that lists the others."""

_SECONDS: Final = frozenset({"window", "age"})
_LINK: Final = re.compile(r"\]\((\w+)\.md\)")
_QUERY: Final = re.compile(r"```promql\n.*?```", re.DOTALL)
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
    written = _with_own_numbers(text.partition(HEADING)[0].rstrip(), alert, settings)
    return f"{written}\n\n{HEADING}\n{numbers(alert, settings.table[alert])}"


QUOTED: Final[Mapping[str, tuple[Callable[[Row], str], ...]]] = MappingProxyType(
    {
        "SSEStreamStuck": (lambda row: f">= {row['streak']:g})",),
        "SSEReconnectStorm": (lambda row: f"[{duration(row['long'])}]",),
        "SSERetryAfterTerminal": (lambda row: f"[{duration(row['long'])}]",),
        **{
            alert: (lambda row: f"[{duration(row['window'] + MINUTE)}]",)
            for alert, row in TABLE.items()
            if "window" in row.numbers
        },
    }
)
"""What the queries of a page have from the numbers of its alert. One asks a minute more than the alert saw."""


def _with_own_numbers(text: str, alert: str, settings: Settings) -> str:
    """A page whose queries have the settings' numbers; its file has those of the table.

    Raises:
        ValueError: the file has no such query, so the line above is out of date.
    """
    for quoted in QUOTED.get(alert, ()):
        old, new = (quoted(row) for row in (TABLE[alert], settings.table[alert]))
        if not any(old in query for query in _QUERY.findall(text)):
            raise ValueError(f"no query of {alert} has {old!r}")
        text = _QUERY.sub(partial(_replaced, old, new), text)
    return text


def _replaced(old: str, new: str, query: re.Match[str]) -> str:
    return query[0].replace(old, new)


def numbers(alert: str, row: Row) -> str:
    """The table of one alert's numbers, with what changes them."""
    lines = [
        f"Each can be changed: `export DIR --threshold {alert}.NUMBER=VALUE`.\n",
        "| number | value | why |",
        "|---|---|---|",
        *(
            f"| `{key}` | {_value(number)} | {_why(number, TABLE[alert].numbers[key])} |"
            for key, number in row.numbers.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def _why(number: Number, default: Number) -> str:
    """The reason is that of the default: of another number it says what it stands for."""
    return number.why if number == default else f"instead of {_value(default)}: {number.why}"


def _value(number: Number) -> str:
    if number.unit in _SECONDS:
        return duration(number.value)
    return f"{number.value:g}" + (" a minute" if number.unit == "per_minute" else "")
