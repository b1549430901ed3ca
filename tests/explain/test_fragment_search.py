"""The search finds what was planted, counts a group once, and equals its naive twin."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import treelens as tl
from naive import fragments as naive
from strategies import make_random_graphs
from treelens.explain import fragment_search
from treelens.explain.fragment_search import (
    Candidates,
    ExplainedGraphs,
    find_candidates,
    mean_over_graphs,
    occurrence_at,
    other_carriers,
    search_fragments,
    subtract_effect,
)
from treelens.patterns.forest import PatternForest


def seen_of(smiles, phi_of_label, trees=("labels", "fine"), depth=2):
    """Graphs whose nodes have contributions by a rule."""
    graphs = tl.as_graph_collection(smiles) if isinstance(smiles, list) else smiles
    forest, colors = PatternForest.fit(graphs, depth, trees)
    phi = np.array([phi_of_label(graph, node) for graph in graphs for node in range(graph.n_nodes)])
    return ExplainedGraphs(forest, graphs, colors, phi)


def _neighbors(graph):
    return [list(around) for _, around in sorted(graph.to_networkx().adjacency())]


def is_nitro_atom(graph, node):
    """Nitrogens with three neighbours two of which are oxygens, and these."""
    around, labels = _neighbors(graph), graph.node_labels

    def nitro(n):
        return labels[n] == "N" and sum(labels[x] == "O" for x in around[n]) == 2

    return float(nitro(node) or (labels[node] == "O" and any(nitro(n) for n in around[node])))


SMILES = [
    *(f"{'C' * k}c1ccccc1[N+](=O)[O-]" for k in range(1, 8)),
    *(f"{'C' * k}c1ccc(N)cc1" for k in range(1, 8)),
    *(f"{'C' * k}OC=O" for k in range(1, 8)),
]


def test_a_group_is_one_row():
    seen = seen_of(SMILES, is_nitro_atom)
    (found,) = search_fragments(seen, 10, 3)
    assert set(seen.forest.texts(found.patterns)[0]) >= {"N", "O"}
    assert found.effect.n_graphs == 7


def test_the_same_data_three_times_has_the_same_order(monkeypatch):
    monkeypatch.setattr(fragment_search, "_LEAST_CAP", 1)
    monkeypatch.setattr(fragment_search, "_CAP_SHARE", 0.2)  # the nitro group is above it

    def rule(graph, node):
        label = graph.node_labels[node]
        return 0.5 * is_nitro_atom(graph, node) + {"N": 0.3, "O": -0.2}.get(label, 0.01)

    once, thrice = (seen_of(SMILES * times, rule) for times in (1, 3))
    found = [search_fragments(once, 10, 3), search_fragments(thrice, 10, 9)]
    texts = [
        [seen.forest.texts(f.patterns) for f in fragments]
        for seen, fragments in zip((once, thrice), found, strict=True)
    ]
    assert len(texts[0]) >= 3
    assert texts[0] == texts[1]
    ratios = [b.score / a.score for a, b in zip(*found, strict=True)]
    np.testing.assert_allclose(ratios, np.sqrt(3), rtol=1e-6)


def test_numbers_are_the_naive_ones_ordered_and_significant():
    rng = np.random.default_rng(0)
    seen = seen_of(SMILES, lambda g, n: is_nitro_atom(g, n) + 0.3 * rng.normal())
    graphs, offsets = [_neighbors(graph) for graph in seen.graphs], seen.graphs.node_offsets
    phi = [seen.phi[a:b].tolist() for a, b in pairwise(offsets)]
    fragments = search_fragments(seen, 10, 3)
    scores = [abs(found.score) for found in fragments]
    assert scores == sorted(scores, reverse=True)
    for found in fragments:
        carriers = [[int(r - a) for r in found.roots if a <= r < b] for a, b in pairwise(offsets)]
        mean, error = naive.effect(graphs, phi, carriers, found.depth)
        assert found.effect.mean == pytest.approx(mean)
        assert found.effect.error == pytest.approx(error)
        union = sum(
            phi[g][n]
            for g, roots in enumerate(carriers)
            for n in set().union(*(naive.ball(graphs[g], r, found.depth) for r in roots), set())
        )
        assert found.total == pytest.approx(union / found.effect.n_graphs)
        assert abs(found.beyond.mean) > 2 * found.beyond.error
        assert np.sign(found.beyond.mean) == np.sign(found.effect.mean) == np.sign(found.score)
        assert found.depth >= 1


def test_means_of_labels_are_subtracted():
    """``C(C,C,N)`` does not distinguish nitrogens: it subtracts the mean of all."""
    seen = seen_of(SMILES, is_nitro_atom)
    texts = seen.forest.texts(np.arange(seen.forest.n_patterns))
    pattern = texts.index("C(C,C,N)")
    fragment = search_fragments(seen, 1, 3)[0]._replace(
        patterns=(pattern,), depth=1, roots=seen.carriers(pattern)
    )
    phi = seen.phi.copy()
    subtract_effect(seen, phi, fragment)
    nitrogens = np.concatenate([np.array(g.node_labels) == "N" for g in seen.graphs])
    # Seven nitro groups with 1 and seven amines with 0.
    assert sorted(set(phi[nitrogens].tolist())) == [-0.5, 0.5]


def test_coarser_labels_are_taken_where_they_score_nearly_as_high(monkeypatch):
    """Chlorine on a CH2 adds something; on another carbon, nothing: how many of those are there?"""

    def phi(graph, node):
        at = next((sum(edge, -node) for edge in graph.edges if node in edge), 0)
        degree = sum(at in edge for edge in graph.edges)
        return float(graph.node_labels[node] == "Cl" and degree == 2)

    def first(n_others):
        smiles = [f"{'C' * k}CCl" for k in range(1, 15)] + [f"{'C' * k}N" for k in range(2, 10)]
        others = [f"{'C' * k}C(C)Cl" for k in range(1, n_others + 1)]
        seen = seen_of(smiles + others, phi, depth=1)
        return seen.forest.texts(search_fragments(seen, 3, 3)[0].patterns)

    assert first(1) == ["Cl(C)"]
    assert first(7) == ["Cl(CH2)"]
    monkeypatch.setattr(fragment_search, "_NEARLY", 1.01)
    assert first(1) == ["Cl(CH2)"]


def test_patterns_that_are_not_taken_do_not_hide_others():
    """A pattern of one graph has no error: it is not significant, and must not set the scale."""
    smiles = [f"{'C' * k}O" for k in range(2, 10)] + [f"{'C' * k}N" for k in range(2, 10)] + ["PPP"]

    def phi(graph, node):
        return {"O": 1.0, "P": 50.0}.get(graph.node_labels[node], 0.0)

    seen = seen_of(smiles, phi, depth=1)
    for least in (1, 2):
        texts = [seen.forest.texts(f.patterns)[0] for f in search_fragments(seen, 5, least)]
        assert any(text.startswith(("O(", "OH(")) for text in texts), texts


def test_all_scores_at_once_are_those_of_one_by_one():
    rng = np.random.default_rng(1)
    seen = seen_of(SMILES, lambda g, n: is_nitro_atom(g, n) + 0.3 * rng.normal())
    patterns = find_candidates(seen, 3, 1)
    scores = Candidates(seen, patterns).scores(seen, seen.phi)
    assert (scores != 0).any()
    assert (scores == 0).any()
    for pattern, score in zip(patterns.tolist(), scores.tolist(), strict=True):
        roots, others = seen.carriers(pattern), other_carriers(seen, pattern)
        own = mean_over_graphs(seen.balls(roots, 1) @ seen.phi, seen.graph_of_node[roots])
        rest = mean_over_graphs(seen.balls(others, 1) @ seen.phi, seen.graph_of_node[others])
        usual = 0.0 if np.isnan(rest.mean) else rest.mean
        beyond, error = own.mean - usual, np.hypot(own.error, np.nan_to_num(rest.error))
        nodes = np.unique(seen.balls(roots, 1).indices)
        size = seen.balls(roots, 1).nnz / len(roots)
        alike = abs(own.mean) / np.hypot(own.mean, own.error * np.sqrt(own.n_graphs))
        expected = (
            min(abs(own.mean), abs(beyond))
            / size
            * alike
            * np.sqrt(len(nodes) / own.n_graphs * min(own.n_graphs, 60))
        )
        sure = abs(beyond) > 2 * error and beyond * own.mean > 0
        assert score == pytest.approx(np.sign(own.mean) * expected if sure else 0.0)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_occurrence_is_the_ball_around_its_root(depth):
    graphs = make_random_graphs(20, n_nodes=(5, 12), n_labels=3, random_state=4)
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
