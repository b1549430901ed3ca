"""Kernels as estimators: properties that hold for all graphs, and Weisfeiler-Lehman kernels."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import treelens as tl
from naive import kernels as naive
from naive import patterns as naive_patterns
from naive.learning import hinge
from strategies import collections, random_collection, renumbered
from treelens import (
    GraphCollection,
    PairwiseWeights,
    RandomWalk,
    ShortestPath,
    WassersteinWL,
    WLOptimalAssignment,
    WLSubtree,
    as_graph_collection,
    make_synthetic,
)
from treelens.graphs.errors import GraphDataError

KERNELS = [WLSubtree, WLOptimalAssignment, WassersteinWL]
NORMALIZE = [None, "cosine", "tanimoto"]
WWL_KERNELS = ["wwl", "laplacian", "wwl-linear"]
VARIANTS: list[Any] = [
    *(kernel(2, normalize=how) for kernel in KERNELS for how in NORMALIZE),
    *(WassersteinWL(2, kernel=kernel) for kernel in WWL_KERNELS[1:]),
    WLSubtree(2, include_depth_zero=True, edge_labels=True, normalize="tanimoto"),
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
every_variant = pytest.mark.parametrize("model", VARIANTS, ids=repr)
every_model = pytest.mark.parametrize("model", [*VARIANTS, *WALKS], ids=repr)
few_examples = settings(deadline=None, max_examples=12)


def labelled(**options: Any) -> st.SearchStrategy[GraphCollection]:
    return collections(edge_labels=True, **options)


def with_random_weights(model: Any, graphs: GraphCollection, seed: int = 0) -> Any:
    if isinstance(model, (ShortestPath, RandomWalk)):  # these have no weights
        return model
    n_patterns = len(clone(model).fit(graphs).weights_)
    weights = 2 * np.random.default_rng(seed).random(n_patterns)
    return clone(model).set_params(weights=weights)


# --- properties -----------------------------------------------------------------------------


@every_model
@few_examples
@given(data=st.data())
def test_reordering_the_graphs_reorders_the_matrix(model: Any, data: st.DataObject) -> None:
    graphs = data.draw(labelled())
    order = data.draw(st.permutations(range(len(graphs))))
    expected = model.fit_transform(graphs)[np.ix_(order, order)]
    np.testing.assert_allclose(model.fit_transform(graphs[order]), expected, **CLOSE)


@every_model
@few_examples
@given(graphs=labelled(), new=labelled(), seed=st.integers(0, 99))
def test_renumbering_the_nodes_changes_nothing(
    model: Any, graphs: GraphCollection, new: GraphCollection, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    expected = model.fit_transform(graphs), model.transform(new)
    found = model.fit_transform(renumbered(graphs, rng)), model.transform(renumbered(new, rng))
    np.testing.assert_allclose(found[0], expected[0], **CLOSE)
    np.testing.assert_allclose(found[1], expected[1], **CLOSE)


@every_variant
@pytest.mark.parametrize("weighted", [False, True])
@few_examples
@given(graphs=labelled())
def test_transform_of_the_training_graphs_is_fit_transform(
    model: Any, weighted: bool, graphs: GraphCollection
) -> None:
    model = with_random_weights(model, graphs) if weighted else model
    assert (model.fit_transform(graphs) == model.transform(graphs)).all()


@every_model
@few_examples
@given(data=st.data())
def test_blocks_join_to_the_same_matrix(model: Any, data: st.DataObject) -> None:
    train, new = data.draw(labelled()), data.draw(labelled(min_graphs=2))
    cut = data.draw(st.integers(1, len(new) - 1))
    whole = clone(model).fit(train).transform(new)
    blocks = [clone(model).fit(train).transform(part) for part in (new[:cut], new[cut:])]
    if getattr(model, "max_length", 0) is None:  # a series that is solved, not summed
        np.testing.assert_allclose(np.concatenate(blocks), whole, **CLOSE)
    else:
        assert (np.concatenate(blocks) == whole).all()


@every_model
@pytest.mark.parametrize("weighted", [False, True])
@few_examples
@given(graphs=labelled(max_graphs=10))
def test_gram_matrices_are_symmetric_and_positive_semidefinite(
    model: Any, weighted: bool, graphs: GraphCollection
) -> None:
    model = with_random_weights(model, graphs) if weighted else model
    gram = model.fit_transform(graphs)
    rtol, scale = (0.0, 1.0) if hasattr(model, "weights_") else (1e-15, max(1.0, gram.max()))
    np.testing.assert_allclose(gram, gram.T, rtol=rtol)
    assert np.linalg.eigvalsh(gram).min() > -1e-10 * scale


@every_model
def test_no_bit_depends_on_threads_or_on_the_run(model: Any, rng: np.random.Generator) -> None:
    train, new = (random_collection(rng, n, max_nodes=8) for n in (40, 20))
    model = with_random_weights(model, train)
    expected = model.fit_transform(train), model.transform(new)
    for n_jobs in (1, 3, None):
        again = clone(model).set_params(n_jobs=n_jobs)
        assert (again.fit_transform(train) == expected[0]).all()
        assert (again.transform(new) == expected[1]).all()


@every_kernel
@pytest.mark.parametrize("include_depth_zero", [False, True])
@pytest.mark.parametrize("edge_labels", [False, True])
def test_kernels_by_definition(
    kernel: Any, include_depth_zero: bool, edge_labels: bool, rng: np.random.Generator
) -> None:
    """Node embeddings, all pairs of nodes: no histogram, no vocabulary."""
    graphs = random_collection(rng, 12)
    nested = naive_patterns.nested_colors(graphs, 2, edge_labels)
    colors = naive_patterns.numbered(nested)[0 if include_depth_zero else 1 :]
    nodes = [colors[:, a:b] for a, b in zip(graphs.node_offsets, graphs.node_offsets[1:])]  # noqa: B905
    compare = {
        WLSubtree: naive.subtree,
        WLOptimalAssignment: naive.assignment,
        WassersteinWL: lambda a, b: np.exp(-naive.wasserstein(a, b)),
    }[kernel]
    expected = [[compare(a, b) for b in nodes] for a in nodes]
    model = kernel(2, include_depth_zero=include_depth_zero, edge_labels=edge_labels)
    np.testing.assert_allclose(model.fit_transform(graphs), expected, rtol=1e-12)


# --- unseen patterns ------------------------------------------------------------------------


@every_model
@few_examples
@given(train=labelled(), new=labelled())
def test_training_alone_or_together_gives_the_same_values(
    model: Any, train: GraphCollection, new: GraphCollection
) -> None:
    """Unseen patterns match nothing in the training set, yet count for the graph itself."""
    together = as_graph_collection([*train, *new])
    whole = clone(model).fit_transform(together)
    found = clone(model).fit(train).transform(new)
    np.testing.assert_allclose(found, whole[len(train) :, : len(train)], **CLOSE)


@every_kernel
def test_unseen_share(kernel: Any) -> None:
    model = kernel(1, include_depth_zero=True).fit([([(0, 1)], {0: "C", 1: "C"})])
    share = model.out_of_vocabulary(
        [
            ([(0, 1)], {0: "C", 1: "C"}),
            ([(0, 1)], {0: "C", 1: "N"}),  # one of two labels, both patterns
            ([(0, 1)], {0: "N", 1: "N"}),
        ]
    )
    assert share.tolist() == [0.0, 0.75, 1.0]


# --- distances --------------------------------------------------------------------------------


@pytest.fixture
def some_graphs(rng: np.random.Generator) -> GraphCollection:
    return random_collection(rng, 25)


def test_distance_between_two_collections(rng: np.random.Generator) -> None:
    left, right = random_collection(rng, 8), random_collection(rng, 5, labels="CNS")
    model, metric = WassersteinWL(2), WassersteinWL(2, kernel="laplacian")
    found = model.distance(left, right)
    assert found.shape == (8, 5)
    assert 0.0 <= found.min() <= found.max() <= 1.0
    np.testing.assert_allclose(np.diag(model.distance(left)), 0.0, atol=1e-14)
    np.testing.assert_allclose(metric.distance(left, right), found, atol=ATOL)  # without weights
    np.testing.assert_allclose(found, model.distance(right, left).T, atol=ATOL)
    np.testing.assert_allclose(-np.log(model.fit(right).transform(left)), found, atol=ATOL)


def embeddings(graphs: GraphCollection, model: WassersteinWL) -> tuple[list[np.ndarray], Any]:
    """Node embeddings in the model's own colours, and the weight of (depth, colour)."""
    colors = model.vocabulary_.transform(graphs).colors
    starts = model.vocabulary_.level_offsets
    nodes = [
        colors[:, graphs.node_offsets[i] : graphs.node_offsets[i + 1]] for i in range(len(graphs))
    ]
    return nodes, lambda h, color: model.weights_[starts[h] + color]


def test_distances_with_weights_by_definition(some_graphs: GraphCollection) -> None:
    metric = with_random_weights(WassersteinWL(2, kernel="laplacian"), some_graphs).fit(some_graphs)
    nodes, weight = embeddings(some_graphs, metric)

    def all_pairs(combine: Any) -> np.ndarray:
        return np.array([[naive.histogram_sum(a, b, combine, weight) for b in nodes]
                         for a in nodes])  # fmt: skip

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
def test_weighted_distance_of_new_graphs_gives_unseen_patterns_weight_one(
    kernel: str, rng: np.random.Generator
) -> None:
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
def test_distances_are_those_of_the_learner_objective(b: float) -> None:
    """The objective that learning reports is the mean hinge of these distances."""
    graphs, y = make_synthetic(4, random_state=0)
    learner = PairwiseWeights(radius=2.0, b=b, balance=False)
    model = WassersteinWL(2, weights=learner).fit(graphs, y)
    margins, distances = model.learner_.result_.margins, model.distance(graphs)
    losses = [
        hinge(distances[i, j], bool(y[i] == y[j]), margins)[0]
        for i in range(len(y)) for j in range(len(y))
    ]  # fmt: skip
    assert np.mean(losses) == pytest.approx(model.learner_.history_[-1], rel=1e-6)
    assert distances.min() < b - 1.0, "some pair is more similar than any with uniform weights"
    kernel, from_distances = model.transform(graphs), np.exp(-model.gamma * distances)
    np.testing.assert_allclose(kernel, from_distances / from_distances.max(), rtol=1e-9)
    np.testing.assert_allclose(model.distance(graphs[:3], graphs), distances[:3], atol=ATOL)


@pytest.mark.parametrize("kernel", WWL_KERNELS[:2])
def test_distance_written_into_a_memory_map(
    kernel: str, some_graphs: GraphCollection, tmp_path: Any
) -> None:
    n = len(some_graphs)
    out = np.memmap(tmp_path / "distance", dtype=np.float64, mode="w+", shape=(n, n))
    model = WassersteinWL(2, kernel=kernel, n_jobs=2)
    assert model.distance(some_graphs, out=out) is out
    assert (np.asarray(out) == model.distance(some_graphs)).all()
    for start in range(0, n, 10):  # block by block, as a matrix too large for memory would be
        stop = min(start + 10, n)
        model.distance(some_graphs[start:stop], some_graphs, out=out[start:stop])
    np.testing.assert_allclose(out, model.distance(some_graphs), atol=ATOL)


# --- weights and the feature map ----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("include_depth_zero", [False, True])
def test_the_subtree_kernel_is_the_product_of_its_features(
    weighted: bool, include_depth_zero: bool, rng: np.random.Generator
) -> None:
    train, new = random_collection(rng, 20), random_collection(rng, 9)
    model = WLSubtree(2, include_depth_zero=include_depth_zero)
    model = (with_random_weights(model, train) if weighted else model).fit(train)
    train_map, new_map = model.feature_map(train), model.feature_map(new)
    np.testing.assert_allclose((new_map @ train_map.T).toarray(), model.transform(new), rtol=1e-12)
    assert train_map.shape == (20, len(model.weights_))


def test_the_assignment_kernel_is_the_sum_of_minima_of_its_features(
    some_graphs: GraphCollection,
) -> None:
    model = with_random_weights(WLOptimalAssignment(2), some_graphs)
    gram = model.fit_transform(some_graphs)
    features = model.feature_map(some_graphs).toarray()
    minima = np.minimum(features[:, None], features[None]).sum(axis=-1)
    np.testing.assert_allclose(minima, gram, rtol=1e-12)


@every_kernel
def test_feature_names_fit_the_features(kernel: Any) -> None:
    graphs = [([(0, 1)], {0: "C", 1: "N"})]
    model = kernel(1).fit(graphs)
    assert model.feature_map_names().tolist() == ["0:C", "0:N", "1:C(N)", "1:N(C)"]
    alone = kernel(1, include_depth_zero=False).fit(graphs)
    assert alone.feature_map_names().tolist() == ["1:C(N)", "1:N(C)"]
    assert model.feature_map(graphs).shape == (1, 4)


@every_kernel
def test_output_as_a_table_of_pandas(kernel: Any, some_graphs: GraphCollection) -> None:
    plain = kernel(1).fit(some_graphs[:7])
    model = kernel(1).set_output(transform="pandas")
    inner = model.fit_transform(some_graphs[:7])
    table = model.transform(some_graphs)
    assert table.columns[3] == f"{kernel.__name__.lower()}3"
    assert list(table.columns) == list(inner.columns) == plain.get_feature_names_out().tolist()
    np.testing.assert_array_equal(table.to_numpy(), plain.transform(some_graphs))
    np.testing.assert_array_equal(inner.to_numpy(), plain.transform(some_graphs[:7]))
    assert isinstance(plain.transform(some_graphs), np.ndarray)


# --- what is refused ----------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize(
    "parameters",
    [{"depth": -1}, {"depth": 1.5}, {"depth": 0, "include_depth_zero": False},
     {"normalize": "length"}, {"weights": "learned"}, {"weights": [1.0, 2.0]}, {"n_jobs": 1.5},
     {"n_jobs": 0}, {"attributes": "maybe"}],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(kernel: Any, parameters: dict) -> None:
    graphs = [([(0, 1)], {0: "C", 1: "N"}), ([(0, 1)], {0: "C", 1: "C"})]
    with pytest.raises(ValueError, match=next(iter(parameters))):
        kernel(**parameters).fit(graphs)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_must_be_finite_and_not_negative(bad: float, some_graphs: GraphCollection) -> None:
    weights = np.ones(len(WLSubtree(2).fit(some_graphs).weights_))
    weights[3] = bad
    with pytest.raises(ValueError, match="finite and not negative"):
        WLSubtree(2, weights=weights).fit(some_graphs)


@every_kernel
def test_before_fit(kernel: Any, some_graphs: GraphCollection) -> None:
    for method in ("transform", "feature_map", "out_of_vocabulary", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(kernel(), method)(some_graphs)
    with pytest.raises(NotFittedError):
        kernel().feature_map_names()
    with pytest.raises(NotFittedError):
        WassersteinWL(1, weights=np.ones(3)).distance(some_graphs)


@every_kernel
def test_no_graphs_or_no_edge_labels(kernel: Any, some_graphs: GraphCollection) -> None:
    bare, fitted = [([(0, 1)], {0: "C", 1: "N"})], kernel(edge_labels=True).fit(some_graphs)
    for take in (kernel(edge_labels=True).fit, fitted.transform):
        with pytest.raises(GraphDataError, match="0 graphs"):
            take(some_graphs[:0])
        with pytest.raises(GraphDataError, match="no edge labels"):
            take(bare)


# --- in company ---------------------------------------------------------------------------------


@every_model
def test_clone_and_pickle(model: Any, rng: np.random.Generator) -> None:
    train, new = (random_collection(rng, n, max_nodes=8) for n in (15, 5))
    fitted = with_random_weights(model, train).fit(train)
    expected = fitted.transform(new)
    assert (pickle.loads(pickle.dumps(fitted)).transform(new) == expected).all()
    copy = clone(fitted)
    with pytest.raises(NotFittedError):
        copy.transform(new)
    assert (copy.fit(train).transform(new) == expected).all()


@every_kernel
def test_in_a_pipeline_and_a_grid_search(
    kernel: Any, mutag: tuple[GraphCollection, np.ndarray]
) -> None:
    graphs, y = mutag
    pipeline = make_pipeline(kernel(normalize="cosine"), SVC(kernel="precomputed", C=10))
    search = GridSearchCV(pipeline, {f"{kernel.__name__.lower()}__depth": [1, 2]}, cv=3)
    search.fit(graphs, y)
    assert search.best_score_ > 0.75  # the larger class is 66.5 %
    assert search.predict(graphs[:5]).shape == (5,)


def test_the_metric_of_learned_weights_is_one():
    """The distance of the learner's margins may be below zero; this one is not."""
    graphs, y = tl.make_synthetic(n_per_substructure=3, random_state=0)
    kernel = tl.WassersteinWL(depth=1, weights=tl.PairwiseWeights(radius=3.0)).fit(graphs, y)
    found = kernel.metric_distance(graphs)
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(np.diagonal(found), 0.0, atol=1e-12)
    assert (found >= 0).all()
    assert (found[:, None] <= found[:, :, None] + found[None] + 1e-12).all()  # triangle inequality
    laplacian = tl.WassersteinWL(
        depth=1, kernel="laplacian", weights=tl.PairwiseWeights(radius=3.0)
    ).fit(graphs, y)
    np.testing.assert_allclose(found, laplacian.distance(graphs))
