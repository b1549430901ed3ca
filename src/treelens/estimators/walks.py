"""The shortest-path and the random-walk kernel as scikit-learn transformers."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from treelens._sklearn_compat import Interval, StrOptions, available_if
from treelens.errors import IgnoredDataWarning
from treelens.estimators.kernels import GraphKernel
from treelens.graphs.collection import GraphCollection
from treelens.kernels._compiled import WalkedGraphs
from treelens.kernels.gram import normalize_kernel
from treelens.kernels.random_walk import (
    check_convergence,
    walk_diagonal,
    walk_kernel,
    walked_graphs,
)
from treelens.patterns.forest import takes_edge_labels
from treelens.patterns.histograms import Features, PairFeatures
from treelens.patterns.paths import (
    LabelCodes,
    PathCounts,
    ShortestPathVocabulary,
    WalkVocabulary,
    has_few_walks,
    read_labels,
)
from treelens.patterns.vocabulary import PatternVocabulary

# Label sequences are counted where that takes at most so many steps, about two gigabytes.
_MOST_STEPS = 2**25


def _features(counts: PathCounts) -> Features:
    return Features(counts.pair_features(), counts.diagonal())


def _warn_of_unused(kernel: str, graphs: GraphCollection, attributes_only: bool = False) -> None:
    """Warn of what training graphs have, and a kernel does not compare."""
    has = {
        "edge labels": graphs.edge_codes is not None and not attributes_only,
        f"node attributes ({', '.join(graphs.attribute_names)})": bool(graphs.attribute_names),
        f"edge attributes ({', '.join(graphs.edge_attribute_names)})": bool(
            graphs.edge_attribute_names
        ),
    }
    if unused := [what for what, there in has.items() if there]:
        warnings.warn(
            f"{kernel} does not use {' and '.join(unused)}; WLSubtree, WLOptimalAssignment and "
            "WassersteinWL do.",
            IgnoredDataWarning,
            stacklevel=4,
        )


class ShortestPath(GraphKernel):
    """Shortest-path kernel: dot products of counts of (label, label, distance) triples.

    A graph is described by the pairs of different nodes that some path joins: their labels and the
    number of edges of a shortest path (Borgwardt and Kriegel 2005). Of directed graphs, paths
    follow the edges and pairs are ordered. Edge labels and attributes are not used: there is a
    warning where training graphs have them.

    Parameters
    ----------
    ordered : bool, default=True
        Whether a pair of nodes counts from both ends, as in GraKeL's ``ShortestPath``. Two graphs
        with ``c`` and ``c'`` pairs of one kind then get ``2 c c'`` where the two labels differ and
        ``4 c c'`` where they are the same; with False, every kind counts ``c c'``. Without effect
        on directed graphs.
    normalize : {None, "cosine", "tanimoto"}, default=None
    n_jobs : int, optional
        Threads; by default all processors, or what ``joblib.parallel_config`` says. The result does
        not depend on it.

    Attributes
    ----------
    vocabulary_ : ShortestPathVocabulary

    Examples
    --------
    >>> from treelens import ShortestPath
    >>> path = [(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"}
    >>> triangle = [(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"}
    >>> ShortestPath(ordered=False).fit_transform([path, triangle])
    array([[3., 3.],
           [3., 9.]])
    >>> kernel = ShortestPath().fit([path, triangle])
    >>> kernel.transform([triangle])
    array([[12., 36.]])
    >>> kernel.feature_map_names().tolist()
    ['1:C,C', '1:C,O', '2:C,O']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "ordered": ["boolean"],
    }

    def __init__(
        self, *, ordered: bool = True, normalize: str | None = None, n_jobs: int | None = None
    ) -> None:
        self.ordered = ordered
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _fit_features(self, graphs: GraphCollection, y: object) -> Features:
        _warn_of_unused(type(self).__name__, graphs)
        self.vocabulary_, counts = ShortestPathVocabulary.fit(graphs, self.ordered, self._n_jobs())
        return _features(counts)

    def _new_features(self, graphs: GraphCollection) -> Features:
        return _features(self.vocabulary_.transform(graphs, self.ordered, self._n_jobs()))


class _WalkedFeatures(NamedTuple):
    graphs: WalkedGraphs
    counts: Features | None  # of label sequences, where these are few


def _has_feature_map(kernel: RandomWalk) -> bool:
    if kernel.max_length is None:
        raise AttributeError(
            "The full series (max_length=None) has infinitely many features. Set max_length to a "
            "number for an explicit feature map."
        )
    return True


class RandomWalk(GraphKernel):
    """Random-walk kernel: common labelled walks, weighted by ``decay ** length``.

    ``K(G, G') = sum_k decay^k sum_s count_G(s) count_G'(s)`` over the lengths ``k`` and the label
    sequences ``s`` met along walks of ``k`` steps (Gärtner, Flach and Wrobel 2003). The sum begins
    at ``k = 0``, the node labels. A walk may turn back, and a walk and its reverse are two walks;
    in directed graphs, walks follow the edges. Attributes are not used: there is a warning where
    training graphs have them.

    With a finite ``max_length`` the counts of label sequences are an explicit feature map, and any
    ``decay`` will do. ``max_length=None`` sums all lengths by solving a linear system for every
    pair of graphs, which is slow for more than some hundred graphs; ``decay`` must then be small
    enough for the series to converge, for training graphs and for new ones.

    Parameters
    ----------
    max_length : int or None, default=4
        Largest number of steps of a walk; None sums over all lengths.
    decay : float, default=0.1
        The ``lambda`` of the series: the weight of a walk relative to one a step shorter.
    edge_labels : bool or "auto", default="auto"
        Whether walks include edge labels; ``"auto"``: where the training graphs have them.
    normalize : {None, "cosine", "tanimoto"}, default=None
    n_jobs : int, optional
        Threads; by default all processors, or what ``joblib.parallel_config`` says. The result does
        not depend on it.

    Examples
    --------
    >>> from treelens import RandomWalk
    >>> path = [(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"}
    >>> triangle = [(0, 1), (1, 2), (2, 0)], {0: "C", 1: "C", 2: "C"}
    >>> RandomWalk(max_length=1, decay=0.5).fit_transform([path, triangle])
    array([[ 8., 12.],
           [12., 27.]])
    >>> RandomWalk(max_length=None, decay=0.1).fit_transform([path, triangle]).round(3)
    array([[ 5.692,  7.5  ],
           [ 7.5  , 15.   ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GraphKernel._parameter_constraints,
        "max_length": [Interval(Integral, 0, None, closed="left"), None],
        "decay": [Interval(Real, 0, None, closed="neither")],
        "edge_labels": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        max_length: int | None = 4,
        *,
        decay: float = 0.1,
        edge_labels: bool | str = "auto",
        normalize: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_length = max_length
        self.decay = decay
        self.edge_labels = edge_labels
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _fit_features(self, graphs: GraphCollection, y: object) -> Any:
        _warn_of_unused(type(self).__name__, graphs, attributes_only=True)
        edge_labels = takes_edge_labels(self.edge_labels, graphs)
        self._labels, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
        self._sequences: WalkVocabulary | None = None
        self._fitted_graphs = graphs  # their sequences may be named later
        walked, few = self._walked(graphs, codes)
        return _WalkedFeatures(walked, _features(self._name_sequences()) if few else None)

    def _new_features(self, graphs: GraphCollection) -> Any:
        walked, few = self._walked(graphs, read_labels(graphs, self._labels)[1])
        named = self._sequences if self._fitted.counts is not None else None  # type: ignore[attr-defined]
        counts = named.transform(graphs, self.decay) if few and named is not None else None
        return _WalkedFeatures(walked, None if counts is None else _features(counts))

    def _walked(self, graphs: GraphCollection, codes: LabelCodes) -> tuple[WalkedGraphs, bool]:
        """Return the graphs, and whether their sequences are few enough to be counted."""
        walked = walked_graphs(graphs, codes)
        if self.max_length is None:
            check_convergence(walked, self.decay)
            return walked, False
        return walked, has_few_walks(graphs, codes, self.max_length, _MOST_STEPS)

    def _name_sequences(self) -> PathCounts:
        """Name the sequences of the training graphs; return how often each occurs."""
        assert self.max_length is not None  # else there are infinitely many
        self._sequences, counts = WalkVocabulary.fit(
            self._fitted_graphs, self.max_length, self.decay, self._labels.uses_edge_labels
        )
        return counts

    def _kernel(self, left: Any, right: Any) -> np.ndarray:
        graphs, counts = (None, left.counts) if right is None else right
        if left.counts is not None and counts is not None:
            return super()._kernel(left.counts, None if right is None else counts)
        settings = self.max_length, self.decay
        kernel = walk_kernel(left.graphs, graphs, *settings, self._n_jobs())
        if self.normalize is None:
            return kernel
        own = walk_diagonal(left.graphs, *settings)
        theirs = own if graphs is None else walk_diagonal(graphs, *settings)
        return normalize_kernel(kernel, own, theirs, self.normalize)

    @property
    def vocabulary_(self) -> WalkVocabulary | PatternVocabulary:
        """The label sequences, or with ``max_length=None`` just the labels."""
        check_is_fitted(self)
        if self.max_length is None:
            return self._labels
        if self._sequences is None:
            self._name_sequences()
        assert self._sequences is not None
        return self._sequences

    def _feature_pairs(self, graphs: GraphCollection) -> PairFeatures:
        vocabulary = self.vocabulary_
        assert isinstance(vocabulary, WalkVocabulary)
        return vocabulary.transform(graphs, self.decay).pair_features()

    @available_if(_has_feature_map)
    def feature_map(self, X: object) -> sparse.csr_array:
        """Explicit features ``sqrt(decay ** length) * count``, shape (n_graphs, n_features)."""
        return super().feature_map(X)

    @available_if(_has_feature_map)
    def feature_map_names(self) -> np.ndarray:
        """Text forms ``"length:label-label-..."`` of the sequences, in ``feature_map`` order."""
        return super().feature_map_names()
