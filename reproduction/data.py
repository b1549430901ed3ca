"""Options of a study, and where it finds its data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import treelens as tl
from reproduction.rows import RowFile
from treelens.chem.molecules import smiles_to_collection


@dataclass(frozen=True)
class StudyOptions:
    """Options of the command line; None means all, or the study's own number."""

    out: Path
    sets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    repeats: int | None = None
    n_jobs: int = -1
    quick: bool = False
    part: str | None = None
    seconds: float | None = None
    worker: tuple[int, int] = (0, 1)
    sample: int | None = None
    seed: int = 0

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
        assay = load_assay(name)
        train = np.flatnonzero(~assay.test)
        smiles = [assay.smiles[k] for k in train]
        return Molecules(assay.graphs[train], smiles, assay.values[train])
    graphs, values = tl.read_smiles(data_folder() / f"smiles/{name}.csv.gz", target="value")
    return Molecules(graphs, list(graphs.graph_data["smiles"]), np.asarray(values))


@dataclass(frozen=True)
class Assay(Molecules):
    """An assay of MoleculeACE with its published test part and its activity cliffs."""

    test: np.ndarray
    cliff: np.ndarray

    @property
    def split(self) -> tuple[np.ndarray, np.ndarray]:
        """Training and test part."""
        return np.flatnonzero(~self.test), np.flatnonzero(self.test)


def load_assay(name: str) -> Assay:
    """Load all molecules of an assay."""
    table = pd.read_csv(data_folder() / "moleculeace" / f"{name}.csv.gz")
    smiles = table["smiles"].tolist()
    return Assay(
        smiles_to_collection(smiles),
        smiles,
        table["value"].to_numpy(),
        (table["split"] == "test").to_numpy(),
        (table["cliff"] == 1).to_numpy(),
    )


def random_splits(n: int, n_splits: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield 80/20 splits, numbered by their seeds."""
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n)
        yield seed, order[: int(0.8 * n)], order[int(0.8 * n) :]


def load_classes(name: str) -> tuple[Any, np.ndarray]:
    """Load molecules with 1 for the positive class and 0 for the other."""
    path = data_folder() / f"smiles/{name}.csv.gz"
    graphs, y = tl.read_smiles(path, target="label", on_invalid="skip")
    return graphs, (np.asarray(y) == np.max(y)).astype(int)


# The 22 sets of the TDC ADMET group, and what each is scored by.
TDC_SETS = {
    "caco2_wang": "mae",
    "hia_hou": "roc_auc",
    "pgp_broccatelli": "roc_auc",
    "bioavailability_ma": "roc_auc",
    "lipophilicity_astrazeneca": "mae",
    "solubility_aqsoldb": "mae",
    "bbb_martins": "roc_auc",
    "ppbr_az": "mae",
    "vdss_lombardo": "spearman",
    "cyp2d6_veith": "pr_auc",
    "cyp3a4_veith": "pr_auc",
    "cyp2c9_veith": "pr_auc",
    "cyp2d6_substrate_carbonmangels": "pr_auc",
    "cyp3a4_substrate_carbonmangels": "roc_auc",
    "cyp2c9_substrate_carbonmangels": "pr_auc",
    "half_life_obach": "spearman",
    "clearance_microsome_az": "spearman",
    "clearance_hepatocyte_az": "spearman",
    "herg": "roc_auc",
    "ames": "roc_auc",
    "dili": "roc_auc",
    "ld50_zhu": "mae",
}


def read_tdc(name: str, part: str) -> pd.DataFrame:
    """Return a published part of a set, ``"train_val"`` or ``"test"``: columns Drug and Y."""
    return pd.read_csv(data_folder() / "tdc" / f"{name}.{part}.csv.gz")
