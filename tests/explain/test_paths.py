"""The shares of patterns in a kernel value, against the kernels themselves and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from treelens.explain.paths import PATHS, KernelSums, path_slopes
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix


def _sums(rng: np.random.Generator, own_unseen: float) -> KernelSums:
    others = rng.uniform(0.4, 1.4, 12)
    own_known = 0.9
    shared = rng.uniform(0, 1, 12) * np.minimum(others, own_known)
    shared[0] = 0.0
    return KernelSums(shared, own_known, own_unseen, others, offset=1.5, gamma=2.5)


def _kernel(kernel: str, sums: KernelSums, shared: np.ndarray, own: float) -> np.ndarray:
    row = kernel_matrix(
        kernel, shared[None, :], np.array([own]), sums.others, sums.offset, sums.gamma
    )
    return row[0]


def _derivatives(
    kernel: str, s: float, a: float, b: float, sums: KernelSums
) -> tuple[float, float]:
    """dk/dS and dk/dA by central differences of the kernel itself."""

    def k(shared: float, own: float) -> float:
        one = np.array([own]), np.array([b]), sums.offset, sums.gamma
        return float(kernel_matrix(kernel, np.array([[shared]]), *one)[0, 0])

    step = 1e-6 * max(a, 1e-3)
    by_shared = (k(s + step, a) - k(s - step, a)) / (2 * step)
    by_own = (k(s, a + step) - k(s, a - step)) / (2 * step)
    return by_shared, by_own


def test_every_form_has_a_path():
    assert set(PATHS) == set(KERNELS)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("own_unseen", [0.0, 0.3])
def test_ends_are_the_kernel_and_slopes_close_the_gap(kernel, own_unseen, rng):
    sums = _sums(rng, own_unseen)
    path = path_slopes(kernel, sums)
    own = sums.own_known + own_unseen
    np.testing.assert_allclose(path.end, _kernel(kernel, sums, sums.shared, own), rtol=1e-13)
    start = _kernel(kernel, sums, np.zeros_like(sums.shared), own_unseen)
    np.testing.assert_allclose(path.start, start, rtol=1e-13)
    gap = path.per_shared * sums.shared + path.per_own * sums.own_known
    np.testing.assert_allclose(gap, path.end - path.start, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_are_integrals_along_the_path(kernel, rng):
    sums = _sums(rng, own_unseen=0.2)
    path = path_slopes(kernel, sums)
    for i in (1, 5, 9):
        for which, value in ((0, path.per_shared[i]), (1, path.per_own[i])):

            def slope(t, which=which, i=i):
                s, a = t * sums.shared[i], sums.own_unseen + t * sums.own_known
                return _derivatives(kernel, s, a, sums.others[i], sums)[which]

            assert quad(slope, 0, 1, epsabs=1e-9)[0] == pytest.approx(value, rel=1e-5, abs=1e-7)


def test_nothing_overflows_or_divides_by_zero():
    shared = np.array([0.0, 1.0, 0.0])
    others = np.array([1.0, 1.0, 0.0])
    for kernel in KERNELS:
        for known in (0.0, 1.0):
            sums = KernelSums(shared * known, known, 0.0, others, offset=1.0, gamma=2000.0)
            assert all(np.isfinite(part).all() for part in path_slopes(kernel, sums)), kernel


@pytest.mark.parametrize("ratio", [1e-9, 0.049999, 0.050001, 3.0])
def test_tanimoto_keeps_its_digits_where_graphs_are_almost_equal(ratio):
    sums = KernelSums(np.array([1.0]), 1.0 + ratio, 0.0, np.array([1.0]), 0.0, 0.0)
    path = path_slopes("tanimoto", sums)
    exact = quad(lambda t: -t / (1 + ratio * t) ** 2, 0, 1, epsabs=0, epsrel=1e-13)[0]
    assert path.per_own[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 1e-13, 1e-6, 3.0, 200.0])
@pytest.mark.parametrize("gamma", [0.1, 3.0, 10.0])
def test_tanimoto_exponential_closes_the_gap_for_graphs_of_any_size(ratio, gamma):
    sums = KernelSums(np.array([1.0, 0.5]), 1.0 + ratio, 0.0, np.array([1.0, 2.0]), 0.0, gamma)
    path = path_slopes("tanimoto-rbf", sums)
    gap = path.per_shared * sums.shared + path.per_own * sums.own_known
    np.testing.assert_allclose(gap, path.end - path.start, atol=1e-13)


def test_unknown_form_is_named():
    with pytest.raises(ValueError, match="'nonsense'"):
        path_slopes("nonsense", _sums(np.random.default_rng(0), 0.0))
