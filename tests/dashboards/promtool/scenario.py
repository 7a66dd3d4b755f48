"""What a scenario is: some happenings on a small fleet, and which alerts they must and must not raise."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dashboards.alerts import alerts
from dashboards.recordings import PROCESS, SERVER, Recordings
from dashboards.thresholds import Settings

from .series import JOB, MINUTE, SERVERS, Count, Happening, Process, input_series

SETTINGS: Final = Settings(absent_jobs=(JOB,))

ABOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "SSEReconnectStorm": SERVER,
    "SSEStreamStuck": PROCESS,
    "SSEEmptyReplayLoop": SERVER,
    "SSERequestNotRecovering": SERVER,
    "SSESessionDeadAfterReplay": SERVER,
    "SSERepromptLoop": PROCESS,
    "SSEAnswersRejected": SERVER,
    "SSERetryAfterTerminal": PROCESS,
    "SSERequestsLost": SERVER,
    "SSEStreamGaveUp": PROCESS,
    "SSEGuardActing": SERVER,
    "SSETelemetryErrors": ("job",),
    "SSETelemetryAbsent": ("job",),
}
"""Which labels a page has, written down once more: a page without the process would be news."""

PAGES: Final = frozenset(
    {"SSEStreamStuck", "SSEEmptyReplayLoop", "SSESessionDeadAfterReplay", "SSERepromptLoop"}
)
"""Those that wake somebody up; the rest wait for the morning."""

FLEET: Final = (
    Process(name="app-1"),
    Process(name="app-2", version="0.1.1"),
    Process(name="app-3"),
)


@dataclass(frozen=True, slots=True)
class Fires:
    """One alert that must fire. Moments are minutes: silent at `not_yet`, firing `by` then and `still`, `over`."""

    alert: str
    not_yet: float
    by: float
    still: float | None = None
    over: float | None = None
    on: str = "app-1"
    server: int = 0
    severity: str = ""
    says: str = ""
    """The number in the description at `by`; where it is given, all annotations are compared."""

    @property
    def labels(self) -> dict[str, str]:
        address, port = SERVERS[self.server]
        everything = {
            "job": JOB,
            "instance": f"{self.on}:9464",
            "server_address": address,
            "server_port": port,
        }
        return {
            "alertname": self.alert,
            **{key: everything[key] for key in ABOUT[self.alert]},
            "severity": self.severity or ("critical" if self.alert in PAGES else "warning"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`title` is the fact that it proves. `extra` are series that no instrument of ours writes."""

    title: str
    happenings: tuple[Happening, ...]
    fires: tuple[Fires, ...] = ()
    fleet: tuple[Process, ...] = FLEET
    minutes: float = 40
    servers: int = 1
    scrape: float = 30
    extra: tuple[tuple[str, str], ...] = ()
    also: frozenset[str] = frozenset()
    """Metrics that are exported beside those that move."""

    @property
    def touches(self) -> frozenset[str]:
        """The metrics that this scenario is about; the series of others would stand at 0."""
        return frozenset(one.metric for one in self.happenings) | self.also

    @property
    def fault_ends(self) -> float:
        """The last moment at which something begins or goes on that does not go on for ever."""
        ends = [one.until for one in self.happenings if one.until < self.minutes]
        moments = [moment for one in self.happenings if isinstance(one, Count) for moment in one.at]
        return max([*ends, *moments], default=self.minutes)

    def test(self, reads: frozenset[str], alerts: frozenset[str]) -> dict[str, Any]:
        """A test for promtool, of alerts that read some metrics."""
        fires = [one for one in self.fires if one.alert in alerts]
        metrics = sorted(self.touches & reads)
        series = input_series(
            self.fleet, self.happenings, self.minutes, metrics, servers=self.servers, scrape=self.scrape
        )
        return {
            "name": self.title,
            "interval": f"{self.scrape:g}s",
            "input_series": [*series, *({"series": s, "values": v} for s, v in self.extra)],
            "promql_expr_test": [*self._whole(fires), *self._moments(fires)],
            "alert_rule_test": list(_annotated(fires)),
        }

    def _whole(self, fires: list[Fires]) -> Iterator[dict[str, Any]]:
        """Over the whole run, these alerts fired and no others."""
        expr = (
            "group by (alertname, job, instance, server_address, server_port, severity) "
            f'(count_over_time(ALERTS{{alertstate="firing"}}[{self.minutes:g}m]))'
        )
        distinct = {tuple(one.labels.items()) for one in fires}
        samples = [{"labels": _selector(dict(labels)), "value": 1} for labels in sorted(distinct)]
        yield {"expr": expr, "eval_time": f"{self.minutes:g}m", "exp_samples": samples}

    def _moments(self, fires: list[Fires]) -> Iterator[dict[str, Any]]:
        for one in fires:
            for minute, expected in (
                (one.not_yet, False),
                (one.by, True),
                (one.still, True),
                (one.over, False),
            ):
                if minute is None:
                    continue
                labels = _selector({"alertstate": "firing", **one.labels})
                yield {
                    "expr": f"ALERTS{labels}",
                    "eval_time": f"{round(minute * MINUTE)}s",
                    "exp_samples": [{"labels": "ALERTS" + labels, "value": 1}] if expected else [],
                }


def _annotated(fires: list[Fires]) -> Iterator[dict[str, Any]]:
    """What the page says, where a row gives the number."""
    for name in dict.fromkeys(one.alert for one in fires if one.says):
        some = [one for one in fires if one.alert == name]
        yield {
            "alertname": name,
            "eval_time": f"{round(max(one.by for one in some) * MINUTE)}s",
            "exp_alerts": [
                {
                    "exp_labels": {k: v for k, v in one.labels.items() if k != "alertname"},
                    "exp_annotations": _text(one),
                }
                for one in some
            ],
        }


def _text(fires: Fires) -> dict[str, str]:
    labels = fires.labels
    templates = next(
        alert.annotations
        for alert in alerts(SETTINGS, Recordings(SETTINGS))
        if (alert.name, alert.severity) == (fires.alert, labels["severity"])
    )

    def filled(match: re.Match[str]) -> str:
        return labels[match[1].removeprefix(".Labels.")] if ".Labels." in match[0] else fires.says

    return {key: re.sub(r"\{\{.*?(\.[\w.]+) \}\}", filled, text) for key, text in templates.items()}


def _selector(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
