"""Rules with one thing changed each: a number of the table, or a piece of an expression.

A change that no scenario notices is either a scenario that is missing or a part of a rule that does nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import yaml
from dashboards.rules import absent_rules, rules
from dashboards.thresholds import Row, Settings

from .expressions import selected
from .runner import rules_of
from .scenario import SETTINGS

FACTORS: Final = {"window": 2.0, "age": 1.5}
FACTOR: Final = 1.5
"""Numbers are changed by half; durations are doubled and halved, since a rule is evaluated every 30 s."""

INSTEAD_OF_ZERO: Final = {"window": 300.0, "events": 1.5}

MATCHER: Final = re.compile(r'(?P<key>\w+)(?P<op>=~|!~|!=|=)"(?P<value>[^"]*)"(?:, )?')
GROUPING: Final = re.compile(r"by \((?P<labels>[^)]*)\)")
OPERATOR: Final = re.compile(r"(?<=[\s)])(?P<op>and|or|unless|>=|>)(?=\s)")
AGGREGATION: Final = re.compile(r"(?P<op>sum|max|count)(?= by)")
FUNCTION: Final = re.compile(r"(?P<op>last_over_time|avg_over_time)(?=\()")
CONSTANT: Final = re.compile(r"(?<![\w.:\[-])(?P<number>\d+)(?= \*|\)|$)", re.MULTILINE)

OPPOSITE: Final = {"=": "!=", "!=": "=", "=~": "!~", "!~": "=~"}
OTHER_OPERATOR: Final = {"and": "or", "or": "and", "unless": "and", ">": "<", ">=": "<"}
OTHER_FUNCTION: Final = {
    "sum": "max",
    "max": "min",
    "count": "sum",
    "last_over_time": "min_over_time",
    "avg_over_time": "max_over_time",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed rule: which alert, what was changed, and the rules file with that alert alone."""

    alert: str
    change: str
    rules: str


def mutants(alert: str) -> Iterator[Mutant]:
    """All mutants of one alert."""
    yield from _numbers(alert)
    yield from _expressions(alert)


def originals(alert: str, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    """The rules of one alert: its own, and the recordings that it reads, in their order."""
    every = rules_of(rules(settings)) + rules_of(absent_rules(settings))
    wanted: set[str] = set()
    kept: list[dict[str, Any]] = []
    for rule in reversed(every):
        if rule.get("alert") == alert or rule.get("record") in wanted:
            wanted |= selected(rule["expr"])
            kept.append(rule)
    return kept[::-1]


def written(some: list[dict[str, Any]]) -> str:
    """A rules file with these rules."""
    return yaml.safe_dump({"groups": [{"name": "mutant", "interval": "30s", "rules": some}]}, sort_keys=False)


def _numbers(alert: str) -> Iterator[Mutant]:
    row = SETTINGS.table[alert]
    for key, number in row.numbers.items():
        factor = FACTORS.get(number.unit, FACTOR)
        values = (
            (number.value * factor, number.value / factor)
            if number.value
            else (INSTEAD_OF_ZERO[number.unit],)
        )
        for value in values:
            changed = Row(row.severity, MappingProxyType({**row.numbers, key: replace(number, value=value)}))
            table = MappingProxyType({**SETTINGS.table, alert: changed})
            some = originals(alert, replace(SETTINGS, table=table))
            yield Mutant(alert, f"{key}: {number.value:g} -> {value:g}", written(some))
    for severity in ("critical", "warning", "info"):
        if severity != row.severity:
            changed_settings = replace(SETTINGS, severities=MappingProxyType({alert: severity}))
            yield Mutant(alert, f"severity -> {severity}", written(originals(alert, changed_settings)))


def _expressions(alert: str) -> Iterator[Mutant]:
    some = originals(alert)
    for i, rule in enumerate(some):
        name = rule.get("record") or f"alert ({rule['labels']['severity']})"
        for change, expr in changes(rule["expr"]):
            changed = [*some[:i], {**rule, "expr": expr}, *some[i + 1 :]]
            yield Mutant(alert, f"{name}: {change}", written(changed))


def changes(expr: str) -> Iterator[tuple[str, str]]:
    """An expression with one piece changed, and what was changed."""
    seen: Counter[str] = Counter()
    for pattern, change in _CHANGES:
        for found in pattern.finditer(expr):
            for what, text in change(found):
                seen[what] += 1
                again = f", number {seen[what]}" if seen[what] > 1 else ""
                yield what + again, expr[: found.start()] + text + expr[found.end() :]


Change = Callable[[re.Match[str]], Iterator[tuple[str, str]]]


def _matcher(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    key, op, value = found["key"], found["op"], found["value"]
    tail = ", " if found[0].endswith(", ") else ""
    if key != "__name__":
        yield f"{key} dropped", ""
    yield f"{key} {OPPOSITE[op]}", f'{key}{OPPOSITE[op]}"{value}"{tail}'
    alternatives = value.split("|") if "|" in value else []
    for gone in alternatives:
        rest = "|".join(one for one in alternatives if one != gone)
        yield f"{key} without {gone}", f'{key}{op}"{rest}"{tail}'


def _grouping(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    labels = found["labels"].split(", ")
    for gone in labels:
        yield f"by without {gone}", f"by ({', '.join(one for one in labels if one != gone)})"


def _operator(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    yield f"{found['op']} -> {OTHER_OPERATOR[found['op']]}", OTHER_OPERATOR[found["op"]]


def _function(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    yield f"{found['op']} -> {OTHER_FUNCTION[found['op']]}", OTHER_FUNCTION[found["op"]]


def _constant(found: re.Match[str]) -> Iterator[tuple[str, str]]:
    number = float(found["number"])
    for value in (number * 2, number / 2) if number else (1.5,):
        yield f"{found['number']} -> {value:g}", f"{value:g}"


_CHANGES: Final[tuple[tuple[re.Pattern[str], Change], ...]] = (
    (MATCHER, _matcher),
    (GROUPING, _grouping),
    (OPERATOR, _operator),
    (AGGREGATION, _function),
    (FUNCTION, _function),
    (CONSTANT, _constant),
)
