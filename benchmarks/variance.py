"""The variance question: is the formula of section 5 a bound, and the paper's Figure 5."""

from __future__ import annotations

from benchmarks import variance_figure5, variance_simulation
from benchmarks.options import Options


def run(options: Options) -> int:
    """Run the simulation, and Figure 5 unless the run is quick; return how many trials failed."""
    failures = variance_simulation.run(options)
    return failures if options.quick else failures + variance_figure5.run(options)
