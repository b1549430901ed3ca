"""Matched pairs: training graphs that are much alike and differ in what they were measured as."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treelens.explain.layout import is_molecule
from treelens.explain.names import LabelNames, with_label_names
from treelens.gp.model import FittedGP
from treelens.graphs.collection import Graph
from treelens.graphs.molecules import molecule_of
from treelens.kernels.gram import pair_sums
from treelens.kernels.normalize import normalize_kernel
from treelens.patterns.features import select_features
from treelens.report.details import drawable, molecule_data
from treelens.report.held import Held
from treelens.report.patterns import LARGEST_DRAWN

MOST_PAIRS = 4
_MOST_COMPARED = 1000  # training graphs, picked by chance: every one is compared with all of these
_LEAST_ALIKE = 0.3
_THE_SAME = 1.0 - 1e-9
_SECONDS = 1  # for the largest common part of two molecules


class Pair(NamedTuple):
    """Two training graphs by position, and how similar the model finds them."""

    one: int
    other: int
    similarity: float


def pair_section(
    model: FittedGP, held: Held, names: str | LabelNames | None = None
) -> dict[str, Any] | None:
    """The most striking pairs with drawings; None without training graphs or such pairs."""
    if held.train_graphs is None or model.training is None:
        return None
    pairs, n_compared = striking_pairs(model)
    shown = held.train_graphs
    pairs = [p for p in pairs if max(shown[p.one].n_nodes, shown[p.other].n_nodes) <= LARGEST_DRAWN]
    if not pairs:
        return None
    shown = shown if names is None else with_label_names(shown, names)
    rows = []
    for pair in pairs[:MOST_PAIRS]:
        graphs = shown[pair.one], shown[pair.other]
        sides = [
            _side(model, held, place, graph, nodes)
            for place, graph, nodes in zip(
                pair[:2], graphs, what_differs(*graphs), strict=True
            )
        ]  # fmt: skip
        rows.append({"similarity": pair.similarity, "sides": sides})
    return {"rows": rows, "n_compared": n_compared, "n_training": len(shown)}


def striking_pairs(model: FittedGP) -> tuple[list[Pair], int]:
    """Pairs of training graphs, the most striking first, each graph once; how many were compared.

    Of classes: different ones, the most similar first. Of numbers: the difference over what is
    missing to a similarity of one (the structure-activity landscape index).
    """
    assert model.training is not None
    chosen = np.random.default_rng(0).permutation(model.basis.n_graphs)[:_MOST_COMPARED]
    part = select_features(model.basis_graphs, chosen)
    alike = normalize_kernel(
        pair_sums(part.pairs, None, model.weights), part.diagonal, part.diagonal, "tanimoto"
    )
    places = model.basis_indices[chosen]
    targets = model.training.targets[places]
    apart = np.abs(np.subtract.outer(targets, targets)).astype(float)
    wanted = (alike >= _LEAST_ALIKE) & (alike < _THE_SAME) & (apart > 0)
    worth = alike if model.classes is not None else apart / np.maximum(1.0 - alike, 1e-9)
    worth = np.triu(np.where(wanted, worth, 0.0), 1)
    found: list[Pair] = []
    used: set[int] = set()
    for flat in np.argsort(-worth, axis=None, kind="stable")[: 50 * MOST_PAIRS].tolist():
        i, j = divmod(flat, len(chosen))
        if worth[i, j] <= 0 or len(found) == 2 * MOST_PAIRS:
            break
        if used.isdisjoint((i, j)):
            used |= {i, j}
            found.append(Pair(int(places[i]), int(places[j]), float(alike[i, j])))
    return found, len(chosen)


def what_differs(one: Graph, other: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The nodes of each graph that have no counterpart in the other.

    Of molecules: those outside the largest common part (whole rings only). Of other graphs: those
    whose label and neighbours' labels occur more often here than there.
    """
    if is_molecule(one) and is_molecule(other):
        return _outside_common_part(one, other)
    return _unmatched(one, other), _unmatched(other, one)


def _outside_common_part(one: Graph, other: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    from rdkit import Chem
    from rdkit.Chem import rdFMCS

    molecules = [molecule_of(graph) for graph in (one, other)]
    common = rdFMCS.FindMCS(
        molecules, timeout=_SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True
    )
    query = Chem.MolFromSmarts(common.smartsString) if common.numAtoms else None
    rest = []
    for graph, molecule in zip((one, other), molecules, strict=True):
        inside = set() if query is None else set(molecule.GetSubstructMatch(query))
        rest.append(tuple(node for node in range(graph.n_nodes) if node not in inside))
    return rest[0], rest[1]


def _unmatched(one: Graph, other: Graph) -> tuple[int, ...]:
    mine, theirs = _surroundings(one), _surroundings(other)
    left, rest = list(theirs), []
    for node, around in enumerate(mine):
        if around in left:
            left.remove(around)
        else:
            rest.append(node)
    return tuple(rest)


def _surroundings(graph: Graph) -> list[tuple[Any, tuple[str, ...]]]:
    """Each node's label and its neighbours'."""
    near: list[list[str]] = [[] for _ in range(graph.n_nodes)]
    for u, v in graph.edges:
        near[u].append(str(graph.node_labels[v]))
        near[v].append(str(graph.node_labels[u]))
    labels = map(str, graph.node_labels)
    return [(label, tuple(sorted(n))) for label, n in zip(labels, near, strict=True)]


def _side(
    model: FittedGP, held: Held, place: int, graph: Graph, nodes: tuple[int, ...]
) -> dict[str, Any]:
    assert model.training is not None
    target = model.training.targets[place]
    return {
        **drawable(graph),
        "index": place,
        "name": held.training_name(place),
        "molecule": molecule_data(graph),
        "nodes": list(nodes),
        "value": target if model.classes is None else None,
        "class": None if model.classes is None else str(model.classes[target]),
    }
