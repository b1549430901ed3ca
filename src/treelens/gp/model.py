"""The fitted Gaussian process as one frozen thing, and where it may be believed.

A Gaussian process says how sure it is, but it takes the noise to be the same everywhere. Its own
leave-one-out errors tell where that is wrong: a new graph whose nearest training graphs were hard
to predict will be hard, too. So the error to expect is the predictive standard deviation, corrected
by how surprising the values of the nearest training graphs were,

    std * sqrt((3 + sum w z) / (3 + sum w)),      w = T²,   z = squared error left out / its mean

over the twenty nearest by the learned Tanimoto similarity ``T``. Nothing is fitted here; the limits
of what counts as inside are set by the training graphs themselves, each left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from treelens.array_checks import (
    LARGEST,
    check_array,
    check_classes_ascend,
    check_positions,
    check_positive,
)
from treelens.gp.covariates import FittedNumbers
from treelens.gp.landmarks import LandmarkPosterior
from treelens.gp.posterior import ExactPosterior, MeanPosterior, ScaledTargets
from treelens.graphs.collection import GraphCollection
from treelens.graphs.recipe import GraphRecipe
from treelens.kernels.base import SumKernel, Term
from treelens.kernels.gram import mirrored
from treelens.kernels.weighted import nearest_graphs
from treelens.models.predictions import (
    KernelExpansion,
    Predictions,
    Threshold,
    TrainingGraphs,
    calibrated,
)
from treelens.patterns.forest import PatternForest, RefinedGraphs, SeenGraphs
from treelens.patterns.histograms import (
    Features,
    GraphViews,
    PairFeatures,
    PatternHistograms,
)
from treelens.patterns.vocabulary import NodeColors

if TYPE_CHECKING:
    import pandas as pd

    from treelens.gp.device import DevicePredictor
    from treelens.gp.fitting import LearningGain

# Predictions are made for so many graphs at a time: their kernel rows are what takes memory.
_BLOCK = 2048
_LEAST = np.finfo(float).tiny
_LARGEST_LOG = 200.0  # of a weight
_N_NEIGHBOURS = 20
_DOUBT = 3.0  # so many neighbours' worth of trust in the standard deviation as it is
_MOST_COMPARED = 1000  # training graphs from which the part of covariates is computed
_MOST_LEFT_OUT = 500  # training graphs that limits are set by
_INSIDE = 0.975  # of them, by each of the two limits


@dataclass(frozen=True, eq=False)
class WeightedForest:
    """A forest of patterns with a weight for each, known or not."""

    forest: PatternForest
    log_weights: np.ndarray  # (n_patterns,) theta: deviations of a pattern and its ancestors, added
    level_weights: np.ndarray  # (n_levels,) beta: positive, one on average

    def validate(self) -> None:
        n, n_levels = self.forest.n_patterns, len(self.forest.levels)
        check_array(self.log_weights, "log_weights", np.float64, (n,), -_LARGEST_LOG, _LARGEST_LOG)
        check_array(self.level_weights, "level_weights", np.float64, (n_levels,), 0.0)
        check_array(self.weights, "weights", np.float64, (n,), 0.0, LARGEST)

    @cached_property
    def weights(self) -> np.ndarray:
        """``beta * exp(theta)``, shape (n_patterns,)."""
        per_pattern = np.repeat(self.level_weights, np.diff(self.forest.level_offsets))
        return per_pattern * np.exp(self.log_weights)

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> RefinedGraphs:
        """Refine graphs, count their patterns and make what the kernel needs of them."""
        colors = self.forest.transform(graphs, n_jobs)
        histograms = self.forest.count(colors)
        unseen = self.forest.unseen_sums(colors, self.log_weights, self.level_weights)
        return RefinedGraphs(colors, histograms, self.weighed(histograms, unseen))

    def extended(
        self, graphs: GraphCollection, n_jobs: int = 1
    ) -> tuple[WeightedForest, NodeColors]:
        """Return the forest with the patterns of these graphs added, and their colours.

        A new pattern has the weight of its deepest known ancestor, as in
        :meth:`PatternForest.unseen_sums`: the kernel with graphs seen before does not change.
        """
        forest, colors = self.forest.extend(graphs, n_jobs)
        log_weights = np.zeros(forest.n_patterns)
        for level in range(len(forest.level_depths)):
            start, stop = forest.level_offsets[level : level + 2]
            known = self.log_weights[slice(*self.forest.level_offsets[level : level + 2])]
            first_new = start + len(known)
            log_weights[start:first_new] = known
            above = forest.parents[first_new:stop]
            log_weights[first_new:stop] = np.where(above >= 0, log_weights[above], 0.0)
        return WeightedForest(forest, log_weights, self.level_weights), colors

    def weighed(
        self, histograms: PatternHistograms, unseen_sums: np.ndarray | float = 0.0
    ) -> Features:
        """What the kernel needs, from counts that are ready."""
        pairs = PairFeatures.of_counts(histograms)
        return Features.of(pairs, self.weights, unseen_sums)


@dataclass(frozen=True, eq=False)
class EvidenceRecord:
    """How a Gaussian process was fitted, and its predictions of its own training graphs."""

    learned: str  # "uniform", "depths" or "branches"
    history: pd.DataFrame  # stage, evidence, gradient_norm and n_evaluations after every step
    converged: bool
    learning_gain: LearningGain
    left_out: Any  # LeftOutNumbers or LeftOutClasses: each training graph from all the others

    def validate(self) -> None:
        if not len(self.history) or not np.isfinite(self.history["evidence"]).all():
            raise ValueError("the history must have a finite evidence in every row")

    @property
    def evidence(self) -> float:
        return float(self.history["evidence"].iloc[-1])


@dataclass(frozen=True, eq=False)
class FittedGP:
    """A Gaussian process after training: everything that predicting and explaining need."""

    __derived__ = ("basis",)

    weighted: WeightedForest  # the view that every model has
    kernel: SumKernel  # a term for the patterns, then one for the numbers if there are any
    noise: float  # variance, on the scale of the standardised targets
    # Graphs that predictions are sums over: all training graphs, or the landmarks.
    basis: PatternHistograms
    basis_indices: np.ndarray  # their positions among the training graphs
    # MeanPosterior is what a file keeps of an exact one; it is completed when variances need it.
    posterior: ExactPosterior | LandmarkPosterior | MeanPosterior
    target_offset: np.ndarray  # (n_columns,) targets are offset + scale * f
    target_scale: float
    # (n_basis,) the noise variance of a basis graph is divided by its weight; None of landmarks.
    sample_weights: np.ndarray | None = None
    classes: np.ndarray | None = None  # None where numbers are predicted
    slope: float | None = None  # of the logistic map from decision values to probabilities
    training: TrainingGraphs | None = None  # counts and targets of all training graphs
    recipe: GraphRecipe | None = None  # how they were made
    record: EvidenceRecord | None = None
    numbers: FittedNumbers | None = None  # a table of covariates and descriptors

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored model do not fit together."""
        if self.training is None or self.record is None:
            raise ValueError("training and record must be there")
        histograms, forest = self.training.histograms, self.weighted.forest
        n_graphs, n_basis = histograms.n_graphs, len(self.basis_indices)
        check_positions(self.basis_indices, "basis_indices", n_graphs)
        for name in ("level_offsets", "level_depths"):
            if not np.array_equal(getattr(histograms, name), getattr(forest, name)):
                raise ValueError("the histograms must count the patterns of the forest")
        if n_graphs < 2 or not n_basis or (self.training.n_in_all or n_graphs) < n_graphs:
            raise ValueError("there must be two training graphs or more, and some in the basis")
        if self.numbers is not None and len(self.numbers.training) != n_graphs:
            raise ValueError("covariates must have one row per training graph")
        if len(self.kernel.terms) != 1 + (self.numbers is not None):
            raise ValueError("the kernel must have a term for each view")
        if self.classes is not None:
            check_classes_ascend(self.classes)
        n_classes = 0 if self.classes is None else len(self.classes)
        n_columns = n_classes if n_classes > 2 else 1
        check_positive(self.noise, "noise")
        check_positive(self.target_scale, "target_scale")
        check_array(self.target_offset, "target_offset", np.float64, (n_columns,))
        posterior, targets, left_out = self.posterior, self.training.targets, self.record.left_out
        check_array(posterior.coefficients, "coefficients", np.float64, (n_basis, n_columns))
        if isinstance(posterior, LandmarkPosterior):
            check_array(posterior.precision_gain, "gain", np.float64, (n_basis, n_basis))
        elif self.sample_weights is None or n_basis != n_graphs:
            raise ValueError("an exact posterior needs all graphs and their weights")
        else:
            check_array(self.sample_weights, "weights", np.float64, (n_graphs,), _LEAST, LARGEST)
        if self.classes is None:
            check_array(targets, "targets", np.float64, (n_graphs,))
            if self.training.limits is not None:
                check_array(self.training.limits, "limits", np.int64, (n_graphs,), -1, 2)
            check_array(left_out.predictions, "predictions", np.float64, (n_graphs,))
            check_array(left_out.std, "std", np.float64, (n_graphs,), _LEAST, LARGEST)
            return
        check_array(targets, "targets", np.int64, (n_graphs,), 0, n_classes)
        check_positive(self.slope or 0.0, "slope")
        shape = (n_graphs, n_classes)
        check_array(left_out.probabilities, "probabilities", np.float64, shape, 0.0, 1.0 + 1e-9)
        check_array(left_out.decisions, "decisions", np.float64, shape[: 1 + (n_classes > 2)])
        if len(left_out.predictions) != n_graphs or (left_out.threshold and n_classes != 2):
            raise ValueError("leave-one-out predictions must be of the training graphs' classes")

    def to_stored(self) -> FittedGP:
        """Return the model without the largest part of its posterior that can be computed again."""
        posterior = self.posterior
        if isinstance(posterior, ExactPosterior):
            posterior = MeanPosterior(posterior.coefficients)
        elif isinstance(posterior, LandmarkPosterior):  # its matrix is symmetric
            posterior = replace(posterior, precision_gain=np.triu(posterior.precision_gain))
        return replace(self, posterior=posterior)

    def from_stored(self) -> FittedGP:
        """Return the model that :meth:`to_stored` wrote, with the histograms of its basis."""
        assert self.training is not None
        basis, posterior = self.training.histograms, self.posterior
        if isinstance(posterior, LandmarkPosterior):
            basis = basis.select_graphs(self.basis_indices)
            posterior = replace(posterior, precision_gain=mirrored(posterior.precision_gain.copy()))
        return replace(self, basis=basis, posterior=posterior)

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern, shape (n_patterns,)."""
        return self.weighted.weights

    @property
    def covariate_names(self) -> list[str]:
        """Columns of the table of numbers, descriptors among them."""
        return [] if self.numbers is None else self.numbers.table.names

    @property
    def patterns_term(self) -> Term:
        """The kernel of the patterns, with the variance that they explain."""
        return self.kernel.terms[0]

    @cached_property
    def basis_graphs(self) -> GraphViews:
        patterns = self.weighted.weighed(self.basis)
        if self.numbers is None:
            return GraphViews((patterns,))
        return GraphViews((patterns, self.numbers.training[self.basis_indices]))

    @property
    def training_graphs(self) -> GraphViews:
        """All training graphs, which the basis may be a part of."""
        assert self.training is not None
        histograms = self.training.histograms
        if self.basis.n_graphs == histograms.n_graphs:
            return self.basis_graphs
        patterns = self.weighted.weighed(histograms)
        if self.numbers is None:
            return GraphViews((patterns,))
        return GraphViews((patterns, self.numbers.training))

    @property
    def coefficients(self) -> np.ndarray:
        """What each basis graph adds per unit of kernel, in the targets' units: (n_columns, n)."""
        return self.target_scale * self.posterior.coefficients.T

    @cached_property
    def expansion(self) -> KernelExpansion:
        """The outputs as sums over the basis graphs, for explanations."""
        return KernelExpansion(
            self.weighted.forest,
            0,
            self.patterns_term,
            self.weights,
            self.basis_graphs,
            self.basis_indices,
            self.coefficients,
            self.target_offset,
            self.classes,
            self.refine,
            self._exact_factor,
        )

    def _exact_factor(self, n_jobs: int) -> np.ndarray | None:
        posterior = self._full_posterior(n_jobs)
        return posterior.factor if isinstance(posterior, ExactPosterior) else None

    def kernel_rows(self, graphs: GraphViews, n_jobs: int = 1) -> np.ndarray:
        """Kernel values with the basis graphs, shape (n_graphs, n_basis)."""
        return self.kernel.matrix(graphs, self.basis_graphs, n_jobs)

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the views of the model show them."""
        return SeenGraphs((self.weighted.refine(graphs, n_jobs), *self.numbers_of(graphs)))

    def numbers_of(self, graphs: GraphCollection) -> tuple[np.ndarray, ...]:
        """Return the numbers of graphs, where the model has a table of them."""
        return () if self.numbers is None else (self.numbers.table.encode(graphs),)

    def from_covariates(self, graphs: GraphViews) -> np.ndarray | None:
        """What covariates add to the means, shape (n_graphs, n_columns); None without any."""
        if self.numbers is None:
            return None
        rows = self.kernel.terms[1].matrix(graphs[1], self.basis_graphs[1])
        return rows @ self.coefficients.T

    def spreads_of_parts(self, n_jobs: int = 1) -> tuple[float, float] | None:
        """Standard deviations, over training graphs, of what structure and covariates add."""
        assert self.training is not None
        some = np.random.default_rng(0).permutation(self.training.histograms.n_graphs)
        graphs = self.training_graphs.select(some[:_MOST_COMPARED])
        added = self.from_covariates(graphs)  # (n, n_columns)
        if added is None:
            return None
        structure = self.kernel_rows(graphs, n_jobs) @ self.coefficients.T - added
        return float(structure.std(axis=0).mean()), float(added.std(axis=0).mean())

    def _full_posterior(self, n_jobs: int) -> ExactPosterior | LandmarkPosterior:
        """The posterior with all that variances need."""
        posterior = self.posterior
        if isinstance(posterior, MeanPosterior):
            assert self.sample_weights is not None
            among = self.kernel_rows(self.basis_graphs, n_jobs)
            posterior = posterior.completed(among, self.noise / self.sample_weights, n_jobs)
            object.__setattr__(self, "posterior", posterior)  # the same thing, with its factor
        return posterior

    @property
    def threshold(self) -> Threshold | None:
        """What a rare class is named by; None: the most probable class is named."""
        if self.classes is None or self.record is None:
            return None
        return self.record.left_out.threshold

    def decide(
        self,
        graphs: GraphCollection,
        *,
        variance: bool = False,
        n_jobs: int = 1,
        device: str = "cpu",
    ) -> Predictions:
        """Means of new graphs and, if asked for, variances: every graph is refined once."""
        seen = self.refine(graphs, n_jobs)
        found = []  # means and variances
        for block in view_blocks(seen.features, len(graphs)):
            if device != "cpu" and self.numbers is None:
                found.append(self._on_device(device).decide(block, variance))
                continue
            rows, spread = self.kernel_rows(block, n_jobs), np.empty(0)
            if variance:
                spread = self.variances(self._full_posterior(n_jobs).reduction(rows, n_jobs))
            found.append((self.target_offset + rows @ self.coefficients.T, spread))
        mean, spread = map(np.concatenate, zip(*found, strict=True))
        probabilities = None if self.slope is None else calibrated(mean, self.slope)
        return Predictions(
            mean,
            seen.patterns.histograms.out_of_vocabulary(),
            seen,
            mean,
            probabilities,
            spread if variance else None,
            self.threshold,
            self.from_covariates(seen.features),
        ).checked()

    def variances(self, reduction: np.ndarray) -> np.ndarray:
        """Of new measurements, from what the training graphs take off: shape (n_graphs,)."""
        left = np.maximum(self.kernel.variance - reduction, 0.0)
        return self.target_scale**2 * (left + self.noise)

    def targets_with(self, raw: np.ndarray, weights: np.ndarray) -> ScaledTargets:
        """Targets of all training graphs and more: ``raw`` of all, ``weights`` of those added."""
        before = np.empty(0) if self.sample_weights is None else self.sample_weights
        offset, scale, limits = self.target_offset, self.target_scale, None
        values = (raw - offset) / scale
        if self.training is not None and self.training.limits is not None:
            posterior = self._full_posterior(1)
            assert isinstance(posterior, ExactPosterior)
            values[: len(before)] = posterior.targets  # sites stay
            limits = np.concatenate([self.training.limits, np.zeros(len(weights), dtype=np.int64)])
        return ScaledTargets(values, offset, scale, np.concatenate([before, weights]), limits)

    def joint(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, n_columns) and the covariance of noise-free values (n, n) of all graphs."""
        rows = self.kernel_rows(self.refine(graphs, n_jobs).features, n_jobs)
        among = self.kernel_among(graphs, n_jobs=n_jobs)
        covariance = among - self._full_posterior(n_jobs).joint_reduction(rows, n_jobs)
        covariance = 0.5 * (covariance + covariance.T)
        np.fill_diagonal(covariance, np.maximum(np.diagonal(covariance), 0.0))
        return self.target_offset + rows @ self.coefficients.T, self.target_scale**2 * covariance

    def kernel_among(
        self, graphs: GraphCollection, others: GraphCollection | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Kernel values among any graphs, patterns that training never saw included."""
        weighted, colors = self.weighted.extended(graphs, n_jobs)
        sides = [(graphs, colors)]
        if others is not None:
            weighted, colors = weighted.extended(others, n_jobs)
            sides.append((others, colors))
        shown = [
            GraphViews((weighted.weighed(weighted.forest.count(found)), *self.numbers_of(some)))
            for some, found in sides
        ]
        return self.kernel.matrix(shown[0], shown[-1], n_jobs)

    def _on_device(self, device: str) -> DevicePredictor:
        """What predicts on a GPU, kept for the next block and the next call."""
        from treelens.gp.device import DevicePredictor

        kept = self.__dict__.get("_predictor")
        if kept is None or kept.device.name != device:
            kept = self.__dict__["_predictor"] = DevicePredictor(self, device)
        return kept


def view_blocks(views: GraphViews, n_graphs: int) -> Iterator[GraphViews]:
    """Yield graphs, a block at a time."""
    if n_graphs <= _BLOCK:
        yield views
        return
    for where in gen_batches(n_graphs, _BLOCK):
        yield views.select(np.arange(where.start, where.stop))


class Neighbourhood(NamedTuple):
    """Of each new graph."""

    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) to it, from 0 to 1
    surprise: np.ndarray  # (n_graphs,) of the nearest: 1 where they were as hard as usual


def expected_error(std: np.ndarray, around: Neighbourhood) -> np.ndarray:
    """Standard deviations corrected by how hard the neighbours were, shape (n_graphs,)."""
    return std * np.sqrt(around.surprise)


@dataclass(frozen=True, eq=False)
class Domain:
    """Where a model may be believed, by limits of what counts as inside."""

    model: FittedGP
    train: GraphViews  # all training graphs
    surprise: np.ndarray  # (n_train,) squared leave-one-out errors over their mean
    largest_error: float = np.inf  # to expect of a graph inside, in the units of the targets
    least_similarity: float = 0.0  # of a graph inside to the nearest training graph

    @classmethod
    def of(cls, model: FittedGP, residuals: np.ndarray, n_jobs: int = 1) -> Domain:
        """Set the limits by leave-one-out errors (n_train, n_columns)."""
        assert model.training is not None
        squares = (residuals**2).mean(axis=1)
        surprise = squares / max(float(squares.mean()), np.finfo(float).tiny)
        domain = cls(model, model.training_graphs, surprise)
        # How far off limits are is not known; landmarks are known too well to the posterior.
        able = np.arange(len(squares))[model.training.exact]
        if model.basis.n_graphs < len(squares):
            able = np.setdiff1d(able, model.basis_indices)
        left_out = np.sort(np.random.default_rng(0).permutation(able)[:_MOST_LEFT_OUT])
        some = domain.train.select(left_out)
        around = domain._around(some.patterns, n_jobs, left_out)
        expected = expected_error(left_out_std(model, some, left_out, n_jobs), around)
        return replace(
            domain,
            largest_error=float(np.quantile(expected, _INSIDE)),
            least_similarity=float(np.quantile(around.similarity, 1.0 - _INSIDE)),
        )

    def around(self, weighed: Features, n_jobs: int = 1) -> Neighbourhood:
        """Return the training graphs around new ones, by their patterns."""
        blocks = view_blocks(GraphViews((weighed,)), weighed.pairs.n_graphs)
        parts = [self._around(block.patterns, n_jobs) for block in blocks]
        return Neighbourhood(*map(np.concatenate, zip(*parts, strict=True)))

    def _around(
        self, some: Features, n_jobs: int, left_out: np.ndarray | None = None
    ) -> Neighbourhood:
        """``left_out``: the training graph that each one is, which is not its own neighbour."""
        near, alike = nearest_graphs(some, self.train.patterns, _N_NEIGHBOURS, left_out, n_jobs)
        weight = alike**2
        hard = _DOUBT + (weight * self.surprise[near]).sum(axis=1)
        return Neighbourhood(near[:, 0], alike[:, 0], hard / (_DOUBT + weight.sum(axis=1)))

    def holds(self, expected: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Which graphs are inside, shape (n_graphs,)."""
        return (expected <= self.largest_error) & (around.similarity >= self.least_similarity)


def left_out_std(
    model: FittedGP, some: GraphViews, left_out: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Standard deviations of new measurements of some training graphs, each left out."""
    posterior = model._full_posterior(n_jobs)
    if isinstance(posterior, ExactPosterior):
        units = np.zeros((len(left_out), len(posterior.factor)))
        units[np.arange(len(left_out)), left_out] = 1.0
        variance = 1.0 / posterior.reduction(units)  # one over the diagonal of the inverse
    else:  # one graph of many hardly moves a posterior through landmarks
        rows = model.kernel_rows(some, n_jobs)
        left = np.maximum(model.kernel.variance - posterior.reduction(rows), 0.0)
        variance = left + model.noise
    return model.target_scale * np.sqrt(variance)
