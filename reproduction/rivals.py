"""What else a chemist would run on circular fingerprints: Tanimoto processes, forests, boosting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from treelens.kernels.fingerprints import fingerprint_counts, parsed_smiles, tanimoto_matrix
from treelens.models.tanimoto_process import TanimotoProcess

_RADIUS = {"ecfp_gp": 3, "ecfp4_gp": 2}


def rival_numbers(
    method: str, train: Sequence[str], values: np.ndarray, test: Sequence[str], n_jobs: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers that a rival at fixed settings predicts for test molecules, with deviations."""
    n = len(train)
    molecules = parsed_smiles([*train, *test])
    if method in _RADIUS:
        counts = fingerprint_counts(molecules, _RADIUS[method])
        known, new = counts[:n], counts[n:]
        process = TanimotoProcess().fit(tanimoto_matrix(known, known, n_jobs=2), values[:, None])
        mean, std = process.predict(tanimoto_matrix(new, known, n_jobs=2))
        return mean[:, 0], std
    counts = fingerprint_counts(molecules, 2)
    folded = np.zeros((len(molecules), 2048))
    entry = counts.tocoo()
    np.add.at(folded, (entry.row, entry.col % 2048), entry.data)
    if method == "ecfp_boosting":  # what no training molecule has only takes time there
        folded = folded[:, folded[:n].any(axis=0)]
    return _trees(method, n_jobs).fit(folded[:n], values).predict(folded[n:]), None


def _trees(method: str, n_jobs: int) -> Any:
    """Trees at settings that are nobody's worst; neither is tuned."""
    if method == "ecfp_boosting":
        return HistGradientBoostingRegressor(max_iter=200, learning_rate=0.1, random_state=0)
    return RandomForestRegressor(500, min_samples_leaf=1, n_jobs=n_jobs, random_state=0)
