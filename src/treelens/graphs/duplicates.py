"""Rows that hold the same molecule, whatever way it is written, and how they are merged.

Two molecules are the same where their canonical SMILES are. Writing these takes about as long as
reading the molecules, so it is done only for graphs that a quick hash cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.chem import quiet, rdkit, smiles_parser
from treelens.graphs.collection import GraphCollection
from treelens.graphs.opening import is_number

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
    chem, parse, data = rdkit(), smiles_parser(), graphs.graph_data

    def written(index: int, stereo: bool) -> str:
        known = "mol" in data
        molecule = chem.RemoveHs(data["mol"][index]) if known else parse(data["smiles"][index])
        return str(chem.MolToSmiles(molecule, isomericSmiles=stereo))

    by_hash: dict[int, list[int]] = {}
    for index, key in enumerate(structure_hashes(graphs).tolist()):
        by_hash.setdefault(key, []).append(index)
    groups, stereo, n_stereo = np.arange(len(graphs)), stereo_matters(graphs), 0
    with quiet():
        for same_hash in by_hash.values():
            first_of: dict[str, int] = {}
            for index in same_hash if len(same_hash) > 1 else ():
                first = first_of.setdefault(written(index, stereo), index)
                groups[index] = first
                if first != index and not stereo:
                    n_stereo += written(index, True) != written(first, True)
    return SameMolecules(groups, n_stereo)


def structure_hashes(graphs: GraphCollection) -> np.ndarray:
    """A number for each graph, shape (n_graphs,): equal for equal graphs, else most often not."""
    codes = graphs.node_codes if graphs.fine_codes is None else graphs.fine_codes
    degrees = np.diff(graphs.neighbor_offsets)
    first_node = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    ends = graphs.neighbors + np.repeat(first_node, degrees)  # (n_arcs,) among all nodes
    bonds = np.zeros(len(ends), np.uint64) if graphs.edge_codes is None else mixed(
        graphs.edge_codes.astype(np.uint64) + np.uint64(7))  # fmt: skip
    colors = mixed(codes.astype(np.uint64))
    for _ in range(_ROUNDS):
        around = run_sums(mixed(colors[ends] + bonds), graphs.neighbor_offsets)
        colors = mixed(colors * _ODD + around)
    return run_sums(colors, graphs.node_offsets)


def mixed(values: np.ndarray) -> np.ndarray:
    """Return whole numbers scattered over all of 64 bits."""
    values = (values + _ODD) * np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(29)
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(32))


def run_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return sums of runs, modulo 2**64."""
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


# --- merging ------------------------------------------------------------------------------------

_FEWEST = 10  # degrees of freedom that a spread of replicates is estimated from


def same_measurements(groups: np.ndarray, columns: Sequence[Iterable[Any]]) -> np.ndarray:
    """Return groups, by their first graph, of the same molecule under the same covariates."""

    def value(text: Any) -> Any:  # 25 and 25.0 are the same temperature
        cell = str(text).strip()
        return float(cell) if is_number(cell) else cell

    first_of: dict[tuple[Any, ...], int] = {}
    keys = zip(groups.tolist(), *(map(value, column) for column in columns), strict=True)
    return np.array([first_of.setdefault(key, k) for k, key in enumerate(keys)], dtype=np.int64)


def members(groups: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each group, in the order of their first members."""
    _, which = np.unique(groups, return_inverse=True)
    return np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])


def contradictions(
    y: np.ndarray, groups: np.ndarray, numbers: bool, limits: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return groups of different classes, or of numbers far apart, the furthest first."""
    parts = [part for part in members(groups) if len(part) > 1]
    if not numbers:
        return [part for part in parts if len(np.unique(y[part])) > 1]
    signs = np.zeros(len(y)) if limits is None else limits  # contradict on one side only
    low, high = np.where(signs < 0, -np.inf, y), np.where(signs > 0, np.inf, y)
    apart = [float(low[part].max() - high[part].min()) for part in parts]
    order = sorted(range(len(parts)), key=lambda k: -apart[k])
    return [parts[k] for k in order if apart[k] > np.std(y)]


def merged_classes(y: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent class of each group, and which groups have no tie."""
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.array([np.bincount(codes[p], minlength=len(classes)) for p in members(groups)])
    clear = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    return classes[votes.argmax(axis=1)], clear


def merged_numbers(
    y: np.ndarray, limits: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean or tightest limit of each group, its sign, and which rows (n,) made it."""
    parts = members(groups)
    values, signs, counted = np.empty(len(parts)), np.zeros(len(parts), np.int64), limits == 0
    for k, part in enumerate(parts):
        exact, lower, upper = (y[part][limits[part] == sign] for sign in (0, 1, -1))
        if len(exact):
            values[k] = exact.mean()
            continue
        counted[part[np.argmax(limits[part] * y[part])]] = True
        if len(lower) and len(upper):
            values[k] = 0.5 * (lower.max() + upper.min())  # counts as a value
        else:
            signs[k] = 1 if len(lower) else -1
            values[k] = lower.max() if len(lower) else upper.min()
    return values, signs, counted


def noise_of_means(
    y: np.ndarray, groups: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the standard deviation of the mean of each group; None where it is not known.

    From those ``known`` of the values, else from the spread of replicates, pooled over all groups
    by a median, in which single mistakes do not count. Equal values are one that was copied.
    """
    parts = members(groups)
    if known is not None:
        return np.array([np.sqrt((known[part] ** 2).sum()) / len(part) for part in parts])
    from scipy.stats import chi2

    counts = np.array([len(np.unique(y[part])) for part in parts])
    if (counts - 1).sum() < _FEWEST:
        return None
    several = np.flatnonzero(counts > 1)
    squares = [((u := np.unique(y[parts[k]])) - u.mean()) @ (u - u.mean()) for k in several]
    pooled = float(np.median(squares / chi2.median(counts[several] - 1)))
    return np.sqrt(pooled / counts)
