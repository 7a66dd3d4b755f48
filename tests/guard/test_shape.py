"""The guard's library and its script stand on the core alone, and every rule has one home."""

import ast
import inspect
from pathlib import Path
from typing import get_args

import pytest

import opentelemetry.instrumentation.httpx_sse.guard as package
from opentelemetry.instrumentation.httpx_sse._failure import Ruling
from opentelemetry.instrumentation.httpx_sse._names import FailureReason, GuardAction, PromptLiveness
from opentelemetry.instrumentation.httpx_sse.guard import NEXT, Advice
from opentelemetry.instrumentation.httpx_sse.guard._decisions import HOPELESS
from opentelemetry.instrumentation.httpx_sse.guard._errors import advice_of
from opentelemetry.instrumentation.httpx_sse.guard._replay import RULES

ROOT = Path(inspect.getfile(package)).parent
PURE = sorted(path.name for path in ROOT.glob("_[a-z]*.py") if path.name != "_transports.py")
ALLOWED = {"abc", "collections", "dataclasses", "inspect", "json", "re", "secrets", "typing"}


@pytest.mark.parametrize("module", PURE)
def test_nothing_but_the_core_is_needed(module: str) -> None:
    """No OpenTelemetry, no HTTP library, no clock, no framework."""
    found = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }

    assert found <= ALLOWED


def test_every_liveness_has_a_rule_and_every_advice_a_sentence() -> None:
    """The tables are complete."""
    assert set(RULES) == set(get_args(PromptLiveness))
    assert set(NEXT) == set(get_args(Advice))
    assert all(rule.presents or not rule.fails or rule.what for rule in RULES.values())


def test_every_reason_leads_to_an_advice() -> None:
    """Whatever the failure table says."""
    for reason in get_args(FailureReason):
        assert advice_of(Ruling("terminal", reason)) in NEXT
        assert advice_of(Ruling("ambiguous", reason)) == "retry_from_scratch"


def test_every_action_is_taken_somewhere() -> None:
    """None is only a name."""
    code = "".join((ROOT / module).read_text(encoding="utf-8") for module in PURE)

    assert [action for action in get_args(GuardAction) if f'"{action}"' not in code] == []
    assert {row.action for row in HOPELESS} <= set(get_args(GuardAction))


def test_public_names() -> None:
    """What is offered is there."""
    assert all(hasattr(package, name) for name in package.__all__)
