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
from treelens.estimators.base import DecidesOnGraphs, checked_decisions
from treelens.estimators.stochastic_weights import learn_weights_linearly
from treelens.explain.contributions import Explanation, explain_decision
from treelens.graphs.blocks import (
    check_blocks,
    holds_blocks,
    loaded,
    parts_of,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_single_graph
from treelens.graphs.errors import GraphDataError
from treelens.kernels.approximate import RANDOM_FORMS, RandomFeatures, check_n_components
from treelens.models.feature_machine import FeatureMachine, additive_decision
from treelens.models.landmarks import landmark_positions
from treelens.models.least_squares import ALPHAS, solve
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

_UNSEEN_LIMIT = 0.5


class StreamingGraphClassifier(DecidesOnGraphs, BaseEstimator):
    """Random features and a linear model, fitted to graphs that are read in blocks.

    It holds one block, the vocabulary and two square matrices of size ``n_components`` in memory,
    however many graphs there are: about ``block_size * n_components * 16 + n_components**2 * 40``
    bytes, 100 bytes a pattern, and the graphs of the block.

    Settings are given, not searched: choose them with
    ``GraphSVC(approximation="random-features")`` on a sample. Only ``alpha`` is chosen, on
    every tenth graph, for that costs no further pass.

    Parameters
    ----------
    form : {"metric", "exponential"}, default="metric"
    depth : int, default=3
    radius : float, default=0.0
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
    support_ : ndarray, shape (n_patterns,)
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "form": [StrOptions(set(RANDOM_FORMS))],
        "depth": [Interval(Integral, 0, None, closed="left")],
        "radius": [Interval(Real, 0, None, closed="left")],
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
        form: str = "metric",
        depth: int = 3,
        radius: float = 0.0,
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
        self.form = form
        self.depth = depth
        self.radius = radius
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
        self.classes_ = self._checked_classes(tally)
        tally.keep(self.min_support)
        self.vocabulary_, self.support_ = tally.vocabulary, tally.support
        self.n_graphs_, self.recipe_ = sum(tally.n_graphs), tally.recipe
        first_depth = 0 if self.include_depth_zero else 1
        self._extractor = PatternExtractor(self.vocabulary_, first_depth, "wasserstein")
        starts = np.concatenate([[0], np.cumsum(tally.n_graphs)])[:-1].tolist()
        self._learn_weights(X, starts, executor, seed)
        self._fit_machine(X, starts, executor, seed, tally)
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

    def _learn_weights(self, X: Any, starts: list[int], executor: Any, seed: int) -> None:
        n_patterns = self.vocabulary_.n_patterns
        first_pattern = int(self.vocabulary_.level_offsets[self._extractor.first_depth])
        self.learner_, self.weights_ = None, np.ones(n_patterns - first_pattern)
        if self.radius == 0:
            return
        rng = np.random.default_rng(seed)
        picked = landmark_positions(self.n_graphs_, self.n_weight_graphs, rng)
        parts = zip(parts_of(X), starts, strict=True)
        found = executor.map(pick_from_part, parts, picked, self._extractor, self._n_jobs())
        histograms, labels = zip(*(f for f in found if f is not None), strict=True)
        codes = np.searchsorted(self.classes_, np.concatenate(labels))
        self.learner_ = learn_weights_linearly(
            joined_histograms(histograms), codes, "wasserstein", self.radius, self.learner, seed
        )
        self.weights_ = self.learner_.weights_

    def _fit_machine(
        self, X: Any, starts: list[int], executor: Any, seed: int, tally: Tally
    ) -> None:
        """Last pass: sums of products of features, and the linear model that they determine."""
        weights = None if self.learner_ is None else self.weights_
        feature_map = RandomFeatures(
            self.n_components, seed, self.form, float(self.gamma), 1.0, weights
        )
        counts = np.array([tally.class_counts[label] for label in self.classes_.tolist()])
        factors = np.ones(len(counts))
        if self.class_weight == "balanced":
            factors = self.n_graphs_ / (len(counts) * counts)
        plan = Plan(self._extractor, feature_map, self.classes_, factors, seed, self._n_jobs())
        parts = zip(parts_of(X), starts, strict=True)
        sums = executor.sum(sums_of_part, parts, plan)
        alphas = ALPHAS if isinstance(self.alpha, str) else (self.alpha,)
        coefficients, intercepts, self.alpha_ = solve(sums, alphas)
        self._machine = FeatureMachine(feature_map, coefficients, intercepts)

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
        return super().decision_function(X)

    def explain(self, graph: Any, class_label: Any = None) -> Explanation:
        """Contributions of patterns, nodes and edges; see :meth:`GraphSVC.explain`."""
        check_is_fitted(self)
        single = as_single_graph(graph, self.recipe_)
        decision = additive_decision(self, single, _UNSEEN_LIMIT)
        return explain_decision(single, decision, class_label)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`treelens.load` reads; no pickle is involved."""
        from treelens.storage.stored_streaming import save_streaming

        save_streaming(self, path)

    def _decisions(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not holds_blocks(X):
            return self._decisions_of(self._new_graphs(X))
        found = [
            self._decisions_of(self._new_graphs(block.graphs)) for block in loaded(X, self.recipe_)
        ]
        if not found:
            raise GraphDataError("The blocks hold 0 graphs: at least one is needed.")
        return np.concatenate(found)

    def _decisions_of(self, graphs: GraphCollection) -> np.ndarray:
        weights = self._machine.feature_map.weights
        features = self._extractor.features(graphs, weights, self._n_jobs())
        return checked_decisions(self._machine.decide(features, self._n_jobs()))

    @property
    def offset_(self) -> float:
        feature_map = self._machine.feature_map
        assert isinstance(feature_map, RandomFeatures)
        return feature_map.offset
