"""What gets through: mutated files, forged folders and random models, against the readers and ``load``.

``python -m benchmarks.attack --full`` runs what is missing of the batches in ``docs/results/attack.csv`` and writes the
table ``attack.md`` beside it. ``make fuzz`` runs new cases for a minute (``--seconds 60``), elsewhere, and fails if one
comes through. Batches run in processes of their own with a limit of memory, so that an abort or a hang of a library is
counted and the next case goes on. A case ends in one of these ways:

- *equal*: read, and the raw scores have the bits of the library's.
- *refused*: with the exception that the documentation promises (ValueError, ModelFileError).
- *refused by the library*: we read it and the library does not.
- *different*: both read it and the scores differ, or damage went unnoticed.
- *foreign*: another exception.
- *abort*, *hang*: the process ended, or did not go on for half a minute (two where a worker was killed).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

ENDS = ("equal", "refused", "refused by the library", "different", "foreign", "abort", "hang")
#: What must not happen.
BAD = ("different", "foreign", "abort", "hang")

#: One case: draws from the generator, and returns how it ended and a word about it.
Case = Callable[[np.random.Generator], tuple[str, str]]


class Attack(NamedTuple):
    """A kind of case: what prepares it (once in a process), how much of it a full run takes, seconds until it hangs."""

    prepare: Callable[[Path], Case]
    batches: int
    cases: int
    patience: float = 30.0
