"""The pattern table: what a model's patterns are, and where they occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

if TYPE_CHECKING:
    import pandas as pd


def pattern_table(
    vocabulary: PatternVocabulary,
    histograms: PatternHistograms,
    weights: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
) -> pd.DataFrame:
    """One row per pattern, sorted by weight, then support, then text.

    Columns: ``pattern`` (text form), ``depth``, ``weight``, ``support`` (number of training graphs
    that hold it), one ``mass CLASS`` per class (mean share of the nodes of a graph of that class
    that carry it), and ``leans_to``, the class where that share is largest. The index is the
    pattern's id in the vocabulary.
    """
    import pandas as pd

    start = int(vocabulary.level_offsets[histograms.first_depth])
    ids = np.arange(start, start + histograms.n_patterns)
    shares = class_shares(histograms, codes, len(classes))  # (n_patterns, n_classes)
    table = pd.DataFrame(
        {
            "pattern": vocabulary.texts(ids),
            "depth": histograms.depths,
            "weight": weights,
            "support": histograms.support,
            **{f"mass {c}": shares[:, k] for k, c in enumerate(classes.tolist())},
            "leans_to": classes[shares.argmax(axis=1)],
        },
        index=pd.Index(ids, name="pattern_id"),
    )
    return table.sort_values(
        ["weight", "support", "depth", "pattern"], ascending=[False, False, True, True]
    )


def class_shares(histograms: PatternHistograms, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean mass of every pattern in the graphs of every class, shape (n_patterns, n_classes)."""
    masses = histograms.to_sparse("masses")  # (n_graphs, n_patterns)
    members = np.zeros((n_classes, len(codes)))
    members[codes, np.arange(len(codes))] = 1.0
    members /= members.sum(axis=1, keepdims=True).clip(1)
    return np.asarray(masses.T @ members.T)
