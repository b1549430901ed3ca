"""Parts of molecules: some atoms kept, each with the labels that it has in the whole molecule.

A molecule with holes is none, and its atoms would get other labels (hydrogens, rings) if it were
read anew. So the labels stay, for graphs and for fingerprints alike: a model is asked about less
of the same, not about something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import treelens as tl


def parts_of(graph: tl.GraphCollection, kept: Sequence[np.ndarray]) -> tl.GraphCollection:
    """Copies of one graph, each with some of its nodes (flags) and the edges between them.

    Examples
    --------
    >>> whole = tl.as_graph_collection(["CCO"])
    >>> [part.edges for part in parts_of(whole, [np.array([0, 1, 1], bool)])]
    [((0, 1),)]
    """
    source = np.repeat(np.arange(graph.n_nodes), np.diff(graph.neighbor_offsets))
    offsets, sizes, neighbors, degrees, nodes, arcs = [0], [], [], [], [], []
    for flags in kept:
        place = np.cumsum(flags) - 1
        held = flags[source] & flags[graph.neighbors]
        neighbors.append(place[graph.neighbors[held]])
        degrees.append(np.bincount(source[held], minlength=len(flags))[flags])
        arcs.append(np.flatnonzero(held))
        nodes.append(np.flatnonzero(flags))
        sizes.append(len(nodes[-1]))
    node, arc = np.concatenate(nodes), np.concatenate(arcs)
    given = graph._arguments() | {
        "node_offsets": np.cumsum([*offsets, *sizes]),
        "neighbor_offsets": np.concatenate([[0], np.cumsum(np.concatenate(degrees))]),
        "neighbors": np.concatenate(neighbors),
        "node_codes": graph.node_codes[node],
        "names": None,
        "graph_data": {},
    }
    if graph.edge_codes is not None:
        given["edge_codes"] = graph.edge_codes[arc]
    if graph.fine_codes is not None:
        given["fine_codes"] = graph.fine_codes[node]
    return tl.GraphCollection(**given)


class Fingerprints:
    """ECFP4 counts of molecules and of parts of them, and the atoms behind each count."""

    N_BITS = 2048

    def __init__(self) -> None:
        from rdkit.Chem import rdFingerprintGenerator as made

        self._generator = made.GetMorganGenerator(
            radius=2, fpSize=self.N_BITS, includeRedundantEnvironments=True
        )
        self._output = made.AdditionalOutput

    def of(self, molecule: Any) -> np.ndarray:
        return self._generator.GetCountFingerprintAsNumPy(molecule).astype(np.float32)

    def of_parts(self, molecule: Any, kept: Sequence[np.ndarray]) -> np.ndarray:
        """A row for every set of atoms (flags): (n_parts, n_bits)."""
        from rdkit.Chem import rdMolDescriptors

        labels = list(rdMolDescriptors.GetConnectivityInvariants(molecule))
        return np.array([self._part(molecule, labels, flags) for flags in kept])

    def _part(self, molecule: Any, labels: list[int], flags: np.ndarray) -> np.ndarray:
        from rdkit import Chem

        part = Chem.RWMol(molecule)
        part.BeginBatchEdit()
        for atom in np.flatnonzero(~flags).tolist():
            part.RemoveAtom(atom)
        part.CommitBatchEdit()
        part.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(part)
        own = [label for label, keep in zip(labels, flags.tolist(), strict=True) if keep]
        found = self._generator.GetCountFingerprintAsNumPy(part, customAtomInvariants=own)
        return found.astype(np.float32)

    def spread(self, molecule: Any, worth: np.ndarray) -> np.ndarray:
        """What atoms are worth if each bit's worth is shared by the atoms of its environments."""
        output = self._output()
        output.AllocateBitInfoMap()
        self._generator.GetCountFingerprint(molecule, additionalOutput=output)
        atoms = np.zeros(molecule.GetNumAtoms())
        near = _distances(molecule)
        for bit, places in output.GetBitInfoMap().items():
            for atom, radius in places:
                reached = near[atom] <= radius
                atoms[reached] += worth[bit] / (len(places) * reached.sum())
        return atoms


def _distances(molecule: Any) -> np.ndarray:
    from rdkit import Chem

    return Chem.GetDistanceMatrix(molecule)
