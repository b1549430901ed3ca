"""Murcko scaffolds: the rings of a molecule and what links them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdkit.Chem import Mol

# RDKit's function takes time with the cube of the size: a minute for 3,000 atoms.
_MOST_ATOMS = 400


def murcko_scaffolds(molecules: Sequence[Any]) -> list[str]:
    """Return the SMILES of the scaffolds of molecules; empty for a molecule without rings."""
    return [scaffold_smiles(molecule) for molecule in molecules]


def scaffold_smiles(molecule: Mol) -> str:
    """Return the SMILES of the Murcko scaffold of an RDKit molecule; "" where it has no ring.

    That of a molecule of more than 400 atoms may be written in another way than RDKit does; two
    such molecules with the same scaffold have the same SMILES.

    Examples
    --------
    >>> from rdkit import Chem
    >>> scaffold_smiles(Chem.MolFromSmiles("CC(C)Cc1ccc(cc1)C(C)C(=O)O"))
    'c1ccccc1'
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    if molecule.GetNumAtoms() <= _MOST_ATOMS:
        return str(MurckoScaffoldSmiles(mol=molecule))
    return _pruned_smiles(molecule)


def _pruned_smiles(molecule: Mol) -> str:
    """Return the SMILES of what is left when atoms at open ends are cut off until there are none.

    As in RDKit's scaffolds, atoms with a double bond to the rest stay.
    """
    from rdkit import Chem

    degrees = [atom.GetDegree() for atom in molecule.GetAtoms()]
    kept = set(range(len(degrees)))
    ends = [k for k in kept if degrees[k] <= 1]
    while ends:
        end = ends.pop()
        kept.discard(end)
        for neighbor in molecule.GetAtomWithIdx(end).GetNeighbors():
            k = neighbor.GetIdx()
            degrees[k] -= 1
            if k in kept and degrees[k] == 1:
                ends.append(k)
    if not kept:
        return ""
    double = [
        {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()}
        for bond in molecule.GetBonds()
        if bond.GetBondType() == Chem.BondType.DOUBLE
    ]
    return _smiles_of_part(molecule, kept.union(*(atoms for atoms in double if atoms & kept)))


def _smiles_of_part(molecule: Mol, kept: set[int]) -> str:
    """Return the SMILES of some atoms, as a molecule with hydrogens where others were cut off."""
    from rdkit import Chem

    part = Chem.RWMol(molecule)
    part.BeginBatchEdit()
    for atom in part.GetAtoms():
        if atom.GetIdx() not in kept:
            part.RemoveAtom(atom.GetIdx())
        elif atom.GetIsAromatic() and atom.GetSymbol() != "C":  # n with a substituent: [nH]
            n_cut = sum(other.GetIdx() not in kept for other in atom.GetNeighbors())
            atom.SetNumExplicitHs(atom.GetNumExplicitHs() + n_cut)
    part.CommitBatchEdit()
    part.UpdatePropertyCache(strict=False)
    return str(Chem.MolToSmiles(part, isomericSmiles=False))
