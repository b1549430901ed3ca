"""Which attributes carry a prediction: contributions of cells, divided among what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treelens.patterns.forest import PatternForest

if TYPE_CHECKING:
    import pandas as pd

LABELS = "labels"  # the row of all patterns that are not cells


def attribute_table(
    forest: PatternForest, patterns: np.ndarray, contributions: np.ndarray
) -> pd.DataFrame:
    """Return the sum of contributions per attribute, the largest (in absolute value) first.

    A cell asks for values of one attribute or of several; its contribution is divided equally among
    them. Patterns of labels have a row of their own.

    Parameters
    ----------
    forest : PatternForest
    patterns : ndarray of int, shape (n_found,)
        Ids in the forest.
    contributions : ndarray, shape (n_found,)

    Returns
    -------
    DataFrame
        ``attribute``, ``steps`` (0: the node's own value; 1: the mean over its neighbours; ...) and
        ``contribution``.

    Examples
    --------
    >>> import networkx as nx, treelens as tl
    >>> graph = nx.path_graph(20)
    >>> nx.set_node_attributes(graph, {k: k / 10 for k in graph}, "charge")
    >>> graphs = tl.as_graph_collection([graph], node_attributes=["charge"])
    >>> forest, _ = PatternForest.fit(graphs, 0, ("labels",), attributes=True)
    >>> ids = np.arange(forest.n_patterns)
    >>> sorted(attribute_table(forest, ids, np.ones(len(ids)))["attribute"])
    ['charge', 'labels']
    """
    import pandas as pd

    sums: dict[tuple[str, int], float] = {}
    first_cell, cells = forest.n_deviating, forest.cells
    for pattern, value in zip(patterns.tolist(), contributions.tolist(), strict=True):
        if pattern < first_cell or cells is None:
            sums[LABELS, 0] = sums.get((LABELS, 0), 0.0) + value
            continue
        level = int(forest.level_of(pattern))
        row = level - (len(forest.levels) - cells.n_levels)
        columns = cells.asked(row, pattern - int(forest.level_offsets[level]))
        for column in columns:
            key = cells.attribute_and_step(column)
            sums[key] = sums.get(key, 0.0) + value / len(columns)
    table = pd.DataFrame(
        [(name, step, value) for (name, step), value in sums.items()],
        columns=["attribute", "steps", "contribution"],
    )
    order = np.lexsort((np.arange(len(table)), -table["contribution"].abs()))
    return table.iloc[order].reset_index(drop=True)
