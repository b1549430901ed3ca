"""Decisions: campaigns of suggestions, advice on held-out matched pairs, and their page."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

import treelens as tl
from reproduction.data import Assay, Molecules, StudyOptions, load_assay, load_molecules
from treelens.chem.baselines import BASELINES
from treelens.chem.descriptors import COMPACT_DESCRIPTORS
from treelens.chem.ecfp import folded_counts
from treelens.chem.identity import same_molecules
from treelens.chem.matched_pairs import Change, matched_pairs, substituent_text
from treelens.chem.parsing import molecules_behind, parsed_smiles
from treelens.evaluation.metrics import NINETY
from treelens.gp.views import columns_of
from treelens.graphs.kinds import DESCRIPTOR_PREFIX

SETS = ("ESOL", "FreeSolv", "Lipophilicity", "CHEMBL204_Ki")
CHOICE_SETS = ("ESOL", "FreeSolv")  # what the default of suggest was chosen on
# The strategy with its settings, and the model whose predictions it is about.
METHODS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "random": ("random", {}, None),
    "greedy": ("greedy", {}, tl.GraphRegressor),
    "expected_improvement": ("expected_improvement", {}, tl.GraphRegressor),
    "ecfp_gp": ("expected_improvement", {}, BASELINES["ecfp_gp"][1]),
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
# The element that carries a substituent, at the beginning of a context such as "*[C;R](N)C".
_CARRIER = re.compile(r"\*(?:\[([A-Za-z][a-z]?)|([A-Za-z]))")


def run_campaigns(options: StudyOptions) -> None:
    """Make the rows that are missing, repetition by repetition."""
    loaded = cache(load_set)
    with options.rows("campaign", ("set", "method", "seed")) as rows:
        for seed in range(options.repeats or N_REPEATS):
            for name in options.sets or SETS:
                more = CHOICES if name in CHOICE_SETS and seed < N_CHOICES else ()
                for method in options.methods or (*METHODS, *more):
                    key = {"set": name, "method": method, "seed": seed}
                    if key not in rows:
                        rows.add(key, campaign, loaded(name), method, seed, options.n_jobs)


def load_set(name: str) -> Molecules:
    """Load a set with each molecule once, the first; the same 2,000 of a larger one every time."""
    data = load_molecules(name)
    kept = np.unique(same_molecules(data.graphs).groups)
    if len(kept) > LARGEST:
        kept = np.sort(np.random.default_rng(0).choice(kept, LARGEST, replace=False))
    # Computed once, not in every round.
    names = [DESCRIPTOR_PREFIX + name for name in COMPACT_DESCRIPTORS]
    graphs = data.graphs[kept]
    graphs = graphs.with_data(columns_of(graphs, names))
    return Molecules(graphs, [data.smiles[k] for k in kept], data.values[kept])


def campaign(
    data: Molecules, method: str, seed: int, n_jobs: int, n_rounds: int = N_ROUNDS
) -> dict[str, Any]:
    """Measure 50 molecules, then batches of 20, with a new fit before each batch."""
    # Returns the share of the best 2 % of all molecules that is known after each batch.
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


ASSAYS = ("CHEMBL204_Ki", "CHEMBL231_Ki", "CHEMBL244_Ki")
ADVISERS = {"default": tl.GraphRegressor, "ecfp_gp_radii": BASELINES["ecfp_gp"][1]}


def run_advice(options: StudyOptions) -> None:
    """Make the rows that are missing: each assay on its published split."""
    with options.rows("advice", ("set", "method")) as rows:
        for name in options.sets or ASSAYS:
            keys = [{"set": name, "method": method} for method in options.methods or ADVISERS]
            if all(key in rows for key in keys):
                continue
            assay = load_assay(name)
            pairs = held_out_pairs(assay.graphs, assay.values, *assay.split)
            for key in keys:
                rows.add(key, _advice_scores, key["method"], assay, pairs, options)


def held_out_pairs(
    graphs: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return pairs of test molecules, and the mean difference of training pairs of the change."""
    # Each pair counts once, with its smallest change; `expected` is NaN where no training pair
    # shows the change.
    molecules = molecules_behind(graphs)
    smallest: dict[tuple[int, int], Change] = {}
    for change, one, other in _pairs_by_carrier([molecules[k] for k in test]):
        size = len(substituent_text(change.before) + substituent_text(change.after))
        known = smallest.get((one, other))
        if one < other and (known is None or size < len(known.text) - 4):
            smallest[one, other] = change
    shown: dict[Change, list[float]] = {}
    wanted = set(smallest.values())
    known_values = values[train]
    for change, one, other in _pairs_by_carrier([molecules[k] for k in train]):
        if change in wanted:
            shown.setdefault(change, []).append(known_values[other] - known_values[one])
    one, other = np.array(list(smallest), dtype=int).reshape(-1, 2).T
    expected = [np.mean(shown[c]) if c in shown else np.nan for c in smallest.values()]
    return {"one": one, "other": other, "expected": np.array(expected)}


def _pairs_by_carrier(molecules: Sequence[Any]) -> Iterator[tuple[Change, int, int]]:
    """Yield matched pairs whose changes differ by the atom that carries them, not its neighbours.

    ``advise`` asks for more: equal atoms within two bonds.
    """
    for change, one, other in matched_pairs(molecules):
        found = _CARRIER.match(change.at)
        assert found is not None
        yield change._replace(at=found[1] or found[2]), one, other


def _advice_scores(
    method: str, assay: Assay, pairs: dict[str, np.ndarray], options: StudyOptions
) -> dict[str, Any]:
    graphs, values, (train, test) = assay.graphs, assay.values, assay.split
    start = time.perf_counter()
    model = ADVISERS[method](n_jobs=options.n_jobs, random_state=0).fit(
        graphs[train], values[train]
    )
    mean, covariance = model.predict(graphs[test], return_cov=True, include_noise=False)
    one, other, expected = pairs["one"], pairs["other"], pairs["expected"]
    measured = values[test][other] - values[test][one]
    predicted = mean[other] - mean[one]
    own = np.diagonal(covariance)
    noise = 2.0 * model.noise_  # of two measurements
    apart = own[one] + own[other]
    joint = np.maximum(apart - 2.0 * covariance[one, other], 0.0)
    seen, large = ~np.isnan(expected), np.abs(measured) >= 0.5
    return {
        "n_pairs": len(measured),
        "n_train": len(train),
        "n_test": len(test),
        "correlation": _correlation(predicted, measured),
        "rank_correlation": float(spearmanr(predicted, measured).statistic),
        "rmse": float(np.sqrt(np.mean((predicted - measured) ** 2))),
        "rmse_of_none": float(np.sqrt(np.mean(measured**2))),  # no difference predicted
        "right_sign": float(np.mean(np.sign(predicted[large]) == np.sign(measured[large]))),
        "n_large": int(large.sum()),
        **_intervals("joint", predicted - measured, joint + noise),
        **_intervals("apart", predicted - measured, apart + noise),
        "n_supported": int(seen.sum()),
        "correlation_supported": _correlation(predicted[seen], measured[seen]),
        "correlation_pairs": _correlation(expected[seen], measured[seen]),
        "seconds": time.perf_counter() - start,
    }


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    return float(np.corrcoef(one, other)[0, 1]) if len(one) > 2 else None


def _intervals(name: str, error: np.ndarray, variance: np.ndarray) -> dict[str, float]:
    """Share of errors within 90 % intervals, and the mean width of these."""
    half = NINETY * np.sqrt(variance)
    return {
        f"coverage_{name}": float(np.mean(np.abs(error) <= half)),
        f"width_{name}": float(2.0 * half.mean()),
    }
