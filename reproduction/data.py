"""What a study is told, and where it finds its data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from treelens.graphs.molecules import smiles_to_collection


@dataclass(frozen=True)
class StudyOptions:
    """What the command line asks of a study; None means all, or the study's own number."""

    out: Path
    sets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    repeats: int | None = None
    data: Path | None = None
    n_jobs: int = -1
    device: str = "cpu"


def data_folder() -> Path:
    """The folder that ``TREELENS_DATA`` names."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        raise SystemExit("Set TREELENS_DATA to a folder with smiles/, tu/ and moleculeace/.")
    return Path(folder)


@dataclass(frozen=True)
class Molecules:
    """A set of molecules with a number for each."""

    graphs: Any
    smiles: list[str]
    values: np.ndarray


def load_molecules(name: str) -> Molecules:
    """A set by its name; of MoleculeACE's assays (``CHEMBL...``) the published training part."""
    if name.startswith("CHEMBL"):
        from reproduction.moleculeace import read_assay

        path = next((data_folder() / "moleculeace").glob(f"{name}.csv*"))
        table = [row for row in read_assay(path) if not row["test"]]
        smiles = [row["smiles"] for row in table]
        values = np.array([row["value"] for row in table])
        return Molecules(smiles_to_collection(smiles), smiles, values)
    graphs, values = tl.read_smiles(data_folder() / f"smiles/{name}.csv.gz", target="value")
    return Molecules(graphs, list(graphs.graph_data["smiles"]), values)
