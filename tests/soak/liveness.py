"""The accounting of sessions: in doubt, confirmed, lost, found again."""

from .dialogue import Dialogue
from .rulings import Ruling
from .state import Exchange, Scope


class Liveness(Dialogue):
    """Whether sessions live."""

    def _met_session(self, x: Exchange) -> None:
        scope = x.scope
        is_ping = any(request.method == "ping" for request in x.requests)
        if scope.state == "lost":
            x.met_lost = True
            if not any(request.method == "initialize" for request in x.requests):
                self.count("dead_session_requests")
        x.in_doubt = x.sent.method in ("POST", "DELETE") and scope.doubted_since is not None
        if x.in_doubt or is_ping:
            x.probe = "ping" if is_ping else "implicit"
            x.probe_left = True

    def _session_settled(
        self, x: Exchange, status: int | None, ruling: Ruling | None, *, is_rpc: bool, at: float
    ) -> None:
        scope = x.scope
        if not scope.is_session:
            return
        is_lost = ruling is not None and ruling[1] == "session_lost"
        is_fine = status is not None and status < 300 and not is_lost
        shows_life = is_fine or (is_rpc and not x.is_answer)
        outcome = "dead" if is_lost else "live" if shows_life else "inconclusive"
        phase = "on_resume" if x.sent.method == "GET" and x.sent.cursor else "in_use"
        if x.probe_left:
            x.probe_left = False
            is_window = x.in_doubt and scope.doubted_since is not None
            if is_window or x.probe == "ping":
                self.count("probes", x.probe, outcome, "after_replay" if is_window else "routine")
            if is_window and outcome != "inconclusive":
                phase = "after_replay"
                scope.doubted_since = None
                self.count("confirmation.duration", x.probe, outcome)
        if is_lost:
            self._lost(scope, phase, status)
        elif is_fine and x.sent.method == "DELETE":
            scope.state, scope.doubted_since = "ended", None
            for stream in scope.streams:
                stream.pending.clear()
        elif is_fine and x.met_lost and scope.state == "lost" and x.sent.method == "POST":
            scope.state = "alive"
            self.count("sessions_revived")

    def _lost(self, scope: Scope, phase: str, status: int | None) -> None:
        if scope.state != "alive":
            return
        scope.state, scope.doubted_since = "lost", None
        signals = {404: "http_404", 410: "http_410", 400: "http_400"}
        is_refusal = status is not None and status >= 400
        signal = signals.get(status or 0, "http_other") if is_refusal else "error_body"
        self.count("sessions_lost", phase, signal)
        if phase == "after_replay" and scope.told_since:
            self.count("dead_session_events", by=scope.told_since)
