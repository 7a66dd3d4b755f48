"""Locks that are held while a call of the host passes: re-entrant, and made anew in a forked child."""

import os
import threading
import weakref
from typing import Final


class Locker:
    """Holds such a lock, as `_lock`."""

    def __init__(self) -> None:
        # A signal handler or a finalizer of the host may send a request while we hold it: never wait for ourselves.
        self._lock = threading.RLock()
        _ALIVE.add(self)

    def after_fork(self) -> None:
        """In a child, a lock that another thread of the parent held would stay locked for ever."""
        self._lock = threading.RLock()


_ALIVE: Final["weakref.WeakSet[Locker]"] = weakref.WeakSet()


def _after_fork() -> None:
    for locker in list(_ALIVE):
        locker.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
