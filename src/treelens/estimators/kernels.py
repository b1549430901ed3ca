"""The three Weisfeiler-Lehman kernels as scikit-learn transformers."""

from __future__ import annotations

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import HasMethods, Interval, StrOptions
from treelens.estimators.base import GraphKernel, check_graphs
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import normalize_kernel, pair_sums
from treelens.kernels.weighted import exponential, l1_distance
from treelens.patterns.cells import MOST_STEPS, AttributeCells, has_attributes
from treelens.patterns.features import (
    Features,
    PatternExtractor,
    first_depth_of,
    with_cell_colors,
)
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary


class _WeisfeilerLehmanKernel(GraphKernel):
    """Refinement, vocabulary, histograms and weights, shared by the three kernels."""

    _kind: str  # which pair feature, see treelens.patterns.pairs
    depth: int
    include_depth_zero: bool
    edge_labels: bool
    attributes: str
    weights: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "depth": [Interval(Integral, 0, None, closed="left")],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean"],
        "attributes": [StrOptions({"auto", "ignore"})],
        "weights": [StrOptions({"uniform"}), "array-like", HasMethods(["fit", "get_params"])],
    }

    def _fit_features(self, graphs: GraphCollection, y: Any) -> Features:
        first_depth = first_depth_of(self.depth, self.include_depth_zero)
        self.vocabulary_, colors = PatternVocabulary.fit(
            graphs, self.depth, self.edge_labels, self._n_jobs()
        )
        self._extractor = PatternExtractor(
            self.vocabulary_, first_depth, self._kind, self._cells(graphs)
        )
        colors = with_cell_colors(colors, graphs, self._extractor.cells, self._n_jobs())
        histograms = self._extractor.count(colors, self._n_jobs())
        self.weights_ = self._learn_weights(histograms, y)
        pairs = self._extractor.pairs(histograms)
        return Features(pairs, pairs.diagonal(self._weights()))

    def _cells(self, graphs: GraphCollection) -> AttributeCells | None:
        """Cells of the attributes of graphs, where these have any and they are not ignored."""
        if self.attributes == "ignore" or not has_attributes(graphs):
            return None
        return AttributeCells.fit(graphs, min(self.depth, MOST_STEPS))

    def _learn_weights(self, histograms: PatternHistograms, y: Any) -> np.ndarray:
        """One weight per pattern: ones, the user's, or learned."""
        self.learner_ = None
        if isinstance(self.weights, str):
            return np.ones(histograms.n_patterns)
        if not hasattr(self.weights, "fit"):
            return _checked_weights(self.weights, histograms.n_patterns)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} learns its weights from classes: call fit(graphs, y)."
            )
        unit_pairs = PairFeatures.from_histograms(histograms, self._kind)
        self.learner_ = clone(self.weights).fit(unit_pairs, y)
        return self.learner_.weights_

    def _weights(self) -> np.ndarray | None:
        return None if isinstance(self.weights, str) else self.weights_

    def _new_features(self, graphs: GraphCollection) -> Features:
        return self._extractor.features(graphs, self._weights(), self._n_jobs())

    def out_of_vocabulary(self, X: Any) -> np.ndarray:
        """Fraction of each graph's patterns that are not in the vocabulary, shape (n_graphs,)."""
        check_is_fitted(self)
        return self._extractor.histograms(self._new_graphs(X), self._n_jobs()).out_of_vocabulary()

    def feature_map_names(self) -> np.ndarray:
        """Text forms of the patterns, in the order of ``weights_`` and ``feature_map``."""
        check_is_fitted(self)
        names = self.vocabulary_.feature_names(self._extractor.first_depth)
        forest = self._extractor.forest
        cells = np.arange(self.vocabulary_.n_patterns, forest.n_patterns)
        return np.append(names, np.array(forest.texts(cells), dtype=object))


class WLSubtree(_WeisfeilerLehmanKernel):
    """Weisfeiler-Lehman subtree kernel: dot products of pattern counts.

    ``K(G, G') = (1/H) sum_h sum_v w_v count_G(v) count_G'(v)`` over the ``H`` depths in use
    (Shervashidze and Borgwardt 2009). GraKeL's ``WeisfeilerLehman(n_iter=depth)`` is this times
    ``depth + 1`` with ``include_depth_zero=True``.

    Parameters
    ----------
    depth : int, default=3
        Largest pattern depth.
    include_depth_zero : bool, default=True
        Whether the node labels themselves count as patterns.
    edge_labels : bool, default=False
        Whether patterns include edge labels.
    attributes : {"auto", "ignore"}, default="auto"
        Whether continuous attributes of nodes and edges, where there are any, are divided into
        cells that count as patterns.
    normalize : {None, "cosine", "tanimoto"}, default=None
    weights : "uniform", array-like or PairwiseWeights, default="uniform"
        One weight per pattern, or a learner that finds them in ``fit(graphs, y)``.
    n_jobs : int, optional
        Threads; -1 means all processors. The result does not depend on it.

    Attributes
    ----------
    vocabulary_ : PatternVocabulary
    weights_ : ndarray, shape (n_patterns,)
    learner_ : PairwiseWeights or None
        The fitted learner, where one was given.

    Examples
    --------
    >>> from treelens import WLSubtree
    >>> path = ([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})
    >>> triangle = ([(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"})
    >>> WLSubtree(depth=1, include_depth_zero=True).fit_transform([path, triangle])
    array([[4., 3.],
           [3., 9.]])
    """

    _kind = "subtree"

    def __init__(
        self,
        depth: int = 3,
        *,
        include_depth_zero: bool = True,
        edge_labels: bool = False,
        attributes: str = "auto",
        normalize: str | None = None,
        weights: Any = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.attributes = attributes
        self.normalize = normalize
        self.weights = weights
        self.n_jobs = n_jobs


class WLOptimalAssignment(WLSubtree):
    """Weisfeiler-Lehman optimal assignment kernel: histogram intersections of counts.

    ``K(G, G') = (1/H) sum_h sum_v w_v min(count_G(v), count_G'(v))``: with uniform weights exactly
    the value of the best assignment of the nodes of one graph to those of the other (Kriege,
    Giscard and Wilson 2016).

    Parameters
    ----------
    depth, include_depth_zero, edge_labels, normalize, weights, n_jobs
        As in :class:`WLSubtree`.

    Examples
    --------
    >>> from treelens import WLOptimalAssignment
    >>> path = ([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})
    >>> triangle = ([(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"})
    >>> WLOptimalAssignment(depth=1, include_depth_zero=True).fit_transform([path, triangle])
    array([[3., 1.],
           [1., 3.]])
    """

    _kind = "optimal-assignment"


class WassersteinWL(_WeisfeilerLehmanKernel):
    """Wasserstein Weisfeiler-Lehman kernel: ``exp(-gamma * distance)``, in closed form.

    With uniform weights the distance is the Wasserstein distance between the graphs' node
    embeddings under the normalised Hamming distance (Togninalli et al. 2019), which equals
    ``1 - (1/H) sum_h sum_v min(frequency_G(v), frequency_G'(v))``. With learned weights it is the
    distance ``b - <W, Z>`` of Nguyen, Nguyen and Mamitsuka (2021).

    Parameters
    ----------
    depth : int, default=3
        Largest pattern depth.
    gamma : float, default=1.0
        Scale of the exponential; ignored by ``kernel="wwl-linear"``.
    kernel : {"wwl", "laplacian", "wwl-linear"}, default="wwl"
        ``exp(-gamma (b - <W, Z>))``; ``exp(-gamma d)`` with the true metric
        ``d = 0.5 (1/H) sum_v w_v |frequency_G(v) - frequency_G'(v)|``; or ``<W, Z>`` itself. With
        uniform weights the first two are the same.
    include_depth_zero : bool, default=True
        Whether the node labels themselves count as patterns.
    edge_labels : bool, default=False
        Whether patterns include edge labels.
    attributes : {"auto", "ignore"}, default="auto"
        Whether continuous attributes of nodes and edges, where there are any, are divided into
        cells that count as patterns.
    normalize : {None, "cosine", "tanimoto"}, default=None
        Applied to the finished kernel.
    weights : "uniform", array-like or PairwiseWeights, default="uniform"
        One weight per pattern, or a learner that finds them in ``fit(graphs, y)``.
    n_jobs : int, optional
        Threads; -1 means all processors. The result does not depend on it.

    Attributes
    ----------
    vocabulary_ : PatternVocabulary
    weights_ : ndarray, shape (n_patterns,)
    learner_ : PairwiseWeights or None

    Examples
    --------
    >>> from treelens import WassersteinWL
    >>> path = ([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})
    >>> triangle = ([(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"})
    >>> WassersteinWL(depth=1, include_depth_zero=True).distance([path, triangle]).round(3)
    array([[0.   , 0.667],
           [0.667, 0.   ]])
    """

    _kind = "wasserstein"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_WeisfeilerLehmanKernel._parameter_constraints,
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"wwl", "laplacian", "wwl-linear"})],
    }

    def __init__(
        self,
        depth: int = 3,
        *,
        gamma: float = 1.0,
        kernel: str = "wwl",
        include_depth_zero: bool = True,
        edge_labels: bool = False,
        attributes: str = "auto",
        normalize: str | None = None,
        weights: Any = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.gamma = gamma
        self.kernel = kernel
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.attributes = attributes
        self.normalize = normalize
        self.weights = weights
        self.n_jobs = n_jobs

    def metric_distance(self, X: Any, Y: Any = None) -> np.ndarray:
        """Weighted L1 distances of relative frequencies, a metric for any weights.

        With uniform weights it is :meth:`distance`. It is the distance of ``kernel="laplacian"``,
        whatever the kernel of this estimator; ``X`` and ``Y`` are as there.

        Examples
        --------
        >>> import treelens as tl
        >>> graphs, _ = tl.make_synthetic(n_per_substructure=1, random_state=0)
        >>> kernel = tl.WassersteinWL(depth=1)
        >>> bool(np.allclose(kernel.metric_distance(graphs), kernel.distance(graphs)))
        True
        """
        metric = copy(self)
        metric.kernel = "laplacian"
        return metric.distance(X, Y)

    def distance(self, X: Any, Y: Any = None, *, out: np.ndarray | None = None) -> np.ndarray:
        """Distances between all graphs of ``X``, or of ``X`` and ``Y``.

        With uniform weights no ``fit`` is needed. A fitted model uses its weights, and weight one
        for patterns that are not in its vocabulary. Learned weights come with the learner's ``b``,
        which its margins (``learner_.result_.margins``) refer to: the distance ``b - <W, Z>`` of
        very similar graphs may be below 0. :meth:`metric_distance` is a metric.

        Parameters
        ----------
        X, Y : graphs
        out : ndarray of float64, shape (n_x, n_y), optional
            Where to write, for example a memory map.

        Returns
        -------
        ndarray, shape (n_x, n_x) or (n_x, n_y)
        """
        self._validate_params()
        first_depth = first_depth_of(self.depth, self.include_depth_zero)
        uniform = isinstance(self.weights, str)
        if not uniform:
            check_is_fitted(self)
        known = PatternVocabulary.empty(self.depth, self.edge_labels) if uniform else (
            self.vocabulary_)  # fmt: skip
        graphs = check_graphs(X, None if uniform else self.recipe_)
        vocabulary, left_colors = known.extend(graphs, self._n_jobs())
        cells = self._cells(graphs) if uniform else self._extractor.cells
        left_colors = with_cell_colors(left_colors, graphs, cells, self._n_jobs())
        right = None
        if Y is not None:
            others = check_graphs(Y, graphs.recipe)
            vocabulary, right_colors = vocabulary.extend(others, self._n_jobs())
            right_colors = with_cell_colors(right_colors, others, cells, self._n_jobs())
        extractor = PatternExtractor(vocabulary, first_depth, self._kind, cells)
        weights = None if uniform else self._extended_weights(vocabulary)
        left = self._as_features(extractor, left_colors, weights)
        if Y is not None:
            right = self._as_features(extractor, right_colors, weights)
        offset = self._offset_for(left, right)
        distances = self._distance(left, right, weights, offset, out)
        learned_b = None if uniform or self.kernel == "laplacian" else self._learned_b()
        if learned_b is not None:
            distances += learned_b - offset
        return distances

    def _as_features(
        self, extractor: PatternExtractor, colors: NodeColors, weights: np.ndarray | None
    ) -> Features:
        pairs = extractor.pairs(extractor.count(colors, self._n_jobs()))
        if weights is None and self.kernel != "laplacian":  # frequencies add up to one
            return Features(pairs, np.ones(pairs.n_graphs))
        return Features(pairs, pairs.diagonal(weights))

    def _extended_weights(self, extended: PatternVocabulary) -> np.ndarray:
        """The learned weights, and ones for the patterns that an extended vocabulary adds."""
        first = self._extractor.first_depth
        offsets = self._extractor.forest.level_offsets[first:]
        known = np.split(self.weights_, offsets[1:-1] - offsets[0])
        sizes = np.diff(PatternForest.of_vocabulary(extended, self._extractor.cells).level_offsets)
        sizes = sizes[first:]
        padded = [np.append(w, np.ones(n - len(w))) for w, n in zip(known, sizes, strict=True)]
        return np.concatenate(padded)

    def _distance(
        self,
        left: Features,
        right: Features | None,
        weights: np.ndarray | None,
        offset: float,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        n_jobs, other = self._n_jobs(), None if right is None else right.pairs
        sums = pair_sums(left.pairs, other, weights, n_jobs=n_jobs, out=out)
        if self.kernel == "laplacian":
            return l1_distance(sums, left.diagonal, (right or left).diagonal, n_jobs)
        np.subtract(offset, sums, out=sums)
        return np.maximum(sums, 0.0, out=sums)

    def _offset(self) -> float:
        """The constant b of the kernel: the largest ``<W, Z(G, G)>`` of the training graphs.

        It keeps ``b - <W, Z>`` from being negative; with uniform weights it is exactly 1.
        """
        return 1.0 if self._weights() is None else float(self._fitted.diagonal.max())

    def _offset_for(self, left: Features, right: Features | None) -> float:
        """The offset for which no distance between two sides is negative."""
        if self._weights() is None:
            return 1.0
        sides = [side for side in (left, right) if side is not None]
        return max(self._offset(), *(float(side.diagonal.max()) for side in sides))

    def _learned_b(self) -> float | None:
        """The offset that the weights were learned with; None for weights of the user."""
        result = getattr(self.learner_, "result_", None)
        return None if result is None else float(result.margins.b)

    def _kernel(self, left: Features, right: Features | None) -> np.ndarray:
        if self.kernel == "wwl-linear":
            return super()._kernel(left, right)
        distance = self._distance(left, right, self._weights(), self._offset())
        kernel = exponential(distance, self.gamma, self._n_jobs())
        diagonal = [self._kernel_self(side) for side in (left, left if right is None else right)]
        return normalize_kernel(kernel, diagonal[0], diagonal[1], self.normalize)

    def _kernel_self(self, features: Features) -> np.ndarray:
        """``K(G, G)`` of every graph."""
        if self.kernel == "laplacian":
            return np.ones(len(features.diagonal))
        return np.exp(-self.gamma * (self._offset() - features.diagonal))


def _checked_weights(weights: Any, n_patterns: int) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_patterns,):
        raise ValueError(
            f"weights must be 'uniform', a learner, or one number for each of the {n_patterns} "
            f"patterns of these graphs; got an array of shape {weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights must be finite and not negative, or the kernel is not PSD.")
    return weights
