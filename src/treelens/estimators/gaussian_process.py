"""What the regressor and the classifier share: parameters and fitting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from treelens._sklearn_compat import Interval, StrOptions
from treelens.estimators.posterior import FittedGaussianProcess
from treelens.gp.censoring import with_known_noise
from treelens.gp.choice import FEWEST, LearningSample, TrainingData, sample_for
from treelens.gp.covariates import CovariateTable, compact_descriptors, with_covariates
from treelens.gp.executors import check_executor, posterior_of_blocks, sample_of_blocks
from treelens.gp.fitting import (
    Described,
    FittedEvidence,
    check_memory,
    evidence_history,
    fit_gaussian_process,
    landmarks_for,
    learning_gain,
)
from treelens.gp.model import EvidenceRecord
from treelens.gp.posterior import LeaveOneOut, Targets
from treelens.graphs.blocks import check_beside_blocks
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import LIMITS, check_graphs, holds_blocks
from treelens.models.predictions import TrainingGraphs, has_rare_class
from treelens.parallel import progress_ticks
from treelens.patterns.forest import TREES, PatternForest, usual_trees

if TYPE_CHECKING:
    from typing_extensions import Self

_MAX_DEPTH = 4  # of patterns where the depth is chosen
_EXACT_SIZE = 12_000  # graphs of which the posterior is exact by default


class TrainingTargets(NamedTuple):
    """Targets of the training graphs, as given and standardised."""

    given: np.ndarray  # (n_graphs,) values, or class codes
    groups: np.ndarray  # (n_graphs,) what samples are drawn from: tenths of values, or classes
    targets: Targets
    classes: np.ndarray | None = None
    noise: np.ndarray | None = None  # (n_graphs,) known variances, standardised


class GaussianProcessEstimator(FittedGaussianProcess):
    """The regressor and the classifier, but for what ``y`` means and how it is scored."""

    # For the subclasses to say: targets checked and standardised; those of a sample of blocks and
    # of all their graphs; the first that cannot be learned from.
    _training_targets: Callable[..., TrainingTargets]
    _sample_targets: Callable[..., tuple[TrainingTargets, Targets]]
    _first_wrong: Callable[[np.ndarray], tuple[int, str] | None]

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
        self.depth = depth
        self.weights = weights
        self.descriptors = descriptors
        self.attributes = attributes
        self.trees = trees
        self.prior_strength = prior_strength
        self.learning_size = learning_size
        self.exact_size = exact_size
        self.n_landmarks = n_landmarks
        self.max_steps = max_steps
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

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
            :class:`treelens.graphs.blocks.SmilesBlocks`, with their targets in them and nothing
            but an executor beside them. They are read twice: for a sample of ``exact_size`` graphs,
            which all but the posterior comes from, and for the posterior, that of all graphs.
        y : array-like, shape (n_graphs,)
            Numbers for a regressor, classes of any kind for a classifier.
        sample_weight : array-like, shape (n_graphs,), optional
            The noise variance of a graph is divided by its weight. Where errors are known, use
            ``noise``.
        covariates : names, table or array of one row per graph, optional
            What else is known of each graph (assay, temperature, descriptors): names of columns
            that ``graphs.graph_data`` holds, a DataFrame, or an array; ``"rdkit"`` is all of
            RDKit's descriptors. Numbers are standardised, texts are classes. They have a kernel of
            their own, added to that of the graphs. As ``limits`` and ``noise``, on a CPU only.
        executor : executor, optional
            With blocks: where they are read and worked on, such as
            :class:`treelens.gp.executors.JoblibExecutor` (processes here) or
            :class:`treelens.gp.executors.DaskExecutor` (a cluster). The model is the same,
            bit for bit.
        limits : array-like, shape (n_graphs,), optional
            Of a regressor: ``">"`` (or 1) where the value is known only to lie above ``y``, ``"<"``
            (or -1) where it lies below, ``"="`` (or 0) where ``y`` is the value. By default what
            :func:`treelens.read_table` found beside the graphs, else all values are exact.
        noise : array-like, shape (n_graphs,), optional
            Of a regressor: standard deviations of the measurements, in the units of ``y``; NaN
            stands for their median. The noise variance of a graph is this known one plus a common
            one that is learned. By default what :func:`treelens.read_table` found beside the
            graphs (a column ``noise``, or replicates that were merged). Not with ``sample_weight``.
        """
        self._validate_params()
        beside = {"covariates": covariates, "limits": limits, "noise": noise}
        if self.device != "cpu":
            from treelens.gp.device import check_device

            for name, given in {**beside, "descriptors": self.descriptors}.items():
                if given is not None and given != "auto" and given is not False:
                    raise ValueError(
                        f"device={self.device!r} learns without {name}: use device='cpu'."
                    )
            check_device(self.device)
        if holds_blocks(X):
            check_beside_blocks(y=y, sample_weight=sample_weight, **beside)
            return self._fit_blocks(X, executor)
        if executor is not None:
            raise TypeError("An executor works on blocks (such as SmilesBlocks): leave it out.")
        graphs = check_graphs(X)
        known = self._training_targets(graphs, y, sample_weight, limits, noise)
        encoded = None
        if covariates is not None:
            graphs, names = with_covariates(graphs, covariates)
            table = CovariateTable.fit(graphs, names)
            encoded = table, table.encode(graphs)
        exact_size = self.exact_size
        if self.device != "cpu" and exact_size == _EXACT_SIZE:  # as many as the GPU holds
            from treelens.gp.device import largest_on_device

            exact_size = max(exact_size, largest_on_device(self.device) or 0)
        fitted = self._condition(graphs, known, exact_size, encoded)
        if known.noise is not None:
            fitted, targets = with_known_noise(fitted, known.noise, known.targets, self._n_jobs())
            known = known._replace(targets=targets)
        return self._keep(fitted, fitted.left_out, known)

    def _fit_blocks(self, blocks: Any, executor: Any) -> Self:
        """Fit a sample through landmarks, then take the posterior of all graphs."""
        check_executor(executor)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        sample = sample_of_blocks(blocks, self.exact_size, seed, self._first_wrong, executor)
        if np.any(sample.graphs.graph_data.get(LIMITS, 0)):
            raise ValueError("Some values in the blocks are limits: fit(graphs, y) takes limits.")
        known, targets = self._sample_targets(
            self._on_learned_scale(sample.y, sample.graphs.recipe),
            self._on_learned_scale(sample.all_targets, sample.graphs.recipe),
        )
        exact_size = min(self.exact_size, self.n_landmarks)
        fitted = self._condition(sample.graphs, known, exact_size, descriptors=False)
        posterior, left_out = posterior_of_blocks(
            fitted.model, blocks, sample, targets, known.targets, self._n_jobs(), executor
        )
        training = fitted.model.training
        assert training is not None
        if len(sample.y) < len(sample.all_targets):
            training = replace(training, n_in_all=len(sample.all_targets))
        model = replace(fitted.model, posterior=posterior, sample_weights=None, training=training)
        return self._keep(replace(fitted, model=model), left_out, known)

    def _keep(self, fitted: FittedEvidence, left_out: LeaveOneOut, known: TrainingTargets) -> Self:
        """Keep a fitted model with its scores."""
        scores, slope = self._scored(left_out, known)
        history = evidence_history(fitted.search, fitted.n_learning)
        record = EvidenceRecord(
            fitted.chosen.weights,
            history,
            fitted.search.converged,
            learning_gain(fitted.chosen, fitted.candidates),
            scores,
        )
        self.model_ = replace(fitted.model, slope=slope, record=record)
        return self

    def _condition(
        self,
        graphs: GraphCollection,
        known: TrainingTargets,
        exact_size: int,
        covariates: tuple[CovariateTable, np.ndarray] | None = None,
        descriptors: bool = True,
    ) -> FittedEvidence:
        """Learn the weights on a sample, and condition on all graphs or on landmarks."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs = self._n_jobs()
        rare = known.classes is not None and has_rare_class(known.groups)
        sample = sample_for(known.groups, rare, self.learning_size, seed)
        landmarks = landmarks_for(known.groups, exact_size, self.n_landmarks, seed, rare)
        if self.device == "cpu":  # a GPU says for itself what does not fit
            n_landmarks = None if landmarks is None else landmarks.n_landmarks
            check_memory(len(graphs), sample.largest, n_landmarks)
        codes = None if known.classes is None else known.given
        table, numbers = (None, None) if covariates is None else covariates
        depth = None if isinstance(self.depth, str) else self.depth
        deepest = _MAX_DEPTH if depth is None else depth
        with progress_ticks(self.progress, "Learning the weights") as tick:
            forest, colors = self._fit_patterns(graphs, deepest, n_jobs)
            data = TrainingData(
                forest, forest.count(colors), known.targets, codes, numbers,
                self.prior_strength, n_jobs, self.device, self.max_steps, tick,
            )  # fmt: skip
            fitted = fit_gaussian_process(
                data,
                covariates=table,
                described=self._described(graphs, table, sample) if descriptors else None,
                descriptors=self.descriptors,
                weights=self.weights,
                depth=depth,
                sample=sample,
                groups=known.groups,
                landmarks=landmarks,
                seed=seed,
            )
        self._fitted_graphs, self._fragments = graphs, None
        training = TrainingGraphs(fitted.histograms, known.given, limits=known.targets.limits)
        model = replace(
            fitted.model, classes=known.classes, training=training.with_identity(graphs),
            recipe=graphs.recipe,
        )  # fmt: skip
        return replace(fitted, model=model)

    def _fit_patterns(self, graphs: GraphCollection, depth: int, n_jobs: int) -> Any:
        """Return patterns of the training graphs up to a depth, and where they occur."""
        trees = usual_trees(graphs) if isinstance(self.trees, str) else self.trees
        if not trees or any(t not in list(TREES) or list(trees).count(t) > 1 for t in trees):
            raise ValueError(
                f"trees must be 'auto' or different ones among {', '.join(TREES)}; got "
                f"{list(trees)!r}."
            )
        ordered = tuple(tree for tree in TREES if tree in trees)  # coarse before fine
        attributes = self.attributes == "auto"
        return PatternForest.fit(graphs, depth, ordered, n_jobs, attributes=attributes)

    def _described(
        self, graphs: GraphCollection, covariates: CovariateTable | None, sample: LearningSample
    ) -> Described | None:
        """Return covariates and descriptors together; None where there are no descriptors."""
        molecules = {"smiles", "mol"} & set(graphs.graph_data)
        if self.descriptors is True and not molecules:
            raise ValueError(
                "descriptors=True needs molecules: read them with read_smiles, or use "
                "descriptors='auto'."
            )
        too_few = self.descriptors == "auto" and len(graphs) < FEWEST
        if not molecules or self.descriptors is False or self.device != "cpu" or too_few:
            return None
        positions = sample.positions
        table, described = compact_descriptors(graphs[positions])
        if covariates is not None:
            table = covariates.joined(table)
        some = table.encode(described)
        if len(positions) == len(graphs):
            return Described(table, some, lambda: some)
        numbers = np.zeros((len(graphs), some.shape[1]))
        numbers[positions] = some  # all that the choice needs
        return Described(table, numbers, lambda: table.encode(graphs))
