"""Options of a study, and where it finds its data."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.rows import RowFile
from treelens.graphs.molecules import smiles_to_collection


@dataclass(frozen=True)
class StudyOptions:
    """Options of the command line; None means all, or the study's own number."""

    out: Path
    sets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    repeats: int | None = None
    data: Path | None = None
    n_jobs: int = -1
    device: str = "cpu"
    quick: bool = False
    part: str | None = None
    seconds: float | None = None
    worker: tuple[int, int] = (0, 1)

    def rows(self, name: str, key: Sequence[str], shared: bool = False) -> RowFile:
        """Open the file of rows of a study; with ``shared``, other runs may add rows, too."""
        return RowFile(self.out / "rows" / f"{name}.jsonl", key, shared)


def data_folder() -> Path:
    """Return the folder that ``TREELENS_DATA`` names."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        raise ValueError("Set TREELENS_DATA to a folder with smiles/, tu/ and moleculeace/.")
    return Path(folder)


@dataclass(frozen=True)
class Molecules:
    """A set of molecules with a number for each."""

    graphs: Any
    smiles: list[str]
    values: np.ndarray


def load_molecules(name: str) -> Molecules:
    """Load a set by name; of a MoleculeACE assay (``CHEMBL...``) the published training part."""
    if name.startswith("CHEMBL"):
        path = next((data_folder() / "moleculeace").glob(f"{name}.csv*"))
        table = [row for row in read_assay(path) if not row["test"]]
        smiles = [row["smiles"] for row in table]
        values = np.array([row["value"] for row in table])
        return Molecules(smiles_to_collection(smiles), smiles, values)
    graphs, values = tl.read_smiles(data_folder() / f"smiles/{name}.csv.gz", target="value")
    return Molecules(graphs, list(graphs.graph_data["smiles"]), np.asarray(values))


def load_classes(name: str) -> tuple[Any, np.ndarray]:
    """Load molecules with 1 for the positive class and 0 for the other."""
    path = data_folder() / f"smiles/{name}.csv.gz"
    graphs, y = tl.read_smiles(path, target="label", on_invalid="skip")
    return graphs, (np.asarray(y) == np.max(y)).astype(int)


def read_assay(path: Path) -> list[dict[str, Any]]:
    """Read one assay: columns smiles, value, split, cliff, or those of MoleculeACE's own files."""
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
