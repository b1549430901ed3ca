"""RDKit's descriptors of molecules, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.crippen import crippen_descriptors
from treelens.graphs.gathering import MOST_ATOMS_IN_A_MATRIX

PREFIX = "rdkit:"
_CRIPPEN = ("MolLogP", "MolMR")
# Cheap descriptors of what a graph kernel represents least well: size, polarity and flexibility of
# the whole molecule. Names are RDKit's, but for the formal charge, which it does not list.
COMPACT_DESCRIPTORS = (
    "MolLogP", "MolMR", "TPSA", "LabuteASA", "MolWt", "HeavyAtomCount", "NumHeteroatoms",
    "NumHDonors", "NumHAcceptors", "NHOHCount", "NOCount", "NumRotatableBonds", "RingCount",
    "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings", "NumAromaticHeterocycles",
    "FractionCSP3", "HallKierAlpha", "Kappa2", "FormalCharge",
)  # fmt: skip


def rdkit_descriptors(
    molecules: Sequence[Any],
    names: Sequence[str] | None = None,
    graphs: GraphCollection | None = None,
) -> np.ndarray:
    """Descriptors of RDKit molecules, shape (n_molecules, n_descriptors); NaN where undefined.

    ``names`` are RDKit's, ``"MolLogP"``; by default all of :func:`descriptor_names`. ``graphs``
    that were read from these molecules save time.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import Descriptors

    functions = dict(Descriptors._descList)
    functions |= {"FormalCharge": Chem.GetFormalCharge, "Kappa2": _kappa2}
    names = descriptor_names() if names is None else names
    columns: dict[str, np.ndarray] = {}
    with rdBase.BlockLogs():
        if graphs is not None and set(_CRIPPEN) & set(names):
            columns |= zip(_CRIPPEN, crippen_descriptors(graphs, molecules).T, strict=True)
        others = [name for name in names if name not in columns]
        chosen = [functions[name] for name in others]
        found = np.array([[_number(f, molecule) for f in chosen] for molecule in molecules])
    columns |= zip(others, found.reshape(-1, len(others)).T, strict=True)
    table = np.column_stack([columns[name] for name in names])
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


def _kappa2(molecule: Any) -> float:
    """Kier's second shape index, without listing the paths of two bonds."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    n, alpha = molecule.GetNumAtoms(), rdMolDescriptors.CalcHallKierAlpha(molecule)
    if n > MOST_ATOMS_IN_A_MATRIX or molecule.GetNumHeavyAtoms() < n:
        return rdMolDescriptors.CalcKappa2(molecule)
    degrees = Chem.GetAdjacencyMatrix(molecule).sum(axis=0)
    n_paths = 0.5 * float(degrees @ (degrees - 1))
    squared = (n_paths + alpha) ** 2
    return (n + alpha - 1.0) * (n + alpha - 2.0) ** 2 / squared if squared > 0.0 else 0.0
