"""Numbers of molecules: random splits, scaffold folds, MoleculeACE, learning curves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import Molecules, StudyOptions, data_folder, load_molecules, read_assay
from reproduction.rivals import rival_numbers
from treelens.evaluation.metrics import number_scores
from treelens.evaluation.splits import ScaffoldKFold
from treelens.graphs.molecules import smiles_to_collection

SETS = ("FreeSolv", "ESOL", "Lipophilicity")
METHODS = (
    "default", "uniform", "depths", "branches", "ecfp_gp_radii", "ecfp4_gp_radii",
    "ecfp_forest", "ecfp_boosting",
)  # fmt: skip
CURVE_SETS = ("ESOL", "Lipophilicity", "CHEMBL244_Ki")
CURVE_METHODS = ("default", "uniform", "ecfp_gp_radii", "ecfp_forest")
SIZES = (50, 100, 200, 400, 800, 1600, 3000)
N_SPLITS, N_FOLDS, N_CURVES = 20, 5, 5
# Our methods with their settings; the others are rivals. Uniform weights have the depth of the
# largest evidence. Rows of an earlier version have the methods called treelens, of depth 4.
_EARLIER: dict[str, Any] = {"depth": 4, "descriptors": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "uniform": {"weights": "uniform", "descriptors": False},
    "depths": {"weights": "depths", "descriptors": False},
    "branches": {"weights": "branches", "descriptors": False},
    "treelens": {"weights": "branches", **_EARLIER},
    "treelens_depths": {"weights": "depths", **_EARLIER},
    "treelens_uniform": {"weights": "uniform", **_EARLIER},
    "treelens_descriptors": {"weights": "branches", **_EARLIER},
}
_KEY = ("set", "method", "split")


def run_random(options: StudyOptions) -> None:
    """ESOL, FreeSolv and Lipophilicity on random 80/20 splits."""
    with options.rows("regression", _KEY) as rows:
        for name in options.sets or SETS:
            data = load_molecules(name)
            for split, train, test in random_splits(len(data.values), options.repeats or N_SPLITS):
                for method in options.methods or METHODS:
                    key = {"set": name, "method": method, "split": split}
                    rows.add(key, _scores, key, data, train, test, options)


def run_scaffolds(options: StudyOptions) -> None:
    """The same sets in folds of whole scaffolds."""
    with options.rows("regression_scaffold", _KEY) as rows:
        for name in options.sets or SETS:
            data = load_molecules(name)
            folds = ScaffoldKFold(N_FOLDS, random_state=0).split(data.graphs)
            for split, (train, test) in enumerate(folds):
                for method in options.methods or METHODS:
                    key = {"set": name, "method": method, "split": split}
                    rows.add(key, _scores, key, data, train, test, options)


def run_curves(options: StudyOptions) -> None:
    """The error against the number of training molecules; a fifth of a set is the test part."""
    with options.rows("curves", ("set", "method", "size", "split")) as rows:
        for name in options.sets or CURVE_SETS:
            data = load_molecules(name)
            for split, size, train, test in growing_parts(
                len(data.values), options.repeats or N_CURVES
            ):
                for method in options.methods or CURVE_METHODS:
                    key = {"set": name, "method": method, "size": size, "split": split}
                    rows.add(key, _scores, key, data, train, test, options)


def run_moleculeace(options: StudyOptions) -> None:
    """Assays of MoleculeACE on the published splits; ``--data`` names a folder of its tables."""
    folder = options.data if options.data is not None else data_folder() / "moleculeace"
    with options.rows("moleculeace", ("set", "method")) as rows:
        for path in sorted(folder.glob("*.csv*"), key=lambda path: path.stat().st_size):
            name = path.name.split(".")[0]
            if options.sets and name not in options.sets:
                continue
            table = read_assay(path)
            smiles = [row["smiles"] for row in table]
            data = Molecules(
                smiles_to_collection(smiles), smiles, np.array([row["value"] for row in table])
            )
            test = np.array([row["test"] for row in table])
            cliff = np.array([row["cliff"] for row in table])[test]
            parts = np.flatnonzero(~test), np.flatnonzero(test)
            for method in options.methods or METHODS:
                key = {"set": name, "method": method}
                rows.add(key, _scores, key, data, *parts, options, cliff)


def random_splits(n: int, n_splits: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield 80/20 splits, numbered by their seeds."""
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n)
        n_train = int(0.8 * n)
        yield seed, order[:n_train], order[n_train:]


def growing_parts(
    n: int, n_splits: int, sizes: Sequence[int] = SIZES
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Yield split, size, training part and test part; a smaller part is within a larger one.

    Examples
    --------
    >>> parts = list(growing_parts(100, 1, (50, 60, 70)))
    >>> [(size, len(train), len(test)) for _, size, train, test in parts]
    [(50, 50, 20), (60, 60, 20), (70, 70, 20)]
    """
    for split in range(n_splits):
        order = np.random.default_rng(1000 + split).permutation(n)
        n_pool = int(0.8 * n)
        for size in sizes:
            if size <= n_pool:
                yield split, size, order[:size], order[n_pool:]


def _scores(
    key: dict[str, Any], data: Molecules, train: np.ndarray, test: np.ndarray,
    options: StudyOptions, cliff: np.ndarray | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Fit and score ``key["method"]`` on one split; with ``cliff`` also on cliff molecules."""
    start = time.perf_counter()
    mean, std, extra = _predictions(key["method"], data, train, test, options)
    seconds = time.perf_counter() - start
    values = data.values[test]
    if cliff is not None:
        extra["rmse_cliff"] = float(np.sqrt(np.mean((values - mean)[cliff] ** 2)))
        extra |= {"n_test": len(test), "n_cliff": int(cliff.sum())}
    found = {name: x for name, x in number_scores(values, mean, std).items() if x is not None}
    return {
        **found, **extra, "seconds": seconds, "n_train": len(train), "device": options.device,
    }  # fmt: skip


def _predictions(
    method: str, data: Molecules, train: np.ndarray, test: np.ndarray, options: StudyOptions
) -> tuple[np.ndarray, np.ndarray | None, dict[str, Any]]:
    if method not in SETTINGS:
        smiles = np.array(data.smiles, dtype=object)
        known, new = list(smiles[train]), list(smiles[test])
        return (*rival_numbers(method, known, data.values[train], new, options.n_jobs), {})
    model = tl.GraphRegressor(
        **SETTINGS[method], device=options.device, n_jobs=options.n_jobs, random_state=0
    )
    covariates = "rdkit" if method == "treelens_descriptors" else None
    model.fit(data.graphs[train], data.values[train], covariates=covariates)
    mean, std = model.predict(data.graphs[test], return_std=True)
    extra = {
        "evidence": model.evidence_, "loo_rmse": model.loo_.rmse, "converged": model.converged_,
    }  # fmt: skip
    return mean, std, extra
