"""What else a chemist would run on circular fingerprints: Gaussian processes, forests, boosting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from reproduction.tanimoto_gp import TanimotoProcess
from treelens.estimators.baselines import EcfpGPRegressor
from treelens.graphs.gathering import parsed_smiles
from treelens.kernels.fingerprints import fingerprint_counts, tanimoto_matrix

_RADIUS = {"ecfp_gp": 3, "ecfp4_gp": 2}  # amplitude times Tanimoto similarity
_WEIGHTED = {"ecfp_gp_radii": 3, "ecfp4_gp_radii": 2}  # our kernel, with a weight per radius
# What no training molecule has only takes time there.
_SEEN_ONLY = ("ecfp_boosting", "ecfp4_rbf_gp")
# About how far two molecules lie apart in counts: from 1, the search may end with noise alone.
_LENGTH_SCALE = 10.0

Predictions = tuple[np.ndarray, np.ndarray | None]


def rival_numbers(
    method: str, train: Sequence[str], values: np.ndarray, test: Sequence[str], n_jobs: int
) -> Predictions:
    """Numbers that a rival at fixed settings predicts for test molecules, with deviations."""
    return fit_rival(method, train, values, test, n_jobs)()


def fit_rival(
    method: str, train: Sequence[str], values: np.ndarray, test: Sequence[str], n_jobs: int
) -> Callable[[], Predictions]:
    """Fit a rival; what comes back predicts the test molecules.

    Fingerprints of all molecules are made together, as unfolded counts have to be.
    """
    n = len(train)
    if method in _WEIGHTED:
        weighted = EcfpGPRegressor(_WEIGHTED[method], n_jobs=n_jobs).fit(list(train), values)
        return lambda: weighted.predict(list(test), return_std=True)
    molecules = parsed_smiles([*train, *test])
    if method in _RADIUS:
        counts = fingerprint_counts(molecules, _RADIUS[method])
        return _tanimoto(counts[:n], values, counts[n:], effective_n_jobs(n_jobs))
    counts = fingerprint_counts(molecules, 2)
    folded = np.zeros((len(molecules), 2048))
    entry = counts.tocoo()
    np.add.at(folded, (entry.row, entry.col % 2048), entry.data)
    if method in _SEEN_ONLY:
        folded = folded[:, folded[:n].any(axis=0)]
    model = _on_table(method, n_jobs).fit(folded[:n], values)
    return lambda: (model.predict(folded[n:]), None)


def _tanimoto(known: Any, values: np.ndarray, new: Any, n_jobs: int) -> Callable[[], Predictions]:
    process = TanimotoProcess().fit(tanimoto_matrix(known, known, n_jobs=n_jobs), values[:, None])

    def predict() -> Predictions:
        mean, std = process.predict(tanimoto_matrix(new, known, n_jobs=n_jobs))
        return mean[:, 0], std

    return predict


def _on_table(method: str, n_jobs: int) -> Any:
    """Models of scikit-learn at settings that are nobody's worst; none is tuned by hand."""
    if method == "ecfp_boosting":
        return HistGradientBoostingRegressor(max_iter=200, learning_rate=0.1, random_state=0)
    if method == "ecfp4_rbf_gp":
        kernel = ConstantKernel() * RBF(_LENGTH_SCALE) + WhiteKernel()
        return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return RandomForestRegressor(500, min_samples_leaf=1, n_jobs=n_jobs, random_state=0)
