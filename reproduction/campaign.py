"""Campaigns on known sets: how soon batches of suggestions find the best molecules."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import treelens as tl
from reproduction.data import Molecules, StudyOptions, load_molecules
from treelens.estimators.baselines import EcfpGPRegressor
from treelens.gp.covariates import columns_of
from treelens.graphs.descriptors import COMPACT_DESCRIPTORS, PREFIX
from treelens.graphs.duplicates import same_molecules
from treelens.kernels.fingerprints import folded_counts, parsed_smiles

SETS = ("ESOL", "FreeSolv", "Lipophilicity", "CHEMBL204_Ki")
CHOICE_SETS = ("ESOL", "FreeSolv")  # what the default of suggest was chosen on
# The strategy with its settings, and the model whose predictions it is about.
METHODS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "random": ("random", {}, None),
    "greedy": ("greedy", {}, tl.GraphRegressor),
    "expected_improvement": ("expected_improvement", {}, tl.GraphRegressor),
    "ecfp_gp": ("expected_improvement", {}, EcfpGPRegressor),
    "ecfp_forest": ("greedy", {}, RandomForestRegressor),
}
# Tried on those two sets only.
CHOICES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "best_only": ("expected_improvement", {"n_best": 1}, tl.GraphRegressor),
    "ucb": ("ucb", {}, tl.GraphRegressor),
    "thompson": ("thompson", {}, tl.GraphRegressor),
}
LARGEST = 2000  # molecules of a set, drawn at random from a larger one
N_START, N_BATCH, N_ROUNDS, N_REPEATS = 50, 20, 10, 10
N_CHOICES = 3  # repetitions of what was only tried
TOP = 0.02


def run(options: StudyOptions) -> None:
    """Make the rows that are missing, repetition by repetition."""
    sets: dict[str, Molecules] = {}
    with options.rows("campaign", ("set", "method", "seed")) as rows:
        for seed in range(options.repeats or N_REPEATS):
            for name in options.sets or SETS:
                more = CHOICES if name in CHOICE_SETS and seed < N_CHOICES else ()
                for method in options.methods or (*METHODS, *more):
                    key = {"set": name, "method": method, "seed": seed}
                    if key in rows:
                        continue
                    if name not in sets:
                        sets[name] = load_set(name)
                    rows.add(key, campaign, sets[name], method, seed, options.n_jobs)


def load_set(name: str) -> Molecules:
    """Load a set with each molecule once, the first; the same 2,000 of a larger one every time."""
    data = load_molecules(name)
    kept = np.unique(same_molecules(data.graphs).groups)
    if len(kept) > LARGEST:
        kept = np.sort(np.random.default_rng(0).choice(kept, LARGEST, replace=False))
    names = [PREFIX + name for name in COMPACT_DESCRIPTORS]  # computed once, not in every round
    graphs = data.graphs[kept]
    graphs = graphs.with_data(columns_of(graphs, names))
    return Molecules(graphs, [data.smiles[k] for k in kept], data.values[kept])


def campaign(
    data: Molecules, method: str, seed: int, n_jobs: int, n_rounds: int = N_ROUNDS
) -> dict[str, Any]:
    """Measure 50 molecules, then batches of 20, with a new fit before each batch.

    Returns the share of the best 2 % of all molecules that is known after each batch.
    """
    start = time.perf_counter()
    strategy, settings, model = {**METHODS, **CHOICES}[method]
    rng = np.random.default_rng(seed)
    n, values = len(data.values), data.values
    best = np.argsort(-values, kind="stable")[: max(1, round(TOP * n))]
    known = rng.permutation(n)[:N_START]
    found = [float(np.isin(best, known).mean())]
    for _ in range(n_rounds):
        rest = np.setdiff1d(np.arange(n), known)
        if strategy == "random":
            batch = rng.choice(rest, N_BATCH, replace=False)
        elif model is RandomForestRegressor:
            batch = rest[_forest(data, known, rest, n_jobs)]
        else:
            fitted = model(n_jobs=n_jobs, random_state=0).fit(data.graphs[known], values[known])
            seeded = int(rng.integers(2**31))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                table = tl.suggest(
                    fitted, data.graphs[rest], N_BATCH, strategy, random_state=seeded, **settings
                )
            batch = rest[table["index"].to_numpy()]
        known = np.concatenate([known, batch])
        found.append(float(np.isin(best, known).mean()))
    seconds = time.perf_counter() - start
    return {"found": found, "n": n, "n_best": len(best), "seconds": seconds}


def _forest(data: Molecules, known: np.ndarray, rest: np.ndarray, n_jobs: int) -> np.ndarray:
    """The largest predictions of a forest of 100 trees on ECFP4 counts, scikit-learn's default."""
    counts = _counts(tuple(data.smiles))
    counts = counts[:, counts[known].any(axis=0)]  # the others only take time
    trees = RandomForestRegressor(100, n_jobs=n_jobs, random_state=0)
    predicted = trees.fit(counts[known], data.values[known]).predict(counts[rest])
    return np.argsort(-predicted, kind="stable")[:N_BATCH]


@lru_cache(maxsize=1)
def _counts(smiles: tuple[str, ...]) -> np.ndarray:
    return folded_counts(parsed_smiles(smiles)).astype(np.float32)
