"""Events are cut where a client would dispatch them, however their bytes arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentelemetry.instrumentation.httpx_sse._scanner import Scanner
from opentelemetry.instrumentation.httpx_sse.guard._pieces import Cutter

WORDS = [b"data: x", b"id: 1", b": c", b"", b"data", b"retry: 5", b"\xef\xbb\xbf"]
NEWLINES = [b"\n", b"\r\n", b"\r"]


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """A stream, and where it is cut into chunks."""
    lines = draw(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(NEWLINES)), max_size=12))
    data = b"".join(word + newline for word, newline in lines) + draw(st.sampled_from(WORDS))
    return data, sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))


def blocks(data: bytes) -> int:
    """Events, and whatever else an empty line closes."""
    return len(Scanner().receive(data))


@given(streams())
def test_pieces_joined_are_the_bytes_that_came(stream: tuple[bytes, list[int]]) -> None:
    """And each has at most one event in it; the rest has none."""
    data, cuts = stream
    cutter = Cutter()
    pieces = [
        piece for start, end in pairwise([0, *cuts, len(data)]) for piece in cutter.receive(data[start:end])
    ]

    assert b"".join(pieces) + cutter.rest == data
    assert all(blocks(piece) <= 1 for piece in pieces)
    assert blocks(cutter.rest) == 0
    assert sum(map(blocks, pieces)) == blocks(data)


@given(streams())
def test_leaving_a_piece_out_leaves_the_others(stream: tuple[bytes, list[int]]) -> None:
    """Every second event of a stream can be taken out, and those between are still told."""
    cutter = Cutter()
    pieces = cutter.receive(stream[0])
    kept = [piece for n, piece in enumerate(pieces) if n % 2]

    assert blocks(b"".join(kept)) == sum(map(blocks, kept))


@pytest.mark.parametrize("newline", NEWLINES)
def test_a_keep_alive_is_not_held_back(newline: bytes) -> None:
    """A bare comment has no empty line after it."""
    cutter = Cutter()

    assert cutter.receive(b":" + newline) == [b":" + newline]
    assert cutter.is_between
