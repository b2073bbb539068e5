"""The wheel that users get: what is in it, and what importing it does in an environment of its own."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import grbb_ext

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# The wheel is built once: `pytest --dist loadgroup` keeps these tests in one process.
pytestmark = pytest.mark.xdist_group("packaging")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without the settings of this process that could lend it the checkout; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def new_environment(folder: Path) -> Path:
    """Make an environment that has the dependencies of the package but not the package; return its Python.

    The dependencies are those of this environment, lent through a .pth file. Its own .pth files, such as that of an
    editable installation of grbb_ext, are not read from there.
    """
    # Python is linked, not copied: a copy does not find its shared library.
    venv.create(folder, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder))
    specs = [importlib.util.find_spec(name) for name in ("numpy", "scipy", "sklearn", "joblib", "xgboost", "lightgbm")]
    lent = {str(Path(spec.origin).parents[1]) for spec in specs}
    (own / "lent.pth").write_text("\n".join(sorted(lent)), encoding="utf-8")
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from the files under version control, so that nothing left over from earlier builds gets in."""
    source = tmp_path_factory.mktemp("source")
    # A checkout that belongs to another user, as in a container, is fine here.
    for name in run("git", "-c", "safe.directory=*", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    # An installed setuptools saves the download of another one.
    try:
        isolation = ["--no-isolation"] if int(importlib.metadata.version("setuptools").split(".")[0]) >= 77 else []
    except importlib.metadata.PackageNotFoundError:
        isolation = []
    run(sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", source / "dist", source, cwd=source)
    [built] = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Install the wheel into a new environment; return its Python."""
    python = new_environment(tmp_path_factory.mktemp("installed"))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=wheel.parent)
    return python


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    source = wheel.parents[1]
    package = {path.relative_to(source).as_posix() for path in source.glob("grbb_ext/**/*.py")}
    adapters = {f"grbb_ext/{path.relative_to(source).as_posix()}" for path in source.glob("adapters/**/*.py")}
    metadata = {name for name in names if name.startswith(f"grbb_ext-{PROJECT['version']}.dist-info/")}
    assert set(names) - metadata == package | adapters | {"grbb_ext/py.typed"}
    assert any(name.endswith("/licenses/LICENSE") for name in metadata)


def test_imports_from_the_wheel(installed, tmp_path):
    code = (
        "import grbb_ext, grbb_ext.adapters.xgboost as x, grbb_ext.adapters.lightgbm as l\n"
        "for module in (grbb_ext, x, l): print(module.__file__)\n"
        "print(grbb_ext.__version__)"
    )
    *files, version = run(installed, "-I", "-c", code, cwd=tmp_path).splitlines()
    for file in files:
        assert Path(file).is_relative_to(installed.parents[1])
    assert version == PROJECT["version"]


def test_the_smoke_test_of_a_release_passes(installed, tmp_path):
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    _, found, script = workflow.partition("shell: python\n        run: |\n")
    assert found
    run(installed, "-I", "-c", textwrap.dedent(script), cwd=tmp_path)


def test_importing_the_package_imports_no_extra(installed, tmp_path):
    code = "import sys, grbb_ext, grbb_ext.evaluation; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(run(installed, "-I", "-c", code, cwd=tmp_path).split())
    assert "grbb_ext" in loaded
    assert loaded & {"xgboost", "lightgbm", "dask", "distributed", "pyspark", "faiss", "matplotlib"} == set()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_missing_booster_names_the_extra(installed, tmp_path, library):
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"try: import grbb_ext.adapters.{library}\n"
        "except ImportError as error: print(error)"
    )
    message = run(installed, "-I", "-c", code, cwd=tmp_path)
    assert f"pip install 'grbb_ext[{library}]'" in message
    assert library in PROJECT["optional-dependencies"]


def test_imports_in_the_root_of_a_checkout(tmp_path):
    python = new_environment(tmp_path)
    code = (
        "import grbb_ext.adapters.xgboost as x, grbb_ext.adapters.lightgbm as l; print(x.__file__); print(l.__file__)"
    )
    files = run(python, "-c", code, cwd=ROOT).splitlines()
    assert [Path(file) for file in files] == [
        ROOT / "adapters/xgboost/__init__.py",
        ROOT / "adapters/lightgbm/__init__.py",
    ]


def test_a_checkout_lends_adapters_alone(tmp_path):
    python = new_environment(tmp_path)
    code = (
        "from importlib.util import find_spec; import grbb_ext\n"
        "print(*[find_spec(f'grbb_ext.{name}') for name in ('tests', 'benchmarks')])"
    )
    assert run(python, "-c", code, cwd=ROOT) == "None None"


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert grbb_ext.__version__ == PROJECT["version"]
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == PROJECT["version"]


def test_lower_bounds_are_the_tested_ones():
    extras = PROJECT["optional-dependencies"]
    users = [name for name in extras if name not in ("all", "docs", "dev")]
    bounds = dict(
        re.sub(r"\[.*\]", "", line).split(">=")  # a constraint has no extras
        for line in [*PROJECT["dependencies"], *(line for name in users for line in extras[name])]
    )
    constraints = (ROOT / ".github/oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in constraints if line and not line.startswith("#"))
    assert tested.keys() - bounds.keys() <= {"polars"}  # a tool of the tests
    assert bounds.keys() <= tested.keys()
    for name, bound in bounds.items():
        # The first release of a series need not be x.y.0 (xgboost-cpu starts with 2.1.1).
        assert f"{tested[name]}.".startswith(f"{bound}."), (
            f"{name}: pyproject.toml has {bound}, oldest.txt {tested[name]}"
        )
