"""Our wrapper on a method: installed innermost, removed by identity.

Innermost, so that whoever else wraps the method (an HTTP span, say) is outside and current when we begin. By
identity, so that others may come and go in any order: only our own function is taken out of the chain.
"""

import functools
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import wrapt

from ._transport import Watch, watched, watched_async

_LOG: Final = logging.getLogger(__name__)
_PROXY: Final[type] = getattr(wrapt, "BaseObjectProxy", wrapt.ObjectProxy)

LIBRARIES: Final = ("httpx", "httpx2")
METHODS: Final[dict[str, Callable[..., Callable[..., Any]]]] = {
    "handle_request": watched,
    "handle_async_request": watched_async,
}
"""The seam: what a client calls on its transport, and what we put around it."""

TRANSPORTS: Final = (
    ("HTTPTransport", "handle_request"),
    ("AsyncHTTPTransport", "handle_async_request"),
)


class Patch:
    """One wrapper of ours on one method.

    Args:
        owner: the class or object whose attribute is replaced.
        name: the attribute.
        watch: who watches; None from `remove` on.
    """

    def __init__(self, owner: Any, name: str, watch: Watch) -> None:
        self._owner = owner
        self._name = name
        self._watch: Watch | None = watch
        self._original = self._innermost()
        self._ours = METHODS[name](self._original, lambda: self._watch)
        self._ours.__wrapped__ = self._original  # type: ignore[attr-defined]
        holder, attribute = self._holder(self._original)
        setattr(holder, attribute, self._ours)

    def remove(self) -> None:
        """Take our wrapper out; where it cannot be reached any more, it lets everything pass."""
        self._watch = None
        holder, attribute = self._holder(self._ours)
        if holder is None:
            _LOG.debug(
                "%s.%s is wrapped by a function that hides ours: ours stays and does nothing",
                getattr(self._owner, "__name__", type(self._owner).__name__),
                self._name,
            )
            return
        setattr(holder, attribute, self._original)

    def _innermost(self) -> Any:
        *_, (_, _, innermost) = self._chain()
        return innermost

    def _holder(self, wanted: Any) -> tuple[Any, str]:
        """Where `wanted` hangs in the chain of wrappers."""
        for holder, attribute, value in self._chain():
            if value is wanted:
                return holder, attribute
        return None, ""

    def _chain(self) -> Iterator[tuple[Any, str, Any]]:
        """The attribute and what stands behind it, outermost first."""
        holder, attribute, value = self._owner, self._name, vars(self._owner)[self._name]
        yield holder, attribute, value
        while isinstance(value, _PROXY):
            holder, attribute = value, "__wrapped__"
            value = getattr(value, attribute)
            yield holder, attribute, value


class ObjectPatch:
    """Our wrapper on one transport object, such as an ASGI or a third-party transport.

    Args:
        transport: any object with `handle_request` or `handle_async_request`.
        watch: who watches.

    Raises:
        TypeError: the object takes no attributes, or has neither method.
    """

    def __init__(self, transport: Any, watch: Watch) -> None:
        self._transport = weakref.ref(transport)
        self._watch: Watch | None = watch
        self._before: dict[str, Any] = {}
        """What the object itself had under the names that we took, if it had anything."""
        self._put: dict[str, Any] = {
            name: self._bound(transport, name, wrap)
            for name, wrap in METHODS.items()
            if callable(getattr(transport, name, None))
        }
        if not self._put:
            raise TypeError(f"{type(transport).__name__} is no httpx transport")
        if not hasattr(transport, "__dict__"):
            raise TypeError(f"{type(transport).__name__} takes no attributes")
        self._before = {name: vars(transport)[name] for name in self._put if name in vars(transport)}
        for name, ours in self._put.items():
            setattr(transport, name, ours)

    def _bound(self, transport: Any, name: str, wrap: Callable[..., Callable[..., Any]]) -> Any:
        """Like a bound method, it keeps its object alive."""
        before = vars(transport).get(name) if hasattr(transport, "__dict__") else None

        def send(self: Any, request: Any) -> Any:
            return getattr(type(self), name)(self, request) if before is None else before(request)

        return functools.partial(wrap(send, lambda: self._watch), transport)

    def remove(self) -> None:
        """Take our wrapper off; where another lies over it, it lets everything pass."""
        self._watch = None
        transport = self._transport()
        for name, ours in self._put.items() if transport is not None else ():
            if vars(transport).get(name) is not ours:
                continue
            if name in self._before:
                setattr(transport, name, self._before[name])
            else:
                delattr(transport, name)


def patched(client: Any, watch: Watch) -> ExitStack:
    """Our wrapper on every transport of a client, to be closed to take them off.

    Raises:
        TypeError: a transport takes no attributes; what was put on the others is off again.
    """
    with ExitStack() as patches:
        for transport in _transports_of(client):
            patches.callback(ObjectPatch(transport, watch).remove)
        return patches.pop_all()


def _transports_of(client: Any) -> list[Any]:
    """The transport objects of a client of either library: the default one and those of its mounts."""
    mounts = getattr(client, "_mounts", {})
    found = [getattr(client, "_transport", None), *mounts.values()]
    return list({id(transport): transport for transport in found if transport is not None}.values())
