"""RDKit's descriptors of molecules, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

PREFIX = "rdkit:"
# Cheap descriptors of what a graph kernel represents least well: size, polarity and flexibility of
# the whole molecule. Names are RDKit's, but for the formal charge, which it does not list.
COMPACT_DESCRIPTORS = (
    "MolLogP", "MolMR", "TPSA", "LabuteASA", "MolWt", "HeavyAtomCount", "NumHeteroatoms",
    "NumHDonors", "NumHAcceptors", "NHOHCount", "NOCount", "NumRotatableBonds", "RingCount",
    "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings", "NumAromaticHeterocycles",
    "FractionCSP3", "HallKierAlpha", "Kappa2", "FormalCharge",
)  # fmt: skip


def rdkit_descriptors(molecules: Sequence[Any], names: Sequence[str] | None = None) -> np.ndarray:
    """Descriptors of RDKit molecules, shape (n_molecules, n_descriptors); NaN where undefined.

    ``names`` are RDKit's, ``"MolLogP"``; by default all of :func:`descriptor_names`. RDKit keeps
    the Crippen contributions on a molecule, so that MolMR costs nothing after MolLogP.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import Descriptors

    functions = {**dict(Descriptors._descList), "FormalCharge": Chem.GetFormalCharge}
    chosen = [functions[name] for name in (descriptor_names() if names is None else names)]
    table = np.empty((len(molecules), len(chosen)))
    with rdBase.BlockLogs():
        for row, molecule in enumerate(molecules):
            table[row] = [_number(function, molecule) for function in chosen]
    table[~np.isfinite(table) | (np.abs(table) > 1e12)] = np.nan  # some overflow
    return table


def descriptor_names() -> list[str]:
    """All descriptors that RDKit has, in its order."""
    from rdkit.Chem import Descriptors

    return [name for name, _ in Descriptors._descList]


def _number(function: Any, molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ValueError, ZeroDivisionError, RuntimeError):
        return float("nan")
