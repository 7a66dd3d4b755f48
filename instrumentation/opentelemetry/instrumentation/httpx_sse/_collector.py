"""Whether the garbage collector is at work in this thread.

A finalizer of the host may close a stream while anybody's lock is held, that of the OpenTelemetry SDK included:
what is seen then is put aside.
"""

import gc
import os
import threading
from typing import Final


class Collector:
    """Knows in which threads a collection is under way."""

    def __init__(self) -> None:
        self._threads: set[int] = set()

    def install(self) -> None:
        """Listen to the collector; once is enough."""
        if self.notice not in gc.callbacks:
            gc.callbacks.append(self.notice)

    def notice(self, phase: str, _: dict[str, int]) -> None:
        """What `gc.callbacks` calls."""
        if phase == "start":
            self._threads.add(threading.get_ident())
        else:
            self._threads.discard(threading.get_ident())

    def after_fork(self) -> None:
        """A child has no thread but this one, whatever the others were doing."""
        self._threads &= {threading.get_ident()}

    def is_here(self) -> bool:
        return bool(self._threads) and threading.get_ident() in self._threads


COLLECTOR: Final = Collector()
COLLECTOR.install()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COLLECTOR.after_fork)
