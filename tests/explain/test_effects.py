"""How kernel values and predictions divide among patterns; training graphs are left out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

import treelens as tl
from naive import fragments as naive
from strategies import make_random_graphs, random_collection
from treelens.explain import _compiled, effects
from treelens.explain.effects import (
    PATHS,
    KernelSums,
    effects_of_patterns,
    inverse_covariances,
    mixture_slopes,
    slopes_of,
)
from treelens.explain.jackknife import jackknife_errors
from treelens.kernels.mixture import TanimotoL1
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Training never saw"),
]
GRAPHS = make_random_graphs(14, n_nodes=(4, 8), n_labels=3, random_state=3)
OTHERS = make_random_graphs(4, n_nodes=(4, 8), n_labels=4, random_state=4)
VALUES = np.array([graph.node_labels.count(0) + 0.1 * graph.n_nodes for graph in GRAPHS])


def _sums(shared, own, others, offset=0.0, gamma=0.0):
    """The sums of one graph with several others."""
    return KernelSums(np.array([shared]), np.array([own]), np.array(others), offset, gamma)


def _derivatives(kernel, s, a, b):
    """dk/dS and dk/dA by central differences of the kernel itself."""

    def k(shared, own):
        return float(kernel.of_sums(np.array([[shared]]), np.array([own]), np.array([b]))[0, 0])

    step = 1e-6 * max(a, 1e-3)
    by_shared = (k(s + step, a) - k(s - step, a)) / (2 * step)
    return by_shared, (k(s, a + step) - k(s, a - step)) / (2 * step)


@pytest.mark.parametrize("kernel", KERNELS)
def test_ends_are_the_kernel_and_slopes_are_integrals_that_close_the_gap(kernel, rng):
    assert set(PATHS) == set(KERNELS)
    others = rng.uniform(0.4, 1.4, 12)
    shared = rng.uniform(0, 1, 12) * np.minimum(others, 0.9)
    shared[0] = 0.0
    sums = _sums(shared, 1.1, others, offset=1.5, gamma=2.5)
    path = PATHS[kernel](sums)
    weighted = WeightedKernel(kernel, None, sums.gamma, sums.offset)
    end = weighted.of_sums(sums.shared, sums.own, sums.others)
    np.testing.assert_allclose(path.end, end, rtol=1e-13)
    start = weighted.of_sums(np.zeros_like(sums.shared), np.zeros(1), sums.others)
    np.testing.assert_allclose(path.start, start, rtol=1e-13)
    gap = path.per_shared * sums.shared + path.per_own * sums.own
    np.testing.assert_allclose(gap, path.end - path.start, atol=1e-14)
    for own in (0.0, 1.0):  # nothing overflows or divides by zero
        shared = own * np.array([0.0, 1.0, 0.0])
        extreme = _sums(shared, own, [1.0, 1.0, 0.0], offset=1.0, gamma=2000.0)
        assert all(np.isfinite(part).all() for part in PATHS[kernel](extreme))
    for i in (1, 5, 9):
        for which, value in ((0, path.per_shared[0, i]), (1, path.per_own[0, i])):

            def slope(t, which=which, i=i):
                s, a = t * sums.shared[0, i], t * sums.own[0]
                return _derivatives(weighted, s, a, sums.others[i])[which]

            assert quad(slope, 1e-9, 1, epsabs=1e-9)[0] == pytest.approx(value, rel=2e-4, abs=1e-7)


@pytest.mark.parametrize("ratio", [0.0, 1e-13, 1e-9, 1e-6, 0.049999, 0.050001, 3.0, 200.0])
def test_tanimoto_keeps_its_digits_for_graphs_of_any_size(ratio):
    path = PATHS["tanimoto"](_sums([1.0], 1.0 + ratio, [1.0]))
    exact = quad(lambda t: -t / (1 + ratio * t) ** 2, 0, 1, epsabs=0, epsrel=1e-13)[0]
    assert path.per_own[0, 0] == pytest.approx(exact, rel=1e-12)
    for gamma in (0.1, 3.0, 10.0):
        sums = _sums([1.0, 0.5], 1.0 + ratio, [1.0, 2.0], gamma=gamma)
        path = PATHS["tanimoto-rbf"](sums)
        gap = path.per_shared * sums.shared + path.per_own * sums.own
        np.testing.assert_allclose(gap, path.end - path.start, atol=1e-13)


@pytest.mark.parametrize("n_landmarks", [None, 6])
def test_intercept_and_coefficients_give_the_prediction(n_landmarks):
    options = {} if n_landmarks is None else {"n_landmarks": n_landmarks, "exact_size": 10}
    regressor = tl.GraphRegressor(depth=1, max_steps=5, views=[tl.WLPatterns()], **options).fit(
        GRAPHS, VALUES
    )
    model, expansion = regressor.model_, regressor.model_.expansion
    features = model.refine(OTHERS).patterns.features
    path = slopes_of(expansion.parts[0], expansion.basis.patterns, features)
    expected = expansion.intercepts + path.end @ expansion.coefficients.T
    np.testing.assert_allclose(expected[:, 0], regressor.predict(OTHERS), rtol=1e-9)
    found = regressor.explain(OTHERS[0], n_neighbors=14).neighbors
    assert sorted(found.index) == list(range(14))
    np.testing.assert_allclose(found["value"].sort_index(), VALUES)
    others = np.setdiff1d(np.arange(14), expansion.basis_indices)
    assert (found.loc[others, "contribution"] == 0).all()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    graphs = random_collection(rng, 40)
    values = graphs.sizes + rng.normal(size=len(graphs))
    return graphs, values


@pytest.fixture(scope="module")
def model(data):
    graphs, values = data
    return tl.GraphRegressor(2, views=[tl.WLPatterns()], n_jobs=1).fit(graphs[:30], values[:30])


def effects_of_graphs(expansion, graphs, *args, **options):
    inverses = inverse_covariances(expansion)
    return effects.effects_of_graphs(expansion, graphs, *args, inverses=inverses, **options)


def test_compiled_paths_are_the_integrals(rng):
    sums = rng.uniform(0, 3, size=(4, 5))
    sums[0, 0] = 0.0
    own = sums.max(axis=1) + rng.uniform(0, 2, size=4)
    others = sums.max(axis=0) + rng.uniform(0, 2, size=5)
    sums[1], sums[:, 2], own[1], others[2] = 0.0, 0.0, 0.0, 0.0  # no patterns
    scales = (1.7, 0.3, 2.0, 0.6)
    given = KernelSums(sums, own, others)
    found = mixture_slopes(given, TanimotoL1(1.7, 0.3, 0.6), 2.0, n_jobs=2)
    for (g, i), shared in np.ndenumerate(sums):
        expected = naive.mixture_path(shared, own[g], others[i], *scales)
        for k, value in enumerate(expected):
            # With nothing shared that slope is not needed, and the Tanimoto part is left out of it.
            if k != 2 or shared > 0:
                assert found[k][g, i] == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("minimum", [True, False])
def test_compiled_sums_are_the_naive_ones(rng, model, minimum):
    pairs = model.model_.basis_graphs.patterns.pairs
    factors = rng.normal(size=(pairs.n_graphs, pairs.n_graphs))
    rows, lists = pairs.rows, pairs.lists
    found = np.empty(len(rows.indices))
    for k in range(3):
        _compiled.pattern_sums_of_rows(
            k,
            3,
            rows.offsets,
            rows.indices,
            rows.values,
            lists.offsets,
            lists.indices,
            lists.values,
            minimum,
            factors,
            found,
        )
    rows_of = [
        dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True))
        for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    ]
    expected = naive.pattern_sums(rows_of, rows_of, factors, minimum)
    flat = [x for graph in expected for x in graph.values()]
    np.testing.assert_allclose(found, flat, rtol=1e-12, atol=1e-12)


def test_new_graphs_are_explained_as_one_by_one(data, model):
    graphs = data[0][30:]
    found = effects_of_graphs(model.model_.expansion, graphs, n_jobs=2)
    assert not any(found.copies)
    for k in range(len(graphs)):
        one = model.explain(graphs[k])
        rows = found.parts[0].rows
        here = slice(rows.offsets[k], rows.offsets[k + 1])
        table = one.pattern_contributions.sort_index()
        assert table.index.tolist() == rows.indices[here].tolist()
        np.testing.assert_allclose(rows.values[here], table["contribution"], atol=1e-10)
        assert found.base[k] == pytest.approx(one.base)
        assert found.decisions[k] == pytest.approx(one.decision)
    np.testing.assert_allclose(found.decisions, model.predict(graphs))


@pytest.mark.parametrize("order", ["shuffled", "with new ones"])
def test_training_graphs_are_left_out_in_any_order(data, model, order, rng):
    chosen = {"shuffled": rng.permutation(30), "with new ones": np.arange(25, 35)}[order]
    found = effects_of_graphs(model.model_.expansion, data[0][chosen])
    known = chosen < 30
    assert not any(found.copies[k] for k in np.flatnonzero(~known))
    left_out = model.loo_.predictions[chosen[known]]
    np.testing.assert_allclose(found.decisions[known], left_out, atol=1e-8)
    plain = effects.effects_of_graphs(model.model_.expansion, data[0][chosen])
    np.testing.assert_allclose(plain.decisions, model.predict(data[0][chosen]))
    np.testing.assert_allclose(found.decisions[~known], plain.decisions[~known])
    owner = np.repeat(np.arange(len(chosen)), found.graphs.sizes)
    np.testing.assert_allclose(found.base + np.bincount(owner, found.phi), found.decisions)


@pytest.mark.filterwarnings("ignore:.*copies of others")
def test_replicates_are_left_out_together(data, model, monkeypatch):
    graphs, values = data
    doubled = np.r_[np.arange(20), np.arange(20)]
    several = values[doubled] + np.arange(40)
    twice = tl.GraphRegressor(depth=1, n_jobs=1).fit(graphs[doubled], several)
    found = effects_of_graphs(twice.model_.expansion, graphs[doubled[::-1]])
    assert all({39 - k, (19 - k) % 40} <= set(group) for k, group in enumerate(found.copies))
    np.testing.assert_allclose(found.decisions, twice.loo_.predictions[::-1], atol=1e-8)
    # Nor do blocks of graphs change anything.
    whole = effects_of_graphs(model.model_.expansion, data[0])
    monkeypatch.setattr(effects, "_BLOCK", 1)
    monkeypatch.setattr(effects, "_LEAST_ROWS", 7)
    parts = effects_of_graphs(model.model_.expansion, data[0])
    in_blocks, at_once = (each.parts[0].rows.values for each in (parts, whole))
    np.testing.assert_allclose(in_blocks, at_once, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.decisions, whole.decisions, rtol=1e-12)


@pytest.mark.parametrize("kind", ["numbers", "two classes", "three classes"])
def test_the_jackknife_is_that_of_leaving_each_training_graph_out(data, kind):
    """Against models without one training graph each, of the same weights and scales."""
    graphs, values = data
    train, new = graphs[:24], graphs[24:]
    parts = {"numbers": [], "two classes": [0.5], "three classes": [0.3, 0.6]}[kind]
    codes = np.digitize(values[:24], np.quantile(values[:24], parts))
    model = (
        tl.GraphRegressor(depth=1, n_jobs=1).fit(train, values[:24])
        if kind == "numbers"
        else tl.GraphClassifier(depth=1, n_jobs=1).fit(train, codes)
    )
    output = 2 if kind == "three classes" else 0
    expansion = model.model_.expansion
    found = effects_of_graphs(expansion, new, output)
    assert not any(found.copies)
    nodes = np.arange(0, new.n_nodes, 3)
    weights, inverses = np.linspace(0.5, 1.5, len(nodes)), inverse_covariances(expansion)
    (error,) = jackknife_errors(found, [(nodes, weights)], inverses, output)
    (inverse,) = inverses
    alpha, sums = expansion.coefficients[output], []
    for g in range(24):
        without = alpha - alpha[g] * inverse[g] / inverse[g, g]
        without[g] = 0.0
        changed = expansion.coefficients.copy()
        changed[output] = without
        other = effects_of_graphs(dataclasses.replace(expansion, coefficients=changed), new, output)
        sums.append(float(weights @ other.phi[nodes]))
    expected = np.sqrt(23 / 24 * ((np.array(sums) - np.mean(sums)) ** 2).sum())
    assert error == pytest.approx(expected, rel=1e-6)
    assert error > 0


def test_effects_of_patterns_are_those_of_explanations_of_the_class_predicted(data):
    graphs, values = data
    codes = np.digitize(values, np.quantile(values, [0.3, 0.6]))
    model = tl.GraphClassifier(1, views=[tl.WLPatterns()], n_jobs=1).fit(graphs[:30], codes[:30])
    seen = model.model_.refine(graphs[30:])
    found = effects_of_patterns(model.model_.expansion, [seen.features]).toarray()
    for row, graph in zip(found, graphs[30:], strict=True):
        one = model.explain(graph).pattern_contributions["contribution"]
        expected = np.zeros(len(row))
        expected[one.index] = one
        np.testing.assert_allclose(row, expected, atol=1e-8)


@pytest.mark.parametrize("gamma", [0.3, 4.9, 5.1, 100.0])
@pytest.mark.parametrize("n", [1, 3])
def test_slopes_of_the_mixture_are_integrals_of_its_derivatives(gamma, n):
    """Whatever the number of graphs and the length scale: as exact as adaptive quadrature."""
    kernel = TanimotoL1(gamma, 0.2, 0.7)
    one = _sums([3.9, 1.5], 4.1, [4.0, 2.5])  # the first pair is almost equal
    sums = KernelSums(*(np.repeat(x, n, axis=0) for x in one[:2]), *one[2:])
    path = mixture_slopes(sums, kernel)
    for i in range(2):
        for which, found in ((0, path.per_shared[:, i]), (1, path.per_own[:, i])):

            def slope(t, which=which, i=i):
                own = t * sums.own[0]
                shared, other = t * sums.shared[0, i], sums.others[i]
                union = own + other - shared
                similar = kernel.share * gamma * np.exp(-gamma * (1 - shared / union))
                apart = (1 - kernel.share) * kernel.rho
                apart *= np.exp(-kernel.rho * (own + other - 2 * shared))
                if which == 0:  # dT/dS = (A + B) / union^2, dD/dS = -2
                    return similar * (own + other) / union**2 + 2 * apart
                return -similar * shared / union**2 - apart

            exact = quad(slope, 0, 1, epsabs=1e-14, epsrel=1e-13)[0]
            np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_effects_of_patterns_are_those_on_the_class_with_the_largest_decision():
    """Which the intercepts take part in."""
    classes = np.array(["a", "b", "c"])[np.arange(14) % 3]
    model = tl.GraphClassifier(1, views=[tl.WLPatterns()], max_steps=5).fit(GRAPHS, classes)
    expansion = model.model_.expansion
    features = expansion.refine(OTHERS).features
    for code in range(3):
        raised = expansion.intercepts + 100.0 * (np.arange(3) == code)
        other = dataclasses.replace(expansion, intercepts=raised)
        (part,) = effects.effects_of_graphs(other, OTHERS, code).parts
        found = effects_of_patterns(other, [features])
        expected = part.rows.to_sparse(found.shape[1])
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-12)
