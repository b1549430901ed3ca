"""What estimators by a Gaussian process share: patterns, evidence, prediction, explanation."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import Interval, StrOptions
from treelens.estimators.posterior import PosteriorEstimator
from treelens.gp.blocks import posterior_of_blocks, sample_of_blocks
from treelens.gp.choice import FEWEST, TrainingData
from treelens.gp.conditioning import starting_weights, with_known_noise
from treelens.gp.covariates import CovariateTable, compact_descriptors, with_covariates
from treelens.gp.device import check_device
from treelens.gp.executors import check_executor
from treelens.gp.fitting import (
    Described,
    FittedEvidence,
    evidence_history,
    fit_gaussian_process,
)
from treelens.gp.leave_one_out import LearningGain, learning_gain
from treelens.gp.model import EvidenceRecord, FittedGP
from treelens.gp.posterior import LeaveOneOut, Targets
from treelens.gp.sampling import LearningSample, check_memory, landmarks_for, sample_for
from treelens.graphs.blocks import check_beside_blocks, holds_blocks
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.graphs.descriptors import PREFIX
from treelens.kernels.device import device_or_cpu
from treelens.models.predictions import Predictions
from treelens.models.targets import check_numbers, check_weights
from treelens.models.thresholds import has_rare_class
from treelens.models.training import TrainingGraphs
from treelens.patterns.forest import TREES, PatternForest, usual_trees
from treelens.patterns.histograms import PatternHistograms
from treelens.progress import progress_ticks

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from typing_extensions import Self


_MAX_DEPTH = 4  # of patterns where the depth is chosen
_EXACT_SIZE = 12_000  # graphs of which the posterior is exact by default


class TrainingTargets(NamedTuple):
    """Targets of the training graphs, as given and standardised."""

    given: np.ndarray  # (n_graphs,) values, or class codes
    groups: np.ndarray  # (n_graphs,) what samples are drawn from: tenths of values, or classes
    targets: Targets
    classes: np.ndarray | None = None


class GaussianProcessEstimator(PosteriorEstimator):
    """The regressor and the classifier, but for what ``y`` means and how it is scored."""

    model_: FittedGP
    depth: int | str
    weights: str
    descriptors: bool | str
    attributes: str
    trees: Any
    prior_strength: float
    learning_size: int
    exact_size: int
    n_landmarks: int
    max_steps: int
    device: str
    random_state: Any
    progress: bool | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "depth": [StrOptions({"auto"}), Interval(Integral, 0, 20, closed="both")],
        "weights": [StrOptions({"auto", "uniform", "depths", "branches"})],
        "descriptors": [StrOptions({"auto"}), "boolean"],
        "attributes": [StrOptions({"auto", "ignore"})],
        "trees": [StrOptions({"auto"}), list, tuple],
        "prior_strength": [Interval(Real, 0, None, closed="neither")],
        "learning_size": [Interval(Integral, 2, None, closed="left")],
        "exact_size": [Interval(Integral, 2, None, closed="left")],
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        depth: int | str = "auto",
        weights: str = "auto",
        *,
        descriptors: bool | str = "auto",
        attributes: str = "auto",
        trees: Any = "auto",
        prior_strength: float = 30.0,
        learning_size: int = 3000,
        exact_size: int = _EXACT_SIZE,
        n_landmarks: int = 3000,
        max_steps: int = 100,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool | None = None,
    ) -> None:
        self._keep_parameters(locals())

    def _keep_parameters(self, given: dict[str, Any]) -> None:
        """Store the parameters of ``__init__``, whose ``locals()`` are given."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def _training_targets(self, y: Any, weights: np.ndarray) -> TrainingTargets:
        """Check and standardise ``y``; ``weights`` are those of the graphs."""
        raise NotImplementedError

    def _targets_with_more(self, y: Any, weights: np.ndarray) -> TrainingTargets:
        """Targets of the training graphs followed by ``y``, on the scale of the former."""
        raise NotImplementedError

    def _scored(self, left_out: LeaveOneOut, known: TrainingTargets) -> tuple[Any, float | None]:
        """Leave-one-out predictions with their scores, and the slope of the probabilities."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        covariates: Any = None,
        executor: Any = None,
        limits: Any = None,
        noise: Any = None,
    ) -> Self:
        """Learn the weights and condition on the targets.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
            Or blocks of more graphs than fit into memory, such as
            :class:`treelens.graphs.blocks.SmilesBlocks`, with their targets in them. They are read
            twice: for a sample of ``exact_size`` graphs, which everything but the posterior comes
            from (patterns, weights, landmarks, leave-one-out scores), and for the posterior, which
            is that of all graphs.
        y : array-like, shape (n_graphs,)
            Numbers for a regressor, classes of any kind for a classifier. None with blocks.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight. None with blocks. Where errors
            are known, use ``noise``.
        covariates : names, table or array of one row per graph, optional
            What else is known of each graph (assay, temperature, descriptors): names of columns
            that ``graphs.graph_data`` holds, a DataFrame, or an array; ``"rdkit"`` is all of
            RDKit's descriptors. Numbers are standardised, texts are classes. They have a kernel of
            their own, added to that of the graphs; evidence decides how much it says. Learned on a
            CPU only; not with blocks.
        executor : executor, optional
            With blocks: where they are read and worked on, such as
            :class:`treelens.gp.executors.JoblibExecutor` (processes here) or
            :class:`treelens.gp.executors.DaskExecutor` (a cluster). The model is the same,
            bit for bit.
        limits : array-like, shape (n_graphs,), optional
            Of a regressor: ``">"`` (or 1) where the value is known only to lie above ``y``, ``"<"``
            (or -1) where it lies below, ``"="`` (or 0) where ``y`` is the value. By default what
            :func:`treelens.read_table` found beside the graphs, else all values are exact. On a
            CPU only; not with blocks.
        noise : array-like, shape (n_graphs,), optional
            Of a regressor: standard deviations of the measurements, in the units of ``y``; NaN
            stands for their median. The noise variance of a graph is this known one plus a common
            one that is learned. By default what :func:`treelens.read_table` found beside the
            graphs (a column ``noise``, or replicates that were merged). On a CPU only; not with
            blocks, nor with ``sample_weight``.
        """
        self._validate_params()
        if covariates is not None and self.device != "cpu":
            raise ValueError("Covariates are learned on the CPU only: use device='cpu'.")
        check_device(self.device)
        if holds_blocks(X):
            check_beside_blocks(
                y=y, sample_weight=sample_weight, covariates=covariates, limits=limits, noise=noise
            )
            return self._fit_blocks(X, executor)
        if executor is not None:
            raise TypeError("An executor works on blocks (such as SmilesBlocks): leave it out.")
        graphs = check_graphs(X)
        errors = self._known_noise(graphs, y, noise, sample_weight)
        y = self._on_learned_scale(y, graphs.recipe)
        if errors is not None:
            sample_weight = starting_weights(errors, check_numbers(y, len(graphs)))
        known = self._training_targets(y, check_weights(sample_weight, len(graphs)))
        known = self._with_limits(known, graphs, limits)
        encoded = None
        if covariates is not None:
            graphs, names = with_covariates(graphs, covariates)
            table = CovariateTable.fit(graphs, names)
            encoded = table, table.encode(graphs)
        fitted = self._condition(graphs, known, self._exact_size(), encoded)
        if errors is not None:
            errors /= known.targets.scale**2
            fitted, targets = with_known_noise(fitted, errors, known.targets, self._n_jobs())
            known = known._replace(targets=targets)
        left_out, slope = self._scored(fitted.left_out, known)
        record = self._record(fitted, left_out)
        self.model_ = replace(fitted.model, slope=slope, record=record)
        return self

    def _on_learned_scale(self, y: Any, recipe: Any) -> Any:
        """Targets on the scale of the record's transform; only numbers have one."""
        return y

    def _with_limits(
        self, known: TrainingTargets, graphs: GraphCollection, limits: Any
    ) -> TrainingTargets:
        """Which of the values are limits; only numbers can be."""
        if limits is not None:
            raise TypeError("limits are of numbers: a classifier takes none.")
        return known

    def _known_noise(
        self, graphs: GraphCollection, y: Any, noise: Any, sample_weight: Any
    ) -> np.ndarray | None:
        """Known variances of the measurements on the learned scale; only numbers have any."""
        if noise is not None:
            raise TypeError("noise is that of numbers: a classifier takes none.")
        return None

    def _fit_blocks(self, blocks: Any, executor: Any) -> Self:
        """Fit a sample through landmarks, then take the posterior of all graphs."""
        check_executor(executor)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sample = sample_of_blocks(blocks, self.exact_size, seed, self._first_wrong, executor)
        self._check_sample(sample.y, sample.all_targets)
        known = self._training_targets(sample.y, np.ones(len(sample.y)))
        exact_size = min(self.exact_size, self.n_landmarks)
        fitted = self._condition(sample.graphs, known, exact_size, descriptors=False)
        targets = self._targets_of_all(sample.all_targets, known)
        posterior, left_out = posterior_of_blocks(
            fitted.model, blocks, sample, targets, known.targets, self._n_jobs(), executor
        )
        scores, slope = self._scored(left_out, known)
        record = self._record(fitted, scores)
        training = fitted.model.training
        assert training is not None
        if len(sample.y) < len(sample.all_targets):
            training = replace(training, n_in_all=len(sample.all_targets))
        self.model_ = replace(
            fitted.model, posterior=posterior, sample_weights=None, slope=slope, record=record,
            training=training,
        )  # fmt: skip
        return self

    def _first_wrong(self, y: np.ndarray) -> tuple[int, str] | None:
        """The first target of a block that cannot be learned from, with words about it."""
        raise NotImplementedError

    def _check_sample(self, y: np.ndarray, all_targets: np.ndarray) -> None:
        """Refuse a sample of blocks that lacks what is to be learned."""

    def _targets_of_all(self, y: np.ndarray, known: TrainingTargets) -> Targets:
        """Targets of all graphs as those of the sample stand in ``known``."""
        raise NotImplementedError

    def _condition(
        self,
        graphs: GraphCollection,
        known: TrainingTargets,
        exact_size: int,
        covariates: tuple[CovariateTable, np.ndarray] | None = None,
        descriptors: bool = True,
    ) -> FittedEvidence:
        """Learn the weights on a sample, and condition on all graphs or on landmarks.

        Of the model, scores and what follows from them are still missing.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs = self._n_jobs()
        rare = known.classes is not None and has_rare_class(known.groups)
        sample = sample_for(known.groups, rare, self.learning_size, seed)
        landmarks = landmarks_for(known.groups, exact_size, self.n_landmarks, seed, rare)
        if self.device == "cpu":  # a GPU says for itself what does not fit
            n_landmarks = None if landmarks is None else landmarks.n_landmarks
            check_memory(len(graphs), sample.largest, n_landmarks)
        codes = None if known.classes is None else known.given

        def at_depth(depth: int) -> TrainingData:
            forest, colors = self._fit_patterns(graphs, depth, n_jobs)
            numbers = None if covariates is None else covariates[1]
            return TrainingData(
                forest, forest.count(colors, n_jobs), known.targets, codes, numbers,
                self.prior_strength, n_jobs, self.device,
            )  # fmt: skip

        with progress_ticks(self.progress, "Learning the weights") as tick:
            fitted = fit_gaussian_process(
                at_depth,
                covariates=None if covariates is None else covariates[0],
                described=self._described(graphs, covariates, sample) if descriptors else None,
                descriptors=self.descriptors,
                weights=self.weights,
                depth=None if isinstance(self.depth, str) else self.depth,
                max_depth=_MAX_DEPTH,
                sample=sample,
                groups=known.groups,
                landmarks=landmarks,
                max_steps=self.max_steps,
                seed=seed,
                tick=tick,
            )
        self._fitted_graphs, self._fragments = graphs, None
        training = TrainingGraphs(fitted.histograms, known.given, limits=known.targets.limits)
        training = training.with_identity(graphs)
        model = replace(
            fitted.model, classes=known.classes, training=training, recipe=graphs.recipe
        )
        return replace(fitted, model=model)

    def _fit_patterns(self, graphs: GraphCollection, depth: int, n_jobs: int) -> Any:
        """Patterns of the training graphs up to a depth, and where they occur."""
        return PatternForest.fit(
            graphs, depth, self._trees(graphs), n_jobs, attributes=self.attributes == "auto"
        )

    def _described(
        self,
        graphs: GraphCollection,
        covariates: tuple[CovariateTable, np.ndarray] | None,
        sample: LearningSample,
    ) -> Described | None:
        """Covariates and descriptors together; None where there are or shall be no descriptors."""
        if self.descriptors is False or self.device != "cpu" or len(graphs) < FEWEST:
            return None
        positions = sample.positions
        found = compact_descriptors(graphs[positions])
        if found is None:
            if self.descriptors is True:
                raise ValueError(
                    "descriptors=True needs molecules: read them with read_smiles, or use "
                    "descriptors='auto'."
                )
            return None
        table, described = found
        if covariates is not None:
            table = covariates[0].joined(table)
        some = table.encode(described)
        if len(positions) == len(graphs):
            return Described(table, some, lambda: some)
        numbers = np.zeros((len(graphs), some.shape[1]))
        numbers[positions] = some  # all that the choice needs
        return Described(table, numbers, lambda: table.encode(graphs))

    def _exact_size(self) -> int:
        """Up to how many graphs the posterior is exact: on a GPU as many as it holds, if more."""
        if self.device == "cpu" or self.exact_size != _EXACT_SIZE:  # asked for, or by default
            return self.exact_size
        from treelens.gp.device import largest_on_device

        return max(self.exact_size, largest_on_device(self.device) or 0)

    def _decide(self, X: Any, **asked: Any) -> Predictions:
        return super()._decide(X, device=device_or_cpu(self.device), **asked)

    def _beside(self, X: Any, covariates: Any) -> Any:
        """New graphs that hold the covariates given with them."""
        if covariates is None:
            return X
        if holds_blocks(X):
            check_beside_blocks(covariates=covariates)
        if not self.covariates_:
            raise ValueError(
                "covariates are given, but the model was fitted without any: leave them out, or "
                "fit with covariates."
            )
        graphs, given = with_covariates(self._new_graphs(X), covariates)
        missing = [n for n in self.covariates_ if n not in given and not n.startswith(PREFIX)]
        if missing:
            raise ValueError(
                f"covariates hold {', '.join(map(repr, given))}, but the model was fitted with "
                f"{', '.join(map(repr, self.covariates_))}: {missing[0]!r} is missing."
            )
        return graphs

    @property
    def covariates_(self) -> list[str]:
        """Names of the covariates that the model was fitted with."""
        covariates = self._fitted_model.covariates
        return [] if covariates is None else covariates.table.names

    def _record(self, fitted: FittedEvidence, left_out: Any) -> EvidenceRecord:
        history = evidence_history(fitted.search, fitted.n_learning)
        return EvidenceRecord(
            fitted.chosen.weights, history, fitted.search.converged, learning_gain(fitted), left_out
        )

    def _trees(self, graphs: GraphCollection) -> tuple[str, ...]:
        if isinstance(self.trees, str):
            return usual_trees(graphs)
        unknown = [t for t in self.trees if not isinstance(t, str) or t not in TREES]
        if unknown or not self.trees or len(set(self.trees)) < len(self.trees):
            raise ValueError(
                f"trees must be 'auto' or different ones among {', '.join(TREES)}; got "
                f"{list(self.trees)!r}."
            )
        return tuple(tree for tree in TREES if tree in self.trees)  # coarse before fine

    # --- what the model tells -------------------------------------------------------------------

    @property
    def _counted_patterns(self) -> tuple[PatternForest, PatternHistograms, np.ndarray]:
        """Patterns, their counts in the training graphs, and their weights."""
        model = self._fitted_model
        return model.weighted.forest, model.training.histograms, model.weights

    @property
    def best_depth_(self) -> int:
        """The depth of the patterns in use."""
        return self._fitted_model.weighted.forest.depth

    @property
    def best_weights_(self) -> str:
        """The weights in use: ``"uniform"``, ``"depths"`` or ``"branches"``."""
        return self._fitted_model.record.learned

    @property
    def uses_descriptors_(self) -> bool:
        """Whether descriptors of molecules stand beside the patterns."""
        return any(name.startswith(PREFIX) for name in self.covariates_)

    @property
    def evidence_(self) -> float:
        """Log of the marginal likelihood times the priors."""
        return self._fitted_model.record.evidence

    @property
    def history_(self) -> pd.DataFrame:
        """``stage``, ``evidence``, ``gradient_norm`` and ``n_evaluations`` after every step."""
        return self._fitted_model.record.history

    @property
    def converged_(self) -> bool:
        """Whether the search for the weights converged."""
        return self._fitted_model.record.converged

    @property
    def learning_gain_(self) -> LearningGain:
        """Learned against uniform weights."""
        return self._fitted_model.record.learning_gain

    def save(self, path: Any, training_data: bool = True) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved.

        The factor of the covariance matrix, by far its largest part, is left out: a loaded model
        computes it anew when it is first asked for standard deviations.

        Parameters
        ----------
        path : str or Path
        training_data : bool, default=True
            Whether to keep names and SMILES of the training molecules, which reports and
            :meth:`kneighbors` show beside a prediction. Without them the file still has what
            predictions are computed from: how often each pattern occurs in each training graph,
            and the measured values. That is no protection against somebody who wants to
            reconstruct the molecules.
        """
        from treelens.estimators.files import save_model

        save_model(self, path, training_data)

    def summary(self, X: Any = None, y: Any = None, *, names: Any = None) -> dict[str, Any]:
        """The content of the report as plain data, ready for JSON.

        Parameters
        ----------
        X, y : graphs and their values or classes, optional
            What to score and to show, not the training graphs: on those the model has the
            leave-one-out scores. Without them the summary is about the model alone.
        names : str, optional
            A data set whose label codes have names: ``"MUTAG"`` shows elements instead of numbers.
        """
        from treelens.report import summarize

        check_is_fitted(self)
        return summarize(self, X, self._on_learned_scale(y, self.recipe_), names=names)

    def report(self, path: str | Path, X: Any = None, y: Any = None, *, names: Any = None) -> Path:
        """Write the report: one HTML file that needs nothing else; see :meth:`summary`."""
        from treelens.report import write_report

        check_is_fitted(self)
        return write_report(self, path, X, self._on_learned_scale(y, self.recipe_), names=names)
