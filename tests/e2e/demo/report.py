"""The demo's findings as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tests.e2e.demo.runner import Finding, Outcome

PLAIN_WIDTH = 160


class Report:
    """Writes tables to a terminal, and the same as plain text to anything else."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, markup=False, width=PLAIN_WIDTH, color_system=None)

    def show(self, outcomes: Sequence[Outcome]) -> None:
        """One fault: what each client did, and the series that name it."""
        scenario = outcomes[0].scenario
        frame = box.SIMPLE_HEAD if self._console.is_terminal else None
        self._console.print(f"{scenario.fault}: {scenario.story}", style="bold")
        table = Table(box=frame, pad_edge=False)
        table.add_column("series", overflow="fold")
        table.add_column("expected", justify="right")
        for outcome in outcomes:
            table.add_column(str(outcome.diary["client"]), justify="right")
        for row in zip(*(_shown(outcome, outcomes) for outcome in outcomes), strict=True):
            wanted = row[0].row
            table.add_row(str(wanted), f"{wanted.comparison} {wanted.value:g}", *map(_cell, row))
        self._console.print(table)
        for outcome in outcomes:
            self._console.print(_deeds(outcome), style="dim")
            if not outcome.scrapes:
                self._console.print(f"{outcome.client} could not be scraped:\n{outcome.noise}")
        silent = [found.row.name for found in outcomes[0].absent]
        self._console.print(f"zero throughout, or shown above: {', '.join(silent)}", style="dim")
        self._console.print()

    def say(self, text: str) -> None:
        self._console.print(text)


def _shown(outcome: Outcome, outcomes: Sequence[Outcome]) -> list[Finding]:
    """What was expected, and of the rest only what one of the clients failed."""
    wrong = {
        found.row.name for other in outcomes for found in (*other.driven, *other.absent) if not found.holds
    }
    return [
        *outcome.expected,
        *(found for found in (*outcome.driven, *outcome.absent) if found.row.name in wrong),
    ]


def _cell(found: Finding) -> Text:
    return Text(
        f"{found.highest:g}" if found.holds else f"{found.highest:g} WRONG", "green" if found.holds else "red"
    )


def _deeds(outcome: Outcome) -> str:
    diary = outcome.diary
    wire = ", ".join(f"{name} {count}" for name, count in outcome.wire.items())
    error = f", last error: {str(diary['error'])[:90]}" if diary["error"] else ""
    return (
        f"{diary['client']}: {diary['calls']} calls, {diary['answered']} answered, "
        f"asked the person {diary['asked']} times{error}\n  on the wire: {wire}"
    )
