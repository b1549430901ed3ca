"""What a chemist would run: it predicts, it is tuned, and it is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

import treelens as tl
from treelens.estimators.baselines import BASELINES, EcfpProcessRegressor
from treelens.kernels.fingerprints import fingerprint_counts, parsed_smiles, tanimoto_matrix
from treelens.models.tanimoto_process import TanimotoProcess

pytest.importorskip("rdkit")
CORES = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
TAILS = ["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC", "O", "CO", "C(=O)N", "Cl"]
SMILES = [core + tail for core in CORES for tail in TAILS]
ACID = np.array(["acid" if "(=O)O" in s else "other" for s in SMILES])
VALUES = np.array([s.count("O") + 0.1 * len(s) for s in SMILES])


@pytest.mark.parametrize("name", BASELINES)
def test_classes_are_told_apart(name):
    kind = BASELINES[name][0]
    graphs = tl.as_graph_collection(SMILES)
    model = kind(n_jobs=1, random_state=0).fit(graphs[::2], ACID[::2])
    said = model.predict_proba(graphs[1::2])
    assert said.shape == (30, 2)
    np.testing.assert_allclose(said.sum(axis=1), 1.0)
    assert np.mean(model.predict(graphs[1::2]) == ACID[1::2]) > 0.8
    again = clone(model).fit(graphs[::2], ACID[::2])
    np.testing.assert_array_equal(again.predict_proba(graphs[1::2]), said)
    three = np.array(["abc"[i % 3] for i in range(60)])
    assert set(kind(random_state=0).fit(graphs, three).predict(graphs)) <= set("abc")


@pytest.mark.parametrize("name", ["ecfp_forest", "ecfp_gp"])
def test_numbers_are_predicted(name):
    kind = BASELINES[name][1]
    model = kind(n_jobs=1, random_state=0).fit(SMILES[::2], VALUES[::2])
    error = np.sqrt(np.mean((model.predict(SMILES[1::2]) - VALUES[1::2]) ** 2))
    assert error < 0.7 * VALUES.std()
    assert model.best_params_["counts"] in (True, False)


def test_a_rare_class_is_named():
    rare = np.where(np.arange(60) < 6, "hit", "no")
    model = BASELINES["ecfp_gp"][0](random_state=0).fit(SMILES, rare)
    assert (model.predict(SMILES) == "hit").any()
    half = BASELINES["ecfp_gp"][0](random_state=0, threshold=0.999).fit(SMILES, rare)
    assert not (half.predict(SMILES) == "hit").any()


class _Given(Kernel):
    """Similarities that are ready: inputs are row numbers."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, X, Y=None, eval_gradient=False):
        rows = X[:, 0].astype(int)
        columns = rows if Y is None else Y[:, 0].astype(int)
        found = self.matrix[np.ix_(rows, columns)]
        return (found, np.empty((*found.shape, 0))) if eval_gradient else found

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


def test_the_process_is_that_of_scikit_learn():
    counts = fingerprint_counts(parsed_smiles(SMILES))
    matrix = tanimoto_matrix(counts)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    ours = TanimotoProcess().fit(matrix[np.ix_(train, train)], VALUES[train][:, None])
    kernel = ConstantKernel(ours.amplitude, "fixed") * _Given(matrix)
    kernel += WhiteKernel(ours.noise, "fixed")
    z = (VALUES - VALUES[train].mean()) / VALUES[train].std()
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=0)
    theirs.fit(train[:, None].astype(float), z[train])
    mean, std = theirs.predict(test[:, None].astype(float), return_std=True)
    said, deviation = ours.predict(matrix[np.ix_(test, train)])
    scale = VALUES[train].std()
    np.testing.assert_allclose(said[:, 0], VALUES[train].mean() + scale * mean, atol=1e-8)
    np.testing.assert_allclose(deviation, scale * std, atol=1e-8)
    assert ours.evidence == pytest.approx(theirs.log_marginal_likelihood_value_)


def test_left_out_predictions_are_those_of_a_process_without_the_molecule():
    matrix = tanimoto_matrix(fingerprint_counts(parsed_smiles(SMILES[:20])))
    y = VALUES[:20, None]
    process = TanimotoProcess().fit(matrix, y)
    kernel = process.amplitude * matrix + process.noise * np.eye(20)
    rest = np.delete(np.arange(20), 3)
    z = (y - y.mean()) / y.std()
    alone = kernel[3, rest] @ np.linalg.solve(kernel[np.ix_(rest, rest)], z[rest])
    assert process.left_out[3, 0] == pytest.approx(y.mean() + y.std() * alone[0])


def test_new_environments_do_not_disturb(monkeypatch):
    """A molecule with environments that training never had is compared all the same."""
    model = EcfpProcessRegressor(random_state=0).fit(SMILES, VALUES)
    one = model.predict(["c1ccccc1C"])
    np.testing.assert_allclose(model.predict(["FC(F)(F)S(=O)(=O)Br", "c1ccccc1C"])[1], one[0])
