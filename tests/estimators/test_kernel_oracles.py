"""The closed forms against programs that solve the problem they claim to solve."""

from itertools import pairwise
from typing import Any

import grakel
import numpy as np
import pytest

from naive import kernels as naive
from naive import patterns as naive_patterns
from strategies import random_collection
from treelens import GraphCollection, WassersteinWL, WLOptimalAssignment, WLSubtree

DEPTH = 3
ATOL = 1e-12


@pytest.fixture(params=["random", "mutag"])
def graphs(request: pytest.FixtureRequest, rng: np.random.Generator) -> GraphCollection:
    """Thirty graphs: random ones with bonds and loops, or a sample of real molecules."""
    if request.param == "random":
        return random_collection(rng, 30)
    molecules, _ = request.getfixturevalue("mutag")
    return molecules[rng.choice(len(molecules), 30, replace=False)]


def embeddings(graphs: GraphCollection, first_depth: int) -> list[np.ndarray]:
    """Each graph's nodes as columns of colours, shape (n_depths, n_nodes)."""
    colors = naive_patterns.numbered(naive_patterns.nested_colors(graphs, DEPTH))[first_depth:]
    return [colors[:, first:last] for first, last in pairwise(graphs.node_offsets)]


@pytest.mark.parametrize("include_depth_zero", [False, True])
@pytest.mark.parametrize(
    ("kernel", "compare", "value_of"),
    [
        (WassersteinWL, naive.wasserstein, lambda kernel: -np.log(kernel)),
        (WLOptimalAssignment, naive.assignment, lambda kernel: kernel),
    ],
)
def test_closed_forms_are_optimal_transport_and_the_best_assignment(
    graphs: GraphCollection, kernel: Any, compare: Any, value_of: Any, include_depth_zero: bool
) -> None:
    nodes = embeddings(graphs, 0 if include_depth_zero else 1)
    expected = np.array([[compare(a, b) for b in nodes] for a in nodes])
    model = kernel(DEPTH, include_depth_zero=include_depth_zero)
    found = value_of(model.fit_transform(graphs))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ATOL)
    found = value_of(model.fit(graphs[:20]).transform(graphs[20:]))
    np.testing.assert_allclose(found, expected[20:, :20], rtol=0, atol=ATOL)


def as_grakel(graphs: GraphCollection) -> list[tuple]:
    return [
        (
            {u: [v for a, b in graph.edges for v in ((b,) if a == u else (a,) if b == u else ())]
             for u in range(graph.n_nodes)},
            dict(enumerate(graph.node_labels)),
        )
        for graph in graphs
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (WLSubtree, grakel.WeisfeilerLehman),
        (WLOptimalAssignment, grakel.WeisfeilerLehmanOptimalAssignment),
    ],
)
@pytest.mark.parametrize("normalize", [None, "cosine"])
def test_grakel_computes_the_same_times_the_number_of_depths(
    ours: Any, theirs: Any, normalize: str | None, mutag: tuple[GraphCollection, np.ndarray]
) -> None:
    graphs, _ = mutag
    train, new = graphs[:130], graphs[130:]
    model = ours(DEPTH, include_depth_zero=True, normalize=normalize)
    other = theirs(n_iter=DEPTH, normalize=normalize is not None)
    scale = DEPTH + 1 if normalize is None else 1
    expected = other.fit_transform(as_grakel(train))
    np.testing.assert_allclose(scale * model.fit_transform(train), expected, rtol=1e-12)
    expected = other.transform(as_grakel(new))
    np.testing.assert_allclose(scale * model.transform(new), expected, rtol=1e-12)
