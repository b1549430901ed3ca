"""MoleculeACE: activities of molecules with cliffs, on the published splits.

    python -m reproduction moleculeace --out docs/results --data FOLDER

``FOLDER`` holds one table per assay, ``NAME.csv`` or ``NAME.csv.gz``, with columns ``smiles``,
``value`` (pKi or pEC50), ``split`` (train or test) and ``cliff`` (1 on an activity cliff); also the
files of the MoleculeACE repository itself, whose columns are ``smiles``, ``y``, ``split`` and
``cliff_mol``. All thirty are run where all thirty are there.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.data import StudyOptions, data_folder
from reproduction.numbers import METHODS, fit_and_score
from reproduction.rows import RowFile, versions
from treelens.graphs.molecules import smiles_to_collection


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    folder = asked.data if asked.data is not None else data_folder() / "moleculeace"
    rows = RowFile(asked.out / "moleculeace.jsonl", ("set", "method"))
    for path in sorted(folder.glob("*.csv*"), key=lambda path: path.stat().st_size):
        name = path.name.split(".")[0]
        if asked.sets and name not in asked.sets:
            continue
        table = read_assay(path)
        smiles = [row["smiles"] for row in table]
        values = np.array([row["value"] for row in table])
        test = np.array([row["test"] for row in table])
        cliff = np.array([row["cliff"] for row in table])
        graphs = smiles_to_collection(smiles)
        for method in asked.methods or METHODS:
            row = {"set": name, "method": method}
            if row in rows:
                continue
            train, held_out = np.flatnonzero(~test), np.flatnonzero(test)
            found = _with_cliffs(
                method, graphs, smiles, values, train, held_out, cliff, asked.n_jobs, asked.device
            )
            rows.append({**row, **found, "device": asked.device, **versions()})
            print(row, round(found["rmse"], 4), f"{found['seconds']:.1f} s", flush=True)


def _with_cliffs(
    method: str,
    graphs: Any,
    smiles: Sequence[str],
    values: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    cliff: np.ndarray,
    n_jobs: int,
    device: str = "cpu",
) -> dict[str, Any]:
    found = fit_and_score(method, graphs, smiles, values, train, test, n_jobs, device)
    errors = np.array(found.pop("errors"))
    found["rmse_cliff"] = float(np.sqrt(np.mean(errors[cliff[test]] ** 2)))
    return {**found, "n_test": len(test), "n_cliff": int(cliff[test].sum())}


def read_assay(path: Path) -> list[dict[str, Any]]:
    """The rows of one assay, of either kind of table."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as stream:
        rows = list(csv.DictReader(stream))
    published = "cliff_mol" in rows[0]
    return [
        {
            "smiles": row["smiles"],
            "value": float(row["y"] if published else row["value"]),
            "test": row["split"] == "test",
            "cliff": int(float(row["cliff_mol" if published else "cliff"])) == 1,
        }
        for row in rows
    ]
