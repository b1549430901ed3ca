"""Active learning: which molecules to measure next.

    TREELENS_DATA=... python -m reproduction active --out docs/results

A model is fitted to a few molecules, chooses the next ones out of a pool, is told their values, and
so on; every round is scored on molecules that are never chosen from. By "variance" the molecules of
the pool are taken that the model is least certain of, by "random" any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import Molecules, StudyOptions, load_molecules
from reproduction.rows import RowFile, versions
from treelens.evaluation.metrics import number_scores
from treelens.gp.tanimoto_process import TanimotoProcess
from treelens.kernels.fingerprints import fingerprint_counts, parsed_smiles, tanimoto_matrix

SETS = ("Lipophilicity",)
# Name -> which model chooses and predicts, and how it chooses.
METHODS = {
    "treelens_variance": ("treelens", "variance"),
    "treelens_random": ("treelens", "random"),
    "ecfp_gp_variance": ("ecfp_gp", "variance"),
    "ecfp_gp_random": ("ecfp_gp", "random"),
}
N_START, N_ADDED, N_ROUNDS, N_SPLITS = 100, 50, 19, 3

# From the training molecules to a function from molecules to means and standard deviations.
Fitted = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing: a run whose last round is there is not made again."""
    rows = RowFile(asked.out / "active.jsonl", ("set", "method", "split", "size"))
    last = N_START + N_ADDED * (N_ROUNDS - 1)
    for name in asked.sets or SETS:
        data = load_molecules(name)
        for split in range(asked.repeats or N_SPLITS):
            for method in asked.methods or METHODS:
                key = {"set": name, "method": method, "split": split}
                if {**key, "size": last} in rows:
                    continue
                for found in one_run(data, method, split, asked):
                    row = {**key, **found}
                    if row not in rows:
                        rows.append({**row, "device": asked.device, **versions()})
                print(key, "done", flush=True)


def one_run(data: Molecules, method: str, split: int, asked: StudyOptions) -> list[dict[str, Any]]:
    """The scores of every round."""
    kind, choice = METHODS[method]
    rng = np.random.default_rng(2000 + split)
    order = rng.permutation(len(data.values))
    n_pool = int(0.8 * len(order))
    known, pool, test = order[:N_START], order[N_START:n_pool], order[n_pool:]
    fit = _fit_treelens if kind == "treelens" else _fit_ecfp
    found = []
    for _ in range(N_ROUNDS):
        predict = fit(data, known, asked)
        found.append({"size": len(known), **number_scores(data.values[test], *predict(test))})
        if choice == "variance":
            least_certain = np.argsort(-predict(pool)[1], kind="stable")
        else:
            least_certain = rng.permutation(len(pool))
        taken = least_certain[:N_ADDED]
        known, pool = np.concatenate([known, pool[taken]]), np.delete(pool, taken)
    return found


def _fit_treelens(data: Molecules, known: np.ndarray, asked: StudyOptions) -> Fitted:
    model = tl.GraphRegressor(device=asked.device, n_jobs=asked.n_jobs, random_state=0)
    model.fit(data.graphs[known], data.values[known])
    return lambda asked_for: model.predict(data.graphs[asked_for], return_std=True)


def _fit_ecfp(data: Molecules, known: np.ndarray, asked: StudyOptions) -> Fitted:
    counts = fingerprint_counts(parsed_smiles(data.smiles), 3)
    process = TanimotoProcess().fit(
        tanimoto_matrix(counts[known], counts[known]), data.values[known][:, None]
    )

    def predict(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = process.predict(tanimoto_matrix(counts[chosen], counts[known]))
        return mean[:, 0], std

    return predict
