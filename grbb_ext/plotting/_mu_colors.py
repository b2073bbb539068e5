"""Colours of the values of mu, and the bar that explains them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mu_colors(mu: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return a colour for each value and the mappable for :func:`mu_bar`: dark is small.

    The yellow end of viridis is left out, for it is hard to see on white.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colors = colormaps["viridis"](np.linspace(0.0, 0.9, mu.size))
    norm = BoundaryNorm(np.arange(mu.size + 1) - 0.5, mu.size)
    return colors, ScalarMappable(norm, ListedColormap(colors))


def mu_bar(ax: Any, mu: NDArray[np.float64], mappable: Any) -> Any:
    """Draw a bar with one field for each value."""
    bar = ax.figure.colorbar(mappable, ax=ax, ticks=np.arange(mu.size), label="mu")
    bar.ax.set_yticklabels([f"{value:.3g}" for value in mu])
    bar.minorticks_off()
    bar.ax.tick_params(length=0)
    return bar
