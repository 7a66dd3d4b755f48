"""What stands in for an object of the host: of its class, and like it in every respect but what it is there for."""

from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import wrapt

if TYPE_CHECKING:
    Proxy = wrapt.ObjectProxy[Any]
else:
    Proxy = wrapt.ObjectProxy


class StandIn(Proxy):
    """Shows itself as what it stands in for, and a copy of it is a copy of that."""

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __copy__(self) -> Any:
        return copy(self.__wrapped__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return deepcopy(self.__wrapped__, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)
