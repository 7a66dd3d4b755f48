"""One work in every mode, checked to be the same work."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

from tests.bench.modes import MODES, counted
from tests.bench.times import Result, Times, WrongWorkError, result, turned
from tests.bench.works import Work


def measure(work: Work, url: str, rounds: int, modes: Sequence[str] = tuple(MODES)) -> Result:
    """All modes, each round in another order, after a round that does not count.

    Raises:
        WrongWorkError: a run saw another number of units, pieces or events than it should have.
    """
    note = _check_chunks(work, url)
    times = Times()
    for number in range(-1, rounds):
        for mode in turned(modes, number):
            cpu, wall = _run(work, url, mode)
            if number >= 0:
                times.add(mode, cpu, wall)
    return result(work.case, work.title, times, note)


def _run(work: Work, url: str, mode: str) -> tuple[float, float]:
    with MODES[mode]() as check, work.prepared(url) as go:
        counted_before = check()
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        units = go()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        _expect(f"{work.case} {work.title}, {mode}: units", units, work.units)
        if mode == "ours":
            _expect(f"{work.case} {work.title}: events counted", check() - counted_before, work.events)
    return cpu, wall


def _check_chunks(work: Work, url: str) -> str:
    """The client must be given the pieces that were sent; a read of the socket may split a few."""
    if not work.chunks:
        return ""
    with counted() as check, work.prepared(url) as go:
        before = check()
        go()
        pieces = check() - before
    if not work.chunks <= pieces <= work.chunks * 1.1 + 1:
        raise WrongWorkError(f"{work.case} {work.title}: {pieces} pieces, not about {work.chunks}")
    return f"{pieces} pieces"


def _expect(what: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise WrongWorkError(f"{what}: {found}, not {wanted}")
