"""RDKit's descriptors of molecules, as columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.chem.molecules import MOST_ATOMS_IN_A_MATRIX
from treelens.graphs.collection import GraphCollection
from treelens.graphs.content import hashed, mixed, run_sums

if TYPE_CHECKING:
    from rdkit.Chem import Mol

# Cheap descriptors of what a graph kernel represents least well: size, polarity and flexibility of
# the whole molecule. Names are RDKit's, but for the formal charge, which it does not list.
COMPACT_DESCRIPTORS = (
    "MolLogP",
    "MolMR",
    "TPSA",
    "LabuteASA",
    "MolWt",
    "HeavyAtomCount",
    "NumHeteroatoms",
    "NumHDonors",
    "NumHAcceptors",
    "NHOHCount",
    "NOCount",
    "NumRotatableBonds",
    "RingCount",
    "NumAromaticRings",
    "NumAliphaticRings",
    "NumSaturatedRings",
    "NumAromaticHeterocycles",
    "FractionCSP3",
    "HallKierAlpha",
    "Kappa2",
    "FormalCharge",
)
# What takes RDKit most of the time of a molecule: left out of the set "fast".
_SLOW_DESCRIPTORS = frozenset(
    {
        "AvgIpc",
        "BalabanJ",
        "BertzCT",
        "Chi4n",
        "Chi4v",
        "Ipc",
        "MaxAbsEStateIndex",
        "MaxEStateIndex",
        "MinAbsEStateIndex",
        "MinEStateIndex",
        "NumValenceElectrons",
        "SPS",
        "qed",
        *(f"BCUT2D_{name}" for name in ("MWHI", "MWLOW", "CHGHI", "CHGLO")),
        *(f"BCUT2D_{name}" for name in ("LOGPHI", "LOGPLOW", "MRHI", "MRLOW")),
    }
)


_FAR = 1e6  # steps: in RDKit's matrices, atoms of other components are further away


def descriptors_in(chosen: str) -> list[str]:
    """Return the names of the set ``"compact"``, ``"fast"`` or ``"all"``."""
    if chosen == "compact":
        return list(COMPACT_DESCRIPTORS)
    names = descriptor_names()
    return names if chosen == "all" else [n for n in names if n not in _SLOW_DESCRIPTORS]


def rdkit_descriptors(
    molecules: Sequence[Any],
    names: Sequence[str] | None = None,
    graphs: GraphCollection | None = None,
) -> np.ndarray:
    """Descriptors of RDKit molecules, shape (n_molecules, n_descriptors); NaN where undefined.

    ``names`` are RDKit's, ``"MolLogP"``; by default all of :func:`descriptor_names`. ``graphs``
    that were read from these molecules save time.
    """
    from rdkit import rdBase

    names = descriptor_names() if names is None else names
    table, known = np.empty((len(molecules), len(names))), dict[str, np.ndarray]()
    usual = np.zeros(len(molecules), dtype=bool)
    with rdBase.BlockLogs():
        if graphs is not None and not set(names).isdisjoint(COMPACT_DESCRIPTORS):
            usual = usual_molecules(graphs)
            rows = np.flatnonzero(usual)
            if len(rows):
                known = _from_labels(graphs[rows], [molecules[row] for row in rows.tolist()])
        for k, name in enumerate(names):
            if name in known:
                table[usual, k] = known[name]
        ask = [k for k, name in enumerate(names) if name not in known]
        functions = _functions() if ask or not usual.all() else {}
        for row, molecule in enumerate(molecules):
            for k in ask if usual[row] else range(len(names)):
                table[row, k] = _number(functions[names[k]], molecule)
    table[~np.isfinite(table) | (np.abs(table) > 1e12)] = np.nan  # some overflow
    return table


def _functions() -> dict[str, Any]:
    """Return what computes each descriptor; importing RDKit's takes longer than a few molecules."""
    from rdkit import Chem
    from rdkit.Chem import Descriptors, rdMolDescriptors

    found = {**dict(Descriptors._descList), "FormalCharge": Chem.GetFormalCharge}
    charges = _Remembered(rdMolDescriptors.PEOE_VSA_)
    for name, function in found.items():
        if name.startswith("PEOE_VSA"):
            found[name] = partial(charges.item, int(name.removeprefix("PEOE_VSA")) - 1)
        elif name.startswith(("EState_VSA", "VSA_EState")):
            found[name] = partial(_by_states, function)
    return found


class _Remembered:
    """A list of descriptors that RDKit computes together, of the last molecule."""

    def __init__(self, compute: Callable[[Any], Sequence[float]]) -> None:
        self._compute = compute
        self._molecule: Mol | None = None
        self._found: Sequence[float] = ()

    def item(self, place: int, molecule: Mol) -> float:
        if molecule is not self._molecule:
            self._molecule, self._found = molecule, self._compute(molecule)
        return self._found[place]


def _by_states(function: Callable[[Any], float], molecule: Mol) -> float:
    """Return a descriptor by electrotopological states, which RDKit keeps with the molecule."""
    if not hasattr(molecule, "_eStateIndices"):
        molecule._eStateIndices = _electrotopological_states(molecule)
    return function(molecule)


def _electrotopological_states(molecule: Mol) -> np.ndarray:
    """Return RDKit's EStateIndices, shape (n_atoms,), whose loop over pairs of atoms is slow."""
    from rdkit import Chem
    from rdkit.Chem.EState.EState import GetPrincipleQuantumNumber

    outer, own = Chem.GetPeriodicTable().GetNOuterElecs, np.zeros(molecule.GetNumAtoms())
    for k, atom in enumerate(molecule.GetAtoms()):
        if degree := atom.GetDegree():
            valence = outer(atom.GetAtomicNum()) - atom.GetTotalNumHs()
            shell = GetPrincipleQuantumNumber(atom.GetAtomicNum())
            own[k] = (4.0 / shell**2 * valence + 1) / degree
    distances = Chem.GetDistanceMatrix(molecule) + 1.0
    distances[distances >= _FAR] = np.inf
    return own + ((own[:, None] - own) / distances**2).sum(axis=1)


def descriptor_names() -> list[str]:
    """All descriptors that RDKit has, in its order."""
    from rdkit.Chem import Descriptors

    return list(dict.fromkeys(name for name, _ in Descriptors._descList))  # one stood twice


def _number(function: Callable[[Mol], float], molecule: Mol) -> float:
    with suppress(ValueError, ZeroDivisionError, RuntimeError):
        return float(function(molecule))
    return float("nan")


# --- compact descriptors from labels --------------------------------------------------------------
# RDKit finds most of them by matching SMARTS, which takes longer than parsing the molecule. Here
# they follow from labels of atoms and bonds, and from rings. Measured (processor time per molecule,
# RDKit 2026.09, 1,500 molecules of Lipophilicity): RDKit's functions 0.40 ms, of which logP alone
# 0.22; from labels 0.06 ms, and 0.02 where the environments of atoms are known. The terms of atoms
# are what explanations divide descriptors by, so that definitions are needed anyway.

# Labels of other atoms do not tell all bonds apart (dative ones count as single).
_USUAL = re.compile(r"(B|C|N|O|F|Si|P|S|Cl|Se|Br|I|b|c|n|o|p|s|se)(?:H(\d*))?([+-]\d+)?@?")
_STRANGE = re.compile(r"[<>|~$]|\[\d")  # in SMILES: bonds and isotopes that labels do not show
_ORDERS = {"-": 1.0, ":": 1.5, "=": 2.0, "#": 3.0}
_ASKED = (
    "HallKierAlpha",
    "NumRings",
    "NumAromaticRings",
    "NumSaturatedRings",
    "NumAromaticHeterocycles",
)
# The versions of definitions that are followed here; RDKit is asked where it has others.
_VERSIONS = {
    "NumHDonors": ("NumHBD", "2.0.1"),
    "NumHAcceptors": ("NumHBA", "2.0.2"),
    "NumRotatableBonds": ("NumRotatableBonds", "3.1.0", "3.2.0"),
}


def usual_molecules(graphs: GraphCollection) -> np.ndarray:
    """Whether labels tell all that descriptors depend on, shape (n_graphs,)."""
    names, recipe = graphs.fine_alphabet, graphs.recipe
    if names is None or graphs.edge_codes is None or recipe is None or recipe.reader != "smiles":
        return np.zeros(len(graphs), dtype=bool)
    strange = np.array([_USUAL.fullmatch(str(name)) is None for name in names], dtype=np.uint64)
    fits = run_sums(strange[graphs.fine_codes], graphs.node_offsets) == 0
    fits &= [_STRANGE.search(text) is None for text in graphs.graph_data["smiles"]]
    return fits & (graphs.sizes <= MOST_ATOMS_IN_A_MATRIX)


def _from_labels(graphs: GraphCollection, molecules: Sequence[Any]) -> dict[str, np.ndarray]:
    """The compact descriptors of usual molecules, by name."""
    from rdkit.Chem import rdMolDescriptors

    atoms = _Atoms(graphs, molecules)
    asked = [getattr(rdMolDescriptors, f"Calc{name}") for name in _ASKED]
    answers = np.array([[f(molecule) for f in asked] for molecule in molecules])
    alpha, rings, aromatic, saturated, heterocycles = answers.T
    pairs = 0.5 * atoms.sums(atoms.degree * (atoms.degree - 1))  # paths of length two
    size, paths = graphs.sizes + alpha, pairs + alpha
    terms = _terms_of_atoms(graphs, molecules, atoms)
    return {name: atoms.sums(own) for name, own in terms.items()} | {
        "RingCount": rings,
        "NumAromaticRings": aromatic,
        "NumAliphaticRings": rings - aromatic,
        "NumSaturatedRings": saturated,
        "NumAromaticHeterocycles": heterocycles,
        "Kappa2": (size - 1) * (size - 2) ** 2 / np.where(paths == 0, np.inf, paths) ** 2,
        "HallKierAlpha": alpha,
    }


def label_terms(graphs: GraphCollection, molecules: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return what atoms add to compact descriptors of usual molecules, (n_nodes,) each.

    Those that count rings, and the others that RDKit is asked for, are left out.
    """
    return _terms_of_atoms(graphs, molecules, _Atoms(graphs, molecules))


def _terms_of_atoms(
    graphs: GraphCollection, molecules: Sequence[Any], atoms: _Atoms
) -> dict[str, np.ndarray]:
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    weight, h = Chem.GetPeriodicTable().GetAtomicWeight, atoms.hydrogens
    carbon, polar = atoms.of("C", "c"), atoms.of("N", "n", "O", "o")
    weights = np.array([weight(s.capitalize()) if s else 0.0 for s in atoms.symbols.tolist()])
    carbons = np.maximum(atoms.sums(carbon), 1)[atoms.graph_of]
    found = {
        **_environment_terms(graphs, molecules, atoms),
        **_hydrogen_bonds(atoms),
        "NumRotatableBonds": _rotatable_bonds(atoms),
        "MolWt": weights[atoms.codes] + weight("H") * h,
        "HeavyAtomCount": np.ones(graphs.n_nodes),
        "NumHeteroatoms": (~carbon).astype(float),
        "NHOHCount": h * polar,
        "NOCount": polar.astype(float),
        "FractionCSP3": (carbon & (atoms.degree + h == 4)) / carbons,
        "FormalCharge": atoms.charge,
    }
    for name, (own, *versions) in _VERSIONS.items():
        if getattr(rdMolDescriptors, f"_Calc{own}_version") not in versions:
            del found[name]
    return found


class _Atoms:
    """Numbers of atoms, bonds and rings; arcs are bonds, each in both directions."""

    def __init__(self, graphs: GraphCollection, molecules: Sequence[Any]) -> None:
        self.codes, self.n_graphs = graphs.fine_codes, len(graphs)
        names = [str(name) for name in graphs.fine_alphabet or ()]
        matches = map(_USUAL.fullmatch, names)
        parts = [("", None, None) if match is None else match.groups() for match in matches]
        self.symbols = np.array([symbol for symbol, _, _ in parts])
        counts = [0 if hydrogens is None else int(hydrogens or 1) for _, hydrogens, _ in parts]
        self.hydrogens = np.array(counts)[self.codes]  # (n_nodes,)
        self.charge = np.array([int(charge or 0) for _, _, charge in parts])[self.codes]
        self.degree = np.diff(graphs.neighbor_offsets)
        self.graph_of = np.repeat(np.arange(len(graphs)), graphs.sizes)
        self.start = np.repeat(np.arange(graphs.n_nodes), self.degree)  # (n_arcs,)
        self.end = graphs.neighbors + graphs.node_offsets[self.graph_of[self.start]]
        orders = [_ORDERS.get(str(name).rstrip("EZ"), 0.0) for name in graphs.edge_alphabet or ()]
        self.order = np.array(orders)[graphs.edge_codes]
        ring = np.array([name[0].islower() or name.endswith("@") for name in names])[self.codes]
        self.in_ring = ring[self.start] & ring[self.end]
        # A bond between two rings: both ends have three bonds to atoms in rings, or more.
        crowded = self.count(self.in_ring) > 2
        unclear = self.in_ring & (self.order != 1.5) & crowded[self.start] & crowded[self.end]
        for arc in np.flatnonzero(unclear):
            graph = self.graph_of[self.start[arc]]
            ends = self.start[arc] - graphs.node_offsets[graph], graphs.neighbors[arc]
            self.in_ring[arc] = molecules[graph].GetBondBetweenAtoms(*map(int, ends)).IsInRing()
        self.in_triangle = ring & self.of("N", "O")  # of other atoms it does not matter
        for node in np.flatnonzero(self.in_triangle):
            graph = self.graph_of[node]
            atom = molecules[graph].GetAtomWithIdx(int(node - graphs.node_offsets[graph]))
            self.in_triangle[node] = atom.IsInRingSize(3)

    def of(self, *symbols: str) -> np.ndarray:
        """Whether atoms are of these elements; those of aromatic atoms are in lower case."""
        return np.isin(self.symbols, symbols)[self.codes]

    def count(self, arcs: np.ndarray) -> np.ndarray:
        """Return sums over the arcs of each atom."""
        return np.bincount(self.start, arcs, len(self.degree))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return sums over the atoms of each graph."""
        return np.bincount(self.graph_of, values, self.n_graphs)


def _hydrogen_bonds(atoms: _Atoms) -> dict[str, np.ndarray]:
    """Donors and acceptors of hydrogen bonds; an amide is no acceptor but at its oxygen."""
    h, charge, end, count = atoms.hydrogens, atoms.charge, atoms.end, atoms.count
    nitrogen, oxygen, aromatic = atoms.of("N"), atoms.of("O", "S"), atoms.of("n")
    single, valence = atoms.order == 1, h + count(atoms.order)
    donor = nitrogen & (h > 0) & ((valence == 3) | (valence == 4) & (charge == 1))
    donor |= (oxygen | aromatic) & (h == 1) & (charge == 0)
    double = (atoms.order == 2) & atoms.of("N", "O", "P", "S")[end]
    acyl, open_acyl = count(double) > 0, count(double & ~atoms.in_ring) > 0
    acceptor = oxygen & ((h == 0) & (valence == 2) | (charge == -1))
    acceptor |= oxygen & (h == 1) & (valence == 2) & (count(single & ~acyl[end]) > 0)
    acceptor |= nitrogen & (valence == 3) & (count(single & open_acyl[end]) == 0)
    acceptor |= (aromatic & (h == 0) & (atoms.degree == 2) | atoms.of("o", "s")) & (charge == 0)
    return {"NumHDonors": donor.astype(float), "NumHAcceptors": acceptor.astype(float)}


def _rotatable_bonds(atoms: _Atoms) -> np.ndarray:
    """Bonds outside of rings that turn: none in amides, to CF3 or tert-butyl, beside a triple."""
    start, end, order, degree = atoms.start, atoms.end, atoms.order, atoms.degree
    count, carbon, single = atoms.count, atoms.of("C"), order == 1
    free = (degree != 1) & (count(order == 3) == 0)
    for same in (atoms.of("F"), atoms.of("Cl"), atoms.of("Br"), carbon & (atoms.hydrogens == 3)):
        free &= ~(carbon & (count(single & same[end]) >= 3))
    acyl = carbon & (degree == 3) & (count((order == 2) & atoms.of("N", "O", "S")[end]) > 0)
    amine = atoms.of("N", "n", "O") | atoms.of("S") & (degree != 1)
    link = single & ~atoms.in_ring
    amide = acyl & (count(link & amine[end]) > 0) | amine & (count(link & acyl[end]) > 0)
    turns = free[start] & free[end] & ~(amide[start] & amide[end])
    return 0.5 * count(turns & (order > 0) & (order < 2) & ~atoms.in_ring)


# --- sums of contributions of atoms ---------------------------------------------------------------
# Crippen's logP and molar refractivity, and two surfaces. The contribution of an atom and its
# hydrogens depends on its bonds, on triangles, and of oxygen also on the bonds of its neighbours:
# RDKit is asked once for each such environment.

_SUMS = ("MolLogP", "MolMR", "LabuteASA", "TPSA")
_known: dict[int, Any] = {}  # by environment
_MOST_KNOWN = 100_000


def _environment_terms(
    graphs: GraphCollection, molecules: Sequence[Any], atoms: _Atoms
) -> dict[str, np.ndarray]:
    keys = _environments(graphs, atoms)
    different, first, which = np.unique(keys, return_index=True, return_inverse=True)
    # Another thread may clear what is known at any moment: this one has what it needs.
    own = {key: _known.get(key) for key in different.tolist()}
    for key, node in zip(different.tolist(), first.tolist(), strict=True):
        if own[key] is None:
            graph = atoms.graph_of[node]
            rows = slice(graphs.node_offsets[graph], graphs.node_offsets[graph + 1])
            own.update(zip(keys[rows].tolist(), atom_contributions(molecules[graph]), strict=True))
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    _known.update(own)
    table = np.array([own[key] for key in different.tolist()])
    found = {name: table[which, k] for k, name in enumerate(_SUMS)}
    found["LabuteASA"] = found["LabuteASA"] + (hydrogen_surface() / graphs.sizes)[atoms.graph_of]
    return found


def hydrogen_surface() -> float:
    """Return the surface of all hydrogens of a molecule, which all its atoms share alike."""
    from rdkit.Chem import GetPeriodicTable

    return float(4 * np.pi * GetPeriodicTable().GetRb0(1) ** 2)


def _environments(graphs: GraphCollection, atoms: _Atoms) -> np.ndarray:
    """Return a number for each atom with its bonds, of oxygen also with those of its neighbours."""
    names = [str(name).rstrip("@") for name in graphs.fine_alphabet or ()]
    own = hashed(names)[atoms.codes] + atoms.in_triangle  # (n_nodes,)
    element = hashed([re.sub(r"H\d*", "", name) for name in names])[atoms.codes]
    bond = hashed([str(name).rstrip("EZ") for name in graphs.edge_alphabet or ()])

    def around(numbers: np.ndarray) -> np.ndarray:
        arcs = mixed(numbers[atoms.end] + bond[graphs.edge_codes])
        return run_sums(arcs, graphs.neighbor_offsets)

    near = around(element)
    beyond = np.where(atoms.of("O", "o"), around(mixed(element + near)), np.uint64(0))
    return mixed(own + mixed(near + beyond))


def atom_contributions(molecule: Mol) -> list[list[float]]:
    """The contributions of every heavy atom together with its hydrogens, shape (n_atoms, 4)."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    whole, n = Chem.AddHs(molecule), molecule.GetNumAtoms()
    owner = [*range(n), *(atom.GetNeighbors()[0].GetIdx() for atom in list(whole.GetAtoms())[n:])]
    parts = np.array(rdMolDescriptors._CalcCrippenContribs(whole)).T
    logp, refractivity = (np.bincount(owner, part, n) for part in parts)
    # To RDKit, the surface of all hydrogens is that of one, less an overlap with each heavy atom.
    radius = Chem.GetPeriodicTable().GetRb0
    radii, own = np.array([radius(atom.GetAtomicNum()) for atom in molecule.GetAtoms()]), radius(1)
    overlap = np.pi * own * (radii**2 - radii**2 / (radii + own))
    surface = np.array(list(rdMolDescriptors._CalcLabuteASAContribs(molecule)[0]))
    polar = rdMolDescriptors._CalcTPSAContribs(molecule)
    return np.column_stack([logp, refractivity, surface - overlap, polar]).tolist()
