"""The accounting: from the journal of a run to what its telemetry must say, by the words of the contract."""

import json
from collections.abc import Iterable
from typing import Final

from .books import MARGIN, Counts, kind_of
from .journal import Collected, Ended, Entry, Frame, Head, Heard, Json, NoAnswer, Sent
from .liveness import Liveness
from .rulings import Case, Ruling, for_good, rule
from .state import Exchange, Scope, Stream, Talk, Try

DROPS: Final = ("server_closed", "network_error", "read_timeout")


class Oracle(Liveness):
    """Reads a journal, line by line: requests, logical streams, reconnects and losses."""

    def read(self, entries: Iterable[Entry]) -> Counts:
        """What the telemetry must say."""
        for entry in entries:
            if isinstance(entry, Collected):
                self._collected(entry.at)
            elif isinstance(entry, Sent):
                self._sent(entry)
            else:
                self._later(self.exchanges[entry.n], entry)
        for scope in self._scopes():
            self._settle(*scope.streams)
        return +self.counts

    def _later(self, x: Exchange, entry: Entry) -> None:
        if isinstance(entry, NoAnswer):
            self._no_answer(x, entry)
        elif isinstance(entry, Head):
            self._head(x, entry)
        elif isinstance(entry, Heard):
            for frame in entry.frames:
                self._frame(x, frame, entry.at)
            if x.attempt is not None:
                x.attempt.last_byte = entry.at
        elif isinstance(entry, Ended):
            self._ended(x, entry)

    # -------------------------------------------------------------- a request is sent

    def _scope(self, sent: Sent) -> Scope:
        if sent.session is not None:
            return self.sessions.setdefault(sent.session, Scope(is_session=True, talk=Talk()))
        return self.clients.setdefault(sent.client, Scope(is_session=False, talk=Talk()))

    def _sent(self, sent: Sent) -> None:
        scope = self._scope(sent)
        x = Exchange(sent, scope, scope.talk if scope.is_session else Talk())
        self.exchanges[sent.n] = x
        for message in sent.messages:
            self._said(x, message)
        if scope.is_session:
            self._met_session(x)
        if sent.method != "DELETE":
            scope.used_before, scope.used, scope.used_by = scope.used, sent.at, x
        if sent.method == "GET":
            self._asks_for_stream(x)

    def _asks_for_stream(self, x: Exchange) -> None:
        scope, cursor = x.scope, x.sent.cursor
        known: Stream | None = None
        if cursor:
            named = [s for s in reversed(scope.streams) if cursor in s.ids]
            known = next((s for s in named if not s.is_terminal), named[0] if named else None)
        else:
            newest = next((s for s in reversed(scope.streams) if s.kind == "standalone"), None)
            known = newest if newest is not None and newest.is_idle else None
        stream = known or self._new_stream(x, "standalone")
        x.talk = stream.talk
        self._try(x, stream, foreign=bool(cursor) and known is None)
        if cursor:
            stream.ids.add(cursor)

    @staticmethod
    def _new_stream(x: Exchange, kind: str) -> Stream:
        stream = Stream(kind, x.scope, x.talk)
        x.scope.streams.append(stream)
        return stream

    def _try(self, x: Exchange, stream: Stream, *, foreign: bool = False) -> None:
        before = stream.tries[-1] if stream.tries else None
        cursor = x.sent.cursor
        is_reconnect = foreign or before is not None
        rejected = cursor is not None and stream.rejected_auth == x.sent.auth
        self._settle(stream)
        if before is not None and before.over is not None and not stream.is_lost:
            # Whoever looks right now may still see it waiting.
            stream.came_back = (x.sent.at, before.over)
        x.stream, x.attempt = stream, Try(is_reconnect, cursor, after_rejection=rejected)
        stream.tries.append(x.attempt)
        if not is_reconnect:
            return
        known = "foreign" if foreign else "sent" if cursor else "dropped" if stream.ids else "absent"
        cause = "unknown" if foreign or before is None else self._cause(stream, before)
        self.count("reconnects", stream.kind, cause, known)
        if before is not None and before.over is not None:
            self.count("reconnect.delay", self._hint(stream, x.sent.at - before.over))
        hopeless = stream.is_terminal or stream.is_hopeless
        if cursor and hopeless and stream.hopeless_auth == x.sent.auth:
            self.count("retries_after_terminal", "resume")

    def _cause(self, stream: Stream, before: Try) -> str:
        is_clean = before.end in ("server_closed", "complete")
        was_idle = before.end in ("server_closed", "network_error") and self.beyond(
            "idle", before.silence, self.limits.idle
        )
        polls = before.asked_to_poll or (before.outcome == "quiet" and stream.has_polled)
        rows = (
            (stream.is_terminal, "after_terminal"),
            (before.was_refused, "refused"),
            (before.had_no_answer, "connect_error"),
            (before.end == "read_timeout", "client_timeout"),
            (was_idle, "idle_timeout"),
            (before.end == "network_error", "network_error"),
            (is_clean and polls, "server_poll"),
            (is_clean, "server_close"),
            (before.end == "client_closed", "client_close"),
        )
        return next((cause for fits, cause in rows if fits), "unknown")

    def _hint(self, stream: Stream, waited: float) -> str:
        if stream.retry is None:
            return "absent"
        return "honored" if self.beyond("retry", waited, 0.9 * stream.retry / 1000) else "early"

    # -------------------------------------------------------------- the head

    def _head(self, x: Exchange, head: Head) -> None:
        x.head = head
        if head.session is not None and head.session != x.sent.session:
            scope = self.sessions.setdefault(head.session, Scope(is_session=True, talk=Talk()))
            scope.talk.requests.update({request.id: request for request in x.requests})
            x.talk = scope.talk
        if not head.is_stream:
            return
        if x.stream is None:
            stream = self._new_stream(x, "response" if x.requests else "other")
            for request in x.requests:
                request.stream = stream
                stream.pending[request.id] = request
            self._try(x, stream)
        self._opened(x, head.at)
        if x.sent.method != "GET":
            self._session_settled(x, head.status, None, is_rpc=False, at=head.at)

    def _opened(self, x: Exchange, at: float) -> None:
        if x.stream is None or x.attempt is None:
            raise AssertionError("a stream without an attempt")
        x.attempt.opened = at
        x.stream.had_stream, x.stream.is_lost, x.stream.is_hopeless = True, False, False
        scope = x.scope
        if scope.is_session and scope.state == "alive" and x.sent.cursor and scope.doubted_since is None:
            scope.doubted_since, scope.told_since = at, 0

    # -------------------------------------------------------------- what is heard

    def _frame(self, x: Exchange, frame: Frame, at: float) -> None:
        stream, attempt = x.stream, x.attempt
        if stream is None or attempt is None:
            raise AssertionError("frames of no stream")
        if frame.comment is not None:
            self.count("events", stream.kind, "comment")
            return
        if frame.retry is not None:
            stream.retry, attempt.asked_to_poll, stream.has_polled = frame.retry, True, True
        if frame.data is not None:
            self._data(x, stream, attempt, frame, frame.data, at)

    def _data(self, x: Exchange, stream: Stream, attempt: Try, frame: Frame, data: str, at: float) -> None:
        if not attempt.events:
            self.count("stream.time_to_first_event", stream.kind)
        attempt.events += 1
        is_known = frame.id is None or frame.id in stream.ids
        if not data and frame.id:
            self.count("events", stream.kind, "priming")
            attempt.asked_to_poll = stream.has_polled = True
            attempt.primes += 1
            attempt.fresh_primes += not is_known
            stream.ids.add(frame.id)
            return
        message = json.loads(data)
        kind = kind_of(message)
        self.count("events", stream.kind, kind)
        is_new = self._is_new(stream, message, kind, frame)
        if frame.id:
            stream.ids.add(frame.id)
        if is_new and not attempt.progressed:
            attempt.progressed = True
            self._outcome(x, "progressed", "continue")
        if kind != "other":
            if x.scope.is_session and x.scope.doubted_since is not None:
                x.scope.told_since += 1
            self._message(x, message, kind, at)

    @staticmethod
    def _is_new(stream: Stream, message: Json, kind: str, frame: Frame) -> bool:
        if kind == "other":
            return frame.id is not None and frame.id not in stream.ids
        if kind == "notification":
            return frame.id is None or frame.id not in stream.ids
        key = (kind, message["id"])
        is_new = key not in stream.messages
        stream.messages.add(key)
        return is_new

    # -------------------------------------------------------------- the end

    def _no_answer(self, x: Exchange, entry: NoAnswer) -> None:
        stream, attempt = x.stream, x.attempt
        is_cancelled = entry.why == "cancelled"
        ruling = None if is_cancelled else self._ruled(x, None, broke=entry.why)
        if ruling is not None:
            self._answers(x, ruling)
            self._never_answered(x)
        if stream is not None and attempt is not None:
            attempt.over = entry.at
            attempt.had_no_answer = not is_cancelled
            attempt.end = "client_closed" if is_cancelled else ""
            outcome = ("cancelled", "continue") if is_cancelled else ("failed", "retryable")
            self._outcome(x, *outcome)
            self._after_rejection(x)
        if not is_cancelled:
            self._session_settled(x, None, ruling, is_rpc=False, at=entry.at)

    def _ended(self, x: Exchange, entry: Ended) -> None:
        if x.head is None:
            raise AssertionError("an end without a head")
        if x.head.is_stream:
            self._stream_ended(x, entry)
            self._answers(x, None)
            return
        case_rpc = Case("", x.sent.method == "GET", x.scope.is_session, x.head.status, read=entry.body).rpc
        ruling = self._ruled(x, x.head.status, read=entry.body)
        is_fine = x.head.status < 400
        if case_rpc is not None and kind_of(case_rpc) == "response":
            answers_own = case_rpc["id"] in [request.id for request in x.requests]
            if answers_own or (is_fine and not x.is_answer):
                self._response(x, case_rpc)
        self._answers(x, ruling)
        if ruling is not None:
            self._never_answered(x)
        self._refused(x, ruling, x.head.status, entry.at)
        self._session_settled(x, x.head.status, ruling, is_rpc=case_rpc is not None, at=entry.at)

    def _ruled(self, x: Exchange, status: int | None, *, broke: str = "", read: bytes = b"") -> Ruling | None:
        ruling = rule(
            Case(
                x.point,
                x.sent.method == "GET",
                x.scope.is_session,
                status,
                broke,
                read,
                tuple(x.talk.requests),
            )
        )
        if ruling is not None:
            self.count("classifications", x.point, *ruling)
        return ruling

    def _refused(self, x: Exchange, ruling: Ruling | None, status: int, at: float) -> None:
        stream, attempt = x.stream, x.attempt
        if stream is None or attempt is None or ruling is None:
            return
        attempt.over, attempt.was_refused = at, True
        self._outcome(x, "refused" if status >= 400 else "not_sse", ruling[0])
        if ruling[0] == "terminal":
            stream.is_hopeless, stream.hopeless_auth = True, x.sent.auth
        self._after_rejection(x)
        if for_good(ruling) and attempt.is_reconnect:
            if stream.kind == "standalone" and ruling[1] == "session_lost":
                return
            self._lose(stream, "refused")

    def _stream_ended(self, x: Exchange, entry: Ended) -> None:
        stream, attempt = x.stream, x.attempt
        if stream is None or attempt is None or attempt.opened is None:
            raise AssertionError("the end of no stream")
        ends = {"clean": "server_closed", "broken": "network_error", "timeout": "read_timeout"}
        attempt.end = "complete" if stream.is_terminal else ends.get(entry.how, "client_closed")
        attempt.over = entry.at
        attempt.silence = entry.at - (attempt.last_byte or attempt.opened)
        self.count("stream.duration", stream.kind, attempt.end)
        if attempt.end in DROPS:
            self.count("stream.silence", stream.kind, attempt.end)
        if not attempt.progressed:
            self._nothing_new(x, stream, attempt, entry)
        self._after_rejection(x)
        if stream.pending and not stream.is_terminal and entry.how != "closed" and not stream.ids:
            self._lose(stream, "not_resumable")

    def _nothing_new(self, x: Exchange, stream: Stream, attempt: Try, entry: Ended) -> None:
        held = entry.at - (attempt.opened or 0.0)
        by_client = entry.how == "closed"
        if attempt.fresh_primes and attempt.primes == attempt.events:
            self._outcome(x, "primed", "continue")
        elif by_client:
            self._outcome(x, "cancelled", "continue")
        elif not attempt.events and self.beyond("quiet", held, self.limits.quiet):
            self._outcome(x, "quiet", "continue")
        elif entry.how in ("broken", "timeout"):
            self._outcome(x, "interrupted", "retryable")
            self._ruled(x, None, broke=entry.how)
        else:
            outcome = "repeated" if attempt.events else "empty"
            disposition = "terminal" if stream.is_terminal else "ambiguous"
            self._outcome(x, outcome, disposition)
            if attempt.is_reconnect and attempt.cursor:
                reason = "nothing_new" if attempt.events else "empty_replay"
                self.count("classifications", x.point, disposition, reason)
                if not attempt.events:
                    self.count("empty_replays", stream.kind, stream.request_state)

    def _outcome(self, x: Exchange, outcome: str, disposition: str) -> None:
        if x.stream is None or x.attempt is None or x.attempt.outcome:
            return
        x.attempt.outcome = outcome
        if x.attempt.is_reconnect:
            self.count("reconnect.outcomes", x.stream.kind, outcome, disposition)

    def _after_rejection(self, x: Exchange) -> None:
        if (
            x.attempt is not None
            and x.stream is not None
            and x.attempt.after_rejection
            and not x.stream.is_terminal
        ):
            self.count("retries_after_terminal", "resume_after_rejection")

    # -------------------------------------------------------------- losses

    def _lose(self, stream: Stream, reason: str) -> None:
        if stream.is_lost:
            return
        stream.is_lost = True
        if stream.kind == "standalone":
            if stream.had_stream and (not stream.scope.is_session or stream.scope.state == "alive"):
                self.count("streams_lost", stream.kind, reason)
            return
        for request in stream.pending.values():
            if not request.is_over:
                request.is_over = True
                self.count("requests_lost", request.method, reason)

    def _scopes(self) -> tuple[Scope, ...]:
        return (*self.sessions.values(), *self.clients.values())

    def _collected(self, at: float) -> None:
        for scope in self._scopes():
            for stream in scope.streams:
                self._maybe_given_up(stream, at)

    def _maybe_given_up(self, stream: Stream, at: float) -> None:
        """The ledger sees an end before its client writes it down, and a request after that: whoever looks in between
        sees a stream wait for longer than it says here, or one that waits no more."""
        if stream.is_terminal or not stream.tries or not stream.had_stream:
            return
        came_back, over_before = stream.came_back
        if 0 <= at - came_back < MARGIN and came_back - over_before > self._patience(stream) - MARGIN:
            stream.is_doubtful = True
        over = stream.last.over
        if over is None or (stream.is_lost and not stream.is_doubtful):
            return
        if not stream.is_lost and not (stream.pending or stream.kind == "standalone"):
            return
        spare = at - over - self._patience(stream)
        just_used = False
        if stream.kind == "standalone":
            # Nobody gives up what nobody uses.
            scope = stream.scope
            is_used = scope.used > over
            just_used = at - scope.used < MARGIN and scope.used_before <= over
            if not is_used and not (spare > -MARGIN and self._is_in_the_air(scope, stream, over)):
                return
            spare = spare if is_used else min(spare, 0.0)
        stream.is_doubtful = -MARGIN < spare <= 0 or (spare > 0 and just_used)
        if spare > 0:
            self._lose(stream, "gave_up")

    @staticmethod
    def _is_in_the_air(scope: Scope, stream: Stream, over: float) -> bool:
        """Whether the last request in a scope was sent while a stream was open, and on its way when that ended."""
        last, opened = scope.used_by, stream.last.opened
        if last is None or opened is None or not max(opened, over - MARGIN) < scope.used <= over:
            return False
        return last.head is None or last.head.at > over

    def _patience(self, stream: Stream) -> float:
        return max(self.limits.give_up, 5 * (stream.retry or 0) / 1000)

    def _settle(self, *streams: Stream) -> None:
        """Whether somebody saw in time that these were given up was too close to call."""
        for stream in streams:
            if stream.is_doubtful:
                stream.is_doubtful = False
                self.note_close("give up", f"{stream.kind}, last used {stream.scope.used:.3f} s")
