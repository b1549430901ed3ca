"""Compiled loop over the cells of attributes. Plain-Python twin: ``tests/naive/cells.py``."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cells_of_nodes(
    first, last, values, offsets, attribute, threshold, missing, first_child, cells
):  # fmt: skip
    """Fill ``cells`` (n_resolutions, n_nodes) with the way of each node down one tree.

    ``values`` (n_nodes, n_columns); ``offsets`` (n_resolutions,) of the splits to each level.
    """
    for node in range(first, last):
        cell = 0
        for level in range(len(offsets)):
            split = offsets[level] + cell
            column = attribute[split]
            cell = first_child[split]
            if column >= 0:
                value = values[node, column]
                if missing[split]:
                    cell += np.isnan(value)
                else:
                    cell += value > threshold[split]
            cells[level, node] = cell
