"""Imports point downward and to public names only, and adapters/ alone imports a booster."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BOOSTERS = {"xgboost", "lightgbm", "dask", "distributed"}
#: From the lowest layer to the highest; docs/organisation.md has the same table.
LAYERS = (
    *("_checks", "_reporting", "_threads", "_spec", "table", "losses", "labels", "graph", "propagation", "teacher"),
    *("rules", "objective", "evaluation", "costs", "forest", "ondemand", "variance", "persistence", "estimators"),
    *("model_selection", "plotting"),
)
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


def imported_modules(source: str) -> Iterator[str]:
    """Yield the modules that a file imports, at any depth: by statement, or by name through importlib."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__"):
                yield str(node.args[0].value)


def booster_imports(source: str) -> set[str]:
    """Return the imports that only adapters/ may have: boosters, and the adapters themselves."""
    return {
        module
        for module in imported_modules(source)
        if module.split(".")[0] in {*BOOSTERS, "adapters"} or f"{module}.".startswith("grbb_ext.adapters.")
    }


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", python_files("grbb_ext"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_package_imports_no_booster(path):
    assert booster_imports(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_adapters_import_their_booster(library):
    assert library in booster_imports((ROOT / "adapters" / library / "__init__.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "import xgboost as xgb",
        "import numpy, lightgbm.basic",
        "from dask.array import Array",
        "def lazily():\n    from distributed import Client",
        "import importlib\nimportlib.import_module('xgboost')",
        "__import__('lightgbm')",
        "from grbb_ext.adapters.xgboost import metric",
        "from grbb_ext import adapters",
    ],
)
def test_the_check_finds_every_kind_of_import(source):
    assert booster_imports(source)


def test_the_check_reads_only_imports():
    source = '"""import xgboost"""\nfrom grbb_ext.graph import knn_graph\nxgboost = "lightgbm"  # import dask'
    assert booster_imports(source) == set()


def misplaced_imports(package: str, source: str) -> set[str]:
    """Return the imports from a higher layer, and those of a private module or name of another package."""
    own = LAYERS.index(package) if package in LAYERS else len(LAYERS)
    misplaced = set()
    for module in imported_modules(source):
        root, *path = module.split(".")
        if root != "grbb_ext" or not path or path[0] == package:
            continue
        upward = path[0] in LAYERS and LAYERS.index(path[0]) > own
        if upward or any(part.startswith("_") and not part.startswith("__") for part in path[1:]):
            misplaced.add(module)
    return misplaced


@pytest.mark.parametrize("path", python_files("grbb_ext", "adapters"), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward_and_to_public_names(path):
    root, *parts = path.relative_to(ROOT).with_suffix("").parts
    package = "adapters" if root == "adapters" else parts[0]
    assert misplaced_imports(package, path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    ("package", "source", "misplaced"),
    [
        ("graph", "from grbb_ext.teacher import Teacher", True),
        ("graph", "def lazily():\n    import grbb_ext.teacher", True),
        ("teacher", "from grbb_ext.graph._knn import NeighborLists", True),
        ("teacher", "from grbb_ext.graph import _knn", True),
        ("adapters", "from grbb_ext.estimators._job import Job", True),
        ("teacher", "from grbb_ext.graph import KNNGraph\nfrom grbb_ext._threads import in_threads", False),
        ("graph", "from grbb_ext.graph._affinity import laplacian", False),
    ],
)
def test_the_check_finds_misplaced_imports(package, source, misplaced):
    assert bool(misplaced_imports(package, source)) == misplaced


def test_every_package_has_a_layer():
    packages = {path.stem for path in (ROOT / "grbb_ext").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert packages - {"__init__", "__pycache__", "adapters", "py"} == set(LAYERS)


def test_no_module_has_a_vague_name():
    files = python_files("grbb_ext", "adapters", "benchmarks", "tests")
    words = {path: set(path.stem.split("_")) | set(path.parent.name.split("_")) for path in files}
    assert len(files) > 30
    assert [str(path.relative_to(ROOT)) for path in files if words[path] & VAGUE] == []
