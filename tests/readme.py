"""The generated parts of the README: the table of what is emitted, and two state diagrams.

    python -m tests.readme            # write them
    python -m tests.readme --check    # exit status 1 if they are not current

The diagrams are drawn by asking the live ledger: every fact is played in every state that is reached so, and the
state afterwards is read off. So they cannot say anything that the code does not do.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.instrumentation.httpx_sse._events import (
    Answered,
    Body,
    Ended,
    Event,
    Message,
    MessageKind,
    Origin,
    Received,
    Sent,
    Unanswered,
)
from opentelemetry.instrumentation.httpx_sse._ledger import Ledger
from opentelemetry.instrumentation.httpx_sse._names import MCP_METRICS, METRICS, Metric

README = Path(__file__).resolve().parents[1] / "README.md"

ORIGIN = Origin("https", "example.org", 443)
REQUEST = Message(kind=MessageKind.REQUEST, id=1, method="tools/call")
PING = Message(kind=MessageKind.REQUEST, id=2, method="ping")
RESPONSE = Message(kind=MessageKind.RESPONSE, id=1)
PONG = Message(kind=MessageKind.RESPONSE, id=2)
NEWS = Message(kind=MessageKind.NOTIFICATION, method="notifications/progress")
CANCELLED = Message(kind=MessageKind.NOTIFICATION, method="notifications/cancelled", cancels=1)
GONE = "session not found"
EVICTED = "event not found"


@dataclass
class Play:
    """A ledger, the clock, and the exchange that is the logical stream's newest."""

    ledger: Ledger = field(default_factory=Ledger)
    at: float = 0.0
    exchange: int = 0

    def see(self, event: Event, seconds: float = 0.1) -> None:
        self.at += seconds
        self.ledger.observe(event, at=self.at)

    def send(self, method: str, *messages: Message, cursor: str | None = None) -> int:
        self.exchange += 1
        self.see(
            Sent(
                exchange=self.exchange,
                pool=1,
                origin=ORIGIN,
                target=b"t",
                http_method=method,
                mcp=True,
                session="s",
                cursor=cursor,
                version="2025-11-25",
                messages=messages,
            )
        )
        return self.exchange

    def answer(self, exchange: int, status: int, *, stream: bool = False, text: str = "") -> None:
        self.see(Answered(exchange=exchange, status=status, is_stream=stream))
        if not stream:
            body = Body(text, () if text else (PONG,))
            self.see(Ended(exchange=exchange, how="exhausted", body=body))


# ------------------------------------------------------------------ a logical stream


def _open(play: Play) -> None:
    play.answer(play.send("POST", REQUEST), 200, stream=True)
    play.see(Received(exchange=play.exchange, event_id="e1", is_empty=True))


def _resume(play: Play) -> None:
    play.answer(play.send("GET", cursor="e1"), 200, stream=True)


def _refused(play: Play) -> None:
    play.answer(play.send("GET", cursor="e1"), 404, text=EVICTED)


def _throttled(play: Play) -> None:
    play.answer(play.send("GET", cursor="e1"), 503, text="busy")


def _failed(play: Play) -> None:
    play.see(Unanswered(exchange=play.send("GET", cursor="e1"), error="network_error"))


def _cancel(play: Play) -> None:
    newest = play.exchange
    play.answer(play.send("POST", CANCELLED), 202, text=" ")
    play.exchange = newest


def _event(message: Message) -> Callable[[Play], None]:
    return lambda play: play.see(Received(exchange=play.exchange, messages=(message,)))


def _end(how: str, error: str | None = None) -> Callable[[Play], None]:
    return lambda play: play.see(
        Ended(exchange=play.exchange, how=how, error=error)  # type: ignore[arg-type]
    )


def _end_without_cursor(how: str, error: str | None = None) -> Callable[[Play], None]:
    """The open stream ends, and none of its events had an id: the same stream, begun anew without."""

    def end(play: Play) -> None:
        if _stream_state(play) == "open":
            play.ledger = Ledger()
            play.answer(play.send("POST", REQUEST), 200, stream=True)
            _end(how, error)(play)

    return end


def _stream_state(play: Play) -> str:
    streams = list(play.ledger._state.streams)
    if not streams:
        return "[*]"
    # A stream may be answered, or its request cancelled, while its body is still open.
    is_over = {"answered": streams[0].is_terminal, "cancelled": streams[0].is_cancelled}
    return next((state for state, fits in is_over.items() if fits), streams[0].state)


STREAM_FACTS: dict[str, Callable[[Play], None]] = {
    "POST answered by a stream": _open,
    "notification": _event(NEWS),
    "response": _event(RESPONSE),
    "server closes": _end("exhausted"),
    "cut": _end("failed", "network_error"),
    "client closes": _end("closed"),
    "resume accepted": _resume,
    "resume refused for good": _refused,
    "resume refused for now": _throttled,
    "resume without response": _failed,
    "notifications/cancelled": _cancel,
    "nobody comes back": lambda play: _pass(play, 60.0),
    # Last, since what follows a loss is told of a stream that has a cursor.
    "server closes, no id was seen": _end_without_cursor("exhausted"),
    "cut, no id was seen": _end_without_cursor("failed", "network_error"),
}

# ------------------------------------------------------------------ a session


def _used(play: Play) -> None:
    play.answer(play.send("POST", PING), 200)


def _doubtful(play: Play) -> None:
    play.answer(play.send("POST", PING), 503, text="busy")


def _gone(play: Play) -> None:
    play.answer(play.send("POST", PING), 404, text=GONE)


def _deleted(play: Play) -> None:
    play.answer(play.send("DELETE"), 200)


def _resume_gone(play: Play) -> None:
    play.answer(play.send("GET", cursor="e1"), 404, text=GONE)


def _session_state(play: Play) -> str:
    sessions = list(play.ledger._state.sessions)
    if not sessions:
        return "[*]"
    if sessions[0].state != "alive":
        return sessions[0].state
    return "unconfirmed" if sessions[0].unconfirmed_since is not None else "confirmed"


SESSION_FACTS: dict[str, Callable[[Play], None]] = {
    "request answered": _used,
    "resume accepted (replay)": _resume,
    "request answered by a proxy's error": _doubtful,
    "request refused: session not found": _gone,
    "resume refused: session not found": _resume_gone,
    "DELETE answered 2xx": _deleted,
}


def _pass(play: Play, seconds: float) -> None:
    play.at += seconds
    play.ledger.snapshot(at=play.at)


# ------------------------------------------------------------------ drawing


def transitions(
    facts: dict[str, Callable[[Play], None]], state: Callable[[Play], str], depth: int = 5
) -> dict[tuple[str, str], set[str]]:
    """From (state, state afterwards) to the facts that lead there, as the live ledger goes.

    The first fact is the one that begins everything.
    """
    found: dict[tuple[str, str], set[str]] = {}
    scripts: dict[str, tuple[str, ...]] = {"[*]": ()}
    first = next(iter(facts))
    for _ in range(depth):
        for before, script in list(scripts.items()):
            for fact in facts if script else (first,):
                play = Play()
                for step in script:
                    facts[step](play)
                facts[fact](play)
                after = state(play)
                found.setdefault((before, after), set()).add(fact)
                scripts.setdefault(after, (*script, fact))
    return {edge: names for edge, names in found.items() if edge[0] != edge[1]}


def diagram(facts: dict[str, Callable[[Play], None]], state: Callable[[Play], str]) -> Iterator[str]:
    """Mermaid, as GitHub draws it."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    for (before, after), names in sorted(transitions(facts, state).items()):
        told = [name for name in facts if name in names]
        yield f"    {before} --> {after}: {'<br/>'.join(told)}"
    yield "```"


def metrics() -> Iterator[str]:
    """The table of what is emitted."""
    yield r"| metric (\*: without the server's attributes) | in Prometheus | instrument, unit | further attributes | |"
    yield "|---|---|---|---|---|"
    for metric in (*METRICS.values(), *MCP_METRICS.values()):
        own = ", ".join(f"`{name}`" for name in (*metric.attributes, *metric.optional)) or "-"
        kind = metric.instrument.replace("_", " ")
        mark = "" if metric.by_server else r" \*"
        yield (
            f"| `{metric.name}`{mark} | `{exported(metric)}` | {kind}, `{metric.unit}` "
            f"| {own} | {metric.description} |"
        )


def exported(metric: Metric) -> str:
    """The name that the Prometheus exporter gives."""
    seconds = "_seconds" if metric.unit == "s" else ""
    total = "_total" if metric.instrument in ("counter", "observable_counter") else ""
    return metric.name.replace(".", "_") + seconds + total


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "metrics": metrics,
    "stream states": lambda: diagram(STREAM_FACTS, _stream_state),
    "session states": lambda: diagram(SESSION_FACTS, _session_state),
}


def current(text: str) -> str:
    """The README with its generated parts made anew.

    Raises:
        ValueError: a part's marks are missing.
    """
    for name, make in PARTS.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise ValueError(f"README.md has no part {name!r}")
        text = f"{head}{begin}\n" + "\n".join(make()) + f"\n\n{end}{tail}"
    return text


def main() -> int:
    text = README.read_text()
    made = current(text)
    if "--check" in sys.argv:
        return int(made != text)
    README.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
