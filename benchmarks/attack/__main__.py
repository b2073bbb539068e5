"""``python -m benchmarks.attack``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import benchmarks.attack
from benchmarks.attack import BAD
from benchmarks.attack.batches import ATTACKS, COLUMNS, report, run_batch, work
from benchmarks.results import RESULTS, ResultTable


def main() -> int:
    parser = argparse.ArgumentParser(
        description=benchmarks.attack.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="all batches that are missing")
    parser.add_argument("--seconds", type=float, default=60, help="without --full: new cases for that long")
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--results", type=Path, help="folder of attack.csv and attack.md")
    parser.add_argument("--report", action="store_true", help="only make the table")
    parser.add_argument("--work", nargs=4, metavar=("ATTACK", "BATCH", "FIRST", "CASES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        name, *numbers = options.work
        work(name, *map(int, numbers))
        return 0
    results = options.results or (RESULTS if options.full or options.report else Path("docs/_build/fuzz"))
    table = ResultTable(results / "attack.csv", COLUMNS, COLUMNS[:2])
    bad = 0
    if not options.report:
        end = time.monotonic() + options.seconds
        # Cases that nobody has run: batches are numbered by the clock.
        batch = 0 if options.full else time.time_ns() // 10**6
        while options.full or time.monotonic() < end:
            left = [name for name in options.attacks if not options.full or batch < ATTACKS[name].batches]
            if not left:
                break
            for name in left:
                if table.has({"attack": name, "batch": batch}) or (not options.full and time.monotonic() > end):
                    continue
                row = run_batch(name, batch, ATTACKS[name].cases // (1 if options.full else 5))
                table.append([row])
                came_through = sum(row[how] for how in BAD)
                bad += came_through
                if came_through:
                    print(f"{name}, batch {batch}: {row['details']}", flush=True)
            batch += 1
    rows = table.read()
    (results / "attack.md").write_text(report(rows) + "\n", encoding="utf-8")
    print(report(rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
