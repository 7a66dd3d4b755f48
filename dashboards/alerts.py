"""The alerts: what each one reads, when it fires and what it says. Numbers stand in `thresholds`.

No label varies by value and none but `severity` is added, so an alert keeps its identity while it fires. What
it is about is in the labels that its expression keeps: the server, or where a page must name it, the process. Only
the alert on missing telemetry, which is there once for each job, says its job itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .catalogue import EVERY_METRIC, OVERFLOW_LABEL
from .recordings import PROCESS, SERVER, Recordings, by
from .thresholds import ENDPOINT_UID, OVERVIEW_UID, TABLE, Settings, Severity, duration

VALUE: Final = ".Value"
"""How a template of Prometheus calls the value of the expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alerting rule, for Prometheus and for Grafana alike. Durations are seconds."""

    name: str
    variant: str
    """Tells two alerts of one name apart where a name must be unique."""
    expr: str
    severity: str
    hold: float
    keep: float
    about: tuple[str, ...]
    summary: str
    description: str
    runbook_url: str
    dashboard: str
    job: str = ""
    """The one job that the alert is for, where there is such an alert for each."""

    @property
    def labels(self) -> dict[str, str]:
        return {"severity": self.severity} | ({"job": self.job} if self.job else {})

    @property
    def annotations(self) -> dict[str, str]:
        return {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": self.runbook_url,
            "dashboard": self.dashboard,
        }


@dataclass(frozen=True, slots=True)
class Build:
    """What the functions below build one alert with."""

    settings: Settings
    book: Recordings

    def number(self, alert: str, key: str) -> str:
        return f"{self.settings.table[alert][key]:g}"

    def window(self, alert: str, key: str) -> str:
        return duration(self.settings.table[alert][key])

    def span(self, alert: str, key: str) -> str:
        """A duration in a sentence."""
        seconds = self.settings.table[alert][key]
        return "a quarter of an hour" if seconds == TABLE[alert][key] else duration(seconds)

    def alert(
        self,
        name: str,
        expr: str,
        *,
        about: tuple[str, ...],
        summary: str,
        description: str,
        first: str,
        severity: Severity | None = None,
        variant: str = "",
        job: str = "",
    ) -> Alert:
        row = self.settings.table[name]
        return Alert(
            name=name,
            variant=variant,
            expr=expr,
            severity=self.settings.severity(name, severity),
            hold=row["for"],
            keep=row["keep"],
            about=about,
            summary=summary,
            description=f"{description} {_where(about)} First: {first}",
            runbook_url=self.settings.runbook(name),
            dashboard=self.settings.grafana + _link(about),
            job=job,
        )


def alerts(settings: Settings, book: Recordings) -> tuple[Alert, ...]:
    """All alerts but the one on missing telemetry, in the order of the runbook."""
    build = Build(settings, book)
    return tuple(alert for make in _ALERTS for alert in make(build))


def absent_alerts(settings: Settings) -> tuple[Alert, ...]:
    """The alert on missing telemetry, once for each job that must have some."""
    build = Build(settings, Recordings(settings))
    return tuple(
        build.alert(
            "SSETelemetryAbsent",
            f'absent(sse_client_instrumentation_errors_total{{job="{job}"}})',
            about=("job",),
            variant=job if job != settings.absent_jobs[0] else "",
            job=job,
            summary="A job that must report on its event streams reports nothing.",
            description="No series of the SSE instrumentation for "
            f"{build.span('SSETelemetryAbsent', 'for')}: no other alert of this family can fire.",
            first="see whether the program runs and its target is up.",
        )
        for job in settings.absent_jobs
    )


def _where(about: tuple[str, ...]) -> str:
    parts = {
        "job": "Job {{ .Labels.job }}",
        "instance": "process {{ .Labels.instance }}",
        "server_address": "server {{ .Labels.server_address }}:{{ .Labels.server_port }}",
    }
    return ", ".join(text for label, text in parts.items() if label in about) + "."


def _link(about: tuple[str, ...]) -> str:
    if "server_address" not in about:
        return f"/d/{OVERVIEW_UID}?var-job={{{{ .Labels.job }}}}"
    variables = {"job": "job", "server": "server_address", "port": "server_port"}
    chosen = "&".join(f"var-{name}={{{{ .Labels.{label} }}}}" for name, label in variables.items())
    return f"/d/{ENDPOINT_UID}?{chosen}"


def _value(form: str) -> str:
    return f'{{{{ printf "{form}" {VALUE} }}}}'


def _reconnect_storm(build: Build) -> tuple[Alert, ...]:
    name, book = "SSEReconnectStorm", build.book
    rate, volume = build.number(name, "rate"), build.number(name, "volume")
    seconds = f"{build.settings.table[name]['long']:g}"
    expr = (
        f"60 * {book['unplanned_per_stream.long']} > {rate}\n"
        f"and\n60 * {book['unplanned_per_stream.short']} > {rate}\n"
        f"and\n{seconds} * {book['unplanned.long']} > {volume}"
    )
    return (
        build.alert(
            name,
            expr,
            about=SERVER,
            summary="Event streams of a server are reconnecting in a storm.",
            description=f"{_value('%.1f')} unplanned reconnects per stream and minute.",
            first="see which cause leads; mostly the server or its proxy was restarted or deployed.",
        ),
    )


def _stream_stuck(build: Build) -> tuple[Alert, ...]:
    name = "SSEStreamStuck"
    streak = build.book.series("sse.client.stalled_streak")
    return (
        build.alert(
            name,
            f"max {by(PROCESS)} (last_over_time({streak}[{build.window(name, 'bridge')}]))"
            f" >= {build.number(name, 'streak')}",
            about=PROCESS,
            summary="An event stream reconnects again and again and gets nothing new.",
            description=f"{_value('%.0f')} reconnects in a row without progress.",
            first="restart the client process; the call that hangs may have been carried out.",
        ),
    )


def _empty_replay_loop(build: Build) -> tuple[Alert, ...]:
    name, book = "SSEEmptyReplayLoop", build.book
    rate, ratio = build.number(name, "rate"), build.number(name, "ratio")
    expr = (
        f"60 * {book['empty.long']} > {rate}\n"
        f"and\n60 * {book['empty.short']} > {rate}\n"
        f"and\n{book['empty.long']} / {_floor(book['outcomes'])} > {ratio}"
    )
    return (
        build.alert(
            name,
            expr,
            about=SERVER,
            summary="A server accepts resumed streams and ends them without an event.",
            description=f"{_value('%.0f')} empty replays a minute, more than "
            f"{100 * build.settings.table[name]['ratio']:g} % of what its reconnects bring.",
            first="ask what was restarted or deployed at the server; its event store is lost or out of reach.",
        ),
    )


def _request_not_recovering(build: Build) -> tuple[Alert, ...]:
    name, book = "SSERequestNotRecovering", build.book
    age = book.series("sse.client.oldest_request.age")
    progress = book.series(
        "sse.client.reconnect.outcomes",
        sse_stream_kind="response",
        sse_reconnect_outcome="progressed|primed",
    )
    window = build.window(name, "progress")
    expr = (
        f"max {by(SERVER)} (\n"
        f"    max {by(PROCESS)} ({age}) > {build.number(name, 'age')}\n"
        f"  unless\n"
        f"    sum {by(PROCESS)} (increase({progress}[{window}])) > 0\n"
        f")\n"
        f"or\n"
        f"max {by(SERVER)} ({age}) > {build.number(name, 'limit')}"
    )
    return (
        build.alert(
            name,
            expr,
            about=SERVER,
            summary="A request whose stream was reconnected has no answer yet.",
            description=f"The oldest has been waiting for {{{{ humanizeDuration {VALUE} }}}}.",
            first="see whether the tool may take that long; if not, cancel the call.",
        ),
    )


def _session_dead(build: Build) -> tuple[Alert, ...]:
    name, book = "SSESessionDeadAfterReplay", build.book
    return (
        build.alert(
            name,
            f"{book['dead']} > {build.number(name, 'events')}\n"
            f"and\n{book['dead']} / {_floor(book['settled'])} > {build.number(name, 'ratio')}",
            about=SERVER,
            summary="Sessions turn out to be dead after their streams were resumed with success.",
            description=f"{_value('%.0f')} sessions were lost right after a replay in "
            f"{build.span(name, 'window')}.",
            first="ask whether the server was restarted, or has replicas that do not share sessions.",
        ),
    )


def _reprompt_loop(build: Build) -> tuple[Alert, ...]:
    name = "SSERepromptLoop"

    def expr(triggers: str, key: str) -> str:
        streak = build.book.series("sse.client.reprompt_streak", sse_reprompt_trigger=triggers)
        return f"max {by(PROCESS)} ({streak}) >= {build.number(name, key)}"

    return (
        build.alert(
            name,
            expr("replay|resend", "streak"),
            about=PROCESS,
            summary="A person or a model is shown the same prompt over and over.",
            description=f"One prompt came again {_value('%.0f')} times in a row and is still open.",
            first="close the form and do not answer again; cancel the operation and start a new session.",
        ),
        build.alert(
            name,
            expr("input_required|url_required", "asked"),
            about=PROCESS,
            severity="warning",
            variant="asked again",
            summary="A server answers one request with the same demand for input over and over.",
            description=f"The same input was asked for again {_value('%.0f')} times in a row.",
            first="cancel the call; look in the server's log for what it misses in the answer.",
        ),
    )


def _answers_rejected(build: Build) -> tuple[Alert, ...]:
    name, book = "SSEAnswersRejected", build.book
    return (
        build.alert(
            name,
            f"{book['answers_failed']} >= {build.number(name, 'events')}\n"
            f"and\n{book['answers_failed']} / {_floor(book['answers'])} > {build.number(name, 'ratio')}",
            about=SERVER,
            summary="Answers to prompts do not reach the server's request.",
            description=f"{_value('%.0f')} answers were refused or had no effect in "
            f"{build.span(name, 'window')}.",
            first="start a new session; answering again leads nowhere.",
        ),
    )


def _retry_after_terminal(build: Build) -> tuple[Alert, ...]:
    name = "SSERetryAfterTerminal"
    retries, rate = build.book.series("sse.client.retries_after_terminal"), build.number(name, "rate")

    def per_minute(window: str) -> str:
        return f"60 * sum {by(PROCESS)} (rate({retries}[{build.window(name, window)}])) > {rate}"

    return (
        build.alert(
            name,
            f"{per_minute('long')}\nand\n{per_minute('short')}",
            about=PROCESS,
            summary="A client keeps retrying what can never succeed.",
            description=f"{_value('%.1f')} retries a minute after a final refusal.",
            first="restart the client process; then look up the reason of the refusal on the dashboard.",
        ),
    )


def _requests_lost(build: Build) -> tuple[Alert, ...]:
    name, book = "SSERequestsLost", build.book
    return (
        build.alert(
            name,
            f"{book['requests_lost']} >= {build.number(name, 'events')}\n"
            f"and\n{book['requests_lost']} / {_floor(book['requests_on_streams'])}"
            f" > {build.number(name, 'ratio')}",
            about=SERVER,
            summary="Requests are lost with the event streams that carried them.",
            description=f"{_value('%.0f')} requests lost their answer in {build.span(name, 'window')}.",
            first="see the reasons on the dashboard; repeat calls only if that is safe.",
        ),
    )


def _stream_gave_up(build: Build) -> tuple[Alert, ...]:
    name = "SSEStreamGaveUp"
    lost, window = build.book.series("sse.client.streams_lost"), build.window("SSEStreamGaveUp", "window")
    return (
        build.alert(
            name,
            f"sum {by(PROCESS)} (increase({lost}[{window}])) > {build.number(name, 'events')}",
            about=PROCESS,
            summary="A client gave up its notification stream while its session goes on.",
            description=f"{_value('%.0f')} sessions hear nothing from their server any more.",
            first="restart the process, or end its session and start a new one.",
        ),
    )


def _guard_acting(build: Build) -> tuple[Alert, ...]:
    name = "SSEGuardActing"
    actions = build.book.series("sse.client.guard.actions")
    return (
        build.alert(
            name,
            f"sum {by(SERVER)} (increase({actions}[{build.window(name, 'window')}]))"
            f" > {build.number(name, 'events')}",
            about=SERVER,
            summary="The guard stopped what clients would have repeated; the fault behind it is still there.",
            description=f"{_value('%.0f')} actions of the guard in {build.span(name, 'window')}.",
            first="see which action it was on the dashboard, and follow the runbook of the fault behind it.",
        ),
    )


def _telemetry_errors(build: Build) -> tuple[Alert, ...]:
    name, book = "SSETelemetryErrors", build.book
    errors = book.series("sse.client.instrumentation.errors")
    overflow = ", ".join((*book.matchers, f'__name__=~"{EVERY_METRIC}"', f'{OVERFLOW_LABEL}="true"'))
    return (
        build.alert(
            name,
            f"sum by (job) (increase({errors}[{build.window(name, 'window')}]))"
            f" > {build.number(name, 'events')}\n"
            f"or\ncount by (job) ({{{overflow}}}) > 0",
            about=("job",),
            summary="The SSE instrumentation contained an error of its own, or has too many series.",
            description=f"{_value('%.0f')} contained errors or overflowing metrics. The programs are not "
            "harmed, but the numbers may be wrong.",
            first="report the warning of the logger opentelemetry.instrumentation.httpx_sse._containment in the "
            "program's log (error type and site) and the version of the package.",
        ),
    )


def _floor(denominator: str) -> str:
    """A denominator that is never 0; what is divided by it is 0 then too."""
    return f"clamp_min({denominator}, 1e-9)"


_ALERTS: Final[tuple[Callable[[Build], tuple[Alert, ...]], ...]] = (
    _reconnect_storm,
    _stream_stuck,
    _empty_replay_loop,
    _request_not_recovering,
    _session_dead,
    _reprompt_loop,
    _answers_rejected,
    _retry_after_terminal,
    _requests_lost,
    _stream_gave_up,
    _guard_acting,
    _telemetry_errors,
)
