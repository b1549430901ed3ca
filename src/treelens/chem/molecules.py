"""Graphs from molecules: SMILES and RDKit molecules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.chem.atoms import (
    AROMATIC,
    FINE_PARTS,
    AtomTable,
    atom_parts,
    fine_key,
    full_key,
    names_of_keys,
)
from treelens.chem.parsing import quiet, rdkit, smiles_parser, unreadable_rows
from treelens.chem.recipe import MoleculeRecipe
from treelens.chem.standardize import standardizer
from treelens.errors import GraphDataError, InvalidMoleculesWarning, check_choice
from treelens.graphs.collection import Graph, GraphCollection, encode_labels
from treelens.graphs.kinds import Painted
from treelens.targets import objects

if TYPE_CHECKING:
    from rdkit.Chem import Mol


def leave_out(
    found: str, option: str, choice: str | None, none_left: bool, told: type[Warning] | list[str]
) -> None:
    """Raise an error about rows, or say that they were left out: by a warning, or in notes."""
    if choice != "skip":
        skip = "" if choice is None else f", or leave them out with {option}='skip'"
        raise GraphDataError(f"{found} Correct or remove them{skip}.")
    if none_left:
        raise GraphDataError(f"{found} None is left.")
    if isinstance(told, list):
        told.append(f"{found} They were left out.")
    else:
        warnings.warn(f"{found} They were left out.", told, stacklevel=4)


def smiles_to_collection(
    smiles: Sequence[str], *, on_invalid: str = "raise", **settings: Any
) -> GraphCollection:
    """Return a collection of SMILES strings.

    ``settings`` are hydrogens, atom_label, bond_label, standardize and atom_attributes, as in
    :func:`read_smiles`.

    Examples
    --------
    >>> smiles_to_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    >>> salt = smiles_to_collection(["CC(=O)[O-].[Na+]"], standardize=True)
    >>> salt.graph_data["smiles"][0], salt.graph_data["standardized"][0]
    ('CC(=O)O', 'fragment+uncharge')
    >>> smiles_to_collection(["CCO"], atom_attributes=["gasteiger"]).node_attributes[:, 0].round(2)
    array([-0.04,  0.04, -0.4 ])
    """
    check_choice("on_invalid", on_invalid, ("raise", "skip"))
    return smiles_by_recipe(smiles, MoleculeRecipe.of("smiles", **settings), on_invalid)


def smiles_by_recipe(
    smiles: Sequence[str], recipe: MoleculeRecipe, on_invalid: str | None = None
) -> GraphCollection:
    """Return a collection of SMILES strings, read by a recipe; by default all must be readable."""
    collected = Molecules(recipe)
    collected.extend(map(collected.parse, smiles))
    if collected.invalid:
        found = (
            f"{len(collected.invalid)} of {len(smiles)} molecules cannot be read: "
            f"{unreadable_rows('graph {}'.format, smiles, collected.invalid, collected.why)}."
        )
        leave_out(found, "on_invalid", on_invalid, not collected.kept, InvalidMoleculesWarning)
    return collected.build({"smiles": smiles})


def molecules_to_collection(molecules: Sequence[Any], **settings: Any) -> GraphCollection:
    """Return a collection of RDKit molecules; node ``i`` is atom ``i`` of the molecule.

    ``settings`` are those of :func:`smiles_to_collection`. Explicit hydrogens of a molecule are
    kept, also with ``hydrogens=False``, unless molecules are standardised.
    """
    return molecules_by_recipe(molecules, MoleculeRecipe.of("rdkit", **settings))


def molecules_by_recipe(
    molecules: Sequence[Any],
    recipe: MoleculeRecipe,
    place: Callable[[int], str] = "graph {}".format,
) -> GraphCollection:
    """Return a collection of RDKit molecules, read by a recipe; ``place`` is for messages."""
    collected = Molecules(recipe).extend(molecules)
    if collected.invalid:
        raise GraphDataError(
            f"{len(collected.invalid)} of {len(molecules)} molecules cannot be read or standardised"
            ", or have no atoms: "
            f"{unreadable_rows(place, None, collected.invalid, collected.why)}."
        )
    if recipe.reader == "rdkit" and not recipe.hydrogens and not recipe.standardize:
        collected.recipe = replace(recipe, hydrogens=_hydrogens_in(molecules))
    return collected.build({"mol": molecules})


def _hydrogens_in(molecules: Sequence[Any]) -> bool | None:
    """Whether hydrogens are atoms of the molecules: True, False, or None for some."""
    if all(molecule.GetNumHeavyAtoms() == molecule.GetNumAtoms() for molecule in molecules):
        return False
    try:
        implicit = any(m.GetNumAtoms(onlyExplicit=False) > m.GetNumAtoms() for m in molecules)
    except RuntimeError:  # never sanitised: the number of hydrogens is not known
        return None
    return None if implicit else True


def molecule_of(graph: Graph) -> Any:
    """The RDKit molecule behind a graph, its atoms numbered as the nodes; None if there is none."""
    chem = rdkit()
    with quiet():
        molecule = graph.data.get("mol")
        if "mol" not in graph.data and "smiles" in graph.data:
            molecule = smiles_parser()(graph.data["smiles"])
        if molecule is not None and molecule.GetNumAtoms() < graph.n_nodes:
            molecule = chem.AddHs(molecule)
    return molecule


def is_molecule(graph: Graph) -> bool:
    """Whether the graph was read as a molecule, so that RDKit knows it."""
    return "smiles" in graph.data or "mol" in graph.data


def made_smiles(graphs: GraphCollection) -> dict[str, list[Any]]:
    """SMILES of the standard forms (``standard_smiles``), or of the molecules of an SDF."""
    known = graphs.graph_data
    name = "standard_smiles" if "standardized" in known else "smiles"
    if name == "smiles" and "mol" not in known:
        return {}
    if "smiles" in known:
        return {name: list(known["smiles"])}
    return {name: [rdkit().MolToSmiles(molecule) for molecule in known["mol"]]}


# --- from atoms and bonds to the arrays of a collection ------------------------------------------

MOST_ATOMS_IN_A_MATRIX = 500  # RDKit's bond matrix is dense: 2 MB; 2 GB for 16,000 atoms
_BOND_SYMBOLS = {1.0: "-", 1.5: ":", 2.0: "=", 3.0: "#", 4.0: "$"}
_SIDES = {"STEREOE": 1, "STEREOZ": 2}
_SIDE_NAMES = ("", "E", "Z")
_SIDE = 64  # added to the order of a bond, which is far smaller
_NO_INVARIANT = 1 << 32  # added to the key of an atom whose invariant is not used
_MOST_CIP_STEPS = 200_000  # a cage of rings may take RDKit hours


class Molecules:
    """Collects atoms and bonds of many molecules and builds one collection from them.

    Visiting every atom is slow. For molecules that were just parsed, one call returns the
    connectivity invariants of all atoms (hashes of element, neighbours and hydrogens, charge,
    isotope and ring), and only one atom of each is visited; aromatic atoms are those with an
    aromatic bond. Invariants do not separate hydrogens that are atoms from others, and molecules of
    the user may be partly kekulised: there, every atom is visited.
    """

    def __init__(self, recipe: MoleculeRecipe) -> None:
        self.chem = rdkit()
        from rdkit.Chem.rdCIPLabeler import AssignCIPLabels
        from rdkit.Chem.rdMolDescriptors import GetConnectivityInvariants

        self.recipe = recipe
        own = recipe.atom_function
        self.parts = frozenset() if own else atom_parts(recipe.atom_label)
        self.atom_key = own or (fine_key if self.parts <= FINE_PARTS else full_key)
        parsed_here = recipe.reader != "rdkit" or bool(recipe.standardize)
        self.by_invariant = parsed_here and not recipe.hydrogens and self.atom_key is fine_key
        self.invariants, self.label_stereo = GetConnectivityInvariants, AssignCIPLabels
        self.key_of: dict[int, int] = {}  # from invariants
        self.with_sides = recipe.bond_label == "order+stereo"
        self.needs_stereo = self.with_sides or "chirality" in self.parts
        self.standardizer = standardizer(recipe.standardize) if recipe.standardize else None
        plain = self.by_invariant and not (self.needs_stereo or recipe.standardize)
        stereo = not plain or bool(recipe.atom_attributes)
        self.parse = smiles_parser(True, stereo, recipe.max_atoms)
        self.attributes: AtomTable | None = None
        if recipe.atom_attributes:
            self.attributes = AtomTable(recipe.atom_attributes, recipe.attribute_function)
        self.kept: list[int] = []
        self.invalid: list[int] = []
        self.why: dict[int, str] = {}  # of some of these
        self.standard: list[tuple[Any, ...]] = []  # SMILES, molecule, steps that changed it
        self.sizes: list[int] = []
        self.atoms: list[Any] = []  # invariants, or what atom_key returned
        # Bonds as flat positions in the (n_atoms, n_atoms) matrix of their molecule.
        self.bonds: list[np.ndarray] = []
        self.bond_orders: list[np.ndarray] = []

    def extend(self, molecules: Iterable[Any]) -> Molecules:
        with quiet():
            for position, molecule in enumerate(molecules):
                if self._is_too_large(molecule):
                    n_atoms, most = molecule.GetNumAtoms(), self.recipe.max_atoms
                    self.why[position] = f"{n_atoms:,} atoms, more than max_atoms={most}"
                    molecule = None
                if molecule is not None and self.standardizer is not None:
                    # Parsed from its SMILES, which sets the order of its atoms.
                    smiles, changes = self.standardizer(molecule)
                    molecule = None if smiles is None else self.chem.MolFromSmiles(smiles)
                    if molecule is not None and molecule.GetNumAtoms():
                        self.standard.append((smiles, molecule, changes))
                if molecule is None or molecule.GetNumAtoms() == 0:
                    self.invalid.append(position)
                else:
                    self.kept.append(position)
                    self._add(position, molecule)
        return self

    def _is_too_large(self, molecule: Mol | None) -> bool:
        """Whether a molecule that was read from text has too many atoms."""
        if molecule is None or self.recipe.reader == "rdkit":
            return False
        return bool(molecule.GetNumAtoms() > self.recipe.max_atoms)

    def _add(self, position: int, molecule: Mol) -> None:
        if self.recipe.reader == "rdkit" and molecule.NeedsUpdatePropertyCache():
            raise GraphDataError(
                f"Graph {position} is an RDKit molecule that was never sanitised, so its hydrogens "
                "and rings are unknown. Call Chem.SanitizeMol on it first."
            )
        molecule = self.chem.AddHs(molecule) if self.recipe.hydrogens else molecule
        if self.needs_stereo:
            molecule = self.chem.Mol(molecule)
            with suppress(RuntimeError):  # too many steps: some centres stay unlabelled
                self.label_stereo(molecule, maxRecursiveIterations=_MOST_CIP_STEPS)
        n_atoms = molecule.GetNumAtoms()
        if self.by_invariant and molecule.GetNumHeavyAtoms() == n_atoms:
            found = self.invariants(molecule)
            if not self.key_of.keys() >= set(found):
                self.key_of |= zip(found, map(fine_key, molecule.GetAtoms()), strict=True)
        else:  # iterating over GetAtoms() takes twice as long
            found = list(map(self.atom_key, map(molecule.GetAtomWithIdx, range(n_atoms))))
            if self.by_invariant:
                found = [key + _NO_INVARIANT for key in found]
                self.key_of |= {number: number - _NO_INVARIANT for number in found}
        self.atoms += found
        if self.attributes is not None:
            self.attributes.add(molecule, position)
        self.sizes.append(n_atoms)
        bonds, orders = np.empty(0, dtype=np.int64), np.empty(0)
        if n_atoms <= MOST_ATOMS_IN_A_MATRIX and not self.with_sides:
            matrix = self.chem.GetAdjacencyMatrix(molecule, useBO=True, force=True).ravel()
            bonds = matrix.nonzero()[0]
            orders = matrix[bonds]
        # dative and zero-order bonds are in the matrix on one side only, or not at all
        if len(bonds) < 2 * molecule.GetNumBonds():
            bonds, orders = _bonds_one_by_one(molecule, self.with_sides)
        self.bonds.append(bonds)
        self.bond_orders.append(orders)

    def build(
        self,
        data: Mapping[str, Sequence[Any]],
        names: Sequence[Any] | np.ndarray | None = None,
        first_row: int = 0,
    ) -> GraphCollection:
        """Return the collection; ``data`` and ``names`` have a value for each molecule given."""
        if not self.sizes:
            raise GraphDataError("There is no molecule to read: expected at least one.")
        graph_data: dict[str, Any] = {key: [x[i] for i in self.kept] for key, x in data.items()}
        graph_data["row"] = [first_row + i for i in self.kept]
        names = None if names is None else objects(names[i] for i in self.kept)
        sizes = np.array(self.sizes)
        n_arcs = [len(bonds) for bonds in self.bonds]
        start, end = np.divmod(np.concatenate(self.bonds), np.repeat(sizes, n_arcs))
        start += np.repeat(np.cumsum(sizes) - sizes, n_arcs)
        # The arcs are in canonical order, each once: no need of build_collection.
        degrees = np.bincount(start, minlength=len(self.atoms))
        half_orders = np.rint(2 * np.concatenate(self.bond_orders)).astype(np.intp)
        edge_codes, edge_alphabet = _bond_labels(half_orders)
        if self.standardizer is not None:
            smiles, molecules, changes = zip(*self.standard, strict=True)
            if "smiles" in graph_data:
                graph_data |= {"smiles": smiles, "smiles_given": graph_data["smiles"]}
            else:
                graph_data["mol"] = molecules
            graph_data["standardized"] = changes
        return GraphCollection(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([[0], np.cumsum(degrees)]),
            end,
            edge_codes=edge_codes,
            edge_alphabet=edge_alphabet,
            names=names,
            graph_data=graph_data,
            recipe=self.recipe,
            **self._node_labels(start[half_orders == 3]),
            **({} if self.attributes is None else self.attributes.arguments()),
        )

    def _node_labels(self, aromatic: np.ndarray) -> dict[str, Any]:
        """Labels and, unless a function of the user's made them, fine labels that imply them."""
        if self.recipe.atom_function is not None:
            codes, alphabet = encode_labels(self.atoms)
            return {"node_codes": codes, "node_alphabet": alphabet}
        keys = np.array(self.atoms)
        if self.by_invariant:
            known = np.array(sorted(self.key_of.items()))  # (n_different, 2)
            keys = known[np.searchsorted(known[:, 0], keys), 1] & ~AROMATIC
            keys[aromatic] |= AROMATIC
        keys, which = np.unique(keys, return_inverse=True)
        symbol = self.chem.GetPeriodicTable().GetElementSymbol
        codes, alphabet = names_of_keys(keys, self.parts, symbol)
        fine_codes, fine_alphabet = names_of_keys(keys, FINE_PARTS | self.parts, symbol, False)
        return {
            "node_codes": codes[which],
            "node_alphabet": alphabet,
            "fine_codes": fine_codes[which],
            "fine_alphabet": fine_alphabet,
        }


def _bond_labels(half_orders: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes and names of bonds, given twice their orders (and sides)."""
    different = np.flatnonzero(np.bincount(half_orders))
    names = []
    for code in different.tolist():
        side, half = divmod(code, 2 * _SIDE)
        names.append(_BOND_SYMBOLS.get(half / 2, f"order {half / 2:g}") + _SIDE_NAMES[side])
    codes, alphabet = encode_labels(names)
    table = np.zeros(different.max(initial=0) + 1, dtype=np.int32)
    table[different] = codes
    return table[half_orders], alphabet


def _bonds_one_by_one(molecule: Mol, with_sides: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return both directions of every bond, ascending positions in the matrix, and the orders."""
    n_atoms = molecule.GetNumAtoms()
    order_at = {}
    for bond in molecule.GetBonds():
        u, v, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble()
        if with_sides:
            side = _SIDES.get(str(bond.GetStereo()), 0)
            if not side and bond.HasProp("_CIPCode"):  # only cis or trans
                side = _SIDES.get(f"STEREO{bond.GetProp('_CIPCode')}", 0)
            order += _SIDE * side
        order_at[u * n_atoms + v] = order_at[v * n_atoms + u] = order
    positions = sorted(order_at)
    return np.array(positions, dtype=np.int64), np.array([order_at[p] for p in positions])


_ATOM_RADIUS = 0.4  # in RDKit's units: a bond is about 1.5 long


def draw_molecule(
    molecule: Mol, painted: Painted, size: tuple[int, int], format: str
) -> str | bytes:
    """Return SVG text or PNG bytes of a molecule, some atoms and bonds in colour."""
    from rdkit.Chem.Draw import rdMolDraw2D

    bonds = {molecule.GetBondBetweenAtoms(*e).GetIdx(): c for e, c in painted.edges.items()}
    kind: Any = rdMolDraw2D.MolDraw2DCairo if format == "png" else rdMolDraw2D.MolDraw2DSVG
    drawer = kind(*size)
    options = drawer.drawOptions()
    options.useBWAtomPalette()  # coloured elements would be mistaken for contributions
    options.padding = 0.08
    rdMolDraw2D.PrepareAndDrawMolecule(
        drawer,
        molecule,
        highlightAtoms=list(painted.nodes),
        highlightBonds=list(bonds),
        highlightAtomColors=dict(painted.nodes),
        highlightBondColors=bonds,
        highlightAtomRadii=dict.fromkeys(painted.nodes, _ATOM_RADIUS),
    )
    drawer.FinishDrawing()
    drawing: str | bytes = drawer.GetDrawingText()
    return drawing


def mol_block(molecule: object) -> str:
    """Return a molecule with its coordinates as text, from which it can be drawn."""
    return str(rdkit().MolToMolBlock(molecule))


def of_mol_block(text: str) -> Any:
    """Return the molecule of such a text."""
    return rdkit().MolFromMolBlock(text, removeHs=False)
