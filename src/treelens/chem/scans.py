"""Scans: small changes at every position of a molecule, whether anybody has made them or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from treelens.chem.matched_pairs import (
    attachment,
    cleaned,
    context_of,
    hydrogen_cuts,
    joined,
    substituent_text,
)
from treelens.chem.parsing import quiet, rdkit

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_METHYL = ("C[*:1]",)
_ON_AROMATIC_CARBON = (*_METHYL, "F[*:1]", "Cl[*:1]", "CO[*:1]", "O[*:1]", "N#C[*:1]")
_CARBON, _NITROGEN = 6, 7
_AROMATIC_CH = "[cH1;+0]"
_THREE_IN_A_ROW = "[a;!#6]:[a;!#6]:[a;!#6]"  # heteroatoms: few such rings are stable


class Scan(NamedTuple):
    """A new molecule, and what was changed where."""

    smiles: str
    text: str  # such as "H >> F"
    at: str  # as context_of


def scans(molecule: Mol) -> Iterator[Scan]:
    """Yield a molecule with methyl for each hydrogen of uncharged carbon and nitrogen, and more.

    An aromatic CH has F, Cl, OMe, OH and CN for its hydrogen as well, and becomes N.
    """
    for constant, hydrogen in sorted(hydrogen_cuts(molecule)):
        for variable in _put_on(constant):
            if (smiles := joined(constant, variable)) is not None:
                text = f"{substituent_text(hydrogen)} >> {substituent_text(variable)}"
                yield Scan(smiles, text, attachment(constant)[0])
    yield from _nitrogen_for_carbon(molecule)


def _put_on(constant: str) -> tuple[str, ...]:
    """Return what is put in the place of a hydrogen, by the atom that carries it."""
    with quiet():
        molecule = rdkit().MolFromSmiles(constant)
    end = next(atom for atom in molecule.GetAtoms() if atom.GetAtomMapNum() == 1)
    (carrier,) = end.GetNeighbors()
    if carrier.GetFormalCharge() or carrier.GetAtomicNum() not in (_CARBON, _NITROGEN):
        return ()
    aromatic = carrier.GetIsAromatic() and carrier.GetAtomicNum() == _CARBON
    return _ON_AROMATIC_CARBON if aromatic else _METHYL


def _nitrogen_for_carbon(molecule: Mol) -> Iterator[Scan]:
    """Yield the molecule with a nitrogen atom in the place of each aromatic CH."""
    chem = rdkit()
    row = chem.MolFromSmarts(_THREE_IN_A_ROW)
    n_rows = len(molecule.GetSubstructMatches(row))
    for (atom,) in molecule.GetSubstructMatches(chem.MolFromSmarts(_AROMATIC_CH)):
        changed = chem.RWMol(molecule)
        changed.GetAtomWithIdx(atom).SetAtomicNum(_NITROGEN)
        changed.GetAtomWithIdx(atom).SetNumExplicitHs(0)
        with quiet():
            if chem.SanitizeMol(changed, catchErrors=True) != chem.SANITIZE_NONE:
                continue
            smiles = cleaned(changed)
        if smiles is not None and len(changed.GetSubstructMatches(row)) <= n_rows:
            yield Scan(smiles, "CH >> N", context_of(molecule, atom))
