"""Facts of every kind for the ledger, in lawful and in impossible orders."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st

from opentelemetry.instrumentation.httpx_sse._events import (
    NO_BODY,
    Answered,
    Asked,
    Body,
    Ended,
    Event,
    Message,
    MessageKind,
    Origin,
    PoolClosed,
    Received,
    Sent,
    Skimmed,
    Unanswered,
)

ORIGINS = (Origin("http", "h1", 80), Origin("http", "h2", 80))
IDS = (None, 1, 2, "1", "q1")
CURSORS = (None, "e1", "e2", "e3")
SESSIONS = (None, "A", "B")
VERSIONS = (None, "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "2031-01-01")
TARGETS = (b"/mcp", b"/x", b"/m")
STATUSES = (200, 202, 204, 301, 307, 400, 401, 404, 405, 409, 410, 429, 500, 501)
CLIENT_METHODS = ("tools/call", "initialize", "ping", "subscriptions/listen", "vendor/do")
SERVER_METHODS = ("elicitation/create", "sampling/createMessage", "roots/list", "ping", "vendor/create")
TEXTS = ("", "session not found", "event not found", "stream already active", "missing session id", "oops")

ASKED = (
    Asked(method="elicitation/create", digest=b"k"),
    Asked(method="elicitation/create", digest=b"u", is_url=True),
    Asked(method="vendor/create", digest=b"v"),
)


def _message(methods: tuple[str, ...]) -> st.SearchStrategy[Message]:
    ids = st.sampled_from(IDS)
    named = st.sampled_from(IDS[1:])
    request = st.builds(
        Message,
        kind=st.just(MessageKind.REQUEST),
        id=named,
        method=st.sampled_from(methods),
        subject=st.sampled_from((b"", b"s")),
        state=st.sampled_from((b"", b"A", b"B")),
        has_input=st.booleans(),
        progress_token=ids,
        asserts_liveness=st.booleans(),
    )
    notification = st.builds(
        Message,
        kind=st.just(MessageKind.NOTIFICATION),
        method=st.sampled_from(("notifications/message", "notifications/subscriptions/acknowledged")),
        cancels=ids,
    )
    response = st.builds(
        Message,
        kind=st.just(MessageKind.RESPONSE),
        id=ids,
        input_required=st.booleans(),
        state=st.sampled_from((b"", b"A", b"B")),
        asked=st.lists(st.sampled_from(ASKED), max_size=2).map(tuple),
        protocol_version=st.sampled_from(("", "2025-11-25")),
    )
    error = st.builds(
        Message,
        kind=st.just(MessageKind.RESPONSE),
        id=ids,
        is_error=st.just(value=True),
        error_code=st.sampled_from((None, -32601, -32042, -32001)),
        error_text=st.sampled_from(TEXTS),
    )
    return st.one_of(request, notification, response, error)


MESSAGES = st.lists(_message(CLIENT_METHODS), max_size=2).map(tuple)
DELIVERED = st.lists(_message(SERVER_METHODS), max_size=2).map(tuple)
BODIES = st.one_of(st.just(NO_BODY), st.builds(Body, st.sampled_from(TEXTS), DELIVERED))
ERRORS = st.sampled_from(("network_error", "timeout", "cancelled"))


def sent(exchange: st.SearchStrategy[int]) -> st.SearchStrategy[Sent]:
    return st.builds(
        Sent,
        exchange=exchange,
        pool=st.integers(1, 2),
        origin=st.sampled_from(ORIGINS),
        target=st.sampled_from(TARGETS),
        http_method=st.sampled_from(("GET", "POST", "POST", "DELETE")),
        mcp=st.booleans(),
        session=st.sampled_from(SESSIONS),
        cursor=st.sampled_from(CURSORS),
        version=st.sampled_from(VERSIONS),
        credentials=st.sampled_from((b"", b"a")),
        messages=MESSAGES,
    ).map(_silent)


def _silent(event: Sent) -> Sent:
    """Only a POST has messages: nobody reads the body of anything else."""
    return event if event.http_method == "POST" else replace(event, messages=())


def answered(exchange: st.SearchStrategy[int]) -> st.SearchStrategy[Answered]:
    return st.builds(
        Answered,
        exchange=exchange,
        status=st.sampled_from(STATUSES),
        is_stream=st.booleans(),
        opaque=st.booleans(),
        session=st.sampled_from(SESSIONS),
        location=st.sampled_from((b"", *TARGETS)),
    )


def received(exchange: st.SearchStrategy[int]) -> st.SearchStrategy[Event]:
    block = st.builds(
        Received,
        exchange=exchange,
        event_type=st.sampled_from(("", "message", "endpoint")),
        event_id=st.sampled_from((None, "", *CURSORS[1:])),
        retry=st.sampled_from((None, 0, 3000, 60_000)),
        has_data=st.booleans(),
        messages=DELIVERED,
        is_empty=st.booleans(),
        endpoint=st.sampled_from((b"", *TARGETS)),
    )
    bulk = st.builds(
        Skimmed,
        exchange=exchange,
        event_type=st.sampled_from(("comment", "notification", "other")),
        count=st.integers(1, 3),
        event_ids=st.sampled_from(((), ("e1",), ("e9",))),
    )
    return st.one_of(block, bulk)


def ended(exchange: st.SearchStrategy[int]) -> st.SearchStrategy[Ended]:
    return st.one_of(
        st.builds(
            Ended,
            exchange=exchange,
            how=st.sampled_from(("exhausted", "closed", "abandoned")),
            body=BODIES,
            last_byte_at=st.sampled_from((None, 0.0, 900.0, 1e6)),
            opaque=st.booleans(),
        ),
        st.builds(Ended, exchange=exchange, how=st.just("failed"), error=ERRORS, body=BODIES),
    )


def unanswered(exchange: st.SearchStrategy[int]) -> st.SearchStrategy[Unanswered]:
    return st.builds(Unanswered, exchange=exchange, error=ERRORS)


FEW = st.integers(1, 4)
STEPS = st.sampled_from((0.0, 0.0, 0.5, 2.0, 40.0, 130.0, 700.0))
WILD_STEPS = st.one_of(STEPS, st.sampled_from((-5.0, -500.0)))

ANY_EVENT: st.SearchStrategy[Event] = st.one_of(
    sent(FEW),
    answered(FEW),
    received(FEW),
    ended(FEW),
    unanswered(FEW),
    st.builds(PoolClosed, pool=st.integers(1, 2)),
)
WILD_WORLDS = st.lists(st.tuples(ANY_EVENT, WILD_STEPS, st.booleans()), min_size=5, max_size=40)
"""Facts in any order, each with the time that passes before it and whether somebody collects after it."""


@st.composite
def _life(draw: st.DrawFn, number: int) -> tuple[Event, ...]:
    """One exchange as it may go."""
    me = st.just(number)
    begin = draw(sent(me))
    if draw(st.integers(0, 5)) == 0:
        return (begin, draw(unanswered(me)))
    head = draw(answered(me))
    if head.is_stream:
        head = Answered(exchange=number, status=200, is_stream=True, opaque=head.opaque, session=head.session)
    pieces = draw(st.lists(received(me), max_size=4)) if head.is_stream else []
    return (begin, head, *pieces, draw(ended(me)))


@st.composite
def lawful_worlds(draw: st.DrawFn) -> list[tuple[Event, float, bool]]:
    """Up to eight exchanges that take turns; time never goes backwards."""
    lives = [list(draw(_life(number))) for number in range(1, draw(st.integers(1, 8)) + 1)]
    world: list[tuple[Event, float, bool]] = []
    while lives:
        life = lives[draw(st.integers(0, min(len(lives), 3) - 1))]
        world.append((life.pop(0), draw(STEPS), draw(st.booleans())))
        lives = [rest for rest in lives if rest]
    return world


def timed(world: list[tuple[Event, float, bool]]) -> Iterator[tuple[Event, float, bool]]:
    """With the time of each fact in place of the time that passes."""
    at = 1000.0
    for event, seconds, collects in world:
        at += seconds
        yield event, at, collects
