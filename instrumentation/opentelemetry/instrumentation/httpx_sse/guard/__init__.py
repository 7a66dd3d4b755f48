"""The guard: stop what cannot succeed, not only count it.

For people who write clients:

- `ResumptionGuard`: may this request's stream be resumed, and what does the answer to a resume mean;
- `PromptBook`, `resume_and_reconcile`: which server requests of a replay may be presented again;
- `confirm_session`: replay, then probe, then release or quarantine.

For people who use one:

- `GuardTransport`, `AsyncGuardTransport`: around any transport of httpx or httpx2;
- or for all clients of a process: `OTEL_PYTHON_HTTPX_SSE_GUARD=on`, or `instrument(guard=True)`.

The ledger's tables decide; nothing is decided here that they do not say.
"""

from ._confirmation import confirm_session, judge_probe
from ._errors import (
    NEXT,
    Advice,
    GuardError,
    InvalidResumptionError,
    SessionResumptionError,
    StaleElicitationError,
    StalledResumptionError,
    UnknownPendingRequestError,
)
from ._procedure import Procedure
from ._quarantine import Quarantine, Quarantined
from ._replay import (
    PromptBook,
    Reconciled,
    ServerRequest,
    check_answer,
    interpret_answer,
    resume_and_reconcile,
)
from ._resumption import Reading, ResumptionGuard
from ._transports import AsyncGuardTransport, GuardTransport, guard_of

__all__ = [
    "NEXT",
    "Advice",
    "AsyncGuardTransport",
    "GuardError",
    "GuardTransport",
    "InvalidResumptionError",
    "Procedure",
    "PromptBook",
    "Quarantine",
    "Quarantined",
    "Reading",
    "Reconciled",
    "ResumptionGuard",
    "ServerRequest",
    "SessionResumptionError",
    "StaleElicitationError",
    "StalledResumptionError",
    "UnknownPendingRequestError",
    "check_answer",
    "confirm_session",
    "guard_of",
    "interpret_answer",
    "judge_probe",
    "resume_and_reconcile",
]
