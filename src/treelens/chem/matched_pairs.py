"""Matched pairs: molecules that differ by one substituent, and the atoms in which two differ."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.chem.parsing import quiet, rdkit

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol

HYDROGEN = "[H][*:1]"
CONTEXT_BONDS = 2  # from the atom that carries a substituent, within which molecules must agree
_MOST_BONDS, _MOST_ATOMS = 40, 100  # of a molecule that is cut; larger ones take minutes
_WITHOUT_BRACKETS = {
    "B",
    "C",
    "N",
    "O",
    "S",
    "P",
    "F",
    "Cl",
    "Br",
    "I",
    "b",
    "c",
    "n",
    "o",
    "s",
    "p",
}
_SECONDS = 1  # for the largest common substructure of two molecules


class Cut(NamedTuple):
    """A molecule as two parts, SMILES with ``[*:1]`` where they were joined."""

    constant: str
    variable: str


class Change(NamedTuple):
    """One substituent for another at an atom and what is around it, as :func:`context_of`."""

    before: str
    after: str
    at: str

    @property
    def text(self) -> str:
        return f"{substituent_text(self.before)} >> {substituent_text(self.after)}"


def cuts_of(molecule: Mol, largest: int) -> set[Cut]:
    """All single cuts of a molecule whose smaller part has at most ``largest`` heavy atoms."""
    from rdkit.Chem import rdMMPA

    if molecule.GetNumHeavyAtoms() > _MOST_ATOMS:
        return set()
    found = rdMMPA.FragmentMol(
        molecule, minCuts=1, maxCuts=1, maxCutBonds=_MOST_BONDS, resultsAsMols=False
    )
    cuts = set()
    for _, text in found:
        parts = sorted(text.split("."), key=lambda part: (_heavy_atoms(part), part))
        if len(parts) == 2 and _heavy_atoms(parts[0]) <= largest:
            cuts.add(Cut(parts[1], parts[0]))
            if _heavy_atoms(parts[0]) == _heavy_atoms(parts[1]):
                cuts.add(Cut(*parts))
    return cuts


def hydrogen_cuts(molecule: Mol) -> set[Cut]:
    chem, cuts = rdkit(), set()
    whole = chem.AddHs(molecule)
    for hydrogen in range(molecule.GetNumAtoms(), whole.GetNumAtoms()):
        opened = chem.RWMol(whole)
        end = opened.GetAtomWithIdx(hydrogen)
        end.SetAtomicNum(0)
        end.SetAtomMapNum(1)
        with quiet():
            cuts.add(Cut(chem.MolToSmiles(chem.RemoveHs(opened)), HYDROGEN))
    return cuts


@lru_cache(maxsize=200_000)
def _heavy_atoms(smiles: str) -> int:
    return int(rdkit().MolFromSmiles(smiles, sanitize=False).GetNumHeavyAtoms()) - 1


@lru_cache(maxsize=200_000)
def attachment(constant: str) -> tuple[str, str]:
    """Where a constant part is joined, as :func:`context_of`, and its SMILES with a hydrogen."""
    chem = rdkit()
    with quiet():
        molecule = chem.MolFromSmiles(constant)
        end = next(a for a in molecule.GetAtoms() if a.GetAtomMapNum() == 1)
        (atom,) = end.GetNeighbors()
        context = context_of(molecule, atom.GetIdx(), end.GetIdx())
        end.SetAtomMapNum(0)
        end.SetAtomicNum(1)
        return context, chem.MolToSmiles(chem.RemoveHs(molecule))


def context_of(molecule: Mol, carrier: int, end: int = -1) -> str:
    """Return the atoms around one that carries a substituent ``*``, two bonds far, as SMARTS.

    ``[C;R]`` is an atom in a ring that is not aromatic, ``C`` one in an open chain. ``end`` is the
    place of the substituent where it has been cut off.
    """
    inside = {carrier}
    for _ in range(CONTEXT_BONDS):
        atoms = [molecule.GetAtomWithIdx(known) for known in inside]
        inside |= {near.GetIdx() for atom in atoms for near in atom.GetNeighbors()} - {end}
    text = rdkit().MolFragmentToSmiles(
        molecule,
        sorted(inside),
        atomSymbols=[atom_symbol(each) for each in molecule.GetAtoms()],
        isomericSmiles=False,
        rootedAtAtom=carrier,
    )
    return f"*{text}"


def atom_symbol(atom: Atom) -> str:
    """Return an atom with its charge and whether it is in a ring, as SMARTS."""
    aromatic = atom.GetIsAromatic()
    symbol = atom.GetSymbol().lower() if aromatic else atom.GetSymbol()
    charge = atom.GetFormalCharge()
    symbol += f"{charge:+d}" if charge else ""
    symbol += ";R" if atom.IsInRing() and not aromatic else ""
    return symbol if symbol in _WITHOUT_BRACKETS else f"[{symbol}]"


@lru_cache(maxsize=10_000)
def substituent_text(variable: str) -> str:
    """A substituent from where it is joined: ``"OC"`` is methoxy, ``"H"`` a hydrogen."""
    if variable == HYDROGEN:
        return "H"
    chem = rdkit()
    molecule = chem.MolFromSmiles(variable)
    end = next(a.GetIdx() for a in molecule.GetAtoms() if a.GetAtomMapNum() == 1)
    return chem.MolToSmiles(molecule, rootedAtAtom=end).replace("[*:1]", "", 1)


def joined(constant: str, variable: str) -> str | None:
    """The canonical SMILES of two parts put together; None where RDKit refuses the molecule."""
    chem = rdkit()
    with quiet():
        if variable == HYDROGEN:
            return attachment(constant)[1]
        whole = chem.molzip(chem.MolFromSmiles(constant), chem.MolFromSmiles(variable))
        if whole is None or chem.SanitizeMol(whole, catchErrors=True) != chem.SANITIZE_NONE:
            return None
        return cleaned(whole)


def cleaned(molecule: Mol) -> str | None:
    """Return the canonical SMILES, without stereo marks of what is no stereocentre (any more).

    None where RDKit would not read it again.
    """
    chem = rdkit()
    again = chem.MolFromSmiles(chem.MolToSmiles(molecule))
    return None if again is None else chem.MolToSmiles(again)


def matched_pairs(
    molecules: Sequence[Any], largest: int = 10, wanted: Container[str] | None = None
) -> Iterator[tuple[Change, int, int]]:
    """Yield the changes between matched pairs, from ``wanted`` parts, and the two positions."""
    groups: dict[str, dict[str, int]] = {}  # constant part -> variable part -> position
    whole: dict[str, int] = {}
    for position, molecule in enumerate(molecules):
        whole.setdefault(rdkit().MolToSmiles(molecule), position)
        for cut in cuts_of(molecule, largest):
            groups.setdefault(cut.constant, {}).setdefault(cut.variable, position)
    for constant, members in groups.items():
        at, bare = attachment(constant)
        if bare in whole:
            members[HYDROGEN] = whole[bare]
        for before, one in members.items():
            if wanted is None or before in wanted:
                for after, other in members.items():
                    if before != after and one != other:
                        yield Change(before, after, at), one, other


def atoms_that_differ(molecules: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Return the atoms of each of two molecules outside their largest common substructure."""
    from rdkit.Chem import rdFMCS

    common = rdFMCS.FindMCS(
        list(molecules), timeout=_SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True
    )
    query = rdkit().MolFromSmarts(common.smartsString) if common.numAtoms else None
    shared = [() if query is None else m.GetSubstructMatch(query) for m in molecules]
    return tuple(
        tuple(atom for atom in range(m.GetNumAtoms()) if atom not in inside)
        for m, inside in zip(molecules, shared, strict=True)
    )
