"""Sphinx configuration. `make docs` builds strictly: every warning is an error, every reference must resolve."""

import importlib
import os
import pydoc
import tomllib
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

_root = Path(__file__).parent.parent
_metadata = tomllib.loads((_root / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

project = _metadata["name"]
author = _metadata["authors"][0]["name"]
project_copyright = f"{author}. BSD 3-clause license"
release = version = _metadata["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
# Tables in results/ are written by benchmarks and included by pages; they are no pages themselves. Scripts in
# tutorials/ and gallery/ are run, and become pages in auto_tutorials/ and auto_examples/.
exclude_patterns = ["_build", "results", "tutorials", "gallery"]
nitpicky = True

# The build needs no network: names of other packages are left as text. With a network, GRBB_INTERSPHINX=1 links them.
if os.environ.get("GRBB_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
        "xgboost": ("https://xgboost.readthedocs.io/en/stable", None),
        "lightgbm": ("https://lightgbm.readthedocs.io/en/stable", None),
    }
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(numpy|scipy|sklearn|pandas|xgboost|lightgbm|dask|distributed|pyspark)\..*",
    )
]

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

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["auto_tutorials", "auto_examples"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "show_memory": False,
    "matplotlib_animations": False,
}

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_title = f"{project} {release}"
html_copy_source = False


#: What packages export for other packages only: it has no entry.
_INTERNAL = {
    "table": "Matrix Scale Unseen check_magnitude column_names is_frame join_schemas listed_categories read_column "
    "row_keys stack_tables",
    "graph": "GRAPHS NeighborLists choose_method NodeIndex PreparedGraph prepare_graph",
    "propagation": "PROPAGATIONS ConjugateGradientSolver DirectSolver among_all node_matrix reachable_shares "
    "without_cached",
    "teacher": "TEACHERS Lesson Spread centered_labels finish_targets sharpened shifted simplex spread teach",
    "objective": "Recipe check_raw_scores",
    "model_selection": "folds_of_model",
    "costs": "Groups Mask check_budget check_price shorten unknown_name",
    "forest": "filled",
    "estimators": "BoosterAdapter Job Task Trained",
    "adapters.xgboost": "ADAPTER",
    "adapters.lightgbm": "ADAPTER",
}


def _check_complete(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn about public names without an entry: the pages in api/ list them by hand, in an order made for reading."""
    objects = env.domains.python_domain.objects
    entries = {name.rpartition(".")[2] for name in objects}
    for module in [
        name for name, entry in objects.items() if entry.objtype == "module"
    ]:
        internal = _INTERNAL.get(module.removeprefix("grbb_ext."), "").split()
        for name in getattr(importlib.import_module(module), "__all__", []):
            if name not in entries and name not in internal:
                logging.getLogger(__name__).warning(
                    "%s.%s is public but has no entry in docs/api/", module, name
                )


def _resolve_alias(app: Sphinx, env: BuildEnvironment, node: Any, contnode: Any) -> Any:
    """Link a name to its one entry, wherever it is imported from: grbb_ext.KNNGraph is grbb_ext.graph.KNNGraph."""
    if node.get("refdomain") != "py":
        return None
    target, domain = node["reftarget"], env.domains.python_domain
    last = target.rpartition(".")[2]
    same = [
        name
        for name, entry in domain.objects.items()
        if name.rpartition(".")[2] == last and not entry.aliased
    ]
    meant = pydoc.locate(
        target if target.startswith("grbb_ext.") else f"grbb_ext.{target}"
    )
    found = [name for name in same if meant is not None and pydoc.locate(name) is meant]
    if not found and "." not in target:
        found = same  # a bare name needs no more than a single entry
    if len(found) != 1:
        return None
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], found[0], node, contnode
    )


def _visit_math(translator: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers draw without a script or a network."""
    block = isinstance(node, nodes.math_block)
    formula = latex2mathml.converter.convert(
        node.astext(), display="block" if block else "inline"
    )
    translator.body.append(f'<div class="math">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
    app.connect("env-check-consistency", _check_complete)
    app.connect("missing-reference", _resolve_alias)
