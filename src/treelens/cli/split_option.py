"""``--split``: how ``treelens evaluate`` keeps test graphs apart from training graphs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError

if TYPE_CHECKING:
    import numpy as np

    from treelens.cli.data import GraphData
    from treelens.evaluation.splits import Split

_SIMPLE = ("random", "scaffold", "cluster")
_TRAIN, _TEST = ("train", "training"), ("test", "testing")
WORDS = {
    "random": "random folds, copies of a molecule together",
    "scaffold": "folds of whole Murcko scaffolds",
    "cluster": "folds of whole clusters (Butina, ECFP4 Tanimoto 0.4)",
}


def check_split(split: str) -> None:
    """Refuse what is no way to split before anything is read."""
    kind, _, column = split.partition("=")
    if split in _SIMPLE or (kind in ("time", "column") and column):
        return
    raise InputError(
        f"--split {split}: expected random, scaffold, cluster, time=COLUMN or column=COLUMN."
    )


def splits_for(
    data: GraphData,
    split: str,
    n_folds: int,
    n_repeats: int,
    seed: int,
    note: Callable[[str], None] = lambda text: None,
) -> list[Split]:
    """Training and test positions of every fold of every repetition."""
    from treelens.evaluation.splits import copy_keys, without_copies

    _check_sizes(data, n_folds, split)
    kind, _, column = split.partition("=")
    if kind in ("time", "column"):
        made = _by_column(data, kind, column, n_folds, seed)
        if n_repeats > 1:
            note(f"--repeats {n_repeats} is not used: there is one way to split by {column!r}.")
    else:
        made = [pair for k in range(n_repeats) for pair in _folds(data, split, n_folds, seed + k)]
    made, n_copies = without_copies(made, copy_keys(data.graphs))
    if n_copies:
        note(f"{n_copies} test molecules have a copy in their training part; they were left out.")
    _check_parts(data, made, split)
    return made


def _check_sizes(data: GraphData, n_folds: int, split: str) -> None:
    """Too few graphs, or too few of a class, for so many folds."""
    import numpy as np

    assert data.y is not None
    if len(data.y) < 2 * n_folds:
        raise InputError(
            f"There are {len(data.y)} graphs: with --folds {n_folds} some folds would hold less "
            f"than two. Use --folds {max(2, len(data.y) // 2)}, or more graphs."
        )
    if data.task == "regression" or split != "random":
        return
    classes, counts = np.unique(data.y, return_counts=True)
    rarest = int(counts.min())
    if rarest < n_folds:
        raise InputError(
            f"The class {classes[counts.argmin()].item()!r} has {rarest} members: with --folds "
            f"{n_folds} some folds would have none. Use --folds {max(2, rarest)}, or more of it."
        )


def _folds(data: GraphData, split: str, n_folds: int, seed: int) -> list[Split]:
    from treelens.evaluation import splits

    kinds = {
        "random": splits.DistinctKFold,
        "scaffold": splits.ScaffoldKFold,
        "cluster": splits.ClusterKFold,
    }
    y = None if data.task == "regression" else data.y
    return list(kinds[split](n_folds, random_state=seed).split(data.graphs, y))


def _by_column(data: GraphData, kind: str, column: str, n_folds: int, seed: int) -> list[Split]:
    import numpy as np

    from treelens.evaluation.splits import GroupedKFold, time_splits

    if kind == "time":
        return time_splits(_latest_times(data, column), n_folds)
    texts = column_values(data, column)
    sides = _sides(data, column)
    if np.isin(sides, _TEST).any() and np.isin(sides, _TRAIN).any():
        return [(np.flatnonzero(np.isin(sides, _TRAIN)), np.flatnonzero(np.isin(sides, _TEST)))]
    n_groups = len(np.unique(texts))
    if n_groups < 2:
        raise InputError(
            f"--split column={column}: the column holds one value only ({str(texts[0])!r}). "
            "Expected train and test, or the name of a group in every row."
        )
    folds = GroupedKFold(min(n_folds, n_groups), random_state=seed)
    return list(folds.split(texts, None, texts))


def _sides(data: GraphData, column: str) -> np.ndarray:
    """The column in small letters; of merged rows, train if one of them is.

    What was trained on is not tested, as with copies of a molecule.
    """
    import numpy as np

    if data.merged is None:
        return np.char.lower(column_values(data, column))
    sides = np.char.lower(column_values(data, column, np.concatenate(data.merged)))
    return np.array(
        [next((side for side in some if side in _TRAIN), some[0])
         for some in _by_graph(sides, data.merged)]
    )  # fmt: skip


def _latest_times(data: GraphData, column: str) -> np.ndarray:
    """When the last of the rows was measured that a graph stands for.

    A target that several rows were merged to is not known before.
    """
    import numpy as np

    if data.merged is None:
        return _as_times(column_values(data, column))
    times = _as_times(column_values(data, column, np.concatenate(data.merged)))
    return np.array([max(some) for some in _by_graph(times, data.merged)])


def _by_graph(values: np.ndarray, merged: Sequence[np.ndarray]) -> list[list[Any]]:
    """Values of merged rows, one list for each graph that these became."""
    import numpy as np

    ends = np.cumsum([len(rows) for rows in merged])
    return [some.tolist() for some in np.split(values, ends[:-1])]


def _as_times(texts: np.ndarray) -> np.ndarray:
    """Numbers where all are, else dates where pandas knows all of them, else texts in order."""
    import numpy as np
    import pandas as pd

    try:
        return texts.astype(float)
    except ValueError:
        pass
    dates = pd.to_datetime(pd.Series(texts), errors="coerce", format="mixed")
    return texts if dates.isna().any() else dates.to_numpy().astype(np.int64)


def column_values(data: GraphData, column: str, rows: np.ndarray | None = None) -> np.ndarray:
    """A column of the source as texts, for rows (by default the one of each graph).

    A gap is an error that names its row.
    """
    import numpy as np

    if data.table is None:
        raise InputError(f"--split: {data.source} has no columns. Use random or cluster.")
    known = data.table.columns
    if column not in known:
        close = difflib.get_close_matches(column, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        listed = ", ".join(map(repr, known[:50]))
        raise InputError(
            f"{data.source} has no column {column!r} (--split).{hint} It has {listed}."
        )
    every, wanted = data.table.column(column, "split"), (data.rows if rows is None else rows)
    texts = [every[row].strip() for row in wanted.tolist()]
    empty = [row + 1 for row, text in zip(wanted.tolist(), texts, strict=True) if not text]
    if empty:
        raise InputError(
            f"{data.source}: {column!r} is empty in {len(empty)} rows, the first row {empty[0]}: "
            "fill it in, or remove these rows."
        )
    return np.array(texts)


def _check_parts(data: GraphData, splits: list[Any], split: str) -> None:
    """Every part must leave something to learn and something to test."""
    import numpy as np

    for number, (train, test) in enumerate(splits, start=1):
        if not len(test) or len(train) < 2:
            raise InputError(
                f"--split {split}: split {number} has {len(train)} training and {len(test)} test "
                "graphs. Use fewer --folds, or another split."
            )
        assert data.y is not None
        if data.task != "regression" and len(np.unique(data.y[train])) < 2:
            raise InputError(
                f"--split {split}: the training part of split {number} holds one class only. Use "
                "fewer --folds, or another split."
            )
