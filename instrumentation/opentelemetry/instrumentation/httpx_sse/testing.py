r"""For the test suites of people who build clients: what was concluded from their traffic, as values.

    import httpx

    from opentelemetry.instrumentation.httpx_sse.testing import observed, verdicts

    URL = "https://example.org/mcp"
    MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "report"}}

    def serve(request: httpx.Request) -> httpx.Response:
        if request.headers.get("Last-Event-ID") == "1":
            events = 'id: 2\ndata: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'
        else:
            events = "id: 1\ndata:\n\n"
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=events)

    def test_the_resume_recovers() -> None:
        with httpx.Client(transport=httpx.MockTransport(serve)) as client, observed(client) as seen:
            client.post(URL, headers=MCP, json=CALL)
            client.get(URL, headers={**MCP, "Last-Event-ID": "1"})

        assert [settled.outcome for settled in seen.of(verdicts.ReconnectSettled)] == ["progressed"]
        assert seen.of(verdicts.EmptyReplay) == []
        assert max(seen.snapshot().stalled_streak.values(), default=0) == 0

Put your own client and server in their places. A resume belongs to the stream of a POST that the same client was
given before; one with a cursor that was never seen is a reconnect of its own. The classes of `verdicts` are what can
be concluded. No OpenTelemetry SDK is needed, and an error of this package is raised instead of contained.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from . import _verdicts as verdicts
from ._containment import Containment
from ._exchange import Exchange
from ._ledger import Thresholds
from ._observer import Observer
from ._patching import patched
from ._transport import Watch

__all__ = ["Seen", "observed", "verdicts"]

V = TypeVar("V", bound=verdicts.Verdict)


class Seen:
    """The verdicts so far, in order."""

    def __init__(self, **thresholds: Any) -> None:
        self.verdicts: list[verdicts.Verdict] = []
        self.observer = Observer(self._take, thresholds=Thresholds(**thresholds))

    def _take(self, _: Exchange | None, found: tuple[verdicts.Verdict, ...]) -> None:
        self.verdicts.extend(found)

    def of(self, kind: type[V]) -> list[V]:
        """Those of one class of `testing.verdicts`."""
        return [verdict for verdict in self.verdicts if isinstance(verdict, kind)]

    def snapshot(self) -> verdicts.Snapshot:
        """What is now; losses that time alone decided are added to the verdicts."""
        snapshot = self.observer.collect()
        self.verdicts.extend(snapshot.settled)
        return snapshot


@contextmanager
def observed(client: Any, **thresholds: float) -> Iterator[Seen]:
    """Watch one client of httpx or httpx2 inside a `with` block.

    Args:
        client: sync or async, with any transport.
        **thresholds: `idle_threshold`, `quiet_threshold`, `give_up_after`, `submission_deadline`, in seconds.

    Raises:
        TypeError: an unknown threshold, or a transport that takes no attributes.
    """
    seen = Seen(**thresholds)
    watch = Watch(seen.observer, Containment(strict=True))
    with patched(client, watch):
        yield seen
