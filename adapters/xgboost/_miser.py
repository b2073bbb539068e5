"""Greedy Miser for XGBoost: a training callback that opens to each round what it may use and should buy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
import xgboost as xgb

from grbb_ext._options import one_of, positive_int
from grbb_ext.adapters._wrapped import PATIENCE, check_costs, end_for_costs
from grbb_ext.adapters.xgboost._mask import ColumnMask, MaskedBooster, Settings, read_settings
from grbb_ext.adapters.xgboost._probe import Prober, TreeReader, builtin_gradients
from grbb_ext.costs import (
    Choice,
    FeatureCosts,
    Groups,
    Judge,
    Ledger,
    Mask,
    Schedule,
    check_price,
    choose_by_interaction,
    choose_by_levels,
    gain_bound,
)

Strategy = Literal["levels", "interaction"]
# Of the first step; and what a step may be by rounding alone.
_AT_REST, _ROUNDING = 0.01, 1e-6
_STRATEGIES = {"levels": choose_by_levels, "interaction": choose_by_interaction}


class GreedyMiser(xgb.callback.TrainingCallback):
    r"""Make ``xgboost.train`` pay for features.

    Tree t minimises eq. 7 of the paper,

    .. math:: \sum_i (-g_i - h_t(x_i))^2 + \mu \sum_\alpha c_\alpha [\alpha \text{ used by } h_t, \text{ not yet paid}],

    over trees grown on different sets of columns: before a round some are grown on a booster that is thrown away, the
    best decides what the round may buy, and all other unpaid columns are closed to it. What is bought stays paid for
    all later trees, and every feature that needs a paid source gets cheaper. The total never exceeds `budget`, at any
    round. One instance serves one training.

    Parameters
    ----------
    costs : FeatureCosts
        Prices of the columns.
    obj : callable or str
        The objective of the training: the callable given to ``xgboost.train(obj=)``, such as
        :func:`grbb_ext.grbb_objective`, or the name of the built-in one in its parameters: ``"binary:logistic"``,
        ``"reg:squarederror"``, ``"multi:softprob"``, ``"multi:softmax"``, ``"reg:logistic"``, ``"binary:logitraw"``.
    dtrain : xgboost.DMatrix
        The data set given to ``xgboost.train``. Its feature weights hold the mask while a tree is grown, and the
        user's own otherwise, also where training breaks off.
    mu : float, default=0
        The gain that one unit of price must bring; 0 buys everything that helps.
    budget : float or None, default=None
        The most that may be spent in total.
    strategy : {"levels", "interaction"}, default="levels"
        Which trees are tried. ``"levels"``: on nested sets of columns, those up to a certain price, and without those
        that gain less than they cost. ``"interaction"``: on all affordable columns, but so that no path buys more than
        one feature needs.
    probe_every : int or "auto", default="auto"
        2 looks for a purchase in every second round, and so on; the other rounds use what is paid. ``"auto"`` waits 1,
        2, 4, then 8 rounds while nothing is worth its price, and grows at most three trial trees in four rounds (and 8
        in advance), so training takes at most about twice as long as without prices. From 65,536 rows on trial trees
        are grown on a sample of 32,768, and training takes at most about one and a half times as long.
    max_levels : int, default=8
        Most price levels of ``"levels"``, and most steps of ``"interaction"``.

    Attributes
    ----------
    ledger_ : Ledger
        What the model has bought, updated after every round; also ``booster.ledger_`` of the trained booster.
    n_probes_ : int
        Trees (rounds of trees, for several classes) grown only to decide.

    Notes
    -----
    When no split on paid features helps and nothing else is affordable or worth its price, training ends. The reason
    is logged once, as a warning of the logger ``"grbb_ext"`` (as information if XGBoost's verbosity is 0), and kept in
    ``ledger_.stop_reason``. XGBoost cannot skip a round, so that the last tree is then a single leaf, which costs
    nothing. Such rounds go on until their leaf moves the scores by no more than a hundredth of the first. If rows or
    columns are sampled, training ends after ten such rounds in a row.

    The user's ``colsample_*`` and feature weights act within the columns that are open, ``interaction_constraints``
    are kept by ``"levels"`` and refused by ``"interaction"``. Refused: boosters ``gblinear`` and ``dart``,
    ``num_parallel_tree``, vector leaves, ``process_type="update"``, devices other than the CPU, distributed training,
    ``xgboost.cv``. With ``xgb_model=`` the features of that model count as paid, and towards the budget.

    A callable `obj` is called once more in rounds that look for a purchase. ``EarlyStopping(save_best=True)`` returns a
    booster of its own: put it before the GreedyMiser, or use ``ledger_.before(booster.num_boosted_rounds())``.

    Examples
    --------
    Column 0 is expensive; column 1 is cheap and almost as good.

    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]])
    >>> y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    >>> params = {"objective": "reg:squarederror", "base_score": 0, "max_depth": 1, "eta": 1, "lambda": 0,
    ...           "min_child_weight": 0}
    >>> for mu in (0.0, 0.2, 10.0):
    ...     dtrain = xgb.DMatrix(X, label=y)
    ...     miser = GreedyMiser(FeatureCosts([30.0, 1.0]), "reg:squarederror", dtrain, mu=mu)
    ...     booster = xgb.train(params, dtrain, 1, callbacks=[miser])
    ...     print(mu, repr(booster.ledger_))
    0.0 Ledger(1 of 2 features, 30 spent)
    0.2 Ledger(1 of 2 features, 1 spent)
    10.0 Ledger(0 of 2 features, 0 spent)
    """

    #: Whether the workers of a distributed training decide alike, as those of grbb_ext.adapters.dask do.
    _many_machines = False
    _gain_bound = staticmethod(gain_bound)

    def __init__(
        self,
        costs: FeatureCosts,
        obj: Callable[..., Any] | str,
        dtrain: xgb.DMatrix,
        *,
        mu: float = 0.0,
        budget: float | None = None,
        strategy: Strategy = "levels",
        probe_every: int | Literal["auto"] = "auto",
        max_levels: int = 8,
    ) -> None:
        super().__init__()
        check_costs(costs)
        if not isinstance(dtrain, xgb.DMatrix):
            raise TypeError(f"dtrain must be the DMatrix given to xgboost.train, got {type(dtrain).__name__}.")
        one_of(strategy, tuple(_STRATEGIES), "strategy")
        if isinstance(obj, str):
            builtin_gradients(obj)
        elif not callable(obj):
            raise TypeError(
                f"obj must be a callable or the name of a built-in objective, got {type(obj).__name__}. Pass what "
                "xgboost.train gets as obj=, or params['objective']."
            )
        self._mu = check_price(mu, "mu")
        self._obj, self._dtrain, self._strategy = obj, dtrain, strategy
        self._max_levels = positive_int(max_levels, "max_levels")
        self._schedule = Schedule(
            None if probe_every == "auto" else positive_int(probe_every, "probe_every, where it is not 'auto',")
        )
        names, n_columns = dtrain.feature_names, int(dtrain.num_col())
        self._reader = TreeReader(names, n_columns)
        self.ledger_ = Ledger(costs.bind(n_columns if names is None else names), budget)
        self.n_probes_ = 0
        # Without a price that counts there is nothing to decide, and rounds are left alone.
        self._idle = self.ledger_.budget is None and self._mu == 0
        self._model: xgb.Booster | None = None
        self._n_read = self._n_empty = 0
        self._first_step = 0.0
        self._open: tuple[Mask, Groups | None] = np.ones(n_columns, dtype=bool), None
        self._looked = False

    def before_training(self, model: Any) -> Any:
        """Check the booster, and count what it uses already as paid."""
        if not isinstance(model, xgb.Booster):
            raise TypeError(
                "GreedyMiser is for xgboost.train: xgboost.cv trains several boosters at once. Train each fold with "
                "a GreedyMiser of its own."
            )
        if self._model is not None:
            raise RuntimeError("This GreedyMiser has served a training already: make a new one for each.")
        if xgb.collective.get_world_size() > 1 and not self._many_machines:
            raise ValueError(
                "A GreedyMiser is for one machine: it cannot keep the workers' masks and probes in step. Use "
                "grbb_ext.adapters.dask.train(..., costs=, mu=, budget=)."
            )
        self._settings = read_settings(model)
        self._check_objective(self._settings)
        if self._strategy == "interaction" and self._settings.interaction_constraints:
            raise ValueError(
                "interaction_constraints are used by strategy='interaction' itself: take them out of the parameters, "
                "or use strategy='levels', which keeps them."
            )
        self._n_read = model.num_boosted_rounds()
        if self._n_read > 0:
            self.ledger_.buy(self._reader.growth(model).used)
        self._model = model
        self._mask = ColumnMask(self._dtrain, self._settings)
        MaskedBooster.take(model, self._opened)
        self._prober = Prober(self._dtrain, self._settings, self._mask, self._reader)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Pay for what the round used; end training where nothing more can be learned."""
        empty = self._settle(model)
        if self._idle or not empty:
            self._n_empty, self._first_step = 0, 0.0
            return False
        self._schedule.hurry()
        # An empty round says that nothing is left only if a purchase was looked for, and if its leaf moved nothing.
        self._n_empty += self._looked and self._rests(model)
        if self._n_empty < (PATIENCE if self._settings.random else 1):
            return False
        self._explain(model)
        return True

    def after_training(self, model: Any) -> Any:
        """Put feature weights and parameters back, and hand over the ledger."""
        # Where another callback ends training, after_iteration of those behind it is not called.
        if model.num_boosted_rounds() > self._n_read:
            self._settle(model)
        if self._first_step > 0 and self.ledger_.stop_reason is None:  # the rounds were over before the steps
            self._explain(model)
        self._give_back(model)
        self.ledger_ = self.ledger_.before(model.num_boosted_rounds())
        model.ledger_ = self.ledger_
        return model

    def _give_back(self, model: xgb.Booster) -> None:
        for booster in (self._model, model):  # another callback may have returned one of its own
            MaskedBooster.give_back(booster)

    def _check_objective(self, settings: Settings) -> None:
        if callable(self._obj):
            self._gradients: Callable[..., Any] = self._obj
            return
        if self._obj != settings.objective:
            raise ValueError(
                f"obj={self._obj!r}, but the booster's objective is {settings.objective!r}. Give the same to both; for "
                "a custom objective pass the callable."
            )
        if self._dtrain.get_label().size == 0:
            raise ValueError(
                f"The DMatrix has no labels, which obj={self._obj!r} needs. If xgboost.train gets a callable as obj=, "
                "give it to GreedyMiser too."
            )
        self._gradients = builtin_gradients(self._obj, settings.scale_pos_weight)

    def _opened(self, model: xgb.Booster, dtrain: xgb.DMatrix, fobj: Any) -> AbstractContextManager[None]:
        """Decide what the round may use, and return the mask for it; a built-in objective is None."""
        if self._idle:
            return nullcontext()
        if (fobj is None) != isinstance(self._obj, str):
            raise ValueError(
                "xgboost.train and GreedyMiser have different objectives: pass obj= to both, or give GreedyMiser the "
                "name of the built-in one."
            )
        self._open = self._decide(model)
        return self._mask.opened(model, *self._open)

    def _decide(self, model: xgb.Booster) -> tuple[Mask, Groups | None]:
        """Return the columns that the round may use, and which of them may share a path."""
        ledger = self.ledger_
        judge = Judge(ledger, self._mu, self._prober, self._mask.usable)
        self._looked = True
        if not judge.candidates.any():
            return judge.free, None
        if self._mu == 0 and self._strategy == "levels" and ledger.fits(judge.candidates):
            return judge.free | judge.candidates, None
        round = model.num_boosted_rounds()
        if not self._schedule.due(round):
            self._looked = False
            return judge.free, None
        choice = self._choose(model, judge)
        self.n_probes_ += judge.n_probes
        self._schedule.looked(round, bought=choice is not None, n_trees=judge.n_probes)
        return (judge.free, None) if choice is None else (judge.free | choice.new, choice.groups)

    def _choose(self, model: xgb.Booster, judge: Judge) -> Choice | None:
        """Look for a purchase."""
        if model.num_boosted_rounds() == 0 and isinstance(self._obj, str):
            raw_scores = self._prober.starting_scores(model)
        else:
            raw_scores = model.predict(self._dtrain, output_margin=True, training=True)
        gradient, hessian = self._gradients(raw_scores, self._dtrain)
        if self._mu * judge.prices[judge.candidates].min() >= self._gain_bound(gradient, hessian):
            return None
        self._prober.look_at(gradient, hessian, sampling=not self._many_machines)
        choice = _STRATEGIES[self._strategy](judge, self._max_levels)
        return choice if choice.buys else None

    def _explain(self, model: xgb.Booster) -> None:
        end_for_costs(self.ledger_, self._mu, model.num_boosted_rounds(), quiet=xgb.get_config()["verbosity"] == 0)

    def _rests(self, model: xgb.Booster) -> bool:
        """Return whether the last of some empty rounds moved the scores no more than a hundredth of the first.

        Scores that are far from the mean of their targets hide gains: with L2, each leaf more takes its share of that
        long step back. Such rounds go on, as they do without prices; splits may help once the scores are near.
        """
        if self._settings.random:  # the step of a sample never ends
            return True
        step = self._reader.step(model[model.num_boosted_rounds() - 1 :])
        self._first_step = self._first_step or step
        return step <= max(_AT_REST * self._first_step, _ROUNDING)

    def _settle(self, model: xgb.Booster) -> bool:
        """Pay for what the rounds since the last call used; return whether they found no split."""
        empty = True
        for round in range(self._n_read, model.num_boosted_rounds()):
            used = self._reader.growth(model[round : round + 1]).used
            if (used & ~self._open[0]).any():
                self._give_back(model)
                raise RuntimeError(
                    "A tree uses columns that were closed to it: the DMatrix given to GreedyMiser must be the one "
                    "given to xgboost.train."
                )
            self.ledger_.buy(used, round=round)
            empty = empty and not used.any()
        self._n_read = model.num_boosted_rounds()
        return empty
