"""From RDKit molecules to the arrays of a collection, all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from treelens.graphs.atoms import (
    FINE_PARTS,
    atom_parts,
    different_keys,
    key_of,
    names_of_keys,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.labels import encode_labels
from treelens.graphs.rdkit_log import quiet, start_listening
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.standardize import Standardizer

_MOST_ATOMS_IN_A_MATRIX = 500  # RDKit's matrix of bonds is dense: 2 MB; of 16,000 atoms, 2 GB
_BOND_SYMBOLS = {1.0: "-", 1.5: ":", 2.0: "=", 3.0: "#", 4.0: "$"}
_SIDES = {"STEREOE": 1, "STEREOZ": 2}
_SIDE_NAMES = ("", "E", "Z")
_SIDE = 64  # how much a side adds to the order of a bond, which is far smaller
_MOST_CIP_STEPS = 200_000  # a cage of rings may take RDKit hours


def rdkit() -> Any:
    """RDKit's module of molecules, or an error that says how to get it."""
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ImportError("Reading molecules needs RDKit: pip install 'treelens[chem]'.") from error
    start_listening()
    return Chem


def smiles_parser() -> Callable[[str], Any]:
    """A function that gives the molecule of a SMILES, or None.

    RDKit takes what follows a blank for a name; in a cell, it is a second SMILES or a mistake. Only
    the extensions of CXSMILES (``|...|``) may stand there.
    """
    parse = rdkit().MolFromSmiles

    def parsed(smiles: str) -> Any:
        more = smiles.split(maxsplit=1)[1:]
        if more and not more[0].startswith("|"):
            return None
        try:
            return parse(smiles)
        except UnicodeEncodeError:  # half a surrogate pair is no text: no molecule either
            return None

    return parsed


class Molecules:
    """Gathers the atoms and bonds of many molecules, to build the collection at once."""

    def __init__(self, recipe: GraphRecipe) -> None:
        self.chem = rdkit()
        self.recipe = recipe
        own = recipe.atom_function
        self.parts = frozenset() if own else atom_parts(recipe.atom_label or "element")
        self.label = own or key_of(self.parts)
        self.sees_sides = recipe.bond_label == "order+stereo"
        self.needs_stereo = self.sees_sides or "chirality" in self.parts
        self.standardizer = Standardizer(recipe.standardize) if recipe.standardize else None
        self.kept: list[int] = []
        self.invalid: list[int] = []
        self.standard: list[tuple[str, Any, str]] = []  # SMILES, molecule, what led to it
        self.sizes: list[int] = []
        self.labels: list[Any] = []  # keys of atoms, or what a function of the user's gave
        # Bonds as flat positions in the (n_atoms, n_atoms) matrix of their molecule.
        self.bonds: list[np.ndarray] = []
        self.bond_orders: list[np.ndarray] = []

    def extend(self, molecules: Iterable[Any]) -> Molecules:
        with quiet() as listener:
            for position, molecule in enumerate(molecules):
                if molecule is not None and self.standardizer is not None:
                    molecule = self._standardized(molecule)
                if molecule is None or molecule.GetNumAtoms() == 0:
                    self.invalid.append(position)
                else:
                    self.kept.append(position)
                    self._add_sanitized(position, molecule)
                if listener is not None:
                    listener.molecule_ends(None if molecule is None else position)
        return self

    def _add_sanitized(self, position: int, molecule: Any) -> None:
        try:
            self._add(self.chem.AddHs(molecule) if self.recipe.hydrogens else molecule)
        except RuntimeError as error:
            if _is_sanitized(molecule):  # a function of the user's, say, went wrong
                raise
            raise GraphDataError(
                f"Graph {position} is an RDKit molecule that was never sanitised: nobody has "
                "counted its hydrogens or found its rings. Call Chem.SanitizeMol on it first."
            ) from error

    def _standardized(self, molecule: Any) -> Any:
        """The standard form, read from its SMILES: its atoms stand in the order that gives."""
        assert self.standardizer is not None
        smiles, changes = self.standardizer(molecule)
        molecule = None if smiles is None else self.chem.MolFromSmiles(smiles)
        if smiles is not None and molecule is not None and molecule.GetNumAtoms():
            self.standard.append((smiles, molecule, changes))
        return molecule

    def _add(self, molecule: Any) -> None:
        n_atoms = molecule.GetNumAtoms()
        if self.needs_stereo:
            molecule = self._with_stereo(molecule)
        self.sizes.append(n_atoms)
        # Both ways below are RDKit's fast ones: iterating over GetAtoms() takes about twice as
        # long, asking bond by bond several times.
        self.labels += map(self.label, map(molecule.GetAtomWithIdx, range(n_atoms)))
        bonds, orders = self._bonds_of(molecule, n_atoms)
        self.bonds.append(bonds)
        self.bond_orders.append(orders)

    def _with_stereo(self, molecule: Any) -> Any:
        """A copy whose stereo centres are named."""
        from rdkit.Chem import rdCIPLabeler

        molecule = self.chem.Mol(molecule)
        with suppress(RuntimeError):  # too many steps: what has no name yet goes without
            rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=_MOST_CIP_STEPS)
        return molecule

    def _bonds_of(self, molecule: Any, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
        if n_atoms <= _MOST_ATOMS_IN_A_MATRIX and not self.sees_sides:
            orders = self.chem.GetAdjacencyMatrix(molecule, useBO=True, force=True).ravel()
            bonds = orders.nonzero()[0]
            # dative and zero-order bonds stand in the matrix on one side only, or not at all
            if len(bonds) == 2 * molecule.GetNumBonds():
                return bonds, orders[bonds]
        return _bonds_one_by_one(molecule, self.sees_sides)

    # --- the collection -----------------------------------------------------------------------

    def build(self, graph_data: Mapping[str, Any], names: Any = None) -> GraphCollection:
        if not self.sizes:
            raise GraphDataError("There is no molecule to read: expected at least one.")
        sizes = np.array(self.sizes)
        n_arcs = [len(bonds) for bonds in self.bonds]
        start, end = np.divmod(np.concatenate(self.bonds), np.repeat(sizes, n_arcs))
        start += np.repeat(np.cumsum(sizes) - sizes, n_arcs)
        # The arcs stand in canonical order already, each once: no need of build_collection.
        degrees = np.bincount(start, minlength=len(self.labels))
        edge_codes, edge_alphabet = _bond_labels(np.concatenate(self.bond_orders))
        return GraphCollection(
            np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0], np.cumsum(degrees)]),
            end, edge_codes=edge_codes, edge_alphabet=edge_alphabet, names=names,
            graph_data=self._data(graph_data), recipe=self.recipe, **self._node_labels(),
        )  # fmt: skip

    def _node_labels(self) -> dict[str, Any]:
        """Labels and fine ones, which imply them; those of a function of the user's may not."""
        if self.recipe.atom_function is not None:
            codes, alphabet = encode_labels(self.labels)
            return {"node_codes": codes, "node_alphabet": alphabet}
        keys, which = different_keys(np.array(self.labels))
        symbol = self.chem.GetPeriodicTable().GetElementSymbol
        codes, alphabet = names_of_keys(keys, self.parts, symbol)
        fine_codes, fine_alphabet = names_of_keys(keys, FINE_PARTS | self.parts, symbol, False)
        return {
            "node_codes": codes[which], "node_alphabet": alphabet,
            "fine_codes": fine_codes[which], "fine_alphabet": fine_alphabet,
        }  # fmt: skip

    def _data(self, graph_data: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is known of each graph, with the standard form in the place of what was given."""
        if self.standardizer is None:
            return graph_data
        smiles, molecules, changes = zip(*self.standard, strict=True)
        if "mol" in graph_data:
            return {**graph_data, "mol": molecules, "standardized": changes}
        return {
            **graph_data, "smiles": smiles, "smiles_given": graph_data["smiles"],
            "standardized": changes,
        }  # fmt: skip


def _is_sanitized(molecule: Any) -> bool:
    try:
        molecule.GetRingInfo().NumRings()
    except RuntimeError:  # nobody looked for rings
        return False
    return not molecule.NeedsUpdatePropertyCache()


def _bond_labels(orders: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Names of bonds, with the side of a double bond where that was looked at, as codes."""
    halves = np.rint(2 * orders).astype(np.intp)
    different = np.flatnonzero(np.bincount(halves))
    names = []
    for code in different.tolist():
        side, half = divmod(code, 2 * _SIDE)
        name = _BOND_SYMBOLS.get(half / 2, f"order {half / 2:g}")
        names.append(name + _SIDE_NAMES[side])
    codes, alphabet = encode_labels(names)
    table = np.zeros(different.max(initial=0) + 1, dtype=np.int32)
    table[different] = codes
    return table[halves], alphabet


def _bonds_one_by_one(molecule: Any, sides: bool) -> tuple[np.ndarray, np.ndarray]:
    """Both directions of every bond, as positions in the matrix, ascending, and the orders.

    A dative bond counts as a single one; a bond of order zero is kept, with that order.
    """
    n_atoms = molecule.GetNumAtoms()
    order_at = {}
    for bond in molecule.GetBonds():
        u, v, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble()
        order += _SIDE * _side(bond) if sides else 0
        order_at[u * n_atoms + v] = order_at[v * n_atoms + u] = order
    positions = sorted(order_at)
    return np.array(positions, dtype=np.int64), np.array([order_at[p] for p in positions])


def _side(bond: Any) -> int:
    known = _SIDES.get(str(bond.GetStereo()), 0)
    if known or not bond.HasProp("_CIPCode"):  # what is only cis or trans has its letter there
        return known
    return _SIDES.get(f"STEREO{bond.GetProp('_CIPCode')}", 0)
