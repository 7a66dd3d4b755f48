"""What the guard does in one exchange, without colour and without I/O.

The ledger's verdicts and a stream's standing decide; the script only acts on them:

1. A resume waits while an answer to one of its stream's server requests is on its way, for a second at most. One that
   cannot bring anything is answered here (`_decisions.HOPELESS`).
2. A stream that was opened with a cursor is given to the client when the session is known to live (`_probing`).
3. Of a resumed stream, responses that were delivered before are left out, and server requests that were delivered
   before are held back until the replay is quiet, and judged (`_replay.RULES`).
4. A stream that ends in vain ends with what the client must know (`_decisions.at_end`).

Everything else passes: the same chunks, in the same order, at the same time. A fault of the guard's own ends the
script, and the rest of the exchange passes as well.
"""

from collections.abc import Generator
from typing import Any, Final

from .._containment import Containment
from .._dialect import dialect_of
from .._events import MessageKind
from .._exchange import Exchange
from .._names import DROPS, GuardAction, Site
from .._observer import Observer
from .._steps import QUIET, Close, Deliver, Next, Over, Respond, Send, Sleep, Source, Step, Watch
from .._verdicts import (
    AttemptBegun,
    GuardActed,
    ReconnectDelayed,
    Standing,
    StreamEnded,
    Verdict,
)
from ._answers import event
from ._decisions import End, Ending, Memory, Resume, Settings, at_end, at_resume
from ._errors import ERROR_CODE, GuardError
from ._held import SECONDS
from ._probing import probed, without_coding
from ._sieve import Sieve

QUIET_SECONDS: Final = 0.05
"""A replay that brings nothing for so long is over: what follows is news."""

POLL: Final = 0.02
"""Seconds between two looks at an answer that is on its way."""

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
        self._is_given = False
        self._is_deaf = False
        self._due: BaseException | None = None
        """The transport's own error, which the client gets after its last words."""
        self._sieve: Sieve | None = None
        self._ending: Ending | None = None

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
        sieve = self._sieve
        if sieve is not None:
            sieve.hear(verdicts)
        for verdict in verdicts:
            if isinstance(verdict, AttemptBegun):
                self._begun = verdict
            elif isinstance(verdict, ReconnectDelayed):
                self._waited = verdict.seconds
            elif (
                isinstance(verdict, StreamEnded)
                and verdict.end in DROPS
                and sieve is not None
                and sieve.may_append
            ):
                return self._heed_end(verdicts, sieve.failure)
        return ()

    def _heed_end(self, verdicts: tuple[Verdict, ...], failure: GuardError | None) -> tuple[Verdict, ...]:
        standing, begun = self.standing, self._begun
        if standing is None or begun is None:
            return ()
        end = End(standing, verdicts, begun.stream, begun.streak, self._waited, failure)
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
    def has_primers(self) -> bool:
        """Whether the revision knows events that only carry an id."""
        sent = self.exchange.sent
        return sent is not None and dialect_of(sent.version).has_polling

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
            if raised is error or raised is self._due or not isinstance(raised, Exception):
                self._due = None
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
        self._remember_owed(is_owed=self._sieve is not None and self._sieve.holds_response)
        self._steps.close()
        # Each holds the other; an exchange is to be gone as soon as nobody holds it.
        self.exchange.companion, self._due = None, None

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
        held = self._sieve.everything() if self._sieve is not None else b""
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
            yield from self._await_answers()
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
        if response.is_closed:
            # It carries its body already: nobody will iterate over its stream.
            yield Watch(source, is_begun=False)
            return
        is_watched = self.tell("head", response.status_code, response.headers.raw)
        is_plain = response.headers.get("content-encoding", "identity").strip().lower() in ("", "identity")
        is_guarded = self._begun is not None and self._begun.kind in _KINDS
        if not (is_watched and self.exchange.is_stream and is_plain and is_guarded):
            yield Watch(source, is_begun=True)
            return
        sieve = self._sieve = self._made()
        if self.is_resume:
            is_over = yield from probed(self)
            if is_over:
                return
        self._is_given = True
        yield Respond(source)
        yield from self._body(source, sieve)

    def _made(self) -> Sieve:
        """A resumed stream is read; of one that may bring server requests again, events are given whole."""
        standing, settings = self.standing, self.settings
        may_drop = not settings.dry_run and "prompt_dropped" not in settings.disabled
        is_whole = standing is not None and standing.has_server_requests and may_drop
        return Sieve(self, is_cut=self.is_resume, is_whole=self.is_resume and is_whole)

    def _unanswered(self, error: BaseException) -> None:
        try:
            self.exchange.unanswered(error)
        except Exception as own:  # noqa: BLE001
            self.guard.containment.contain("begin", own)

    def _await_answers(self) -> Steps:
        """A resume waits for what becomes of an answer to its stream's server requests: a refusal makes it vain."""
        if self.settings.dry_run or "operation_failed" in self.settings.disabled:
            return
        until = self.observer.clock() + SECONDS
        while (standing := self.standing) is not None and standing.is_answering and standing.pending:
            if self.observer.clock() >= until:
                return
            try:
                yield Sleep(POLL)
            except BaseException as error:
                self._unanswered(error)
                raise

    def _refuse(self) -> Generator[Step, Any, bool]:
        """Whether the resume was answered here."""
        standing, begun = self.standing, self._begun
        if standing is None or begun is None:
            return False
        memory = self.guard.memory
        is_dead, is_owed = memory.dead.peek(begun.stream), memory.owed.peek(begun.stream)
        refusal = at_resume(Resume(standing, bool(is_dead), bool(is_owed), self.settings.max_stalled))
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

    @property
    def is_owed(self) -> bool:
        """The client was not given the answer that an earlier attempt of this stream brought."""
        return self._begun is not None and self.guard.memory.owed.peek(self._begun.stream) is not None

    def gave(self) -> None:
        """All that was held back has been given to the client."""
        if self._begun is not None:
            self.guard.memory.owed.pop(self._begun.stream)

    def _remember_owed(self, *, is_owed: bool) -> None:
        """The client left while an answer was held back from it: it may come for it again."""
        if is_owed and self._begun is not None:
            self.guard.memory.owed.put(self._begun.stream, True)  # noqa: FBT003

    def conclude(self, standing: Standing) -> None:
        """The client has been given errors for all that the stream owed it."""
        if standing.pending and self._begun is not None:
            self.exchange.concluded(self._begun.stream, ERROR_CODE)

    # -------------------------------------------------------------- the body

    def _body(self, source: Source, sieve: Sieve) -> Steps:
        while True:
            try:
                chunk = yield Next(source, QUIET_SECONDS if sieve.has_doubts else None)
            except GeneratorExit:
                # The client has closed the response, perhaps while another thread or task of it reads.
                raise
            except BaseException as error:
                is_owed = sieve.holds_response
                sieve.finish()
                self.tell("failed", error)
                if isinstance(error, Exception):
                    self._due = error
                    yield from self._last_words(sieve)
                else:
                    self._remember_owed(is_owed=is_owed)
                    # A read that is cancelled ends its connection, also where we were not reading but waiting.
                    yield Close(source)
                raise
            if chunk is None:
                sieve.finish()
                self.tell("exhausted")
                yield from self._last_words(sieve)
                break
            given = sieve.quiet() if chunk is QUIET else sieve.take(chunk)
            if given:
                yield Deliver(given)
            if sieve.failure is not None and (yield from self._fail(source, sieve)):
                return
        yield Over()

    def _last_words(self, sieve: Sieve) -> Steps:
        """What the client is told before it learns of the end."""
        ending, held = self._ending, sieve.everything(with_rest=self._ending is None)
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

    def _fail(self, source: Source, sieve: Sieve) -> Generator[Step, Any, bool]:
        """Whether the operation that waits on this stream was failed."""
        failure, sieve.failure, standing = sieve.failure, None, self.standing
        if failure is None or standing is None or not standing.pending or not self.acts("operation_failed"):
            return False
        yield Deliver(event(failure, standing.pending))
        yield Close(source)
        self.tell("closed")
        self.conclude(standing)
        yield Over()
        return True
