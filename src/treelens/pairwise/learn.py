"""Learning of pattern weights: pair features and labels in, learned weights out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from treelens._sklearn_compat import BaseEstimator, Interval, StrOptions
from treelens.array_checks import check_array, check_positive
from treelens.pairwise import solvers
from treelens.pairwise.objective import (
    CENTER,
    AllPairsObjective,
    BallConstraint,
    Margins,
    choose_margins,
    curvature_guess,
    largest_pair_norm,
)
from treelens.pairwise.solvers import SOLVER_KINDS, solver_name
from treelens.parallel import one_blas_thread, thread_count
from treelens.patterns.histograms import PairFeatures
from treelens.targets import Targets


@dataclass(frozen=True)
class LearnedWeights:
    """Weights of all patterns, with the record of the solver that found them."""

    weights: np.ndarray  # (n_patterns,)
    history: np.ndarray  # (n_checks,) objective at the start and after every iteration or check
    gaps: np.ndarray  # (n_checks,) bound of the distance to the optimum, relative to the objective
    converged: bool  # whether the last gap is within the tolerance
    n_iter: int  # iterations; stochastic: steps
    margins: Margins
    moved: np.ndarray  # (n_depths,) ||w_h - 1||_2 of every depth
    radii: np.ndarray  # (n_depths,)
    # max ||Z(i, j)||_2: the loss of a pair has this Lipschitz constant in the weights, and the
    # smoothness pair_norm ** 2 / sigma
    pair_norm: float
    solver: str  # the solver that ran; "none" where there was nothing to learn
    step_size: float | None = None  # of the stochastic solver

    def validate(self) -> None:
        check_positive(self.margins.sigma, "sigma")
        for name in ("weights", "moved", "radii"):
            check_array(getattr(self, name), name, np.float64, (None,), 0.0)
        for name in ("history", "gaps"):
            check_array(getattr(self, name), name, np.float64, (None,))
        if len(self.moved) != len(self.radii) or min(self.pair_norm, self.step_size or 0.0) < 0:
            raise ValueError("moved and radii must be of the same length, norm and step positive")


class PairwiseWeights(BaseEstimator):
    """Learn one weight per pattern from pairs of labelled graphs.

    Pass it as ``weights=`` to a Weisfeiler-Lehman kernel, or fit it on pair features directly.
    Weights stay within ``radius`` of 1 (the plain kernel), so that on average over pairs graphs of
    different classes are farther apart than ``alpha1`` and those of one class closer than
    ``alpha2``. The problem is convex; ``gaps_`` bounds the distance to its optimum.

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
        Width of the smoothing of the hinges; ``"auto"``: by the spread of the distances.
    b : float, default=1.0
        Offset of the distance ``b - <W, Z>``.
    balance : bool, default=True
        Whether pairs with the same label and with different labels weigh one half each.
    n_jobs : int or None, default=None
        Threads, by default all processors. The weights are the same for every number of them.
    random_state : int, RandomState or None, default=None
        Seed of the stochastic solver.

    Attributes
    ----------
    weights_ : ndarray, shape (n_patterns,)
    history_, gaps_ : ndarray
        Objective, and relative duality gap, at the start and after every iteration.
    converged_, n_iter_ : bool, int
    result_ : LearnedWeights
        All of the above, and the margins and constants that were used.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> kernel = tl.WLSubtree(depth=1, weights=tl.PairwiseWeights(radius=0.5)).fit(graphs, y)
    >>> kernel.learner_.converged_
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
        solver: object = "quasi-newton",
        margins: str | tuple[float, float] = "quantile",
        sigma: str | float = "auto",
        b: float = 1.0,
        balance: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
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
        self.used_solver()._validate_params()
        margins = self.margins
        if not isinstance(margins, str) and not (len(margins) == 2 and margins[0] >= margins[1]):
            raise ValueError(
                f"margins must be 'quantile' or (alpha1, alpha2) with alpha1 >= alpha2, got "
                f"{margins!r}: different classes should be farther apart than equal ones."
            )

    def used_solver(self) -> Any:
        """Return the solver, one with default settings where only its name is given."""
        return SOLVER_KINDS[self.solver]() if isinstance(self.solver, str) else self.solver

    def flat_parameters(self) -> dict[str, Any]:
        """Return the parameters and those of the solver in one dict, the solver by its name."""
        solver = self.used_solver()
        own = {**self.get_params(deep=False), "solver": solver_name(solver)}
        return {**own, **solver.get_params()}

    @classmethod
    def from_flat(cls, parameters: dict[str, Any]) -> PairwiseWeights:
        """Return the learner with these :meth:`flat_parameters`; unknown ones are ignored."""
        parameters = dict(parameters)  # files may have something else
        own = cls().get_params(deep=False).keys() & parameters.keys()
        learner = cls(**{name: parameters[name] for name in own})
        if learner.solver in SOLVER_KINDS:
            learner.solver = solver = learner.used_solver()
            names = solver.get_params().keys() & parameters.keys()
            solver.set_params(**{name: parameters[name] for name in names})
        return learner

    def fit(self, features: PairFeatures, y: object) -> PairwiseWeights:
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
        self._validate_params()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return self._keep(_learned(self, features, y, seed))

    def _keep(self, result: LearnedWeights) -> PairwiseWeights:
        self.result_ = result
        self.weights_, self.history_, self.gaps_ = result.weights, result.history, result.gaps
        self.converged_, self.n_iter_ = result.converged, result.n_iter
        return self

    def radii(self, n_depths: int) -> np.ndarray:
        """Return one radius per depth, checked."""
        radii = np.atleast_1d(np.asarray(self.radius, dtype=np.float64))
        fits = radii.ndim == 1 and len(radii) in (1, n_depths)
        if not fits or not np.isfinite(radii).all() or (radii < 0).any():
            raise ValueError(
                f"radius must be one number or one per depth ({n_depths}), finite and not "
                f"negative, got {self.radius!r}."
            )
        return np.broadcast_to(radii, (n_depths,)).copy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.target_tags.required = True
        return tags


def learn_weights(features: PairFeatures, y: object, **options: Any) -> LearnedWeights:
    """Learn one weight per pattern, by a learner with these :meth:`flat_parameters`.

    Unlike :meth:`PairwiseWeights.fit`, the stochastic solver draws by ``random_state`` itself.
    """
    learner = PairwiseWeights.from_flat(options)
    learner._validate_params()
    return _learned(learner, features, y, learner.random_state)


def _learned(
    learner: PairwiseWeights,
    features: PairFeatures,
    y: object,
    seed: int | np.random.RandomState | None,
) -> LearnedWeights:
    # Graphs of different classes should be far apart under `d = b - <W, Z>`, graphs of one class
    # close. The objective, a weighted mean of smoothed hinges over pairs, is convex.
    radii = learner.radii(len(features.level_offsets) - 1)
    codes = Targets.of(y, features.n_graphs).classes()[1]
    if np.bincount(codes).max() < 2:
        warnings.warn(
            f"No two of the {len(codes)} graphs share a label: weights are learned from pairs of "
            "different classes alone.",
            stacklevel=2,
        )
    n_jobs, uniform = thread_count(learner.n_jobs), np.full(features.n_patterns, CENTER)
    margins = choose_margins(features, learner.margins, learner.sigma, learner.b, n_jobs)
    pair_norm = largest_pair_norm(features)
    shared = (np.diff(features.lists.offsets) >= 2).any()
    if radii.any() and not shared:
        warnings.warn(
            "Nothing to learn: no two graphs share a pattern. The weights stay uniform; a smaller "
            "depth gives patterns that graphs share.",
            stacklevel=2,
        )
    if not radii.any() or not shared:
        return LearnedWeights(
            uniform,
            np.zeros(0),
            np.zeros(0),
            True,
            0,
            margins,
            np.zeros(len(radii)),
            radii,
            pair_norm,
            "none",
        )
    objective = AllPairsObjective(features, codes, margins, learner.balance, n_jobs)
    constraint = BallConstraint(features.level_offsets, radii)
    solver, step_size = learner.used_solver(), None
    # The vectors are short: more BLAS threads would only wait for each other. And with one the
    # sums do not depend on the machine.
    with one_blas_thread():
        if isinstance(solver, solvers.StochasticGradient):
            step_size = solver.step_size
            if step_size is None:  # the first steps cross the ball
                step_size = float(radii.max()) / max(pair_norm, np.finfo(float).tiny)
            weights, record, n_iter = solvers.stochastic_gradient(
                objective, constraint, solver, step_size, seed
            )
        else:
            evaluate = objective.value_and_gradient
            record = solvers.Minimization(evaluate, constraint, solver.tol, solver.max_iter)
            if isinstance(solver, solvers.ProjectedGradient):
                weights = solvers.projected_gradient(record, uniform, solver.step_size)
            else:
                metric = curvature_guess(features)
                weights = solvers.projected_quasi_newton(record, uniform, metric)
            n_iter = len(record.values) - 1
    moved = [np.linalg.norm(w - CENTER) for w in np.split(weights, features.level_offsets[1:-1])]
    if record.gaps and not record.converged:
        limit = "max_iter" if step_size is None else "n_steps"
        warnings.warn(
            f"{type(solver).__name__} stopped after {n_iter} iterations at a relative gap of "
            f"{record.gaps[-1]:.2g}, above tol={solver.tol:g}: raise its {limit}, or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return LearnedWeights(
        weights,
        np.array(record.values),
        np.array(record.gaps),
        record.converged,
        n_iter,
        margins,
        np.array(moved),
        radii,
        pair_norm,
        solver_name(solver),
        step_size,
    )
