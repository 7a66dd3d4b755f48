"""The runbooks: written by hand, except for the table of numbers at the end of each, which is the settings'."""

from pathlib import Path
from typing import Final

from .thresholds import Number, Row, Settings, duration

FOLDER: Final = "runbooks"
HOME: Final = Path(__file__).parent / FOLDER
HEADING: Final = "## Numbers\n"

_SECONDS: Final = frozenset({"window", "age"})


def files(settings: Settings) -> dict[str, str]:
    """Every page by its path under `dashboards/`."""
    return {
        f"{FOLDER}/{path.name}": _page(path.read_text(encoding="utf-8"), path.stem, settings)
        for path in sorted(HOME.glob("*.md"))
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
