"""What alerts and panels share: sums by server, recorded once an interval under `level:metric:operations`.

A Prometheus rules file records them. Grafana cannot read recordings out of a rules file, so its alerts have
the same expressions written out in place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .catalogue import Part, select
from .thresholds import Settings, duration

SERVER: Final = ("job", "server_address", "server_port")
PROCESS: Final = ("job", "instance", "server_address", "server_port")
"""What an alert is about. Everything else, the labels of the scope above all, is aggregated away."""

FAILED_ANSWERS: Final = "unknown_request|session_lost|rejected"
SETTLED: Final = "live|dead"


def by(labels: tuple[str, ...]) -> str:
    """The labels that an aggregation keeps."""
    return f"by ({', '.join(labels)})"


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded series, and the labels that it keeps."""

    name: str
    expr: str
    labels: tuple[str, ...]


class Recordings:
    """The recorded series of some settings, by short keys; `inline` writes the expressions out instead."""

    def __init__(self, settings: Settings, *, inline: bool = False) -> None:
        self._inline = inline
        self._step = duration(settings.interval)
        self._rows: dict[str, Recording] = {}
        self.matchers = (f'job=~"{settings.job}"',) if settings.job else ()
        for record in (_streams, _reconnects, _replays, _outcomes, _sessions, _answers, _requests):
            record(self, settings)

    @property
    def rows(self) -> Mapping[str, Recording]:
        return self._rows

    def __getitem__(self, key: str) -> str:
        """A recorded series, to be used in an expression."""
        row = self._rows[key]
        return f"({row.expr})" if self._inline else row.name

    def mean(self, key: str, window: float) -> str:
        """The mean of a recorded series over a window."""
        step = f":{self._step}" if self._inline else ""
        return f"avg_over_time({self[key]}[{duration(window)}{step}])"

    def add(self, key: str, metric: str, operation: str, expr: str) -> None:
        """Record `expr`, which keeps the labels of the server."""
        self._rows[key] = Recording(f"job_server:{metric}:{operation}", expr, SERVER)

    def series(self, metric: str, part: Part = "", /, **equals: str) -> str:
        """A selector of one metric in the jobs that the settings name."""
        return select(metric, part, *self.matchers, **equals)


def _streams(book: Recordings, _settings: Settings) -> None:
    streams = book.series("sse.client.logical_streams")
    book.add("streams", "sse_client_logical_streams", "sum", f"sum {by(SERVER)} ({streams})")


def _reconnects(book: Recordings, settings: Settings) -> None:
    unplanned = book.series("sse.client.reconnects", sse_reconnect_cause="!server_poll")
    for key in ("long", "short"):
        seconds = settings.table["SSEReconnectStorm"][key]
        window = duration(seconds)
        book.add(
            f"unplanned.{key}",
            "sse_client_unplanned_reconnects",
            f"rate{window}",
            f"sum {by(SERVER)} (rate({unplanned}[{window}]))",
        )
        book.add(
            f"unplanned_per_stream.{key}",
            "sse_client_unplanned_reconnects_per_stream",
            f"rate{window}",
            f"{book[f'unplanned.{key}']}\n/\nclamp_min({book.mean('streams', seconds)}, 1)",
        )


def _replays(book: Recordings, settings: Settings) -> None:
    for key in ("long", "short"):
        window = duration(settings.table["SSEEmptyReplayLoop"][key])
        empty = book.series("sse.client.empty_replays")
        book.add(
            f"empty.{key}",
            "sse_client_empty_replays",
            f"rate{window}",
            f"sum {by(SERVER)} (rate({empty}[{window}]))",
        )


def _outcomes(book: Recordings, settings: Settings) -> None:
    window = duration(settings.table["SSEEmptyReplayLoop"]["long"])
    outcomes = book.series("sse.client.reconnect.outcomes")
    book.add(
        "outcomes",
        "sse_client_reconnect_outcomes",
        f"rate{window}",
        f"sum {by(SERVER)} (rate({outcomes}[{window}]))",
    )


def _sessions(book: Recordings, settings: Settings) -> None:
    window = duration(settings.table["SSESessionDeadAfterReplay"]["window"])
    lost = book.series("sse.client.sessions_lost", sse_session_phase="after_replay")
    settled = book.series("sse.client.probes", sse_probe_context="after_replay", sse_probe_outcome=SETTLED)
    book.add(
        "dead",
        "sse_client_sessions_lost_after_replay",
        f"increase{window}",
        f"sum {by(SERVER)} (increase({lost}[{window}]))",
    )
    book.add(
        "settled",
        "sse_client_probes_settled",
        f"increase{window}",
        f"sum {by(SERVER)} (increase({settled}[{window}]))",
    )


def _answers(book: Recordings, settings: Settings) -> None:
    """Each answer is read once: those that were refused, and the rest."""
    window = duration(settings.table["SSEAnswersRejected"]["window"])
    refused = book.series("sse.client.answers", sse_answer_outcome=FAILED_ANSWERS)
    others = book.series("sse.client.answers", sse_answer_outcome=f"!{FAILED_ANSWERS}")
    ineffective = book.series("sse.client.ineffective_answers")
    book.add(
        "answers_refused",
        "sse_client_answers_refused",
        f"increase{window}",
        f"sum {by(SERVER)} (increase({refused}[{window}]))",
    )
    first = book["answers_refused"]
    book.add(
        "answers_failed",
        "sse_client_answers_failed",
        f"increase{window}",
        f"{first} + sum {by(SERVER)} (increase({ineffective}[{window}]))\nor\n{first}",
    )
    book.add(
        "answers",
        "sse_client_answers",
        f"increase{window}",
        f"{first} + sum {by(SERVER)} (increase({others}[{window}]))",
    )


def _requests(book: Recordings, settings: Settings) -> None:
    window = duration(settings.table["SSERequestsLost"]["window"])
    lost = book.series("sse.client.requests_lost")
    answered = book.series("sse.client.events", sse_event_type="response")
    book.add(
        "requests_lost",
        "sse_client_requests_lost",
        f"increase{window}",
        f"sum {by(SERVER)} (increase({lost}[{window}]))",
    )
    book.add(
        "requests_on_streams",
        "sse_client_requests_on_streams",
        f"increase{window}",
        f"{book['requests_lost']} + sum {by(SERVER)} (increase({answered}[{window}]))\nor\n{book['requests_lost']}",
    )
