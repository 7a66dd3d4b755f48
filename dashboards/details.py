"""What panels would read from too many series: rates by server and by process, recorded every two minutes.

A metric has a series for each process, server and label set, most of which stand still. A panel about whole
servers reads sums instead, a few series however large the fleet is. Where a panel tells processes apart it reads
what moved in each of them: a recording by process leaves out what is 0.

The window is longer than twice the interval by a scrape or two, so each event is in two windows at least. Added
up over a time range, what happens at random comes out right; what happens at the pace of the evaluation itself may
come out a third too high.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .catalogue import Part, name_of
from .recordings import PROCESS, SERVER, Recording, Recordings, by
from .thresholds import duration

EVERY: Final = 120.0
"""Seconds between evaluations."""

WINDOW: Final = 300.0
GROUP: Final = "sse-client panels"


@dataclass(frozen=True, slots=True)
class Detail:
    """One metric, and which of its own labels panels ask for. Of a histogram the buckets are recorded."""

    metric: str
    labels: tuple[str, ...]
    histogram: bool = False

    @property
    def part(self) -> Part:
        return "_bucket" if self.histogram else ""

    @property
    def of_server(self) -> str:
        """The recording that tells servers apart."""
        return self._name("job_server")

    @property
    def of_process(self) -> str:
        """The recording that tells processes apart; a histogram has none, it would be as large as its source."""
        if self.histogram:
            raise KeyError(f"{self.metric} is not recorded by process")
        return self._name("job_instance_server")

    def _name(self, level: str) -> str:
        return f"{level}:{name_of(self.metric, self.part).removesuffix('_total')}:rate{duration(WINDOW)}"

    def rows(self, book: Recordings) -> Iterator[Recording]:
        """What is recorded, in the order in which it is read."""
        rate = f"rate({book.series(self.metric, self.part)}[{duration(WINDOW)}])"
        labels = (*self.labels, "le") if self.histogram else self.labels
        if not self.histogram:
            process = (*PROCESS, *labels)
            yield Recording(self.of_process, f"sum {by(process)} ({rate}) > 0", process)
            rate = self.of_process
        server = (*SERVER, *labels)
        yield Recording(self.of_server, f"sum {by(server)} ({rate})", server)


_ALL: Final = (
    Detail("sse.client.reconnects", ("sse_stream_kind", "sse_reconnect_cause", "sse_reconnect_cursor")),
    Detail("sse.client.reconnect.outcomes", ("sse_stream_kind", "sse_reconnect_outcome")),
    Detail("sse.client.reprompts", ("sse_reprompt_trigger", "sse_prompt_liveness")),
    Detail("sse.client.answers", ("sse_answer_outcome", "sse_answer_timing")),
    Detail("sse.client.retries_after_terminal", ("sse_failure_point",)),
    Detail("sse.client.sessions_lost", ("sse_session_phase", "sse_session_signal")),
    Detail("sse.client.requests_lost", ("mcp_method_name", "sse_loss_reason")),
    Detail("sse.client.streams_lost", ()),
    Detail("sse.client.probes", ("sse_probe_kind", "sse_probe_outcome")),
    Detail("sse.client.empty_replays", ("sse_request_state",)),
    Detail("sse.client.responses", ("sse_response_delivery",)),
    Detail("sse.client.guard.actions", ("sse_guard_action",)),
    Detail("sse.client.stream.silence", ("sse_stream_kind", "sse_stream_end"), histogram=True),
    Detail("sse.client.stream.duration", (), histogram=True),
    Detail("sse.client.stream.time_to_first_event", (), histogram=True),
    Detail("sse.client.reconnect.delay", (), histogram=True),
    Detail("sse.client.confirmation.duration", (), histogram=True),
    Detail("mcp.client.operation.duration", ("mcp_method_name",), histogram=True),
)

DETAILS: Final[Mapping[tuple[str, Part], Detail]] = MappingProxyType(
    {(detail.metric, detail.part): detail for detail in _ALL}
)
"""By metric and part of it. What is not here is cheap enough to be read as it is, or nobody asks for it."""


def recordings(book: Recordings) -> tuple[Recording, ...]:
    """Everything that panels alone read, in the order in which it is recorded."""
    return tuple(row for detail in _ALL for row in detail.rows(book))
