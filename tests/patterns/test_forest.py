"""Several trees of patterns as one forest."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import collections, random_collection
from treelens import as_graph_collection
from treelens.errors import GraphDataError
from treelens.patterns.forest import PatternForest, usual_trees
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted


def _molecules():
    pytest.importorskip("rdkit")
    return as_graph_collection(["CCO", "c1ccccc1O", "CC(=O)[O-]", "C1CC1N", "CCN"])


def test_each_tree_has_the_patterns_of_its_own_vocabulary():
    graphs = _molecules()
    forest, colors = PatternForest.fit(graphs, 2, ("labels", "labels+edges"))
    plain, plain_colors = PatternVocabulary.fit(graphs, 2)
    _, edged_colors = PatternVocabulary.fit(graphs, 2, edge_labels=True)
    assert (colors.colors[:3] == plain_colors.colors).all()
    assert (colors.colors[3:] == edged_colors.colors[1:]).all()  # depth 0 stands there already
    assert forest.level_names == (
        "labels, depth 0",
        "labels, depth 1",
        "labels, depth 2",
        "labels+edges, depth 1",
        "labels+edges, depth 2",
    )
    histograms = forest.count(colors)
    expected = PatternHistograms.from_colors(plain, plain_colors).to_sparse().toarray()
    assert (histograms.to_sparse().toarray()[:, : plain.n_patterns] == expected).all()
    assert histograms.depths.tolist() == sorted(histograms.depths[: plain.n_patterns]) + sorted(
        histograms.depths[plain.n_patterns :]
    )
    texts = forest.texts(np.arange(forest.n_patterns))
    assert texts[: plain.n_patterns] == plain.texts(np.arange(plain.n_patterns))


@pytest.mark.parametrize("edge_labels", [False, True])
def test_a_vocabulary_is_a_forest_of_one_tree(edge_labels):
    graphs = _molecules()
    vocabulary, colors = PatternVocabulary.fit(graphs, 2, edge_labels)
    forest = PatternForest.of_vocabulary(vocabulary)
    patterns = np.arange(vocabulary.n_patterns)
    assert forest.texts(patterns) == vocabulary.texts(patterns)
    ids = colors.colors + vocabulary.level_offsets[:-1, None]
    assert (forest.parents[ids[0]] == -1).all()
    assert (forest.parents[ids[1:]] == ids[:-1]).all()
    assert (forest.transform(graphs).colors == colors.colors).all()


@settings(max_examples=25)
@given(collections())
def test_a_parent_is_what_the_same_nodes_carry_one_level_before(graphs):
    forest, colors = PatternForest.fit(graphs, 2, ("structure", "labels"))
    table = colors.colors
    for level, before in enumerate(forest.level_before.tolist()):
        ids = forest.level_offsets[level] + table[level]
        if before < 0:
            assert (forest.parents[ids] == -1).all()
        else:
            assert (forest.parents[ids] == forest.level_offsets[before] + table[before]).all()
    assert (forest.parents < np.arange(forest.n_patterns)).all()


def test_fine_labels_hang_on_coarse_ones():
    forest, _ = PatternForest.fit(_molecules(), 1, ("labels", "fine"))
    texts = forest.texts(np.arange(forest.n_patterns))
    parent = {texts[v]: texts[p] for v, p in enumerate(forest.parents.tolist()) if p >= 0}
    assert parent["cH"] == "C"
    assert parent["O-1"] == "O"
    assert parent["CH2@"] == "C"


def test_an_unseen_pattern_weighs_what_its_deepest_known_ancestor_does():
    train = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    forest, _ = PatternForest.fit(train, 1, ("structure", "labels"))
    new = as_graph_collection([([(0, 1)], {0: "O", 1: "N"})])
    colors = forest.transform(new)
    theta = np.linspace(0.1, 0.8, forest.n_patterns)
    level = np.array([1.0, 2.0, 4.0, 8.0])
    # structure: * is known, *(*) is known; labels: O known, N unseen -> *; O(N) unseen -> O;
    # N(O) unseen -> N unseen -> *.
    star, oxygen = 0, forest.texts(np.arange(forest.n_patterns)).index("O")
    expected = level[2] * np.exp(theta[star])
    expected += level[3] * np.exp(theta[oxygen]) + level[3] * np.exp(theta[star])
    assert forest.unseen_sums(colors, theta, level)[0] == pytest.approx(expected)
    assert forest.unseen_sums(forest.transform(train), theta, level)[0] == 0.0


def test_usual_trees():
    assert usual_trees(_molecules()) == ("labels", "fine")
    plain = as_graph_collection([([(0, 1)], {0: "a", 1: "b"})])
    assert usual_trees(plain) == ("labels",)
    edged = as_graph_collection([({(0, 1): 1}, {0: "a", 1: "b"}, {(0, 1): "x", (1, 0): "x"})])
    assert usual_trees(edged) == ("labels", "labels+edges")


def test_fine_labels_survive_slicing_and_single_graphs():
    graphs = _molecules()
    assert graphs[1:3].fine_codes.tolist() == graphs[[1, 2]].fine_codes.tolist()
    forest, _ = PatternForest.fit(graphs, 1, ("labels", "fine"))
    again = as_graph_collection([graphs[1], graphs[2]])
    assert (forest.transform(again).colors == forest.transform(graphs[1:3]).colors).all()


def test_what_is_missing_is_named():
    plain = as_graph_collection([([(0, 1)], {0: "a", 1: "b"})])
    with pytest.raises(GraphDataError, match="fine node labels"):
        PatternForest.fit(plain, 1, ("labels", "fine"))
    forest, _ = PatternForest.fit(plain, 1, ("labels",))
    with pytest.raises(IndexError, match="does not exist"):
        forest.texts([forest.n_patterns])


@pytest.mark.parametrize("trees", [("labels",), ("structure", "labels", "labels+edges")])
def test_an_extended_forest_is_that_of_all_graphs(rng, trees):
    graphs = random_collection(rng, 40)
    some, more = graphs[:15], graphs[15:]
    forest, _ = PatternForest.fit(some, 2, trees)
    extended, colors = forest.extend(more)
    extended.validate()
    assert extended.n_patterns > forest.n_patterns
    whole, _ = PatternForest.fit(graphs, 2, trees)
    ours, theirs = (
        set(zip(f.texts(range(f.n_patterns)), f.tree_names(np.arange(f.n_patterns)), strict=True))
        for f in (extended, whole)
    )
    assert ours == theirs
    np.testing.assert_array_equal(extended.transform(some).colors, forest.transform(some).colors)
    np.testing.assert_array_equal(extended.transform(more).colors, colors.colors)
    names = [dict(enumerate(f.texts(range(f.n_patterns)))) for f in (extended, whole)]
    pairs = [
        {(t[k], t[p]) for k, p in enumerate(f.parents.tolist()) if p >= 0}
        for t, f in zip(names, (extended, whole), strict=True)
    ]
    assert pairs[0] == pairs[1]


@pytest.mark.parametrize("depth", [0, 1])
def test_a_truncated_forest_is_that_of_a_fit_up_to_this_depth(depth):
    rng = np.random.default_rng(0)
    graphs = random_collection(rng)
    values = rng.normal(size=(graphs.n_nodes, 2))
    graphs = replace(graphs, node_attributes=values, attribute_names=("x", "y"))
    trees = ("structure", "labels", "labels+edges")
    deep, colors = PatternForest.fit(graphs, 2, trees, attributes=True)
    shallow, fewer = PatternForest.fit(graphs, depth, trees, attributes=True)
    found = deep.truncated(depth)
    found.validate()
    found.cells.validate()
    np.testing.assert_array_equal(found.transform(graphs).colors, fewer.colors)
    assert found.level_names == shallow.level_names
    np.testing.assert_array_equal(found.parents, shallow.parents)
    np.testing.assert_array_equal(colors.colors[deep.level_depths <= depth], fewer.colors)
