"""Models as kernel expansions: known patterns, kernel paths, sums that are predictions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

import treelens as tl
from treelens.explain.expansion import PATHS, FoundPatterns, KernelSums, expansion_of, path_slopes
from treelens.graphs.synthetic import make_random_graphs
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix


@pytest.fixture(params=["wwl", "tanimoto", "wl-subtree"])
def decision(request, fit_decision):
    graphs = make_random_graphs(16, n_nodes=(4, 9), n_labels=3, random_state=1)
    return fit_decision(graphs, np.arange(16) % 2, request.param, random_weights=True)


@pytest.fixture
def others():
    return make_random_graphs(5, n_nodes=(4, 9), n_labels=4, random_state=2)  # one label is new


def test_counts_are_those_of_the_nodes(decision, others) -> None:
    for index in range(len(others)):
        found = decision.find(others[index : index + 1])
        n_known = np.count_nonzero(found.colors >= 0)
        assert found.counts.sum() == n_known
        assert (found.counts > 0).all()
        assert (np.diff(found.patterns) > 0).all()
        assert found.out_of_vocabulary == pytest.approx(1 - n_known / found.colors.size)


def test_one_of_several_graphs_is_found_as_if_alone(decision, others) -> None:
    together = decision.refine(others)
    for index in range(len(others)):
        alone, among = decision.find(others[index : index + 1]), decision.found_in(together, index)
        for one, other in zip(alone, among, strict=True):
            np.testing.assert_array_equal(one, other)


def test_known_and_unseen_make_up_the_graphs_own_sum(decision, others) -> None:
    seen = decision.refine(others)
    some_unseen = False
    for index in range(len(others)):
        found = decision.found_in(seen, index)
        whole = found.own_terms(decision.weights).sum() + found.own_unseen
        assert whole == pytest.approx(seen.features.diagonal[index])
        assert (found.own_unseen > 0) <= (found.out_of_vocabulary > 0)
        some_unseen |= found.own_unseen > 0
    assert some_unseen == bool((seen.histograms.out_of_vocabulary() > 0).any())


def test_a_training_graph_has_nothing_unseen(decision) -> None:
    graphs = make_random_graphs(16, n_nodes=(4, 9), n_labels=3, random_state=1)
    found = decision.find(graphs[3:4])
    assert found.out_of_vocabulary == 0.0
    assert found.own_unseen == 0.0
    assert found.own_terms(decision.weights).sum() == pytest.approx(decision.basis.diagonal[3])


def test_products_square_what_minima_take_as_it_is() -> None:
    parts = (np.zeros((1, 2), dtype=int), np.array([1]), np.array([3.0]), np.array([0, 2]))
    weights = np.array([9.0, 0.5])
    minima = FoundPatterns(*parts, True, 2.0, 0.0, 0.0)
    products = FoundPatterns(*parts, False, 2.0, 0.0, 0.0)
    assert minima.own_terms(weights).tolist() == [0.5 * 3.0 * 4.0]
    assert products.own_terms(weights).tolist() == [0.5 * 9.0 * 4.0]


def test_ids_begin_at_the_first_depth_in_use(fit_decision) -> None:
    graphs = make_random_graphs(10, n_nodes=(4, 9), n_labels=3, random_state=1)
    decision = fit_decision(graphs, np.arange(10) % 2, first_depth=1)
    assert decision.first_pattern == decision.forest.level_offsets[1] > 0
    assert decision.level_depths.tolist() == [1, 2]
    name, labels = decision.basis_targets(np.array([3, 4]))
    assert (name, labels.tolist()) == ("class_label", [1, 0])


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


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
GRAPHS = make_random_graphs(14, n_nodes=(4, 8), n_labels=3, random_state=3)
OTHERS = make_random_graphs(4, n_nodes=(4, 8), n_labels=4, random_state=4)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])


@pytest.fixture(scope="module")
def regressor():
    return tl.GraphRegressor(depth=1, max_steps=5).fit(GRAPHS, VALUES)


def test_intercept_and_coefficients_give_the_prediction(regressor) -> None:
    decision, model = expansion_of(regressor.model_), regressor.model_
    rows = model.kernel_rows(model.look_at(OTHERS).features)
    expected = decision.intercepts + rows @ decision.coefficients.T
    np.testing.assert_allclose(expected[:, 0], regressor.predict(OTHERS), rtol=1e-10)


def test_without_covariates_nothing_stands_beside(regressor) -> None:
    decision = expansion_of(regressor.model_)
    assert decision.covariate_effects(decision.find(OTHERS[:1]).covariates).tolist() == [0.0]


def test_facts_of_training_graphs_are_values_or_classes(regressor) -> None:
    picked = np.array([3, 0])
    name, targets = expansion_of(regressor.model_).basis_targets(picked)
    assert name == "value"
    np.testing.assert_allclose(targets, VALUES[picked])
    y = np.where(np.median(VALUES) < VALUES, "many", "few")
    classifier = tl.GraphClassifier(depth=1, max_steps=5).fit(GRAPHS, y)
    name, targets = expansion_of(classifier.model_).basis_targets(picked)
    assert (name, targets.tolist()) == ("class_label", y[picked].tolist())


def test_covariates_stand_beside_with_what_they_add(rng) -> None:
    warmth = rng.normal(size=14)
    model = tl.GraphRegressor(depth=1, max_steps=5)
    model.fit(GRAPHS, VALUES + 3 * warmth, covariates={"warmth": warmth})
    decision = expansion_of(model.model_)
    seen = model.model_.look_at(OTHERS.with_data({"warmth": rng.normal(size=4)}))
    added = model.model_.from_covariates(seen.features)
    assert np.abs(added).max() > 0.1
    for index in range(4):
        found = decision.found_in(seen, index)
        effects = decision.covariate_effects(found.covariates)
        np.testing.assert_allclose(effects, added[index], rtol=1e-9)
