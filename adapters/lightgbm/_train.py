"""LightGBM training with feature costs, shared sources and a hard budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from grbb_ext.adapters._wrapped import PATIENCE, check_costs, end_for_costs
from grbb_ext.adapters.lightgbm import _params as parameters
from grbb_ext.adapters.lightgbm._rounds import Rounds
from grbb_ext.adapters.lightgbm._trees import columns_of
from grbb_ext.costs import FeatureCosts, Ledger, check_budget, check_price


def train(
    params: dict[str, Any],
    train_set: lgb.Dataset,
    num_boost_round: int = 100,
    valid_sets: list[lgb.Dataset] | None = None,
    valid_names: list[str] | None = None,
    feval: Callable[..., Any] | list[Callable[..., Any]] | None = None,
    init_model: str | Path | lgb.Booster | None = None,
    keep_training_booster: bool = False,
    callbacks: list[Callable[..., Any]] | None = None,
    *,
    costs: FeatureCosts | None = None,
    mu: float = 0.0,
    budget: float | None = None,
) -> lgb.Booster:
    r"""Train as ``lightgbm.train`` does, and pay for features.

    Each tree is grown on gains from which :math:`\mu` times the price of a feature's unpaid sources is subtracted
    (eq. 1 and 7). What is bought stays paid for all later trees, and every feature that needs a paid source is
    cheaper from the next round on. Within a tree a feature is penalised with the price of all of its unpaid sources,
    also if another feature of the tree shares one of them; the bill counts each source once. The total never exceeds
    `budget`, at any round.

    Parameters
    ----------
    params, train_set, num_boost_round, valid_sets, valid_names, feval, keep_training_booster, callbacks
        As for ``lightgbm.train``. The objective may be built in or a callable such as
        :func:`grbb_ext.grbb_objective`. ``feature_contri`` is kept (and multiplied by the mask of what is allowed).
        Refused together with `costs`: ``cegb_*``, boosting ``dart`` and ``rf``, distributed training, devices other
        than the CPU, ``linear_tree`` and forced splits.
    init_model : str, pathlib.Path, lightgbm.Booster or None, default=None
        As for ``lightgbm.train``. The features that it uses count as paid, and towards the budget.
    costs : FeatureCosts or None, default=None
        Prices of the columns. None is plain ``lightgbm.train``.
    mu : float, default=0
        Trade-off between gain and price, in units of gain per unit of price; 0 buys all that helps.
    budget : float or None, default=None
        The most that may be spent in total.

    Returns
    -------
    lightgbm.Booster
        An ordinary booster, with one attribute more if `costs` are given: ``booster.ledger_``, the
        :class:`grbb_ext.costs.Ledger` of what the model uses. It pickles with the booster but is not a part of
        LightGBM's model file; the paid set can be read from any model.

    Notes
    -----
    When no split on paid features helps and nothing else is affordable or worth its price, training ends. The reason
    is logged once, as a warning of the logger ``"grbb_ext"`` (as information if ``verbosity`` is below 0), and kept
    in ``booster.ledger_.stop_reason``. If rows or columns are sampled, or callbacks change parameters, an empty round
    may be a matter of luck: training then ends after ten of them in a row.

    Evaluation prices (``per_tree``, ``per_split``) do not take part: `num_boost_round` and ``num_leaves`` are the way
    to limit evaluation.

    Examples
    --------
    Column 0 is expensive; column 1 is cheap and almost as good.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
    >>> y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    >>> params = {"objective": "regression", "num_leaves": 2, "min_data_in_leaf": 1, "min_data_in_bin": 1,
    ...           "learning_rate": 1.0, "verbosity": -1}
    >>> for mu in (0.0, 0.2, 10.0):
    ...     booster = train(params, lgb.Dataset(X, y), 1, costs=FeatureCosts([30.0, 1.0]), mu=mu)
    ...     print(mu, repr(booster.ledger_))
    0.0 Ledger(1 of 2 features, 30 spent)
    0.2 Ledger(1 of 2 features, 1 spent)
    10.0 Ledger(0 of 2 features, 0 spent)
    """
    mu = check_price(mu, "mu")
    arguments: dict[str, Any] = {
        "valid_sets": valid_sets,
        "valid_names": valid_names,
        "feval": feval,
        "init_model": init_model,
        "keep_training_booster": keep_training_booster,
    }
    if costs is None:
        if mu > 0 or budget is not None:
            raise ValueError("mu and budget need costs=.")
        parameters.refuse_forest(params)
        return lgb.train(params, train_set, num_boost_round, callbacks=callbacks, **arguments)
    check_costs(costs)
    budget = check_budget(budget)
    params = dict(params)
    of_data = train_set.get_params() if isinstance(train_set, lgb.Dataset) else {}  # the booster takes these over
    parameters.check_params(of_data | params)
    objective = parameters.get(params, "objective")
    if callable(objective):
        # lgb.train copies what is in params, except functions: rounds that are grown again need the same object.
        parameters.pop(params, "objective")
        params["objective"] = lambda raw_scores, data: objective(raw_scores, data)
    paid = None
    if init_model is not None:
        paid = columns_of(init_model if isinstance(init_model, lgb.Booster) else lgb.Booster(model_file=init_model))
    evaluated = valid_sets if isinstance(valid_sets, list | tuple) else [valid_sets]
    evaluates_train = any(one is train_set for one in evaluated)
    keeper = _CostKeeper(params, costs, mu, budget, paid, feval, evaluates_train)
    of_run = keeper.callbacks([*(callbacks or []), *early_stopping(params)])
    booster = lgb.train(params, train_set, num_boost_round, callbacks=of_run, **arguments)
    return keeper.finish(booster)


@dataclass(eq=False)
class _CostKeeper:
    """Callbacks that keep a run of ``lightgbm.train`` within costs."""

    params: dict[str, Any]
    costs: FeatureCosts
    mu: float
    budget: float | None
    paid: NDArray[np.bool_] | None
    feval: Any
    evaluates_train: bool
    rounds: Rounds | None = None
    n_empty: int = 0
    patience: int = 1
    num_leaves: int = 0
    stopping: bool = False

    def callbacks(self, others: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
        """Return the callbacks of a run: prepare last before the round, settle first after it, stop last."""
        wrapped = in_places(others, lambda env: of_grown_rounds(env, last=self.stopping))
        # Callbacks before a round may change parameters, and with them what can be split.
        if parameters.is_random(self.params) or any(callback.before_iteration for callback in wrapped):
            self.patience = PATIENCE
        first, last = -(10**9), 10**9
        return [
            *wrapped,
            _Callback(self._prepare, last, before_iteration=True),
            _Callback(self._settle, first, before_iteration=False),
            _Callback(self._stop, last, before_iteration=False),
        ]

    def finish(self, booster: lgb.Booster) -> lgb.Booster:
        """Attach the ledger of what the model uses."""
        assert self.rounds is not None
        ledger = self.rounds.ledger.before(booster.current_iteration())
        if not np.array_equal(columns_of(booster), ledger.used):
            raise RuntimeError(
                "The model uses features that were not seen to be bought: a callback has changed its trees."
            )
        booster.ledger_ = ledger  # type: ignore[attr-defined]
        return booster

    def _prepare(self, env: Any) -> None:
        booster = env.model
        if self.rounds is None:
            names, n_features = booster.feature_name(), booster.num_feature()
            unnamed = names == [f"Column_{i}" for i in range(n_features)] and names[0] not in self.costs.features
            ledger = Ledger(self.costs.bind(n_features if unnamed else names), self.budget)
            if self.paid is not None:
                ledger.buy(self.paid)
            self.rounds = Rounds(booster, ledger, self.mu, self.params)
            self.num_leaves = parameters.get(booster.params, "num_leaves", 31)
        if parameters.get(booster.params, "num_leaves", 31) > self.num_leaves:
            raise ValueError("num_leaves cannot be raised during training with costs: start with the largest.")
        self.rounds.prepare()

    def _settle(self, env: Any) -> None:
        assert self.rounds is not None
        empty, changed = self.rounds.settle()
        self.n_empty = self.n_empty + 1 if empty else 0
        if changed and env.evaluation_result_list:
            # Later callbacks share this list: they are to see the scores of the trees that stayed.
            results = env.model.eval_train(self.feval) if self.evaluates_train else []
            env.evaluation_result_list[:] = results + env.model.eval_valid(self.feval)
        if self.n_empty >= self.patience and env.iteration + 1 < env.end_iteration:
            self.stopping = True
            quiet = parameters.get(self.params, "verbosity", 1) < 0
            end_for_costs(self.rounds.ledger, self.mu, env.model.current_iteration(), quiet=quiet)

    def _stop(self, env: Any) -> None:
        if self.stopping:  # no round is the best one
            raise lgb.EarlyStopException(-1, env.evaluation_result_list)


def of_grown_rounds(env: Any, *, last: bool = False) -> Any:
    """Return what a callback is to see after a round: its number among those that grew trees.

    LightGBM keeps no trees of a round without a split, so that early stopping by numbers of rounds would name more
    trees than had the best score. With an early end as the `last` round it picks its best one as it does there.
    """
    begin = env.begin_iteration
    n_before = max(env.model.current_iteration() - 1, begin)
    if n_before == begin < env.iteration:
        begin -= 1  # callbacks begin anew where the numbers are equal
    end = n_before + 1 if last or env.iteration + 1 == env.end_iteration else env.end_iteration
    return replace(env, iteration=n_before, begin_iteration=begin, end_iteration=end)


def in_places(callbacks: Sequence[Callable[..., Any]], see: Callable[[Any], Any]) -> list[_Callback]:
    """Return callbacks in the places that ``lightgbm.train`` gives them; what they get after a round is `see` of it."""
    return [
        _Callback(one, getattr(one, "order", i - len(callbacks)), getattr(one, "before_iteration", False), see)
        for i, one in enumerate(callbacks)
    ]


@dataclass(frozen=True)
class _Callback:
    """A callback with its place among the others, and what it is shown of a round that was grown."""

    call: Callable[[Any], None]
    order: int
    before_iteration: bool
    see: Callable[[Any], Any] | None = None

    def __call__(self, env: Any) -> None:
        self.call(env if self.before_iteration or self.see is None else self.see(env))


def early_stopping(params: dict[str, Any]) -> list[Callable[..., Any]]:
    """Turn the parameter into the callback that ``lightgbm.train`` would make of it."""
    rounds = parameters.pop(params, "early_stopping_round")
    if not rounds or rounds <= 0:
        return []
    return [
        lgb.early_stopping(
            rounds,
            first_metric_only=params.get("first_metric_only", False),
            verbose=parameters.get(params, "verbosity", 1) > 0,
            min_delta=params.get("early_stopping_min_delta", 0.0),
        )
    ]
