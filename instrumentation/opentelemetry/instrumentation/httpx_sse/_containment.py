"""Our errors stay ours: contained, counted by site, logged once per site. Under the test suite they raise."""

import logging
from collections import Counter
from typing import Final

from ._locker import Locker
from ._names import Site

_LOG: Final = logging.getLogger(__name__)


class Containment(Locker):
    """Where errors of this package end.

    Args:
        strict: raise instead. For test suites: there an error of ours is a defect to be seen.
    """

    strict_by_default = False

    def __init__(self, *, strict: bool | None = None) -> None:
        super().__init__()
        self.strict = self.strict_by_default if strict is None else strict
        self.errors: Counter[Site] = Counter()
        """Contained errors so far, by site; exported by telemetry at collection."""

    def contain(self, site: Site, error: Exception) -> None:
        """Call from an `except` clause.

        Raises:
            Exception: `error` itself, when strict.
        """
        with self._lock:
            self.errors[site] += 1
            is_first = self.errors[site] == 1
        if self.strict:
            raise error
        if is_first:
            # The text of an error may quote what passed by, so only its type is logged.
            _LOG.warning(
                "%s in the SSE instrumentation, contained at %r; the program is not affected, "
                "its telemetry may lack something. Further errors there are only counted.",
                type(error).__name__,
                site,
            )
