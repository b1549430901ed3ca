"""What each atom adds to descriptors that are sums over atoms: their *terms*.

Logarithms of partition and refractivities are sums over atoms by definition, and so are surfaces,
weights, counts and charges; a bond belongs to its two atoms, a ring or a functional group to its
atoms in equal parts, and hydrogens to the atom that bears them. The fraction of sp3 carbons is a
sum in which each of these counts one over the number of carbons.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.chem.descriptors import (
    atom_contributions,
    hydrogen_surface,
    label_terms,
    usual_molecules,
)
from treelens.graphs.collection import GraphCollection

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Bond, Mol

Terms = Callable[["MoleculeTerms"], np.ndarray]
_DONOR = "[$([N;!H0;v3]),$([N;!H0;v4;+]),$([O,S;H1;+0]),$([n;H1;+0])]"
_ACCEPTOR = (  # an amide is none but at its oxygen, an acid none at its hydroxyl
    "[$([O,S;H0;v2]),$([O,S;-]),$([O,S;H1;v2]-[!$(*=[N,O,P,S])]),"
    "$([N;v3;!$(N-*=!@[N,O,P,S])]),$([n;H0;D2;+0]),$([o,s;+0])]"
)
_HYDROGEN, _CARBON, _NITROGEN, _OXYGEN = 1, 6, 7, 8


def atom_terms(
    graphs: GraphCollection, molecules: Sequence[Any], names: Iterable[str]
) -> dict[str, np.ndarray]:
    """Return the terms of all nodes, shape (n_nodes,) each, of descriptors by RDKit's names.

    Names of descriptors that are no sums over atoms are left out. Hydrogens that are nodes have
    terms of 0, for those of the atoms that bear them comprise them; so have atoms for which RDKit
    gives no finite number.
    """
    from rdkit import rdBase

    table = terms_table()
    wanted = [name for name in names if name in table]
    found = {name: np.zeros(graphs.n_nodes) for name in wanted}
    rest = dict.fromkeys(range(len(graphs)), wanted)  # what is asked of each molecule
    usual = np.flatnonzero(usual_molecules(graphs)) if wanted else np.empty(0, dtype=np.int64)
    if len(usual):
        known = label_terms(graphs[usual], [molecules[k] for k in usual.tolist()])
        nodes = np.repeat(np.isin(np.arange(len(graphs)), usual), graphs.sizes)
        for name in known.keys() & found.keys():
            found[name][nodes] = known[name]
        more = [name for name in wanted if name not in known]
        rest |= dict.fromkeys(usual.tolist(), more)
    with rdBase.BlockLogs():
        for k, asked in rest.items():
            own, first = MoleculeTerms(molecules[k]), int(graphs.node_offsets[k])
            n = own.n_atoms if own.n_atoms <= graphs.sizes[k] else 0
            for name in asked:
                found[name][first : first + n] = table[name](own)[:n]
    return {name: np.nan_to_num(terms, posinf=0.0, neginf=0.0) for name, terms in found.items()}


class MoleculeTerms:
    """Numbers of the atoms of one molecule, each computed when it is first needed."""

    def __init__(self, molecule: Mol) -> None:
        self.molecule, self.n_atoms = molecule, molecule.GetNumAtoms()

    def of_atoms(self, function: Callable[[Any], float]) -> np.ndarray:
        """Return a number of each atom."""
        values = (function(atom) for atom in self.molecule.GetAtoms())
        return np.fromiter(values, float, self.n_atoms)

    def shared(self, groups: Iterable[Sequence[int]]) -> np.ndarray:
        """Return one for each group of atoms, in equal parts."""
        found = np.zeros(self.n_atoms)
        for atoms in groups:
            found[list(atoms)] += 1.0 / len(atoms)
        return found

    def matches(self, query: Mol) -> np.ndarray:
        """Return one for each match of a query, in equal parts."""
        return self.shared(self.molecule.GetSubstructMatches(query))

    @cached_property
    def elements(self) -> np.ndarray:
        return self.of_atoms(lambda atom: atom.GetAtomicNum())

    @cached_property
    def hydrogens(self) -> np.ndarray:
        return self.of_atoms(lambda atom: atom.GetTotalNumHs())

    @cached_property
    def sums(self) -> np.ndarray:
        """LogP, refractivity, surface and polar surface with hydrogens: (n_atoms, 4)."""
        return np.array(atom_contributions(self.molecule)).reshape(-1, 4)

    @cached_property
    def bare_crippen(self) -> np.ndarray:
        """LogP and refractivity without hydrogens, as the surfaces by bins use them."""
        from rdkit.Chem import rdMolDescriptors

        return np.array(rdMolDescriptors._CalcCrippenContribs(self.molecule)).reshape(-1, 2)

    @cached_property
    def surface(self) -> np.ndarray:
        """Labute's surface of each atom without hydrogens."""
        from rdkit.Chem import rdMolDescriptors

        return np.array(list(rdMolDescriptors._CalcLabuteASAContribs(self.molecule)[0]))

    @cached_property
    def charges(self) -> np.ndarray:
        """Gasteiger's partial charges."""
        from rdkit.Chem import rdPartialCharges

        copy = type(self.molecule)(self.molecule)  # charges are written to the atoms
        rdPartialCharges.ComputeGasteigerCharges(copy)
        return np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in copy.GetAtoms()])

    @cached_property
    def electrotopology(self) -> np.ndarray:
        from rdkit.Chem.EState import EStateIndices

        return np.asarray(EStateIndices(self.molecule))

    @cached_property
    def all_rings(self) -> list[tuple[tuple[int, ...], frozenset[str]]]:
        """The atoms of each ring, and the kinds that it is of."""
        bonds = [(bond.GetIsAromatic(), bond.GetBondTypeAsDouble()) for bond in self.bonds]
        found, info = [], self.molecule.GetRingInfo()
        for atoms, own in zip(info.AtomRings(), info.BondRings(), strict=True):
            aromatic = all(bonds[k][0] for k in own)
            kinds = ["Aromatic" if aromatic else "Aliphatic"]
            kinds += ["Saturated"] if all(bonds[k] == (False, 1.0) for k in own) else []
            hetero = (self.elements[list(atoms)] != _CARBON).any()
            kinds += ["Heterocycles" if hetero else "Carbocycles"]
            found.append((atoms, frozenset(kinds)))
        return found

    @property
    def bonds(self) -> Iterable[Bond]:
        return self.molecule.GetBonds()

    def rings(self, *kinds: str) -> np.ndarray:
        """Return one for each ring of all of some kinds, shared by its atoms."""
        return self.shared(atoms for atoms, own in self.all_rings if own.issuperset(kinds))


# --- the table --------------------------------------------------------------------------------


@cache
def terms_table() -> dict[str, Terms]:
    """Return functions from a molecule to the terms of its atoms, by the name of the descriptor."""
    return {**_sums(), **_rings(), **_groups(), **_surfaces_by_bins()}


def _sums() -> dict[str, Terms]:
    """Sums of numbers of atoms, counts of atoms and bonds."""
    from rdkit import Chem

    donor, acceptor = (Chem.MolFromSmarts(smarts) for smarts in (_DONOR, _ACCEPTOR))
    hydrogen = Chem.GetPeriodicTable().GetAtomicWeight(_HYDROGEN)
    exact = Chem.GetPeriodicTable().GetMostCommonIsotopeMass(_HYDROGEN)

    def heavy(x: MoleculeTerms) -> np.ndarray:
        return x.elements > _HYDROGEN

    return {
        "MolLogP": lambda x: x.sums[:, 0],
        "MolMR": lambda x: x.sums[:, 1],
        "LabuteASA": lambda x: x.sums[:, 2] + hydrogen_surface() / max(x.n_atoms, 1),
        "TPSA": lambda x: x.sums[:, 3],
        "MolWt": lambda x: x.of_atoms(lambda a: a.GetMass()) + hydrogen * x.hydrogens,
        "HeavyAtomMolWt": lambda x: x.of_atoms(lambda a: a.GetMass()) * heavy(x),
        "ExactMolWt": lambda x: x.of_atoms(_exact_mass) + exact * x.hydrogens,
        "HeavyAtomCount": lambda x: heavy(x).astype(float),
        "NumHeteroatoms": lambda x: (heavy(x) & (x.elements != _CARBON)).astype(float),
        "NHOHCount": lambda x: x.hydrogens * np.isin(x.elements, (_NITROGEN, _OXYGEN)),
        "NOCount": lambda x: np.isin(x.elements, (_NITROGEN, _OXYGEN)).astype(float),
        "NumHDonors": lambda x: x.matches(donor),
        "NumHAcceptors": lambda x: x.matches(acceptor),
        "NumRotatableBonds": lambda x: x.shared(_rotatable(x.molecule)),
        "FormalCharge": lambda x: x.of_atoms(lambda atom: atom.GetFormalCharge()),
        "FractionCSP3": _sp3_carbons,
        "HallKierAlpha": _kier_alpha,
        "NumValenceElectrons": lambda x: x.of_atoms(_valence),
        "NumRadicalElectrons": lambda x: x.of_atoms(lambda atom: atom.GetNumRadicalElectrons()),
        "Chi0": lambda x: x.of_atoms(lambda a: a.GetDegree() ** -0.5 if a.GetDegree() else 0.0),
        "Chi1": _bonds_by_degree,
    }


def _exact_mass(atom: Atom) -> float:
    from rdkit.Chem import GetPeriodicTable

    number, isotope = atom.GetAtomicNum(), atom.GetIsotope()
    if isotope:
        return float(GetPeriodicTable().GetMassForIsotope(number, isotope))
    return float(GetPeriodicTable().GetMostCommonIsotopeMass(number))


def _valence(atom: Atom) -> float:
    from rdkit.Chem import GetPeriodicTable

    outer = GetPeriodicTable().GetNOuterElecs(atom.GetAtomicNum())
    return float(outer - atom.GetFormalCharge() + atom.GetTotalNumHs())


def _sp3_carbons(x: MoleculeTerms) -> np.ndarray:
    carbon, n_bonds = x.elements == _CARBON, x.of_atoms(lambda atom: atom.GetTotalDegree())
    return (carbon & (n_bonds == 4)) / max(int(carbon.sum()), 1)


def _kier_alpha(x: MoleculeTerms) -> np.ndarray:
    from rdkit.Chem import rdMolDescriptors

    found: Any = [0.0] * x.n_atoms  # filled
    rdMolDescriptors.CalcHallKierAlpha(x.molecule, found)
    return np.array(found)


def _bonds_by_degree(x: MoleculeTerms) -> np.ndarray:
    found, degrees = np.zeros(x.n_atoms), x.of_atoms(lambda atom: atom.GetDegree())
    for bond in x.bonds:
        ends = [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()]
        found[ends] += 0.5 / np.sqrt(degrees[ends].prod())
    return found


def _rotatable(molecule: Mol) -> list[tuple[int, int]]:
    """Return the ends of bonds that turn: outside rings, not to a tert-butyl, not in an amide."""
    end, amide, bond = _rotatable_queries()
    free, stiff = ({x for x, *_ in molecule.GetSubstructMatches(q)} for q in (end, amide))
    return [
        pair
        for pair in molecule.GetSubstructMatches(bond)
        if free.issuperset(pair) and not stiff.issuperset(pair)
    ]


@cache
def _rotatable_queries() -> list[Any]:
    from rdkit import Chem

    crowned = ";".join(f"!$(C({x})({x}){x})" for x in ("F", "Cl", "Br", "[CH3]"))
    acyl, amine = "[CD3]", "[N,n,O,$([S;!D1])]"
    amide = f"[$({acyl}(=[N,O,S])-!@{amine}),$({amine}-!@{acyl}=[N,O,S])]"
    return [Chem.MolFromSmarts(x) for x in (f"[!D1;!$(*#*);{crowned}]", amide, "*-,:;!@*")]


def _rings() -> dict[str, Terms]:
    """Counts of rings."""
    found: dict[str, Terms] = {
        "RingCount": lambda x: x.rings(),
        "NumHeterocycles": lambda x: x.rings("Heterocycles"),
    }
    for kind in ("Aromatic", "Aliphatic", "Saturated"):
        found[f"Num{kind}Rings"] = lambda x, kind=kind: x.rings(kind)  # type: ignore[misc]
        for atoms in ("Heterocycles", "Carbocycles"):
            both = kind, atoms
            found[f"Num{kind}{atoms}"] = lambda x, both=both: x.rings(*both)  # type: ignore[misc]
    return found


def _groups() -> dict[str, Terms]:
    """Counts of functional groups, ``fr_...``, by the queries that RDKit counts them with."""
    from rdkit.Chem import Fragments

    queries = {
        name: next((x for x in function.__defaults__ or () if hasattr(x, "GetAtoms")), None)
        for name, function in vars(Fragments).items()
        if name.startswith("fr_")
    }
    return {name: partial(_matched, query) for name, query in queries.items() if query is not None}


def _matched(query: Mol, x: MoleculeTerms) -> np.ndarray:
    return x.matches(query)


def _surfaces_by_bins() -> dict[str, Terms]:
    """Surface of the atoms whose logP, refractivity, charge or state is in an interval."""
    from rdkit.Chem import MolSurf
    from rdkit.Chem.EState import EState_VSA

    def by_bins(
        prefix: str,
        bins: Sequence[float],
        place: Callable[[MoleculeTerms], np.ndarray],
        amount: Callable[[MoleculeTerms], np.ndarray],
    ) -> dict[str, Terms]:
        def inside(x: MoleculeTerms, number: int) -> np.ndarray:
            here = [bisect_right(bins, value) == number for value in place(x).tolist()]
            return np.where(here, amount(x), 0.0)

        return {
            f"{prefix}{k + 1}": lambda x, k=k: inside(x, k)  # type: ignore[misc]
            for k in range(len(bins) + 1)
        }

    def surface(x: MoleculeTerms) -> np.ndarray:
        return x.surface

    def states(x: MoleculeTerms) -> np.ndarray:
        return x.electrotopology

    return {
        **by_bins("SlogP_VSA", MolSurf.logpBins, lambda x: x.bare_crippen[:, 0], surface),
        **by_bins("SMR_VSA", MolSurf.mrBins, lambda x: x.bare_crippen[:, 1], surface),
        **by_bins("PEOE_VSA", MolSurf.chgBins, lambda x: x.charges, surface),
        **by_bins("EState_VSA", EState_VSA.estateBins, states, surface),
        **by_bins("VSA_EState", EState_VSA.vsaBins, surface, states),
    }
