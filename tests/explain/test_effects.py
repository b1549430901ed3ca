"""Contributions of many graphs at once are those of each; training graphs are left out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import treelens as tl
from naive import fragments as naive
from strategies import random_collection
from treelens.explain import _compiled, effects
from treelens.explain.effects import effects_of_patterns, inverse_covariance
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


def effects_of_graphs(expansion, graphs, *args, **options):
    inverse = inverse_covariance(expansion)
    return effects.effects_of_graphs(expansion, graphs, *args, inverse=inverse, **options)


def test_compiled_paths_are_the_integrals(rng):
    sums = rng.uniform(0, 3, size=(4, 5))
    sums[0, 0] = 0.0
    known = sums.max(axis=1) + rng.uniform(0, 2, size=4)
    unseen, others = rng.uniform(0, 1, size=4), sums.max(axis=0) + rng.uniform(0, 2, size=5)
    scales, found = (1.7, 0.3, 2.0, 0.6), [np.empty_like(sums) for _ in range(4)]
    for k in range(2):
        _compiled.mixture_path_rows(
            k, 2, sums, known, unseen, others, *scales, *unit_interval_rule(), *found
        )
    for (g, i), shared in np.ndenumerate(sums):
        expected = naive.mixture_path(shared, known[g], unseen[g], others[i], *scales)
        for k, value in enumerate(expected):
            # With nothing shared that slope is not needed, and the Tanimoto part is left out of it.
            if k != 2 or shared > 0:
                assert found[k][g, i] == pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("minimum", [True, False])
def test_compiled_sums_are_the_naive_ones(rng, model, minimum):
    pairs = model.model_.basis_graphs.pairs
    factors = rng.normal(size=(pairs.n_graphs, pairs.n_graphs))
    rows, lists = pairs.rows, pairs.lists
    found = np.empty(len(rows.indices))
    for k in range(3):
        _compiled.pattern_sums_of_rows(
            k, 3, rows.offsets, rows.indices, rows.values, lists.offsets, lists.indices,
            lists.values, minimum, factors, found,
        )  # fmt: skip
    rows_of = [
        dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True))
        for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    ]
    expected = naive.pattern_sums(rows_of, rows_of, factors, minimum)
    flat = [x for graph in expected for x in graph.values()]
    np.testing.assert_allclose(found, flat, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Training never saw")
def test_new_graphs_are_explained_as_one_by_one(data, model):
    graphs = data[0][30:]
    found = effects_of_graphs(model.model_.expansion, graphs, n_jobs=2)
    assert not any(found.copies)
    for k in range(len(graphs)):
        one = model.explain(graphs[k])
        here = slice(found.rows.offsets[k], found.rows.offsets[k + 1])
        table = one.pattern_contributions.sort_index()
        assert table.index.tolist() == found.rows.indices[here].tolist()
        np.testing.assert_allclose(found.rows.values[here], table["contribution"], atol=1e-10)
        assert found.base[k] == pytest.approx(one.base)
        assert found.decisions[k] == pytest.approx(one.decision)
    np.testing.assert_allclose(found.decisions, model.predict(graphs))


@pytest.mark.parametrize("order", ["training", "reversed", "shuffled", "with new ones"])
def test_training_graphs_are_left_out_in_any_order(data, model, order, rng):
    chosen = {
        "training": np.arange(30),
        "reversed": np.arange(30)[::-1],
        "shuffled": rng.permutation(30),
        "with new ones": np.arange(25, 35),
    }[order]
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
def test_replicates_are_left_out_together(data):
    graphs, values = data
    doubled = np.r_[np.arange(20), np.arange(20)]
    model = tl.GraphRegressor(depth=1, n_jobs=1).fit(
        graphs[doubled], values[doubled] + np.arange(40)
    )
    found = effects_of_graphs(model.model_.expansion, graphs[doubled[::-1]])
    assert all({39 - k, (19 - k) % 40} <= set(group) for k, group in enumerate(found.copies))
    np.testing.assert_allclose(found.decisions, model.loo_.predictions[::-1], atol=1e-8)


def test_blocks_of_graphs_change_nothing(data, model, monkeypatch):
    whole = effects_of_graphs(model.model_.expansion, data[0])
    monkeypatch.setattr(effects, "_BLOCK", 1)
    monkeypatch.setattr(effects, "_LEAST_ROWS", 7)
    parts = effects_of_graphs(model.model_.expansion, data[0])
    np.testing.assert_allclose(parts.rows.values, whole.rows.values, rtol=1e-12, atol=1e-14)
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
    weights, inverse = np.linspace(0.5, 1.5, len(nodes)), inverse_covariance(expansion)
    (error,) = effects.jackknife_errors(found, [(nodes, weights)], inverse, output)
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


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_few_nodes_are_enough_for_small_gamma(rng, gamma):
    sums = rng.uniform(0, 30, size=(20, 20))
    known = sums.max(axis=1) + rng.uniform(0, 40, size=20)
    others = sums.max(axis=0) + rng.uniform(0, 2, size=20)
    found = []
    for rule in (unit_interval_rule(12), unit_interval_rule()):
        slopes = [np.empty_like(sums) for _ in range(4)]
        _compiled.mixture_path_rows(
            0, 1, sums, known, np.zeros(20), others, gamma, 0.01, 1.0, 0.9, *rule, *slopes
        )
        found.append(slopes[2])
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Training never saw")
def test_effects_of_patterns_are_those_of_explanations_of_the_class_predicted():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N", "Cl")]
    model = tl.GraphClassifier(depth=2).fit(smiles, ["alcohol", "amine", "chloride"] * 7)
    new = ["CCC(O)CC", "CC(C)N", "ClCCCl"]
    seen = model.model_.refine(model._new_graphs(new))
    found = effects_of_patterns(model.model_.expansion, seen.features).toarray()
    for row, graph in zip(found, new, strict=True):
        one = model.explain(graph).pattern_contributions["contribution"]
        expected = np.zeros(len(row))
        expected[one.index] = one
        np.testing.assert_allclose(row, expected, atol=1e-8)


def test_nodes_and_base_of_an_svm_add_up_to_its_decisions():
    smiles = [f"{'C' * k}{end}" for k in range(1, 7) for end in ("Cl", "O", "N")]
    machine = tl.GraphSVC("tanimoto", 2, 0, 1.0, 10.0).fit(smiles, ["bad", "good", "good"] * 6)
    graphs = machine._new_graphs(smiles)
    found = effects_of_graphs(machine.model_.expansion, graphs)
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    sums = np.bincount(owner, weights=found.phi, minlength=len(graphs))
    np.testing.assert_allclose(found.base + sums, machine.decision_function(graphs), atol=1e-9)
    np.testing.assert_allclose(found.decisions, machine.decision_function(graphs), atol=1e-9)
