"""Run what is missing, in this process or in several, with a progress bar; only this process writes."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tqdm import tqdm

from benchmarks.results import ResultTable

Row = Mapping[str, Any]
Task = TypeVar("Task")


def run_tasks(
    table: ResultTable, tasks: Sequence[Task], work: Callable[[Task], list[Row]], description: str, jobs: int = 1
) -> int:
    """Append the rows of every task to the table, in the order in which they are done.

    A task that fails is reported and left out, so that one bad trial does not end a long run; it is tried again the
    next time.

    Parameters
    ----------
    table : ResultTable
        Where the rows go.
    tasks : sequence
        What is missing, most important first. With more than one job they have to pickle.
    work : callable
        Returns the rows of a task; with more than one job a function of a module.
    description : str
        Stands before the progress bar.
    jobs : int, default=1
        Processes.

    Returns
    -------
    int
        How many tasks failed.
    """
    failures = 0
    attempt = partial(_attempt, work)
    with tqdm(total=len(tasks), desc=description, mininterval=1.0) as bar:
        for rows, failure in _results(attempt, tasks, jobs):
            if failure:
                failures += 1
                bar.write(failure, file=sys.stderr)
            else:
                table.append(rows)
            bar.update()
    return failures


def _results(attempt: Callable[[Task], Any], tasks: Sequence[Task], jobs: int) -> Iterator[tuple[list[Row], str]]:
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(attempt, tasks)
        return
    # Spawned, because OpenMP does not survive a fork.
    with multiprocessing.get_context("spawn").Pool(min(jobs, len(tasks))) as pool:
        yield from pool.imap_unordered(attempt, tasks)


def _attempt(work: Callable[[Task], list[Row]], task: Task) -> tuple[list[Row], str]:
    try:
        with warnings.catch_warnings():
            # Warnings about missing values and components without labels are part of what is measured.
            warnings.simplefilter("ignore")
            return work(task), ""
    except Exception:
        return [], f"{task} failed:\n{traceback.format_exc()}"
