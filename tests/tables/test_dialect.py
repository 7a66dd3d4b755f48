"""The rows of the dialects: frozen, complete, quoted, and found by any version."""

import ast
import dataclasses
import inspect

import pytest

from opentelemetry.instrumentation.httpx_sse import _dialect
from opentelemetry.instrumentation.httpx_sse._dialect import DEFAULT, DIALECTS, NEWEST, Dialect, dialect_of

FIELDS = [field.name for field in dataclasses.fields(Dialect) if field.name != "version"]

ROWS = {
    "2024-11-05": {"has_server_requests", "has_batches", "has_ping"},
    "2025-03-26": {"has_sessions", "has_resumption", "has_server_requests", "has_batches", "has_ping"},
    "2025-06-18": {"has_sessions", "has_resumption", "has_server_requests", "has_ping"},
    "2025-11-25": {"has_sessions", "has_resumption", "has_server_requests", "has_polling", "has_ping"},
    "2026-07-28": {"close_cancels", "has_input_rounds", "has_listen"},
}
"""What each revision has."""


@pytest.mark.parametrize("version", ROWS)
def test_rows(version: str) -> None:
    """A revision has what its row says, and nothing can change that."""
    row = DIALECTS[version]
    assert {name for name in FIELDS if getattr(row, name)} == ROWS[version]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.has_ping = True  # type: ignore[misc]


def test_revisions() -> None:
    """There are five revisions."""
    assert set(ROWS) == set(DIALECTS)


@pytest.mark.parametrize("field", FIELDS)
def test_quotes(field: str) -> None:
    """Beside each field stands the revision that says so."""
    [cls] = [
        node
        for node in ast.parse(inspect.getsource(_dialect)).body
        if isinstance(node, ast.ClassDef) and node.name == "Dialect"
    ]
    texts = {}
    for node, after in zip(cls.body, cls.body[1:], strict=False):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            texts[node.target.id] = ast.unparse(after)
    assert any(version in texts[field] for version in DIALECTS)


@pytest.mark.parametrize(
    ("version", "row"),
    [
        (None, DEFAULT), ("", DEFAULT), ("2025-06-18", DIALECTS["2025-06-18"]), ("2031-01-01", NEWEST),
        ("2026-07-29", NEWEST), ("2025-07-01", DEFAULT), ("draft", DEFAULT), ("9999", DEFAULT), ("2031-1-1", DEFAULT),
        ("\u0662\u0660\u0663\u0661-01-01", DEFAULT), ("2031-01-01x", DEFAULT),
    ],
)  # fmt: skip
def test_any_version_has_a_row(version: str | None, row: Dialect) -> None:
    """A version that is not known is read as the newest if it is a newer date, else as the default."""
    assert row is dialect_of(version)
