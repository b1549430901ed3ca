"""Contributions of many graphs at once are those of each, and training graphs are left out."""

import numpy as np
import pytest

import treelens as tl
from naive import fragments as naive
from strategies import random_collection
from treelens.explain import _compiled_fragments
from treelens.explain.fragment_effects import effects_of_graphs, effects_of_patterns, same_counts
from treelens.explain.paths import unit_interval_rule


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    graphs = random_collection(rng, 40)
    values = graphs.sizes + rng.normal(size=len(graphs))
    return graphs, values


@pytest.fixture(scope="module")
def model(data):
    graphs, values = data
    return tl.GraphRegressor(depth=2, n_jobs=1).fit(graphs[:30], values[:30])


def test_compiled_paths_are_the_integrals(rng):
    sums = rng.uniform(0, 3, size=(4, 5))
    sums[0, 0] = 0.0
    known = sums.max(axis=1) + rng.uniform(0, 2, size=4)
    unseen, others = rng.uniform(0, 1, size=4), sums.max(axis=0) + rng.uniform(0, 2, size=5)
    coefficients, scales = rng.normal(size=(4, 5)), (1.7, 0.3, 2.0, 0.6)
    factors, ends = np.empty_like(sums), np.empty((4, 3))
    for k in range(2):
        _compiled_fragments.mixture_path_rows(
            k, 2, sums, known, unseen, others, coefficients, *scales, *unit_interval_rule(),
            factors, ends,
        )  # fmt: skip
    for g in range(4):
        paths = [
            naive.mixture_path(sums[g, i], known[g], unseen[g], others[i], *scales)
            for i in range(5)
        ]
        start, end, by_shared, by_own = np.array(paths).T
        # With nothing shared the slope is not needed, and the Tanimoto part is left out of it.
        needed = sums[g] > 0
        np.testing.assert_allclose(
            factors[g, needed], (coefficients[g] * by_shared)[needed], rtol=1e-6
        )
        expected = [coefficients[g] @ x for x in (start, end, by_own)]
        np.testing.assert_allclose(ends[g], expected, rtol=1e-6, atol=1e-9)


def test_compiled_sums_are_the_naive_ones(rng, model):
    pairs = model.model_.basis_graphs.pairs
    factors = rng.normal(size=(pairs.n_graphs, pairs.n_graphs))
    rows, lists = pairs.rows, pairs.lists
    found = np.empty(len(rows.indices))
    for k in range(3):
        _compiled_fragments.pattern_sums_of_rows(
            k, 3, rows.offsets, rows.indices, rows.values, lists.offsets, lists.indices,
            lists.values, factors, found,
        )  # fmt: skip
    held = [
        dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True))
        for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    ]
    expected = naive.pattern_sums(held, held, factors)
    flat = [x for graph in expected for x in graph.values()]
    np.testing.assert_allclose(found, flat, rtol=1e-12, atol=1e-12)


def test_new_graphs_are_explained_as_one_by_one(data, model):
    graphs = data[0][30:]
    effects = effects_of_graphs(model._decision, graphs, n_jobs=2)
    assert not effects.left_out
    for k in range(len(graphs)):
        one = model.explain(graphs[k])
        here = slice(effects.rows.offsets[k], effects.rows.offsets[k + 1])
        table = one.pattern_contributions.sort_index()
        assert table.index.tolist() == effects.rows.indices[here].tolist()
        np.testing.assert_allclose(effects.rows.values[here], table["contribution"], atol=1e-10)
        assert effects.base[k] == pytest.approx(one.base)
        assert effects.decisions[k] == pytest.approx(one.decision)
    np.testing.assert_allclose(effects.decisions, model.predict(graphs))


def test_training_graphs_are_left_out(data, model):
    graphs = data[0][:30]
    effects = effects_of_graphs(model._decision, graphs)
    assert effects.left_out
    np.testing.assert_allclose(effects.decisions, model.loo_.predictions, atol=1e-8)
    sums = np.add.reduceat(effects.rows.values, effects.rows.offsets[:-1])
    np.testing.assert_allclose(effects.base + sums, effects.decisions)


def test_node_shares_divide_effects_among_carriers(data, model):
    forest = model.model_.weighted.forest
    effects = effects_of_graphs(model._decision, data[0])  # the last ten hold unseen patterns
    shares = effects.node_shares(forest.level_offsets)
    assert (shares[effects.colors.colors < 0] == 0).all()
    owner = np.repeat(np.arange(40), data[0].sizes)
    per_graph = np.bincount(owner, weights=shares.sum(axis=0))
    np.testing.assert_allclose(effects.base + per_graph, effects.decisions)


def test_the_same_bits_for_any_number_of_threads(data, model):
    one, three = (effects_of_graphs(model._decision, data[0], n_jobs=n) for n in (1, 3))
    assert np.array_equal(one.rows.values, three.rows.values)


def test_training_graphs_in_another_order_are_other_graphs(data, model):
    graphs = data[0][:30]
    basis = model.model_.basis
    assert same_counts(basis, basis)
    turned = model.model_.weighted.forest.transform(graphs[np.arange(30)[::-1]])
    assert not same_counts(model.model_.weighted.forest.count(turned), basis)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_few_nodes_are_enough_for_small_gamma(rng, gamma):
    sums = rng.uniform(0, 30, size=(20, 20))
    known = sums.max(axis=1) + rng.uniform(0, 40, size=20)
    others = sums.max(axis=0) + rng.uniform(0, 2, size=20)
    found = []
    for rule in (unit_interval_rule(12), unit_interval_rule()):
        factors, ends = np.empty_like(sums), np.empty((20, 3))
        _compiled_fragments.mixture_path_rows(
            0, 1, sums, known, np.zeros(20), others, np.ones((20, 20)), gamma, 0.01, 1.0, 0.9,
            *rule, factors, ends,
        )  # fmt: skip
        found.append(factors)
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Training never saw")
def test_effects_of_patterns_are_those_of_explanations_of_the_class_predicted():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N", "Cl")]
    model = tl.GraphClassifier(depth=2).fit(smiles, ["alcohol", "amine", "chloride"] * 7)
    new = ["CCC(O)CC", "CC(C)N", "ClCCCl"]
    seen = model.model_.look_at(model._new_graphs(new))
    found = effects_of_patterns(model._decision, seen.features).toarray()
    for row, graph in zip(found, new, strict=True):
        told = model.explain(graph).pattern_contributions["contribution"]
        expected = np.zeros(len(row))
        expected[told.index] = told
        np.testing.assert_allclose(row, expected, atol=1e-8)
