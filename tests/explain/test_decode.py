"""Patterns made readable: occurrences, trees, names of label codes, tables."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import treelens as tl
from strategies import make_random_graphs, random_collection
from treelens.explain.contributions import pattern_table
from treelens.explain.draw import unfold_within
from treelens.explain.fragment_search import occurrence_at
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.report.predicted import named_forest, with_label_names

DEPTH = 2
CLASSES = np.array(["blue", "green", "red"])


@pytest.fixture(scope="module")
def graphs():
    return make_random_graphs(20, n_nodes=(5, 12), n_labels=3, random_state=4)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_occurrence_is_the_ball_around_its_root(graphs, depth):
    for row in range(0, graphs.n_nodes, 7):
        index = int(np.searchsorted(graphs.node_offsets, row, side="right") - 1)
        place, graph = occurrence_at(graphs, index, row, 5, depth), graphs[index]
        assert (place.root, place.pattern) == (row - graphs.node_offsets[index], 5)
        distance = nx.single_source_shortest_path_length(graph.to_networkx(), place.root, depth)
        assert set(place.nodes) == set(distance)
        assert [distance[node] for node in place.nodes] == sorted(distance.values())
        walked = {
            (u, v) for u, v in graph.edges if min(distance.get(u, 99), distance.get(v, 99)) < depth
        }
        assert set(place.edges) == walked


def test_unfolding_gives_the_whole_tree_where_it_fits(graphs):
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=3)

    def size_of(tree):
        return 1 + sum(size_of(child) for _, child in tree.children)

    for pattern in range(0, vocabulary.n_patterns, 11):
        whole = vocabulary.tree(pattern)
        tree = unfold_within(vocabulary, pattern, max_nodes=10_000)
        assert len(tree) == size_of(whole)
        assert not any(node.cut for node in tree)
        assert tree[0].label == whole.label
        first_layer = sorted(node.label for node in tree if node.layer == 1)
        assert first_layer == sorted(child.label for _, child in whole.children)
        assert all(tree[node.parent].layer == node.layer - 1 for node in tree[1:])


def test_unfolding_stops_at_a_whole_layer():
    complete = [(u, v) for v in range(12) for u in range(v)]
    graphs = tl.as_graph_collection([(complete, dict.fromkeys(range(12), "a"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=8)  # 11 ** 8 leaves
    tree = unfold_within(vocabulary, vocabulary.n_patterns - 1, max_nodes=60)
    assert len(tree) == 12
    assert [node.cut for node in tree] == [False] + [True] * 11


def test_codes_become_elements_and_bonds():
    nitro = ([(0, 1), (1, 2), (1, 3)], {0: 0, 1: 1, 2: 2, 3: 2}, {(0, 1): 1, (1, 2): 2, (1, 3): 2})
    graphs = tl.as_graph_collection([nitro])
    named = with_label_names(graphs, "MUTAG")
    vocabulary, _ = PatternVocabulary.fit(named, depth=1, edge_labels=True)
    assert "N(-C,=O,=O)" in vocabulary.texts(np.arange(vocabulary.n_patterns))
    coded, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    every = np.arange(coded.n_patterns)
    forest = named_forest(PatternForest.of_vocabulary(coded), "MUTAG")
    assert forest.texts(every) == vocabulary.texts(every)
    # Unknown data sets and labels keep their codes.
    graphs = tl.as_graph_collection([([(0, 1)], {0: 3, 1: 8})])
    assert with_label_names(graphs, "NCI1") is graphs
    assert with_label_names(graphs, "MUTAG")[0].node_labels == ("F", 8)
    forest, _ = PatternForest.fit(graphs, 1, ("labels",))
    assert named_forest(forest, "NCI1") is named_forest(forest, None) is forest


def test_ptc_names_agree_with_the_smiles_of_the_same_molecules(data_folder):
    coded, y = tl.load_dataset("PTC_MR", folder=data_folder)
    smiles, y_smiles = tl.load_dataset("PTC_MR_smiles", folder=data_folder)

    def formulas(graphs, classes):
        labels = (graph.node_labels for graph in graphs)
        return sorted((sorted(x), int(c)) for x, c in zip(labels, classes, strict=True))

    assert formulas(with_label_names(coded, "PTC_MR"), y) == formulas(smiles, y_smiles)


@pytest.mark.parametrize("first_depth", [0, 1])
def test_content_by_hand_and_order(first_depth):
    rng = np.random.default_rng(5)
    graphs = random_collection(rng, 21, max_nodes=8)
    codes = rng.integers(3, size=len(graphs))
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH, edge_labels=True)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(first_depth, DEPTH)
    weights = rng.choice([0.5, 1.0, 2.0], size=histograms.n_patterns)
    table = pattern_table(
        PatternForest.of_vocabulary(vocabulary), histograms, weights, codes, CLASSES
    )
    keys = list(zip(-table["weight"], -table["support"], table["depth"], table["pattern"],
                    strict=True))  # fmt: skip
    assert keys == sorted(keys)
    assert list(table.columns) == [
        "pattern", "tree", "depth", "weight", "support",
        "frequency blue", "frequency green", "frequency red", "class",
    ]  # fmt: skip
    start = vocabulary.level_offsets[first_depth]
    assert sorted(table.index) == list(range(start, vocabulary.n_patterns))
    for pattern_id, row in table.iterrows():
        carried = colors.colors[row["depth"]] == pattern_id - vocabulary.level_offsets[row["depth"]]
        by_graph = np.array([carried[a:b].mean() for a, b in pairwise(graphs.node_offsets)])
        shares = [by_graph[codes == code].mean() for code in range(3)]
        np.testing.assert_allclose([row[f"frequency {c}"] for c in CLASSES], shares, atol=1e-12)
        assert row["class"] == CLASSES[np.round(shares, 12).argmax()]
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
