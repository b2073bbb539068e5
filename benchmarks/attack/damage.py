"""Random damage of files and documents."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

# What takes the place of a number in a file.
_WORDS = [
    b"0", b"-1", b"1", b"2", b"7", b"-2147483648", b"2147483647", b"99999999999", b"30000000", b"0.5", b"-0", b"1e308",
    b"1e999", b"nan", b"inf", b"1_0", b"0x1p3", b"1 2", b"", b"x", b"\xff", b"null", b"[]", b"{}", b"true", b'"a"',
]  # fmt: skip
# What takes the place of a value in a document.
_VALUES: list[Any] = [
    0, -1, 1, 2, 7, 2**31, 10**12, 0.5, 1e38, -1e-40, None, True, "", "0", "3", "x", "30000000", "[5E-1,1E0]", [],
    [0], {},
]  # fmt: skip


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few places of a file: bytes, digits, numbers, pieces, lines."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if not changed:
            break
        at = int(rng.integers(len(changed)))
        kind = int(rng.integers(8))
        length = int(rng.integers(1, 40))
        if kind == 0:
            changed[at] = int(rng.integers(256))
        elif kind == 1:
            digits = [i for i in range(at, min(at + 400, len(changed))) if 48 <= changed[i] < 58]
            if digits:
                changed[int(rng.choice(digits))] = int(rng.integers(48, 58))
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length]
        elif kind == 4:
            other = int(rng.integers(len(changed)))
            changed[at : at + length] = changed[other : other + length]
        elif kind == 5:
            end = at
            while end < len(changed) and chr(changed[end]) in "0123456789.eE+-":
                end += 1
            changed[at:end] = _WORDS[int(rng.integers(len(_WORDS)))]
        elif kind == 6:
            lines = bytes(changed).split(b"\n")
            i, j = (int(rng.integers(len(lines))) for _ in range(2))
            lines[i], lines[j] = lines[j], lines[i]
            changed = bytearray(b"\n".join(lines))
        elif rng.random() < 0.2:
            del changed[at:]
    return bytes(changed)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places in a document, a few of each long list."""
    below: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        below = [place for key in value for place in _paths(value[key], (*path, key))]
    elif isinstance(value, list):
        below = [place for i in range(len(value))[:12] for place in _paths(value[i], (*path, i))]
    return [path, *below] if path else below


def changed_document(document: Any, rng: np.random.Generator) -> Any:
    """Change, remove, repeat or exchange values of a JSON document."""
    document = json.loads(json.dumps(document))
    for _ in range(int(rng.integers(1, 3))):
        places = _paths(document)
        if not places:
            break
        *parents, last = places[int(rng.integers(len(places)))]
        part = document
        for key in parents:
            part = part[key]
        kind = int(rng.integers(6))
        if kind == 0:
            del part[last]
        elif kind == 1 and isinstance(part, list):
            part.insert(int(rng.integers(len(part) + 1)), part[last])
        elif kind == 2 and isinstance(part[last], (int, float)) and not isinstance(part[last], bool):
            part[last] = part[last] + type(part[last])(rng.choice([-1, 1, 2, 100]))
        elif kind == 3 and isinstance(part, list) and len(part) > 1:
            other = int(rng.integers(len(part)))
            part[last], part[other] = part[other], part[last]
        else:
            part[last] = _VALUES[int(rng.integers(len(_VALUES)))]
    return document
