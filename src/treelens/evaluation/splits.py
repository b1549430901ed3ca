"""Splits of molecules by copy, scaffold, cluster, group or time, as scikit-learn splitters.

A random split measures interpolation within series: most test molecules have a close analogue in
the training set. Scaffold, cluster and time splits are closer to how models are used. Copies of a
molecule are never on both sides of a split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from treelens.errors import GraphDataError
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_graph_collection
from treelens.graphs.kinds import kind_of_facts
from treelens.kernels.gram import tanimoto_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Split = tuple[np.ndarray, np.ndarray]
_BLOCK = 1024  # rows of similarities in memory at a time


class _Folds(BaseCrossValidator):
    """Base of the splitters: subclasses give the fold of each graph."""

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """The number of folds; the arguments are ignored."""
        return self.n_splits

    def _iter_test_masks(self, X: object, y: object, groups: object) -> Iterator[np.ndarray]:
        if self.n_splits < 2:
            raise ValueError(f"n_splits must be at least 2; got {self.n_splits}.")
        numbers = self._fold_numbers(X, y, groups)
        return (numbers == fold for fold in range(self.n_splits))

    _fold_numbers: Callable[..., np.ndarray]  # of X, y and groups: (n_graphs,)

    def _assign(self, groups: np.ndarray, what: str) -> np.ndarray:
        n_groups = len(np.unique(groups))
        if n_groups < self.n_splits:
            raise ValueError(
                f"There are {n_groups} {what} for {self.n_splits} folds, and each must stay whole: "
                "take fewer folds, or split in another way."
            )
        generator = check_random_state(self.random_state) if self.shuffle else None
        return balanced_folds(groups, self.n_splits, generator)


class DistinctKFold(_Folds):
    """Random folds in which copies of a molecule stay together, stratified for classes.

    Copies are molecules with the same canonical SMILES; other graphs all count as distinct.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> graphs = ["CCO", "OCC", "CCN", "NCC"]  # two molecules, each written twice
    >>> [test.tolist() for _, test in DistinctKFold(2, random_state=0).split(graphs)]
    [[0, 1], [2, 3]]
    """

    def _fold_numbers(self, X: object, y: object, groups: object) -> np.ndarray:
        keys = copy_keys(as_graph_collection(X))
        _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
        classes = y is not None and type_of_target(y) in ("binary", "multiclass")
        splitter = StratifiedKFold if classes else KFold
        seed = self.random_state if self.shuffle else None
        folds = splitter(self.n_splits, shuffle=self.shuffle, random_state=seed)
        numbers = np.empty(len(first), dtype=np.int64)
        labels = np.asarray(y)[first] if classes else None
        for fold, (_, test) in enumerate(folds.split(first, labels)):
            numbers[test] = fold
        return numbers[copy_of]


class ScaffoldKFold(_Folds):
    """Folds of whole Bemis-Murcko scaffolds: test scaffolds do not occur in the training part.

    Scaffolds larger than half a fold are assigned first, the largest before the others, then the
    rest in random order, each to the smallest fold. All molecules without a ring count as one
    scaffold.

    ``n_splits``, ``shuffle`` and ``random_state`` are as for :class:`DistinctKFold`;
    ``shuffle=False``: by size alone.

    Examples
    --------
    >>> molecules = ["c1ccccc1C", "c1ccccc1O", "C1CCCCC1", "C1CCCC1"]
    >>> [test.tolist() for _, test in ScaffoldKFold(2, random_state=0).split(molecules)]
    [[0, 1], [2, 3]]
    """

    def _fold_numbers(self, X: object, y: object, groups: object) -> np.ndarray:
        graphs = as_graph_collection(X)
        scaffolds = kind_of_facts(graphs.graph_data).families(graphs)
        if scaffolds is None:
            raise GraphDataError(
                "These graphs were not read from molecules, so they have no scaffolds: read them "
                "with read_smiles, or use random folds."
            )
        return self._assign(np.array(scaffolds), "scaffolds")


class ClusterKFold(_Folds):
    """Folds of whole Butina clusters by Tanimoto similarity.

    The similarity is that of ECFP4 bits for molecules, and of the counts of Weisfeiler-Lehman
    patterns to depth 2 for other graphs. ``similarity`` is the least of a member of a cluster to
    its centre; the other parameters are as for :class:`DistinctKFold`.

    Examples
    --------
    >>> molecules = ["CCCCCCO", "CCCCCCCO", "c1ccccc1N", "c1ccccc1NC", "O=C(O)CBr"]
    >>> folds = ClusterKFold(2, random_state=0).split(molecules)
    >>> sorted(test.tolist() for _, test in folds)
    [[0, 1, 4], [2, 3]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        similarity: float = 0.4,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.similarity = similarity

    def _fold_numbers(self, X: object, y: object, groups: object) -> np.ndarray:
        clusters = similar_clusters(as_graph_collection(X), self.similarity)
        return self._assign(clusters, "clusters")


class GroupedKFold(_Folds):
    """Folds of whole groups: ``split(X, y, groups)``, one value per graph.

    ``n_splits``, ``shuffle`` and ``random_state`` are as for :class:`DistinctKFold`.
    """

    def _fold_numbers(self, X: object, y: object, groups: object) -> np.ndarray:
        if groups is None:
            raise ValueError("GroupedKFold needs groups: split(X, y, groups), one value per graph.")
        return self._assign(np.asarray(groups), "groups")


def time_splits(times: ArrayLike, n_splits: int = 5) -> list[Split]:
    """Splits that train on the past and test on the next part in time.

    Parameters
    ----------
    times : array-like, shape (n_graphs,)
        Numbers, dates, or strings that sort, such as ``"2024-03-01"``. Graphs of the same time
        stay together.
    n_splits : int, default=5
        The graphs are cut into one part more than that, in order of time; each but the first is
        tested with all before it for training.

    Returns
    -------
    list of (train, test)

    Examples
    --------
    >>> [(a.tolist(), b.tolist()) for a, b in time_splits([3, 1, 2], n_splits=2)]
    [([1], [2]), ([1, 2], [0])]
    """
    moments, when = np.unique(np.asarray(times), return_inverse=True)
    if len(moments) <= n_splits:
        raise ValueError(
            f"There are {len(moments)} different times: {n_splits} splits need at least "
            f"{n_splits + 1}. Take fewer folds."
        )
    passed = np.cumsum(np.bincount(when))  # graphs up to and with each moment
    part = (passed - 1) * (n_splits + 1) // len(when)
    part = np.unique(part, return_inverse=True)[1][when]  # one moment may fill more than one part
    return [(np.flatnonzero(part < k), np.flatnonzero(part == k)) for k in range(1, part.max() + 1)]


# --- groups -----------------------------------------------------------------------------------


def copy_keys(graphs: GraphCollection) -> np.ndarray:
    """A key per graph that copies of a molecule share; of other graphs all are different."""
    return kind_of_facts(graphs.graph_data).copy_keys(graphs)


def balanced_folds(
    groups: np.ndarray, n_splits: int, generator: np.random.Generator | None = None
) -> np.ndarray:
    """A fold per graph, whole groups together and folds of about the same size.

    Each group goes into the smallest fold: the largest group first or, with a random generator,
    those larger than half a fold first and then the rest in random order.
    """
    _, members = np.unique(groups, return_inverse=True)
    sizes = np.bincount(members)
    order = np.argsort(-sizes, kind="stable")  # equal sizes: in the order of their names
    if generator is not None:
        n_large = int((sizes > len(members) / (2 * n_splits)).sum())
        order = np.concatenate([order[:n_large], generator.permutation(np.sort(order[n_large:]))])
    fold_of, filled = np.zeros(len(sizes), np.int64), np.zeros(n_splits, np.int64)
    for group in order:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[members]


def similar_clusters(graphs: GraphCollection, similarity: float = 0.4) -> np.ndarray:
    """The Butina cluster of each graph; see :class:`ClusterKFold`."""
    counts = kind_of_facts(graphs.graph_data).fingerprints(graphs)
    if counts is None:
        from treelens.patterns.forest import PatternForest, usual_trees

        forest, colors = PatternForest.fit(graphs, 2, usual_trees(graphs)[:1])
        counts = forest.count(colors).to_sparse()
    return butina_clusters(counts, similarity)


def butina_clusters(counts: Any, similarity: float) -> np.ndarray:
    """Butina's clusters (1999): the row with most neighbours takes them, then the next row.

    Of rows with equally many neighbours the last one comes first, as in RDKit's ``ClusterData``.
    """
    neighbours: list[np.ndarray] = []  # of each row, itself among them
    for start in range(0, counts.shape[0], _BLOCK):
        rows = tanimoto_matrix(counts[start : start + _BLOCK], counts)
        rows[np.arange(len(rows)), start + np.arange(len(rows))] = 1.0  # whatever rounding did
        neighbours += [np.flatnonzero(row >= similarity) for row in rows]
    sizes = np.array([len(found) for found in neighbours])
    clusters = np.full(len(sizes), -1, dtype=np.int64)
    n_found = 0
    for centre in np.argsort(sizes, kind="stable")[::-1]:
        if clusters[centre] < 0:
            members = neighbours[centre]
            clusters[members[clusters[members] < 0]] = n_found
            n_found += 1
    return clusters
