"""The same alerts as Grafana-managed rules, in the form that Grafana reads from its provisioning folder.

What is different there: recordings are written out, the value has another name in templates, a comparison
that finds nothing must be told to mean health, and each rule needs an identifier of its own. Contact points
and policies are not shipped: a provisioned policy tree would replace the user's.
"""

import hashlib
import re
from typing import Final

from .alerts import VALUE, Alert, absent_alerts, alerts
from .recordings import Recordings
from .text import GENERATED, Data, yaml
from .thresholds import Settings, duration

FILE: Final = "grafana/provisioning/alerting/sse-client.yaml"
FOLDER: Final = "SSE client"
TICK: Final = 10.0
"""Grafana evaluates in steps of ten seconds; the interval of a group is a multiple."""

UID_LENGTH: Final = 40
DIGEST_LENGTH: Final = 8
QUERY: Final = "A"
CONDITION: Final = "B"
_PAST: Final = 600
_HEAD: Final = (
    GENERATED
    + "# Needs Grafana 12.2 for keepFiringFor; older ones leave that out. The data source must have the\n"
)


def files(settings: Settings) -> dict[str, str]:
    """The file of this part by its path under `dashboards/`."""
    return {FILE: provisioning(settings)}


def provisioning(settings: Settings) -> str:
    """One group; the alert on missing telemetry comes paused, since not every job has clients all the time."""
    book = Recordings(settings, inline=True)
    rows = [
        *(_rule(alert, settings, paused=False) for alert in alerts(settings, book)),
        *(_rule(alert, settings, paused=True) for alert in absent_alerts(settings)),
    ]
    group: dict[str, Data] = {
        "orgId": 1,
        "name": "sse-client",
        "folder": FOLDER,
        "interval": duration(max(TICK, round(settings.interval / TICK) * TICK)),
        "rules": rows,
    }
    return yaml({"apiVersion": 1, "groups": [group]}, head=f'{_HEAD}# uid "{settings.datasource}".\n')


def uid(alert: Alert) -> str:
    """Stable over releases and settings, and unique: names of jobs may be long, and differ in what a uid has not."""
    text = f"{alert.name} {alert.variant}".strip()
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())
    if not alert.variant or alert.variant != alert.job:
        return plain[:UID_LENGTH]
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
    return f"{plain[: UID_LENGTH - DIGEST_LENGTH - 1]}-{digest}"


def _rule(alert: Alert, settings: Settings, *, paused: bool) -> Data:
    rule: dict[str, Data] = {
        "uid": uid(alert),
        "title": f"{alert.name} ({alert.variant})" if alert.variant else alert.name,
        "condition": CONDITION,
        "data": [_query(alert, settings.datasource), _condition()],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": duration(alert.hold),
    }
    if alert.keep:
        rule["keepFiringFor"] = duration(alert.keep)
    return {
        **rule,
        "annotations": {key: _template(text) for key, text in alert.annotations.items()},
        "labels": alert.labels,
        "isPaused": paused,
    }


def _template(text: str) -> str:
    return text.replace(f" {VALUE} }}}}", f" .Values.{QUERY}.Value }}}}")


def _query(alert: Alert, datasource: str) -> Data:
    return {
        "refId": QUERY,
        "relativeTimeRange": {"from": _PAST, "to": 0},
        "datasourceUid": datasource,
        "model": {
            "refId": QUERY,
            "expr": alert.expr,
            "instant": True,
            "range": False,
            "intervalMs": 1000,
            "maxDataPoints": 43200,
        },
    }


def _condition() -> Data:
    """What the expression leaves over is above its own threshold already; here it only has to be there."""
    return {
        "refId": CONDITION,
        "relativeTimeRange": {"from": _PAST, "to": 0},
        "datasourceUid": "__expr__",
        "model": {
            "refId": CONDITION,
            "type": "threshold",
            "expression": QUERY,
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }
