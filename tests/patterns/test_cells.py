"""Cells of continuous attributes: their twin, missing values, words, and what they must not do."""

import networkx as nx
import numpy as np
import pytest

import treelens as tl
from naive import cells as naive
from treelens.patterns.cells import (
    N_RESOLUTIONS,
    N_TREES,
    AttributeCells,
    _choose_split,
    means_over_steps,
)
from treelens.patterns.forest import PatternForest

pytestmark = pytest.mark.interpreted


def _networkx(n, missing=0.0, seed=0, shift=0.0):
    """Random graphs whose nodes have two attributes, one of them sometimes missing."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        graph = nx.gnp_random_graph(6 + k % 4, 0.4, seed=seed + k)
        for node in graph:
            x = np.nan if rng.random() < missing else rng.normal() + shift
            graph.add_node(node, label="a", x=x, charge=float(rng.integers(3)))
        found.append(graph)
    return found


def _graphs(n=12, **options):
    return tl.as_graph_collection(_networkx(n, **options), node_attributes=["x", "charge"])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_means_agree_with_their_twin(missing):
    graphs = _graphs(missing=missing)
    found = means_over_steps(graphs, 2)
    for g in range(len(graphs)):
        rows = slice(graphs.node_offsets[g], graphs.node_offsets[g + 1])
        edges = graphs[g].edges
        neighbors = [
            [b for a, b in edges if a == k] + [a for a, b in edges if b == k]
            for k in range(graphs[g].n_nodes)
        ]
        expected = naive.means_over_steps(graphs.node_attributes[rows].tolist(), neighbors, 2)
        np.testing.assert_allclose(found[rows], expected)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_nodes_fall_into_the_cells_of_the_twin(missing):
    cells = AttributeCells.fit(_graphs(missing=missing), 1)
    cells.validate()
    new = _graphs(n=5, missing=missing, seed=50)
    found, values = cells.transform(new), means_over_steps(new, 1)
    by_tree = found.reshape(2, N_TREES, N_RESOLUTIONS, new.n_nodes)
    for tree in range(N_TREES):
        for step in range(2):
            for node in range(new.n_nodes):
                expected = naive.path(cells, tree, step, values[node].tolist())
                assert by_tree[step, tree, :, node].tolist() == expected


def test_cells_are_inside_their_parents():
    graphs = _graphs(n=40)
    forest, colors = PatternForest.fit(graphs, 1, ("labels",), attributes=True)
    n_labels = forest.n_deviating
    for level in range(len(forest.levels)):
        before = forest.level_before[level]
        if forest.level_offsets[level] < n_labels or before < 0:
            continue
        own = forest.level_offsets[level] + colors.colors[level]
        above = forest.level_offsets[before] + colors.colors[before]
        assert (forest.parents[own] == above).all()
    first = colors.colors[forest.level_names.index("attributes, 0 steps, resolution 1")]
    assert 0.05 < np.mean(first) < 0.95


def test_text_holds_for_exactly_the_nodes_of_a_cell():
    graphs = _graphs(n=30, missing=0.2)
    cells = AttributeCells.fit(graphs, 1)
    found, values = cells.transform(graphs), means_over_steps(graphs, 1)
    for level in range(0, cells.n_levels, 5):
        for cell in range(cells.level_sizes[level]):
            inside = np.ones(graphs.n_nodes, dtype=bool)
            strict = True  # whether values that are missing are said to be in or out
            for name, bound in cells.bounds(level, cell).items():
                column = values[:, cells.columns.index(name)]
                if bound is True:
                    inside &= np.isnan(column)
                else:
                    low, high = bound
                    inside &= ~(column <= low) & ~(column > high)
                    strict &= not np.isnan(column).any()
            members = found[level] == cell
            assert not (members & ~inside).any()
            if strict:
                assert (members == inside).all()


def test_words_of_a_cell():
    graphs = [nx.Graph() for _ in range(8)]
    for k, graph in enumerate(graphs):
        graph.add_node(0, label="a", charge=float(k))
        graph.add_node(1, label="a", charge=float(k) + 0.5)
        graph.add_edge(0, 1)
    data = tl.as_graph_collection(graphs, node_attributes=["charge"])
    cells = AttributeCells.fit(data, 1)
    threshold = f"{cells.threshold[0]:.3g}"
    assert cells.text(0, 0) == f"charge <= {threshold}"
    assert cells.text(0, 1) == f"charge > {threshold}"
    assert cells.text(1, 1).startswith(f"{threshold} < charge <= ")
    last = cells.n_levels - 1
    texts = [cells.text(last, cell) for cell in range(cells.level_sizes[last])]
    assert any("(mean over 1 step)" in text for text in texts)


def test_constant_and_missing_columns_are_not_split():
    graphs = [nx.path_graph(10) for _ in range(3)]
    for graph in graphs:
        nx.set_node_attributes(graph, "a", "label")
        nx.set_node_attributes(graph, 1.5, "same")
        nx.set_node_attributes(graph, np.nan, "never")
    data = tl.as_graph_collection(graphs, node_attributes=["same", "never"])
    cells = AttributeCells.fit(data, 2)
    assert (cells.attribute == -1).all()
    assert (cells.transform(data) == 0).all()


def test_edge_attributes_count_by_their_mean():
    graph = nx.Graph([(0, 1, {"length": 1.0}), (1, 2, {"length": 3.0})])
    nx.set_node_attributes(graph, "a", "label")
    data = tl.as_graph_collection([graph], edge_attributes=["length"])
    np.testing.assert_allclose(means_over_steps(data, 0)[:, 0], [1.0, 2.0, 3.0])


def test_renumbered_nodes_have_the_same_counts():
    graphs = _networkx(10)
    turned = [nx.relabel_nodes(g, dict(zip(g, reversed(list(g)), strict=True))) for g in graphs]
    names = ["x", "charge"]
    data, other = (tl.as_graph_collection(g, node_attributes=names) for g in (graphs, turned))
    forest, colors = PatternForest.fit(data, 2, ("labels",), attributes=True)
    expected = forest.count(colors).to_sparse().toarray()
    found = forest.count(forest.transform(other)).to_sparse().toarray()
    np.testing.assert_array_equal(found, expected)


def test_edge_attributes_are_edge_labels_too():
    """Two rings with the same means at every node, but short edges side by side or apart."""
    graphs = []
    for lengths in ([1.0, 1.0, 5.0, 5.0, 1.0, 1.0, 5.0, 5.0], [1.0, 5.0] * 4):
        graph = nx.cycle_graph(8)
        nx.set_node_attributes(graph, "a", "label")
        for k, length in enumerate(lengths):
            graph.edges[k, (k + 1) % 8]["length"] = length
        graphs.append(graph)
    data = tl.as_graph_collection(graphs * 5, edge_attributes=["length"])
    forest, colors = PatternForest.fit(data, 1, ("labels",), attributes=True)
    tree = forest.trees.index("labels+edge cells")
    level = forest.levels.index((tree, 1))
    found = {tuple(np.unique(colors.colors[level, 8 * k : 8 * k + 8])) for k in range(2)}
    assert len(found) == 2
    forest.validate()
    new = forest.transform(data)
    np.testing.assert_array_equal(new.colors, colors.colors)
    texts = forest.texts(forest.level_offsets[level] + np.unique(colors.colors[level]))
    assert all("length" in text for text in texts)


@pytest.mark.parametrize("n", [9, 10, 41])
@pytest.mark.parametrize("quantile", [0.1, 0.25, 0.5, 0.77])
def test_a_cell_is_split_at_a_quantile_of_the_values_in_it(n, quantile):
    rng = np.random.default_rng(n)
    column = rng.normal(size=n + 5)
    column[:3] = np.nan  # too few to go apart
    cell = rng.permutation(n + 5)[:n]
    _, threshold, missing = _choose_split(column[None], cell, np.ones(1), rng, (quantile, quantile))
    assert not missing
    assert threshold == pytest.approx(np.nanquantile(column[cell], quantile), rel=1e-12)


def test_no_cell_of_the_training_nodes_is_empty_and_equal_values_stay_together():
    """Thresholds lie on values here: a node on one belongs to the first of the two cells."""
    graphs = [nx.path_graph(12) for _ in range(6)]
    for k, graph in enumerate(graphs):
        nx.set_node_attributes(graph, "a", "label")
        nx.set_node_attributes(graph, {v: float((v + k) % 3) for v in graph}, "charge")
    data = tl.as_graph_collection(graphs, node_attributes=["charge"])
    for depth in (0, 1):
        cells = AttributeCells.fit(data, depth)
        found = cells.transform(data)
        for level, own in enumerate(found):
            assert np.unique(own).tolist() == list(range(cells.level_sizes[level]))
        last = found[N_RESOLUTIONS - 1]  # of the first tree, on the values themselves
        for value in range(3):
            assert len(np.unique(last[data.node_attributes[:, 0] == value])) == 1
        assert cells.level_sizes[N_RESOLUTIONS - 1] == 3


@pytest.mark.parametrize(("n_missing", "apart"), [(7, False), (8, True), (12, True), (13, False)])
def test_missing_values_go_apart_where_there_are_enough_of_both_kinds(n_missing, apart):
    column = np.arange(20.0)
    column[:n_missing] = np.nan
    rng = np.random.default_rng(0)
    _, threshold, missing = _choose_split(column[None], np.arange(20), np.ones(1), rng, (0.5, 0.5))
    assert missing == apart
    assert apart or threshold == np.nanmedian(column)


def test_cells_are_split_along_what_varies_most_in_them_among_half_of_the_attributes():
    """Relative to the whole: the first attribute has the largest numbers, the second varies."""
    columns = np.random.default_rng(0).normal(size=(3, 50)) * [[1000.0], [1.0], [1.0]]
    units, cell = np.array([10_000.0, 1.0, 10.0]), np.arange(50)
    draws = [
        _choose_split(columns, cell, units, np.random.default_rng(k), (0.1, 0.9))[0]
        for k in range(300)
    ]
    share = np.bincount(draws, minlength=3) / 300
    np.testing.assert_allclose(share, [1 / 6, 2 / 3, 1 / 6], atol=0.07)  # two of three are tried


@pytest.mark.parametrize(("n", "is_split"), [(7, False), (8, True)])
def test_cells_of_less_than_eight_nodes_are_not_split(n, is_split):
    rng, column = np.random.default_rng(0), np.arange(float(n))
    attribute, *_ = _choose_split(column[None], np.arange(n), np.ones(1), rng, (0.5, 0.5))
    assert (attribute >= 0) == is_split


def test_edges_are_divided_at_the_median():
    graph = nx.path_graph(18)
    for k, edge in enumerate(graph.edges):
        graph.edges[edge]["length"] = float(k**2)
    nx.set_node_attributes(graph, "a", "label")
    data = tl.as_graph_collection([graph], edge_attributes=["length"])
    assert AttributeCells.of_edges(data).threshold[0] == 64.0
