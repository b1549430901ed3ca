"""Deletion and insertion curves: parts of molecules, orders, areas, and the page."""

import numpy as np
import pytest
from reproduction.fidelity import SHARES, curves, steps

import treelens as tl
from reproduction import explained_models as models

pytest.importorskip("rdkit")
TAILS = ["C" * k for k in range(1, 13)]
SMILES = [f"{t}c1ccc([N+](=O)[O-])cc1" for t in TAILS] + [f"{t}CCc1ccccc1O" for t in TAILS]
Y = np.repeat([1, 0], 12)


@pytest.fixture(scope="module")
def graphs():
    return tl.as_graph_collection(SMILES)


def test_parts_have_the_labels_and_edges_of_the_whole(graphs):
    rng = np.random.default_rng(0)
    whole = graphs[3:4]
    n = whole.n_nodes
    kept = [np.ones(n, bool), *(rng.random(n) < 0.6 for _ in range(5))]
    fine = np.array(whole.fine_codes)
    parts = models.parts_of(whole, kept)
    assert parts[0].edges == graphs[3].edges
    for k, flags in enumerate(kept):
        nodes = np.flatnonzero(flags).tolist()
        place = {node: i for i, node in enumerate(nodes)}
        expected = [(place[u], place[v]) for u, v in graphs[3].edges if u in place and v in place]
        assert list(parts[k].edges) == expected
        assert parts[k].node_labels == tuple(graphs[3].node_labels[node] for node in nodes)
        own = slice(parts.node_offsets[k], parts.node_offsets[k + 1])
        assert parts.fine_codes[own].tolist() == fine[flags].tolist()


def test_a_part_that_is_all_has_the_fingerprint_of_the_whole(graphs):
    from rdkit import Chem

    made = models.Fingerprints()
    for smiles in SMILES[::5]:
        molecule = Chem.MolFromSmiles(smiles)
        n = molecule.GetNumAtoms()
        whole, less = made.of_parts(molecule, [np.ones(n, bool), np.arange(n) > 0])
        np.testing.assert_array_equal(whole, made.of(molecule))
        assert 0 < less.sum() < whole.sum()
        present = np.where(whole > 0, 1.0, 0.0)
        assert made.spread(molecule, present).sum() == pytest.approx((whole > 0).sum())


@pytest.mark.parametrize("kind", [models.ForestModel, models.ForestByShap])
@pytest.mark.parametrize("y", [Y, np.arange(24.0)], ids=["classes", "numbers"])
def test_contributions_of_bits_add_up_to_the_forests_prediction(graphs, y, kind):
    if kind is models.ForestByShap:
        pytest.importorskip("shap", reason="needs shap: pip install -e '.[studies]'")
    model = kind(graphs, y, np.arange(0, 24, 2), 1)
    roots = np.mean([models.node_values(tree)[0] for tree in model.forest.estimators_])
    for index in (1, 13):
        bits = model.fingerprints.of(model.molecules[index])
        said = model._predict(bits[None, :])[0]
        if kind is models.ForestModel:
            assert roots + models.path_contributions(model.forest, bits).sum() == pytest.approx(
                said
            )
            continue
        worth = model.worth_of(bits)
        assert model.shap.base + worth.sum() == pytest.approx(said, abs=1e-6)
        spread = model.fingerprints.spread(model.molecules[index], worth)
        np.testing.assert_allclose(model.contributions(index), spread)
        assert spread.sum() == pytest.approx(worth[bits > 0].sum())


def test_steps_delete_and_insert_in_order():
    worth = np.array([0.3, -1.0, 2.0, 0.0, 0.1, 0.2, 5.0, -2.0, 1.0, 0.5])
    found = steps(worth)
    order = np.argsort(-worth)
    for k in range(len(SHARES)):
        assert set(np.flatnonzero(~found[k])) == set(order[: k + 1])
        assert set(np.flatnonzero(found[len(SHARES) + k])) == set(order[: k + 1])


def test_contributions_come_before_random_order(graphs):
    """The nitro group decides: taking its atoms first must bring the prediction down first."""
    model = models.OwnModel(graphs, Y, np.arange(0, 24, 2), 1)
    rng = np.random.default_rng(0)
    found = [curves(model, k, int(graphs.sizes[k]), rng) for k in range(1, 12, 2)]
    for kind, better in (("deletion", -1.0), ("insertion", 1.0)):
        mean = {x: np.mean([f[kind][x] for f in found]) for x in ("contributions", "random")}
        assert better * mean["contributions"] > better * mean["random"]
    numbers = models.OwnModel(graphs, np.linspace(0.0, 1.0, 24), np.arange(0, 24, 2), 1)
    assert np.isfinite(numbers.predict(1, [np.arange(graphs.sizes[1]) > 2])).all()
