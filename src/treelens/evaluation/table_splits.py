"""Splits of a table of molecules: random, by scaffold, by cluster, by time or by a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from treelens.evaluation import splits
from treelens.evaluation.splits import GroupedKFold, Split, copy_keys, time_splits, without_copies
from treelens.graphs.errors import GraphDataError
from treelens.graphs.molecule_table import MoleculeTable

_FOLDS = {
    "random": splits.DistinctKFold,
    "scaffold": splits.ScaffoldKFold,
    "cluster": splits.ClusterKFold,
}
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
    _check_sizes(table, n_folds, split)
    kind, _, column = split.partition("=")
    if kind in ("time", "column"):
        made = _by_column(table, kind, column, n_folds, seed)
        if n_repeats > 1:
            notes.append(f"{n_repeats} repeats are not used: there is one split by {column!r}.")
    else:
        y = None if table.task == "regression" else table.y
        made = []
        for k in range(n_repeats):
            folds = _FOLDS[split](n_folds, random_state=seed + k)
            made += list(folds.split(table.graphs, y))
    made, n_copies = without_copies(made, copy_keys(table.graphs))
    if n_copies:
        notes.append(
            f"{n_copies} test molecules have a copy in their training part; they were left out."
        )
    _check_parts(table, made, split)
    return made


def _check_sizes(table: MoleculeTable, n_folds: int, split: str) -> None:
    """Raise on too few graphs, or too few of a class, for so many folds."""
    assert table.y is not None
    if len(table.y) < 2 * n_folds:
        raise GraphDataError(
            f"There are {len(table.y)} graphs: with {n_folds} folds some would have less than two. "
            f"Use {max(2, len(table.y) // 2)} folds, or more graphs."
        )
    if table.task == "regression" or split != "random":
        return
    classes, counts = np.unique(table.y, return_counts=True)
    rarest = int(counts.min())
    if rarest < n_folds:
        raise GraphDataError(
            f"The class {classes[counts.argmin()].item()!r} has {rarest} members: with {n_folds} "
            f"folds some would have none. Use {max(2, rarest)} folds, or more of it."
        )


def _by_column(
    table: MoleculeTable, kind: str, column: str, n_folds: int, seed: int
) -> list[Split]:
    """Merged rows are as late as their latest, and train where one of them is."""
    merged = [np.array([row]) for row in table.rows] if table.merged is None else table.merged
    texts = _texts(table, column, np.concatenate(merged))
    ends = np.cumsum([len(rows) for rows in merged])[:-1]
    if kind == "time":
        return time_splits(np.array([max(t) for t in np.split(_as_times(texts), ends)]), n_folds)
    sides = [
        next((side for side in some if side in _TRAIN), some[0])
        for some in (part.tolist() for part in np.split(np.char.lower(texts), ends))
    ]
    train, test = (np.flatnonzero(np.isin(sides, names)) for names in (_TRAIN, _TEST))
    if len(train) and len(test):
        return [(train, test)]
    groups = np.array([some[0] for some in np.split(texts, ends)])
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise GraphDataError(
            f"split column={column}: the column holds one value only ({str(texts[0])!r}). "
            "Expected train and test, or the name of a group in every row."
        )
    folds = GroupedKFold(min(n_folds, n_groups), random_state=seed)
    return list(folds.split(groups, None, groups))


def _texts(table: MoleculeTable, column: str, rows: np.ndarray) -> np.ndarray:
    texts = np.array([text.strip() for text in table.column(column, rows)])
    empty = rows[texts == ""] + 1
    if len(empty):
        raise GraphDataError(
            f"{table.source}: {column!r} is empty in {len(empty)} rows, the first row {empty[0]}: "
            "fill it in, or remove these rows."
        )
    return texts


def _as_times(texts: np.ndarray) -> np.ndarray:
    """Numbers where all are, else dates where pandas knows all of them, else texts in order."""
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce")
    if numbers.notna().all():
        return numbers.to_numpy(dtype=float)
    dates = pd.to_datetime(pd.Series(texts), errors="coerce", format="mixed")
    return texts if dates.isna().any() else dates.to_numpy().astype(np.int64)


def _check_parts(table: MoleculeTable, made: Sequence[Any], split: str) -> None:
    """Raise where a part leaves nothing to learn or to test."""
    assert table.y is not None
    for number, (train, test) in enumerate(made, start=1):
        if not len(test) or len(train) < 2:
            raise GraphDataError(
                f"split {split}: split {number} has {len(train)} training and {len(test)} test "
                "graphs. Use fewer folds, or another split."
            )
        if table.task != "regression" and len(np.unique(table.y[train])) < 2:
            raise GraphDataError(
                f"split {split}: the training part of split {number} holds one class only. Use "
                "fewer folds, or another split."
            )
