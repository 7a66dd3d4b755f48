"""Target of the guard: what conducts an exchange, between a client and a server of which both may do anything."""

import re
from collections.abc import Iterable
from typing import Any, Final

from tests.guard.test_script import Arrival, Response, Stage

from opentelemetry.instrumentation.httpx_sse._steps import QUIET, Deliver, Over, Respond, Substitute, Watch

from .deciding import CODINGS, MEDIA, listed
from .draw import Draw
from .reading import STATUSES, json_like, stream_body

CALLS: Final = tuple(
    b'{"jsonrpc":"2.0","id":%s,"method":"%s"}' % (identifier, method)
    for identifier in (b"1", b'"a"')
    for method in (b"tools/call", b"initialize", b"ping")
)
MESSAGES: Final = (
    b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":9,"method":"elicitation/create"}', b'{"jsonrpc":"2.0","method":"notifications/x"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}', b"",
)  # fmt: skip
ERRORS: Final = (ConnectionError, TimeoutError, ValueError, KeyboardInterrupt)
MOST_SENT: Final = 4
"""The client's own request, and three pings."""
PACE: Final = re.compile(rb"retry: \d+\n\n\Z")
KEPT: Final = 16
"""Replays in the quarantine."""


def _arrival(draw: Draw) -> Arrival:
    kind = draw.below(8)
    if kind < 3:
        return b"id: %d\ndata: %s\n\n" % (draw.below(4), draw.pick(MESSAGES))
    if kind == 3:
        return b"data: " + json_like(draw) + b"\n\n"
    if kind == 4:
        return stream_body(draw, 6)
    if kind == 5:
        return QUIET
    return draw.raw(20) if kind == 6 else b"data: " + draw.pick(MESSAGES)


def _arrivals(draw: Draw) -> Iterable[Arrival]:
    while not draw.is_spent and not draw.chance(4):
        yield _arrival(draw)
    if draw.chance(4):
        yield draw.pick(ERRORS)("arrives")


def _reply(draw: Draw) -> Response | BaseException:
    if draw.chance(16):
        return draw.pick(ERRORS)("no answer")
    media = MEDIA[0] if not draw.chance(6) else draw.pick(MEDIA)
    head = [("content-type", media.decode())]
    head += [("content-encoding", draw.pick(CODINGS).decode())] if draw.chance(8) else []
    status = 200 if not draw.chance(5) else draw.pick(STATUSES)
    return Response(status, head, [*_arrivals(draw)])


def guard(draw: Draw) -> None:
    """Whatever is replayed, the guard has no fault, says what it does, and without an action takes or adds no byte."""
    stage = Stage(
        dry_run=draw.chance(4),
        probe=not draw.chance(3),
        max_stalled=1 + draw.below(3),
        inconclusive=draw.pick(("fail", "release")),
    )
    while not draw.is_spent:
        stage.now += draw.pick((0.0, 0.01, 2.0, 40.0))
        replies = [_reply(draw) for _ in range(MOST_SENT + 1)]
        acted, sent, told = len(stage.actions), len(stage.sent), len(stage.told)
        if draw.chance(3):
            given = stage.play("POST", *replies, body=draw.pick(CALLS))
        else:
            given = stage.play("GET", *replies, cursor=draw.pick(("0", "1", "2", "3", "")))
        listed(stage.told[told:])
        if len(stage.sent) - sent > MOST_SENT:
            raise AssertionError(f"{len(stage.sent) - sent} requests for one")
        _judge(given, replies, is_untouched=len(stage.actions) == acted or stage.guard.settings.dry_run)
        if len(stage.guard.memory.quarantine) > KEPT:
            raise AssertionError("the quarantine outgrows its bound")


def _judge(given: list[Any], replies: list[Response | BaseException], *, is_untouched: bool) -> None:
    """A client is given a head, a body, an end, or the error that the network had; untouched, all that arrived."""
    *head, last = given
    first = replies[0]
    arrived = [] if isinstance(first, BaseException) else list(first.arrivals)
    if isinstance(last, BaseException):
        met = {id(each) for reply in replies for each in (reply, *getattr(reply, "arrivals", ()))}
        if id(last) not in met:
            raise AssertionError(f"an error of its own: {last!r}") from last
    elif isinstance(last, Substitute | Watch):
        if head or (is_untouched and isinstance(last, Substitute)):
            raise AssertionError(f"{given} is no answer")
        return
    elif not isinstance(last, Over):
        raise AssertionError(f"{last} is no end")  # noqa: TRY004 - what a finding is here
    if not head:
        return
    if not isinstance(head[0], Respond) or not all(isinstance(step, Deliver) for step in head[1:]):
        raise AssertionError(f"{given} is no answer")
    body = b"".join(step.chunk for step in head[1:])
    wanted = b"".join(chunk for chunk in arrived if isinstance(chunk, bytes))
    if not is_untouched or body == wanted:
        return
    is_cancelled = isinstance(last, BaseException) and not isinstance(last, Exception)
    own = body if is_cancelled else PACE.sub(b"", body)
    # A reader that is cancelled gets no more; and before its own pace is given back, half an event is left out.
    if not wanted.startswith(own) or (own == body and not is_cancelled):
        raise AssertionError(f"given {body!r} of {wanted!r}")
