"""Small tables for people: as text in a terminal, as HTML in a notebook or a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """Return a table as text, numbers to the right.

    Examples
    --------
    >>> print(text_table(["row", "gain"], [["a", "1.5"], ["bc", "12"]], "Two rows."))
    row  gain
    a     1.5
    bc     12
    Two rows.
    """
    cells = [[str(cell) for cell in row] for row in rows]
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
    cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    head = f"<thead><tr>{cells}</tr></thead>" if header else ""
    body = "".join(f"<tr>{''.join(_cell(str(cell)) for cell in row)}</tr>" for row in rows)
    caption = f'<caption style="caption-side: bottom; text-align: left">{escape(below)}</caption>' if below else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    style = ' style="text-align: right"' if _is_number(text) else ""
    return f"<td{style}>{escape(text)}</td>"


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix(" %"))
    except ValueError:
        return text in ("", "-")
    return True
