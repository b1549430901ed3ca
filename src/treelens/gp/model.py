"""The fitted Gaussian process as one frozen thing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from treelens.array_checks import (
    LARGEST,
    Columns,
    check_array,
    check_classes_ascend,
    check_positions,
    check_positive,
)
from treelens.gp.domain import domain_of
from treelens.gp.landmarks import LandmarkPosterior
from treelens.gp.posterior import ExactPosterior, MeanPosterior, ScaledTargets, class_columns
from treelens.gp.search import REFINE_MANY
from treelens.gp.views import (
    CovariateTable,
    FittedView,
    NumbersTable,
    WeightedPatterns,
    select_stored,
    shown_by,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, GraphRecipe
from treelens.kernels.base import SumKernel, Term
from treelens.kernels.gram import mirrored
from treelens.models.domain import Domain
from treelens.models.fitted import ComparedWeights, FittedModel, HeldOut, Learning, SearchEnd
from treelens.models.predictions import (
    CountedPart,
    KernelExpansion,
    NumbersPart,
    Predictions,
    Threshold,
    TrainingGraphs,
    calibrated,
)
from treelens.parallel import working_on
from treelens.patterns.forest import SeenGraphs
from treelens.patterns.histograms import GraphViews, ViewData

if TYPE_CHECKING:
    from treelens.gp.device import DevicePredictor
    from treelens.gp.fitting import LearningGain

_LEAST = np.finfo(float).tiny
_KINDS_OF_WEIGHTS = {
    "uniform": "uniform weights at the best depth",
    "depths": "one weight per depth",
    "branches": "a weight per pattern",
}
# Rounding the factor changes standard deviations by some 2e-8 times the variance over the noise
# (8,000 molecules: 7e-6 where that is 300, 7 % where it is three million).
_MOST_ROUNDED = 1e4
_MOST_COMPARED = 1000  # training graphs from which the part of covariates is computed


@dataclass(frozen=True, eq=False)
class EvidenceRecord:
    """How a Gaussian process was fitted, and its predictions of its own training graphs."""

    learned: str  # "uniform", "depths" or "branches"
    history: Columns  # stage, evidence, gradient_norm and n_evaluations after every step
    converged: bool
    learning_gain: LearningGain
    left_out: Any  # LeftOutNumbers or LeftOutClasses: each training graph from all the others

    def validate(self) -> None:
        if not self.history.n_rows or not np.isfinite(self.history["evidence"]).all():
            raise ValueError("the history must have a finite evidence in every row")

    @property
    def evidence(self) -> float:
        return float(self.history["evidence"][-1])


@dataclass(frozen=True, eq=False)
class FittedGP(FittedModel):
    """A Gaussian process after training: everything that predicting and explaining need."""

    method: ClassVar = "gp"
    has_variance: ClassVar = True
    has_joint: ClassVar = True

    views: tuple[FittedView, ...]  # Weisfeiler-Lehman patterns first
    kernel: SumKernel  # a term for each view
    noise: float  # variance, on the scale of the standardised targets
    # Positions of the training graphs that predictions are sums over: of all, or the landmarks.
    basis_indices: np.ndarray
    # MeanPosterior is what a file keeps of an exact one; it is completed when variances need it.
    posterior: ExactPosterior | LandmarkPosterior | MeanPosterior
    target_offset: np.ndarray  # (n_columns,) targets are offset + scale * f
    target_scale: float
    # (n_basis,) the noise variance of a basis graph is divided by its weight; None of landmarks.
    sample_weights: np.ndarray | None = None
    classes: np.ndarray | None = None  # None where numbers are predicted
    slope: float | None = None  # of the logistic map from decision values to probabilities
    recipe: GraphRecipe | None = None  # how the training graphs were made
    # Counts and targets of all training graphs, and how the model was fitted: known at the end of
    # a fit, before anybody else sees the model.
    training: TrainingGraphs = None  # type: ignore[assignment]
    record: EvidenceRecord = None  # type: ignore[assignment]

    def validate(self) -> None:
        """Raise ``ValueError`` where the parts of a stored model do not fit together."""
        n_graphs, n_basis = len(self.training.targets), len(self.basis_indices)
        check_positions(self.basis_indices, "basis_indices", n_graphs)
        stored = self.training.views
        if not len(self.views) == len(stored) == len(self.kernel.terms) > 0:
            raise ValueError("each view must have a term of the kernel, and training graphs")
        for view, own in zip(self.views, stored, strict=True):
            view.check_stored(own, n_graphs)
        if n_graphs < 2 or not n_basis or (self.training.n_in_all or n_graphs) < n_graphs:
            raise ValueError("there must be two training graphs or more, and some in the basis")
        if self.classes is not None:
            check_classes_ascend(self.classes)
        n_classes = 0 if self.classes is None else len(self.classes)
        n_columns = n_classes if n_classes > 2 else 1
        check_positive(self.noise, "noise")
        check_positive(self.target_scale, "target_scale")
        check_array(self.target_offset, "target_offset", np.float64, (n_columns,))
        posterior, targets, left_out = self.posterior, self.training.targets, self.record.left_out
        check_array(posterior.coefficients, "coefficients", np.float64, (n_basis, n_columns))
        if isinstance(posterior, MeanPosterior) and posterior.rounded is not None:
            size = n_basis * (n_basis + 1) // 2
            check_array(posterior.rounded, "rounded factor", np.float32, (size,), -LARGEST, LARGEST)
        if isinstance(posterior, LandmarkPosterior):
            check_array(posterior.precision_gain, "gain", np.float64, (n_basis, n_basis))
        elif self.sample_weights is None or n_basis != n_graphs:
            raise ValueError("an exact posterior needs all graphs and their weights")
        else:
            check_array(self.sample_weights, "weights", np.float64, (n_graphs,), _LEAST, LARGEST)
        if self.classes is None:
            check_array(targets, "targets", np.float64, (n_graphs,), -LARGEST, LARGEST)
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
            posterior = MeanPosterior.of(posterior, with_factor=False)
        elif isinstance(posterior, LandmarkPosterior):  # its matrix is symmetric
            posterior = replace(posterior, precision_gain=np.triu(posterior.precision_gain))
        return replace(self, posterior=posterior)

    def with_rounded_factor(self, n_jobs: int = 1) -> FittedGP:
        """Return the model with a factor that its file keeps, so that variances need no new one."""
        posterior = self.full_posterior(n_jobs)
        if not isinstance(posterior, ExactPosterior):  # through landmarks: it is kept anyway
            return self
        assert self.sample_weights is not None
        noise = self.noise / float(self.sample_weights.max())
        if self.kernel.variance > _MOST_ROUNDED * noise:
            warnings.warn(
                f"The noise is so small ({noise / self.kernel.variance:.1g} of the variance) that "
                "rounding would change standard deviations: the file has no factor for them, and "
                "the loaded model computes it when it is first asked for them.",
                UserWarning,
                stacklevel=3,
            )
            return self
        return replace(self, posterior=MeanPosterior.of(posterior, with_factor=True))

    def from_stored(self) -> FittedGP:
        """Return the model that :meth:`to_stored` wrote."""
        posterior = self.posterior
        if isinstance(posterior, LandmarkPosterior):
            posterior = replace(posterior, precision_gain=mirrored(posterior.precision_gain.copy()))
        return replace(self, posterior=posterior)

    @property
    def patterns(self) -> WeightedPatterns:
        """The view of Weisfeiler-Lehman patterns."""
        return self.views[0]  # type: ignore[return-value]

    @property
    def weights(self) -> np.ndarray:
        """One weight per pattern, shape (n_patterns,)."""
        return self.patterns.weights

    @cached_property
    def tables(self) -> dict[int, CovariateTable]:
        """The tables of numbers, by their positions among the views."""
        pairs = enumerate(self.views)
        return {k: view.table for k, view in pairs if isinstance(view, NumbersTable)}

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """Columns of the tables of numbers, (n_graphs,) each, for the training graphs."""
        columns: dict[str, np.ndarray] = {}
        for k, table in self.tables.items():
            columns |= table.decode(np.asarray(self.training.views[k]))
        return columns

    @property
    def view_names(self) -> list[str]:
        names = [view.name for view in self.views]
        again = [names[:k].count(name) for k, name in enumerate(names)]
        return [name + (f" {n + 1}" if n else "") for name, n in zip(names, again, strict=True)]

    @property
    def keyed_tables(self) -> list[tuple[str, str]]:
        return [(v.title, v.on) for v in self.views if isinstance(v, NumbersTable) and v.on]

    @property
    def given_columns(self) -> list[str]:
        given = [v.table for v in self.views if isinstance(v, NumbersTable) and v.on is None]
        names = [name for table in given for name in table.names]
        return [name for name in names if not name.startswith(DESCRIPTOR_PREFIX)]

    @property
    def covariate_names(self) -> list[str]:
        """Columns of the tables of numbers, descriptors among them."""
        return [name for table in self.tables.values() for name in table.names]

    @property
    def patterns_term(self) -> Term:
        """The kernel of the patterns, with the variance that they explain."""
        return self.kernel.terms[0]

    @cached_property
    def basis_graphs(self) -> GraphViews:
        """The training graphs that predictions are sums over, in all views."""
        stored = self.training.views
        if len(self.basis_indices) < len(self.training.targets):
            stored = tuple(select_stored(own, self.basis_indices) for own in stored)
        return shown_by(self.views, stored)

    @property
    def training_graphs(self) -> GraphViews:
        """All training graphs, which the basis may be a part of."""
        if len(self.basis_indices) == len(self.training.targets):
            return self.basis_graphs
        return shown_by(self.views, self.training.views)

    @property
    def coefficients(self) -> np.ndarray:
        """What each basis graph adds per unit of kernel, in the targets' units: (n_columns, n)."""
        return self.target_scale * self.posterior.coefficients.T

    @cached_property
    def expansion(self) -> KernelExpansion:
        """The outputs as sums over the basis graphs, for explanations."""
        terms = enumerate(zip(self.views, self.kernel.terms, strict=True))
        parts = tuple(
            CountedPart(k, view.source, 0, term, view.weights)
            for k, (view, term) in terms
            if isinstance(view, WeightedPatterns)
        )
        return KernelExpansion(
            parts,
            self.basis_graphs,
            self.basis_indices,
            self.coefficients,
            self.target_offset,
            self.classes,
            self.refine,
            self._exact_factor,
            tuple(NumbersPart(k, self.kernel.terms[k], table) for k, table in self.tables.items()),
        )

    def _exact_factor(self, n_jobs: int) -> np.ndarray | None:
        posterior = self.full_posterior(n_jobs)
        return posterior.factor if isinstance(posterior, ExactPosterior) else None

    def kernel_rows(self, graphs: GraphViews, n_jobs: int = 1) -> np.ndarray:
        """Kernel values with the basis graphs, shape (n_graphs, n_basis)."""
        return self.kernel.matrix(graphs, self.basis_graphs, n_jobs)

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
        """Return graphs as the views of the model show them."""
        return SeenGraphs(tuple(view.refine(graphs, n_jobs) for view in self.views))

    def part_of(self, view: int, graphs: GraphViews, n_jobs: int = 1) -> np.ndarray:
        """Return what one view adds to the means of graphs, shape (n_graphs, n_columns)."""
        rows = self.kernel.terms[view].matrix(graphs[view], self.basis_graphs[view], n_jobs)
        return rows @ self.coefficients.T

    def from_covariates(self, graphs: GraphViews) -> np.ndarray | None:
        """What numbers add to the means, shape (n_graphs, n_columns); None without any."""
        parts = [self.part_of(k, graphs) for k in self.tables]
        return np.sum(parts, axis=0) if parts else None

    def parts(self, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """Return what each view adds to the means of a sample of the training graphs, by name."""
        some = np.random.default_rng(0).permutation(len(self.training.targets))
        graphs = self.training_graphs.select(some[:_MOST_COMPARED])
        views = enumerate(self.view_names)
        return {name: self.part_of(k, graphs, n_jobs) for k, name in views}

    def shares(self, n_jobs: int = 1) -> dict[str, float]:
        """Return the variance of each view's part over the sum of these variances, by name."""
        found = {name: float(x.var(axis=0).mean()) for name, x in self.parts(n_jobs).items()}
        total = sum(found.values())
        return {name: x / total if total > 0 else 0.0 for name, x in found.items()}

    def spreads_of_parts(
        self, n_jobs: int = 1, descriptors: bool = True
    ) -> tuple[float, float] | None:
        """Standard deviations, over training graphs, of what structure and numbers add."""
        tables = [
            k
            for k, table in self.tables.items()
            if descriptors or not all(name.startswith(DESCRIPTOR_PREFIX) for name in table.names)
        ]
        if not tables:
            return None
        parts = self.parts(n_jobs)
        added = np.sum([parts.pop(self.view_names[k]) for k in tables], axis=0)
        structure = np.sum(list(parts.values()), axis=0)
        return float(structure.std(axis=0).mean()), float(added.std(axis=0).mean())

    def full_posterior(
        self, n_jobs: int = 1, rounded: bool = False
    ) -> ExactPosterior | LandmarkPosterior:
        """Return the posterior with all that variances need, completed when first asked for.

        ``rounded``: a rounded factor will do.
        """
        posterior = self.posterior
        if not isinstance(posterior, MeanPosterior):
            return posterior
        if rounded and posterior.unpacked is not None:
            return posterior.unpacked
        if "_completed" not in self.__dict__:  # as cached_property keeps what it computes
            assert self.sample_weights is not None
            among = self.kernel_rows(self.basis_graphs, n_jobs)
            noise = self.noise / self.sample_weights
            self.__dict__["_completed"] = posterior.completed(among, noise, n_jobs)
        completed: ExactPosterior = self.__dict__["_completed"]
        return completed

    @property
    def threshold(self) -> Threshold | None:
        """What a rare class is named by; None: the most probable class is named."""
        if self.classes is None:
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
        n_done = 0
        for block in seen.features.blocks():
            if n_done:
                working_on(f"{n_done:,} of {len(graphs):,} graphs predicted")
            n_done += block.patterns.pairs.n_graphs
            if device != "cpu" and len(self.views) == 1:
                found.append(self._on_device(device).decide(block, variance))
                continue
            rows, spread = self.kernel_rows(block, n_jobs), np.empty(0)
            if variance:
                posterior = self.full_posterior(n_jobs, rounded=True)
                noisy = self.kernel.variance <= _MOST_ROUNDED * self.noise
                prior = self.kernel.variance if noisy else None
                spread = self.variances(posterior.reduction(rows, n_jobs, prior))
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

    # --- how it was fitted ----------------------------------------------------------------------

    @property
    def held_out(self) -> HeldOut:
        found = self.record.left_out
        every = np.ones(len(found.predictions), dtype=bool)
        if self.classes is None:
            return HeldOut("leave-one-out", every, found.predictions, found.std)
        codes = np.searchsorted(self.classes, found.predictions)
        decisions = found.decisions.reshape(len(every), -1)
        return HeldOut("leave-one-out", every, codes, None, found.probabilities, decisions)

    def domain(self, n_jobs: int = 1) -> Domain:
        """Return where the model may be believed, computed when first asked for."""
        if "_domain" not in self.__dict__:
            self.__dict__["_domain"] = domain_of(self, self.left_out_errors(), n_jobs)
        found: Domain = self.__dict__["_domain"]
        return found

    def left_out_errors(self) -> np.ndarray:
        """Return leave-one-out errors of the training graphs, shape (n_graphs, n_columns)."""
        found, training = self.held_out, self.training
        if self.classes is not None:
            assert found.decisions is not None
            return class_columns(training.targets, len(self.classes)) - found.decisions
        errors = training.targets - found.predicted
        if training.limits is not None:
            errors[training.limits * errors < 0] = 0.0  # a limit that holds is no error
        return errors[:, None]

    @property
    def learning(self) -> Learning:
        gain, used = self.record.learning_gain, self.record.learned
        compared = [
            ComparedWeights(_KINDS_OF_WEIGHTS[kind], score, kind == used)
            for kind, score in gain.compared.items()
        ]
        measure = "mean log predictive density" if self.classes is None else "mean log probability"
        view = self.patterns
        levels = zip(view.source.level_names, view.level_weights.tolist(), strict=True)
        differ = len(set(view.level_weights.tolist())) > 1
        sentence = gain.sentence.removeprefix("Used: ")
        return Learning(used, sentence, measure, tuple(compared), dict(levels) if differ else {})

    @property
    def search_end(self) -> SearchEnd:
        n_steps = self.record.history.n_rows
        return SearchEnd(self.record.converged, n_steps, n_steps >= REFINE_MANY, "max_steps")

    def settings(self) -> dict[str, Any]:
        term = self.patterns_term
        return {
            **term.kernel.values,
            "amplitude": float(self.target_scale * np.sqrt(term.amplitude)),
            "noise": float(self.target_scale * np.sqrt(self.noise)),
            "weights": self.record.learned,
            "depth": int(self.patterns.source.level_depths.max()),
            "log_marginal_likelihood": self.record.evidence,
        }

    # --- variances and covariances --------------------------------------------------------------

    def variances(self, reduction: np.ndarray) -> np.ndarray:
        """Of new measurements, from what the training graphs take off: shape (n_graphs,)."""
        left = np.maximum(self.kernel.variance - reduction, 0.0)
        return self.target_scale**2 * (left + self.noise)

    def targets_with(self, raw: np.ndarray, weights: np.ndarray) -> ScaledTargets:
        """Targets of all training graphs and more: ``raw`` of all, ``weights`` of those added."""
        before = np.empty(0) if self.sample_weights is None else self.sample_weights
        offset, scale, limits = self.target_offset, self.target_scale, None
        values = (raw - offset) / scale
        if self.training.limits is not None:
            posterior = self.full_posterior(1)
            assert isinstance(posterior, ExactPosterior)
            values[: len(before)] = posterior.targets  # sites stay
            limits = np.concatenate([self.training.limits, np.zeros(len(weights), dtype=np.int64)])
        return ScaledTargets(values, offset, scale, np.concatenate([before, weights]), limits)

    def joint(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, n_columns) and the covariance of noise-free values (n, n) of all graphs."""
        rows = self.kernel_rows(self.refine(graphs, n_jobs).features, n_jobs)
        among = self.kernel_among(graphs, n_jobs=n_jobs)
        covariance = among - self.full_posterior(n_jobs).joint_reduction(rows, n_jobs)
        covariance = 0.5 * (covariance + covariance.T)
        np.fill_diagonal(covariance, np.maximum(np.diagonal(covariance), 0.0))
        return self.target_offset + rows @ self.coefficients.T, self.target_scale**2 * covariance

    @property
    def kernel_scale(self) -> float:
        """What kernel values are multiplied by to be in squared units of the targets."""
        return self.target_scale**2

    def kernel_of_each(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        """Kernel values of graphs with themselves, shape (n_graphs,)."""
        return np.full(len(graphs), self.kernel.variance)

    def kernel_among(
        self, graphs: GraphCollection, others: GraphCollection | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Kernel values among any graphs, patterns that training never saw included."""
        sides = [graphs] if others is None else [graphs, others]
        shown: list[list[ViewData]] = [[] for _ in sides]
        for view in self.views:
            wider = view
            for some in sides:
                wider, _ = wider.extended(some, n_jobs)
            for side, some in zip(shown, sides, strict=True):
                side.append(wider.data(wider.extended(some, n_jobs)[1]))
        return self.kernel.matrix(GraphViews(shown[0]), GraphViews(shown[-1]), n_jobs)

    def _on_device(self, device: str) -> DevicePredictor:
        """What predicts on a GPU, kept for the next block and the next call."""
        from treelens.gp.device import DevicePredictor

        kept = self.__dict__.get("_predictor")
        if kept is None or kept.device.name != device:
            kept = self.__dict__["_predictor"] = DevicePredictor(self, device)
        return kept
