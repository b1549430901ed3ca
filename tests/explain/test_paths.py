"""Models as kernel expansions: kernel paths, and sums that are predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import treelens as tl
from treelens.explain.paths import PATHS, KernelSums, slopes_of
from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GRAPHS = make_random_graphs(14, n_nodes=(4, 8), n_labels=3, random_state=3)
OTHERS = make_random_graphs(4, n_nodes=(4, 8), n_labels=4, random_state=4)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])


def _sums(shared, known, unseen, others, offset=0.0, gamma=0.0) -> KernelSums:
    """The sums of one graph with several others."""
    return KernelSums(
        np.array([shared]), np.array([known]), np.array([unseen]), np.array(others), offset, gamma
    )


def _random_sums(rng: np.random.Generator, unseen: float) -> KernelSums:
    others = rng.uniform(0.4, 1.4, 12)
    shared = rng.uniform(0, 1, 12) * np.minimum(others, 0.9)
    shared[0] = 0.0
    return _sums(shared, 0.9, unseen, others, offset=1.5, gamma=2.5)


def _derivatives(
    kernel: str, s: float, a: float, b: float, sums: KernelSums
) -> tuple[float, float]:
    """dk/dS and dk/dA by central differences of the kernel itself."""

    def k(shared: float, own: float) -> float:
        weighted = WeightedKernel(kernel, None, sums.gamma, sums.offset)
        return float(weighted.of_sums(np.array([[shared]]), np.array([own]), np.array([b]))[0, 0])

    step = 1e-6 * max(a, 1e-3)
    by_shared = (k(s + step, a) - k(s - step, a)) / (2 * step)
    by_own = (k(s, a + step) - k(s, a - step)) / (2 * step)
    return by_shared, by_own


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("unseen", [0.0, 0.3])
def test_ends_are_the_kernel_and_slopes_close_the_gap(kernel, unseen, rng):
    assert set(PATHS) == set(KERNELS)
    sums = _random_sums(rng, unseen)
    path = PATHS[kernel](sums)
    weighted = WeightedKernel(kernel, None, sums.gamma, sums.offset)
    end = weighted.of_sums(sums.shared, sums.known + sums.unseen, sums.others)
    np.testing.assert_allclose(path.end, end, rtol=1e-13)
    start = weighted.of_sums(np.zeros_like(sums.shared), sums.unseen, sums.others)
    np.testing.assert_allclose(path.start, start, rtol=1e-13)
    gap = path.per_shared * sums.shared + path.per_own * sums.known
    np.testing.assert_allclose(gap, path.end - path.start, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_are_integrals_along_the_path(kernel, rng):
    sums = _random_sums(rng, unseen=0.2)
    path = PATHS[kernel](sums)
    for i in (1, 5, 9):
        for which, value in ((0, path.per_shared[0, i]), (1, path.per_own[0, i])):

            def slope(t, which=which, i=i):
                s, a = t * sums.shared[0, i], sums.unseen[0] + t * sums.known[0]
                return _derivatives(kernel, s, a, sums.others[i], sums)[which]

            assert quad(slope, 0, 1, epsabs=1e-9)[0] == pytest.approx(value, rel=1e-5, abs=1e-7)


def test_nothing_overflows_or_divides_by_zero():
    shared = np.array([0.0, 1.0, 0.0])
    for kernel in KERNELS:
        for known in (0.0, 1.0):
            sums = _sums(shared * known, known, 0.0, [1.0, 1.0, 0.0], offset=1.0, gamma=2000.0)
            assert all(np.isfinite(part).all() for part in PATHS[kernel](sums)), kernel


@pytest.mark.parametrize("ratio", [1e-9, 0.049999, 0.050001, 3.0])
def test_tanimoto_keeps_its_digits_where_graphs_are_almost_equal(ratio):
    path = PATHS["tanimoto"](_sums([1.0], 1.0 + ratio, 0.0, [1.0]))
    exact = quad(lambda t: -t / (1 + ratio * t) ** 2, 0, 1, epsabs=0, epsrel=1e-13)[0]
    assert path.per_own[0, 0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 1e-13, 1e-6, 3.0, 200.0])
@pytest.mark.parametrize("gamma", [0.1, 3.0, 10.0])
def test_tanimoto_exponential_closes_the_gap_for_graphs_of_any_size(ratio, gamma):
    sums = _sums([1.0, 0.5], 1.0 + ratio, 0.0, [1.0, 2.0], gamma=gamma)
    path = PATHS["tanimoto-rbf"](sums)
    gap = path.per_shared * sums.shared + path.per_own * sums.known
    np.testing.assert_allclose(gap, path.end - path.start, atol=1e-13)


# --- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_graph_has_the_slopes_of_several(kernel, fit_model) -> None:
    model = fit_model(GRAPHS, np.arange(14) % 2, kernel, random_weights=True)
    expansion = model.expansion
    together = slopes_of(expansion, expansion.refine(OTHERS).features)
    for index in range(len(OTHERS)):
        alone = slopes_of(expansion, expansion.refine(OTHERS[index : index + 1]).features)
        for one, several in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], several[index], rtol=1e-9, atol=1e-12)


def test_ids_begin_at_the_first_depth_in_use(fit_model) -> None:
    expansion = fit_model(GRAPHS, np.arange(14) % 2, first_depth=1).expansion
    assert expansion.first_pattern == expansion.forest.level_offsets[1] > 0


@pytest.mark.parametrize("n_landmarks", [None, 6])
def test_intercept_and_coefficients_give_the_prediction(n_landmarks) -> None:
    options = {} if n_landmarks is None else {"n_landmarks": n_landmarks, "exact_size": 10}
    regressor = tl.GraphRegressor(depth=1, max_steps=5, **options).fit(GRAPHS, VALUES)
    model, expansion = regressor.model_, regressor.model_.expansion
    features = model.refine(OTHERS).features
    expected = expansion.intercepts + slopes_of(expansion, features).end @ expansion.coefficients.T
    np.testing.assert_allclose(expected[:, 0], regressor.predict(OTHERS), rtol=1e-9)
    found = regressor.explain(OTHERS[0], n_neighbors=14).neighbors
    assert sorted(found.index) == list(range(14))
    np.testing.assert_allclose(found["value"].sort_index(), VALUES)
    others = np.setdiff1d(np.arange(14), expansion.basis_indices)
    assert (found.loc[others, "contribution"] == 0).all()


def test_covariates_are_apart_from_patterns(rng) -> None:
    warmth = rng.normal(size=14)
    model = tl.GraphRegressor(depth=1, max_steps=5)
    model.fit(GRAPHS, VALUES + 3 * warmth, covariates={"warmth": warmth})
    graphs = OTHERS.with_data({"warmth": rng.normal(size=4)})
    added = model.model_.from_covariates(model.model_.refine(graphs).features)
    assert np.abs(added).max() > 0.1
    for index in range(4):
        found = model.explain(graphs[index : index + 1])
        assert found.covariates == pytest.approx(added[index, 0])
        total = found.base + found.covariates + found.node_contributions.sum()
        assert total == pytest.approx(model.predict(graphs[index : index + 1])[0])
