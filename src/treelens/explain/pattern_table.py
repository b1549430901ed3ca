"""Tables of patterns: their weights, where they occur, and in which order to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treelens.explain.decode import pattern_texts
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms

if TYPE_CHECKING:
    import pandas as pd


def pattern_table(
    forest: PatternForest,
    histograms: PatternHistograms,
    weights: np.ndarray,
    targets: np.ndarray,
    classes: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per pattern in use, sorted by weight, then support, depth and text.

    Columns: ``pattern`` (text form), ``tree``, ``depth``, ``weight`` and ``support`` (number of
    training graphs that have it). With classes, one ``frequency CLASS`` each (mean share of the
    nodes of a graph of that class that carry it), and ``class``, the class where that share is
    largest. Without, ``mean_with`` and ``mean_without``, the mean target of the graphs that have
    the pattern and of the others (NaN where there are none). The index is the pattern's id.

    ``histograms`` are those of the training graphs, whose patterns are the last ones of the
    forest; ``targets`` are class codes, or values.
    """
    import pandas as pd

    ids = np.arange(forest.n_patterns - histograms.n_patterns, forest.n_patterns)
    if classes is None:
        by_target = _value_columns(histograms, targets)
    else:
        shares = class_shares(histograms, targets, len(classes))  # (n_patterns, n_classes)
        by_target = {f"frequency {c}": shares[:, k] for k, c in enumerate(classes.tolist())}
        by_target["class"] = classes[shares.argmax(axis=1)]
    return rank_patterns(
        pd.DataFrame(
            {
                "pattern": pattern_texts(forest, ids),
                "tree": forest.tree_names(ids),
                "depth": histograms.depths,
                "weight": weights,
                "support": histograms.support,
                **by_target,
            },
            index=pd.Index(ids, name="pattern_id"),
        )
    )


def _value_columns(histograms: PatternHistograms, values: np.ndarray) -> dict[str, np.ndarray]:
    present = histograms.to_sparse()
    present.data[:] = 1.0
    n_with = np.asarray(present.sum(axis=0)).ravel()
    sum_with = present.T @ values
    n_without = len(values) - n_with
    empty = np.full(len(n_with), np.nan)
    return {
        "mean_with": np.divide(sum_with, n_with, out=empty.copy(), where=n_with > 0),
        "mean_without": np.divide(
            values.sum() - sum_with, n_without, out=empty.copy(), where=n_without > 0
        ),
    }


def class_shares(histograms: PatternHistograms, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean relative frequency of every pattern in every class, shape (n_patterns, n_classes)."""
    members = np.eye(n_classes)[codes]  # (n_graphs, n_classes)
    members /= members.sum(axis=0).clip(1)
    return np.asarray(histograms.to_sparse("frequencies").T @ members)


def rank_patterns(table: pd.DataFrame, by: str = "weight") -> pd.DataFrame:
    """Sort a pattern table by one of its columns, largest first.

    Ties are broken by support, then depth (shallow first), then text, then id.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"pattern": ["C", "O"], "depth": 0, "support": [9, 3], "weight": 1.0})
    >>> rank_patterns(table)["pattern"].tolist()
    ['C', 'O']
    """
    if by not in table.columns:
        raise ValueError(f"by must be a column of the table {list(table.columns)}, got {by!r}.")
    columns = [by, *(c for c in ("support", "depth", "pattern") if c != by)]
    ascending = [c in ("depth", "pattern") and c != by for c in columns]
    return table.sort_index(kind="stable").sort_values(columns, ascending=ascending, kind="stable")
