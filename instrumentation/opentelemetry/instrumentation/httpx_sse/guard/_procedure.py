"""One description, two colours: a procedure is a generator that yields the calls to be made.

`run()` makes them; `await` awaits what they return. Neither form knows more than the other.
"""

from collections.abc import Callable, Generator
from inspect import isawaitable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Steps = Generator[Callable[[], Any], Any, T]
"""Yields calls, is sent their results or is thrown what they raise, and returns the result of it all."""


class Procedure(Generic[T]):
    """A procedure that has not been run yet. Run it once, in one of its two forms.

    Args:
        steps: its description.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps

    def run(self) -> T:
        """Make the calls, one after the other.

        Raises:
            TypeError: a call returned an awaitable: then `await` the procedure instead.
        """
        result: Any = None
        error: BaseException | None = None
        while True:
            try:
                call = self._steps.send(result) if error is None else self._steps.throw(error)
            except StopIteration as done:
                value: T = done.value
                return value
            result, error = None, None
            try:
                result = call()
                _refuse_awaitable(result)
            except BaseException as raised:  # noqa: BLE001 - the description decides what an error means
                error = raised

    def __await__(self) -> Generator[Any, Any, T]:
        """Same as run, for calls that return awaitables."""
        result: Any = None
        error: BaseException | None = None
        while True:
            try:
                call = self._steps.send(result) if error is None else self._steps.throw(error)
            except StopIteration as done:
                value: T = done.value
                return value
            result, error = None, None
            try:
                result = call()
                if isawaitable(result):
                    result = yield from result.__await__()
            except BaseException as raised:  # noqa: BLE001 - as above; cancellation is thrown on, too
                error = raised


def _refuse_awaitable(result: object) -> None:
    if isawaitable(result):
        close = getattr(result, "close", None)
        if close is not None:
            # A coroutine that is not run is closed, so that nobody is warned of it.
            close()
        raise TypeError("a call of this procedure must be awaited: await the procedure")
