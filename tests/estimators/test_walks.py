"""ShortestPath and RandomWalk by definition and against GraKeL; see also test_kernels.py."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

from naive import paths as naive
from strategies import random_collection
from treelens import RandomWalk, ShortestPath
from treelens.errors import IgnoredDataWarning
from treelens.estimators import walks
from treelens.patterns.paths import WalkVocabulary


def close(a, b):
    return np.allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("ordered", [True, False])
def test_shortest_path_is_the_dot_product_of_triple_counts(rng, ordered, directed):
    graphs = random_collection(rng, 20, directed=directed)
    kernel = ShortestPath(ordered=ordered).fit(graphs[:12])
    expected = naive.shortest_path_kernel(graphs, graphs[:12], ordered)
    assert close(kernel.transform(graphs), expected)
    assert close(kernel.fit_transform(graphs[:12]), expected[:12])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edge_labels", [False, True])
@pytest.mark.parametrize("max_length", [0, 1, 4, None])
def test_random_walk_is_the_series_on_product_graphs(rng, max_length, edge_labels, directed):
    graphs = random_collection(rng, 14, max_nodes=8, directed=directed)
    kernel = RandomWalk(max_length, decay=0.03, edge_labels=edge_labels).fit(graphs[:9])
    expected = naive.random_walk_kernel(graphs, graphs[:9], 0.03, max_length, edge_labels)
    assert close(kernel.transform(graphs), expected)
    assert close(kernel.fit_transform(graphs[:9]), expected[:9])


def test_what_walks_and_paths_do_not_use_is_named(rng):
    labelled = random_collection(rng, 6)
    plain = replace(labelled, edge_codes=None, edge_alphabet=None)
    numbers = rng.random((labelled.n_nodes, 1))
    measured = replace(plain, node_attributes=numbers, attribute_names=("charge",))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (ShortestPath(), RandomWalk()):
            kernel.fit(plain)
        RandomWalk().fit(labelled)
    with pytest.warns(IgnoredDataWarning, match="ShortestPath does not use edge labels;"):
        ShortestPath().fit(labelled)
    for kernel in (ShortestPath(), RandomWalk()):
        with pytest.warns(IgnoredDataWarning, match=r"not use node attributes \(charge\);") as told:
            kernel.fit(measured)
        assert told[0].filename == __file__


def as_grakel(graphs):
    import grakel

    found = []
    for graph in graphs:
        edges = set(graph.edges)
        edges = edges if graph.directed else edges | {(v, u) for u, v in edges}
        found.append(grakel.Graph(edges, node_labels=dict(enumerate(graph.node_labels))))
    return found


def test_shortest_path_of_directed_graphs_equals_grakel(rng):
    grakel = pytest.importorskip("grakel")
    graphs = random_collection(rng, 12, density=0.3, directed=True)
    graphs = graphs[[i for i, g in enumerate(graphs) if len(set(sum(g.edges, ()))) == g.n_nodes]]
    theirs = grakel.ShortestPath(with_labels=True).fit_transform(as_grakel(graphs))
    assert len(graphs) > 3
    assert close(ShortestPath().fit_transform(graphs), theirs)


@pytest.mark.parametrize("normalize", [None, "cosine"])
def test_shortest_path_equals_grakel_on_mutag(mutag, normalize):
    grakel = pytest.importorskip("grakel")
    graphs, _ = mutag
    train, new = graphs[::2], graphs[1::2]
    theirs = grakel.ShortestPath(with_labels=True, normalize=normalize is not None)
    ours = ShortestPath(normalize=normalize)
    assert close(ours.fit_transform(train), theirs.fit_transform(as_grakel(train)))
    assert close(ours.transform(new), theirs.transform(as_grakel(new)))


def test_the_full_series_has_no_feature_map(rng):
    kernel = RandomWalk(None, decay=0.01).fit(random_collection(rng, 4))
    assert not hasattr(kernel, "feature_map")
    assert not hasattr(kernel, "feature_map_names")
    with pytest.raises(AttributeError, match="feature_map"):
        kernel.feature_map(random_collection(rng, 4))


@pytest.mark.parametrize("edge_labels", [False, True])
@pytest.mark.parametrize("normalize", [None, "cosine", "tanimoto"])
def test_the_kernel_does_not_depend_on_sequences(rng, monkeypatch, edge_labels, normalize):
    known, new = random_collection(rng, 9, labels="CN"), random_collection(rng, 7, labels="NOS")
    kernel = RandomWalk(5, decay=0.2, edge_labels=edge_labels, normalize=normalize)
    expected = kernel.fit_transform(known), kernel.transform(new)
    monkeypatch.setattr(walks, "_MOST_STEPS", 0)
    assert np.allclose(kernel.transform(new), expected[1], rtol=1e-10, atol=0)
    for n_jobs in (1, 3):
        kernel.set_params(n_jobs=n_jobs)
        assert np.allclose(kernel.fit_transform(known), expected[0], rtol=1e-10, atol=0)
        assert np.allclose(kernel.transform(known), expected[0], rtol=1e-10, atol=0)
        assert np.allclose(kernel.transform(new), expected[1], rtol=1e-10, atol=0)


def test_sequences_are_named_when_asked_for(rng, monkeypatch):
    graphs = random_collection(rng, 14)
    named = RandomWalk(3).fit(graphs[:9])
    monkeypatch.setattr(walks, "_MOST_STEPS", 0)
    fit_of = WalkVocabulary.fit
    monkeypatch.setattr(WalkVocabulary, "fit", None)  # the kernel must not need it
    kernel = RandomWalk(3).fit(graphs[:9])
    kernel.transform(graphs)
    monkeypatch.setattr(WalkVocabulary, "fit", fit_of)
    assert kernel.get_feature_names_out().tolist() == named.get_feature_names_out().tolist()
    found, expected = kernel.feature_map(graphs), named.feature_map(graphs)
    assert np.array_equal(found.toarray(), expected.toarray())
    assert close((found @ kernel.feature_map(graphs[:9]).T).toarray(), kernel.transform(graphs))
    loaded = pickle.loads(pickle.dumps(kernel))
    assert np.array_equal(loaded.transform(graphs), kernel.transform(graphs))


def test_a_decay_that_does_not_converge_says_which_would():
    square = [(0, 1), (1, 2), (2, 3), (3, 0)], dict.fromkeys(range(4), "C")
    with pytest.raises(ValueError, match=r"decay=0\.5 \(the lambda.*decay < 0\.25, or a finite"):
        RandomWalk(max_length=None, decay=0.5).fit([square])
    assert np.isfinite(RandomWalk(max_length=None, decay=0.24).fit_transform([square])).all()
    assert np.isfinite(RandomWalk(max_length=9, decay=0.5).fit_transform([square])).all()
    kernel = RandomWalk(max_length=None, decay=0.5).fit([([(0, 1)], {0: "C", 1: "C"})])
    with pytest.raises(ValueError, match="does not converge"):
        kernel.transform([square])
