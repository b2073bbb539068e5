"""Weights of classes that a wrapped estimator was given, turned into ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from grbb_ext.labels import Labels


def positive_weight(weight: Any, labels: Labels) -> dict[Any, float]:
    """Turn ``scale_pos_weight`` into the weight of the second class.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> positive_weight(3.0, read_labels(["ham", "spam", None], "auto", None, None))
    {'spam': 3.0}
    """
    assert labels.classes is not None
    if labels.classes.size != 2:
        raise ValueError(
            f"scale_pos_weight={weight!r} is for two classes, and y has {labels.classes.size}. Use class_weight=."
        )
    return {labels.classes.tolist()[1]: float(weight)}


def unbalance_weight(labels: Labels) -> dict[Any, float]:
    """Turn LightGBM's ``is_unbalance`` into the weight of the rarer class: the ratio of the labelled counts.

    Examples
    --------
    >>> from grbb_ext.labels import read_labels
    >>> unbalance_weight(read_labels([0, 0, 0, 1, -1], "auto", None, -1))
    {1: 3.0}
    """
    assert labels.classes is not None
    if labels.classes.size != 2:
        raise ValueError(f"is_unbalance is for two classes, and y has {labels.classes.size}. Use class_weight=.")
    n_positive = float(np.sum(labels.targets))
    n_negative = labels.targets.size - n_positive
    if min(n_positive, n_negative) == 0:
        raise ValueError("is_unbalance needs a labelled row of each class. Use class_weight= with numbers.")
    rare = 0 if n_positive > n_negative else 1
    return {labels.classes.tolist()[rare]: max(n_positive, n_negative) / min(n_positive, n_negative)}


def check_task(given: dict[str, Any], num_class: Any, classes: Any) -> None:
    """Refuse weights of classes where there are none, and a number of classes that is not that of y.

    Examples
    --------
    >>> check_task({"scale_pos_weight": 2.0}, None, None)
    Traceback (most recent call last):
        ...
    ValueError: scale_pos_weight=2.0 of the wrapped estimator is for classes. Use sample_weight for a regression.
    """
    for name, value in given.items():
        if classes is None and value is not None:
            raise ValueError(
                f"{name}={value!r} of the wrapped estimator is for classes. Use sample_weight for a regression."
            )
    if num_class is not None and int(num_class) not in (0, 1 if classes is None else len(classes)):
        raise ValueError(
            f"num_class={num_class!r} of the wrapped estimator does not fit y. Leave it out; classes= names classes "
            "that have no label."
        )


def choose(own: Any, of_booster: dict[str, Any]) -> Any:
    """Return the one weight of classes that was given, or refuse several.

    Parameters
    ----------
    own : "balanced", dict or None
        The ``class_weight`` of the GRBB estimator.
    of_booster : dict
        What the wrapped estimator was given, by parameter.
    """
    given = {name: weight for name, weight in of_booster.items() if weight is not None}
    if own is not None and given:
        raise ValueError(
            f"class_weight of the GRBB estimator and {' and '.join(given)} of the wrapped one weigh the same classes. "
            f"Leave {' and '.join(given)} out."
        )
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} of the wrapped estimator weigh the same classes. Keep one.")
    return own if own is not None else next(iter(given.values()), None)
