"""Bemis-Murcko scaffolds: the ring systems of molecules and what links them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def murcko_scaffolds(molecules: Sequence[Any]) -> list[str]:
    """SMILES of the ring systems and what links them; empty for a molecule without rings."""
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    return [MurckoScaffoldSmiles(mol=molecule) for molecule in molecules]
