"""The forms of a weighted kernel against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.test_table import GAMMA, weighted_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix

FORMULAS = {
    "wwl": lambda s, d, b: np.exp(-GAMMA * (b - s)),
    "laplacian": lambda s, d, b: np.exp(-GAMMA * (0.5 * (d[:, None] + d[None]) - s)),
    "tanimoto": lambda s, d, b: s / (d[:, None] + d[None] - s),
    "tanimoto-rbf": lambda s, d, b: np.exp(-GAMMA * (1 - s / (d[:, None] + d[None] - s))),
    "wl-oa": lambda s, d, b: s,
    "wl-subtree": lambda s, d, b: s,
    "wwl-linear": lambda s, d, b: s,
    "wl-subtree-cosine": lambda s, d, b: s / np.sqrt(np.outer(d, d)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_formula_and_positive_semidefinite(kernel: str) -> None:
    sums, own = weighted_sums(kernel)
    before = sums.copy()
    matrix = kernel_matrix(kernel, sums, own, own, own.max(), GAMMA)
    assert (sums == before).all()  # the sums serve the next candidate too
    np.testing.assert_allclose(matrix, FORMULAS[kernel](sums, own, own.max()), rtol=1e-12)
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix).min() > -1e-10


def test_an_unknown_kernel() -> None:
    with pytest.raises(ValueError, match=r"kernel must be one of .* got kernel='cubic'"):
        kernel_matrix("cubic", np.eye(2), np.ones(2), np.ones(2), 1.0)
