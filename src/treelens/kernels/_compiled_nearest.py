"""Compiled loop that finds nearest graphs. Plain-Python twin: ``tests/naive/kernels.py``."""

from numba import njit


@njit(cache=True, nogil=True)
def nearest_rows(first, step, sums, left_diagonal, right_diagonal, left_out,
                 near, alike):  # fmt: skip
    """Rows ``first, first + step, ...``: the most similar columns, the most similar first.

    Tanimoto similarity ``S / (s + t - S)`` from sums ``S`` (n_left, n_right) and those of each
    graph with itself. ``left_out`` (n_left,) is a column that does not count, or -1. ``near`` and
    ``alike`` (n_left, k) are written; of columns that are as similar the first comes first.

    Most columns are no neighbours, and one comparison with the worst neighbour so far tells: no
    similarity is kept but those of the neighbours.
    """
    k = near.shape[1]
    if k == 0:
        return
    for i in range(first, len(sums), step):
        found = 0
        for j in range(sums.shape[1]):
            if j == left_out[i]:
                continue
            union = left_diagonal[i] + right_diagonal[j] - sums[i, j]
            similarity = min(1.0, sums[i, j] / union) if union > 0.0 else 1.0
            if found == k and similarity <= alike[i, k - 1]:
                continue
            place = found if found < k else k - 1
            while place > 0 and alike[i, place - 1] < similarity:
                near[i, place], alike[i, place] = near[i, place - 1], alike[i, place - 1]
                place -= 1
            near[i, place], alike[i, place] = j, similarity
            found = min(found + 1, k)
