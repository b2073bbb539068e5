"""Legends beside the axes, where they hide nothing."""

from __future__ import annotations

from typing import Any


def legend_above(ax: Any, n_columns: int = 2) -> Any:
    """Draw the legend above the axes, its keys in rows of `n_columns`."""
    return ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns, frameon=False, borderaxespad=0.2)


def legend_right(ax: Any) -> Any:
    """Draw the legend to the right of the axes, one key below the other."""
    return ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
