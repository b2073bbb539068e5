"""Options: their values checked, and specs, which are small frozen objects: nested, searchable, with short forms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar


def positive_int(value: Any, name: str, least: int = 1) -> int:
    """Return `value` as an int, or raise a ValueError that names it.

    Examples
    --------
    >>> positive_int(3, "n_trees")
    3
    >>> positive_int(True, "n_trees")
    Traceback (most recent call last):
    ...
    ValueError: n_trees must be a positive integer, got True.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        wanted = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
    return int(value)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, of any library; True and False are none.

    Examples
    --------
    >>> is_number(0.5), is_number("0.5"), is_number(True)
    (True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def finite_number(value: Any, name: str, least: float = 0.0) -> float:
    """Return `value` as a float, or raise an error that names it.

    Examples
    --------
    >>> finite_number(-1, "lam")
    Traceback (most recent call last):
    ...
    ValueError: lam must be a finite number of at least 0, got -1.
    """
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        raise ValueError(f"{name} must be a finite number of at least {least:g}, got {value!r}.")
    return number


def positive_number(value: Any, name: str, also: str = "") -> float:
    """Return `value` as a float, or raise a ValueError that names it.

    Examples
    --------
    >>> positive_number("2", "price")
    Traceback (most recent call last):
    ...
    ValueError: price must be a positive number, got '2'.
    """
    if not (is_number(value) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a positive number{also}, got {value!r}.")
    return float(value)


def one_of(value: Any, allowed: tuple[Any, ...], name: str) -> None:
    """Raise a ValueError that names a parameter unless its value is one of those allowed.

    Examples
    --------
    >>> one_of("cubic", ("auto", "standard", None), "scale")
    Traceback (most recent call last):
    ...
    ValueError: scale must be 'auto', 'standard' or None, got 'cubic'.
    """
    if not (isinstance(value, str | None) and value in allowed):
        *most, last = (repr(one) for one in allowed)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}.")


S = TypeVar("S", bound="Spec")


class Spec:
    """Base of the frozen dataclasses that describe a graph, an operator, a teacher or a rule.

    A spec never changes: :meth:`replace` makes another one. Its fields are parameters as scikit-learn counts them, so
    that ``set_params(graph__n_neighbors=5)`` and searches over ``graph__n_neighbors`` work on the estimators.

    Attributes
    ----------
    registry : dict of str to type
        All specs by the name of their class, for saved models.
    """

    registry: ClassVar[dict[str, type[Spec]]] = {}

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        Spec.registry[cls.__name__] = cls

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values in some fields."""
        names = sorted(self.get_params())
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise ValueError(f"{type(self).__name__} has no parameter {unknown[0]!r}. It has {names}.")
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def read_spec(value: Any, names: Mapping[str, S], base: type[S], parameter: str, also: str = "") -> S:
    """Return the spec that a user asked for by name or as an object.

    Parameters
    ----------
    value : str or Spec
        What was passed.
    names : mapping of str to Spec
        Short forms.
    base : type
        The class that an object must have.
    parameter : str
        Name of the parameter, for messages.
    also : str, default=""
        What else the parameter may be, for messages.

    Examples
    --------
    >>> from grbb_ext.propagation import PROPAGATIONS, PropagationSpec
    >>> read_spec("smooth", PROPAGATIONS, PropagationSpec, "propagation").power
    3
    >>> read_spec("spread", PROPAGATIONS, PropagationSpec, "propagation")
    Traceback (most recent call last):
    ...
    ValueError: propagation must be one of ['harmonic', ...] or a PropagationSpec, got 'spread'.
    """
    if isinstance(value, base):
        return value
    if isinstance(value, str) and value in names:
        return names[value]
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"{parameter} must be one of {sorted(names)} or a {base.__name__}{also}, got {value!r}.")
