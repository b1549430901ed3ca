"""Matched molecular pairs: two molecules that differ by one substituent.

RDKit's ``rdMMPA`` cuts every molecule at each single bond outside of rings. Two molecules with the
same larger side (the constant part) are a pair, and the change is from one smaller side to the
other: ``F >> Cl``. A hydrogen is a substituent like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from treelens.graphs.chem import quiet, rdkit

HYDROGEN = "[H][*:1]"
_MOST_BONDS, _MOST_ATOMS = 40, 100  # of a molecule that is cut; larger ones take minutes


class Cut(NamedTuple):
    """A molecule as two parts, SMILES with ``[*:1]`` where they were joined."""

    constant: str
    variable: str


class Change(NamedTuple):
    """One substituent for another at a kind of atom, such as ``"c"`` or ``"C"``."""

    before: str
    after: str
    at: str

    @property
    def text(self) -> str:
        return f"{substituent_text(self.before)} >> {substituent_text(self.after)}"


def cuts_of(molecule: Any, largest: int) -> set[Cut]:
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


def hydrogen_cuts(molecule: Any) -> set[Cut]:
    """Cuts of one hydrogen each."""
    chem, cuts = rdkit(), set()
    for atom in molecule.GetAtoms():
        if atom.GetTotalNumHs() and atom.GetAtomicNum() > 1:
            opened = chem.RWMol(molecule)
            here = opened.GetAtomWithIdx(atom.GetIdx())
            if here.GetNumExplicitHs():  # such as the hydrogen of [nH]
                here.SetNumExplicitHs(here.GetNumExplicitHs() - 1)
            end = opened.AddAtom(chem.Atom(0))
            opened.GetAtomWithIdx(end).SetAtomMapNum(1)
            opened.AddBond(atom.GetIdx(), end, chem.BondType.SINGLE)
            with quiet():
                if chem.SanitizeMol(opened, catchErrors=True) == chem.SANITIZE_NONE:
                    cuts.add(Cut(chem.MolToSmiles(opened), HYDROGEN))
    return cuts


@lru_cache(maxsize=200_000)
def _heavy_atoms(smiles: str) -> int:
    return int(rdkit().MolFromSmiles(smiles, sanitize=False).GetNumHeavyAtoms()) - 1


@lru_cache(maxsize=200_000)
def attachment(constant: str) -> tuple[str, str]:
    """The atom that a constant part is joined at, and its SMILES with a hydrogen there."""
    chem = rdkit()
    with quiet():
        molecule = chem.MolFromSmiles(constant)
        end = next(a for a in molecule.GetAtoms() if a.GetAtomMapNum() == 1)
        (atom,) = end.GetNeighbors()
        symbol = atom.GetSymbol().lower() if atom.GetIsAromatic() else atom.GetSymbol()
        end.SetAtomMapNum(0)
        end.SetAtomicNum(1)
        return symbol, chem.MolToSmiles(chem.RemoveHs(molecule))


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
        return chem.MolToSmiles(whole)


@dataclass(frozen=True)
class MatchedPairs:
    """The matched pairs among some molecules."""

    groups: dict[str, dict[str, int]]  # constant part -> variable part -> position of the molecule

    @classmethod
    def of(cls, molecules: Sequence[Any], largest: int = 10) -> MatchedPairs:
        """Cut molecules; changed parts have at most ``largest`` heavy atoms.

        Of equal molecules the first counts.
        """
        chem, groups = rdkit(), {}  # type: ignore[var-annotated]
        whole: dict[str, int] = {}
        for position, molecule in enumerate(molecules):
            whole.setdefault(chem.MolToSmiles(molecule), position)
            for cut in cuts_of(molecule, largest):
                groups.setdefault(cut.constant, {}).setdefault(cut.variable, position)
        for constant, members in groups.items():
            bare = whole.get(attachment(constant)[1])
            if bare is not None:
                members[HYDROGEN] = bare
        return cls({c: members for c, members in groups.items() if len(members) > 1})

    def __iter__(self) -> Iterator[tuple[Change, int, int]]:
        for constant in self.groups:
            yield from self._changes(constant)

    def changes_from(self, variables: Iterable[str]) -> dict[Change, list[tuple[int, int]]]:
        """Changes of some substituents into others, with the pairs of molecules that show them."""
        wanted, found = set(variables), {}  # type: ignore[var-annotated]
        for constant, members in self.groups.items():
            if not wanted.isdisjoint(members):
                for change, one, other in self._changes(constant):
                    if change.before in wanted:
                        found.setdefault(change, []).append((one, other))
        return found

    def _changes(self, constant: str) -> Iterator[tuple[Change, int, int]]:
        members, at = self.groups[constant], attachment(constant)[0]
        for before, one in members.items():
            for after, other in members.items():
                if before != after and one != other:
                    yield Change(before, after, at), one, other
