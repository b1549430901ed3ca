"""What the defaults of evidence were chosen by: one setting changed at a time.

    TREELENS_DATA=... python -m reproduction options --out docs/results

Splits are others than those that results are shown on (seeds from 100 on).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, data_folder
from reproduction.protocol import N_OUTER, outer_split
from reproduction.rows import RowFile, versions
from treelens.learning import evidence_search
from treelens.selection.metrics import number_scores

NUMBERS = ("FreeSolv", "ESOL")
CLASSES = ("PTC_MR", "MUTAG")
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


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "evidence_options.jsonl", ("set", "option", "split"))
    for name in asked.sets or (*NUMBERS, *CLASSES):
        kind = "numbers" if name in NUMBERS else "classes"
        trees = {option: {"trees": chosen} for option, chosen in TREES[kind].items()}
        for option, settings in {**OPTIONS, **trees}.items():
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
    graphs, values = tl.read_smiles(data_folder() / f"smiles/{name}.csv.gz", target="value")
    order = np.random.default_rng(100 + split).permutation(len(graphs))
    train, test = np.split(order, [int(0.8 * len(graphs))])
    model = tl.GraphRegressor(**settings).fit(graphs[train], values[train])
    mean, std = model.predict(graphs[test], return_std=True)
    return {**number_scores(values[test], mean, std), "evidence": model.evidence_}


def _score_class(name: str, split: int, settings: dict[str, Any]) -> dict[str, Any]:
    graphs, y = tl.load_dataset(name)
    train, test = outer_split(np.unique(y, return_inverse=True)[1], 100, split, seed=0)
    model = tl.GraphClassifier(**settings).fit(graphs[train], y[train])
    return {"accuracy": float(model.score(graphs[test], y[test])), "evidence": model.evidence_}
