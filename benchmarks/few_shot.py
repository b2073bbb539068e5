"""The question `few_shot`: see :mod:`benchmarks.tables`."""

from __future__ import annotations

from benchmarks import tables
from benchmarks.options import Options


def run(options: Options) -> int:
    """Run what is missing of the few-shot question and write its report."""
    return tables.run(options, "few_shot")
