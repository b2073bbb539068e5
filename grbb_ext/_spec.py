"""Options as small frozen objects that can be nested, searched and saved."""

from __future__ import annotations

from typing import Any, ClassVar


class Spec:
    """Base of the frozen dataclasses that describe an option; a class registers itself by its name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Colour(Spec):
    ...     red: float = 0.5
    >>> Spec.registry.pop("Colour")(red=1.0)
    Colour(red=1.0)
    """

    registry: ClassVar[dict[str, type[Spec]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Spec.registry[cls.__name__] = cls
