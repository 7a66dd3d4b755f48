"""The accounting of what is said: requests, responses, questions and answers."""

from typing import Any

from .books import Books
from .journal import Json
from .rulings import Ruling, for_good
from .state import Exchange, Question, Request


class Dialogue(Books):
    """Who asked what, and what became of it."""

    def _said(self, x: Exchange, message: Json) -> None:
        if "method" in message and "id" in message:
            request = Request(message["id"], message["method"])
            x.talk.requests[request.id] = request
            x.requests.append(request)
        elif "method" not in message:
            question = x.talk.questions.get(message["id"])
            is_late = bool(question and question.stream and question.stream.is_terminal)
            x.answers.append((message, question, "late" if is_late else "in_time"))
            if question is not None and question.hopeless_auth == x.sent.auth:
                self.count("retries_after_terminal", "answer")
        elif message["method"] == "notifications/cancelled":
            named = x.talk.requests.get(message["params"]["requestId"])
            if named is not None and named.heard_on is None:
                named.is_over = True
                if named.stream is not None:
                    named.stream.pending.pop(named.id, None)

    def _message(self, x: Exchange, message: Json, kind: str, at: float) -> None:
        if kind == "response":
            self._response(x, message)
        elif kind == "request":
            self._question(x, message, at)
        elif message["method"] == "notifications/cancelled":
            named = x.talk.questions.get(message["params"]["requestId"])
            if named is not None:
                named.is_cancelled = True

    def _response(self, x: Exchange, message: Json) -> None:
        request = x.talk.requests.get(message["id"])
        if request is None:
            self.count("responses", "orphan")
        elif request.heard_on is None:
            self.count("responses", "first")
            request.heard_on, request.is_over = x.sent.n, True
            self.count("operations", request.method)
            stream = request.stream
            if stream is not None:
                stream.pending.pop(request.id, None)
                if not stream.pending:
                    stream.is_terminal, stream.hopeless_auth = True, x.sent.auth
        else:
            where = "same" if request.heard_on == x.sent.n else "other"
            self.count("responses", f"duplicate_{where}_stream")

    def _question(self, x: Exchange, message: Json, at: float) -> None:
        method, identifier = message["method"], message["id"]
        meta: dict[str, Any] = message.get("params", {}).get("_meta", {})
        question = x.talk.questions.get(identifier)
        if question is None:
            x.talk.questions[identifier] = Question(method, at, meta.get("progressToken"), x.stream)
            if method != "ping":
                self.count("server_requests", method, "first", "live")
            return
        if method == "ping":
            return
        liveness = self._liveness(question, meta, at)
        self.count("server_requests", method, "redelivered", liveness)
        if not question.reaches_somebody:
            return
        self.count("reprompts", method, "replay" if x.sent.cursor else "resend", liveness)
        if question.is_acknowledged_anew:
            question.is_acknowledged_anew = False
            self.count("ineffective_answers", method)

    def _liveness(self, question: Question, meta: dict[str, Any], at: float) -> str:
        token = meta.get("progressToken")
        asserted = self.limits.liveness_key in meta or (token is not None and token != question.token)
        rows = (
            (question.is_cancelled, "cancelled"),
            (question.is_rejected, "rejected"),
            (question.is_answered, "answered"),
            (asserted, "asserted"),
        )
        known = next((liveness for fits, liveness in rows if fits), "")
        if known:
            return known
        return "stale" if self.beyond("deadline", at - question.at, self.limits.deadline) else "unverified"

    def _answers(self, x: Exchange, ruling: Ruling | None) -> None:
        outcome = "acknowledged"
        if ruling is not None:
            named = (
                ruling[1] if ruling[1] in ("unknown_request", "session_lost", "unauthorized") else "rejected"
            )
            outcome = "retryable_error" if ruling[0] == "retryable" else named
        for _, question, timing in x.answers:
            if question is not None and question.method == "ping":
                continue
            method = "_NONE" if question is None else question.method
            self.count("answers", method, outcome, "continue" if ruling is None else ruling[0], timing)
            if question is None:
                continue
            if ruling is None:
                question.is_answered = question.is_acknowledged_anew = True
                question.hopeless_auth = None
                continue
            if outcome in ("unknown_request", "session_lost"):
                question.hopeless_auth = x.sent.auth
            if for_good(ruling):
                question.is_rejected = True
                if question.stream is not None:
                    question.stream.rejected_auth = x.sent.auth

    def _never_answered(self, x: Exchange) -> None:
        for request in x.requests:
            if request.heard_on is None and request.stream is None:
                request.is_over = True
                self.count("operations", request.method)
