"""What of a stream is given to the client: all of it, but for what was delivered before and must not come again."""

from typing import TYPE_CHECKING, Final

from .._events import Message
from .._verdicts import Responded, ServerRequested, Verdict
from ._errors import GuardError
from ._held import BYTES, Held
from ._pieces import Cutter

if TYPE_CHECKING:
    from ._script import GuardScript

_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Sieve:
    """One stream on its way to the client.

    Args:
        script: that of its exchange; it is told of every event, and asked before anything is left out.
        is_cut: the stream is read event by event: it was resumed.
        is_whole: events are given to the client whole, so that each can be left out when it has been read.
    """

    def __init__(self, script: "GuardScript", *, is_cut: bool, is_whole: bool) -> None:
        self.failure: GuardError | None = None
        """A server request was left out whose answer the operation needs, and nobody can give it any more."""
        self._script = script
        self._cutter = Cutter() if is_cut else None
        self._held = Held()
        self._held.is_whole = is_whole
        self._heard: list[Verdict] = []
        self._tail = b""
        self._in_hand: tuple[bytes, bytes] | None = None
        self._holds_response = False

    @property
    def has_doubts(self) -> bool:
        """Whether something is held back until the replay is quiet."""
        return self._held.has_doubts

    @property
    def holds_response(self) -> bool:
        """Whether a response that the client has not had is held back behind what is in doubt."""
        return self._holds_response and self.has_doubts

    @property
    def may_append(self) -> bool:
        """Whether an event can follow what the client has been given: no other is half told."""
        if self._cutter is not None:
            return self._held.is_whole or self._cutter.is_between
        return not self._tail or self._tail.endswith(_ENDS)

    def hear(self, verdicts: tuple[Verdict, ...]) -> None:
        """What is concluded of the event that the script has just been told of."""
        if self._cutter is not None:
            self._heard += verdicts

    def take(self, chunk: bytes) -> bytes:
        """A chunk came; what is given to the client now. The very chunk, unless something of it is kept."""
        self._in_hand = (self._held.copy(), chunk)
        if self._held.is_full(self._script.observer.clock()):
            self._judge()
        given = self._taken(chunk)
        self._in_hand = None
        return given

    def quiet(self) -> bytes:
        """No chunk came in time: what was held back is judged, and given.

        While an answer to one of its server requests is on its way it is not: a refusal may come any moment.
        """
        if self._is_answering() and not self._held.is_full(self._script.observer.clock()):
            return b""
        self._judge()
        return self._held.release()

    def _is_answering(self) -> bool:
        known = [self._script.observer.redelivery(self._script.exchange, m) for m in self._held.doubts]
        return any(redelivery is not None and redelivery.is_answering for redelivery in known)

    def finish(self) -> None:
        """The body is over: the replay is as quiet as it will be."""
        if self._held.has_doubts:
            self._judge()
        if self._cutter is not None and self._cutter.rest:
            self._script.tell("receive", self._cutter.rest)

    def everything(self, *, with_rest: bool = True) -> bytes:
        """All that is still here, judged or not; a chunk that was being looked at when something broke included."""
        if self._in_hand is None:
            return self._held.everything(with_rest=with_rest)
        in_hand, self._in_hand = self._in_hand, None
        return b"".join(in_hand)

    def _taken(self, chunk: bytes) -> bytes:
        cutter, held = self._cutter, self._held
        if cutter is None or len(cutter.rest) > BYTES:
            return self._taken_uncut(chunk)
        already = 0 if held.is_whole else len(cutter.rest)
        pieces = cutter.receive(chunk)
        for n, piece in enumerate(pieces):
            self._heard.clear()
            self._script.tell("receive", piece)
            self._sort(piece, already if n == 0 else 0)
        if held.is_whole:
            held.rest = cutter.rest
        else:
            held.pass_on(cutter.rest if pieces else cutter.rest[already:])
        given = held.release()
        return chunk if given == chunk else given

    def _taken_uncut(self, chunk: bytes) -> bytes:
        """A stream that is not read event by event, or not any more, since one of them is too large."""
        before = b""
        if self._cutter is not None:
            self._script.tell("receive", self._cutter.rest)
            before, self._cutter, self._held.is_whole = self._held.everything(), None, False
        self._tail = (self._tail + chunk)[-4:]
        self._script.tell("receive", chunk)
        return before + chunk if before else chunk

    def _sort(self, piece: bytes, already: int) -> None:
        """Pass an event on, leave it out, or hold it back; `already` bytes of it the client has."""
        held, script = self._held, self._script
        responses = [v for v in self._heard if isinstance(v, Responded)]
        again = [v for v in responses if v.delivery.startswith("duplicate") and not script.is_owed]
        asked = [v for v in self._heard if isinstance(v, ServerRequested) and v.delivery == "redelivered"]
        message = Held.only_message(piece, script.observer.liveness_key) if again or asked else None
        self._holds_response = self.has_doubts and (self._holds_response or bool(responses))
        if responses and not self.has_doubts and not again:
            script.gave()
        if message is None or already:
            held.pass_on(piece[already:])
        elif again and script.acts("response_dropped"):
            pass
        elif asked and held.is_whole:
            held.doubt(piece, message, script.observer.clock())
        else:
            if asked and script.settings.dry_run:
                self._drops(message)
            held.pass_on(piece)

    def _judge(self) -> None:
        """The replay is quiet: what is known of the server requests that came again is all that will be known."""
        self._held.settle(self._drops, has_primers=self._script.has_primers)
        if self._holds_response:
            self._holds_response = False
            self._script.gave()

    def _drops(self, message: Message) -> bool:
        """Whether a server request that came again is not presented."""
        known = self._script.observer.redelivery(self._script.exchange, message)
        if known is None:
            return False
        failure, drops = Held.rule(message, known)
        if not drops or not self._script.acts("prompt_dropped"):
            return False
        self.failure = self.failure or failure
        return True
