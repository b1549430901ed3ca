"""Explanations add up, follow the nodes, and find what was planted."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import treelens as tl
from naive import explain as naive
from strategies import make_random_graphs, random_collection
from treelens.explain.contributions import (
    color_limit,
    explain,
    pattern_table,
    spread_over_graph,
)
from treelens.explain.scene import FOR, NEUTRAL
from treelens.graphs.build import build_collection
from treelens.graphs.datasets import TEST_SUBSTRUCTURES, TRAINING_SUBSTRUCTURES
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted
EVIL = "<script>x</script>"
# Values do not depend on what a graph has beyond the patterns of training graphs.
LINEAR = ("wwl", "wl-oa", "wl-subtree", "wwl-linear")


@pytest.fixture(scope="module")
def training():
    graphs = make_random_graphs(60, n_nodes=(6, 14), n_labels=4, random_state=1)
    return graphs, (graphs.sizes + np.arange(60)) % 2


@pytest.fixture(scope="module")
def unknown_graphs():
    """Graphs with many patterns, and one label, outside the vocabulary."""
    return make_random_graphs(6, n_nodes=(9, 16), n_labels=6, label_skew=0.5, random_state=2)


def _decision_values(graphs, model):
    """Decision values straight from the kernel, unseen patterns distinguished: (n, outputs)."""
    vocabulary, kind = model.patterns.forest.vocabularies[0], model.kernel.pair_feature

    def pairs_of(words, colors):
        histograms = PatternHistograms.from_colors(words, colors)
        histograms = histograms.select_depths(model.patterns.first_depth, words.depth)
        return PairFeatures.from_histograms(histograms, kind, unit=False)

    known = pairs_of(vocabulary, vocabulary.transform(graphs))
    every = pairs_of(*PatternVocabulary.fit(graphs, vocabulary.depth, vocabulary.uses_edge_labels))
    own = known.diagonal(model.weights) + every.diagonal() - known.diagonal()
    expansion = model.expansion
    basis = expansion.basis.patterns
    sums = pair_sums(known, basis.pairs, model.weights)
    kernel = model.kernel.of_sums(sums, own, basis.diagonal)
    return kernel @ expansion.coefficients.T + expansion.intercepts


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("first_depth", [0, 1])
def test_contributions_add_up_to_the_decision(
    kernel, first_depth, training, unknown_graphs, fit_model
):
    model = fit_model(*training, kernel, depth=3, first_depth=first_depth, random_weights=True)
    values = _decision_values(unknown_graphs, model)[:, 0]
    together = model.decide(unknown_graphs)
    for i in range(len(unknown_graphs)):
        found = explain(model, unknown_graphs[i : i + 1])
        gap = found.decision - found.base
        assert found.decision == pytest.approx(values[i], abs=1e-9)
        table = found.pattern_contributions
        assert found.view_contributions.sum() == pytest.approx(gap, abs=1e-9)
        if kernel in LINEAR:  # unseen patterns make no difference
            assert table["contribution"].sum() == pytest.approx(gap, abs=1e-9)
        assert len(found.rest) == len(found.descriptor_contributions) == 0
        assert table["contribution"].abs().is_monotonic_decreasing
        assert 0 < table["count"].sum() < found.graph.n_nodes * (4 - first_depth)
        assert found.node_contributions.sum() == pytest.approx(gap, abs=1e-9)
        assert 0 < found.out_of_vocabulary < 1
        among = explain(model, unknown_graphs, found=together, index=i)
        np.testing.assert_allclose(among.node_contributions, found.node_contributions, atol=1e-12)
        pd.testing.assert_frame_equal(among.neighbors, found.neighbors)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_was_never_seen_is_reported_and_starts_from_the_same_base(kernel, training, fit_model):
    model, graph = fit_model(*training, kernel), training[0][4]
    n = graph.n_nodes
    more = build_collection(np.array([n + 1]), np.array(graph.edges), [*graph.node_labels, "new"])
    found = explain(model, more)
    if kernel in LINEAR:
        assert found.node_contributions[n] == 0.0
    else:  # a part of the graph that is like no other makes it less like any
        known = explain(model, training[0][4:5])
        assert found.base == known.base
        change = found.decision - known.decision
        assert found.node_contributions[n] * change > 0 or change == 0
    assert found.node_out_of_vocabulary[n] == 1.0
    assert found.out_of_vocabulary == pytest.approx(1 / (n + 1))
    stranger = build_collection(np.array([2]), np.array([[0, 1]]), ["x", "y"])
    found = explain(model, stranger)
    assert found.decision == pytest.approx(_decision_values(stranger, model)[0, 0])
    gap = found.decision - found.base
    np.testing.assert_allclose(found.node_contributions, gap / 2, atol=1e-12)
    assert len(found.pattern_contributions) == 0
    assert found.out_of_vocabulary == 1.0


@pytest.mark.parametrize("kernel", ["wwl", "laplacian", "tanimoto"])
def test_planted_nodes_rank_first(kernel, fit_model):
    areas = []
    for seed in range(2):
        train = tl.make_synthetic(substructures=TRAINING_SUBSTRUCTURES, random_state=seed)
        graphs, y = tl.make_synthetic(8, TEST_SUBSTRUCTURES, random_state=100 + seed)
        model = fit_model(*train, kernel)
        for i in np.flatnonzero(y == 1).tolist():
            found = explain(model, graphs[i : i + 1])
            planted = np.isin(np.arange(found.graph.n_nodes), found.graph.data["planted"])
            areas.append(roc_auc_score(planted, found.node_contributions))
    assert np.mean(areas) >= 0.98


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), first_depth=st.integers(0, 1), n_depths=st.integers(1, 4))
def test_spreading_follows_the_unfolded_tree(seed, first_depth, n_depths):
    rng, n = np.random.default_rng(seed), 7
    joined = np.triu(rng.random((n, n)) < 0.35, 1)
    joined = joined | joined.T
    joined[1, 1] = True  # a self-loop, and an isolated node
    joined[n - 1, :] = joined[:, n - 1] = False
    neighbors = [np.flatnonzero(row).tolist() for row in joined]
    shares = np.random.default_rng(seed).normal(size=(n_depths, n))
    depths, offsets = first_depth + np.arange(n_depths), np.r_[0, np.cumsum(joined.sum(axis=1))]
    nodes, edges = spread_over_graph(shares, depths, offsets, np.nonzero(joined)[1])
    expected = naive.spread_over_nodes(shares, first_depth, neighbors)
    np.testing.assert_allclose(nodes, expected, atol=1e-12)
    assert nodes.sum() == pytest.approx(shares.sum(), abs=1e-12)
    expected = naive.spread_over_edges(shares, first_depth, neighbors)
    np.testing.assert_allclose(edges, list(expected.values()), atol=1e-12)
    deep = shares[max(0, 1 - first_depth) :, [bool(row) for row in neighbors]]
    assert edges.sum() == pytest.approx(deep.sum(), abs=1e-12)


def test_the_class_that_is_explained(training, fit_model):
    """One output for each of several classes; two classes are mirror images."""
    graphs, y = training
    model = fit_model(graphs, np.array(["a", "b", "c"])[np.arange(len(graphs)) % 3])
    values = _decision_values(graphs[:1], model)[0]
    by_default = explain(model, graphs[:1])
    predicted = model.classes[model.decide(graphs[:1]).predicted_codes[0]]
    assert by_default.class_label == by_default.predicted_class == predicted
    for code, label in enumerate("abc"):
        found = explain(model, graphs[:1], class_label=label)
        assert found.decision == pytest.approx(values[code], abs=1e-12)
        assert found.class_label == label
    model = fit_model(graphs, y)
    second, first = explain(model, graphs[:1]), explain(model, graphs[:1], class_label=0)
    assert (second.class_label, first.class_label) == (1, 0)
    assert first.decision == -second.decision
    np.testing.assert_array_equal(first.node_contributions, -second.node_contributions)
    with pytest.raises(ValueError, match=r"\[0, 1\], got 2"):
        explain(model, graphs[:1], class_label=2)


def test_neighbors_are_the_most_similar_training_graphs(training, fit_model):
    graphs, y = training
    model = fit_model(graphs, y, "wl-oa", random_weights=True)
    new = make_random_graphs(1, n_nodes=(9, 12), n_labels=4, random_state=9)
    found = explain(model, new, n_neighbors=4).neighbors
    one = model.decide(new).graphs.patterns.features
    others = model.training_graphs.patterns
    shared = pair_sums(one.pairs, others.pairs, model.weights)[0]
    similarity = shared / (one.diagonal[0] + others.diagonal - shared)
    order = np.argsort(-similarity, kind="stable")[:4]
    assert found.index.tolist() == order.tolist()
    assert found.columns.tolist() == ["class_label", "similarity", "contribution"]
    np.testing.assert_allclose(found["similarity"], similarity[order])
    assert found["class_label"].tolist() == y[order].tolist()
    every = explain(model, new, n_neighbors=100)
    total = every.neighbors["contribution"].sum() + model.expansion.intercepts[0]
    assert total == pytest.approx(every.decision, abs=1e-9)
    assert len(explain(model, new, n_neighbors=0).neighbors) == 0
    with pytest.raises(ValueError, match="from 0 on; got -1"):
        explain(model, new, n_neighbors=-1)


def test_an_unusual_unseen_share_is_warned_of(training, unknown_graphs, fit_model):
    model = fit_model(*training)
    known = explain(model, training[0][:1])
    assert known.warning is None
    assert known.out_of_vocabulary == 0.0
    vars(model.training)["usual_out_of_vocabulary"] = 0.01
    strange = explain(model, unknown_graphs[:1])
    assert f"{strange.out_of_vocabulary:.1%}" in strange.warning
    assert strange.warning in repr(strange)
    # The usual share is that of graphs that are left out.
    graphs = make_random_graphs(25, n_nodes=(5, 9), n_labels=3, random_state=3)
    shares = []
    for i in range(len(graphs)):
        rest = np.delete(np.arange(len(graphs)), i)
        vocabulary, _ = PatternVocabulary.fit(graphs[rest], depth=2)
        colors = vocabulary.transform(graphs[i : i + 1])
        shares.append(PatternHistograms.from_colors(vocabulary, colors).out_of_vocabulary()[0])
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=2))
    expected = np.clip(np.quantile(shares, 0.95), 0.1, 0.5)
    assert histograms.usual_out_of_vocabulary() == pytest.approx(expected)


def test_notebooks_show_a_drawing_and_escaped_text(training):
    """The sentence says how base and nodes add up to the decision."""
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"})
    model = tl.GraphClassifier(depth=1).fit([star, path] * 4, [EVIL, "plain"] * 4)
    found = model.explain(star)
    page = found._repr_html_()
    assert page.count("<svg") == 1
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    total, *parts = map(float, re.findall(r"[+-]\d+\.\d+", found.sentence))
    assert sum(parts) == pytest.approx(total, abs=2e-3)
    regressor = tl.GraphRegressor(depth=1).fit(*training)
    assert "raises" in regressor.explain(training[0][0])._repr_html_()


@pytest.mark.parametrize("first_depth", [0, 1])
def test_content_by_hand_and_order(first_depth):
    rng, classes = np.random.default_rng(5), np.array(["blue", "green", "red"])
    graphs = random_collection(rng, 21, max_nodes=8)
    codes = rng.integers(3, size=len(graphs))
    vocabulary, colors = PatternVocabulary.fit(graphs, 2, edge_labels=True)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(first_depth, 2)
    weights = rng.choice([0.5, 1.0, 2.0], size=histograms.n_patterns)
    table = pattern_table(
        PatternForest.of_vocabulary(vocabulary), histograms, weights, codes, classes
    )
    keys = list(
        zip(-table["weight"], -table["support"], table["depth"], table["pattern"], strict=True)
    )
    assert keys == sorted(keys)
    assert list(table.columns) == [
        "pattern",
        "tree",
        "depth",
        "weight",
        "support",
        "frequency blue",
        "frequency green",
        "frequency red",
        "class",
    ]
    start = vocabulary.level_offsets[first_depth]
    assert sorted(table.index) == list(range(start, vocabulary.n_patterns))
    for pattern_id, row in table.iterrows():
        carried = colors.colors[row["depth"]] == pattern_id - vocabulary.level_offsets[row["depth"]]
        by_graph = np.array([carried[a:b].mean() for a, b in pairwise(graphs.node_offsets)])
        shares = [by_graph[codes == code].mean() for code in range(3)]
        np.testing.assert_allclose([row[f"frequency {c}"] for c in classes], shares, atol=1e-12)
        assert row["class"] == classes[np.round(shares, 12).argmax()]
        assert row["pattern"] == str(vocabulary.tree(pattern_id))
        assert row["weight"] == weights[pattern_id - start]
        assert row["support"] == (by_graph > 0).sum()
    values = np.arange(len(graphs), dtype=float)
    table = pattern_table(PatternForest.of_vocabulary(vocabulary), histograms, weights, values)
    has = histograms.to_sparse().toarray() > 0
    for pattern, row in table.iterrows():
        inside = has[:, pattern - start]
        assert row["mean_with"] == pytest.approx(values[inside].mean())
        expected = np.nan if inside.all() else values[~inside].mean()
        assert row["mean_without"] == pytest.approx(expected, nan_ok=True)


# --- where structure carries almost nothing -------------------------------------------------------


@pytest.fixture(scope="module")
def beside():
    """Values that follow from a covariate, alone or together with the size of the graph."""
    graphs = make_random_graphs(60, n_nodes=(6, 14), n_labels=4, random_state=1)
    number = np.random.default_rng(0).normal(size=60)
    covariates, one = {"x": number}, graphs[:1].with_data({"x": number[:1]})
    alone = tl.GraphRegressor(depth=1).fit(graphs, 3.0 * number, covariates=covariates)
    both = tl.GraphRegressor(depth=1).fit(
        graphs, 3.0 * number + 0.8 * graphs.sizes, covariates=covariates
    )
    return alone, both, one


def strongest_color(svg: str) -> float:
    """How far the most coloured node is from the neutral colour, 0 to 1."""
    fills = re.findall(r'<circle [^>]*fill="#(\w{6})"', svg)
    colors = np.array([[int(fill[k : k + 2], 16) for k in (0, 2, 4)] for fill in fills])
    return float(np.abs(colors - NEUTRAL).max() / np.abs(np.subtract(FOR, NEUTRAL)).max())


def test_small_effects_look_pale_and_are_said_to_be_small(beside):
    alone, both, one = beside
    found = alone.explain(one)
    assert "and x add" in found.structure_note
    assert found.structure_note in repr(found)
    assert found.structure_note in found._repr_html_()
    drawing = found.draw()
    assert strongest_color(drawing) < 0.05
    assert "almost nothing" in drawing
    ((name, value),) = found.rest_in_words
    assert (name, value) == ("x", found.rest["contribution"].sum())
    assert f"x {value:+.3f}" in found.sentence
    found = both.explain(one)
    assert found.structure_note is None
    assert strongest_color(found.draw()) > 0.9
    assert "almost nothing" not in found.draw() + repr(found) + found._repr_html_()


def test_the_full_colour_is_the_largest_contribution_but_never_a_tiny_one(beside, training):
    values = np.array([0.2, -0.5, 0.1, 0.0])
    assert color_limit([values], 1.0) == 0.5  # 1 / 4 nodes is less
    assert color_limit([values / 100], 1.0) == 0.25
    assert color_limit([values / 100, np.full(10, 1e-9), np.zeros(5)], 1.0) == 0.2  # median: 5
    assert color_limit([], 1.0) == 0.0
    alone, _, one = beside
    targets = alone.model_.training.targets
    assert alone.explain(one).spread == pytest.approx(targets.std())
    graphs, y = training
    assert tl.GraphClassifier(depth=1).fit(graphs, y).explain(graphs[:1]).spread == 1.0


def test_the_report_says_where_structure_carries_almost_nothing(beside):
    alone, both, one = beside
    for model, expected in ((alone, True), (both, False)):
        summary = model.summary(one)
        checks = [row["text"] for row in summary["checks"] if row["level"] == "notice"]
        assert any(text.startswith("Graphs themselves carry") for text in checks) == expected
        (card,) = summary["cards"]["rows"]
        assert card["structure"] == model.explain(one).structure_note
