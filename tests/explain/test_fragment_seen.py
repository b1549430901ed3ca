"""Explained graphs as the search for fragments sees them, against naive twins."""

import numpy as np

from explain.test_fragment_search import SMILES, is_nitro_atom, seen_of
from naive import fragments as naive
from treelens.explain.fragment_seen import mean_over_graphs, other_carriers


def test_others_carry_the_parent_elsewhere():
    seen = seen_of(SMILES, is_nitro_atom)
    for pattern in range(seen.forest.n_patterns):
        parent, own = int(seen.forest.parents[pattern]), seen.carriers(pattern)
        if parent < 0 or len(seen.carriers(parent)) == len(own):
            continue
        held = set(seen.balls(own, seen.depth_of(pattern)).indices.tolist())
        expected = set(seen.carriers(parent).tolist()) - held
        assert set(other_carriers(seen, pattern).tolist()) == expected


def test_balls_are_naive_balls():
    seen = seen_of(SMILES[:2], is_nitro_atom)
    first = seen.graphs[0]
    neighbors = [[] for _ in range(first.n_nodes)]
    for u, v in first.edges:
        neighbors[u].append(v)
        neighbors[v].append(u)
    for depth in range(4):
        held = seen.balls(np.arange(seen.graphs.n_nodes), depth).toarray()
        for root in range(first.n_nodes):
            expected = naive.ball(neighbors, root, depth)
            assert set(np.flatnonzero(held[root]).tolist()) == expected


def test_one_graph_has_no_error():
    assert np.isnan(mean_over_graphs(np.ones(3), np.zeros(3, dtype=int)).error)
