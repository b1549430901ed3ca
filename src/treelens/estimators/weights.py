"""PairwiseWeights: learning of pattern weights as a scikit-learn estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from treelens._sklearn_compat import BaseEstimator, Interval, StrOptions, fit_context
from treelens.pairwise.learn import LearnedWeights, learn_weights
from treelens.pairwise.settings import (
    SOLVER_KINDS,
    as_solver,
    solver_name,
)
from treelens.patterns.pairs import PairFeatures


class PairwiseWeights(BaseEstimator):
    """Learn one weight per pattern from pairs of labelled graphs.

    Pass it as ``weights=`` to a Weisfeiler-Lehman kernel, or fit it on pair features directly.
    Weights start at 1 (the plain kernel) and stay within ``radius`` of it. They are chosen so that
    graphs of different classes are farther apart than ``alpha1`` and graphs of one class closer
    than ``alpha2``, on average over pairs. The problem is convex; ``gaps_`` bounds the distance to
    its optimum.

    Parameters
    ----------
    radius : float or sequence of float, default=1.0
        Largest Euclidean distance of the weights of one depth from 1: one value for all depths or
        one per depth. Weights never fall below 0. 0 keeps them uniform.
    solver : {"quasi-newton", "batch", "stochastic"} or a solver, default="quasi-newton"
        :class:`QuasiNewton` and :class:`ProjectedGradient` use all pairs in every iteration,
        :class:`StochasticGradient` single ones; a name stands for the solver with its defaults.
    margins : "quantile" or (alpha1, alpha2), default="quantile"
        ``"quantile"`` takes the margins from the training distances under uniform weights.
    sigma : "auto" or float, default="auto"
        Width of the smoothing of the hinges; ``"auto"`` scales it with the spread of the
        distances.
    b : float, default=1.0
        Offset of the distance ``b - <W, Z>``.
    balance : bool, default=True
        Whether pairs with the same label and with different labels weigh one half each.
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
        All of the above, and the margins and constants that were used.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "radius": [Interval(Real, 0, None, closed="left"), "array-like"],
        "solver": [StrOptions(set(SOLVER_KINDS)), *SOLVER_KINDS.values()],
        "margins": [StrOptions({"quantile"}), tuple, list],
        "sigma": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "b": [Interval(Real, None, None, closed="neither")],
        "balance": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        radius: float | Any = 1.0,
        *,
        solver: Any = "quasi-newton",
        margins: str | tuple[float, float] = "quantile",
        sigma: str | float = "auto",
        b: float = 1.0,
        balance: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.solver = solver
        self.margins = margins
        self.sigma = sigma
        self.b = b
        self.balance = balance
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _validate_params(self) -> None:
        super()._validate_params()
        as_solver(self.solver)._validate_params()

    def flat_parameters(self) -> dict[str, Any]:
        """Return the parameters and those of the solver in one dict, the solver by its name."""
        solver = as_solver(self.solver)
        own = {**self.get_params(deep=False), "solver": solver_name(solver)}
        return {**own, **solver.get_params()}

    @classmethod
    def from_flat(cls, parameters: dict[str, Any]) -> PairwiseWeights:
        """Return the learner with these :meth:`flat_parameters`; unknown ones are ignored."""
        kept = {
            name: parameters[name] for name in cls().get_params(deep=False) if name in parameters
        }
        kind = kept.get("solver", "quasi-newton")
        if isinstance(kind, str) and kind in SOLVER_KINDS:
            solver = SOLVER_KINDS[kind]()
            names = solver.get_params().keys() & parameters.keys()
            kept["solver"] = solver.set_params(**{name: parameters[name] for name in names})
        return cls(**kept)

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
        options = self.flat_parameters()
        options["n_jobs"] = effective_n_jobs(self.n_jobs)
        options["random_state"] = check_random_state(self.random_state).randint(2**31 - 1)
        self._keep(learn_weights(features, y, **options))
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
