"""What is around the panels of both dashboards: variables, links, annotations.

`$instance` and `$server` match a missing label when all are chosen: over OTLP a series may have no `instance`, and
an alert on a server has none. `.+`, which is usual for `instance`, would show such a user an empty dashboard.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from . import queries
from .catalogue import name_of
from .colours import TERMINAL
from .panels import DATASOURCE, Json, Section, laid_out
from .promql import PROCESS, SERVER
from .thresholds import ENDPOINT_UID, OVERVIEW_UID, Settings

RULES_NEEDED: Final = (
    "What would take too long to read for a whole fleet is read from what the rules file records, over five "
    "minutes and since it was loaded; a process that is chosen by name, from its own series."
)
"""The last sentences of both descriptions."""

SCHEMA: Final = 41
TAG: Final = "sse-client"
ANY: Final = ".*"
SOME: Final = ".+"
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {OVERVIEW_UID: "SSE overview", ENDPOINT_UID: "SSE endpoint"}
)
_WITNESS: Final = name_of(queries.RECONNECTS)
"""The metric whose labels fill the variables: it has a series as soon as a server is seen."""


def _variable(
    name: str, label: str, described: str, *matchers: str, every: str, source: str, multi: bool = True
) -> Json:
    selector = f"{_WITNESS}{{{', '.join(matchers)}}}" if matchers else _WITNESS
    query = f"label_values({selector}, {source})"
    return {
        "name": name,
        "label": label,
        "description": described,
        "type": "query",
        "datasource": dict(DATASOURCE),
        "query": {"query": query, "refId": f"variable-{name}"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": True,
        "allValue": every,
        "current": {"selected": True, "text": "All", "value": "$__all"},
        "options": [],
        "regex": "",
        "hide": 0,
        "skipUrlSync": False,
    }


def variables(settings: Settings, *, one_server: bool) -> list[Json]:
    job = (f'job=~"{settings.job}"',) if settings.job else ()
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "description": "The Prometheus that has the series",
            "type": "datasource",
            "query": "prometheus",
            "current": {"selected": False, "text": "default", "value": "default"},
            "options": [],
            "regex": "",
            "refresh": 1,
            "hide": 0,
            "includeAll": False,
            "multi": False,
            "skipUrlSync": False,
        },
        _variable("job", "Job", "Which fleet", *job, every=settings.job or SOME, source="job"),
        _variable("instance", "Instance", "Which process", 'job=~"$job"', every=ANY, source="instance"),
        _variable(
            "server",
            "Server",
            "Which MCP server or other source of events",
            *PROCESS,
            every=ANY,
            source="server_address",
            multi=not one_server,
        ),
        _variable(
            "port",
            "Port",
            "Where one address has several servers",
            *PROCESS,
            SERVER[0],
            every=ANY,
            source="server_port",
        ),
    ]


def link_to(uid: str) -> Json:
    return {
        "type": "link",
        "title": TITLES[uid],
        "url": f"/d/{uid}",
        "icon": "dashboard",
        "tooltip": f"{TITLES[uid]}, same time and variables",
        "tags": [],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
    }


def endpoint_link(server: str, port: str) -> Json:
    """From one server's line or row to its own dashboard, as templates of a data link."""
    kept = "${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${__url_time_range}"
    return {
        "title": "Open this server",
        "url": f"/d/{ENDPOINT_UID}?var-server={server}&var-port={port}&{kept}",
    }


SERIES_LINK: Final[Mapping[str, str]] = MappingProxyType(
    endpoint_link("${__field.labels.server_address}", "${__field.labels.server_port}")
)
"""On a line that has the labels of a server."""


def _annotations() -> list[Json]:
    return [
        {
            "name": "Alerts",
            "datasource": dict(DATASOURCE),
            "enable": True,
            "hide": False,
            "iconColor": TERMINAL[0],
            "expr": queries.alert_annotation(),
            "titleFormat": "{{alertname}}",
            "textFormat": "{{server_address}}",
            "tagKeys": "severity",
        }
    ]


def framed(
    uid: str, about: str, sections: Sequence[Section], settings: Settings, *, one_server: bool = False
) -> Json:
    other = ENDPOINT_UID if uid == OVERVIEW_UID else OVERVIEW_UID
    return {
        "uid": uid,
        "title": TITLES[uid],
        "description": f"{about} {RULES_NEEDED}",
        "tags": [TAG, "opentelemetry"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "refresh": "30s",
        "links": [link_to(other)],
        "templating": {"list": variables(settings, one_server=one_server)},
        "annotations": {"list": _annotations()},
        "panels": laid_out(sections),
    }
