"""The shape of the code: who knows what, and how large a module may grow."""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import opentelemetry.instrumentation.httpx_sse as package

ROOT = Path(inspect.getfile(package)).parent
NAME = package.__name__
LIBRARIES = frozenset({"httpx", "httpx2"})
KNOW_LIBRARIES = frozenset({"_patching.py", "_instrumentor.py"})
CORE = tuple(
    str(path.relative_to(ROOT))
    for layer in (
        "_names",
        "_events",
        "_verdicts",
        "_scanner",
        "_envelope",
        "_dialect",
        "_failure",
        "_ledger",
    )
    for path in sorted((*ROOT.glob(f"{layer}.py"), *ROOT.glob(f"{layer}/*.py")))
)
CLOCKS = frozenset({"time", "datetime", "sched", "asyncio", "threading", "anyio"})
MOST_LINES = 500


def modules() -> list[str]:
    """All modules of the package, but not the generated material beside them."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return sorted(str(path) for path in paths if path.parts[0] != "dashboards")


def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


def imported(module: str) -> Iterator[str]:
    """The full names of everything that a module imports; what is our own begins with our name."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield NAME if node.level else node.module or ""


@pytest.mark.parametrize("module", modules())
def test_async(module: str) -> None:
    """Only `_transport`, and the driver of scripts, know synchronous from asynchronous."""
    colours = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [node for node in ast.walk(tree(module)) if isinstance(node, colours)]
    assert not found or module in {"_transport.py", "_guided.py"}


@pytest.mark.parametrize("module", modules())
def test_libraries(module: str) -> None:
    """Only `_patching` and `_instrumentor` import, or name in code, one of the two libraries."""
    strings = {
        node.value
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name)}
    roots = {name.partition(".")[0] for name in imported(module)}
    if module not in {*KNOW_LIBRARIES, "package.py"}:
        assert frozenset() == LIBRARIES & (strings | names | roots)


@pytest.mark.parametrize("module", CORE)
def test_core(module: str) -> None:
    """The core imports no OpenTelemetry but ourselves, neither library, and no clock."""
    names = set(imported(module))
    roots = {name.partition(".")[0] for name in names}
    assert set() == {name for name in names if name.startswith("opentelemetry") and name != NAME}
    assert frozenset() == roots & (CLOCKS | LIBRARIES)


@pytest.mark.parametrize("module", CORE)
def test_core_stands_on_the_standard_library(module: str) -> None:
    """Nothing but `msgspec`, and that in one module, is needed to decide."""
    roots = {name.partition(".")[0] for name in imported(module)} - {"opentelemetry"}
    allowed = {"msgspec"} if module == "_envelope.py" else set()
    assert set() == roots - sys.stdlib_module_names - allowed


@pytest.mark.parametrize("module", modules())
def test_size(module: str) -> None:
    """No module is longer than one can read in one sitting."""
    assert len((ROOT / module).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_public_names() -> None:
    """The package offers an instrumentor and its version, and both are there."""
    assert package.__all__ == ["HTTPXSSEInstrumentor", "__version__"]
    assert all(hasattr(package, name) for name in package.__all__)
