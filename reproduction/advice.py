"""Predicted against measured differences of matched pairs that were both held out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import treelens as tl
from reproduction.data import Assay, StudyOptions, load_assay
from treelens.decisions.matched_pairs import Change, MatchedPairs, substituent_text
from treelens.estimators.baselines import EcfpGPRegressor
from treelens.evaluation.metrics import NINETY
from treelens.kernels.fingerprints import molecules_behind

ASSAYS = ("CHEMBL204_Ki", "CHEMBL231_Ki", "CHEMBL244_Ki")
METHODS = {"default": tl.GraphRegressor, "ecfp_gp_radii": EcfpGPRegressor}


def run(options: StudyOptions) -> None:
    """Make the rows that are missing: each assay on its published split."""
    with options.rows("advice", ("set", "method")) as rows:
        for name in options.sets or ASSAYS:
            keys = [{"set": name, "method": method} for method in options.methods or METHODS]
            if all(key in rows for key in keys):
                continue
            assay = load_assay(name)
            pairs = held_out_pairs(assay.graphs, assay.values, *assay.split)
            for key in keys:
                rows.add(key, _scores, key["method"], assay, pairs, options)


def held_out_pairs(
    graphs: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, np.ndarray]:
    """Return pairs of test molecules, and the mean difference of training pairs of the change.

    Each pair counts once, with its smallest change; ``expected`` is NaN where no training pair
    shows the change.
    """
    molecules = molecules_behind(graphs)
    smallest: dict[tuple[int, int], Change] = {}
    for change, one, other in MatchedPairs.of([molecules[k] for k in test]):
        size = len(substituent_text(change.before) + substituent_text(change.after))
        known = smallest.get((one, other))
        if one < other and (known is None or size < len(known.text) - 4):
            smallest[one, other] = change
    shown: dict[Change, list[float]] = {}
    wanted = set(smallest.values())
    known_values = values[train]
    for change, one, other in MatchedPairs.of([molecules[k] for k in train]):
        if change in wanted:
            shown.setdefault(change, []).append(known_values[other] - known_values[one])
    one, other = np.array(list(smallest), dtype=int).reshape(-1, 2).T
    expected = [np.mean(shown[c]) if c in shown else np.nan for c in smallest.values()]
    return {"one": one, "other": other, "expected": np.array(expected)}


def _scores(
    method: str, assay: Assay, pairs: dict[str, np.ndarray], options: StudyOptions
) -> dict[str, Any]:
    graphs, values, (train, test) = assay.graphs, assay.values, assay.split
    start = time.perf_counter()
    model = METHODS[method](n_jobs=options.n_jobs, random_state=0).fit(graphs[train], values[train])
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
        "n_pairs": len(measured), "n_train": len(train), "n_test": len(test),
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
    }  # fmt: skip


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    return float(np.corrcoef(one, other)[0, 1]) if len(one) > 2 else None


def _intervals(name: str, error: np.ndarray, variance: np.ndarray) -> dict[str, float]:
    """Share of errors within 90 % intervals, and the mean width of these."""
    half = NINETY * np.sqrt(variance)
    return {
        f"coverage_{name}": float(np.mean(np.abs(error) <= half)),
        f"width_{name}": float(2.0 * half.mean()),
    }
