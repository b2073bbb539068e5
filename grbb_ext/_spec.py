"""Options as small frozen objects: nested, searchable, with strings as short forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

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
