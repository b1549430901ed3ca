"""Splits of a table of molecules: by scaffold, cluster, time or a column."""

from __future__ import annotations

import numpy as np

from treelens.chem.molecule_table import MoleculeTable
from treelens.errors import GraphDataError
from treelens.evaluation.splits import (
    ClusterKFold,
    DistinctKFold,
    GroupedKFold,
    ScaffoldKFold,
    Split,
    copy_keys,
    time_splits,
)

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
    if table.task == "classification" and split == "random":
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
            made += list(folds.split(table.graphs, y if table.task == "classification" else None))
    codes = np.unique(copy_keys(table.graphs), return_inverse=True)[1]
    kept = [(train, test[~np.isin(codes[test], codes[train])]) for train, test in made]
    if n := sum(len(test) for _, test in made) - sum(len(test) for _, test in kept):
        notes.append(f"{n} test molecules have a copy in their training part; they were left out.")
    for number, (train, test) in enumerate(kept, start=1):
        n_classes = len(np.unique(y[train])) if table.task == "classification" else 2
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
