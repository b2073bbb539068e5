"""A CSV of trials that survives being killed: rows are appended, a torn last line is cut off, nothing runs twice."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path("docs/results")
PACKAGES = ("grbb_ext", "xgboost", "lightgbm", "numpy", "scikit-learn")

#: What identifies a trial, then what tells its rows apart, then what was measured and with which packages.
TRIAL = ("data", "method", "seed", "n_labels", "noise", "settings")
ROW = ("trees", "metric")
COLUMNS = (*TRIAL, *ROW, "cost", "value", "seconds", "details", *PACKAGES)


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that the results depend on, that of grbb_ext with its commit."""
    found = {name: _version(name) for name in PACKAGES}
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=7", "HEAD"]
        found["grbb_ext"] += "+g" + subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pass  # no checkout
    return found


def _version(name: str) -> str:
    # XGBoost is also published without GPU code, under another name.
    for published in (name, f"{name}-cpu"):
        try:
            return version(published)
        except PackageNotFoundError:
            continue
    return ""


class ResultTable:
    """Rows of trials in a CSV file.

    A trial gives one or several rows, which are written together. A trial counts as finished once all of its rows are
    there; where a row occurs twice, the later one holds. Several processes may append to the same file.

    Parameters
    ----------
    path : Path
        The file; its folder is made with the first row.
    columns : sequence of str
        The header.
    trial : sequence of str
        Columns that identify a trial.
    row : sequence of str, default=()
        Columns that tell the rows of a trial apart.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = ResultTable(Path(folder) / "a.csv", ["seed", "value"], ["seed"])
    ...     table.append([{"seed": 0, "value": 0.5}])
    ...     with table.path.open("a") as file:
    ...         _ = file.write("1,0.")  # killed while writing
    ...     table.append([{"seed": 2, "value": 0.75}])
    ...     [row["seed"] for row in table.read()], table.has({"seed": 0}), table.has({"seed": 1})
    (['0', '2'], True, False)
    """

    def __init__(
        self, path: Path, columns: Sequence[str] = COLUMNS, trial: Sequence[str] = TRIAL, row: Sequence[str] = ()
    ) -> None:
        self.path, self.columns = path, tuple(columns)
        self._trial, self._row = tuple(trial), tuple(row)
        self._counts: Counter[tuple[str, ...]] | None = None

    def read(self) -> list[dict[str, str]]:
        """Return the complete rows, without repetitions."""
        if not self.path.exists():
            return []
        text = self.path.read_bytes()
        lines = text[: text.rfind(b"\n") + 1].decode()
        reader = csv.DictReader(io.StringIO(lines, newline=""))
        if reader.fieldnames is not None and tuple(reader.fieldnames) != self.columns:
            raise ValueError(
                f"{self.path} has the columns {list(reader.fieldnames)}, expected {list(self.columns)}. "
                "It is from another version: move it away to start anew."
            )
        key = (*self._trial, *self._row)
        return list({tuple(row[name] for name in key): row for row in reader}.values())

    def has(self, trial: Mapping[str, Any], n_rows: int = 1) -> bool:
        """Return whether all `n_rows` rows of a trial were there when the file was first asked."""
        if self._counts is None:
            self._counts = Counter(tuple(row[name] for name in self._trial) for row in self.read())
        return self._counts[tuple(str(trial[name]) for name in self._trial)] >= n_rows

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the rows of a trial at the end of the file, after cutting off a line that was not finished."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(), self.path.open("ab") as file:
            if _cut_torn_line(file) == 0:
                writer.writeheader()
            writer.writerows(rows)
            file.write(text.getvalue().encode())

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put these rows in place of all that were there, whatever their columns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._write(rows)

    def forget(self, **values: str) -> int:
        """Remove the rows with these values, e.g. ``method="default"``, and return how many they were."""
        with self._locked():
            rows = self.read()
            kept = [row for row in rows if any(row[name] != value for name, value in values.items())]
            if len(kept) < len(rows):
                self._write(kept)
        return len(rows) - len(kept)

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        part = self.path.with_suffix(".part")
        with part.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        part.replace(self.path)
        self._counts = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # The folder is locked rather than the file, which `forget` replaces.
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _cut_torn_line(file: io.BufferedWriter) -> int:
    """Truncate a file to its last complete line and return the size."""
    size = file.seek(0, os.SEEK_END)
    if size:
        with open(file.name, "rb") as reader:
            reader.seek(size - 1)
            if reader.read(1) != b"\n":
                reader.seek(0)
                size = reader.read().rfind(b"\n") + 1
                file.truncate(size)
                file.seek(size)
    return size
