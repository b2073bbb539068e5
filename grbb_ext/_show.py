"""Small tables for people: as text in a terminal, as HTML in a notebook or a report; and axes for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """Return a table as text, numbers to the right; without rows only what is below.

    Examples
    --------
    >>> print(text_table(["row", "gain"], [["a", "1.5"], ["bc", "12"]], "Two rows."))
    row  gain
    a     1.5
    bc     12
    Two rows.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return below
    width = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [all(_is_number(row[j]) for row in cells) for j in range(len(header))]
    lines = [
        "  ".join(f"{cell:{'>' if right[j] else '<'}{width[j]}}" for j, cell in enumerate(row)).rstrip()
        for row in (header, *cells)
    ]
    return "\n".join([*lines, *([below] if below else [])])


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """Return a table as HTML, all text escaped.

    Examples
    --------
    >>> html_table(["name"], [["<b>"]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    cells = [[str(cell) for cell in row] for row in rows]
    right = [all(map(_is_number, column)) for column in zip(*cells, strict=True)] or [False] * len(header)
    align = [' style="text-align: right"' if side else "" for side in right]

    def line(tag: str, row: Sequence[object]) -> str:
        inner = "".join(f"<{tag}{align[j]}>{escape(str(cell))}</{tag}>" for j, cell in enumerate(row))
        return f"<tr>{inner}</tr>"

    head = f"<thead>{line('th', header)}</thead>" if header else ""
    body = "".join(line("td", row) for row in cells)
    caption = f'<caption style="caption-side: bottom; text-align: left">{escape(below)}</caption>' if below else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


class Shown:
    """What prints as a table, and is one in a notebook too."""

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        """Return header, rows, and the text below."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def small_number(value: float) -> str:
    """Return a number with two digits that count, never as a power of ten.

    Examples
    --------
    >>> small_number(0.123), small_number(4.71e-05), small_number(0.0)
    ('0.12', '0.000047', '0')
    """
    return np.format_float_positional(value, precision=2, fractional=False, trim="-")


def check_matplotlib() -> None:
    """Say how to install matplotlib where it is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'grbb_ext[plot]'.") from error


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure."""
    check_matplotlib()
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix(" %"))
    except ValueError:
        return text in ("", "-")
    return True
