"""What the guard does in one exchange, without colour and without I/O.

The ledger's verdicts and a stream's standing decide; the script only acts on them:

1. A resume that cannot bring anything is answered here (`_decisions.HOPELESS`).
2. A stream that was opened with a cursor is given to the client when the session is known to live (`_probing`).
3. Of a resumed stream, responses that were delivered before are left out, and server requests that were delivered
   before are held back until the replay is quiet, and judged (`_replay.RULES`).
4. A stream that ends in vain ends with what the client must know (`_decisions.at_end`).

Everything else passes: the same chunks, in the same order, at the same time. A fault of the guard's own ends the
script, and the rest of the exchange passes as well.
"""

from collections.abc import Callable, Generator
from typing import Any, Final

from .._containment import Containment
from .._dialect import dialect_of
from .._events import Message, MessageKind
from .._exchange import Exchange
from .._names import DROPS, GuardAction, Site
from .._observer import Observer
from .._steps import QUIET, Close, Deliver, Next, Over, Respond, Send, Source, Step, Watch
from .._verdicts import (
    AttemptBegun,
    GuardActed,
    ReconnectDelayed,
    Responded,
    ServerRequested,
    Standing,
    StreamEnded,
    Verdict,
)
from ._answers import event
from ._decisions import End, Ending, Memory, Resume, Settings, at_end, at_resume
from ._errors import ERROR_CODE, GuardError
from ._held import BYTES, Held
from ._pieces import Cutter
from ._probing import probed, without_coding

QUIET_SECONDS: Final = 0.05
"""A replay that brings nothing for so long is over: what follows is news."""

Steps = Generator[Step, Any, None]

_KINDS: Final = ("response", "standalone")
"""Streams that the guard knows how to end."""


class Guard:
    """What all exchanges of one installation share.

    Args:
        observer: whose verdicts are acted on.
        containment: where errors of the guard's own end.
        settings: what the user wants.
    """

    def __init__(
        self, observer: Observer, containment: Containment, settings: Settings | None = None
    ) -> None:
        self.observer = observer
        self.containment = containment
        self.settings = settings or Settings()
        self.memory = Memory()

    def companion(self) -> "GuardScript":
        """For one exchange that is about to begin."""
        return GuardScript(self)


class GuardScript:
    """The script of one exchange, and its companion: it hears every verdict before the sink does."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.observer = guard.observer
        self.settings = guard.settings
        self.exchange: Exchange
        self.transport: object = None
        self.request: Any = None
        self.source: Source | None = None
        self._steps: Steps
        self._begun: AttemptBegun | None = None
        self._waited = 0.0
        self._heard: list[Verdict] = []
        self._is_given = False
        self._is_readable = False
        self._is_deaf = False
        self._cutter: Cutter | None = None
        self._held = Held()
        self._tail = b""
        self._ending: Ending | None = None
        self._failure: GuardError | None = None
        self._in_hand: tuple[bytes, bytes] | None = None

    def joins(self, exchange: Exchange, transport: object, request: Any) -> bool:
        """Whether there is anything to guard: an MCP stream of a revision that resumes streams."""
        sent = exchange.sent
        if sent is None or not sent.mcp or not dialect_of(sent.version).has_resumption:
            return False
        if sent.http_method == "GET":
            if self._begun is None or self._begun.kind not in _KINDS:
                return False
        elif not any(message.kind is MessageKind.REQUEST for message in sent.messages):
            return False
        self.exchange, self.transport, self.request = exchange, transport, request
        self._steps = self._play()
        return True

    # -------------------------------------------------------------- what is concluded

    def hear(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Verdicts of this exchange; what is done at a stream's end is told before its span is over."""
        try:
            return (*self._heed(verdicts), *verdicts)
        except Exception as error:  # noqa: BLE001
            self.guard.containment.contain("guard", error)
            return verdicts

    def _heed(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        self._heard += verdicts
        for verdict in verdicts:
            if isinstance(verdict, AttemptBegun):
                self._begun = verdict
            elif isinstance(verdict, ReconnectDelayed):
                self._waited = verdict.seconds
            elif isinstance(verdict, StreamEnded) and verdict.end in DROPS and self._may_append:
                return self._heed_end(verdicts)
        return ()

    def _heed_end(self, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        standing, begun = self.standing, self._begun
        if standing is None or begun is None:
            return ()
        end = End(standing, verdicts, begun.stream, begun.streak, self._waited, self._failure)
        for ending in at_end(end, self.settings, self.guard.memory):
            if ending.action is None:
                self._ending = ending
                return ()
            if ending.action not in self.settings.disabled:
                if not self.settings.dry_run:
                    self._ending = ending
                return (self._acted(ending.action),)
        return ()

    @property
    def standing(self) -> Standing | None:
        """Of the logical stream, now."""
        return None if self._begun is None else self.observer.standing(self._begun.stream)

    @property
    def is_resume(self) -> bool:
        sent = self.exchange.sent
        return sent is not None and sent.http_method == "GET" and bool(sent.cursor)

    @property
    def _may_append(self) -> bool:
        """Whether an event can follow what the client has been given: it is plain text, and no event is half told."""
        if not self._is_readable:
            return False
        if self._cutter is not None:
            return self._held.is_whole or self._cutter.is_between
        return not self._tail or self._tail.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))

    def acts(self, action: GuardAction) -> bool:
        """Count an action; whether it is to be done."""
        if action in self.settings.disabled:
            return False
        self.observer.report(self.exchange, self._acted(action))
        return not self.settings.dry_run

    def _acted(self, action: GuardAction) -> GuardActed:
        assert self._begun is not None  # noqa: S101 - whatever is acted on has begun
        return GuardActed(
            server=self._begun.server,
            exchange=self.exchange.number,
            action=action,
            is_dry_run=self.settings.dry_run,
        )

    # -------------------------------------------------------------- the driver's side

    def step(self, answer: Any, error: BaseException | None) -> Step:
        """See `_steps.Script`. A fault of ours is contained, and the rest passes."""
        try:
            return self._steps.send(answer) if error is None else self._steps.throw(error)
        except StopIteration:
            if error is not None:
                raise error from None
            return Over()
        except BaseException as raised:
            if raised is error or not isinstance(raised, Exception):
                raise
            self.failed(raised)
            if error is not None:
                raise error from None
            return next(self._steps)

    def failed(self, error: Exception) -> None:
        """See `_steps.Script`."""
        self._steps = self._pass()
        self.guard.containment.contain("guard", error)

    def closed(self) -> None:
        """See `_steps.Script`."""
        self.tell("closed")
        self._steps.close()

    def tell(self, what: Site, *arguments: Any) -> Any:
        """Tell the exchange; an error of its own is contained, and after one in a body it is told no more of it."""
        if self._is_deaf and what == "receive":
            return None
        try:
            return getattr(self.exchange, what)(*arguments)
        except Exception as error:  # noqa: BLE001
            self._is_deaf = True
            self.guard.containment.contain(what, error)

    def _pass(self) -> Steps:
        """Everything passes from here on, beginning with what was held back."""
        if self.source is None:
            self.source = yield Send(self.request)
        source = self.source
        if not self._is_given:
            yield Watch(source, is_begun=self.exchange.status is not None)
            return
        # A chunk that was in hand has been lost on the way: what was held before it, and itself.
        held = self._held.everything() if self._in_hand is None else b"".join(self._in_hand)
        if held:
            yield Deliver(held)
        while True:
            try:
                chunk = yield Next(source)
            except BaseException as error:
                self.tell("failed", error)
                raise
            if chunk is None:
                break
            self.tell("receive", chunk)
            yield Deliver(chunk)
        self.tell("exhausted")
        yield Over()

    # -------------------------------------------------------------- the exchange

    def _play(self) -> Steps:
        request = self.request
        if self.is_resume:
            refused = yield from self._refuse()
            if refused:
                return
            if not self.settings.dry_run:
                request = without_coding(request)
        try:
            source: Source = yield Send(request)
        except BaseException as error:
            self._unanswered(error)
            raise
        self.source = source
        response = source.response
        is_watched = self.tell("head", response.status_code, response.headers.raw)
        is_plain = response.headers.get("content-encoding", "identity").strip().lower() in ("", "identity")
        is_guarded = self._begun is not None and self._begun.kind in _KINDS
        if not (is_watched and self.exchange.is_stream and is_plain and is_guarded):
            yield Watch(source, is_begun=True)
            return
        self._is_readable = True
        if self.is_resume:
            standing = self.standing
            self._cutter = Cutter()
            self._held.is_whole = (
                standing is not None
                and standing.has_server_requests
                and not self.settings.dry_run
                and "prompt_dropped" not in self.settings.disabled
            )
            is_over = yield from probed(self)
            if is_over:
                return
        self._is_given = True
        yield Respond(source)
        yield from self._body(source)

    def _unanswered(self, error: BaseException) -> None:
        try:
            self.exchange.unanswered(error)
        except Exception as own:  # noqa: BLE001
            self.guard.containment.contain("begin", own)

    def _refuse(self) -> Generator[Step, Any, bool]:
        """Whether the resume was answered here."""
        standing, begun = self.standing, self._begun
        if standing is None or begun is None:
            return False
        is_dead = self.guard.memory.dead.peek(begun.stream) is not None
        refusal = at_resume(Resume(standing, is_dead, self.settings.max_stalled))
        if refusal is None or not self.acts(refusal.action):
            return False
        self.exchange.withdrawn()
        self.conclude(standing)
        yield refusal.answer
        return True

    def remember_dead(self) -> None:
        """The replay of this logical stream was quarantined: the next resume is answered without another."""
        if self._begun is not None:
            self.guard.memory.dead.put(self._begun.stream, True)  # noqa: FBT003

    def conclude(self, standing: Standing) -> None:
        """The client has been given errors for all that the stream owed it."""
        if standing.pending and self._begun is not None:
            self.exchange.concluded(self._begun.stream, ERROR_CODE)

    # -------------------------------------------------------------- the body

    def _body(self, source: Source) -> Steps:
        while True:
            try:
                chunk = yield Next(source, QUIET_SECONDS if self._held.has_doubts else None)
            except BaseException as error:
                self._finish(lambda error=error: self.tell("failed", error))  # type: ignore[misc]
                if isinstance(error, Exception):
                    yield from self._last_words()
                raise
            if chunk is None:
                self._finish(lambda: self.tell("exhausted"))
                yield from self._last_words()
                break
            if chunk is QUIET or self._held.is_full(self.observer.clock()):
                self._judge()
            given = self._take(chunk) if chunk is not QUIET else self._held.release()
            if given:
                yield Deliver(given)
            if self._failure is not None and (yield from self._fail(source, self._failure)):
                return
        yield Over()

    def _finish(self, ended: Callable[[], object]) -> None:
        """The body is over: the replay is as quiet as it will be."""
        if self._held.has_doubts:
            self._judge()
        if self._cutter is not None and self._cutter.rest:
            self.tell("receive", self._cutter.rest)
        ended()

    def _last_words(self) -> Steps:
        """What the client is told before it learns of the end."""
        ending, held = self._ending, self._held.everything(with_rest=self._ending is None)
        if held:
            yield Deliver(held)
        if ending is None:
            return
        memory, begun, standing = self.guard.memory, self._begun, self.standing
        if ending.pace is not None and begun is not None and memory.slowed.get(begun.stream) is None:
            memory.slowed.put(begun.stream, ending.pace)
        if ending.error is not None and standing is not None:
            self.conclude(standing)
        yield Deliver(ending.chunk)

    def _fail(self, source: Source, failure: GuardError) -> Generator[Step, Any, bool]:
        """Whether the operation that waits on this stream was failed."""
        self._failure, standing = None, self.standing
        if standing is None or not standing.pending or not self.acts("operation_failed"):
            return False
        yield Deliver(event(failure, standing.pending))
        yield Close(source)
        self.tell("closed")
        self.conclude(standing)
        yield Over()
        return True

    def _take(self, chunk: bytes) -> bytes:
        self._in_hand = (self._held.copy(), chunk)
        given = self._receive(chunk)
        self._in_hand = None
        return given

    def _receive(self, chunk: bytes) -> bytes:
        """A chunk came; what of it is given to the client now. The very chunk, unless something is kept of it."""
        cutter, held = self._cutter, self._held
        if cutter is None or len(cutter.rest) > BYTES:
            return self._receive_uncut(chunk)
        already = 0 if held.is_whole else len(cutter.rest)
        pieces = cutter.receive(chunk)
        for n, piece in enumerate(pieces):
            self._heard.clear()
            self.tell("receive", piece)
            self._sort(piece, already if n == 0 else 0)
        if held.is_whole:
            held.rest = cutter.rest
        else:
            held.pass_on(cutter.rest if pieces else cutter.rest[already:])
        given = held.release()
        return chunk if given == chunk else given

    def _receive_uncut(self, chunk: bytes) -> bytes:
        """A stream that is not cut into events, or not any more, since one of them is too large."""
        before = b""
        if self._cutter is not None:
            self.tell("receive", self._cutter.rest)
            before, self._cutter, self._held.is_whole = self._held.everything(), None, False
        self._tail = (self._tail + chunk)[-4:]
        self.tell("receive", chunk)
        return before + chunk if before else chunk

    def _sort(self, piece: bytes, already: int) -> None:
        """Pass an event on, leave it out, or hold it back; `already` bytes of it the client has."""
        held = self._held
        again = [v for v in self._heard if isinstance(v, Responded) and v.delivery.startswith("duplicate")]
        asked = [v for v in self._heard if isinstance(v, ServerRequested) and v.delivery == "redelivered"]
        message = Held.only_message(piece, self.observer.liveness_key) if again or asked else None
        if message is None or already:
            held.pass_on(piece[already:])
        elif again and self.acts("response_dropped"):
            pass
        elif asked and held.is_whole:
            held.doubt(piece, message, self.observer.clock())
        else:
            if asked and self.settings.dry_run:
                self._drops(message)
            held.pass_on(piece)

    def _judge(self) -> None:
        """The replay is quiet: what is known of the server requests that came again is all that will be known."""
        self._held.settle(self._drops)

    def _drops(self, message: Message) -> bool:
        """Whether a server request that came again is not presented."""
        known = self.observer.redelivery(self.exchange, message)
        if known is None:
            return False
        failure, drops = Held.rule(message, known)
        if not drops or not self.acts("prompt_dropped"):
            return False
        self._failure = self._failure or failure
        return True
