"""What a script may ask of its driver: the words between a description without colour and the two that carry it out.

A script describes what happens to one exchange. It yields these and is sent their results; `_transport` does them,
once for each colour. `Respond`, `Watch` and `Deliver` give something to the client, and the script goes on when the
client comes back for more.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol


class Quiet(Enum):
    """The answer to `Next` when no chunk came in time."""

    QUIET = "quiet"


QUIET: Final = Quiet.QUIET


class Source(Protocol):
    """A response that is being read; the methods that read it are its driver's own."""

    response: Any


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request through the wrapped transport; answered by a `Source`."""

    request: Any


@dataclass(frozen=True, slots=True)
class Next:
    """Read the next chunk; answered by it, by None at the end, or by `QUIET`."""

    source: Source
    within: float | None = None
    """Seconds after which it is quiet. A transport that cannot wait for bytes is quiet at once."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close a response that is not given to the client, or not read to its end."""

    source: Source


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Respond:
    """Give the client the head of a response whose body the script delivers."""

    source: Source


@dataclass(frozen=True, slots=True)
class Watch:
    """Give the client a response as it is, and only watch it from here on. The script is over.

    `is_begun` when the exchange has been told of the head already.
    """

    source: Source
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class Substitute:
    """Give the client a response that no server sent. The script is over."""

    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give the client a chunk."""

    chunk: bytes


@dataclass(frozen=True, slots=True)
class Over:
    """There is nothing more to give: the body ends. The script is over."""


Step = Send | Next | Close | Sleep | Respond | Watch | Substitute | Deliver | Over
Given = Respond | Watch | Substitute | Deliver | Over
GIVEN: Final = (Respond, Watch, Substitute, Deliver, Over)
"""What ends a turn: the client has something."""


class Script(Protocol):
    """The description of one exchange, as its driver sees it."""

    def step(self, answer: Any, error: BaseException | None) -> Step:
        """The next step, after the answer to the one before, or the error that it ended with.

        Raises:
            BaseException: `error` itself, if the client is to have it.
        """

    def failed(self, error: Exception) -> None:
        """The driver could not do what it was asked, by a fault of ours: from here on everything passes."""

    def closed(self) -> None:
        """The client closed the response."""
