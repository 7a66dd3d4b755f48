"""Replay, then probe, then release or quarantine, over real connections."""

from tests.guard.wire import PROGRESS, Reply, result
from tests.guard.world import GONE, PRIMED, REPLAY, World, asked_of, by, resume
from tests.lifecycle.world import total


def test_a_replay_is_given_out_when_its_session_is_known_to_live(world: World) -> None:
    """One ping, with the credentials and headers of the resume; the ledger calls it active."""
    first, _ = world.run(asked_of([None]), resume)

    assert first.messages == [PROGRESS, result(1)]
    (probe,) = [asked for asked in world.wire.asked if asked.is_probe]
    assert probe.message["method"] == "ping"
    assert probe.headers["authorization"] == "secret"
    assert probe.headers["mcp-session-id"] == "S1"
    assert probe.headers["mcp-protocol-version"] == "2025-11-25"
    assert "last-event-id" not in probe.headers
    labels = {"sse.probe.kind": "active", "sse.probe.outcome": "live", "sse.probe.context": "after_replay"}
    assert total(world.memory, "sse.client.probes", **labels) == 1
    assert total(world.memory, "sse.client.unconfirmed_sessions") == 0


def test_the_replay_of_a_dead_session_is_quarantined(world: World) -> None:
    """The client sees the session's end at the reconnect: 404, and for whoever comes again, the request's error."""
    first, second = world.run(asked_of([GONE]), resume)

    assert first.status == 404
    assert first.failure["data"]["next"] == "new_session"
    assert second.messages[0]["id"] == 1
    assert second.failure["data"]["reason"] == "dead"
    assert world.wire.resumes == 1
    assert world.actions("session_quarantined") == 2
    assert total(world.memory, "sse.client.sessions_lost", **{"sse.session.phase": "after_replay"}) == 1


def test_a_probe_in_doubt_is_tried_again_and_then_the_operation_fails(world: World) -> None:
    """Three pings, one error; the replay is not given out."""
    busy = Reply(503, "")
    first, _ = world.run(asked_of([busy, busy, busy]), resume)

    assert first.messages[0]["id"] == 1
    assert first.failure["data"]["reason"] == "inconclusive"
    assert world.wire.probes == 3
    assert world.actions("probe_inconclusive") == 1


def test_a_probe_that_is_conclusive_in_the_end_decides(world: World) -> None:
    """A signed request cannot be copied: 401 says nothing."""
    first, _ = world.run(asked_of([Reply(401, ""), None]), resume)

    assert first.messages == [PROGRESS, result(1)]
    assert world.wire.probes == 2


def test_whoever_prefers_a_doubtful_replay_gets_it(world: World) -> None:
    """`guard_inconclusive=release`."""
    busy = Reply(503, "")
    first, _ = world.run(asked_of([busy, busy, busy]), resume, guard_inconclusive="release")

    assert first.messages == [PROGRESS, result(1)]


def test_without_probes_nothing_is_asked(world: World) -> None:
    """`guard_probe=False`; nor without a session, nor in a dialect that has none."""
    for keywords in (
        {"guard_probe": False},
        {"session": ""},
        {"guard_disabled": "session_quarantined,probe_inconclusive"},
    ):
        first, _ = world.run(
            asked_of([]) if "guard_disabled" not in keywords else by(PRIMED, REPLAY), resume, **keywords
        )
        assert first.messages == [PROGRESS, result(1)]
    assert world.wire.probes == 0
