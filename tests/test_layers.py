"""The mathematics never imports a booster; adapters/ is the only place that does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BOOSTERS = {"xgboost", "lightgbm", "dask", "distributed", "pyspark"}
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


# From the bottom to the top: a module may import from its own line and from those above it here.
LAYERS = [
    {"_progress", "_options", "_show"},
    {"table"},
    {"losses"},
    {"labels"},
    {"graph"},
    {"propagation"},
    {"teacher"},
    {"rules"},
    {"objective"},
    {"evaluation"},
    {"costs"},
    {"forest", "persistence"},
    {"ondemand"},
    {"variance"},
    {"model_selection"},
    {"plotting"},
    {"report"},
    {"estimators"},
    {"adapters"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def module_name(path: Path) -> str:
    """Return the dotted name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = ("grbb_ext", *parts) if parts[0] == "adapters" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def own_imports(source: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of what a file imports from this package; the name is empty where a module is imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "grbb_ext")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "grbb_ext":
            yield from ((node.module, alias.name) for alias in node.names)


def _package(module: str) -> list[str]:
    """Return the parts of the folder of a module: a file that starts with _ belongs to the folder that it is in."""
    parts = module.split(".")
    while len(parts) > 1 and parts[-1].startswith("_"):
        parts.pop()
    return parts


def private_imports(importer: str, source: str) -> list[str]:
    """Return what is imported of another package's private modules, and private names of other modules."""
    home, found = _package(importer), []
    for module, name in own_imports(source):
        parts = module.split(".")
        # A private module may be imported by its own package and by what lies inside it.
        for depth, part in enumerate(parts):
            if part.startswith("_") and depth > 1 and home[:depth] != parts[:depth]:
                found.append(f"{module}.{name}".rstrip("."))
                break
        else:
            if name.startswith("_") and home[: len(parts)] != parts:
                found.append(f"{module}.{name}")
    return found


def upward_imports(importer: str, source: str) -> list[str]:
    """Return the modules that are imported from a higher layer."""
    if importer == "grbb_ext":  # the public names of all of them
        return []
    height = HEIGHT[importer.split(".")[1]]
    targets = [f"{module}.{name}" if module == "grbb_ext" else module for module, name in own_imports(source)]
    return [target for target in targets if HEIGHT.get(target.split(".")[1], -1) > height]


FILES = python_files("grbb_ext", "adapters")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_keep_their_private_parts(path):
    assert private_imports(module_name(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path):
    assert upward_imports(module_name(path), path.read_text(encoding="utf-8")) == []


def test_every_package_has_a_layer():
    inside = {module_name(path).split(".")[1] for path in FILES if module_name(path) != "grbb_ext"}
    assert inside - set(HEIGHT) == set()


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("grbb_ext.teacher._graph", "from grbb_ext.graph._knn import KNNGraph"),
        ("grbb_ext.teacher._graph", "import grbb_ext.graph._knn"),
        ("grbb_ext.teacher._graph", "from grbb_ext.graph import _knn"),
        ("grbb_ext.teacher._graph", "from grbb_ext.rules import _weighted"),
        ("grbb_ext.teacher._graph", "def lazily():\n    from grbb_ext.teacher._targets import _binary"),
        ("grbb_ext.adapters.dask._parts", "from grbb_ext.adapters.xgboost._mask import Mask"),
    ],
)
def test_the_check_finds_private_imports(importer, source):
    assert private_imports(importer, source)


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("grbb_ext.teacher._graph", "from grbb_ext.teacher._targets import soft_targets"),
        ("grbb_ext.teacher", "from grbb_ext.teacher._targets import soft_targets"),
        ("grbb_ext.teacher._graph", "from grbb_ext._options import Spec"),
        ("grbb_ext.teacher._graph", "from grbb_ext.graph import KNNGraph"),
        ("grbb_ext.adapters.lightgbm._estimator", "from grbb_ext.adapters.lightgbm import _params"),
        ("grbb_ext.adapters.lightgbm._estimator", "from grbb_ext.adapters._wrapped import Watch"),
    ],
)
def test_the_check_lets_a_package_use_its_own_parts(importer, source):
    assert private_imports(importer, source) == []


def test_the_check_finds_upward_imports():
    assert upward_imports("grbb_ext.graph._knn", "from grbb_ext.teacher import teach") == ["grbb_ext.teacher"]
    assert upward_imports("grbb_ext.graph._knn", "def f():\n    from grbb_ext import rules") == ["grbb_ext.rules"]
    assert upward_imports("grbb_ext.teacher", "from grbb_ext.graph import KNNGraph") == []


def test_no_module_has_a_vague_name():
    files = python_files("grbb_ext", "adapters", "benchmarks", "tests")
    words = {path: set(path.stem.split("_")) | set(path.parent.name.split("_")) for path in files}
    assert len(files) > 30
    assert [str(path.relative_to(ROOT)) for path in files if words[path] & VAGUE] == []
