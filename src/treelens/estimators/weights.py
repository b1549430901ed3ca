"""The learner as a scikit-learn estimator: it validates and hands over to the learning room."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from treelens._sklearn_compat import BaseEstimator, Interval, StrOptions, fit_context
from treelens.learning.constraints import CONSTRAINT_SETS
from treelens.learning.learn import learn_weights
from treelens.learning.result import LearnedWeights
from treelens.learning.settings import PAIRS, PRESETS, SOLVERS, LearnerSettings
from treelens.patterns.pairs import PairFeatures

_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")


class PairwiseWeights(BaseEstimator):
    """Learns which patterns matter: one weight per pattern, from pairs of labelled graphs.

    Pass it as ``weights=`` to a Weisfeiler-Lehman kernel, or fit it on pair features yourself.
    Weights start at 1 (the plain kernel) and move within ``radius`` of it so that graphs of
    different classes come to lie farther apart than ``alpha1`` and graphs of one class nearer than
    ``alpha2``, in the mean over pairs. The problem is convex; ``gaps_`` says how far from its
    optimum the solver can be at most.

    Parameters
    ----------
    radius : float or sequence of float, default=1.0
        How far the weights of one depth may go from 1: the radius of a ball (``constraint="ball"``)
        or half the width of a box (``"box"``). One for all depths or one for each. Weights never
        fall below 0. 0 keeps them uniform.
    solver : {"quasi-newton", "batch", "stochastic"}, default="quasi-newton"
        Projected quasi-Newton and projected gradient on all pairs, or steps on single pairs.
    constraint : {"ball", "box"}, default="ball"
    margins : "quantile" or (alpha1, alpha2), default="quantile"
        ``"quantile"`` takes the margins from the training distances under uniform weights.
    sigma : "auto" or float, default="auto"
        Width over which the hinges bend; ``"auto"`` scales it with the spread of the distances.
    b : float, default=1.0
        Offset of the distance ``b - <W, Z>``.
    balance : bool, default=True
        Whether pairs with the same label and with different labels weigh one half each.
    pairs : {"all", "local"}, default="all"
        ``"local"`` learns from every graph's ``n_neighbors`` nearest of its own and of other
        classes only.
    n_neighbors : int, default=10
    min_support : int, default=1
        Patterns that fewer training graphs hold keep the weight 1.
    preset : {None, "paper", "released-code"}, default=None
        Override the above by the paper's literal numbers (they hardly move the weights; a warning
        says how little), or by what the program released with it does.
    max_iter : int, default=200
    tol : float, default=1e-4
        Relative gap at which the solver stops.
    n_steps : int, default=1_000_000
        Steps of the stochastic solver.
    n_epochs : int or None, default=None
        Epochs over disjoint pairs instead.
    step_size : float or None, default=None
        First step of the stochastic solver; None chooses it from the radius. With the batch solver
        a number makes its step constant.
    halvings : int, default=8
        How often the stochastic solver halves its step; each stage is twice as long as the one
        before. 0 keeps the step constant.
    average : bool, default=True
        Whether the stochastic solver returns the mean of its last stage instead of the last point.
    n_checks : int, default=10
        How often the stochastic solver evaluates the full objective; 0 leaves ``history_`` empty.
    n_jobs : int or None, default=None
        Threads. The weights are the same for every number of them.
    random_state : int, RandomState or None, default=None
        Seed of the stochastic solver.

    Attributes
    ----------
    weights_ : ndarray, shape (n_patterns,)
    history_ : ndarray
        Objective at the start and after every iteration.
    gaps_ : ndarray
        Relative duality gap, likewise.
    converged_ : bool
    n_iter_ : int
    result_ : LearnedWeights
        All of this, and the margins and constants that were used.

    Examples
    --------
    >>> import numpy as np
    >>> from treelens import PatternHistograms, PatternVocabulary
    >>> from treelens.graphs.build import build_collection
    >>> edges = [[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [9, 10], [10, 11]]
    >>> graphs = build_collection([3, 3, 3, 3], np.array(edges), list("CCOCCOCCNCCN"))
    >>> histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=1))
    >>> features = PairFeatures.from_histograms(histograms)
    >>> learner = PairwiseWeights(radius=0.5).fit(features, ["a", "a", "b", "b"])
    >>> learner.converged_
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn reads it from the class
        "radius": [Interval(Real, 0, None, closed="left"), "array-like"],
        "solver": [StrOptions(set(SOLVERS))],
        "constraint": [StrOptions(set(CONSTRAINT_SETS))],
        "margins": [StrOptions({"quantile"}), tuple, list],
        "sigma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "b": [Interval(Real, None, None, closed="neither")],
        "balance": ["boolean"],
        "pairs": [StrOptions(set(PAIRS))],
        "n_neighbors": [_AT_LEAST_ONE],
        "min_support": [_AT_LEAST_ONE],
        "preset": [StrOptions(set(PRESETS)), None],
        "max_iter": [_AT_LEAST_ONE],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_steps": [_AT_LEAST_ONE],
        "n_epochs": [_AT_LEAST_ONE, None],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "halvings": [Interval(Integral, 0, None, closed="left")],
        "average": ["boolean"],
        "n_checks": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        radius: float | Any = 1.0,
        *,
        solver: str = "quasi-newton",
        constraint: str = "ball",
        margins: str | tuple[float, float] = "quantile",
        sigma: str | float = "auto",
        b: float = 1.0,
        balance: bool = True,
        pairs: str = "all",
        n_neighbors: int = 10,
        min_support: int = 1,
        preset: str | None = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_steps: int = 1_000_000,
        n_epochs: int | None = None,
        step_size: float | None = None,
        halvings: int = 8,
        average: bool = True,
        n_checks: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.solver = solver
        self.constraint = constraint
        self.margins = margins
        self.sigma = sigma
        self.b = b
        self.balance = balance
        self.pairs = pairs
        self.n_neighbors = n_neighbors
        self.min_support = min_support
        self.preset = preset
        self.max_iter = max_iter
        self.tol = tol
        self.n_steps = n_steps
        self.n_epochs = n_epochs
        self.step_size = step_size
        self.halvings = halvings
        self.average = average
        self.n_checks = n_checks
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, features: PairFeatures, y: Any) -> PairwiseWeights:
        """Learn the weights.

        Parameters
        ----------
        features : PairFeatures
            Of the training graphs.
        y : array-like, shape (n_graphs,)
            Their class labels.
        """
        if not isinstance(features, PairFeatures):
            raise TypeError(
                "PairwiseWeights.fit takes PairFeatures, got "
                f"{type(features).__name__}. To learn from graphs, pass the learner to a kernel: "
                "WassersteinWL(weights=PairwiseWeights())."
            )
        options = {field.name: getattr(self, field.name) for field in fields(LearnerSettings)}
        options["n_jobs"] = effective_n_jobs(self.n_jobs)
        options["random_state"] = check_random_state(self.random_state).randint(2**31 - 1)
        self._keep(learn_weights(features, y, preset=self.preset, **options))
        return self

    def _keep(self, result: LearnedWeights) -> None:
        self.result_ = result
        self.weights_ = result.weights
        self.history_ = result.history
        self.gaps_ = result.gaps
        self.converged_ = result.converged
        self.n_iter_ = result.n_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False  # pair features come in, not tables
        tags.no_validation = True
        return tags


def linear_learner(seed: int) -> PairwiseWeights:
    """The default where graphs are too many for all pairs of them to be looked at."""
    return PairwiseWeights(solver="stochastic", n_checks=0, random_state=seed)
