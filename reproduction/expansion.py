"""The nine endpoints of OpenADMET's ExpansionRx challenge: single models, panels and rivals.

Molecules of the test part are later ones of the same programs. Models learn ``log10(x + 1)``, LogD
as it is, which published scores are of as well.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

import treelens as tl
from reproduction.compare import make_model
from reproduction.data import StudyOptions, data_folder
from reproduction.frozen import digest, source_of_library

KEY = ("protocol", "method")
# Official: the published training and test parts; the second trains on a random four fifths, as
# many as published networks have, but not the same ones. The last one is for choices.
OFFICIAL, FOUR_FIFTHS, LATEST = "official", "four fifths", "latest fifth of the training part"
METHODS = ("panel", "auto", "ecfp6_gp_descriptors", "boosting")
_NAMES, _SMILES = "Molecule Name", "SMILES"
_AS_IT_IS = ("LogD",)
_QUICK = 400  # molecules of each part
_BLOCK = 400  # molecules predicted together


class Endpoints(NamedTuple):
    """Molecules with the values of all endpoints, NaN where none was measured."""

    smiles: list[str]
    values: pd.DataFrame


def read_part(name: str) -> tuple[Endpoints, np.ndarray]:
    """Return a published file, and the numbers in the names of its molecules: later is larger."""
    table = pd.read_csv(data_folder() / "expansionrx" / f"{name}.csv.gz")
    values = table.drop(columns=[_NAMES, _SMILES])
    scaled = values.apply(lambda x: x if x.name in _AS_IT_IS else np.log10(x.clip(lower=0.0) + 1.0))
    numbers = table[_NAMES].str.extract(r"(\d+)$")[0].astype(int).to_numpy()
    return Endpoints(table[_SMILES].tolist(), scaled), numbers


def parts_of(protocol: str) -> tuple[Endpoints, Endpoints]:
    """Return the training and the test part of a protocol."""
    train, numbers = read_part("train")
    n = len(numbers)
    if protocol == LATEST:
        early, late = np.split(np.argsort(numbers, kind="stable"), [int(0.8 * n)])
        return _some(train, early), _some(train, late)
    if protocol == FOUR_FIFTHS:
        train = _some(train, np.sort(np.random.default_rng(0).permutation(n)[: int(0.8 * n)]))
    return train, read_part("test_ground_truth")[0]


def _some(part: Endpoints, at: np.ndarray) -> Endpoints:
    return Endpoints([part.smiles[k] for k in at], part.values.iloc[at].reset_index(drop=True))


def run(options: StudyOptions) -> None:
    """Make the rows that are missing; the official ones at frozen defaults only."""
    frozen = source_of_library()["defaults"] is not None
    with options.rows("expansion", KEY) as rows:
        for protocol in options.sets or ((OFFICIAL, FOUR_FIFTHS, LATEST) if frozen else (LATEST,)):
            if protocol != LATEST and not frozen:
                raise ValueError(
                    f"{protocol!r} uses the test part, which only frozen defaults may: run this "
                    "where src/ is that of reproduction/frozen.json."
                )
            for method in options.methods or METHODS:
                key = {"protocol": protocol, "method": method}
                if not (protocol == FOUR_FIFTHS and method == "boosting"):
                    rows.add(key, scored, protocol, method, options.n_jobs, options.quick)


def scored(protocol: str, method: str, n_jobs: int, quick: bool = False) -> dict[str, Any]:
    """Fit a method and return the scores of each endpoint."""
    train, test = parts_of(protocol)
    if quick:
        rng = np.random.default_rng(0)
        train, test = (_some(x, rng.permutation(len(x.smiles))[:_QUICK]) for x in (train, test))
    start = time.process_time()
    found = (_panel if method == "panel" else _alone)(method, train, test, n_jobs)
    return {
        "endpoints": found,
        "n_train": len(train.smiles),
        "n_test": len(test.smiles),
        "cpu_seconds": time.process_time() - start,
        "data": digest(train.smiles, train.values.to_numpy()),
        "test_part": digest(test.smiles, test.values.to_numpy()),
    }


def _panel(
    method: str, train: Endpoints, test: Endpoints, n_jobs: int
) -> dict[str, dict[str, float]]:
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0).fit(train.smiles, train.values)
    # In blocks, as the frozen state had covariances of all molecules in memory.
    blocks = [test.smiles[k : k + _BLOCK] for k in range(0, len(test.smiles), _BLOCK)]
    table = pd.concat([model.predict_table(block) for block in blocks], ignore_index=True)
    found = {}
    for name, truth in test.values.items():
        mean = table[f"{name}_prediction"].to_numpy()
        median = table[f"{name}_median"].to_numpy() if f"{name}_median" in table else mean
        bounds = table[[f"{name}_lower_90", f"{name}_upper_90"]].to_numpy()
        found[str(name)] = endpoint_scores(truth, mean, median, bounds)
    return found


def _alone(
    method: str, train: Endpoints, test: Endpoints, n_jobs: int
) -> dict[str, dict[str, float]]:
    graphs, others = map(tl.as_graph_collection, (train.smiles, test.smiles))
    found = {}
    for name, values in train.values.items():
        known = np.flatnonzero(values.notna())
        model = make_model(method, classes=False).set_params(n_jobs=n_jobs)
        model.fit(graphs[known], values.to_numpy()[known])
        mean = median = model.predict(others)
        bounds = None
        if hasattr(model, "predict_interval"):
            median, bounds = model.predict(others, point="median"), model.predict_interval(others)
        found[str(name)] = endpoint_scores(test.values[name], mean, median, bounds)
    return found


def endpoint_scores(
    truth: pd.Series, mean: np.ndarray, median: np.ndarray, bounds: np.ndarray | None
) -> dict[str, float]:
    """Return R2 of means, absolute errors of medians, and the share within 90 % intervals.

    ``rae`` is the absolute error over that of the mean of the test part.

    Examples
    --------
    >>> truth, found = pd.Series([1.0, np.nan, 3.0]), np.array([1.0, 9.0, 2.0])
    >>> endpoint_scores(truth, found, found, None)
    {'n_test': 2, 'r2': 0.5, 'mae': 0.5, 'rae': 0.5}
    """
    known = truth.notna().to_numpy()
    y, middle = truth.to_numpy()[known], median[known]
    errors = np.abs(y - middle)
    found = {
        "n_test": int(known.sum()),
        "r2": float(r2_score(y, mean[known])),
        "mae": float(errors.mean()),
        "rae": float(errors.sum() / np.abs(y - y.mean()).sum()),
    }
    if bounds is not None:
        low, high = bounds[known].T
        found["coverage"] = float(np.mean((low <= y) & (y <= high)))
    return found
