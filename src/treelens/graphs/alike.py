"""Molecules that are read as the graphs of a recipe were: one function per kind of raw data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treelens.graphs.collection import GraphCollection
from treelens.graphs.gathering import rdkit
from treelens.graphs.molecules import (
    molecules_by_recipe,
    molecules_of_table,
    smiles_by_recipe,
)
from treelens.graphs.rdkit_log import quiet
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.sdf import read_sdf


def smiles_alike(smiles: Sequence[str], recipe: GraphRecipe | None) -> GraphCollection:
    """SMILES strings.

    Examples
    --------
    >>> recipe = GraphRecipe.of_molecules(atom_label="element+charge")
    >>> smiles_alike(["C[NH3+]"], recipe)[0].node_labels
    ('C', 'N+1')
    """
    return smiles_by_recipe(smiles, _followed(recipe, "smiles"))


def molecules_alike(molecules: Sequence[Any], recipe: GraphRecipe | None) -> GraphCollection:
    """RDKit molecules; their hydrogens go where the recipe has none."""
    if recipe is not None and recipe.is_molecular and recipe.hydrogens is False:
        molecules = [without_hydrogens(molecule) for molecule in molecules]
    return molecules_by_recipe(molecules, _followed(recipe, "rdkit"))


def sdf_alike(path: Path, recipe: GraphRecipe | None) -> GraphCollection:
    """The molecules of an SDF."""
    followed = _followed(recipe, "sdf")
    molecules, table = read_sdf(path, keep_hydrogens=bool(followed.hydrogens))
    read = molecules_of_table(table, {"mol": molecules}, None, recipe=followed, on_invalid="raise")
    assert read is not None, "only parts of a table may be empty"
    return read[0]


def _followed(recipe: GraphRecipe | None, reader: str) -> GraphRecipe:
    return (recipe or GraphRecipe()).for_new_molecules(reader)


def without_hydrogens(molecule: Any) -> Any:
    """The molecule with implicit hydrogens; None stays None."""
    if molecule is None or molecule.GetNumHeavyAtoms() == molecule.GetNumAtoms():
        return molecule
    with quiet():
        return rdkit().RemoveHs(molecule)
