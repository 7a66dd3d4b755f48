"""Every number of every alert in one table, each with its reason; and the settings to build rules with.

Three things hold for the whole table:

* Whatever can be read off a window ends with it, and an alert must be over 15 minutes after its fault. So a
  window, `keep` and what the instrument itself remembers add up to 14 minutes at most: the last minute is for
  the scrape and the evaluation.
* A short window beside a long one: the long one proves the volume, the short one that it still goes on. Both
  must hold, so a burst stops counting when it has left the short window, and `for` measures the storm itself.
* `increase()` of a series that is two samples old can be twice what happened. `for` outlasts that where one
  event more or less decides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

Severity = Literal["critical", "warning", "info"]
Unit = Literal["window", "age", "volume", "events", "streak", "ratio", "per_minute"]

SCALED: Final[frozenset[Unit]] = frozenset({"window", "age", "volume"})
"""Units that shrink with the clock in a live test: durations, and counts that mean a rate over a window."""

MINUTE: Final = 60.0

OVERVIEW_UID: Final = "sse-client-overview"
ENDPOINT_UID: Final = "sse-client-endpoint"
"""Identifiers of the two dashboards; links in annotations use them."""

RUNBOOK_UID: Final = "sse-client-"
"""What the identifier of a runbook's page in Grafana begins with; the name of its alert follows."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number of an alert. Durations are seconds."""

    value: float
    unit: Unit
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """The numbers of one alert. `for` and `keep` (keep_firing_for) are among them."""

    severity: Severity
    numbers: Mapping[str, Number]

    def __getitem__(self, key: str) -> float:
        return self.numbers[key].value


def _row(severity: Severity, **numbers: Number) -> Row:
    return Row(severity, MappingProxyType({key.rstrip("_"): number for key, number in numbers.items()}))


def _window(minutes: float, why: str) -> Number:
    return Number(minutes * MINUTE, "window", why)


_KEEP: Final = _window(10, "one page for a fault that comes in bursts; over 12 minutes after it")
_NO_KEEP: Final = _window(0, "the window itself holds the alert")
_QUARTER: Final = _window(14, "a quarter of an hour, less a minute for scrape and evaluation")
_PROOF: Final = _window(10, "proves the volume")
_SHORT: Final = _window(2, "shows that it goes on; four scrapes at 30 s, so one may be missed")
_SETTLED: Final = _window(2, "four scrapes: until then increase() of a young series may be double")

TABLE: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "SSEReconnectStorm": _row(
            "warning",
            rate=Number(
                3,
                "per_minute",
                "per logical stream: the shortest idle limit seen in the field, 30 s, makes 2; the slowest "
                "loop of a client, one in 3 s, makes 20",
            ),
            volume=Number(
                40, "volume", "in the long window: one stream on a bad network at 3.5 a minute is no storm"
            ),
            long=_PROOF,
            short=_SHORT,
            for_=_window(
                5,
                "a restart with two minutes of retries at 1 Hz holds for those two minutes, less 40 s, and as "
                "long again as the short window; three minutes of outage do not fire, four do",
            ),
            keep=_KEEP,
        ),
        "SSEStreamStuck": _row(
            "critical",
            streak=Number(
                10,
                "streak",
                "a legal poll brings a new cursor and sets the streak to 0, a quiet stream leaves it; 10 in a "
                "row are 10 to 30 s of a loop at the pace of the official clients",
            ),
            bridge=_window(2, "the last value of two minutes: a missed scrape does not begin `for` anew"),
            for_=_window(
                4,
                "a restart that refuses for two minutes, and whose stream is then given up, shows its streak "
                "for two minutes more; a loop is paged within six minutes all the same",
            ),
            keep=_window(5, "a loop that gets one message through now and then is one fault"),
        ),
        "SSEEmptyReplayLoop": _row(
            "critical",
            rate=Number(
                2, "per_minute", "20 in ten minutes: a single client in a loop makes 20 to 60 a minute"
            ),
            ratio=Number(
                0.8, "ratio", "of all outcomes: where other replays work, `SSEStreamStuck` finds the stream"
            ),
            long=_PROOF,
            short=_SHORT,
            for_=_window(
                5, "a deploy that loses its event store makes every stream come back empty once or twice"
            ),
            keep=_KEEP,
        ),
        "SSERequestNotRecovering": _row(
            "warning",
            age=Number(
                15 * MINUTE, "age", "three times the five minutes at which clients and proxies end a call"
            ),
            progress=_window(
                10,
                "a long call that polls legally gets a new cursor or message each time: a process that got "
                "one in ten minutes has a slow call, not a lost one",
            ),
            limit=Number(
                120 * MINUTE, "age", "whatever else the process gets: raise it above your longest tool"
            ),
            for_=_window(2, "four scrapes"),
            keep=_window(0, "the age ends with the request"),
        ),
        "SSESessionDeadAfterReplay": _row(
            "critical",
            events=Number(
                1.5, "events", "one may be a deploy, two are a pattern; halfway, as increase() is no integer"
            ),
            ratio=Number(0.05, "ratio", "of the probes that settled a replay: one in twenty"),
            window=_QUARTER,
            for_=_SETTLED,
            keep=_NO_KEEP,
        ),
        "SSERepromptLoop": _row(
            "critical",
            streak=Number(
                3,
                "streak",
                "by replay or resend: one is a reconnect at a bad moment, two a bad network; at the third "
                "nobody waits for the answer any more",
            ),
            asked=Number(
                6,
                "streak",
                "by input_required or url_required, a warning: servers may ask again, three forms in a row "
                "are legal; clients stop at 8 or 10 rounds",
            ),
            for_=_window(1, "the prompt is still open after two scrapes"),
            keep=_KEEP,
        ),
        "SSEAnswersRejected": _row(
            "warning",
            events=Number(3, "events", "now and then an answer comes too late, that is normal"),
            ratio=Number(0.2, "ratio", "of all answers"),
            window=_QUARTER,
            for_=_SETTLED,
            keep=_NO_KEEP,
        ),
        "SSERetryAfterTerminal": _row(
            "warning",
            rate=Number(
                2, "per_minute", "of one process: more than 10 in five minutes are a loop, no last attempt"
            ),
            long=_window(5, "proves the volume"),
            short=_SHORT,
            for_=_window(5, "a restart behind a proxy that says 404 for two minutes holds for four"),
            keep=_window(5, "the loop of one stream may pause while the next begins"),
        ),
        "SSERequestsLost": _row(
            "warning",
            events=Number(5, "events", "a deploy without resumption loses what is under way, once"),
            ratio=Number(0.05, "ratio", "of the requests that were answered on a stream or lost"),
            window=_QUARTER,
            for_=_SETTLED,
            keep=_NO_KEEP,
        ),
        "SSEStreamGaveUp": _row(
            "warning",
            events=Number(0, "events", "one is a session that hears nothing any more, and nobody logs it"),
            window=_QUARTER,
            for_=_window(0, "nothing will bring it back"),
            keep=_NO_KEEP,
        ),
        "SSEGuardActing": _row(
            "info",
            events=Number(0, "events", "each is a fault that somebody would have noticed without the guard"),
            window=_QUARTER,
            for_=_window(0, "what was stopped does not last"),
            keep=_NO_KEEP,
        ),
        "SSETelemetryErrors": _row(
            "warning",
            events=Number(0, "events", "each is a defect of the instrumentation, or of your `verdict_hook`"),
            window=_QUARTER,
            for_=_window(0, "a defect does not need to last"),
            keep=_NO_KEEP,
        ),
        "SSETelemetryAbsent": _row(
            "warning",
            for_=_window(15, "a deploy, a moved target and a restarted Prometheus take less"),
            keep=_window(0, "it is over with the first series"),
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user may choose when rules and dashboards are written."""

    table: Mapping[str, Row] = field(default_factory=lambda: TABLE)
    job: str = ""
    """Pattern of the `job` label; empty selects every job."""
    absent_jobs: tuple[str, ...] = ("sse-client",)
    """Jobs that must have telemetry; the alert on it is a file of its own that is not loaded unasked."""
    severity_page: str = "critical"
    """The value of the `severity` label that pages."""
    interval: float = 30.0
    """Seconds between evaluations."""
    grafana: str = "http://localhost:3000"
    datasource: str = "prometheus"
    """The uid of the Prometheus data source that Grafana's own alerts ask."""
    runbooks: str = ""
    """Where the runbook pages are served from; empty if Grafana shows them, beside the dashboards."""
    severities: Mapping[str, str] = field(default_factory=dict)
    """Severity of single alerts, where it is not the table's."""

    def severity(self, alert: str, severity: Severity | None = None) -> str:
        """The value of the `severity` label."""
        chosen = self.severities.get(alert, severity or self.table[alert].severity)
        return self.severity_page if chosen == "critical" else chosen

    def runbook(self, alert: str) -> str:
        """The address of an alert's runbook, for a page that is read anywhere."""
        return self.runbook_link(alert) if self.runbooks else f"{self.grafana}{self.runbook_link(alert)}"

    def runbook_link(self, alert: str) -> str:
        """The same for a link inside Grafana; `alert` may be a template."""
        return f"{self.runbooks}/{alert}.md" if self.runbooks else f"/d/{RUNBOOK_UID}{alert}"

    def override(self, assignments: Iterable[str]) -> "Settings":
        """Settings with `ALERT.NUMBER=VALUE` applied; durations are written as in PromQL (`90s`, `10m`)."""
        table, severities = dict(self.table), dict(self.severities)
        for assignment in assignments:
            alert, key, value = _assignment(assignment, table)
            if key == "severity":
                severities[alert] = value
                continue
            row = table[alert]
            number = replace(row.numbers[key], value=_number(value, row.numbers[key].unit, assignment))
            table[alert] = replace(row, numbers=MappingProxyType({**row.numbers, key: number}))
        return replace(self, table=MappingProxyType(table), severities=MappingProxyType(severities))

    def scaled(self, factor: float, interval: float = 1.0) -> "Settings":
        """The same alerts on a clock that runs faster: for live tests."""
        table = {
            alert: replace(
                row,
                numbers=MappingProxyType(
                    {
                        key: replace(n, value=n.value * factor) if n.unit in SCALED else n
                        for key, n in row.numbers.items()
                    }
                ),
            )
            for alert, row in self.table.items()
        }
        return replace(self, table=MappingProxyType(table), interval=interval)


def duration(seconds: float) -> str:
    """Seconds as Prometheus writes a duration."""
    milliseconds = round(seconds * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and (milliseconds or unit == "s"):
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _assignment(assignment: str, table: Mapping[str, Row]) -> tuple[str, str, str]:
    target, equals, value = assignment.partition("=")
    alert, dot, key = target.strip().partition(".")
    if not (equals and dot):
        raise ValueError(f"{assignment!r} is not of the form ALERT.NUMBER=VALUE")
    if alert not in table:
        raise ValueError(f"no alert {alert!r}; there are {', '.join(table)}")
    keys = ("severity", *table[alert].numbers)
    if key not in keys:
        raise ValueError(f"{alert} has no number {key!r}; it has {', '.join(keys)}")
    return alert, key, value.strip()


_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _number(text: str, unit: Unit, assignment: str) -> float:
    suffix = text.lstrip("0123456789.")
    try:
        if unit in ("window", "age"):
            return float(text.removesuffix(suffix)) * _SECONDS[suffix or "s"]
        return float(text)
    except (KeyError, ValueError):
        raise ValueError(f"{assignment!r}: {text!r} is no {unit}") from None
