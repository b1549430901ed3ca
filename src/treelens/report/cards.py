"""Graphs shown one by one: predictions with atoms coloured, neighbours, and matched pairs."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from treelens.explain.contributions import explain
from treelens.explain.decode import Occurrence, with_label_names
from treelens.explain.draw import coordinates, is_molecule
from treelens.explain.scene import shortened
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.kernels.gram import pair_sums
from treelens.kernels.weighted import nearest_graphs
from treelens.patterns.features import select_features
from treelens.patterns.vocabulary import PatternVocabulary
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
    molecule, labels = None, graph.edge_labels
    if is_molecule(graph) and "mol" in graph.data:
        from rdkit import Chem

        molecule = {"mol": Chem.MolToMolBlock(molecule_of(graph))}
    elif is_molecule(graph):
        molecule = {"smiles": str(graph.data["smiles"])}
    return {
        "name": graph.name,
        "labels": [shortened(str(label), _LONGEST_LABEL) for label in graph.node_labels],
        "edges": [node for edge in graph.edges for node in edge],
        "edge_labels": None
        if labels is None
        else [shortened(str(label), _LONGEST_LABEL) for label in labels],
        "directed": graph.directed,
        "coordinates": coordinates(graph),
        "molecule": molecule,
        "highlight": None
        if place is None
        else {"root": place.root, "nodes": place.nodes, "edges": place.edges},
    }


def training_target(model: Any, index: int) -> dict[str, Any]:
    """Return the value of a training graph, with the sign of a limit, or its class."""
    target = model.training.targets[index]
    if model.classes is not None:
        return {"class": str(model.classes[target])}
    return {"value": target, "sign": model.training.sign(index)}


def chosen_cards(given: PredictedGraphs) -> dict[int, str]:
    """Return graphs to draw: all of a few, else the worst, the most uncertain, the most usual."""
    if len(given) <= MOST_CARDS:
        return dict.fromkeys(range(len(given)), "all")
    chosen: dict[int, str] = {}
    for kind, order in (
        ("worst", given.most_wrong),
        ("uncertain", given.most_uncertain),
        ("similar", given.most_similar),
    ):
        fresh = [i for i in order[: len(chosen) + _OF_A_KIND].tolist() if i not in chosen]
        chosen |= dict.fromkeys(fresh[:_OF_A_KIND], kind)
    return chosen


def card_section(
    estimator: Any,
    given: PredictedGraphs,
    names: str | None = None,
    chosen: dict[int, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the graphs to draw, each explained and with its nearest training graphs."""
    model, train = estimator.model_, estimator._train_graphs
    chosen = chosen_cards(given) if chosen is None else chosen
    features = select_features(given.predictions.graphs.features, np.array(list(chosen)))
    near = nearest_graphs(features, model.training_graphs, model.weights, _N_NEAREST)
    rows = []
    for place, (index, kind) in enumerate(chosen.items()):
        found = explain(model, given.graphs, n_neighbors=0, found=given.predictions, index=index)
        neighbors = []
        for graph, similarity in zip(
            near.positions[place].tolist(), near.similarity[place].tolist(), strict=True
        ):
            drawing = None  # where the model does not keep its training graphs
            if train is not None and train.sizes[graph] <= LARGEST_DRAWN:
                drawing = drawing_data(with_label_names(train[graph : graph + 1], names)[0])
            neighbors.append(
                {
                    "index": graph,
                    "name": model.training.called(graph),
                    "similarity": similarity,
                    **training_target(model, graph),
                    "drawing": drawing,
                }
            )
        label, strongest = found.class_label, found.pattern_ids[:_MOST_PATTERNS].tolist()
        values = map(_short, found.pattern_values[:_MOST_PATTERNS].tolist())
        rows.append(
            {
                "kind": kind,
                **given.row(index),
                "drawing": drawing_data(given.shown[index]),
                "contributions": [_short(x) for x in found.node_contributions.tolist()],
                "toward": None if label is None else str(label),
                "decision": _short(found.decision),
                "base": _short(found.base),
                "covariates": _short(found.covariates),
                "warning": found.warning,
                "patterns": [list(pair) for pair in zip(strongest, values, strict=True)],
                "neighbors": neighbors,
                "domain": domain_sentence(given, index),
                "training": training_sentence(given, index),
            }
        )
    return rows


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def training_sentence(given: PredictedGraphs, index: int) -> str | None:
    """Return whether the model was fitted to a graph; None where it was not."""
    if not given.in_training[index]:
        return None
    if given.by_smiles:
        return "The model was fitted to this molecule."
    return f"A training {given.noun} has the same patterns."


def domain_sentence(given: PredictedGraphs, index: int) -> str:
    """Return whether a prediction is in the domain of applicability, and why."""
    near = f"the nearest training {given.noun} has a similarity of {given.similarity[index]:.2f}"
    if given.domain is None or given.in_domain is None or given.expected_error is None:
        return f"T{near[1:]}."
    least, largest = given.domain.least_similarity, given.domain.largest_error
    if given.in_domain[index]:
        return f"Inside the domain of applicability: {near} (at least {least:.2f} is needed)."
    error, reasons = given.expected_error[index], []
    if given.similarity[index] < least:
        reasons.append(f"{near} only (at least {least:.2f} is needed)")
    if error > largest:
        reasons.append(f"the expected error of {error:.2g} is large (at most {largest:.2g})")
    return f"Outside the domain of applicability: {', and '.join(reasons)}."


# --- matched pairs ----------------------------------------------------------------------------


class Pair(NamedTuple):
    """Two training graphs by position, and their learned Tanimoto similarity."""

    one: int
    other: int
    similarity: float


def pair_section(estimator: Any, names: str | None = None) -> dict[str, Any] | None:
    """Return similar training graphs with different targets; None without training graphs."""
    model, train = estimator.model_, estimator._train_graphs
    if train is None:
        return None
    pairs, n_compared = striking_pairs(model)
    pairs = [p for p in pairs if max(train.sizes[p.one], train.sizes[p.other]) <= LARGEST_DRAWN]
    rows = []
    for pair in pairs[:MOST_PAIRS]:
        both, sides = train[list(pair[:2])], []
        shown = with_label_names(both, names)
        for index, graph, nodes in zip(pair[:2], shown, differing_nodes(both), strict=True):
            edges = tuple((u, v) for u, v in graph.edges if u in nodes and v in nodes)
            sides.append(
                {
                    "index": index,
                    "name": model.training.called(index),
                    **training_target(model, index),
                    "drawing": drawing_data(graph, Occurrence(-1, nodes, edges) if nodes else None),
                }
            )
        rows.append({"similarity": pair.similarity, "sides": sides})
    return {"rows": rows, "n_compared": n_compared, "n_training": len(train)} if rows else None


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


def differing_nodes(pair: GraphCollection) -> tuple[tuple[int, ...], ...]:
    """Return the nodes of each of two graphs that have no counterpart in the other.

    Of molecules, those outside the largest common substructure (complete rings only). Of other
    graphs, those whose label and neighbours' labels occur more often than in the other graph.
    """
    if not is_molecule(pair[0]):
        colors = PatternVocabulary.fit(pair, depth=1)[1].colors[1]
        one, other = np.split(colors, [int(pair.sizes[0])])
        return _unmatched(one, other), _unmatched(other, one)
    from rdkit import Chem
    from rdkit.Chem import rdFMCS

    molecules = [molecule_of(graph) for graph in pair]
    common = rdFMCS.FindMCS(
        molecules, timeout=_SECONDS, ringMatchesRingOnly=True, completeRingsOnly=True
    )
    query = Chem.MolFromSmarts(common.smartsString) if common.numAtoms else None
    shared = [() if query is None else m.GetSubstructMatch(query) for m in molecules]
    return tuple(
        tuple(node for node in range(n) if node not in inside)
        for n, inside in zip(pair.sizes.tolist(), shared, strict=True)
    )


def _unmatched(colors: np.ndarray, others: np.ndarray) -> tuple[int, ...]:
    left, rest = Counter(others.tolist()), []
    for node, color in enumerate(colors.tolist()):
        if left[color]:
            left[color] -= 1
        else:
            rest.append(node)
    return tuple(rest)
