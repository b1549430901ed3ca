"""Explanations add up, follow the nodes, and find what was planted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import treelens as tl
from naive import explain as naive
from treelens.explain import _compiled
from treelens.explain.contributions import explain_decision
from treelens.graphs.build import build_collection
from treelens.graphs.collection import Graph
from treelens.graphs.errors import GraphDataError
from treelens.graphs.synthetic import TEST_SUBSTRUCTURES, TRAINING_SUBSTRUCTURES, make_random_graphs
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import kernel_matrix
from treelens.patterns.histograms import PatternHistograms, usual_out_of_vocabulary
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def training():
    graphs = make_random_graphs(60, n_nodes=(6, 14), n_labels=4, random_state=1)
    return graphs, (graphs.sizes + np.arange(60)) % 2


@pytest.fixture(scope="module")
def unknown_graphs():
    """Graphs with many patterns, and one label, that training never saw."""
    return make_random_graphs(6, n_nodes=(9, 16), n_labels=6, label_skew=0.5, random_state=2)


def _decision_values(graphs, decision):
    """Decision values straight from the kernel, unseen patterns told apart, shape (n, outputs)."""
    vocabulary, kind = decision.vocabulary, KERNELS[decision.kernel].pair_feature

    def pairs_of(words, colors):
        histograms = PatternHistograms.from_colors(words, colors)
        histograms = histograms.select_depths(decision.first_depth, words.depth)
        return PairFeatures.from_histograms(histograms, kind, unit=False)

    known = pairs_of(vocabulary, vocabulary.transform(graphs))
    every = pairs_of(*PatternVocabulary.fit(graphs, vocabulary.depth, vocabulary.uses_edge_labels))
    own = known.diagonal(decision.weights) + every.diagonal() - known.diagonal()
    sums = pair_sums(known, decision.pairs, decision.weights)
    kernel = kernel_matrix(
        decision.kernel, sums, own, decision.diagonal, decision.offset, decision.gamma
    )
    return kernel @ decision.coefficients.T + decision.intercepts


def _shuffled(graph: Graph, order: np.ndarray) -> tl.GraphCollection:
    """The graph with node ``order[i]`` as its node ``i``."""
    place = np.argsort(order)
    edges = place[np.array(graph.edges)]
    labels = [graph.node_labels[node] for node in order]
    return build_collection(np.array([graph.n_nodes]), edges, labels)


# --- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("first_depth", [0, 1])
def test_contributions_add_up_to_the_decision(
    kernel, first_depth, training, unknown_graphs, fit_decision
):
    decision = fit_decision(
        *training, kernel, depth=3, first_depth=first_depth, random_weights=True
    )
    values = _decision_values(unknown_graphs, decision)[:, 0]
    for i in range(len(unknown_graphs)):
        found = explain_decision(unknown_graphs[i : i + 1], decision)
        gap = found.decision - found.base
        assert found.decision == pytest.approx(values[i], abs=1e-9)
        assert found.pattern_contributions["contribution"].sum() == pytest.approx(gap, abs=1e-9)
        assert found.node_contributions.sum() == pytest.approx(gap, abs=1e-9)
        assert 0 < found.out_of_vocabulary < 1


@pytest.mark.parametrize("kernel", ["wwl-linear", "wl-oa", "wl-subtree"])
def test_linear_kernels_have_exact_contributions(kernel, training, fit_decision):
    graphs, y = training
    decision = fit_decision(graphs, y, kernel, random_weights=True)
    found = explain_decision(graphs[3:4], decision)
    assert found.base == pytest.approx(decision.intercepts[0])
    # A kernel linear in the patterns falls by exactly the contribution when a weight is taken out.
    for pattern, row in found.pattern_contributions.head(5).iterrows():
        weights = decision.weights.copy()
        weights[pattern] = 0.0
        without = explain_decision(graphs[3:4], dataclasses.replace(decision, weights=weights))
        assert found.decision - without.decision == pytest.approx(row["contribution"], abs=1e-10)


@pytest.mark.interpreted
def test_base_is_the_decision_without_known_patterns(training, fit_decision):
    stranger = build_collection(np.array([2]), np.array([[0, 1]]), ["x", "y"])
    for kernel in KERNELS:
        decision = fit_decision(*training, kernel)
        found = explain_decision(stranger, decision)
        assert found.decision == found.base
        assert found.base == pytest.approx(_decision_values(stranger, decision)[0, 0])
        assert len(found.pattern_contributions) == 0
        assert found.out_of_vocabulary == 1.0


# --- nodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["wwl", "tanimoto", "wl-subtree-cosine"])
def test_renumbering_nodes_permutes_their_contributions(kernel, training, fit_decision, rng):
    decision = fit_decision(*training, kernel)
    graph = training[0][4]
    order = rng.permutation(graph.n_nodes)
    before = explain_decision(training[0][4:5], decision)
    after = explain_decision(_shuffled(graph, order), decision)
    np.testing.assert_allclose(after.node_contributions, before.node_contributions[order])
    by_edge = dict(zip(before.graph.edges, before.edge_contributions, strict=True))
    for (u, v), value in zip(after.graph.edges, after.edge_contributions, strict=True):
        old = tuple(sorted((int(order[u]), int(order[v]))))
        assert value == pytest.approx(by_edge[old])


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_isolated_node_with_an_unseen_label_gets_zero_and_is_reported(
    kernel, training, fit_decision
):
    decision = fit_decision(*training, kernel)
    graph = training[0][4]
    n = graph.n_nodes
    more = build_collection(np.array([n + 1]), np.array(graph.edges), [*graph.node_labels, "new"])
    found = explain_decision(more, decision)
    assert found.node_contributions[n] == 0.0
    assert found.node_out_of_vocabulary[n] == 1.0
    assert found.out_of_vocabulary == pytest.approx(1 / (n + 1))
    assert found.node_contributions.sum() == pytest.approx(found.decision - found.base, abs=1e-9)


@pytest.mark.parametrize("kernel", ["wwl", "laplacian", "tanimoto"])
def test_planted_nodes_rank_first(kernel, fit_decision):
    areas = []
    for seed in range(2):
        train = tl.make_synthetic(substructures=TRAINING_SUBSTRUCTURES, random_state=seed)
        graphs, y = tl.make_synthetic(8, TEST_SUBSTRUCTURES, random_state=100 + seed)
        decision = fit_decision(*train, kernel)
        for i in np.flatnonzero(y == 1).tolist():
            found = explain_decision(graphs[i : i + 1], decision)
            planted = np.isin(np.arange(found.graph.n_nodes), found.graph.data["planted"])
            areas.append(roc_auc_score(planted, found.node_contributions))
    assert np.mean(areas) >= 0.98


# --- what else is in it ---------------------------------------------------------------------------


def test_several_classes_have_one_output_each(training, fit_decision):
    graphs, _ = training
    y = np.array(["a", "b", "c"])[np.arange(len(graphs)) % 3]
    decision = fit_decision(graphs, y)
    values = _decision_values(graphs[:1], decision)[0]
    by_default = explain_decision(graphs[:1], decision)
    assert by_default.class_label == by_default.predicted_class == decision.classes[values.argmax()]
    for code, label in enumerate("abc"):
        found = explain_decision(graphs[:1], decision, class_label=label)
        assert found.decision == pytest.approx(values[code], abs=1e-12)
        assert found.class_label == label


def test_the_first_of_two_classes_is_the_mirror_image(training, fit_decision):
    graphs, y = training
    decision = fit_decision(graphs, y)
    second = explain_decision(graphs[:1], decision)
    first = explain_decision(graphs[:1], decision, class_label=0)
    assert (second.class_label, first.class_label) == (1, 0)
    assert first.decision == -second.decision
    np.testing.assert_array_equal(first.node_contributions, -second.node_contributions)
    with pytest.raises(ValueError, match=r"\[0, 1\], got 2"):
        explain_decision(graphs[:1], decision, class_label=2)


def test_neighbors_are_the_strongest_voices(training, fit_decision):
    graphs, y = training
    decision = fit_decision(graphs, y)
    found = explain_decision(graphs[:1], decision, n_neighbors=3).neighbors
    assert (found["contribution"] > 0).sum() == (found["contribution"] < 0).sum() == 3
    np.testing.assert_allclose(found["contribution"], found["coefficient"] * found["similarity"])
    assert found["contribution"].is_monotonic_decreasing
    assert found["class_label"].tolist() == y[found.index].tolist()
    everyone = explain_decision(graphs[:1], decision, n_neighbors=100)
    total = everyone.neighbors["contribution"].sum() + decision.intercepts[0]
    assert total == pytest.approx(everyone.decision, abs=1e-9)


def test_five_voices_on_either_side_unless_told_otherwise(training, fit_decision):
    graphs, y = training
    decision = fit_decision(graphs, y)
    by_default = explain_decision(graphs[:1], decision).neighbors
    five = explain_decision(graphs[:1], decision, n_neighbors=5).neighbors
    assert by_default.index.tolist() == five.index.tolist()
    assert (five["contribution"] > 0).sum() == (five["contribution"] < 0).sum() == 5


def test_patterns_are_listed_by_the_size_of_what_they_contribute(training, fit_decision):
    graphs, y = training
    found = explain_decision(graphs[:1], fit_decision(graphs, y, random_weights=True))
    sizes = found.pattern_contributions["contribution"].abs()
    assert sizes.is_monotonic_decreasing
    assert sizes.iloc[0] > sizes.iloc[-1]


def test_a_large_unseen_share_is_warned_of(training, unknown_graphs, fit_decision):
    decision = fit_decision(*training)
    known = explain_decision(training[0][:1], decision)
    assert known.warning is None
    assert known.out_of_vocabulary == 0.0
    strange = explain_decision(
        unknown_graphs[:1], dataclasses.replace(decision, out_of_vocabulary_limit=0.01)
    )
    assert f"{strange.out_of_vocabulary:.0%}" in strange.warning
    assert strange.warning in repr(strange)


def test_usual_unseen_share_is_what_leaving_one_out_gives():
    graphs = make_random_graphs(25, n_nodes=(5, 9), n_labels=3, random_state=3)
    shares = []
    for i in range(len(graphs)):
        rest = np.delete(np.arange(len(graphs)), i)
        vocabulary, _ = PatternVocabulary.fit(graphs[rest], depth=2)
        colors = vocabulary.transform(graphs[i : i + 1])
        shares.append(PatternHistograms.from_colors(vocabulary, colors).out_of_vocabulary()[0])
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=2))
    expected = np.clip(np.quantile(shares, 0.95), 0.1, 0.5)
    assert usual_out_of_vocabulary(histograms) == pytest.approx(expected)


def test_more_than_one_graph_is_refused(training, fit_decision):
    with pytest.raises(GraphDataError, match="got 2"):
        explain_decision(training[0][:2], fit_decision(*training))


@pytest.mark.interpreted
@pytest.mark.parametrize("minimum", [True, False])
def test_compiled_sums_equal_their_twins(minimum, rng):
    n_graphs, n_patterns = 9, 14
    held = [np.sort(rng.choice(n_graphs, rng.integers(0, 6), replace=False)) for _ in range(14)]
    offsets = np.concatenate([[0], np.cumsum([len(h) for h in held])])
    graphs = np.concatenate(held).astype(np.int32)
    lists = offsets, graphs, rng.random(len(graphs)), minimum
    patterns = np.sort(rng.choice(n_patterns, 6, replace=False)).astype(np.int32)
    values, weights = rng.random(6), rng.random(6)
    factors = rng.normal(size=n_graphs)
    np.testing.assert_allclose(
        _compiled.shared_sums(patterns, values, weights, *lists, n_graphs),
        naive.shared_sums(patterns, values, weights, *lists, n_graphs),
    )
    np.testing.assert_allclose(
        _compiled.pattern_sums(patterns, values, factors, *lists),
        naive.pattern_sums(patterns, values, factors, *lists),
    )
