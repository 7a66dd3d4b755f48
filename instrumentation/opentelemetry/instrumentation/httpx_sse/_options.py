"""The options of design section 5: keyword, then environment variable, then default.

An unusable value is one warning and the default, never a crash.
"""

import logging
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider
from opentelemetry.util.http import parse_excluded_urls

from ._names import SERVER_LIMIT_MAX, GuardAction
from ._spans import CaptureIds, VerdictHook

PREFIX: Final = "OTEL_PYTHON_HTTPX_SSE_"

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `HTTPXSSEInstrumentor().instrument()` takes. Times are in seconds."""

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
    excluded_urls: str | None = None
    """Regular expressions, separated by commas, of URLs that are left alone."""
    idle_threshold: float = 25.0
    """A stream that ended after so long without a byte was cut by an idle limit."""
    quiet_threshold: float = 1.0
    """A resume that was held so long without an event had nothing to say, and is not empty."""
    give_up_after: float = 30.0
    """A request is lost when nobody has come back for its stream for so long."""
    submission_deadline: float | None = None
    """The client's own time limit for an answer; without it no prompt is stale."""
    liveness_key: str | None = None
    """The key of `params._meta` by which a server asserts that a replayed request still lives."""
    server_limit: int = 16
    """Servers that are named in metrics; the rest share `_OTHER`."""
    capture_ids: CaptureIds = "hash"
    """How identifiers are shown on spans."""
    hash_key: str | None = None
    """The key of their hash; without it a random one, so that hashes of two processes never match."""
    semconv_metrics: Literal["on", "off", "tools"] = "on"
    """The two metrics of the GenAI conventions; `tools` adds the tool's name."""
    verdict_hook: VerdictHook | None = None
    """Called with the span and each verdict."""
    guard: bool = False
    """Not only watch, but stop what cannot succeed."""
    guard_max_stalled: int = 3
    """After so many reconnects without progress the breaker of a logical stream opens."""
    guard_probe: bool = True
    """Confirm a resumed session by a `ping` of our own before the replay is given to the client."""
    guard_inconclusive: Literal["fail", "release"] = "fail"
    """What becomes of a replay when three pings could not show whether the session lives."""
    guard_disabled: frozenset[GuardAction] = frozenset()
    """Actions that are switched off, by name, separated by commas."""
    guard_dry_run: bool = False
    """Count what the guard would do, and do nothing."""


def _seconds(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number) or number < 0:
        raise ValueError("seconds, 0 or more")
    return number


def _optional_seconds(value: Any) -> float | None:
    return None if value in (None, "", "none") else _seconds(value)


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("a text")
    return value or None


def _patterns(value: Any) -> str | None:
    # An empty pattern, as after a trailing comma, would match every URL.
    text = ",".join(filter(None, (pattern.strip() for pattern in (_text(value) or "").split(","))))
    try:
        parse_excluded_urls(text)
    except re.error as error:
        raise ValueError(f"regular expressions, separated by commas ({error})") from None
    return text or None


def _provider(method: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value is not None and not callable(getattr(value, method, None)):
            raise ValueError(f"a provider with {method}()")
        return value

    return parse


def _limit(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or not 1 <= number <= SERVER_LIMIT_MAX or number != float(value):
        raise ValueError(f"a whole number from 1 to {SERVER_LIMIT_MAX}, so that no instrument overflows")
    return number


def _count(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or number < 1 or number != float(value):
        raise ValueError("a whole number from 1")
    return number


def _actions(value: Any) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value or ()
    found = frozenset(str(name).strip() for name in names) - {""}
    if not found <= _ACTIONS:
        raise ValueError(f"some of {', '.join(sorted(_ACTIONS))}")
    return found


def _switch(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _SWITCH:
        raise ValueError("on or off")
    return _SWITCH[word]


def _one_of(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise ValueError(" or ".join(words))
        return word

    return parse


def _semconv(value: Any) -> str:
    return "tools" if value == "tools" else ("on" if _switch(value) else "off")


def _hook(value: Any) -> Any:
    if value is not None and not callable(value):
        raise ValueError("a callable of (span, verdict)")
    return value


_ACTIONS: Final[frozenset[str]] = frozenset(get_args(GuardAction))
_SWITCH: Final = {
    "on": True, "true": True, "1": True, "yes": True,
    "off": False, "false": False, "0": False, "no": False, "": False,
}  # fmt: skip

_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "tracer_provider": _provider("get_tracer"),
    "meter_provider": _provider("get_meter"),
    "excluded_urls": _patterns,
    "idle_threshold": _seconds,
    "quiet_threshold": _seconds,
    "give_up_after": _seconds,
    "submission_deadline": _optional_seconds,
    "liveness_key": _text,
    "server_limit": _limit,
    "capture_ids": _one_of("hash", "raw", "off"),
    "hash_key": _text,
    "semconv_metrics": _semconv,
    "verdict_hook": _hook,
    "guard": _switch,
    "guard_max_stalled": _count,
    "guard_probe": _switch,
    "guard_inconclusive": _one_of("fail", "release"),
    "guard_disabled": _actions,
    "guard_dry_run": _switch,
}
_NOT_USED: Final = ("logger_provider",)
"""What whoever switches on many instrumentations may hand to each of them."""
_NO_VARIABLE: Final = ("tracer_provider", "meter_provider", "verdict_hook")


def read_options(keywords: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Options:
    """Options from keywords and environment.

    Raises:
        TypeError: a keyword that is none of the options.
    """
    environ = os.environ if environ is None else environ
    known = {field.name: field.default for field in fields(Options)}
    unknown = [name for name in keywords if name not in known and name not in _NOT_USED]
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; known: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, default in known.items():
        variable = PREFIX + name.upper()
        if name in keywords and (keywords[name] is not None or default is None):
            values[name] = _parsed(name, keywords[name], name, default)
        elif name not in _NO_VARIABLE and environ.get(variable):
            values[name] = _parsed(name, environ[variable], variable, default)
    if "excluded_urls" not in values:
        shared = "OTEL_PYTHON_EXCLUDED_URLS"
        values["excluded_urls"] = _parsed("excluded_urls", environ.get(shared), shared, None)
    return Options(**values)


def _parsed(name: str, value: Any, where: str, default: Any) -> Any:
    parse = _PARSERS.get(name)
    if parse is None:
        return value
    try:
        return parse(value)
    except Exception as error:  # noqa: BLE001 - a value may be of any class of the host's
        reason = str(error) if isinstance(error, ValueError) else "another type"
        _LOG.warning("%s cannot be used and is left at its default, %r: wanted %s", where, default, reason)
        return default
