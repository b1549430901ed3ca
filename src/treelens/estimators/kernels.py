"""Kernels as scikit-learn transformers: their base, and the three Weisfeiler-Lehman kernels."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import HasMethods, Interval, StrOptions, TransformerMixin
from treelens.estimators.base import GraphEstimator
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import check_graphs
from treelens.kernels.gram import normalize_kernel, pair_sums
from treelens.kernels.weighted import exponential, l1_distance
from treelens.patterns.forest import (
    PatternExtractor,
    PatternForest,
    first_depth_of,
    takes_edge_labels,
)
from treelens.patterns.histograms import Features, PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import unique_names

if TYPE_CHECKING:
    from typing_extensions import Self


class GraphKernel(TransformerMixin, GraphEstimator):
    """Base of the kernels: ``fit`` learns the features, ``transform`` gives kernel values."""

    normalize: str | None
    vocabulary_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "normalize": [StrOptions({"cosine", "tanimoto"}), None],
        "n_jobs": [Integral, None],
    }

    # For the subclasses to say: features of the training graphs and y, which learns the vocabulary
    # (and weights), and of new graphs in terms of what ``fit`` saw.
    _fit_features: Callable[..., Features]
    _new_features: Callable[..., Features]

    def _weights(self) -> np.ndarray | None:
        """Return weights of the patterns; None means all ones."""
        return None

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the features of the training graphs.

        Parameters
        ----------
        X : GraphCollection or anything :func:`treelens.as_graph_collection` takes
        y : array-like, optional
            Class labels; only learned weights need them.
        """
        self._validate_params()
        graphs = check_graphs(X)
        self.n_graphs_, self.recipe_ = len(graphs), graphs.recipe
        self._fitted = self._fit_features(graphs, y)
        return self

    def transform(self, X: object) -> np.ndarray:
        """Kernel values of graphs with the training graphs, shape (n_new, n_fit)."""
        return self._kernel(self._new_features(self._new_graphs(X)), self._fitted)

    def fit_transform(self, X: object, y: object = None, **fit_params: Any) -> np.ndarray:
        """Kernel values of the training graphs, ``fit(X, y).transform(X)`` at half the cost."""
        self.fit(X, y)
        return self._kernel(self._fitted, None)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns of :meth:`transform`: kernel and number of a training graph."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self.n_graphs_)], dtype=object)

    def feature_map(self, X: object) -> sparse.csr_array:
        """Explicit features, shape (n_graphs, n_features); see ``feature_map_names``.

        Where the kernel is a sum of products, it is ``feature_map(X) @ feature_map(X_fit).T``
        (before any normalisation); where it is a sum of minima, it is the sum of the minima.
        """
        pairs = self._feature_pairs(self._new_graphs(X))
        rows, weights, values = pairs.rows, self._weights(), pairs.rows.values
        if weights is not None:
            values = values * (weights if pairs.minimum else np.sqrt(weights))[rows.indices]
        shape = (pairs.n_graphs, pairs.n_patterns)
        return sparse.csr_array((values, rows.indices, rows.offsets), shape=shape)

    def feature_map_names(self) -> np.ndarray:
        """Text forms of the features, in the order of ``feature_map``."""
        check_is_fitted(self)
        names: np.ndarray = self.vocabulary_.feature_names()
        return names

    def _feature_pairs(self, graphs: GraphCollection) -> PairFeatures:
        return self._new_features(graphs).pairs

    def _kernel(self, left: Features, right: Features | None) -> np.ndarray:
        other = None if right is None else right.pairs
        kernel = pair_sums(left.pairs, other, self._weights(), n_jobs=self._n_jobs())
        return normalize_kernel(kernel, left.diagonal, (right or left).diagonal, self.normalize)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")


class WLSubtree(GraphKernel):
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
    edge_labels : bool or "auto", default="auto"
        Whether patterns include edge labels; ``"auto"``: where the training graphs have them.
    attributes : {"auto", "ignore"}, default="auto"
        Whether continuous attributes of nodes and edges, where there are any, are divided into
        cells that count as patterns.
    normalize : {None, "cosine", "tanimoto"}, default=None
    weights : "uniform", array-like or PairwiseWeights, default="uniform"
        One weight per pattern, or a learner that finds them in ``fit(graphs, y)``.
    n_jobs : int, optional
        Threads; by default all processors, or what ``joblib.parallel_config`` says. The result does
        not depend on it.

    Attributes
    ----------
    vocabulary_ : PatternVocabulary
    weights_ : ndarray, shape (n_patterns,)
    learner_ : fitted PairwiseWeights, or None

    Examples
    --------
    >>> from treelens import WLSubtree
    >>> path = ([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})
    >>> triangle = ([(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"})
    >>> WLSubtree(depth=1, include_depth_zero=True).fit_transform([path, triangle])
    array([[4., 3.],
           [3., 9.]])
    """

    _kind = "subtree"  # which pair feature, see treelens.patterns.histograms
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "depth": [Interval(Integral, 0, None, closed="left")],
        "include_depth_zero": ["boolean"],
        "edge_labels": ["boolean", StrOptions({"auto"})],
        "attributes": [StrOptions({"auto", "ignore"})],
        "weights": [StrOptions({"uniform"}), "array-like", HasMethods(["fit", "get_params"])],
    }

    def __init__(
        self,
        depth: int = 3,
        *,
        include_depth_zero: bool = True,
        edge_labels: bool | str = "auto",
        attributes: str = "auto",
        normalize: str | None = None,
        weights: object = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.include_depth_zero = include_depth_zero
        self.edge_labels = edge_labels
        self.attributes = attributes
        self.normalize = normalize
        self.weights = weights
        self.n_jobs = n_jobs

    def _fit_features(self, graphs: GraphCollection, y: object) -> Features:
        first_depth = first_depth_of(self.depth, self.include_depth_zero)
        self._extractor, colors = PatternExtractor.fit(
            graphs,
            self.depth,
            first_depth,
            self._kind,
            edge_labels=takes_edge_labels(self.edge_labels, graphs),
            attributes=self.attributes != "ignore",
            n_jobs=self._n_jobs(),
        )
        self.vocabulary_ = self._extractor.forest.vocabularies[0]
        histograms = self._extractor.count(colors)
        self.weights_ = self._learn_weights(histograms, y)
        pairs = self._extractor.pairs(histograms)
        return Features.of(pairs, self._weights())

    def _learn_weights(self, histograms: PatternHistograms, y: object) -> np.ndarray:
        """Return one weight per pattern: ones, the user's, or learned."""
        self.learner_, n_patterns = None, histograms.n_patterns
        if isinstance(self.weights, str):
            return np.ones(n_patterns)
        if hasattr(self.weights, "fit"):
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} learns its weights from classes: call fit(graphs, y)."
                )
            unit_pairs = PairFeatures.from_histograms(histograms, self._kind)
            self.learner_ = clone(self.weights).fit(unit_pairs, y)
            learned: np.ndarray = self.learner_.weights_
            return learned
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n_patterns,) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"weights must be 'uniform', a learner, or {n_patterns} numbers, one for each "
                f"pattern, finite and not negative; got an array of shape {weights.shape}."
            )
        return weights

    def _weights(self) -> np.ndarray | None:
        return None if isinstance(self.weights, str) else self.weights_

    def _new_features(self, graphs: GraphCollection) -> Features:
        return self._extractor.refine(graphs, self._weights(), self._n_jobs()).features

    def out_of_vocabulary(self, X: object) -> np.ndarray:
        """Fraction of each graph's patterns that are not in the vocabulary, shape (n_graphs,)."""
        graphs = self._new_graphs(X)  # raises before a fit
        colors = self._extractor.forest.transform(graphs, self._n_jobs())
        return self._extractor.count(colors).out_of_vocabulary()

    def feature_map_names(self) -> np.ndarray:
        """Text forms of the patterns, in the order of ``weights_`` and ``feature_map``.

        Each stands once: of those that are equal, as cells and very long patterns that were cut may
        be, all but the first have a number, ``"... (2)"``.
        """
        check_is_fitted(self)
        names = self.vocabulary_.feature_names(self._extractor.first_depth)
        forest = self._extractor.forest
        cells = np.arange(self.vocabulary_.n_patterns, forest.n_patterns)
        return unique_names([*names, *forest.texts(cells)])


class WLOptimalAssignment(WLSubtree):
    """Weisfeiler-Lehman optimal assignment kernel: histogram intersections of counts.

    ``K(G, G') = (1/H) sum_h sum_v w_v min(count_G(v), count_G'(v))``: with uniform weights exactly
    the value of the best assignment of the nodes of one graph to those of the other (Kriege,
    Giscard and Wilson 2016).

    Parameters
    ----------
    depth, include_depth_zero, edge_labels, attributes, normalize, weights, n_jobs
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


class WassersteinWL(WLSubtree):
    """Wasserstein Weisfeiler-Lehman kernel: ``exp(-gamma * distance)``, in closed form.

    With uniform weights the distance is the Wasserstein distance between the graphs' node
    embeddings under the normalised Hamming distance (Togninalli et al. 2019), which equals
    ``1 - (1/H) sum_h sum_v min(frequency_G(v), frequency_G'(v))``. With learned weights it is the
    distance ``b - <W, Z>`` of Nguyen, Nguyen and Mamitsuka (2021).

    Parameters
    ----------
    gamma : float, default=1.0
        Scale of the exponential; ignored by ``kernel="wwl-linear"``.
    kernel : {"wwl", "laplacian", "wwl-linear"}, default="wwl"
        ``exp(-gamma (b - <W, Z>))``; ``exp(-gamma d)`` with the true metric
        ``d = 0.5 (1/H) sum_v w_v |frequency_G(v) - frequency_G'(v)|``; or ``<W, Z>`` itself. With
        uniform weights the first two are the same.
    depth, include_depth_zero, edge_labels, attributes, normalize, weights, n_jobs
        As in :class:`WLSubtree`; ``normalize`` applies to the finished kernel.

    Attributes
    ----------
    vocabulary_, weights_, learner_ :
        As in :class:`WLSubtree`.

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
        **WLSubtree._parameter_constraints,
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
        edge_labels: bool | str = "auto",
        attributes: str = "auto",
        normalize: str | None = None,
        weights: object = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            depth,
            include_depth_zero=include_depth_zero,
            edge_labels=edge_labels,
            attributes=attributes,
            normalize=normalize,
            weights=weights,
            n_jobs=n_jobs,
        )
        self.gamma = gamma
        self.kernel = kernel

    def metric_distance(self, X: object, Y: object = None) -> np.ndarray:
        """Weighted L1 distances of relative frequencies, a metric for any weights.

        With uniform weights, or ``kernel="laplacian"``, it equals :meth:`distance`.
        """
        return copy(self).set_params(kernel="laplacian").distance(X, Y)

    def distance(self, X: object, Y: object = None, *, out: np.ndarray | None = None) -> np.ndarray:
        """Distances between all graphs of ``X``, or of ``X`` and ``Y``.

        With uniform weights no ``fit`` is needed; other weights are one for patterns that are not
        in the vocabulary. Learned weights come with the learner's ``b``, which its margins refer
        to: the distance ``b - <W, Z>`` of very similar graphs may be below 0.
        :meth:`metric_distance` is a metric.

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
        if isinstance(self.weights, str):
            fitted = clone(self).fit(X)  # patterns that X does not have match nothing
            new = None if Y is None else fitted._new_features(fitted._new_graphs(Y))
            distances: np.ndarray = fitted._distance(fitted._fitted, new, None, 1.0, out)
            return distances
        check_is_fitted(self)
        forest, colored = self._extractor.forest, []
        for side in (X,) if Y is None else (X, Y):
            forest, colors = forest.extend(self._new_graphs(side), self._n_jobs())
            colored.append(colors)
        extractor = replace(self._extractor, forest=forest)
        weights = self._extended_weights(forest)
        pairs = [extractor.pairs(extractor.count(colors)) for colors in colored]
        sides = [Features.of(each, weights) for each in pairs]
        # no distance is negative
        offset = max(self._offset(), *(float(side.diagonal.max()) for side in sides))
        right = None if Y is None else sides[1]
        distances = self._distance(sides[0], right, weights, offset, out)
        learned = getattr(self.learner_, "result_", None)
        if learned is not None and self.kernel != "laplacian":
            distances += learned.margins.b - offset
        return distances

    def _extended_weights(self, extended: PatternForest) -> np.ndarray:
        """Return the learned weights, and ones for the patterns that a vocabulary adds."""
        first = self._extractor.first_depth
        offsets = self._extractor.forest.level_offsets[first:]
        known = np.split(self.weights_, offsets[1:-1] - offsets[0])
        sizes = np.diff(extended.level_offsets)[first:]
        return np.concatenate(
            [np.append(w, np.ones(n - len(w))) for w, n in zip(known, sizes, strict=True)]
        )

    def _offset(self) -> float:
        """Return b, which keeps ``b - <W, Z>`` from being negative; of uniform weights 1."""
        return 1.0 if self._weights() is None else float(self._fitted.diagonal.max())

    def _distance(
        self,
        left: Features,
        right: Features | None,
        weights: np.ndarray | None,
        offset: float,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        other = None if right is None else right.pairs
        n_jobs = self._n_jobs()
        if self.kernel == "laplacian":
            sums = pair_sums(left.pairs, other, weights, n_jobs=n_jobs, out=out)
            return l1_distance(sums, left.diagonal, (right or left).diagonal)
        return pair_sums(left.pairs, other, weights, n_jobs=n_jobs, out=out, offset=offset)

    def _kernel(self, left: Features, right: Features | None) -> np.ndarray:
        if self.kernel == "wwl-linear":
            return super()._kernel(left, right)
        offset = self._offset()
        distance = self._distance(left, right, self._weights(), offset)
        kernel = exponential(distance, self.gamma, out=distance)
        own, theirs = (
            np.exp(-self.gamma * (offset - side.diagonal))
            if self.kernel == "wwl"
            else np.ones(len(side.diagonal))
            for side in (left, right or left)
        )
        return normalize_kernel(kernel, own, theirs, self.normalize)
