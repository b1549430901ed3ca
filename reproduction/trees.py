"""Which labels of atoms: by element, by charge, hydrogens and ring, both, with and without bonds.

TREELENS_DATA=... python -m reproduction trees --out docs/results
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, load_molecules
from reproduction.numbers import random_splits
from reproduction.pages import command_line, markdown_table, write_page
from reproduction.rows import RowFile, versions
from treelens.evaluation.metrics import number_scores

# Of assays only the published training part is looked at: the choice must not see the rest.
SETS = (
    "FreeSolv", "ESOL", "CHEMBL2835_Ki", "CHEMBL2047_EC50", "CHEMBL2034_Ki", "CHEMBL1862_Ki",
    "CHEMBL4005_Ki", "CHEMBL231_Ki", "CHEMBL218_EC50", "CHEMBL239_EC50",
)  # fmt: skip
TREES = {
    "element": ("labels",),
    "fine": ("fine",),
    "element and fine": ("labels", "fine"),
    "both with bonds": ("labels+edges", "fine+edges"),
}
DEFAULT = "element and fine"
N_SPLITS = 2


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "trees.jsonl", ("set", "split", "trees"))
    for name in asked.sets or SETS:
        data = load_molecules(name)
        for split, train, test in random_splits(len(data.values), asked.repeats or N_SPLITS):
            for trees in asked.methods or TREES:
                row = {"set": name, "split": split, "trees": trees}
                if row in rows:
                    continue
                start = time.perf_counter()
                model = tl.GraphRegressor(
                    trees=TREES[trees], device=asked.device, n_jobs=asked.n_jobs, random_state=0
                ).fit(data.graphs[train], data.values[train])
                mean, std = model.predict(data.graphs[test], return_std=True)
                found = number_scores(data.values[test], mean, std)
                facts = {"rmse": found["rmse"], "evidence": model.evidence_, "n": len(train)}
                rows.append({**row, **facts, "seconds": time.perf_counter() - start, **versions()})
                print(row, round(float(found["rmse"] or 0.0), 4), flush=True)


def write_trees(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The page: errors relative to those of the default, on splits that all kinds have."""
    keys = [{(r["set"], r["split"]) for r in rows if r["trees"] == t} for t in TREES]
    whole = set.intersection(*keys)
    error = {(r["set"], r["split"], r["trees"]): r["rmse"] for r in rows}
    sets = [name for name in dict.fromkeys(r["set"] for r in rows) if name in {n for n, _ in whole}]
    means = {
        (name, t): float(np.mean([error[(*key, t)] for key in whole if key[0] == name]))
        for name in sets
        for t in TREES
    }
    lines = [[name, *(f"{means[name, t]:.3f}" for t in TREES)] for name in sets]
    ratios = {
        t: float(np.mean([means[name, t] / means[name, DEFAULT] - 1.0 for name in sets]))
        for t in TREES
    }
    lines.append(["mean, relative to the default", *(f"{100 * ratios[t]:+.1f} %" for t in TREES)])
    parts = [
        f"Root mean squared errors of `GraphRegressor` on random 80/20 splits of {len(sets)} sets "
        "(of assays, of the published training part), by what the patterns are made of: elements; "
        "elements with charge, hydrogens and ring; both, in two trees that share their first "
        "level, which is the default; both with the orders of bonds.",
        markdown_table(["set", *TREES], lines),
    ]
    write_page(out / "trees.md", "Which labels of atoms", command_line("trees"), parts)
