"""Every sentence about the eight substructures, checked with exact fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from naive.patterns import nested_colors
from treelens import as_graph_collection
from treelens.errors import GraphDataError
from treelens.graphs.collection import Graph
from treelens.graphs.datasets import SUBSTRUCTURES, TRAINING_SUBSTRUCTURES, make_synthetic

POSITIVE = (1, 2, 5, 6)
NEGATIVE = (3, 4, 7, 8)
PATTERN = (0, ((None, 0), (None, 1), (None, 2)))  # a colour of depth 1: own label, labels around
# test substructure: the training substructures of (its own class, the other) it lies between
HALF_WAY = {5: (2, 4), 6: (1, 3), 7: (3, 1), 8: (4, 2)}


def neighbors_of(graph: Graph) -> list[list[int]]:
    around: list[list[int]] = [[] for _ in graph.node_labels]
    for u, v in graph.edges:
        around[u].append(v)
        around[v].append(u)
    return around


def colors_by_depth(graph: Graph, depth: int) -> list[list]:
    return nested_colors(as_graph_collection([graph]), depth)


def similarity(a: Graph, b: Graph, depths: tuple[int, ...]) -> Fraction:
    """``(1/H) sum of min(mu_a, mu_b)``, one minus the WWL distance."""
    total = Fraction(0)
    colors_a, colors_b = colors_by_depth(a, max(depths)), colors_by_depth(b, max(depths))
    for depth in depths:
        in_a, in_b = Counter(colors_a[depth]), Counter(colors_b[depth])
        for color in in_a.keys() & in_b.keys():
            total += min(Fraction(in_a[color], a.n_nodes), Fraction(in_b[color], b.n_nodes))
    return total / len(depths)


def pattern_nodes(graph: Graph) -> list[int]:
    return [v for v, color in enumerate(colors_by_depth(graph, 1)[1]) if color == PATTERN]


def test_only_the_pattern_and_its_leaves_are_in_all_positive_and_no_negative_ones():
    def colors(number: int) -> set:
        return {color for depth in colors_by_depth(SUBSTRUCTURES[number], 2)[1:] for color in depth}

    shared = set.intersection(*map(colors, POSITIVE)) - set.union(*map(colors, NEGATIVE))
    leaves = {(label, ((None, 0),)) for label in (1, 2)}
    assert shared == {PATTERN} | leaves | {(leaf, ((None, PATTERN),)) for leaf in leaves}


@pytest.mark.parametrize(("test", "pair"), HALF_WAY.items())
@pytest.mark.parametrize("depths", [(1, 2), (0, 1, 2)])
def test_each_test_substructure_lies_half_way_between_the_classes(test, pair, depths):
    to_train = {
        k: similarity(SUBSTRUCTURES[test], SUBSTRUCTURES[k], depths) for k in TRAINING_SUBSTRUCTURES
    }
    own, other = pair
    assert SUBSTRUCTURES[own].data["class"] == SUBSTRUCTURES[test].data["class"]
    assert SUBSTRUCTURES[other].data["class"] != SUBSTRUCTURES[test].data["class"]
    assert to_train[own] == to_train[other] == max(to_train.values())
    assert to_train[own] == Fraction(1, 2) or depths[0] == 0


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_planted_centre_carries_the_pattern(seed):
    graphs, y = make_synthetic(random_state=seed)
    numbers = graphs.graph_data["substructure"].astype(int)
    assert np.bincount(numbers)[1:].tolist() == [20] * 8
    np.testing.assert_array_equal(y, np.where(np.isin(numbers, POSITIVE), 1, -1))
    for graph, label in zip(graphs, y, strict=True):
        planted = graph.data["planted"]
        assert pattern_nodes(graph) == list(planted[:1])
        assert len(planted) == (4 if label == 1 else 0)
        if label == 1:
            assert sorted(neighbors_of(graph)[planted[0]]) == sorted(planted[1:])
            assert [graph.node_labels[v] for v in planted] == [0, 0, 1, 2]


def test_noise_is_of_the_size_asked_for():
    graphs, _ = make_synthetic(noise_nodes=(2, 5), noise_edges=(1, 3), random_state=0)
    base = [SUBSTRUCTURES[k] for k in graphs.graph_data["substructure"]]
    added_nodes = graphs.sizes - [g.n_nodes for g in base]
    added_edges = np.subtract([len(g.edges) for g in graphs], [len(g.edges) for g in base])
    assert set(added_nodes) == {2, 3, 4, 5}
    assert set(added_edges - added_nodes) == {1, 2, 3}
    assert graphs.n_self_loops == 0
    assert graphs.node_alphabet == (0, 1, 2, 3)


def test_unprotected_noise_falls_on_the_pattern_too():
    """It breaks the pattern in positive graphs and plants it in negative ones."""
    graphs, y = make_synthetic(60, noise_nodes=(6, 6), random_state=0, protect_pattern=False)
    carries = np.array([bool(pattern_nodes(graph)) for graph in graphs])
    assert 0.3 < carries[y > 0].mean() < 0.7
    assert 0.0 < carries[y < 0].mean() < 0.2
    protected, y = make_synthetic(60, noise_nodes=(6, 6), random_state=0)
    assert [bool(pattern_nodes(graph)) for graph in protected] == (y > 0).tolist()


def test_the_seed_and_a_choice_of_substructures():
    (a, _), (b, _), (c, _) = (make_synthetic(5, random_state=seed) for seed in (1, 1, 2))
    assert list(a) == list(b)
    assert list(a) != list(c)
    generator, _ = make_synthetic(5, random_state=np.random.default_rng(1))
    assert list(generator) == list(a)
    graphs, y = make_synthetic(3, substructures=(7, 5), random_state=0)
    assert graphs.graph_data["substructure"].tolist() == [7, 7, 7, 5, 5, 5]
    assert y.tolist() == [-1, -1, -1, 1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"substructures": (1, 9)}, "substructures of 1 to 8"),
        ({"n_per_substructure": -1}, "n_per_substructure must be 1 or more"),
        ({"noise_nodes": (4, 2)}, "noise_nodes must be"),
        ({"noise_edges": (-1, 2)}, "noise_edges must be"),
        ({"noise_nodes": (0, 0), "noise_edges": (99, 99)}, "No place is left"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(GraphDataError, match=message):
        make_synthetic(**arguments)
