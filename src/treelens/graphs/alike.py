"""Molecules that are read as the graphs of a recipe were: one function per kind of raw data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treelens.graphs.collection import GraphCollection
from treelens.graphs.molecules import (
    ATOM_LABELS,
    molecules_to_collection,
    read_smiles,
    smiles_to_collection,
)
from treelens.graphs.recipe import GraphRecipe


def smiles_alike(smiles: Sequence[str], recipe: GraphRecipe | None) -> GraphCollection:
    """SMILES strings.

    Examples
    --------
    >>> recipe = smiles_to_collection(["CCO"], atom_label="element+charge").recipe
    >>> smiles_alike(["C[NH3+]"], recipe)[0].node_labels
    ('C', 'N+1')
    """
    return smiles_to_collection(smiles, **_settings(recipe))


def molecules_alike(molecules: Sequence[Any], recipe: GraphRecipe | None) -> GraphCollection:
    """RDKit molecules; their hydrogens go where the recipe has none."""
    if recipe is not None and recipe.is_molecular and recipe.hydrogens is False:
        molecules = [_without_hydrogens(molecule) for molecule in molecules]
    return molecules_to_collection(molecules, **_settings(recipe))


def sdf_alike(path: Path, recipe: GraphRecipe | None) -> GraphCollection:
    """The molecules of an SDF."""
    return read_smiles(path, target=None, **_settings(recipe))[0]


def _settings(recipe: GraphRecipe | None) -> dict[str, Any]:
    return {} if recipe is None else recipe.molecule_settings(ATOM_LABELS)


def _without_hydrogens(molecule: Any) -> Any:
    if molecule is None or molecule.GetNumHeavyAtoms() == molecule.GetNumAtoms():
        return molecule
    from rdkit import Chem

    return Chem.RemoveHs(molecule)
