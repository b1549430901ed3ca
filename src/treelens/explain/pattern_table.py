"""The pattern table: what a model's patterns are, and where they occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

if TYPE_CHECKING:
    import pandas as pd


def pattern_table(
    vocabulary: PatternVocabulary | PatternForest,
    histograms: PatternHistograms,
    weights: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
) -> pd.DataFrame:
    """One row per pattern, sorted by weight, then support, then text.

    Columns: ``pattern`` (text form), of a forest the ``tree``, ``depth``, ``weight``, ``support``
    (number of training graphs that hold it), one ``frequency CLASS`` per class (mean share of the
    nodes of a graph of that class that carry it), and ``leans_to``, the class where that share is
    largest. The index is the pattern's id in the vocabulary.
    """
    import pandas as pd

    start = int(vocabulary.level_offsets[histograms.first_depth])
    ids = np.arange(start, start + histograms.n_patterns)
    shares = class_shares(histograms, codes, len(classes))  # (n_patterns, n_classes)
    table = pd.DataFrame(
        {
            "pattern": vocabulary.texts(ids),
            **_tree_column(vocabulary, ids),
            "depth": histograms.depths,
            "weight": weights,
            "support": histograms.support,
            **{f"frequency {c}": shares[:, k] for k, c in enumerate(classes.tolist())},
            "leans_to": classes[shares.argmax(axis=1)],
        },
        index=pd.Index(ids, name="pattern_id"),
    )
    return table.sort_values(
        ["weight", "support", "depth", "pattern"], ascending=[False, False, True, True]
    )


def _tree_column(
    vocabulary: PatternVocabulary | PatternForest, ids: np.ndarray
) -> dict[str, np.ndarray]:
    """Only a forest has several trees."""
    if isinstance(vocabulary, PatternForest):
        return {"tree": vocabulary.tree_names(ids)}
    return {}


def number_table(
    forest: PatternForest, histograms: PatternHistograms, weights: np.ndarray, values: np.ndarray
) -> pd.DataFrame:
    """The same for a regression: instead of classes, ``mean_with``, the mean target of the graphs
    that hold the pattern, and ``mean_without``, that of the others (NaN where there are none).
    """
    import pandas as pd

    holds = histograms.to_sparse()
    holds.data[:] = 1.0
    n_with = np.asarray(holds.sum(axis=0)).ravel()
    sum_with = holds.T @ values
    n_without = len(values) - n_with
    empty = np.full(len(n_with), np.nan)
    table = pd.DataFrame(
        {
            "pattern": forest.texts(np.arange(histograms.n_patterns)),
            "tree": forest.tree_names(np.arange(histograms.n_patterns)),
            "depth": histograms.depths,
            "weight": weights,
            "support": histograms.support,
            "mean_with": np.divide(sum_with, n_with, out=empty.copy(), where=n_with > 0),
            "mean_without": np.divide(
                values.sum() - sum_with, n_without, out=empty.copy(), where=n_without > 0
            ),
        },
        index=pd.RangeIndex(histograms.n_patterns, name="pattern_id"),
    )
    return table.sort_values(
        ["weight", "support", "depth", "pattern"], ascending=[False, False, True, True]
    )


def class_shares(histograms: PatternHistograms, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean relative frequency of every pattern in every class, shape (n_patterns, n_classes)."""
    frequencies = histograms.to_sparse("frequencies")  # (n_graphs, n_patterns)
    members = np.zeros((n_classes, len(codes)))
    members[codes, np.arange(len(codes))] = 1.0
    members /= members.sum(axis=1, keepdims=True).clip(1)
    return np.asarray(frequencies.T @ members.T)
