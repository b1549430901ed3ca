"""Where a model may be believed: against plain loops, and on molecules."""

import numpy as np
import pytest

import treelens as tl
from treelens.gp.domain import left_out_std
from treelens.kernels.gram import pair_sums
from treelens.models.domain import Domain, Neighbourhood

pytest.importorskip("rdkit")
CORES = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1", "C1CCNCC1"]
TAILS = ["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC", "O", "CO", "C(=O)N", "Cl"]
SMILES = [core + tail for core in CORES for tail in TAILS]
SMILES = np.random.default_rng(1).permutation(SMILES).tolist()  # half of them is half of each kind
VALUES = np.array([s.count("O") + 0.1 * len(s) for s in SMILES])
VALUES = VALUES + np.random.default_rng(0).normal(0, 0.2, len(SMILES))
STRANGE = ["[Na+].[Cl-]", "C[Si](C)(C)C", "CC(=O)O"]


@pytest.fixture(scope="module")
def model():
    return tl.GraphRegressor(depth=2, random_state=0).fit(SMILES[::2], VALUES[::2])


def similarities(model, graphs):
    """Learned Tanimoto similarities with the training graphs, the plain way."""
    weighted = model.model_.patterns
    new = weighted.refine(tl.as_graph_collection(graphs)).features
    train = model.model_.basis_graphs.patterns
    sums = pair_sums(new.pairs, train.pairs, weighted.weights)
    return sums / (new.diagonal[:, None] + train.diagonal[None] - sums)


def test_neighbours_and_expected_errors_by_plain_loops(model):
    new = [*SMILES[1::2], *STRANGE]
    found, (_, std) = model.domain(new), model.predict(new, return_std=True)
    squares = (model.train_values_ - model.loo_.predictions) ** 2
    z = squares / squares.mean()
    for row, alike in enumerate(similarities(model, new)):
        near = np.argsort(-alike, kind="stable")[:20]
        assert found["similarity"][row] == pytest.approx(alike.max())
        assert alike[found["nearest"][row]] == alike.max()
        w = alike[near] ** 2
        expected = std[row] * np.sqrt((3 + (w * z[near]).sum()) / (3 + w.sum()))
        assert found["expected_error"][row] == pytest.approx(expected, rel=1e-6)


def test_left_out_deviations_are_the_closed_form(model):
    chosen = np.array([0, 5, 17])
    found = left_out_std(model.model_, model.model_.basis_graphs, chosen)
    np.testing.assert_allclose(found, model.loo_.std[chosen], rtol=1e-8)


def test_limits_are_set_by_the_training_graphs_left_out(model):
    alike = similarities(model, SMILES[::2])
    np.fill_diagonal(alike, -1)
    limit = np.quantile(alike.max(axis=1), 0.025)
    assert model.domain_.least_similarity == pytest.approx(limit)
    assert model.domain(SMILES[::2])["in_domain"].mean() > 0.9


def test_landmarks_have_a_domain_of_all_training_graphs():
    model = tl.GraphRegressor(depth=1, exact_size=30, n_landmarks=20, random_state=0)
    model.fit(SMILES, VALUES)
    found = model.domain([*SMILES, "[Na+].[Cl-]"])
    np.testing.assert_allclose(found["similarity"][:-1], 1.0)
    assert found["nearest"][:-1].tolist() == list(range(len(SMILES)))
    assert found["in_domain"][:-1].mean() > 0.9
    assert not found["in_domain"].iloc[-1]


def test_a_graph_inside_has_both_a_small_error_and_a_near_neighbour():
    domain = Domain(None, np.ones(1), largest_error=2.0, least_similarity=0.5)
    similarity = np.array([0.9, 0.1, 0.9, 0.1, 0.5])
    around = Neighbourhood(np.zeros(5, dtype=int), similarity, np.ones(5))
    inside = domain.holds(np.array([1.0, 1.0, 3.0, 3.0, 2.0]), around)
    assert inside.tolist() == [True, False, False, False, True]  # limits themselves are inside


def test_limits_are_no_errors_that_the_domain_is_set_by():
    limits = np.where(np.arange(36) < 12, ">", "=")
    model = tl.GraphRegressor(depth=2, descriptors=False).fit(
        SMILES[::2], VALUES[::2], limits=limits
    )
    alike = similarities(model, SMILES[::2])
    np.fill_diagonal(alike, -1)
    nearest = alike.max(axis=1)
    expected = np.quantile(nearest[12:], 0.025)
    assert model.domain_.least_similarity == pytest.approx(expected)
    assert expected != pytest.approx(np.quantile(nearest, 0.025))
