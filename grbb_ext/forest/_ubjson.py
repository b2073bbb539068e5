"""UBJSON, the binary JSON in which XGBoost saves models; only what its writer emits."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_SCALARS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d", "C": ">b"}
_CONSTANTS = {"Z": None, "T": True, "F": False}
_DEEPEST = 64


def read_ubjson(data: bytes) -> Any:
    r"""Decode a document; typed arrays become numpy arrays, so that float32 values arrive unrounded.

    Parameters
    ----------
    data : bytes
        The document.

    Returns
    -------
    object
        Dicts, lists, arrays, strings and numbers.

    Raises
    ------
    ValueError
        If the bytes are not UBJSON, or end too early.

    Examples
    --------
    >>> read_ubjson(b"{L" + bytes(7) + b"\x01ai\x05}")
    {'a': 5}
    """
    reader = _Reader(data)
    document = reader.value(0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes follow the end of the document.")
    return document


class _Reader:
    """A position in the bytes and the grammar."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def take(self, n: int) -> bytes:
        if n < 0 or self.position + n > len(self.data):
            raise ValueError(f"the document ends early: {n} bytes wanted at byte {self.position} of {len(self.data)}.")
        taken = self.data[self.position : self.position + n]
        self.position += n
        return taken

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def peek(self) -> str:
        marker = self.marker()
        self.position -= 1
        return marker

    def expect(self, marker: str) -> None:
        found = self.marker()
        if found != marker:
            raise ValueError(f"expected {marker!r} at byte {self.position - 1}, found {found!r}.")

    def scalar(self, marker: str) -> Any:
        code = _SCALARS[marker]
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def length(self) -> int:
        self.expect("L")
        return int(self.scalar("L"))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"the document is nested deeper than {_DEEPEST} levels.")
        marker = self.marker()
        if marker == "{":
            return self.mapping(depth)
        if marker == "[":
            return self.array(depth)
        if marker == "S":
            return self.text()
        if marker in _SCALARS:
            return self.scalar(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise ValueError(f"unknown marker {marker!r} at byte {self.position - 1}.")

    def mapping(self, depth: int) -> dict[str, Any]:
        entries = {}
        while self.peek() != "}":
            key = self.text()
            entries[key] = self.value(depth + 1)
        self.expect("}")
        return entries

    def array(self, depth: int) -> Any:
        marker = self.peek()
        if marker == "$":
            self.expect("$")
            kind = self.marker()
            if kind not in _SCALARS:
                raise ValueError(f"unknown array type {kind!r} at byte {self.position - 1}.")
            self.expect("#")
            dtype = np.dtype(_SCALARS[kind].replace("b", "i1").replace("B", "u1"))
            n = self.length()
            return np.frombuffer(self.take(n * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
        if marker == "#":
            self.expect("#")
            return [self.value(depth + 1) for _ in range(self.length())]
        entries = []
        while self.peek() != "]":
            entries.append(self.value(depth + 1))
        self.expect("]")
        return entries
