"""Rows that hold the same molecule, whatever way it is written, and how they are merged.

Two molecules are the same where their canonical SMILES are. Writing these takes about as long as
reading the molecules, so it is done only for graphs that a quick hash cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.gathering import rdkit, smiles_parser
from treelens.graphs.integers import is_number
from treelens.graphs.limits import apart
from treelens.graphs.rdkit_log import quiet

_ROUNDS = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)


class SameMolecules(NamedTuple):
    """Which graphs are the same molecule."""

    groups: np.ndarray  # (n_graphs,) the first graph that is the same molecule
    n_stereo: int  # of those that repeat another: how many are a stereoisomer or isotope of it


def same_molecules(graphs: GraphCollection) -> SameMolecules:
    """Groups of graphs that are the same molecule.

    Stereochemistry and isotopes count only where labels of atoms or bonds depend on them.

    Examples
    --------
    >>> from treelens.graphs.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["OCC", "CCN", "CCO", "C[C@H](N)O", "C[C@@H](N)O"])
    >>> same_molecules(graphs)
    SameMolecules(groups=array([0, 1, 0, 3, 3]), n_stereo=1)
    """
    groups = np.arange(len(graphs))
    by_hash: dict[int, list[int]] = {}
    for index, key in enumerate(structure_hashes(graphs).tolist()):
        by_hash.setdefault(key, []).append(index)
    write, stereo = _writer(graphs), stereo_matters(graphs)
    n_stereo = 0
    for same_hash in by_hash.values():
        if len(same_hash) == 1:
            continue
        first_of: dict[str, int] = {}
        for index in same_hash:
            first = first_of.setdefault(write(index, stereo), index)
            groups[index] = first
            if first != index and not stereo:
                n_stereo += write(index, True) != write(first, True)
    return SameMolecules(groups, n_stereo)


def structure_hashes(graphs: GraphCollection) -> np.ndarray:
    """A number for each graph, shape (n_graphs,): equal for equal graphs, else most often not."""
    codes = graphs.node_codes if graphs.fine_codes is None else graphs.fine_codes
    degrees = np.diff(graphs.neighbor_offsets)
    first_node = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    ends = graphs.neighbors + np.repeat(first_node, degrees)  # (n_arcs,) among all nodes
    bonds = np.zeros(len(ends), np.uint64) if graphs.edge_codes is None else _mixed(
        graphs.edge_codes.astype(np.uint64) + np.uint64(7))  # fmt: skip
    colors = _mixed(codes.astype(np.uint64))
    for _ in range(_ROUNDS):
        around = _sums(_mixed(colors[ends] + bonds), graphs.neighbor_offsets)
        colors = _mixed(colors * _ODD + around)
    return _sums(colors, graphs.node_offsets)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Whole numbers scattered over all of 64 bits."""
    values = (values + _ODD) * np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(29)
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(32))


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums of runs, modulo 2**64."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[offsets[1:]] - total[offsets[:-1]]


def stereo_matters(graphs: GraphCollection) -> bool:
    """Whether labels of atoms or bonds depend on stereochemistry or isotopes."""
    recipe = graphs.recipe
    if recipe is None or recipe.atom_function is not None:
        return True
    parts = (recipe.atom_label or "").split("+")
    return recipe.bond_label == "order+stereo" or not {"chirality", "isotope"}.isdisjoint(parts)


def _writer(graphs: GraphCollection) -> Callable[[int, bool], str]:
    """Return a function that writes the canonical SMILES of the molecule behind a graph."""
    chem, parse, data = rdkit(), smiles_parser(), graphs.graph_data

    def write(index: int, stereo: bool) -> str:
        with quiet():
            molecule = (
                chem.RemoveHs(data["mol"][index]) if "mol" in data else parse(data["smiles"][index])
            )
            return str(chem.MolToSmiles(molecule, isomericSmiles=stereo))

    return write


# --- merging ------------------------------------------------------------------------------------


def same_measurements(groups: np.ndarray, columns: Sequence[Iterable[Any]]) -> np.ndarray:
    """Groups, by their first graph, of the same molecule under the same covariates.

    Examples
    --------
    >>> same_measurements(np.array([0, 0, 0]), [["25", "25.0", "60"]]).tolist()
    [0, 0, 2]
    """
    first_of: dict[tuple[Any, ...], int] = {}
    keys = zip(groups.tolist(), *(map(_value, column) for column in columns), strict=True)
    return np.array([first_of.setdefault(key, k) for k, key in enumerate(keys)], dtype=np.int64)


def _value(text: Any) -> Any:
    """The value of a cell: 25 and 25.0 are the same temperature."""
    cell = str(text).strip()
    return float(cell) if is_number(cell) else cell


def members(groups: np.ndarray) -> list[np.ndarray]:
    """Positions of each group, in the order of their first members."""
    _, which = np.unique(groups, return_inverse=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])


def contradictions(
    y: np.ndarray, groups: np.ndarray, numbers: bool, limits: np.ndarray | None = None
) -> list[np.ndarray]:
    """Groups with different classes, or numbers further apart than the deviation of all (the
    furthest first).
    """
    parts = [part for part in members(groups) if len(part) > 1]
    if not numbers:
        return [part for part in parts if len(np.unique(y[part])) > 1]
    by = {int(part[0]): apart(y[part], None if limits is None else limits[part]) for part in parts}
    far = [part for part in parts if by[int(part[0])] > np.std(y)]
    return sorted(far, key=lambda part: -by[int(part[0])])


def merged_targets(
    y: np.ndarray, groups: np.ndarray, numbers: bool
) -> tuple[np.ndarray, np.ndarray]:
    """One target per group, the mean or the most frequent class, and which have no tie.

    Examples
    --------
    >>> merged_targets(np.array(["a", "b", "b", "a", "b"]), np.array([0, 0, 0, 3, 3]), False)
    (array(['b', 'a'], dtype='<U1'), array([ True, False]))
    """
    parts = members(groups)
    if numbers:
        return np.array([y[part].mean() for part in parts]), np.ones(len(parts), dtype=bool)
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.array([np.bincount(codes[part], minlength=len(classes)) for part in parts])
    clear = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    return classes[votes.argmax(axis=1)], clear
