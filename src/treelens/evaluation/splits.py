"""Splits of molecules by copy, scaffold, cluster, group or time, as scikit-learn splitters.

A random split measures interpolation within series: most test molecules have a close analogue in
the training set. Scaffold, cluster and time splits are closer to how models are used. Copies of a
molecule are never on both sides of a split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from treelens.chem.ecfp import fingerprint_counts, molecules_behind, tanimoto_matrix
from treelens.chem.molecule_table import MoleculeTable
from treelens.errors import GraphDataError
from treelens.graphs.collection import GraphCollection
from treelens.graphs.convert import as_graph_collection

Split = tuple[np.ndarray, np.ndarray]
_BLOCK = 1024  # rows of similarities in memory at a time


class _Folds(BaseCrossValidator):
    """Base of the splitters: subclasses give the fold of each graph."""

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds; the arguments are ignored."""
        return self.n_splits

    def _iter_test_masks(self, X: Any, y: Any, groups: Any) -> Iterator[np.ndarray]:
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

    def _fold_numbers(self, X: Any, y: Any, groups: Any) -> np.ndarray:
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

    def _fold_numbers(self, X: Any, y: Any, groups: Any) -> np.ndarray:
        molecules = molecules_behind(as_graph_collection(X))
        return self._assign(np.array(murcko_scaffolds(molecules)), "scaffolds")


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
        random_state: Any = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.similarity = similarity

    def _fold_numbers(self, X: Any, y: Any, groups: Any) -> np.ndarray:
        graphs = as_graph_collection(X)
        if {"smiles", "mol"} & set(graphs.graph_data):
            counts = (fingerprint_counts(molecules_behind(graphs)) > 0).astype(float)
        else:
            from treelens.patterns.forest import PatternForest, usual_trees

            forest, colors = PatternForest.fit(graphs, 2, usual_trees(graphs)[:1])
            counts = forest.count(colors).to_sparse()
        return self._assign(butina_clusters(counts, self.similarity), "clusters")


class GroupedKFold(_Folds):
    """Folds of whole groups: ``split(X, y, groups)``, one value per graph.

    ``n_splits``, ``shuffle`` and ``random_state`` are as for :class:`DistinctKFold`.
    """

    def _fold_numbers(self, X: Any, y: Any, groups: Any) -> np.ndarray:
        if groups is None:
            raise ValueError("GroupedKFold needs groups: split(X, y, groups), one value per graph.")
        return self._assign(np.asarray(groups), "groups")


def time_splits(times: Any, n_splits: int = 5) -> list[Split]:
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
    if not {"smiles", "mol"} & set(graphs.graph_data):
        return np.arange(len(graphs))
    from rdkit import Chem

    return np.array([Chem.MolToSmiles(molecule) for molecule in molecules_behind(graphs)])


def balanced_folds(groups: np.ndarray, n_splits: int, generator: Any = None) -> np.ndarray:
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


def murcko_scaffolds(molecules: Sequence[Any]) -> list[str]:
    """SMILES of the ring systems and what links them; empty for a molecule without rings."""
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    return [MurckoScaffoldSmiles(mol=molecule) for molecule in molecules]


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


# --- splits of a table -------------------------------------------------------------------------

_FOLDS = {"random": DistinctKFold, "scaffold": ScaffoldKFold, "cluster": ClusterKFold}
_TRAIN, _TEST = ("train", "training"), ("test", "testing")


def check_split(split: str) -> None:
    """Raise unless this is a way to split: ``"scaffold"``, ``"time=COLUMN"``, ..."""
    kind, _, column = split.partition("=")
    if split not in _FOLDS and not (kind in ("time", "column") and column):
        raise ValueError(
            f"split={split}: expected random, scaffold, cluster, time=COLUMN or column=COLUMN."
        )


def table_splits(
    table: MoleculeTable, split: str, n_folds: int, n_repeats: int, seed: int, notes: list[str]
) -> list[Split]:
    """Return training and test positions of every fold; copies never stand on both sides."""
    check_split(split)
    assert table.targets is not None
    y = table.targets.values
    if len(y) < 2 * n_folds:
        raise GraphDataError(
            f"There are {len(y)} graphs: with {n_folds} folds some would have less than two. "
            f"Use {max(2, len(y) // 2)} folds, or more graphs."
        )
    if table.task != "regression" and split == "random":
        classes, counts = np.unique(y, return_counts=True)
        if (rarest := int(counts.min())) < n_folds:
            raise GraphDataError(
                f"The class {classes[counts.argmin()].item()!r} has {rarest} members: with "
                f"{n_folds} folds some would have none. Use {max(2, rarest)} folds, or more of it."
            )
    kind, _, column = split.partition("=")
    if kind in ("time", "column"):
        made = _by_column(table, kind, column, n_folds, seed)
        if n_repeats > 1:
            notes.append(f"{n_repeats} repeats are not used: there is one split by {column!r}.")
    else:
        made = []
        for k in range(n_repeats):
            folds = _FOLDS[split](n_folds, random_state=seed + k)
            made += list(folds.split(table.graphs, None if table.task == "regression" else y))
    codes = np.unique(copy_keys(table.graphs), return_inverse=True)[1]
    kept = [(train, test[~np.isin(codes[test], codes[train])]) for train, test in made]
    if n := sum(len(test) for _, test in made) - sum(len(test) for _, test in kept):
        notes.append(f"{n} test molecules have a copy in their training part; they were left out.")
    for number, (train, test) in enumerate(kept, start=1):
        n_classes = 2 if table.task == "regression" else len(np.unique(y[train]))
        if not len(test) or len(train) < 2 or n_classes < 2:
            raise GraphDataError(
                f"split {split}: split {number} has {len(train)} training graphs, {len(test)} test "
                "graphs, or one class only to learn from. Use fewer folds, or another split."
            )
    return kept


def _by_column(
    table: MoleculeTable, kind: str, column: str, n_folds: int, seed: int
) -> list[Split]:
    """Merged rows are as late as their latest, and train where one of them is."""
    merged = [np.array([row]) for row in table.rows] if table.merged is None else table.merged
    rows = np.concatenate(merged)
    texts = np.array([text.strip() for text in table.column(column, rows)])
    if len(empty := rows[texts == ""] + 1):
        raise GraphDataError(
            f"{table.source}: {column!r} is empty in {len(empty)} rows, the first row {empty[0]}: "
            "fill it in, or remove these rows."
        )
    ends = np.cumsum([len(rows) for rows in merged])[:-1]
    if kind == "time":
        return time_splits(np.array([max(t) for t in np.split(_as_times(texts), ends)]), n_folds)
    parts = np.split(np.char.lower(texts), ends)
    is_train = np.array([np.isin(part, _TRAIN).any() for part in parts])
    is_test = ~is_train & [part[0] in _TEST for part in parts]
    if is_train.any() and is_test.any():
        return [(np.flatnonzero(is_train), np.flatnonzero(is_test))]
    groups = np.array([some[0] for some in np.split(texts, ends)])
    if (n_groups := len(np.unique(groups))) < 2:
        raise GraphDataError(
            f"split column={column}: the column holds one value only ({str(texts[0])!r}). "
            "Expected train and test, or the name of a group in every row."
        )
    folds = GroupedKFold(min(n_folds, n_groups), random_state=seed)
    return list(folds.split(groups, None, groups))


def _as_times(texts: np.ndarray) -> np.ndarray:
    """Numbers where all are, else dates where pandas knows all of them, else texts in order."""
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(texts), errors="coerce")
    if numbers.notna().all():
        return numbers.to_numpy(dtype=float)
    dates = pd.to_datetime(pd.Series(texts), errors="coerce", format="mixed")
    return texts if dates.isna().any() else dates.to_numpy().astype(np.int64)
