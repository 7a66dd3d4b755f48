"""What the guard changes: each fault with it and without, the table of the demo's comparison and of its tests."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.demo.runner import Finding, Outcome
from tests.e2e.demo.scenarios import Row, Scenario, core, seen


@dataclass(frozen=True, slots=True)
class Case:
    """One fault: what of it is counted, and passes on the wire, with the guard, and what without."""

    fault: str
    tool: str
    guarded: tuple[Row, ...]
    unguarded: tuple[Row, ...]
    guarded_wire: tuple[Row, ...] = ()
    unguarded_wire: tuple[Row, ...] = ()
    stopped: bool = True
    """Whether the guard has something to stop."""
    arguments: tuple[str, ...] = ()
    """Of the client."""

    def judge(self, outcome: Outcome) -> tuple[Finding, ...]:
        """What a run came to, also one that was made for another table."""
        if outcome.scenario.guard:
            return outcome.judged(self.guarded, self.guarded_wire)
        return outcome.judged(self.unguarded, self.unguarded_wire)

    def run(self, *, guard: bool, seconds: float = 8.0) -> Scenario:
        return Scenario(
            self.fault,
            f"guard {'on' if guard else 'off'}",
            tool=self.tool,
            wire=self.guarded_wire if guard else self.unguarded_wire,
            expected=self.guarded if guard else self.unguarded,
            seconds=seconds,
            arguments=self.arguments,
            environment={"OTEL_PYTHON_HTTPX_SSE_GUARD": "on" if guard else "off"},
            guard=guard,
        )


def acted(action: str) -> Row:
    return core("guard_actions_total", ">=", 1, sse_guard_action=action)


IDLE = core("guard_actions_total", "==", 0)
SESSION_LOST = core("sessions_lost_total", ">=", 1, sse_session_phase="after_replay")
CASES = {
    case.fault: case
    for case in (
        Case(
            "empty-resume",
            "report",
            guarded=(acted("breaker_opened"), core("stalled_streak", "<=", 3)),
            unguarded=(core("stalled_streak", ">=", 5), IDLE),
            guarded_wire=(seen("tools/call", ">=", 2),),
            unguarded_wire=(seen("tools/call", "==", 1), seen("resumes", ">=", 5)),
        ),
        Case(
            "stale-prompt",
            "wipe",
            guarded=(acted("operation_failed"), core("reprompts_total", "==", 0)),
            unguarded=(core("reprompt_streak", ">=", 5), core("reprompts_total", ">=", 5), IDLE),
            guarded_wire=(seen("tools/call", ">=", 2), seen("resumes_after_refusal", "==", 0)),
            unguarded_wire=(seen("tools/call", "==", 1), seen("resumes_after_refusal", ">=", 5)),
        ),
        Case(
            "dead-at-replay",
            "report",
            guarded=(acted("session_quarantined"), SESSION_LOST),
            unguarded=(SESSION_LOST, IDLE),
            guarded_wire=(seen("resumes", "==", 1), seen("tools/list", "==", 0)),
            unguarded_wire=(seen("tools/list", ">=", 1), seen("session_not_found", ">=", 1)),
        ),
        Case(
            "healthy-polling",
            "report_later",
            guarded=(IDLE, core("probes_total", ">=", 3)),
            unguarded=(IDLE,),
            stopped=False,
        ),
        Case("quiet", "report", guarded=(IDLE,), unguarded=(IDLE,), stopped=False),
    )
}
STOPPED = tuple(fault for fault, case in CASES.items() if case.stopped)
SLOW_PERSON = Case(
    "slow-person",
    "wipe",
    guarded=(acted("prompt_dropped"), acted("operation_failed")),
    unguarded=(core("reprompts_total", ">=", 5), IDLE),
    guarded_wire=(
        seen("tools/call", ">=", 2),
        seen("resumes", ">=", 2),
        seen("resumes_after_refusal", "==", 0),
    ),
    unguarded_wire=(seen("tools/call", "==", 1), seen("resumes", ">=", 5)),
    arguments=("--thinking", "0.5"),
)
"""A stale prompt once more, before a person who takes longer for an answer than the client for a resume."""
