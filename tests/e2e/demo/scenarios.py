"""Which fault each client is put through, and which series must name it: the table of the demo and its tests.

Names are those of the Prometheus exposition. A row holds for the highest value that the sum of its series had
in any scrape while the client ran, so that `== 0` means: never anything else, or never there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

BOTH = ("mcp1", "mcp2")
FEATURES = ("core", "dialogue")
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Row:
    """What a series, or a count of the wire, must come to."""

    name: str
    labels: Mapping[str, str]
    comparison: str
    value: float
    feature: str = "core"

    def holds(self, highest: float) -> bool:
        return OPERATORS[self.comparison](highest, self.value)

    def __str__(self) -> str:
        labels = ", ".join(f'{key}="{value}"' for key, value in self.labels.items())
        return f"{self.name}{{{labels}}}" if labels else self.name


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault: what the client is to do, what must pass on the wire, and what must be told of it."""

    fault: str
    story: str
    tool: str
    wire: tuple[Row, ...]
    expected: tuple[Row, ...]
    absent: tuple[Row, ...] = ()
    clients: tuple[str, ...] = BOTH
    seconds: float = 6.0
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    guard: bool = False


def seen(name: str, comparison: str, value: float) -> Row:
    """How often the server saw, or sent, something."""
    return Row(name, {}, comparison, value)


def core(name: str, comparison: str, value: float, **labels: str) -> Row:
    return Row(f"sse_client_{name}", labels, comparison, value)


def dialogue(name: str, comparison: str, value: float, **labels: str) -> Row:
    return Row(f"sse_client_{name}", labels, comparison, value, "dialogue")


NO_ERRORS = core("instrumentation_errors_total", "==", 0)
NO_EMPTY_REPLAYS = core("empty_replays_total", "==", 0)
NO_STREAK = core("stalled_streak", "==", 0)
NO_CLASSIFICATIONS = core("classifications_total", "==", 0)
NO_RETRIES = core("retries_after_terminal_total", "==", 0)
NOTHING_LOST = (core("requests_lost_total", "==", 0), core("streams_lost_total", "==", 0))
NO_LOSS = dialogue("sessions_lost_total", "==", 0)
NO_REPROMPTS = dialogue("reprompts_total", "==", 0)
HEALTHY = (
    NO_ERRORS,
    NO_EMPTY_REPLAYS,
    NO_STREAK,
    NO_CLASSIFICATIONS,
    NO_RETRIES,
    *NOTHING_LOST,
    NO_LOSS,
    NO_REPROMPTS,
)

SCENARIOS = (
    Scenario(
        "healthy-polling",
        "the server closes its stream and lets the client poll, as SEP-1699 allows: nothing is wrong",
        tool="report_later",
        wire=(seen("resumes", ">=", 3), seen("tools/call", ">=", 2)),
        expected=(
            core("reconnects_total", ">", 0, sse_reconnect_cause="server_poll", sse_reconnect_cursor="sent"),
            core(
                "reconnect_outcomes_total", ">", 0, sse_reconnect_outcome="primed", sse_disposition="continue"
            ),
            core("reconnect_outcomes_total", ">", 0, sse_reconnect_outcome="progressed"),
        ),
        absent=HEALTHY,
    ),
    Scenario(
        "quiet",
        "the standalone stream has nothing to say and is ended every two seconds: nothing is wrong",
        tool="report",
        seconds=8.0,
        wire=(seen("streams", ">=", 3),),
        expected=(
            core("reconnects_total", ">", 0, sse_stream_kind="standalone"),
            core(
                "reconnect_outcomes_total", ">", 0, sse_reconnect_outcome="quiet", sse_disposition="continue"
            ),
        ),
        absent=HEALTHY,
    ),
    Scenario(
        "empty-resume",
        "every resume is answered 200 and has nothing in it: the call never ends, no error is ever seen",
        tool="report",
        wire=(seen("resumes", ">=", 5), seen("tools/call", "==", 1)),
        expected=(
            core("empty_replays_total", ">=", 5, sse_request_state="in_flight"),
            core("stalled_streak", ">=", 5),
            core("classifications_total", ">=", 5, sse_failure_reason="empty_replay"),
            core(
                "reconnect_outcomes_total",
                ">=",
                5,
                sse_reconnect_outcome="empty",
                sse_disposition="ambiguous",
            ),
            core("oldest_request_age_seconds", ">=", 2),
        ),
        absent=(NO_ERRORS, NO_RETRIES, *NOTHING_LOST, NO_LOSS, NO_REPROMPTS),
    ),
    Scenario(
        "after-answer",
        "the client resumes a call that was answered, and is told the answer again",
        tool="report",
        arguments=("--resume",),
        wire=(seen("resumes", ">=", 5), seen("tools/call", "==", 1)),
        expected=(
            core("reconnects_total", ">=", 5, sse_reconnect_cause="after_terminal"),
            core("responses_total", ">=", 5, sse_response_delivery="duplicate_other_stream"),
            core("retries_after_terminal_total", ">=", 5, sse_failure_point="resume"),
        ),
        absent=(NO_ERRORS, NO_EMPTY_REPLAYS, *NOTHING_LOST, NO_LOSS, NO_REPROMPTS),
    ),
    Scenario(
        "stale-prompt",
        "every resume asks the person again, and every answer is refused: unknown request id",
        tool="wipe",
        wire=(seen("prompts", ">=", 6), seen("answers", ">=", 6), seen("resumes", ">=", 5)),
        expected=(
            dialogue("reprompts_total", ">=", 5, sse_reprompt_trigger="replay"),
            dialogue("reprompt_streak", ">=", 5),
            dialogue("answers_total", ">=", 5, sse_answer_outcome="unknown_request"),
            dialogue("retries_after_terminal_total", ">=", 4, sse_failure_point="answer"),
            dialogue("server_requests_total", ">=", 5, sse_prompt_delivery="redelivered"),
            core("reconnect_outcomes_total", ">=", 5, sse_reconnect_outcome="repeated"),
            core("stalled_streak", ">=", 5),
        ),
        absent=(NO_ERRORS, NO_EMPTY_REPLAYS, *NOTHING_LOST, NO_LOSS),
    ),
    Scenario(
        "dead-after-replay",
        "the replay succeeds, and from then on the server does not know the session",
        tool="report",
        wire=(seen("resumes", "==", 1), seen("session_not_found", ">=", 5)),
        expected=(
            dialogue("sessions_lost_total", ">=", 1, sse_session_phase="after_replay"),
            dialogue("probes_total", ">=", 1, sse_probe_outcome="dead"),
            dialogue("dead_session_requests_total", ">=", 3),
            dialogue("dead_session_events_total", ">=", 1),
            core("reconnect_outcomes_total", ">=", 1, sse_reconnect_outcome="progressed"),
        ),
        absent=(NO_ERRORS, NO_EMPTY_REPLAYS, NO_REPROMPTS),
    ),
    Scenario(
        "input-required-loop",
        "the same input is required in every round of a call (2026-07-28)",
        tool="wipe_again",
        clients=("mcp2",),
        arguments=("--mode", "auto"),
        seconds=4.0,
        wire=(seen("server/discover", "==", 1), seen("input_required", ">=", 10)),
        expected=(
            dialogue("reprompts_total", ">=", 2, sse_reprompt_trigger="input_required"),
            dialogue("server_requests_total", ">=", 1, sse_prompt_delivery="first"),
        ),
        absent=(
            NO_ERRORS,
            NO_EMPTY_REPLAYS,
            NO_STREAK,
            NO_RETRIES,
            NO_LOSS,
            dialogue("probes_total", "==", 0),
        ),
    ),
)
