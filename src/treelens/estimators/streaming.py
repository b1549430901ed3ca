"""A classifier for more graphs than fit into memory: it reads them in blocks, a few times over.

Passes over the blocks: one for the vocabulary, one for a sample of graphs to learn weights from
(if weights are learned), one for the features. The features of a block become sums of products, of
a size that does not depend on the number of graphs, and the linear model is solved from those sums.

What has to be done for one block are functions of that block alone; *where* they run is up to an
executor (:mod:`treelens.scale.executors`, :mod:`treelens.scale.dask_executor`).
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import BaseEstimator, HasMethods, Interval, StrOptions
from treelens.estimators.base import DecidesOnGraphs
from treelens.estimators.renamed import TellsNewNames
from treelens.estimators.views import ExplainsClasses
from treelens.estimators.weights import linear_learner
from treelens.explain.contributions import Explanation
from treelens.graphs.blocks import (
    check_blocks,
    holds_blocks,
    loaded,
    parts_of,
)
from treelens.graphs.errors import GraphDataError
from treelens.kernels.approximate import RandomFourierFeatures, check_n_components
from treelens.kernels.table import RANDOM_KERNELS
from treelens.kernels.weighted import WeightedKernel
from treelens.models.classifier import FittedClassifier
from treelens.models.landmarks import landmark_positions
from treelens.models.least_squares import ALPHAS, solve
from treelens.models.linear_on_features import LinearOnFeatures
from treelens.models.predictions import predicted_codes
from treelens.patterns.features import PatternExtractor, first_depth_of
from treelens.scale.executors import SerialExecutor
from treelens.scale.streaming_parts import (
    Plan,
    Tally,
    count_part,
    joined_histograms,
    pick_from_part,
    sums_of_part,
)
from treelens.selection.stochastic_weights import learn_weights_linearly


class StreamingGraphClassifier(TellsNewNames, ExplainsClasses, DecidesOnGraphs, BaseEstimator):
    """Random features and a linear model, fitted to graphs that are read in blocks.

    It holds one block, the vocabulary and two square matrices of size ``n_components`` in memory,
    however many graphs there are: about ``block_size * n_components * 16 + n_components**2 * 40``
    bytes, 100 bytes a pattern, and the graphs of the block.

    Settings are given, not searched: choose them with
    ``GraphSVC(approximation="random-fourier")`` on a sample. Only ``alpha`` is chosen, on
    every tenth graph, for that costs no further pass.

    Parameters
    ----------
    kernel : {"laplacian", "wwl"}, default="laplacian"
    depth : int, default=3
    weight_radius : float, default=0.0
        How far weights may move from one; 0 keeps them uniform and saves a pass.
    gamma : float, default=3.0
    n_components : int, default=1024
    min_support : int, default=2
        Patterns that fewer graphs hold are dropped.
    max_patterns : int or None, default=None
        Most patterns to hold during the first pass; see :class:`Tally`.
    alpha : float or "auto", default="auto"
        Penalty of the least-squares model, relative to the number of graphs.
    include_depth_zero : bool, default=True
    edge_labels : bool or "auto", default="auto"
    learner : PairwiseWeights, optional
    n_weight_graphs : int, default=20_000
        Weights are learned from a sample of so many graphs.
    class_weight : {None, "balanced"}, default=None
    n_jobs : int, optional
        Threads within a block.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    vocabulary_ : PatternVocabulary
    pattern_support_ : ndarray, shape (n_patterns,)
        Graphs that hold each pattern.
    weights_ : ndarray
        Of the patterns from the first depth in use on.
    learner_ : PairwiseWeights or None
    alpha_ : float
    n_graphs_ : int
    recipe_ : GraphRecipe or None
        What made the training graphs; see :class:`GraphSVC`.

    Examples
    --------
    >>> import treelens as tl
    >>> from treelens.graphs.blocks import CollectionBlocks
    >>> graphs, y = tl.make_synthetic(n_per_substructure=10, random_state=0)
    >>> model = StreamingGraphClassifier(depth=2, n_components=256, random_state=0)
    >>> model.fit(CollectionBlocks(graphs, y, block_size=30)).score(graphs, y) > 0.9
    True
    """

    _old_parameters: ClassVar = {"form": "kernel", "radius": "weight_radius"}
    _old_attributes: ClassVar = {"support_": "pattern_support_"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(RANDOM_KERNELS))],
        "depth": [Interval(Integral, 0, None, closed="left")],
        "weight_radius": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 2, None, closed="left")],
        "min_support": [Interval(Integral, 1, None, closed="left")],
        "max_patterns": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", StrOptions({"auto"})],
        "learner": [HasMethods(["fit", "get_params"]), None],
        "n_weight_graphs": [Interval(Integral, 2, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: str = "laplacian",
        depth: int = 3,
        weight_radius: float = 0.0,
        gamma: float = 3.0,
        *,
        n_components: int = 1024,
        min_support: int = 2,
        max_patterns: int | None = None,
        alpha: float | str = "auto",
        include_depth_zero: bool = True,
        edge_labels: bool | str = "auto",
        learner: Any = None,
        n_weight_graphs: int = 20_000,
        class_weight: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.depth = depth
        self.weight_radius = weight_radius
        self.gamma = gamma
        self.n_components = n_components
        self.min_support = min_support
        self.max_patterns = max_patterns
        self.alpha = alpha
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.learner = learner
        self.n_weight_graphs = n_weight_graphs
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: None = None, *, executor: Any = None) -> StreamingGraphClassifier:
        """Read the blocks and fit the model.

        Parameters
        ----------
        X : iterable that can be read several times
            ``SmilesBlocks``, ``CollectionBlocks``, ``TUBlocks`` or a list of ``(graphs, y)``
            pairs.
        y : None
            The classes come with the blocks.
        executor : optional
            Where parts are worked on; by default here, one after the other. The model does not
            depend on it.
        """
        self._validate_params()
        check_n_components(self.n_components)
        if y is not None:
            raise TypeError(
                "The classes come with the blocks, but y was given beside them: pass "
                "CollectionBlocks(graphs, y) instead of (graphs, y)."
            )
        check_blocks(X)
        executor = SerialExecutor() if executor is None else executor
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        first_depth_of(self.depth, self.include_depth_zero)
        tally = self._count(X, executor)
        classes = self._checked_classes(tally)
        tally.keep(self.min_support)
        self.pattern_support_, self.n_graphs_ = tally.support, sum(tally.n_graphs)
        first_depth = 0 if self.include_depth_zero else 1
        patterns = PatternExtractor(tally.vocabulary, first_depth, "wasserstein")
        starts = np.concatenate([[0], np.cumsum(tally.n_graphs)])[:-1].tolist()
        self.learner_ = self._learn_weights(X, starts, executor, seed, patterns, classes)
        decision = self._fit_linear(X, starts, executor, seed, patterns, classes, tally)
        self.model_ = FittedClassifier(classes, patterns, decision, tally.recipe)
        return self

    def _count(self, X: Iterable[Any], executor: Any) -> Tally:
        """First pass: the vocabulary, in the order of the parts."""
        edge_labels = self.edge_labels
        if edge_labels == "auto":
            found = (part.load().graphs for part in parts_of(X))
            first = next((graphs for graphs in found if graphs is not None), None)
            edge_labels = first is not None and first.edge_codes is not None
        tally = Tally(self.depth, bool(edge_labels), self.max_patterns)
        parts = ((part, number) for number, part in enumerate(parts_of(X)))
        for counts in executor.map(count_part, parts, self.depth, edge_labels, self._n_jobs()):
            tally.add(counts)
        return tally

    def _checked_classes(self, tally: Tally) -> np.ndarray:
        if len(tally.class_counts) < 2:
            raise GraphDataError(
                f"The blocks hold {sum(tally.n_graphs)} graphs of {len(tally.class_counts)} "
                "classes: a classifier needs two classes or more."
            )
        kinds = {type(label) for label in tally.class_counts}
        if str in kinds and len(kinds) > 1:
            raise GraphDataError("Some blocks have texts as classes, others numbers.")
        return np.array(sorted(tally.class_counts))

    def _learn_weights(
        self,
        X: Any,
        starts: list[int],
        executor: Any,
        seed: int,
        patterns: PatternExtractor,
        classes: np.ndarray,
    ) -> Any:
        """Second pass: a learner fitted to a sample of the graphs; None keeps weights uniform."""
        if self.weight_radius == 0:
            return None
        rng = np.random.default_rng(seed)
        picked = landmark_positions(self.n_graphs_, self.n_weight_graphs, rng)
        parts = zip(parts_of(X), starts, strict=True)
        found = executor.map(pick_from_part, parts, picked, patterns, self._n_jobs())
        histograms, labels = zip(*(f for f in found if f is not None), strict=True)
        codes = np.searchsorted(classes, np.concatenate(labels))
        learner = linear_learner(seed) if self.learner is None else self.learner
        return learn_weights_linearly(
            joined_histograms(histograms), codes, "wasserstein", self.weight_radius, learner, seed
        )

    def _fit_linear(
        self,
        X: Any,
        starts: list[int],
        executor: Any,
        seed: int,
        patterns: PatternExtractor,
        classes: np.ndarray,
        tally: Tally,
    ) -> LinearOnFeatures:
        """Last pass: sums of products of features, and the linear model that they determine."""
        weights = None if self.learner_ is None else self.learner_.weights_
        kernel = WeightedKernel(self.kernel, weights, float(self.gamma), 1.0)
        feature_map = RandomFourierFeatures(
            self.n_components, seed, kernel.name, float(self.gamma), kernel.offset, weights
        )
        counts = np.array([tally.class_counts[label] for label in classes.tolist()])
        factors = np.ones(len(counts))
        if self.class_weight == "balanced":
            factors = self.n_graphs_ / (len(counts) * counts)
        plan = Plan(patterns, feature_map, classes, factors, seed, self._n_jobs())
        parts = zip(parts_of(X), starts, strict=True)
        sums = executor.sum(sums_of_part, parts, plan)
        alphas = ALPHAS if isinstance(self.alpha, str) else (self.alpha,)
        coefficients, intercepts, self.alpha_ = solve(sums, alphas)
        return LinearOnFeatures(feature_map, coefficients, intercepts, kernel)

    # --- predicting -------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n_graphs,) for two classes, else (n_graphs, n_classes).

        Parameters
        ----------
        X : graphs of any accepted kind, or blocks as in :meth:`fit`
            Blocks are read once, one in memory at a time, and need no classes. Rows that
            ``on_invalid="skip"`` leaves out have no value; the warning names them. ``predict``
            takes the same.
        """
        if not holds_blocks(X):
            return super().decision_function(X)
        decisions = self._decisions_on_blocks(X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def explain(self, graph: Any, class_label: Any = None) -> Explanation:
        """Contributions of patterns, nodes and edges; see :meth:`GraphSVC.explain`."""
        return self._explained(graph, class_label, n_neighbors=5)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved."""
        from treelens.estimators.files import save_streaming

        save_streaming(self, path)

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n_graphs,); ``X`` as for :meth:`decision_function`."""
        decisions = self.decision_function(X)
        return self.classes_[predicted_codes(decisions.reshape(len(decisions), -1))]

    def _decisions_on_blocks(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        found = [self._decide(block.graphs).decisions for block in loaded(X, self.recipe_)]
        if not found:
            raise GraphDataError("The blocks hold 0 graphs: at least one is needed.")
        return np.concatenate(found)
