"""The script by itself: a fake driver does what it says, on a clock that is set. No network, no colour, no waiting."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.guard.wire import CANCELLED, PRIME, PROGRESS, PROMPT, event, result

from opentelemetry.instrumentation.httpx_sse._containment import Containment
from opentelemetry.instrumentation.httpx_sse._observer import Observer
from opentelemetry.instrumentation.httpx_sse._steps import (
    QUIET,
    Close,
    Deliver,
    Next,
    Over,
    Respond,
    Send,
    Sleep,
    Substitute,
    Watch,
)
from opentelemetry.instrumentation.httpx_sse._verdicts import GuardActed, Verdict
from opentelemetry.instrumentation.httpx_sse.guard._decisions import Settings
from opentelemetry.instrumentation.httpx_sse.guard._script import Guard, GuardScript
from opentelemetry.instrumentation.httpx_sse.guard._sieve import Sieve

SSE = (("content-type", "text/event-stream"),)
Arrival = bytes | object | BaseException


class Headers(dict[str, str]):
    """The part of either library's headers that is looked at."""

    def __init__(self, items: Iterable[tuple[str | bytes, str | bytes]] = ()) -> None:
        super().__init__({_text(key).lower(): _text(value) for key, value in items})

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        return [(key.encode(), value.encode()) for key, value in self.items()]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


class Url:
    """Likewise of its URLs."""

    scheme, host, port = "http", "server", 80

    def __str__(self) -> str:
        return "http://server/mcp"


class Request:
    """Likewise of its requests."""

    def __init__(
        self,
        method: str,
        url: Any,
        headers: Iterable[tuple[str | bytes, str | bytes]] = (),
        content: bytes = b"",
        extensions: dict[str, Any] | None = None,
    ) -> None:
        self.method, self.url, self.content = method, url, content
        self.headers = Headers(headers)
        self.extensions = extensions or {}


@dataclass
class Response:
    """A head, and what arrives behind it: chunks, `QUIET`, errors; then the end."""

    status_code: int = 200
    head: Sequence[tuple[str, str]] = SSE
    arrivals: Sequence[Arrival] = ()
    is_closed: bool = False
    extensions: dict[str, Any] = field(default_factory=dict)

    @property
    def headers(self) -> Headers:
        return Headers(self.head)


@dataclass
class Source:
    """What the driver reads a response through."""

    response: Response
    left: list[Arrival]
    is_closed: bool = False


class Stage:
    """A client, the guard, and a server whose replies are set; every step of each script is kept."""

    def __init__(self, strict: bool = True, **settings: Any) -> None:
        self.now = 0.0
        self.told: list[Verdict] = []
        self.observer = Observer(lambda _, verdicts: self.told.extend(verdicts), clock=lambda: self.now)
        self.containment = Containment(strict=strict)
        self.guard = Guard(self.observer, self.containment, Settings(**settings))
        self.steps: list[Any] = []
        self.sent: list[Request] = []

    def play(
        self, method: str, *replies: Response | BaseException, cursor: str = "", body: bytes = b""
    ) -> list[Any]:
        """One exchange; what the client is given, step by step."""
        headers = {
            "accept": "text/event-stream",
            "mcp-session-id": "S1",
            "mcp-protocol-version": "2025-11-25",
        }
        headers |= {"last-event-id": cursor} if cursor else {}
        asked = Request(method, Url(), headers.items(), body)
        script = self.guard.companion()
        exchange = self.observer.begin(self, asked, None, script)
        assert script.joins(exchange, self, asked)
        left = list(replies)
        given: list[Any] = []
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = script.step(answer, error)
            except BaseException as raised:  # noqa: BLE001 - what the client would get
                return [*given, raised]
            self.steps.append(step)
            answer, error = None, None
            if isinstance(step, Send | Next | Close | Sleep):
                came = self._do(step, left)
                answer, error = (None, came) if isinstance(came, BaseException) else (came, None)
                continue
            given.append(step)
            if isinstance(step, Over | Substitute | Watch):
                return given

    def _do(self, step: Any, replies: list[Response | BaseException]) -> Any:
        """What a step brings; an error is raised by whoever waits for it."""
        if isinstance(step, Send):
            self.sent.append(step.request)
            reply = replies.pop(0)
            return reply if isinstance(reply, BaseException) else Source(reply, list(reply.arrivals))
        if isinstance(step, Next):
            self.now += step.within or 0.01
            waiting: list[Arrival] = step.source.left  # type: ignore[attr-defined]
            if waiting and waiting[0] is QUIET and step.within is None:
                waiting.pop(0)
            return waiting.pop(0) if waiting else None
        if isinstance(step, Sleep):
            self.now += step.seconds
        return None

    def call(self, *arrivals: Arrival) -> list[Any]:
        """The call whose stream is resumed afterwards."""
        return self.play(
            "POST", Response(arrivals=arrivals), body=b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'
        )

    @property
    def actions(self) -> list[str]:
        return [verdict.action for verdict in self.told if isinstance(verdict, GuardActed)]


PONG = Response(202, ())


def chunks(given: Iterable[Any]) -> list[bytes]:
    return [step.chunk for step in given if isinstance(step, Deliver)]


def test_a_stream_is_delivered_in_the_very_chunks_that_came() -> None:
    """Not copies of them."""
    stage, first, second = Stage(probe=False), event(PROGRESS, "e2"), event(result(1), "e3")
    stage.call(PRIME)

    given = stage.play("GET", Response(arrivals=(first, second)), cursor="e1")

    assert isinstance(given[0], Respond)
    assert [id(chunk) for chunk in chunks(given)] == [id(first), id(second)]
    assert isinstance(given[-1], Over)


def test_a_chunk_with_half_an_event_is_delivered_at_once() -> None:
    """Unless server requests may come again: then events are delivered whole."""
    half, rest = event(PROGRESS, "e2")[:20], event(PROGRESS, "e2")[20:]
    stage = Stage(probe=False)
    stage.call(PRIME)
    assert chunks(stage.play("GET", Response(arrivals=(half, rest)), cursor="e1")) == [half, rest]

    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    assert chunks(stage.play("GET", Response(arrivals=(half, rest)), cursor="e1")) == [half + rest]


def test_the_probe_goes_before_the_head() -> None:
    """Send, send, read, close, and only then the client gets its response."""
    stage = Stage()
    stage.call(PRIME)
    stage.steps.clear()

    stage.play("GET", Response(arrivals=(event(result(1), "e2"),)), PONG, cursor="e1")

    assert [type(step) for step in stage.steps[:5]] == [Send, Send, Next, Close, Respond]
    assert [asked.method for asked in stage.sent] == ["POST", "GET", "POST"]


def test_one_probe_a_reconnect_and_three_when_in_doubt() -> None:
    """With a pause before each further one."""
    stage = Stage()
    stage.call(PRIME)
    busy = Response(503, ())

    (given,) = stage.play("GET", Response(), busy, busy, busy, cursor="e1")

    assert isinstance(given, Substitute)
    assert sum(isinstance(step, Sleep) for step in stage.steps) == 2
    assert stage.actions == ["probe_inconclusive"]


def test_a_dead_sessions_replay_is_kept_for_inspection_up_to_a_bound() -> None:
    """What comes at once, and no more; it is closed, and never given out."""
    stage, gone = Stage(), Response(404, ())
    stage.call(PRIME)
    replay = Response(arrivals=(event(result(1), "e2"), QUIET, event(PROGRESS, "e3")))

    (given,) = stage.play("GET", replay, gone, cursor="e1")

    assert given.status == 404
    (kept,) = stage.guard.memory.quarantine
    assert kept.data == event(result(1), "e2")
    assert kept.session == "S1"
    for _ in range(40):
        stage.guard.memory.quarantine.add(kept)
    assert len(stage.guard.memory.quarantine) == 16
    stage.guard.memory.quarantine.clear()
    assert list(stage.guard.memory.quarantine) == []


def test_a_prompt_is_judged_when_the_replay_is_quiet() -> None:
    """Everything behind it waits as well, in its order."""
    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    replay = (event(PROMPT, "p1"), event(PROGRESS, "e3"), QUIET, event(result(1), "e4"))

    given = stage.play("GET", Response(arrivals=replay), cursor="e1")

    assert chunks(given) == [event(PROMPT, "p1") + event(PROGRESS, "e3"), event(result(1), "e4")]


def test_a_replay_that_is_never_quiet_is_judged_after_a_second() -> None:
    """Nothing is held back for ever."""
    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    news = [event(PROGRESS, f"n{n}") for n in range(40)]

    given = stage.play("GET", Response(arrivals=(event(PROMPT, "p1"), *news)), cursor="e1")

    assert len(chunks(given)) > 2
    assert b"".join(chunks(given)) == event(PROMPT, "p1") + b"".join(news)


def test_a_cancellation_in_the_same_chunk_counts() -> None:
    """It need not come later."""
    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    replay = event(PROMPT, "p1") + event(CANCELLED, "e3")

    given = stage.play("GET", Response(arrivals=(replay,)), cursor="e1")

    assert chunks(given) == [event(CANCELLED, "e3")]
    assert stage.actions == ["prompt_dropped"]


def test_of_a_batch_nothing_is_left_out() -> None:
    """It may have news beside what is old (MCP 2025-03-26)."""
    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    batch = event([PROMPT, PROGRESS], "e2")

    given = stage.play("GET", Response(arrivals=(batch,)), cursor="p1")

    assert chunks(given) == [batch]


def test_an_event_too_large_to_hold_passes() -> None:
    """And so does what follows it."""
    stage = Stage(probe=False)
    stage.call(PRIME, event(PROMPT, "p1"))
    parts = [b"data: ", *[b"x" * 300_000] * 5, b"\n\n", event(PROGRESS, "e3")]

    given = stage.play("GET", Response(arrivals=parts), cursor="e1")

    assert b"".join(chunks(given)) == b"".join(parts)


def test_an_error_of_the_network_reaches_the_client_as_it_is() -> None:
    """Before the head, and in the body; it is no fault of ours."""
    stage, reset = Stage(probe=False), ConnectionError("reset")
    stage.call(PRIME)

    assert stage.play("GET", reset, cursor="e1") == [reset]
    assert stage.play("GET", Response(arrivals=(event(PROGRESS, "e2"), reset)), cursor="e1")[-1] is reset


def test_a_cancellation_while_the_session_is_asked_closes_the_resume() -> None:
    """The client has no response that it could close."""
    stage, stop = Stage(), KeyboardInterrupt()
    stage.call(PRIME)

    assert stage.play("GET", Response(), stop, cursor="e1") == [stop]
    assert isinstance(stage.steps[-1], Close)


def test_no_connection_left_for_a_probe_is_no_doubt() -> None:
    """The client's own pool is full: its replay is given out."""

    class PoolTimeout(Exception):  # noqa: N818 - the libraries' own name
        pass

    stage = Stage()
    stage.call(PRIME)

    given = stage.play("GET", Response(arrivals=(event(result(1), "e2"),)), PoolTimeout(), cursor="e1")

    assert chunks(given) == [event(result(1), "e2")]


# ------------------------------------------------------------------ faults of ours


@pytest.mark.parametrize(
    "where",
    [
        "_await_answers",
        "_refuse",
        "_made",
        "_last_words",
        "standing",
        "_heed_end",
        "_taken",
        "_sort",
        "_judge",
        "finish",
    ],
)
def test_a_fault_of_the_guards_own_lets_everything_pass(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contained and counted; the client gets every byte, once."""

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    stage = Stage(strict=False, probe=False, max_stalled=1)
    stage.call(PRIME, event(PROMPT, "p1"))
    owner = GuardScript if hasattr(GuardScript, where) else Sieve
    monkeypatch.setattr(owner, where, property(broken) if where == "standing" else broken)
    replay = (event(PROMPT, "p1"), QUIET, event(PROGRESS, "e3"), b"data: half")

    given = stage.play("GET", Response(arrivals=replay), cursor="e1")

    told = b"".join(chunk for chunk in replay if isinstance(chunk, bytes))
    passed = any(isinstance(step, Watch) for step in given)
    assert passed or b"".join(chunks(given)) == told
    assert stage.containment.errors["guard"] > 0 or where == "_heed_end"


def test_under_a_test_suite_a_fault_of_ours_raises() -> None:
    """There it is a defect to be seen."""
    stage = Stage(probe=False)
    stage.call(PRIME)
    stage.observer.standing = None  # type: ignore[assignment,method-assign]

    (raised,) = stage.play("GET", Response(), cursor="e1")

    assert isinstance(raised, TypeError)
