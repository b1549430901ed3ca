"""From RDKit molecules to the arrays of a collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from treelens.graphs.atoms import (
    AROMATIC,
    FINE_PARTS,
    AtomTable,
    atom_parts,
    different_keys,
    fine_key,
    full_key,
    names_of_keys,
    standardizer,
)
from treelens.graphs.build import encode_labels
from treelens.graphs.chem import quiet, rdkit
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.recipe import GraphRecipe

MOST_ATOMS_IN_A_MATRIX = 500  # RDKit's bond matrix is dense: 2 MB; 2 GB for 16,000 atoms
_BOND_SYMBOLS = {1.0: "-", 1.5: ":", 2.0: "=", 3.0: "#", 4.0: "$"}
_SIDES = {"STEREOE": 1, "STEREOZ": 2}
_SIDE_NAMES = ("", "E", "Z")
_SIDE = 64  # added to the order of a bond, which is far smaller
_NO_INVARIANT = 1 << 32  # added to the key of an atom whose invariant is not used
_MOST_CIP_STEPS = 200_000  # a cage of rings may take RDKit hours


class Molecules:
    """Collects atoms and bonds of many molecules and builds one collection from them.

    Visiting every atom is slow, since each becomes a Python object. For molecules that were just
    parsed, one call returns the connectivity invariants of all atoms (hashes of element, neighbours
    and hydrogens together, hydrogens, charge, isotope and ring), and only one atom of each
    invariant is visited; aromatic atoms are those with an aromatic bond. Every atom is visited
    where this may fail: invariants do not separate hydrogens that are atoms from others, and
    molecules of the user may be partly kekulised.
    """

    def __init__(self, recipe: GraphRecipe) -> None:
        self.chem = rdkit()
        from rdkit.Chem.rdCIPLabeler import AssignCIPLabels
        from rdkit.Chem.rdMolDescriptors import GetConnectivityInvariants

        self.recipe = recipe
        own = recipe.atom_function
        self.parts = frozenset() if own else atom_parts(recipe.atom_label or "element")
        self.atom_key = own or (fine_key if self.parts <= FINE_PARTS else full_key)
        parsed_here = recipe.reader != "rdkit" or bool(recipe.standardize)
        self.by_invariant = parsed_here and not recipe.hydrogens and self.atom_key is fine_key
        self.invariants, self.label_stereo = GetConnectivityInvariants, AssignCIPLabels
        self.key_of: dict[int, int] = {}  # from invariants
        self.with_sides = recipe.bond_label == "order+stereo"
        self.needs_stereo = self.with_sides or "chirality" in self.parts
        self.standardizer = standardizer(recipe.standardize) if recipe.standardize else None
        self.attributes: AtomTable | None = None
        if recipe.atom_attributes:
            self.attributes = AtomTable(recipe.atom_attributes, recipe.attribute_function)
        self.kept: list[int] = []
        self.invalid: list[int] = []
        self.standard: list[tuple[str, Any, str]] = []  # SMILES, molecule, steps that changed it
        self.sizes: list[int] = []
        self.atoms: list[Any] = []  # invariants, or what atom_key returned
        # Bonds as flat positions in the (n_atoms, n_atoms) matrix of their molecule.
        self.bonds: list[np.ndarray] = []
        self.bond_orders: list[np.ndarray] = []

    def extend(self, molecules: Iterable[Any]) -> Molecules:
        with quiet():
            for position, molecule in enumerate(molecules):
                if molecule is not None and self.standardizer is not None:
                    molecule = self._standardized(molecule)
                if molecule is None or molecule.GetNumAtoms() == 0:
                    self.invalid.append(position)
                else:
                    self.kept.append(position)
                    self._add(position, molecule)
        return self

    def _standardized(self, molecule: Any) -> Any:
        """Return the standard form, parsed from its SMILES, which sets the order of its atoms."""
        assert self.standardizer is not None
        smiles, changes = self.standardizer(molecule)
        molecule = None if smiles is None else self.chem.MolFromSmiles(smiles)
        if smiles is not None and molecule is not None and molecule.GetNumAtoms():
            self.standard.append((smiles, molecule, changes))
        return molecule

    def _add(self, position: int, given: Any) -> None:
        try:
            molecule = self.chem.AddHs(given) if self.recipe.hydrogens else given
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
        except RuntimeError as error:
            if _is_sanitized(given):  # raised by a function of the user's, for example
                raise
            raise GraphDataError(
                f"Graph {position} is an RDKit molecule that was never sanitised, so its hydrogens "
                "and rings are unknown. Call Chem.SanitizeMol on it first."
            ) from error
        if self.attributes is not None:
            self.attributes.add(molecule, position)
        self.sizes.append(n_atoms)
        if n_atoms <= MOST_ATOMS_IN_A_MATRIX and not self.with_sides:
            orders = self.chem.GetAdjacencyMatrix(molecule, useBO=True, force=True).ravel()
            bonds = orders.nonzero()[0]
            # dative and zero-order bonds are in the matrix on one side only, or not at all
            if len(bonds) == 2 * molecule.GetNumBonds():
                self.bonds.append(bonds)
                self.bond_orders.append(orders[bonds])
                return
        bonds, orders = _bonds_one_by_one(molecule, self.with_sides)
        self.bonds.append(bonds)
        self.bond_orders.append(orders)

    def build(self, graph_data: Mapping[str, Any], names: Any = None) -> GraphCollection:
        """Return the collection of all molecules; ``graph_data`` has a value for each."""
        if not self.sizes:
            raise GraphDataError("There is no molecule to read: expected at least one.")
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
            forms = {"mol": molecules}
            if "mol" not in graph_data:
                forms = {"smiles": smiles, "smiles_given": graph_data["smiles"]}
            graph_data = {**graph_data, **forms, "standardized": changes}
        return GraphCollection(
            np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0], np.cumsum(degrees)]),
            end, edge_codes=edge_codes, edge_alphabet=edge_alphabet, names=names,
            graph_data=graph_data, recipe=self.recipe,
            **self._node_labels(start[half_orders == 3]),
            **({} if self.attributes is None else self.attributes.arguments()),
        )  # fmt: skip

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
        keys, which = different_keys(keys)
        symbol = self.chem.GetPeriodicTable().GetElementSymbol
        codes, alphabet = names_of_keys(keys, self.parts, symbol)
        fine_codes, fine_alphabet = names_of_keys(keys, FINE_PARTS | self.parts, symbol, False)
        return {
            "node_codes": codes[which], "node_alphabet": alphabet,
            "fine_codes": fine_codes[which], "fine_alphabet": fine_alphabet,
        }  # fmt: skip


def _is_sanitized(molecule: Any) -> bool:
    try:
        molecule.GetRingInfo().NumRings()
    except RuntimeError:
        return False
    return not molecule.NeedsUpdatePropertyCache()


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


def _bonds_one_by_one(molecule: Any, with_sides: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return both directions of every bond, as ascending positions in the matrix, and the orders.

    A dative bond counts as a single one; a bond of order zero is kept, with that order.
    """
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
