"""The forms of a weighted kernel against their formulas."""

import numpy as np
import pytest

from kernels.test_gram import ATOL, dense_rows, tables_of
from kernels.test_table import GAMMA, weighted_sums
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import exponential, kernel_matrix, l1_distance

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


def test_the_metric_is_half_the_weighted_l1_distance(rng: np.random.Generator) -> None:
    train, new = tables_of("wasserstein")
    weights = rng.random(train.n_patterns)
    own, others = train.diagonal(weights), new.diagonal(weights)
    a, b = dense_rows(new)[:, None, :], dense_rows(train)[None, :, :]
    found = l1_distance(pair_sums(new, train, weights), others, own, n_jobs=2)
    np.testing.assert_allclose(found, 0.5 * np.abs(a - b) @ weights, atol=ATOL)
    within = l1_distance(pair_sums(train, None, weights), own, own)
    assert (within == within.T).all()
    np.testing.assert_allclose(np.diag(within), 0.0, atol=ATOL)


def test_threads_change_nothing(rng: np.random.Generator) -> None:
    distance = rng.random((9, 4))
    found = exponential(distance.copy(), 0.3, n_jobs=2)
    np.testing.assert_allclose(found, np.exp(-0.3 * distance), rtol=1e-15)
