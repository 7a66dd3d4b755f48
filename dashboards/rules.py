"""The Prometheus side: rules files, an example configuration that loads them, and Alertmanager's routing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .alerts import Alert, absent_alerts, alerts
from .details import EVERY, GROUP, recordings
from .recordings import PROCESS, SERVER, Recording, Recordings
from .text import GENERATED, Data, yaml
from .thresholds import Settings, duration

RULES_FILE: Final = "prometheus/sse-client.rules.yml"
ABSENT_FILE: Final = "prometheus/sse-client-absent.rules.yml"
PROMETHEUS_FILE: Final = "prometheus/prometheus.yml"
ALERTMANAGER_FILE: Final = "alertmanager/alertmanager.yml"

TARGET_DOWN: Final = 'alertname=~"TargetDown|InstanceDown|PrometheusTargetMissing"'
"""What the alert on a target that cannot be scraped is called in the usual rule sets."""


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While the cause fires, the consequence is not sent, as long as they agree in the labels `equal`."""

    cause: str
    consequence: str
    equal: tuple[str, ...]


def inhibitions(settings: Settings) -> tuple[Inhibition, ...]:
    """What is told once: a loop is also a storm, a dead session also refuses answers."""
    loop = 'alertname=~"SSEStreamStuck|SSEEmptyReplayLoop"'
    dead = 'alertname="SSESessionDeadAfterReplay"'
    prompted = f'alertname="SSERepromptLoop", severity="{settings.severity("SSERepromptLoop")}"'
    return (
        Inhibition(loop, 'alertname=~"SSEReconnectStorm|SSERequestNotRecovering"', SERVER),
        Inhibition('alertname="SSEStreamStuck"', 'alertname="SSERetryAfterTerminal"', PROCESS),
        Inhibition(dead, 'alertname=~"SSEAnswersRejected|SSERequestsLost"', SERVER),
        Inhibition(prompted, 'alertname="SSEAnswersRejected"', SERVER),
        Inhibition(TARGET_DOWN, 'alertname="SSETelemetryAbsent"', ("job",)),
    )


def files(settings: Settings) -> dict[str, str]:
    """Every file of this part by its path under `dashboards/`."""
    return {
        RULES_FILE: rules(settings),
        ABSENT_FILE: absent_rules(settings),
        PROMETHEUS_FILE: prometheus(settings),
        ALERTMANAGER_FILE: alertmanager(settings),
    }


def rules(settings: Settings) -> str:
    """A group for each alert, with what is recorded for it, and one for panels: they run side by side on all cores.

    Within a group rules run one after the other, so an alert sees what was recorded a moment before.
    """
    book = Recordings(settings)
    every = alerts(settings, book)
    named = {name: [alert for alert in every if alert.name == name] for name in settings.table}
    return yaml(
        {
            "groups": [
                *(
                    _group(
                        f"sse-client {name}", settings.interval, [*_recorded(some, book), *_alerting(some)]
                    )
                    for name, some in named.items()
                    if some
                ),
                _group(GROUP, EVERY, _recording(recordings(book))),
            ]
        }
    )


def absent_rules(settings: Settings) -> str:
    """The alert on missing telemetry: a file of its own, since not every job has clients all the time."""
    alerting = _alerting(absent_alerts(settings))
    return yaml({"groups": [_group("sse-client SSETelemetryAbsent", settings.interval, alerting)]})


def _group(name: str, interval: float, rows: list[Data]) -> Data:
    return {"name": name, "interval": duration(interval), "rules": rows}


def _recorded(some: Iterable[Alert], book: Recordings) -> list[Data]:
    """The recordings that some alerts read, and those that these read, in the order of the book."""
    text = "\n".join(alert.expr for alert in some)
    wanted: list[Recording] = []
    for row in reversed(tuple(book.rows.values())):
        if row.name in text:
            text += f"\n{row.expr}"
            wanted.append(row)
    return _recording(reversed(wanted))


def _recording(some: Iterable[Recording]) -> list[Data]:
    return [{"record": row.name, "expr": row.expr} for row in some]


def _alerting(some: Iterable[Alert]) -> list[Data]:
    return [_alerting_rule(alert) for alert in some]


def _alerting_rule(alert: Alert) -> Data:
    rule: dict[str, Data] = {"alert": alert.name, "expr": alert.expr}
    if alert.hold:
        rule["for"] = duration(alert.hold)
    if alert.keep:
        rule["keep_firing_for"] = duration(alert.keep)
    return {**rule, "labels": alert.labels, "annotations": alert.annotations}


def prometheus(settings: Settings) -> str:
    """An example to start from: one scraped job, the rules, one Alertmanager."""
    job = settings.absent_jobs[0] if settings.absent_jobs else "sse-client"
    head = GENERATED + (
        "# An example to start from. The second rules file tells when a job reports nothing at all: load it\n"
        "# when its clients run all the time.\n"
    )
    rule_files = f"rule_files:\n  - {_base(RULES_FILE)}\n  # - {_base(ABSENT_FILE)}\n"
    body: Data = {
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["localhost:9093"]}]}]},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": ["localhost:9464"]}]},
        ],
    }
    interval = duration(15)
    glob: Data = {"global": {"scrape_interval": interval, "evaluation_interval": interval}}
    return yaml(glob, head=head) + rule_files + yaml(body, head="")


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def alertmanager(settings: Settings) -> str:
    """Routing by severity, one message a server and fault, and consequences held back behind their cause."""
    return yaml(
        {
            "route": {
                "receiver": "tickets",
                "group_by": ["alertname", "job", "server_address", "server_port"],
                "group_wait": "30s",
                "group_interval": "5m",
                "repeat_interval": "12h",
                "routes": [
                    {
                        "matchers": [f'severity="{settings.severity_page}"', 'alertname=~"SSE.+"'],
                        "receiver": "pager",
                        "repeat_interval": "2h",
                    },
                ],
            },
            "inhibit_rules": [
                {
                    "source_matchers": row.cause.split(", "),
                    "target_matchers": row.consequence.split(", "),
                    "equal": list(row.equal),
                }
                for row in inhibitions(settings)
            ],
            "receivers": [
                {"name": "pager", "webhook_configs": [{"url": "http://localhost:9095/pager"}]},
                {"name": "tickets", "webhook_configs": [{"url": "http://localhost:9095/tickets"}]},
            ],
        }
    )
