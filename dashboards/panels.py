"""What panels are made of: descriptions, thresholds, styles, columns, layout. No question and no number.

A dashboard is a list of sections, a section a list of panels; ids and places follow from their order.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from .colours import COLOURS, HEALTHY, IDENTITY, RETRYABLE, TERMINAL, WAITING
from .thresholds import Settings, Severity

Json = dict[str, Any]


def json_text(dashboard: Json) -> str:
    """A dashboard as its file says it."""
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


COLUMNS: Final = 24
DATASOURCE: Final[Mapping[str, str]] = MappingProxyType({"type": "prometheus", "uid": "${datasource}"})

# ------------------------------------------------------------------ overrides


def _fixed(colour: str) -> Json:
    return {"mode": "fixed", "fixedColor": colour}


def _override(matcher: str, options: str, **properties: Any) -> Json:
    listed = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": matcher, "options": options}, "properties": listed}


def coloured(label: str, *, shades: bool = False) -> tuple[Json, ...]:
    """Each value of a label in its colour, whether the legend is the value or ends with it.

    `shades` tells several lines of one colour apart.
    """
    mode = "shades" if shades else "fixed"
    return tuple(
        _override("byRegexp", f"/(^|· ){value}$/", color={"mode": mode, "fixedColor": colour})
        for value, colour in COLOURS[label].items()
    )


def named(colours: Mapping[str, str]) -> tuple[Json, ...]:
    return tuple(_override("byName", name, color=_fixed(colour)) for name, colour in colours.items())


def dashed(ending: str) -> Json:
    """Lines whose legend ends so are thin and dashed."""
    return _override(
        "byRegexp",
        f"/, {ending}$/",
        custom__lineStyle={"fill": "dash", "dash": [6, 6]},
        custom__lineWidth=1,
    )


# ------------------------------------------------------------------ thresholds

MISSING: Final = "-"
"""What a cell shows that has no value."""

FIRST: Final = 0.5
"""Where a limit of 0 is drawn: between nothing and the first event."""


class Limit(NamedTuple):
    """A number of an alert, to be drawn. `severe` is its colour: red pages, amber waits for the morning."""

    alert: str
    value: float
    severe: bool

    @property
    def drawn(self) -> float:
        return self.value or FIRST


def limit(settings: Settings, alert: str, number: str, severity: Severity | None = None) -> Limit:
    """A number of the table; `severity` where one alert has a second, milder form."""
    severe = settings.severity(alert, severity) == settings.severity_page
    return Limit(alert, settings.table[alert][number], severe)


def _steps(base: str, *steps: tuple[float, str]) -> Json:
    listed = [{"color": base, "value": None}, *({"color": colour, "value": at} for at, colour in steps)]
    return {"mode": "absolute", "steps": listed}


def _alerting(drawn: Limit) -> tuple[float, str]:
    return drawn.drawn, TERMINAL[0] if drawn.severe else RETRYABLE[0]


# ------------------------------------------------------------------ panels


class About(NamedTuple):
    """The three things that a description says."""

    what: str
    normal: str
    act: str

    def __str__(self) -> str:
        return f"{self.what}\n\n**Normal:** {self.normal}\n\n**Otherwise:** {self.act}"


@dataclass(frozen=True, slots=True)
class Query:
    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table, in the order in which they are shown."""

    reads: str
    title: str
    width: int | None = None
    unit: str = "none"
    decimals: int | None = None
    limit: Limit | None = None
    link: Json | None = None
    gauge: bool = False
    coloured: Mapping[str, str] = field(default_factory=dict)
    """The colour of each value."""
    told: Mapping[str, str] = field(default_factory=dict)
    """What to show for each value in its place."""


@dataclass(frozen=True, slots=True)
class Panel:
    json: Json
    width: int
    height: int
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    panels: Sequence[Panel]


def runbook(settings: Settings, alert: str) -> Json:
    return {"title": f"Runbook: {alert}", "url": settings.runbook_link(alert), "targetBlank": True}


def _targets(queries: Iterable[Query], *, instant: bool = False, table: bool = False) -> list[Json]:
    return [
        {
            "refId": chr(ord("A") + place),
            "datasource": dict(DATASOURCE),
            "editorMode": "code",
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "format": "table" if table else "time_series",
            "instant": instant,
            "range": not instant,
        }
        for place, query in enumerate(queries)
    ]


def _panel(kind: str, title: str, about: About, **parts: Any) -> Json:
    return {
        "type": kind,
        "title": title,
        "description": str(about),
        "datasource": dict(DATASOURCE),
        **parts,
    }


def stat(
    title: str,
    about: About,
    query: str,
    *,
    limit: Limit | None = None,
    warn: float | None = None,
    unit: str = "none",
    none: str = "-",
    plain: bool = False,
    links: Sequence[Json] = (),
    width: int = 3,
) -> Panel:
    """One number, and how it came to be. Amber from `warn`, the alert's colour from `limit`."""
    warning = [(warn, RETRYABLE[0])] if warn is not None else []
    steps = _steps(WAITING[0] if plain else HEALTHY[0], *warning, *([_alerting(limit)] if limit else []))
    defaults = {
        "unit": unit,
        "decimals": 0,
        "min": 0,
        "noValue": none,
        "color": {"mode": "thresholds"},
        "thresholds": steps,
        "mappings": [],
    }
    json = _panel(
        "stat",
        title,
        about,
        targets=_targets([Query(query)]),
        links=list(links),
        fieldConfig={"defaults": defaults, "overrides": []},
        options={
            "colorMode": "value" if plain else "background",
            "graphMode": "area",
            "justifyMode": "center",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "showPercentChange": False,
            "textMode": "value",
            "wideLayout": True,
        },
    )
    return Panel(json, width, 5, (limit.alert,) if limit else ())


Style = Literal["bars", "area", "lines"]
_STYLES: Final[Mapping[Style, Json]] = MappingProxyType(
    {
        "bars": {"drawStyle": "bars", "fillOpacity": 85, "lineWidth": 0, "barWidthFactor": 0.9},
        "area": {"drawStyle": "line", "fillOpacity": 35, "lineWidth": 1},
        "lines": {"drawStyle": "line", "fillOpacity": 0, "lineWidth": 2},
    }
)


_STEEP: Final = {"type": "log", "log": 10}


def timeseries(
    title: str,
    about: About,
    *queries: Query,
    style: Style = "bars",
    unit: str = "short",
    limits: Sequence[Limit] = (),
    overrides: Sequence[Json] = (),
    links: Sequence[Json] = (),
    none: str = "none in this time range",
    most: float | None = None,
    steep: float | None = None,
    beside: bool = False,
    settings: Settings | None = None,
    width: int = 8,
    height: int = 7,
) -> Panel:
    """A course over time. Bars and areas are stacked; a limit is a dashed line that is always in sight.

    `steep` is where an axis of powers of ten begins: a limit of 10 and a loop of thousands can both be read.
    `beside` puts the legend to the right.
    """
    custom = {
        **_STYLES[style],
        "showPoints": "never",
        "spanNulls": False,
        "insertNulls": False,
        "pointSize": 4,
        "axisPlacement": "auto",
        "gradientMode": "none",
        "lineInterpolation": "linear",
        "stacking": {"mode": "none" if style == "lines" else "normal", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if limits else "off"},
        "hideFrom": {"legend": False, "tooltip": False, "viz": False},
        "scaleDistribution": _STEEP if steep else {"type": "linear"},
        **({"axisSoftMax": max(drawn.drawn for drawn in limits) * 1.25} if limits else {}),
    }
    defaults = {
        "unit": unit,
        "min": steep or 0,
        "noValue": none,
        "color": {"mode": "shades", "fixedColor": IDENTITY},
        "custom": custom,
        "thresholds": _steps("transparent", *sorted(map(_alerting, limits))),
        "mappings": [],
        "links": list(links),
        **({"max": most} if most is not None else {}),
    }
    alerts = tuple(dict.fromkeys(drawn.alert for drawn in limits))
    json = _panel(
        "timeseries",
        title,
        about,
        targets=_targets(queries),
        links=[runbook(settings, alert) for alert in alerts] if settings else [],
        fieldConfig={"defaults": defaults, "overrides": list(overrides)},
        options={
            "legend": {
                "displayMode": "list",
                "placement": "right" if beside else "bottom",
                "showLegend": True,
                "calcs": ["lastNotNull"] if style == "lines" else [],
            },
            "tooltip": {"mode": "multi", "sort": "desc", "hideZeros": True},
        },
    )
    return Panel(json, width, height, alerts)


def table(
    title: str,
    about: About,
    queries: Sequence[str],
    columns: Sequence[Column],
    *,
    sort: Sequence[str],
    none: str = "none in this time range",
    width: int = 24,
    height: int = 7,
) -> Panel:
    """One row for each thing that the queries have in common; `sort` has titles of columns, `-` turns one over."""
    merge = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    organize = {
        "excludeByName": {"Time": True},
        "includeByName": {},
        "indexByName": {column.reads: place for place, column in enumerate(columns)},
        "renameByName": {column.reads: column.title for column in columns},
    }
    defaults = {
        "unit": "none",
        "noValue": none,
        "color": {"mode": "thresholds"},
        "thresholds": _steps("transparent"),
        "mappings": [],
        "custom": {
            "align": "auto",
            "cellOptions": {"type": "auto"},
            "inspect": False,
            "minWidth": 50,
            "wrapHeaderText": True,
        },
    }
    json = _panel(
        "table",
        title,
        about,
        targets=_targets(map(Query, queries), instant=True, table=True),
        transformations=[*merge, {"id": "organize", "options": organize}],
        fieldConfig={"defaults": defaults, "overrides": [_column(column) for column in columns]},
        options={
            "cellHeight": "sm",
            "showHeader": True,
            "sortBy": [
                {"displayName": title.removeprefix("-"), "desc": title.startswith("-")} for title in sort
            ],
        },
    )
    alerts = tuple(dict.fromkeys(column.limit.alert for column in columns if column.limit))
    return Panel(json, width, height, alerts)


def _column(column: Column) -> Json:
    mapped = {
        **{value: {"color": colour} for value, colour in column.coloured.items()},
        **{value: {"text": text} for value, text in column.told.items()},
    }
    mappings = {value: {**result, "index": place} for place, (value, result) in enumerate(mapped.items())}
    properties = {
        "unit": column.unit,
        "noValue": MISSING,
        **({"custom__width": column.width} if column.width else {}),
        **({"decimals": column.decimals} if column.decimals is not None else {}),
        **({"links": [column.link]} if column.link else {}),
        **({"mappings": [{"type": "value", "options": mappings}]} if mappings else {}),
    }
    if column.limit:
        properties["thresholds"] = _steps("transparent", _alerting(column.limit))
    if column.limit or column.coloured:
        properties["custom__cellOptions"] = {"type": "color-background", "mode": "basic"}
    if column.gauge:
        properties["custom__cellOptions"] = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
        properties |= {"min": 0, "color": _fixed(RETRYABLE[0])}
    return _override("byName", column.title, **properties)


# ------------------------------------------------------------------ layout


def _placed(sections: Sequence[Section]) -> Iterator[tuple[Panel, int, int, int]]:
    """Panels from left to right, with their ids: a hundred to each section, so that a new panel moves few."""
    y = 0
    for number, section in enumerate(sections, start=1):
        row = {"type": "row", "title": section.title, "collapsed": False, "panels": []}
        yield Panel(row, COLUMNS, 1), 100 * number, 0, y
        x, y, height = 0, y + 1, 0
        for place, panel in enumerate(section.panels, start=1):
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            yield panel, 100 * number + place, x, y
            x, height = x + panel.width, max(height, panel.height)
        y += height


def laid_out(sections: Sequence[Section]) -> list[Json]:
    return [
        {"id": number, **panel.json, "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height}}
        for panel, number, x, y in _placed(sections)
    ]


def panel_of_alert(sections: Sequence[Section]) -> dict[str, int]:
    """The id of the panel on which an alert is seen best: the first course over time that draws its limit."""
    found: dict[str, int] = {}
    for kind in ("timeseries", "stat", "table"):
        for panel, number, _, _ in _placed(sections):
            if panel.json["type"] == kind:
                found |= {alert: number for alert in panel.alerts if alert and alert not in found}
    return found
