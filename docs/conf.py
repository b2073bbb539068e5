"""Sphinx configuration. `make docs` builds strictly: every warning is an error, every reference must resolve."""

import importlib
import tomllib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

_root = Path(__file__).parent.parent
_metadata = tomllib.loads((_root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _metadata["name"]
author = _metadata["authors"][0]["name"]
project_copyright = f"{author}. BSD 3-clause license"
release = version = _metadata["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
]
# Tables in results/ are written by benchmarks and included by pages; they are no pages themselves.
exclude_patterns = ["_build", "results"]
nitpicky = True

# The build needs no network, so there is no intersphinx: names of other packages are left as text.
nitpick_ignore_regex = [(r"py:.*", r"(numpy|scipy|sklearn|pandas|xgboost|lightgbm|dask|distributed)\..*")]

# Docstrings give the types in words; a second time in the signature they would bury the defaults.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
add_module_names = False
autosummary_generate = False
numpydoc_show_class_members = False

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False


def _check_complete(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn about public names without an entry: the pages in api/ list them by hand, in an order made for reading."""
    objects = env.domains.python_domain.objects
    entries = {name.rpartition(".")[2] for name in objects}
    for module in [name for name, entry in objects.items() if entry.objtype == "module"]:
        for name in getattr(importlib.import_module(module), "__all__", []):
            if name not in entries:
                logging.getLogger(__name__).warning("%s.%s is public but has no entry in docs/api/", module, name)


def setup(app: Sphinx) -> None:
    app.connect("env-check-consistency", _check_complete)
