"""Say why training ended before its last round."""

from __future__ import annotations

from grbb_ext.costs import Ledger


def stop_reason(ledger: Ledger, mu: float, n_rounds: int) -> str:
    """Return one sentence that says why nothing more can be learned.

    Parameters
    ----------
    ledger : Ledger
        What is paid.
    mu : float
        Trade-off of eq. 1.
    n_rounds : int
        Rounds of the model.

    Examples
    --------
    >>> from grbb_ext.costs import FeatureCosts
    >>> print(stop_reason(Ledger(FeatureCosts([1.0, 5.0]), budget=0.5), 0.0, 3))
    Training with costs ended after 3 rounds: no split on the 0 features bought helps, and the cheapest of the 2 others
    costs 1 while 0.5 of the budget of 0.5 is left.
    """
    prices = ledger.marginals()
    unpaid = prices > 0
    bought = f"the {ledger.used.sum()} features bought"
    start = f"Training with costs ended after {n_rounds} rounds: no split on {bought} helps, "
    if not unpaid.any():
        return start + "and all features are paid."
    if not (ledger.affordable() & unpaid).any():
        return start + (
            f"and the cheapest of the {unpaid.sum()} others costs {prices[unpaid].min():g} while "
            f"{ledger.remaining:g} of the budget of {ledger.budget:g} is left."
        )
    if mu > 0:
        return start + f"and no other feature that is affordable is worth its price at mu={mu:g}."
    return start + "and no other feature that is affordable does."
