"""Settings and fitted values as plain JSON, with their types, and back."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grbb_ext.costs import FeatureCosts

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# Truth values, numbers and text: no objects, and nothing that has to be looked up by name.
_DTYPE = re.compile(r"[<>|=](?:b1|[iu][1248]|f[248]|U\d{1,6})")


class NotPlainError(TypeError):
    """A value that has no form in JSON, such as a function."""


def to_plain(value: Any) -> Any:
    """Return a value as what JSON has, so that :func:`from_plain` gives it back with its type.

    Parameters
    ----------
    value : None, bool, int, float, str, list, tuple, dict, array of numbers or text, or FeatureCosts
        The value. Scalars of numpy become those of Python.

    Raises
    ------
    NotPlainError
        If it is, or holds, something else.

    Examples
    --------
    >>> to_plain((1, None)), to_plain(float("nan")), to_plain({2: "b"})
    ({'tuple': [1, None]}, {'float': 'nan'}, {'dict': [[2, 'b']]})
    >>> to_plain(np.array(["ham", "spam"]))
    {'array': ['ham', 'spam'], 'dtype': '<U4', 'shape': [2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value if value is None or isinstance(value, bool) else str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if type(value) is list:
        return [to_plain(entry) for entry in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(entry) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[to_plain(key), to_plain(entry)] for key, entry in value.items()]}
    if isinstance(value, FeatureCosts):
        return {"costs": value.to_dict()}
    if isinstance(value, np.ndarray) and _DTYPE.fullmatch(value.dtype.str):
        flat = [to_plain(entry) for entry in value.ravel().tolist()]
        return {"array": flat, "dtype": value.dtype.str, "shape": list(value.shape)}
    raise NotPlainError(f"a value of type {type(value).__name__} has no form in JSON")


def from_plain(plain: Any) -> Any:
    """Undo :func:`to_plain`.

    Examples
    --------
    >>> from_plain(to_plain({"costs": (1.5, float("-inf"))}))
    {'costs': (1.5, -inf)}
    >>> from_plain(to_plain(np.array([3, 8], dtype=np.int8))).dtype
    dtype('int8')
    """
    if isinstance(plain, list):
        return [from_plain(entry) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return _array(plain)
    [(kind, content)] = plain.items()
    if kind == "float":
        return _NOT_FINITE[content]
    if kind == "tuple":
        return tuple(from_plain(entry) for entry in content)
    if kind == "dict":
        return {from_plain(key): from_plain(entry) for key, entry in content}
    if kind == "costs":
        return FeatureCosts.from_dict(content)
    raise ValueError(f"a value of the unknown kind {kind!r}")


def _array(plain: dict[str, Any]) -> NDArray[Any]:
    if not _DTYPE.fullmatch(plain["dtype"]):
        raise ValueError(f"an array of the type {plain['dtype']!r}")
    values = [from_plain(entry) for entry in plain["array"]]
    return np.array(values, dtype=np.dtype(plain["dtype"])).reshape(plain["shape"])
