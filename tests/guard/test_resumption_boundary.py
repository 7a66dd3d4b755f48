"""When reattachment is a new logical stream rather than a continuation: the document's conditions and decisions."""

import pytest

from opentelemetry.instrumentation.httpx_sse.guard import InvalidResumptionError, ResumptionGuard

EVICTED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Event not found"}}'
FINALIZED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Stream expired"}}'


def in_flight() -> ResumptionGuard:
    """Request 1 has had one event and no answer."""
    guard = ResumptionGuard("S1")
    guard.observe_event(1, "e1")
    return guard


def answered() -> ResumptionGuard:
    """Request 1 has had its answer."""
    guard = in_flight()
    guard.observe_event(1, "e2", terminal=True)
    return guard


# ------------------------------------------------------------------ condition of validity


def test_condition_1_the_previous_stream_ended_without_a_terminal_event() -> None:
    """Then, and only then, a resume is a continuation."""
    assert in_flight().may_resume(1)
    assert not answered().may_resume(1)


@pytest.mark.parametrize("body", [EVICTED, FINALIZED], ids=["evicted", "finalized"])
def test_condition_2_the_buffer_still_contains_the_event_and_the_stream_is_resumable(body: bytes) -> None:
    """A server that says it does not, or that the stream is over, is not asked again."""
    guard = in_flight()
    assert guard.interpret(1, 404, body_empty=False, body=body).reason == "cursor_evicted"

    assert not guard.may_resume(1)
    with pytest.raises(InvalidResumptionError, match="from scratch"):
        guard.headers(1)


def test_condition_3_the_same_session_is_carried() -> None:
    """The session's id and the cursor go together."""
    assert in_flight().headers(1) == {"Mcp-Session-Id": "S1", "Last-Event-ID": "e1"}


def test_condition_3_a_server_that_lost_its_state_returns_an_empty_replay_which_proves_nothing() -> None:
    """ "No events were missed" is a lie."""
    reading = in_flight().interpret(1, 200, body_empty=True)

    assert (reading.disposition, reading.reason) == ("ambiguous", "empty_replay")


def test_condition_4_deduplication_and_correlation_are_scoped_to_the_request_not_to_the_stream() -> None:
    """The same event id on a resumed stream is no news; on another request's stream it is."""
    guard = in_flight()

    assert not guard.observe_event(1, "e1")
    assert guard.observe_event(2, "e1")


def test_condition_4_a_terminal_event_under_a_new_event_id_is_still_a_duplicate() -> None:
    """A second client, with deduplication by event id only, counted a side effect twice."""
    assert not answered().observe_event(1, "e9", terminal=True)


# ------------------------------------------------------------------ decision boundary


def test_boundary_1_no_terminal_event_observed_attempt_resumption() -> None:
    """With the newest cursor, as a continuation of the same logical stream."""
    guard = in_flight()
    guard.observe_event(1, "e2")

    assert guard.headers(1)["Last-Event-ID"] == "e2"
    assert guard.interpret(1, 200, body_empty=False) == ("continue", None, "go_on")


def test_boundary_1_deduplicate_by_event_id_within_the_stream() -> None:
    """What the resumed stream repeats is no news, what follows it is."""
    guard = in_flight()
    guard.headers(1)

    assert [guard.observe_event(1, event) for event in ("e1", "e2", "e2")] == [False, True, False]


def test_boundary_2_terminal_event_observed_do_not_send_last_event_id() -> None:
    """The request is done: there is nothing to reconnect for."""
    with pytest.raises(InvalidResumptionError) as raised:
        answered().headers(1)

    assert raised.value.reason == "after_terminal"
    assert raised.value.advice == "nothing"


def test_boundary_2_a_reconnect_that_is_forced_sends_no_cursor_and_has_a_fresh_scope() -> None:
    """It is a new logical stream."""
    guard = answered()

    assert guard.reopening_headers(1) == {"Mcp-Session-Id": "S1"}
    assert guard.observe_event(1, "e1")


def test_boundary_3_200_with_an_empty_body_is_resumption_failed() -> None:
    """A request in flight is to be sent again, whole and with idempotency protection."""
    reading = in_flight().interpret(1, 200, body_empty=True)

    assert reading.disposition == "ambiguous"
    assert reading.advice == "retry_from_scratch"


def test_boundary_3_unless_the_request_was_terminal() -> None:
    """Then nothing was missed, and nothing is to be done."""
    reading = answered().interpret(1, 200, body_empty=True)

    assert reading.disposition == "terminal"
    assert reading.advice == "nothing"


def test_boundary_3_who_does_not_know_whether_it_was_terminal_must_not_assume_completion() -> None:
    """A request that was never heard of is read as one in flight."""
    assert ResumptionGuard("S1").interpret(7, 200, body_empty=True).advice == "retry_from_scratch"


@pytest.mark.parametrize("status", [404, 409])
def test_boundary_4_404_or_409_on_the_stream_the_buffer_is_gone_retry_from_scratch(status: int) -> None:
    """The session may still be valid: where the body names the event, the session is kept."""
    reading = in_flight().interpret(1, status, body_empty=False, body=EVICTED)

    assert reading == ("terminal", "cursor_evicted", "retry_from_scratch")


def test_boundary_4_a_bare_404_without_a_session_is_about_the_buffer_with_one_about_the_session() -> None:
    """Documents differ on it: here the body decides first, then the header."""
    nameless = ResumptionGuard(None)
    nameless.observe_event(1, "e1")

    assert nameless.interpret(1, 404, body_empty=True).advice == "retry_from_scratch"
    assert in_flight().interpret(1, 404, body_empty=True).advice == "new_session"


def test_boundary_4_a_bare_409_is_ambiguous_retry_from_scratch() -> None:
    """With a body that names no event, an earlier stream is still active, and the resume may be tried again."""
    assert in_flight().interpret(1, 409, body_empty=True).advice == "retry_from_scratch"
    assert in_flight().interpret(1, 409, body_empty=False, body=b"already active").advice == "try_later"


# ------------------------------------------------------------------ what was observed


def test_observed_a_fin_after_the_final_result_is_no_transient_disconnect() -> None:
    """The loop of resumes does not begin, and a replayed final result is not processed twice."""
    guard = answered()

    assert not guard.may_resume(1)
    assert not guard.observe_event(1, "e2", terminal=True)


def test_a_request_without_a_cursor_cannot_be_resumed() -> None:
    """No event of its stream had an id."""
    guard = ResumptionGuard("S1")
    guard.observe_event(1)

    with pytest.raises(InvalidResumptionError, match="no cursor"):
        guard.headers(1)


def test_a_status_that_no_resume_is_answered_with_is_an_error() -> None:
    """Such as a redirect that nobody followed."""
    with pytest.raises(InvalidResumptionError, match="307"):
        in_flight().interpret(1, 307, body_empty=True)


def test_state_is_bounded() -> None:
    """A client that never forgets a request does not grow for ever."""
    guard = ResumptionGuard("S1")
    for request in range(20_000):
        guard.observe_event(request, "e")
    for event in range(5_000):
        guard.observe_event("long", str(event))

    assert not guard.may_resume(0)
    assert guard.may_resume("long")
    guard.forget("long")
    assert not guard.may_resume("long")
