"""Learning curves: how many molecules until learned weights pay.

    TREELENS_DATA=... python -m reproduction curves --out docs/results

Each split holds a fifth of a set out; the training part grows by molecules in a random order, so
that a smaller part is contained in a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.data import StudyOptions, load_molecules
from reproduction.numbers import add_row
from reproduction.rows import RowFile

SETS = ("ESOL", "Lipophilicity", "CHEMBL244_Ki")
METHODS = ("treelens", "treelens_uniform", "ecfp_gp", "ecfp_forest")
SIZES = (50, 100, 200, 400, 800, 1600, 3000)
N_SPLITS = 5


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "curves.jsonl", ("set", "method", "size", "split"))
    for name in asked.sets or SETS:
        data = load_molecules(name)
        for split, size, train, test in growing_parts(len(data.values), asked.repeats or N_SPLITS):
            for method in asked.methods or METHODS:
                row = {"set": name, "method": method, "size": size, "split": split}
                add_row(rows, row, data, train, test, asked)


def growing_parts(
    n: int, n_splits: int, sizes: tuple[int, ...] = SIZES
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Split, size, training part and test part; the seeds are those of no other study.

    Examples
    --------
    >>> parts = list(growing_parts(100, 1, (50, 60, 70)))
    >>> [(size, len(train), len(test)) for _, size, train, test in parts]
    [(50, 50, 20), (60, 60, 20), (70, 70, 20)]
    >>> bool((parts[0][2] == parts[1][2][:50]).all())  # a smaller part is within a larger one
    True
    """
    for split in range(n_splits):
        order = np.random.default_rng(1000 + split).permutation(n)
        n_pool = int(0.8 * n)
        for size in sizes:
            if size <= n_pool:
                yield split, size, order[:size], order[n_pool:]
