"""The kernel that GraphSVC learned, as matrices, distances and neighbours; weights of graphs."""

import numpy as np
import pytest
from sklearn.svm import SVC

import treelens as tl

KERNELS = ["wwl", "tanimoto", "tanimoto-rbf", "laplacian", "wl-subtree-cosine", "wl-oa"]


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(n_per_substructure=5, random_state=0)


@pytest.fixture(scope="module")
def new():
    graphs, _ = tl.make_synthetic(substructures=[5, 6], n_per_substructure=3, random_state=1)
    return graphs.renamed(node_labels={3: 9})  # with patterns that training never saw


@pytest.fixture(scope="module", params=[0.0, 3.0])
def radius(request):
    return request.param


def fitted(data, kernel="wwl", radius=0.0, C=10.0, **more):
    gamma = 1.0 if kernel in ("wwl", "tanimoto-rbf", "laplacian") else "auto"
    model = tl.GraphSVC(kernel, 1, radius, gamma, C, cv=2, random_state=0, n_jobs=1)
    return model.fit(*data, **more)


@pytest.mark.parametrize("kernel", KERNELS)
def test_decisions_follow_from_the_matrix(data, kernel, radius):
    graphs, _ = data
    model = fitted(data, kernel, radius)
    svm = model.model_.decision.svm
    rows = model.kernel_matrix(graphs, graphs[model.support_vectors_])
    np.testing.assert_allclose(svm.decide(rows).ravel(), model.decision_function(graphs))


@pytest.mark.parametrize("kernel", KERNELS)
def test_distances_are_those_of_the_matrix_whatever_training_saw(data, new, kernel, radius):
    model = fitted(data, kernel, radius)
    kernel_matrix, distances = model.kernel_matrix(new), model.distance_matrix(new)
    own = np.diag(kernel_matrix)
    np.testing.assert_allclose(own, model.model_.kernel_of_each(new), rtol=1e-12)
    squares = own[:, None] + own - 2.0 * kernel_matrix
    np.testing.assert_allclose(distances**2, np.maximum(squares, 0.0), atol=1e-12)
    assert model.out_of_vocabulary(new).min() > 0
    across = model.distance_matrix(new, new[:3])  # both sides have the same unseen patterns
    np.testing.assert_allclose(across, distances[:, :3], atol=1e-6)
    np.testing.assert_allclose(np.diag(across), 0.0, atol=1e-6)
    assert np.linalg.eigvalsh(kernel_matrix).min() > -1e-9 or kernel == "wwl"


def test_the_nearest_training_graph_of_a_training_graph_is_itself(data):
    graphs, y = data
    found = fitted(data).kneighbors(graphs[:4], 3)
    first = found.groupby("graph").head(1)
    np.testing.assert_allclose(first["similarity"], 1.0)
    assert found["value"].tolist() == y[found["neighbor"]].tolist()
    assert len(found) == 12
    assert (found.groupby("graph")["similarity"].diff().dropna() <= 0).all()


def test_weights_of_graphs_are_costs_as_in_scikit_learn(data):
    graphs, y = data
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    model = fitted(data, C=2.0, sample_weight=weights)
    matrix = model.kernel_matrix(graphs)
    twin = SVC(kernel="precomputed", C=2.0 / np.mean(np.diag(matrix)), tol=1e-4)
    expected = twin.fit(matrix, y, sample_weight=weights).decision_function(matrix)
    np.testing.assert_allclose(model.decision_function(graphs), expected, atol=5e-3)
    assert not np.allclose(expected, fitted(data, C=2.0).decision_function(graphs), atol=5e-2)


def test_weights_have_to_fit(data):
    with pytest.raises(ValueError, match="sample_weight"):
        fitted(data, sample_weight=[1.0])
    with pytest.raises(ValueError, match="sample_weight"):
        fitted(data, sample_weight=-np.ones(len(data[1])))
