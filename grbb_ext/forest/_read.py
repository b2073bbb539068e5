"""Where a model comes from: a booster in memory or a saved file. No library is imported; its document is read."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from grbb_ext.forest._lightgbm_text import read_lightgbm
from grbb_ext.forest._xgboost_model import read_xgboost

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

    def skip(self, marker: str) -> bool:
        """Step over a marker if it comes next, and return whether it does."""
        is_next = self.data.startswith(marker.encode(), self.position)
        self.position += is_next
        return is_next

    def expect(self, marker: str) -> None:
        if not self.skip(marker):
            raise ValueError(f"expected {marker!r} at byte {self.position}, found {self.marker()!r}.")

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
        while not self.skip("}"):
            key = self.text()
            if key in entries:
                raise ValueError(f"the entry {key!r} occurs twice.")
            entries[key] = self.value(depth + 1)
        return entries

    def array(self, depth: int) -> Any:
        if self.skip("$"):
            kind = self.marker()
            if kind not in _SCALARS:
                raise ValueError(f"unknown array type {kind!r} at byte {self.position - 1}.")
            self.expect("#")
            dtype = np.dtype(_SCALARS[kind].replace("b", "i1").replace("B", "u1"))
            n = self.length()
            return np.frombuffer(self.take(n * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
        if self.skip("#"):
            return [self.value(depth + 1) for _ in range(self.length())]
        entries = []
        while not self.skip("]"):
            entries.append(self.value(depth + 1))
        return entries


_DAMAGE = ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError, struct.error


def _careful(read: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """Turn whatever a damaged document provokes into one clear error."""
    try:
        return read()
    except KeyError as error:
        raise ValueError(f"{what} cannot be read: the entry {error} is missing.") from error
    except _DAMAGE as error:
        raise ValueError(f"{what} cannot be read: {error}") from error


def fields_from_booster(booster: Any, iterations: int | None, missing: float | None) -> dict[str, Any]:
    """Return the fields of a forest from a booster or a scikit-learn wrapper around one.

    A booster is known by its methods: ``save_raw`` is XGBoost's, ``model_to_string`` LightGBM's.
    """
    if hasattr(booster, "get_booster"):
        inner = booster.get_booster()
        best = inner.attributes().get("best_iteration")
        if iterations is None and best is not None:  # the wrapper predicts with the best round, the booster with all
            iterations = int(best) + 1
        if missing is None and booster.missing is not None:
            missing = float(booster.missing)
        booster = inner
    elif hasattr(booster, "booster_"):
        booster = booster.booster_
    if hasattr(booster, "save_raw"):
        data, what = bytes(booster.save_raw("ubj")), "The XGBoost model"
    elif hasattr(booster, "model_to_string"):
        # None keeps the best round where early stopping found one, as predict does.
        data, what = booster.model_to_string(num_iteration=iterations).encode(), "The LightGBM model"
    else:
        raise TypeError(
            "booster must be an xgboost.Booster, a lightgbm.Booster or a fitted scikit-learn wrapper of one, got "
            f"{type(booster).__name__}."
        )
    return fields_from_bytes(data, what, iterations, missing)


def fields_from_file(path: str | PathLike[str], iterations: int | None, missing: float | None) -> dict[str, Any]:
    """Return the fields of a forest from the file of a saved model."""
    data = Path(path).read_bytes()
    if data[:64].lstrip().startswith(b"tree"):
        data = data.replace(b"\r\n", b"\n")
    return fields_from_bytes(data, f"{Path(path).name!r}", iterations, missing)


def fields_from_bytes(data: bytes, what: str, iterations: int | None, missing: float | None) -> dict[str, Any]:
    """Return the fields of a forest from a saved model: XGBoost's JSON or UBJSON, LightGBM's text."""
    fields = _careful(lambda: _read(data, iterations), what)
    value = np.nan if missing is None else float(missing)
    if fields["library"] == "lightgbm" and not np.isnan(value):
        raise ValueError("missing= is for XGBoost. LightGBM's missing values (NaN, zero_as_missing) are in its model.")
    return fields | {"missing": value}


def _read(data: bytes, iterations: int | None) -> dict[str, Any]:
    start = data[:64].lstrip()
    if start.startswith(b"tree"):
        return read_lightgbm(data.decode("utf-8"), iterations)
    if data.startswith(b"{L"):
        return read_xgboost(read_ubjson(data), iterations)
    if not start.startswith(b"{"):
        raise ValueError(
            "it is no saved model that can be read. XGBoost's .json and .ubj and LightGBM's .txt are; load other "
            "formats with their library and use Forest.from_booster."
        )
    document = json.loads(data, object_pairs_hook=_once)
    if "learner" not in document:
        raise ValueError(
            "it is JSON, but not a saved XGBoost model. Save with Booster.save_model: the output of dump_model lacks "
            "what predictions need."
        )
    return read_xgboost(document, iterations)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of the entries of an object; which of two of a name would count depends on the reader."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("an entry occurs twice.")
    return entries
