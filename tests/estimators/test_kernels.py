"""Kernels as estimators: properties that hold for all graphs, and Weisfeiler-Lehman kernels."""

import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import grakel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from estimators.test_walks import as_grakel
from naive import kernels as naive
from naive import patterns as naive_patterns
from naive.learning import hinge
from strategies import collections, random_collection, renumbered
from treelens import (
    PairwiseWeights,
    RandomWalk,
    ShortestPath,
    WassersteinWL,
    WLOptimalAssignment,
    WLSubtree,
    as_graph_collection,
    make_synthetic,
)
from treelens.errors import GraphDataError

KERNELS = [WLSubtree, WLOptimalAssignment, WassersteinWL]
NORMALIZE = [None, "cosine", "tanimoto"]
VARIANTS: list[Any] = [
    *(kernel(2, normalize=how) for kernel in KERNELS for how in NORMALIZE),
    *(WassersteinWL(2, kernel=kernel) for kernel in ("laplacian", "wwl-linear")),
    WLSubtree(2, edge_labels=False, normalize="tanimoto"),
    WassersteinWL(0, include_depth_zero=True),
]
WALKS: list[Any] = [
    *(ShortestPath(normalize=how) for how in NORMALIZE),
    ShortestPath(ordered=False, normalize="cosine"),
    *(RandomWalk(3, decay=0.3, normalize=how) for how in NORMALIZE[:2]),
    *(RandomWalk(None, decay=0.02, normalize=how) for how in NORMALIZE[::2]),
]
ATOL = 1e-12
CLOSE = {"rtol": 1e-12, "atol": ATOL}

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_model = pytest.mark.parametrize("model", [*VARIANTS, *WALKS], ids=repr)
either_weights = pytest.mark.parametrize("weighted", [False, True])
few_examples = settings(max_examples=12)
any_graphs = collections(edge_labels=True)


def with_random_weights(model, graphs, weighted=True):
    if not weighted or isinstance(model, (ShortestPath, RandomWalk)):  # these have no weights
        return model
    n_patterns = len(clone(model).fit(graphs).weights_)
    weights = 2 * np.random.default_rng(0).random(n_patterns)
    return clone(model).set_params(weights=weights)


def assert_same(model, found, expected):
    """To the last bit, but for a series that is solved from either side, not summed."""
    if getattr(model, "max_length", 0) is None:
        np.testing.assert_allclose(found, expected, **CLOSE)
    else:
        np.testing.assert_array_equal(found, expected)


@every_model
@few_examples
@given(data=st.data(), seed=st.integers(0, 99))
def test_neither_the_order_of_graphs_nor_the_numbers_of_nodes_matter(model, data, seed):
    graphs, new, rng = data.draw(any_graphs), data.draw(any_graphs), np.random.default_rng(seed)
    order = data.draw(st.permutations(range(len(graphs))))
    gram, rows = model.fit_transform(graphs), model.transform(new)
    reordered = model.fit_transform(graphs[order])
    np.testing.assert_allclose(reordered, gram[np.ix_(order, order)], **CLOSE)
    np.testing.assert_allclose(model.fit_transform(renumbered(graphs, rng)), gram, **CLOSE)
    np.testing.assert_allclose(model.transform(renumbered(new, rng)), rows, **CLOSE)


@every_model
@either_weights
@few_examples
@given(graphs=collections(edge_labels=True, max_graphs=10))
def test_gram_matrices_are_symmetric_positive_semidefinite_and_those_of_transform(
    model, weighted, graphs
):
    model = with_random_weights(model, graphs, weighted)
    gram = model.fit_transform(graphs)
    assert_same(model, model.transform(graphs), gram)
    rtol, scale = (0.0, 1.0) if hasattr(model, "weights_") else (1e-15, max(1.0, gram.max()))
    np.testing.assert_allclose(gram, gram.T, rtol=rtol)
    assert np.linalg.eigvalsh(gram).min() > -1e-10 * scale


@every_model
@few_examples
@given(data=st.data())
def test_blocks_join_and_unseen_patterns_match_nothing_but_themselves(model, data):
    train, new = data.draw(any_graphs), data.draw(collections(edge_labels=True, min_graphs=2))
    cut = data.draw(st.integers(1, len(new) - 1))
    whole = clone(model).fit(train).transform(new)
    blocks = [clone(model).fit(train).transform(part) for part in (new[:cut], new[cut:])]
    assert_same(model, np.concatenate(blocks), whole)
    together = clone(model).fit_transform(as_graph_collection([*train, *new]))
    np.testing.assert_allclose(whole, together[len(train) :, : len(train)], **CLOSE)


@every_model
def test_no_bit_depends_on_threads_or_on_the_run_or_on_a_pickle(model, rng):
    train, new = (random_collection(rng, n, max_nodes=8) for n in (40, 20))
    model = with_random_weights(model, train)
    expected = model.fit_transform(train), model.transform(new)
    assert (pickle.loads(pickle.dumps(model)).transform(new) == expected[1]).all()
    with pytest.raises(NotFittedError):
        clone(model).transform(new)
    for n_jobs in (1, 3, None):
        again = clone(model).set_params(n_jobs=n_jobs)
        assert (again.fit_transform(train) == expected[0]).all()
        assert (again.transform(new) == expected[1]).all()


@pytest.mark.parametrize("source", ["random", "mutag"])
@every_kernel
@pytest.mark.parametrize("include_depth_zero", [False, True])
@pytest.mark.parametrize("edge_labels", [False, True])
def test_kernels_are_optimal_transport_the_best_assignment_and_sums_over_nodes(
    source, kernel, include_depth_zero, edge_labels, request, rng
):
    """By their definitions: all pairs of nodes, POT and SciPy, no histogram, no vocabulary."""
    graphs = random_collection(rng, 20)
    if source == "mutag":
        graphs = request.getfixturevalue("mutag")[0][rng.choice(188, 20, replace=False)]
    nested = naive_patterns.nested_colors(graphs, 2, edge_labels)
    colors = naive_patterns.numbered(nested)[0 if include_depth_zero else 1 :]
    nodes = [colors[:, first:last] for first, last in pairwise(graphs.node_offsets)]
    compare = {
        WLSubtree: naive.subtree,
        WLOptimalAssignment: naive.assignment,
        WassersteinWL: lambda a, b: np.exp(-naive.wasserstein(a, b)),
    }[kernel]
    expected = np.array([[compare(a, b) for b in nodes] for a in nodes])
    model = kernel(2, include_depth_zero=include_depth_zero, edge_labels=edge_labels)
    np.testing.assert_allclose(model.fit_transform(graphs), expected, rtol=1e-12)
    found = model.fit(graphs[:14]).transform(graphs[14:])
    np.testing.assert_allclose(found, expected[14:, :14], rtol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (WLSubtree, grakel.WeisfeilerLehman),
        (WLOptimalAssignment, grakel.WeisfeilerLehmanOptimalAssignment),
    ],
)
@pytest.mark.parametrize("normalize", [None, "cosine"])
def test_grakel_computes_the_same_times_the_number_of_depths(ours, theirs, normalize, mutag):
    train, new = mutag[0][:130], mutag[0][130:]
    model = ours(3, edge_labels=False, normalize=normalize)
    other = theirs(n_iter=3, normalize=normalize is not None)
    scale = 4 if normalize is None else 1
    expected = other.fit_transform(as_grakel(train))
    np.testing.assert_allclose(scale * model.fit_transform(train), expected, rtol=1e-12)
    expected = other.transform(as_grakel(new))
    np.testing.assert_allclose(scale * model.transform(new), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [*KERNELS, RandomWalk], ids=lambda kernel: kernel.__name__)
def test_edge_labels_are_used_where_there_are_any(kernel, rng):
    graphs = random_collection(rng, 20)
    plain = replace(graphs, edge_codes=None, edge_alphabet=None)
    gram = kernel().fit_transform(graphs)
    np.testing.assert_array_equal(gram, kernel(edge_labels=True).fit_transform(graphs))
    without = kernel(edge_labels=False).fit_transform(graphs)
    np.testing.assert_array_equal(kernel().fit_transform(plain), without)
    assert not np.allclose(gram, without)
    with pytest.raises(GraphDataError, match="no edge labels"):
        kernel().fit(graphs).transform(plain)


@every_kernel
def test_unseen_share(kernel):
    model = kernel(1, include_depth_zero=True).fit([([(0, 1)], {0: "C", 1: "C"})])
    # Of C and N one of two labels and both patterns are unseen.
    share = model.out_of_vocabulary([([(0, 1)], {0: a, 1: b}) for a, b in ("CC", "CN", "NN")])
    assert share.tolist() == [0.0, 0.75, 1.0]


@pytest.fixture
def some_graphs(rng):
    return random_collection(rng, 25)


def test_distances_with_weights_by_definition(some_graphs):
    metric = with_random_weights(WassersteinWL(2, kernel="laplacian"), some_graphs).fit(some_graphs)
    colors, starts = metric.vocabulary_.transform(some_graphs).colors, metric.vocabulary_
    nodes = [colors[:, first:last] for first, last in pairwise(some_graphs.node_offsets)]

    def all_pairs(combine):
        def weight(h, color):
            return metric.weights_[starts.level_offsets[h] + color]

        return np.array(
            [[naive.histogram_sum(a, b, combine, weight) for b in nodes] for a in nodes]
        )

    half_l1 = 0.5 * all_pairs(lambda a, b: abs(a - b))
    np.testing.assert_allclose(metric.distance(some_graphs), half_l1, atol=ATOL)
    shared = all_pairs(min)
    paper = clone(metric).set_params(kernel="wwl").fit(some_graphs)
    b = shared.diagonal().max()
    np.testing.assert_allclose(paper.distance(some_graphs), b - shared, atol=ATOL)
    np.testing.assert_allclose(paper.fit_transform(some_graphs), np.exp(shared - b), atol=ATOL)
    linear = clone(metric).set_params(kernel="wwl-linear")
    np.testing.assert_allclose(linear.fit_transform(some_graphs), shared, atol=ATOL)


@pytest.mark.parametrize("kernel", ["laplacian", "wwl"])
def test_weighted_distance_of_new_graphs_gives_unseen_patterns_weight_one(kernel, rng):
    train, new = random_collection(rng, 10), random_collection(rng, 6, labels="CNS")
    ones = WassersteinWL(2, kernel=kernel)
    n_patterns = len(ones.fit(train).weights_)
    weighted = WassersteinWL(2, kernel=kernel, weights=np.ones(n_patterns)).fit(train)
    np.testing.assert_allclose(weighted.distance(new), ones.distance(new), atol=ATOL)
    np.testing.assert_allclose(weighted.distance(new, train), ones.distance(new, train), atol=ATOL)
    heavy = WassersteinWL(2, kernel=kernel, weights=np.full(n_patterns, 3.0)).fit(train)
    assert (heavy.distance(new) >= 0).all()
    np.testing.assert_allclose(heavy.distance(new, train), heavy.distance(train, new).T, atol=ATOL)
    alone = np.vstack([heavy.transform(new[i : i + 1]) for i in range(len(new))])
    np.testing.assert_allclose(heavy.transform(new), alone, atol=ATOL)


@pytest.mark.parametrize("b", [1.0, 1.7])
def test_distances_are_those_of_the_learner_objective_and_there_is_a_metric(b):
    """The objective that learning reports is the mean hinge of these distances."""
    graphs, y = make_synthetic(4, random_state=0)
    learner = PairwiseWeights(radius=2.0, b=b, balance=False)
    model = WassersteinWL(2, weights=learner).fit(graphs, y)
    margins, distances = model.learner_.result_.margins, model.distance(graphs)
    losses = [
        hinge(distances[i, j], bool(y[i] == y[j]), margins)[0]
        for i in range(len(y))
        for j in range(len(y))
    ]
    assert np.mean(losses) == pytest.approx(model.learner_.history_[-1], rel=1e-6)
    assert distances.min() < b - 1.0, "some pair is more similar than any with uniform weights"
    kernel, from_distances = model.transform(graphs), np.exp(-model.gamma * distances)
    np.testing.assert_allclose(kernel, from_distances / from_distances.max(), rtol=1e-9)
    np.testing.assert_allclose(model.distance(graphs[:3], graphs), distances[:3], atol=ATOL)
    metric = model.metric_distance(graphs)  # never below zero
    np.testing.assert_allclose(metric, metric.T)
    np.testing.assert_allclose(np.diagonal(metric), 0.0, atol=ATOL)
    assert (metric >= 0).all()
    assert (metric[:, None] <= metric[:, :, None] + metric[None] + ATOL).all()  # triangles
    laplacian = clone(model).set_params(kernel="laplacian").fit(graphs, y)
    np.testing.assert_allclose(metric, laplacian.distance(graphs))


@pytest.mark.parametrize("kernel", ["wwl", "laplacian"])
def test_distance_written_into_a_memory_map(kernel, some_graphs, tmp_path):
    n = len(some_graphs)
    out = np.memmap(tmp_path / "distance", dtype=np.float64, mode="w+", shape=(n, n))
    model = WassersteinWL(2, kernel=kernel, n_jobs=2)
    assert model.distance(some_graphs, out=out) is out
    assert (np.asarray(out) == model.distance(some_graphs)).all()
    for start in range(0, n, 10):  # block by block, as a matrix too large for memory would be
        stop = min(start + 10, n)
        model.distance(some_graphs[start:stop], some_graphs, out=out[start:stop])
    np.testing.assert_allclose(out, model.distance(some_graphs), atol=ATOL)


@pytest.mark.parametrize(
    "model",
    [
        WLSubtree(2),
        WLSubtree(2, include_depth_zero=False),
        WLOptimalAssignment(2),
        *WALKS[:1],
        ShortestPath(ordered=False),
        RandomWalk(3, decay=0.3),
    ],
    ids=repr,
)
@either_weights
def test_the_kernel_is_that_of_its_features(model, weighted, rng):
    train, new = random_collection(rng, 20), random_collection(rng, 9)
    model = with_random_weights(model, train, weighted).fit(train)
    known, other = model.feature_map(train), model.feature_map(new)
    assert known.shape == (20, len(model.feature_map_names()))
    found = (other @ known.T).toarray()
    if isinstance(model, WLOptimalAssignment):
        found = np.minimum(other.toarray()[:, None], known.toarray()).sum(axis=-1)
    np.testing.assert_allclose(found, model.transform(new), rtol=1e-12)


@every_kernel
def test_output_as_a_table_of_pandas(kernel, some_graphs):
    plain = kernel(1).fit(some_graphs[:7])
    model = kernel(1).set_output(transform="pandas")
    inner = model.fit_transform(some_graphs[:7])
    table = model.transform(some_graphs)
    assert table.columns[3] == f"{kernel.__name__.lower()}3"
    assert list(table.columns) == list(inner.columns) == plain.get_feature_names_out().tolist()
    np.testing.assert_array_equal(table.to_numpy(), plain.transform(some_graphs))
    np.testing.assert_array_equal(inner.to_numpy(), plain.transform(some_graphs[:7]))


@every_kernel
@pytest.mark.parametrize(
    "parameters",
    [
        {"depth": -1},
        {"depth": 1.5},
        {"depth": 0, "include_depth_zero": False},
        {"normalize": "length"},
        {"weights": "learned"},
        {"weights": [1.0, 2.0]},
        {"weights": [-1.0] * 5},
        {"weights": [np.nan] * 5},
        {"weights": [np.inf] * 5},
        {"n_jobs": 1.5},
        {"n_jobs": 0},
        {"attributes": "maybe"},
    ],
    ids=str,
)
def test_parameters_out_of_range(kernel, parameters):
    graphs = [([(0, 1)], {0: "C", 1: "N"}), ([(0, 1)], {0: "C", 1: "C"})]
    with pytest.raises(ValueError, match=next(iter(parameters))):
        kernel(**{"depth": 1, **parameters}).fit(graphs)


@every_kernel
def test_before_fit_and_without_graphs_or_edge_labels(kernel, some_graphs):
    for method in ("transform", "feature_map", "out_of_vocabulary", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(kernel(), method)(some_graphs)
    with pytest.raises(NotFittedError):
        kernel().feature_map_names()
    with pytest.raises(NotFittedError):
        WassersteinWL(1, weights=np.ones(3)).distance(some_graphs)
    bare, fitted = [([(0, 1)], {0: "C", 1: "N"})], kernel(edge_labels=True).fit(some_graphs)
    for take in (kernel(edge_labels=True).fit, fitted.transform):
        with pytest.raises(GraphDataError, match="0 graphs"):
            take(some_graphs[:0])
        with pytest.raises(GraphDataError, match="no edge labels"):
            take(bare)
