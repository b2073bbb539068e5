"""What the command line says to every question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import RESULTS

QUICK_RESULTS = Path("docs/_build/quick")


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Attributes
    ----------
    quick : bool
        Small, on data that every machine has, in minutes; the results go to a folder of their own.
    seeds : int or None
        Trials of each kind; None is the question's own number.
    jobs : int
        Processes.
    methods, data : tuple of str
        Only these; empty means all.
    without : tuple of str
        Methods to leave out.
    labels : tuple of int
        Only these numbers of labels; empty means all.
    noise : tuple of str
        Only these kinds of irrelevant columns; empty means all.
    rows : int or None
        The most training rows; None is the question's own number. Results go to files of their own.
    report : bool
        Only make tables and pictures from the CSV.
    forget : tuple of str
        Methods whose rows are removed first.
    check : bool
        Only compare with the committed numbers, where the question can (`speed`).
    output : Path or None
        Folder of the CSV, tables and pictures; None is ``docs/results``, or ``docs/_build/quick`` for a quick run.
    """

    quick: bool = False
    seeds: int | None = None
    jobs: int = 1
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    labels: tuple[int, ...] = ()
    noise: tuple[str, ...] = ()
    rows: int | None = None
    report: bool = False
    forget: tuple[str, ...] = ()
    check: bool = False
    output: Path | None = None

    def choose(self, known: Iterable[str]) -> list[str]:
        """Return the methods that are asked for out of all that the question knows."""
        known = list(known)
        if unknown := [name for name in (*self.methods, *self.without) if name not in known]:
            raise SystemExit(f"There is no method {unknown[0]!r}. Known are: {'; '.join(known)}.")
        return [name for name in self.methods or known if name not in self.without]

    @property
    def folder(self) -> Path:
        """Where results go."""
        return self.output or (QUICK_RESULTS if self.quick else RESULTS)
