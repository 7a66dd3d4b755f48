"""Options: keyword, then variable, then default; a bad value is one warning, an unknown keyword a TypeError."""

import dataclasses
import importlib
import math
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FAMILIES
from tests.lifecycle.world import seam

from opentelemetry.instrumentation.httpx_sse import HTTPXSSEInstrumentor
from opentelemetry.instrumentation.httpx_sse._options import Options


def hook(*_: Any) -> None:
    """A verdict hook."""


VARIABLES: dict[str, list[tuple[Any, Any]]] = {
    "excluded_urls": [("a,b", "a,b")],
    "idle_threshold": [("3.5", 3.5), ("0", 0.0), (" 7 ", 7.0)],
    "quiet_threshold": [("0.2", 0.2)],
    "give_up_after": [("1e2", 100.0)],
    "submission_deadline": [("60", 60.0), ("none", None)],
    "liveness_key": [("com.example/live", "com.example/live")],
    "server_limit": [("3", 3)],
    "capture_ids": [("raw", "raw"), ("OFF", "off"), ("hash", "hash")],
    "hash_key": [("secret", "secret")],
    "semconv_metrics": [("off", "off"), ("true", "on"), ("tools", "tools"), ("0", "off")],
    "guard": [("false", False), ("off", False)],
}
"""What may stand in the environment, and what it means."""

KEYWORDS: dict[str, list[tuple[Any, Any]]] = {
    **VARIABLES,
    "idle_threshold": [(3, 3.0), (0, 0.0)],
    "submission_deadline": [(60, 60.0), (None, None)],
    "server_limit": [(3, 3), (None, 16)],
    "semconv_metrics": [(False, "off"), (True, "on"), ("tools", "tools")],
    "verdict_hook": [(hook, hook), (None, None)],
    "guard": [(False, False), (None, False)],
}
"""The same for keywords."""

BAD: dict[str, list[Any]] = {
    "excluded_urls": [3, ["/private"]],
    "idle_threshold": ["soon", -1, "-1", math.nan, "inf", True, [], "1e999"],
    "quiet_threshold": ["1 s", object()],
    "give_up_after": [-0.1, "٣ s"],
    "submission_deadline": ["never", -5],
    "liveness_key": [7],
    "server_limit": [0, -1, "many", 10**9, 1.5, True, "1.0", math.inf],
    "capture_ids": ["plain", None.__class__, 1],
    "hash_key": [b"secret", 7],
    "semconv_metrics": ["perhaps", 2],
    "verdict_hook": ["print", 1],
    "guard": ["perhaps", 2],
}
"""What is no value, as a keyword; the texts among them as variables too."""

PROVIDERS = ("tracer_provider", "meter_provider")
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Options)}


def of(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(name, row) for name, rows in table.items() for row in rows]


def variable(name: str) -> str:
    return f"OTEL_PYTHON_HTTPX_SSE_{name.upper()}"


def options_of(**keywords: Any) -> Options:
    """What an installation works with."""
    HTTPXSSEInstrumentor().instrument(**keywords)
    installation = HTTPXSSEInstrumentor._installation
    assert installation is not None
    return installation.options


def test_the_tables_are_complete() -> None:
    """Every option stands in every table, apart from those that a variable cannot carry."""
    own = {name for name in DEFAULTS if not name.startswith("guard_")}  # those are the guard's
    assert set(KEYWORDS) == set(BAD) == own - set(PROVIDERS)
    assert set(VARIABLES) == set(KEYWORDS) - {"verdict_hook"}


@pytest.mark.parametrize(("name", "row"), of(VARIABLES))
def test_a_variable(name: str, row: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable sets its option, and no other."""
    monkeypatch.setenv(variable(name), row[0])
    assert dataclasses.asdict(options_of()) == {**DEFAULTS, name: row[1]}


@pytest.mark.parametrize(("name", "row"), of(KEYWORDS))
def test_a_keyword(name: str, row: tuple[Any, Any]) -> None:
    """A keyword sets its option, and no other."""
    assert dataclasses.asdict(options_of(**{name: row[0]})) == {**DEFAULTS, name: row[1]}


@pytest.mark.parametrize("name", VARIABLES)
def test_a_keyword_stands_before_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both are given, the keyword is taken."""
    monkeypatch.setenv(variable(name), "17")
    given, taken = KEYWORDS[name][0]
    assert getattr(options_of(**{name: given}), name) == taken


@pytest.mark.parametrize("name", ["tracer_provider", "meter_provider", "verdict_hook"])
def test_what_has_no_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers and the hook are objects: a variable of that name is not read."""
    monkeypatch.setenv(variable(name), "print")
    assert getattr(options_of(), name) is None


@pytest.mark.parametrize(("name", "value"), of(BAD))
def test_a_bad_keyword(name: str, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is one warning that names the option, and the default."""
    assert dataclasses.asdict(options_of(**{name: value})) == DEFAULTS
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert name in caplog.text


@pytest.mark.parametrize(
    ("name", "value"), [row for row in of(BAD) if isinstance(row[1], str) and row[0] in VARIABLES]
)
def test_a_bad_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is one warning that names the variable, and the default."""
    monkeypatch.setenv(variable(name), value)
    assert dataclasses.asdict(options_of()) == DEFAULTS
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert variable(name) in caplog.text


@pytest.mark.parametrize(
    "name",
    ["idle_threshold", "quiet_threshold", "give_up_after", "server_limit", "capture_ids", "semconv_metrics"],
)
def test_an_empty_variable(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OpenTelemetry: an empty value of an environment variable is the same as when it is unset."""
    monkeypatch.setenv(variable(name), "")
    assert dataclasses.asdict(options_of()) == DEFAULTS
    assert caplog.records == []


@pytest.mark.parametrize("name", ["OTEL_PYTHON_HTTPX_SSE_EXCLUDED_URLS", "OTEL_PYTHON_EXCLUDED_URLS"])
def test_urls_that_are_no_regular_expression(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are a warning and exclude nothing."""
    monkeypatch.setenv(name, "/private(")
    assert options_of().excluded_urls is None


@pytest.mark.parametrize("urls", ["/public,(?i)/private", "(?P<a>x),(?P<a>/private)", "/private,(?P<a>x"])
def test_urls_that_are_no_regular_expression_together(urls: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each may be one by itself: it is what is made of all of them that has to be one."""
    assert options_of(excluded_urls=urls).excluded_urls is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("urls", ["/private,", ",/private", " /private , ,", "/private"])
def test_nothing_between_commas_excludes_nothing(urls: str) -> None:
    """An empty pattern would match every URL."""
    assert options_of(excluded_urls=urls).excluded_urls == "/private"


@pytest.mark.parametrize("urls", ["", ",", " , "])
def test_nothing_but_commas_excludes_nothing(urls: str) -> None:
    """The same as when it is not given."""
    assert options_of(excluded_urls=urls).excluded_urls is None


class _Hostile:
    """An object of the host that cannot be looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __bool__(self) -> bool:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_value_that_raises(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a value is made of, it never stops the program: it is one warning and the default."""
    assert getattr(options_of(**{name: _Hostile()}), name) == DEFAULTS[name]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("actions", [[1], 7, ["breaker_opened", None]])
def test_actions_that_are_none(actions: Any, caplog: pytest.LogCaptureFixture) -> None:
    """They are a warning, and no action is switched off."""
    assert options_of(guard_disabled=actions).guard_disabled == frozenset()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_that_is_none(name: str) -> None:
    """An object without the provider's methods is a warning and the default."""
    assert getattr(options_of(**{name: "otlp"}), name) is None


def test_an_unknown_keyword() -> None:
    """A TypeError names it and what is known, and everything is as it was."""
    before = {name: seam(family) for name, family in FAMILIES.items()}
    with pytest.raises(TypeError, match=r"idle_treshold.*idle_threshold"):
        HTTPXSSEInstrumentor().instrument(idle_treshold=3)
    assert not HTTPXSSEInstrumentor().is_instrumented_by_opentelemetry
    assert {name: seam(family) for name, family in FAMILIES.items()} == before


def test_the_declarative_configuration() -> None:
    """`configuration` is the dataclass against which declarative configuration checks what it hands to us."""
    configured = HTTPXSSEInstrumentor.configuration(idle_threshold=3, capture_ids="raw")
    given = {field.name: getattr(configured, field.name) for field in dataclasses.fields(configured)}
    assert dataclasses.asdict(options_of(**given)) == {
        **DEFAULTS,
        "idle_threshold": 3.0,
        "capture_ids": "raw",
    }
    with pytest.raises(TypeError):
        HTTPXSSEInstrumentor.configuration(idle_treshold=3)  # type: ignore[call-arg]


# ------------------------------------------------------------------ the libraries that are there


def test_neither_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without both libraries it refuses with the error that the auto-instrumentation passes over."""
    for name in ("httpx", "httpx2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="neither httpx nor httpx2"):
        HTTPXSSEInstrumentor().instrument(skip_dep_check=True)


@pytest.mark.parametrize("absent", ["httpx", "httpx2"])
def test_one_library(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of them only, that one is watched."""
    before = {name: seam(family) for name, family in FAMILIES.items()}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, absent, None)
        HTTPXSSEInstrumentor().instrument()
    watched = {name for name, family in FAMILIES.items() if seam(family) is not before[name]}
    assert watched == {name for name, family in FAMILIES.items() if family.library != absent}


def test_another_module_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Something else called httpx2 is a warning for each method that it lacks, and the real library is watched."""
    (tmp_path / "httpx2.py").write_text("")
    before = seam(FAMILIES["httpx-sync"])
    monkeypatch.delitem(sys.modules, "httpx2")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    HTTPXSSEInstrumentor().instrument()
    assert seam(FAMILIES["httpx-sync"]) is not before
    HTTPXSSEInstrumentor().uninstrument()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError"])
def test_a_library_that_cannot_be_imported(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a warning, and the other library is watched all the same."""
    (tmp_path / "httpx2.py").write_text(f"raise {error}('broken')")
    family = FAMILIES["httpx-sync"]
    before, instrumentor = seam(family), HTTPXSSEInstrumentor()
    monkeypatch.delitem(sys.modules, "httpx2")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    try:
        instrumentor.instrument()
    finally:
        watched = seam(family) is not before
        instrumentor._uninstrument()
    assert watched
    assert instrumentor.is_instrumented_by_opentelemetry


def test_a_stand_in_for_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module object that a test suite put in a library's place, without a spec, stops nothing."""
    monkeypatch.setitem(sys.modules, "httpx2", types.ModuleType("httpx2"))
    HTTPXSSEInstrumentor().instrument()
