"""What else is known of the graphs that have a fragment: their values, classes and scaffolds."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.decode import Occurrence
from treelens.explain.layout import is_molecule
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.molecules import molecule_of

_MOST_SCAFFOLDS = 40  # molecules of a fragment whose scaffolds are looked at
_LEAST_SHARE = 0.8  # of them with one scaffold
_ONE_CLASS = 0.9  # of the graphs with a fragment


def measured_with_and_without(
    holders: np.ndarray, targets: np.ndarray, n_classes: int | None = None
) -> tuple[Any, Any]:
    """Return the mean value, or the shares of the classes, with a fragment and without it.

    ``holders`` are positions of the graphs that have it; ``targets`` values, or with ``n_classes``
    codes of classes. The second is None where all graphs have the fragment.

    Examples
    --------
    >>> measured_with_and_without(np.array([0, 2]), np.array([1.0, 5.0, 3.0]))
    (2.0, 5.0)
    """
    inside = np.zeros(len(targets), dtype=bool)
    inside[holders] = True
    found: list[Any] = []
    for part in (targets[inside], targets[~inside]):
        if not len(part):
            found.append(None)
        elif n_classes is None:
            found.append(float(part.mean()))
        else:
            found.append((np.bincount(part, minlength=n_classes) / len(part)).tolist())
    return found[0], found[1]


def confounders(
    graphs: GraphCollection,
    holders: np.ndarray,
    targets: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    scaffolds: dict[int, str] | None = None,
) -> list[str]:
    """Return what the graphs with a fragment share beside it, which may be behind its effect.

    ``scaffolds`` is a cache of Murcko scaffolds by position.
    """
    found, n = [], len(holders)
    if classes is not None and targets is not None:
        counts = np.bincount(targets[holders], minlength=len(classes))
        if counts.max() >= _ONE_CLASS * n and np.bincount(targets).max() < _ONE_CLASS * len(
            targets
        ):
            found.append(f"{counts.max()} of {n} are of class {classes[counts.argmax()]}")
    if len(graphs) and is_molecule(graphs[0]):
        found += _shared_scaffold(graphs, holders, {} if scaffolds is None else scaffolds)
    return found


def _shared_scaffold(
    graphs: GraphCollection, holders: np.ndarray, known: dict[int, str]
) -> list[str]:
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    def of_some(positions: np.ndarray) -> list[str]:
        sample = positions[:: max(1, -(-len(positions) // _MOST_SCAFFOLDS))].tolist()
        for position in sample:
            if position not in known:
                known[position] = MurckoScaffoldSmiles(mol=molecule_of(graphs[position]))
        return [known[k] for k in sample]

    sample = of_some(holders)
    names, counts = np.unique(sample, return_counts=True)
    n, scaffold = int(counts.max()), str(names[counts.argmax()])
    if n < _LEAST_SHARE * len(sample) or not scaffold:  # chains have no scaffold to share
        return []
    others = of_some(np.setdiff1d(np.arange(len(graphs)), holders))
    if not others or others.count(scaffold) >= 0.5 * len(others):  # most molecules have it
        return []
    return [f"{n} of {len(sample)} {'' if len(sample) == len(holders) else 'looked at '}have the "
            f"scaffold {scaffold}"]  # fmt: skip


def fragment_smiles(graph: Graph, place: Occurrence) -> str | None:
    """Return the SMILES of the atoms of a fragment where it occurs; None for other graphs."""
    if not is_molecule(graph):
        return None
    from rdkit import Chem

    return str(Chem.MolFragmentToSmiles(molecule_of(graph), list(place.nodes)))
