"""A Gaussian process on fingerprints, held against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel

from estimators.test_baselines import SMILES, VALUES
from treelens.gp.tanimoto_process import TanimotoProcess
from treelens.kernels.fingerprints import fingerprint_counts, parsed_smiles, tanimoto_matrix

pytest.importorskip("rdkit")


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
