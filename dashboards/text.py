"""YAML as a person would write it: the few shapes that rule files need, without a dependency.

Strings are quoted unless they are plainly strings; strings of several lines become literal blocks.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Scalar = str | int | float | bool | None
Data = Mapping[str, "Data"] | Sequence["Data"] | Scalar

GENERATED: Final = "# Generated from Python in dashboards/: edit there, not here.\n"

_INDENT: Final = "  "
_PLAIN: Final = re.compile(
    r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*(?:[ ][A-Za-z0-9_./()-]+)*|[0-9]+(?:ms|[smhd])"
)
_RESERVED: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml(data: Data, *, head: str = GENERATED) -> str:
    """A whole file."""
    return head + "".join(f"{line}\n" for line in _lines(data, ""))


def _lines(data: Data, indent: str) -> Iterator[str]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _entry(f"{indent}{_scalar(key)}:", value, indent)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for item in data:
            inner = list(_lines(item, indent + _INDENT))
            yield f"{indent}- {inner[0].removeprefix(indent + _INDENT)}"
            yield from inner[1:]
    else:
        yield indent + _scalar(data)


def _entry(head: str, value: Data, indent: str) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value:
        yield f"{head} |-"
        yield from (f"{indent}{_INDENT}{line}".rstrip() for line in value.split("\n"))
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str) and value:
        yield head
        yield from _lines(value, indent + _INDENT)
    elif isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        yield f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: Scalar) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    if isinstance(value, str) and '"' in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)
