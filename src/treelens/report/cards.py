"""Graphs shown one by one: predictions with atoms coloured, neighbours, and matched pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treelens.explain.contributions import explain_seen
from treelens.explain.decode import Occurrence
from treelens.explain.expansion import expansion_of
from treelens.explain.layout import coordinates, is_molecule
from treelens.explain.names import LabelNames, with_label_names
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.kernels.gram import pair_sums
from treelens.kernels.nearest import nearest_graphs
from treelens.patterns.features import select_features
from treelens.report.predicted import PredictedGraphs

LARGEST_DRAWN = 150  # nodes; larger drawings are not readable
MOST_CARDS = 12
_OF_A_KIND = 4
_N_NEAREST = 3
_MOST_PATTERNS = 6
_DIGITS = 6  # of contributions: enough for sums to come out as shown
_LONGEST_LABEL = 40
MOST_PAIRS = 4
_MOST_COMPARED = 1000  # training graphs, a random sample, that pairs are looked for among
_LEAST_SIMILARITY, _SAME = 0.3, 1.0 - 1e-9
_SECONDS = 1  # for the largest common substructure of two molecules


def drawing_data(graph: Graph, place: Occurrence | None = None) -> dict[str, Any] | None:
    """Return what a drawing of a graph needs, with nodes to highlight; None for a large graph."""
    if graph.n_nodes > LARGEST_DRAWN:
        return None
    labels = graph.edge_labels
    data: dict[str, Any] = {
        "name": graph.name,
        "labels": [_cut(label) for label in graph.node_labels],
        "edges": [node for edge in graph.edges for node in edge],
        "edge_labels": None if labels is None else [_cut(label) for label in labels],
        "directed": graph.directed,
        "coordinates": coordinates(graph),
        "molecule": None,
        "highlight": None,
    }
    if is_molecule(graph) and "mol" in graph.data:
        from rdkit import Chem

        data["molecule"] = {"mol": Chem.MolToMolBlock(molecule_of(graph))}
    elif is_molecule(graph):
        data["molecule"] = {"smiles": str(graph.data["smiles"])}
    if place is not None:
        data["highlight"] = {"root": place.root, "nodes": place.nodes, "edges": place.edges}
    return data


def _cut(label: Any) -> str:
    text = str(label)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _target(model: Any, index: int) -> dict[str, Any]:
    """Return the measured value or the class of a training graph."""
    target = model.training.targets[index]
    number = {"value": target, "sign": model.training.sign(index)}
    return number if model.classes is None else {"class": str(model.classes[target])}


def chosen_cards(given: PredictedGraphs) -> dict[int, str]:
    """Return graphs to draw: all of a few, else the worst, the most uncertain, the most usual."""
    kinds: dict[str, Any] = {"all": np.arange(len(given))}
    if len(given) > MOST_CARDS:
        kinds = {
            "worst": given.most_wrong,
            "uncertain": given.most_uncertain,
            "similar": given.most_similar,
        }
    chosen: dict[int, str] = {}
    for kind, order in kinds.items():
        most = MOST_CARDS if kind == "all" else _OF_A_KIND
        fresh = [i for i in order[: len(chosen) + most].tolist() if i not in chosen]
        chosen |= dict.fromkeys(fresh[:most], kind)
    return chosen


def card_section(
    estimator: Any,
    given: PredictedGraphs,
    names: str | LabelNames | None = None,
    chosen: dict[int, str] | None = None,
) -> dict[str, Any]:
    """Return the graphs to draw, each explained and with its nearest training graphs."""
    model = estimator.model_
    chosen = chosen_cards(given) if chosen is None else chosen
    features = select_features(given.predictions.graphs.features, np.array(list(chosen)))
    near = nearest_graphs(features, model.training_graphs, model.weights, _N_NEAREST)
    rows = []
    for place, (index, kind) in enumerate(chosen.items()):
        neighbors = [
            {
                "index": graph,
                "name": model.training.called(graph),
                "similarity": similarity,
                **_target(model, graph),
                "drawing": _training_drawing(estimator._train_graphs, graph, names),
            }
            for graph, similarity in zip(
                near.positions[place].tolist(), near.similarity[place].tolist(), strict=True
            )
        ]
        sentence = domain_sentence(
            given, index, "molecule" if is_molecule(given.graphs[0]) else "graph"
        )
        rows.append({"kind": kind, **_explained(model, given, index), "neighbors": neighbors,
                     "domain": sentence})  # fmt: skip
    return {"rows": rows}


def domain_sentence(given: PredictedGraphs, index: int, noun: str) -> str:
    """Return whether a prediction is in the domain of applicability, and why."""
    near = f"{given.similarity[index]:.2f}"
    if given.domain is None or given.in_domain is None or given.expected_error is None:
        return f"The nearest training {noun} has a similarity of {near}."
    least, largest = given.domain.least_similarity, given.domain.largest_error
    error = given.expected_error[index]
    if given.in_domain[index]:
        return (
            f"Inside the domain of applicability: the nearest training {noun} has a similarity of "
            f"{near} (at least {least:.2f} is needed)."
        )
    reasons = []
    if given.similarity[index] < least:
        reasons.append(
            f"the nearest training {noun} has a similarity of {near} only (at least {least:.2f} is "
            "needed)"
        )
    if error > largest:
        reasons.append(f"the expected error of {error:.2g} is large (at most {largest:.2g})")
    return f"Outside the domain of applicability: {', and '.join(reasons)}."


def _explained(model: Any, given: PredictedGraphs, index: int) -> dict[str, Any]:
    """Return one prediction with what every node and the strongest patterns add to it."""
    expansion = expansion_of(model)
    found = explain_seen(given.graphs, given.predictions.graphs, index, expansion, n_neighbors=0)
    patterns, label = found.pattern_rows, found.class_label
    strongest = zip(
        patterns.ids[:_MOST_PATTERNS].tolist(), patterns.contributions.tolist(), strict=False
    )
    return {
        **given.row(index),
        "drawing": drawing_data(given.shown[index]),
        "contributions": [_short(x) for x in found.node_contributions.tolist()],
        "toward": None if label is None else str(label),
        "decision": _short(found.decision),
        "base": _short(found.base),
        "covariates": _short(found.covariates),
        "warning": found.warning,
        "patterns": [[pattern, _short(value)] for pattern, value in strongest],
    }


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _training_drawing(
    train: GraphCollection | None, index: int, names: str | LabelNames | None
) -> dict[str, Any] | None:
    """Return the drawing of a training graph; None where the model does not keep it."""
    if train is None or train.sizes[index] > LARGEST_DRAWN:
        return None
    one = train[index : index + 1]
    return drawing_data((one if names is None else with_label_names(one, names))[0])


# --- matched pairs ----------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two training graphs by position, and their learned Tanimoto similarity."""

    one: int
    other: int
    similarity: float


def pair_section(
    estimator: Any, names: str | LabelNames | None = None
) -> dict[str, Any] | None:  # fmt: skip
    """Return similar training graphs with different targets; None without training graphs."""
    model, train = estimator.model_, estimator._train_graphs
    if train is None:
        return None
    pairs, n_compared = striking_pairs(model)
    pairs = [p for p in pairs if max(train.sizes[p.one], train.sizes[p.other]) <= LARGEST_DRAWN]
    rows = []
    for pair in pairs[:MOST_PAIRS]:
        graphs = [train[k : k + 1] for k in pair[:2]]
        shown = [(g if names is None else with_label_names(g, names))[0] for g in graphs]
        sides = [
            {
                "index": index,
                "name": model.training.called(index),
                **_target(model, index),
                "drawing": drawing_data(graph, _region(graph, nodes)),
            }
            for index, graph, nodes in zip(pair[:2], shown, differing_nodes(*shown), strict=True)
        ]
        rows.append({"similarity": pair.similarity, "sides": sides})
    return {"rows": rows, "n_compared": n_compared, "n_training": len(train)} if rows else None


def _region(graph: Graph, nodes: tuple[int, ...]) -> Occurrence | None:
    inside = set(nodes)
    edges = tuple((u, v) for u, v in graph.edges if u in inside and v in inside)
    return Occurrence(0, 0, 0, -1, nodes, edges) if nodes else None


def striking_pairs(model: Any) -> tuple[list[Pair], int]:
    """Return pairs of training graphs, each graph once, and how many graphs were compared.

    Of classes: different ones, the most similar first. Of numbers: by the difference of the values
    over one minus the similarity (the structure-activity landscape index).
    """
    features, targets = model.training_graphs, model.training.targets
    measured = np.arange(len(targets))[model.training.exact]
    chosen = np.random.default_rng(0).permutation(measured)[:_MOST_COMPARED]
    part, targets = select_features(features, chosen), targets[chosen]
    shared = pair_sums(part.pairs, None, model.weights)
    union = part.diagonal[:, None] + part.diagonal - shared
    similarity = np.divide(shared, union, out=np.ones_like(union), where=union > 0)
    apart = np.abs(np.subtract.outer(targets, targets)).astype(float)
    wanted = (similarity >= _LEAST_SIMILARITY) & (similarity < _SAME) & (apart > 0)
    worth = similarity if model.classes is not None else apart / np.maximum(1 - similarity, 1e-9)
    worth = np.triu(np.where(wanted, worth, 0.0), 1).ravel()
    leading = np.arange(len(worth))
    if len(worth) > 50 * MOST_PAIRS:
        leading = np.sort(np.argpartition(-worth, 50 * MOST_PAIRS)[: 50 * MOST_PAIRS])
    found: list[Pair] = []
    used: set[int] = set()
    for flat in leading[np.argsort(-worth[leading], kind="stable")].tolist():
        i, j = divmod(flat, len(chosen))
        if worth[flat] <= 0 or len(found) == 2 * MOST_PAIRS:
            break
        if used.isdisjoint((i, j)):
            used |= {i, j}
            found.append(Pair(int(chosen[i]), int(chosen[j]), float(similarity[i, j])))
    return found, len(chosen)


def differing_nodes(one: Graph, other: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the nodes of each graph that have no counterpart in the other.

    Of molecules, those outside the largest common substructure (complete rings only). Of other
    graphs, those whose label and neighbours' labels occur more often than in the other graph.
    """
    if not (is_molecule(one) and is_molecule(other)):
        return _unmatched(one, other), _unmatched(other, one)
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
    left, rest = _surroundings(other), []
    for node, around in enumerate(_surroundings(one)):
        if around in left:
            left.remove(around)
        else:
            rest.append(node)
    return tuple(rest)


def _surroundings(graph: Graph) -> list[tuple[str, tuple[str, ...]]]:
    """Return each node's label with its neighbours' labels."""
    near: list[list[str]] = [[] for _ in range(graph.n_nodes)]
    for u, v in graph.edges:
        near[u].append(str(graph.node_labels[v]))
        near[v].append(str(graph.node_labels[u]))
    labels = map(str, graph.node_labels)
    return [(label, tuple(sorted(n))) for label, n in zip(labels, near, strict=True)]
