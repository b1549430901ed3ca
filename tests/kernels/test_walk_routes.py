"""Which way to the random-walk kernel is taken, by counts alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernels.test_common_walks import dense_collection, walked
from treelens import as_graph_collection
from treelens.graphs.collection import GraphCollection
from treelens.kernels import walk_routes
from treelens.kernels.walk_routes import PRODUCTS, SEQUENCES, TENSORS, cheapest_route


def chosen(graphs: GraphCollection, max_length: int) -> str:
    return cheapest_route(graphs, walked(graphs), max_length)


def test_dense_graphs_with_few_labels_go_by_tensors_and_with_many_by_products(rng):
    assert chosen(dense_collection(rng, 60, 30, 4), 6) == TENSORS
    assert chosen(dense_collection(rng, 20, 30, 12), 8) == PRODUCTS


def test_sparse_graphs_go_by_sequences(rng):
    chain = [(i, i + 1) for i in range(19)]
    labels = rng.choice(list("CNO"), (50, 20)).tolist()
    chains = as_graph_collection([(chain, dict(enumerate(each))) for each in labels])
    assert chosen(chains, 4) == SEQUENCES
    lonely = as_graph_collection([([], {0: "C"}), ([], {0: "N", 1: "C"})])
    assert chosen(lonely, 4) == SEQUENCES


def test_tensors_that_do_not_fit_are_not_chosen(rng, monkeypatch):
    graphs = dense_collection(rng, 60, 30, 4)
    monkeypatch.setattr(walk_routes, "_MOST_NODE_WALKS", graphs.n_nodes * 4**3 - 1)
    assert walk_routes.tensor_cost(walked(graphs), 6) == np.inf
    assert walk_routes.tensor_cost(walked(graphs), 4) < np.inf
    assert chosen(graphs, 6) != TENSORS


def test_counting_sequences_for_the_choice_ends_at_the_limit(rng):
    graphs = dense_collection(rng, 4, 40, 8)
    assert walk_routes.sequence_cost(graphs, 14, False, 1e5) == np.inf  # 8 ** 15 sequences


def test_costs_grow_with_length_and_graphs(rng):
    few, many = dense_collection(rng, 6, 12, 2), dense_collection(rng, 40, 12, 2)
    for cost in (walk_routes.product_cost, walk_routes.tensor_cost):
        assert 0 < cost(walked(few), 3) < cost(walked(few), 7) < cost(walked(many), 7)
    limits = [walk_routes.sequence_cost(few, length, False, np.inf) for length in (1, 3, 5)]
    assert all(a < b for a, b in pairwise(limits))
