"""The demo's findings as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tests.e2e.demo.guard import CASES
from tests.e2e.demo.runner import Finding, Outcome, highest
from tests.e2e.demo.scenarios import Row, core

PLAIN_WIDTH = 160
ERROR_LENGTH = 90
COMPARED = ("stalled_streak", "reprompts_total", "guard_actions_total")


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

    def compare(self, pairs: Sequence[tuple[Outcome, Outcome]]) -> bool:
        """Each fault with the guard off and on, side by side; whether both were as expected."""
        frame = box.SIMPLE_HEAD if self._console.is_terminal else None
        self._console.print("the guard: the same faults with it off and on", style="bold")
        table = Table(box=frame, pad_edge=False)
        for name in ("fault", "client", "what"):
            table.add_column(name, overflow="fold")
        for name in ("guard off", "guard on"):
            table.add_column(name, overflow="fold", max_width=48)
        wrong: list[str] = []
        for pair in pairs:
            off, on = pair
            failed = [
                [found for found in CASES[run.scenario.fault].judge(run) if not found.holds] for run in pair
            ]
            for run, state, found in zip(pair, ("off", "on"), failed, strict=True):
                wrong += [f"{run.scenario.fault}, {run.client}, guard {state}: {one}" for one in found]
            columns = [_compared(run, found) for run, found in zip(pair, failed, strict=True)]
            for number, what in enumerate(columns[0]):
                who = (off.scenario.fault, str(on.diary["client"])) if number == 0 else ("", "")
                table.add_row(*who, what, *(column[what] for column in columns))
            table.add_section()
        self._console.print(table)
        for line in wrong:
            self._console.print(line, style="red")
        self._console.print()
        return not wrong

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


def _compared(outcome: Outcome, failed: Sequence[Finding]) -> dict[str, Text]:
    """What a client did and what was counted of it, by what it is called in the comparison."""
    diary = outcome.diary
    names = {found.row.name for found in failed}

    def text(shown: object, name: str) -> Text:
        return Text(f"{shown} WRONG", "red") if name in names else Text(str(shown))

    error = str(diary["first_error"] or "none")
    shown = {
        "calls": text(diary["calls"], "tools/call"),
        "asked the person": text(diary["asked"], "prompts"),
        "first error": Text(error if len(error) <= ERROR_LENGTH else f"{error[: ERROR_LENGTH - 1]}…"),
        "resumes on the wire": text(outcome.wire.get("resumes", 0), "resumes"),
    }
    for row in (core(name, ">=", 0) for name in COMPARED):
        value = f"{highest(row, outcome.series):g}"
        shown[row.name] = text(_by_action(outcome, row) or value, row.name)
    return shown


def _by_action(outcome: Outcome, row: Row) -> str:
    """What a counter of the guard counted, action by action; nothing of other series."""
    label = "sse_guard_action"
    actions = {
        labels[label]
        for scrape in outcome.series
        for name, labels, value in scrape
        if name == row.name and label in labels and value > 0
    }
    counts = ((one, highest(replace(row, labels={label: one}), outcome.series)) for one in sorted(actions))
    return ", ".join(f"{action} {count:g}" for action, count in counts)


def _deeds(outcome: Outcome) -> str:
    diary = outcome.diary
    wire = ", ".join(f"{name} {count}" for name, count in outcome.wire.items())
    error = f", last error: {str(diary['error'])[:90]}" if diary["error"] else ""
    return (
        f"{diary['client']}: {diary['calls']} calls, {diary['answered']} answered, "
        f"asked the person {diary['asked']} times{error}\n  on the wire: {wire}"
    )
