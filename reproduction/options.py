"""What the defaults of evidence were chosen by: one setting changed at a time.

    TREELENS_DATA=... python -m reproduction options --out docs/results

Splits are others than those that results are shown on (seeds from 100 on).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.preprocessing import PowerTransformer

import treelens as tl
from reproduction.data import StudyOptions, load_molecules
from reproduction.laplace import best_laplace
from reproduction.protocol import N_OUTER, outer_split
from reproduction.rows import RowFile, versions
from treelens.evaluation.metrics import number_scores
from treelens.gp import evidence_search

NUMBERS = ("FreeSolv", "ESOL")
CLASSES = ("PTC_MR", "MUTAG")
# Strengths of the prior among which leave-one-out could choose instead: see the page.
STRENGTHS = {"prior strength 10": 10.0, "default": 30.0, "prior strength 100": 100.0}
N_SPLITS = 3
_SHARES = {"both": (-6.0, 6.0), "Tanimoto only": (5.999, 6.0), "distance only": (-6.0, -5.999)}
# name -> what differs from the default
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "uniform weights": {"weights": "uniform"},
    "depths only": {"weights": "depths"},
    "depth 2": {"depth": 2},
    "depth 3": {"depth": 3},
    "depth 5": {"depth": 5},
    "prior strength 10": {"prior_strength": 10.0},
    "prior strength 100": {"prior_strength": 100.0},
    "Tanimoto only": {"share": "Tanimoto only"},
    "distance only": {"share": "distance only"},
}
# What only numbers, or only classes, have: their trees, and other ways to treat the targets.
TREES = {
    "numbers": {
        "elements alone": ("labels",),
        "fine labels alone": ("fine",),
        "fine labels with bonds beside": ("labels", "fine", "fine+edges"),
    },
    "classes": {
        "labels alone": ("labels",),
        "structure beside": ("structure", "labels", "labels+edges"),
    },
}
TARGETS: dict[str, dict[str, dict[str, Any]]] = {
    "numbers": {"targets transformed (Yeo-Johnson)": {"targets": "transformed"}},
    "classes": {"Laplace's approximation": {"targets": "laplace"}},
}


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "evidence_options.jsonl", ("set", "option", "split"))
    for name in asked.sets or (*NUMBERS, *CLASSES):
        kind = "numbers" if name in NUMBERS else "classes"
        trees = {option: {"trees": chosen} for option, chosen in TREES[kind].items()}
        for option, settings in {**OPTIONS, **trees, **TARGETS[kind]}.items():
            if asked.methods and option not in asked.methods:
                continue
            for split in range(asked.repeats or (N_SPLITS if kind == "numbers" else N_OUTER)):
                row = {"set": name, "option": option, "split": split}
                if row not in rows:
                    found = _fit(name, kind, split, dict(settings), asked.n_jobs, asked.device)
                    rows.append({**row, **found, "device": asked.device, **versions()})
                    print(row, found, flush=True)


def _fit(
    name: str, kind: str, split: int, settings: dict[str, Any], n_jobs: int, device: str
) -> dict[str, Any]:
    start = time.perf_counter()
    # The mixture's share is learned within bounds; at a bound one part of the kernel is all.
    evidence_search.SCALE_BOUNDS[4] = _SHARES[settings.pop("share", "both")]
    settings |= {"n_jobs": n_jobs, "device": device, "random_state": 0}
    score = _score_number if kind == "numbers" else _score_class
    found = score(name, split, settings)
    return {**found, "seconds": time.perf_counter() - start}


def _score_number(name: str, split: int, settings: dict[str, Any]) -> dict[str, Any]:
    data = load_molecules(name)
    order = np.random.default_rng(100 + split).permutation(len(data.values))
    train, test = np.split(order, [int(0.8 * len(order))])
    way = _Normalized(data.values[train]) if settings.pop("targets", "") else _AsTheyAre()
    model = tl.GraphRegressor(**settings).fit(data.graphs[train], way.there(data.values[train]))
    mean, std = model.predict(data.graphs[test], return_std=True)
    found = number_scores(data.values[test], *way.back(mean, std))
    return {**found, "evidence": model.evidence_, "loo_loss": model.loo_.nlpd}


class _AsTheyAre:
    """Targets as they are."""

    def there(self, values: np.ndarray) -> np.ndarray:
        return values

    def back(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return mean, std


class _Normalized:
    """Targets made as normal as a power can (Yeo and Johnson 2000); predictions are medians."""

    def __init__(self, values: np.ndarray) -> None:
        self.transformer = PowerTransformer().fit(values[:, None])

    def there(self, values: np.ndarray) -> np.ndarray:
        return self.transformer.transform(values[:, None])[:, 0]

    def back(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return self.transformer.inverse_transform(mean[:, None])[:, 0], None


def _score_class(name: str, split: int, settings: dict[str, Any]) -> dict[str, Any]:
    graphs, y = tl.load_dataset(name)
    train, test = outer_split(np.unique(y, return_inverse=True)[1], 100, split, seed=0)
    laplace = bool(settings.pop("targets", ""))
    model = tl.GraphClassifier(**settings).fit(graphs[train], y[train])
    if laplace:
        probability = _laplace_probability(model, y[train], graphs[test])
    else:
        probability = model.predict_proba(graphs[test])[:, 1]
    positive = y[test] == model.classes_[1]
    own = np.where(positive, probability, 1.0 - probability)
    return {
        "accuracy": float(np.mean((probability > 0.5) == positive)),
        "log_loss": -float(np.mean(np.log(np.maximum(own, 1e-12)))),
        "evidence": model.evidence_,
        "loo_loss": model.loo_.log_loss,
    }


def _laplace_probability(model: Any, y: np.ndarray, new: Any) -> np.ndarray:
    """Laplace's approximation on the kernel that the model has learned, its size chosen anew."""
    fitted = model.model_
    basis = fitted.basis_graphs
    signs = np.where(y[fitted.basis_indices] == model.classes_[1], 1.0, -1.0)
    posterior = best_laplace(fitted.kernel_rows(basis) / fitted.scales.amplitude, signs)
    weighted = fitted.weighted
    graphs = weighted.features(weighted.forest.transform(new))
    rows = fitted.kernel_rows(graphs) / fitted.scales.amplitude
    return posterior.probability(rows, np.ones(len(rows)))
