"""Parts of a summary: graphs shown one by one, matched pairs, fragments and patterns; cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from treelens.chem.groups import group_queries, groups_of
from treelens.chem.matched_pairs import atoms_that_differ
from treelens.chem.molecules import is_molecule, mol_block, molecule_of
from treelens.chem.parsing import parsed_smiles
from treelens.explain.contributions import (
    attribute_table,
    color_limit,
    explain,
    usual_spread,
)
from treelens.explain.draw import TreeNode, coordinates, unfold_within
from treelens.explain.effects import KnownInverses, effects_of_patterns
from treelens.explain.fragment_search import Occurrence, pattern_texts
from treelens.explain.fragments import (
    FragmentTable,
    confounders,
    fragment_smiles,
    fragment_table,
    measured_with_and_without,
)
from treelens.explain.scene import shortened
from treelens.graphs.collection import Graph, GraphCollection
from treelens.kernels.gram import pair_sums
from treelens.kernels.weighted import nearest_graphs
from treelens.parallel import one_blas_thread, working_on
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.report.predicted import (
    PredictedGraphs,
    graph_name,
    predict_graphs,
    similarity_in_words,
)
from treelens.report.render import Drawings, Units
from treelens.targets import positive_code

if TYPE_CHECKING:
    from treelens.estimators.base import FittedEstimator
    from treelens.models.fitted import FittedModel
    from treelens.models.predictions import KernelExpansion
    from treelens.patterns.histograms import GraphViews

LARGEST_DRAWN = 150  # nodes; larger drawings are not readable
MOST_CARDS = 12
_OF_A_KIND = 4
_N_NEAREST = 3
_MOST_PATTERNS = 6
_MOST_DESCRIPTORS = 4
_DIGITS = 6  # of contributions: enough for sums to come out as shown
_LONGEST_LABEL = 40
_LONGEST_PATTERN = 90
MOST_PAIRS = 4
_MOST_COMPARED = 1000  # training graphs, a random sample, that pairs are looked for among
_LEAST_SIMILARITY, _SAME = 0.3, 1.0 - 1e-9
MOST_FRAGMENTS = 24
_MOST_OF_GIVEN = 12  # naming a fragment takes as long as drawing ten
_MOST_SEARCHED = 3000  # graphs
_SAMPLED = 600  # where there are more
_RAREST_SHARE, _FEWEST = 0.01, 3  # of the graphs must have a fragment
MOST_PATTERNS = 40
_MOST_GROUPS = 8
_MOST_EXPLAINED = 100  # graphs that effects of patterns are averaged over
_MOST_TREE_NODES = 40


def drawing_data(graph: Graph, place: Occurrence | None = None) -> dict[str, Any] | None:
    """Return what a drawing of a graph needs, with nodes to highlight; None for a large graph."""
    if graph.n_nodes > LARGEST_DRAWN:
        return None
    molecule = None
    if is_molecule(graph) and "mol" in graph.data:
        molecule = {"mol": mol_block(molecule_of(graph))}
    elif is_molecule(graph):
        molecule = {"smiles": str(graph.data["smiles"])}

    def texts(labels: Iterable[object] | None) -> Any:
        return labels and [shortened(str(label), _LONGEST_LABEL) for label in labels]

    return {
        "name": graph.name,
        "labels": texts(graph.node_labels),
        "edges": [node for edge in graph.edges for node in edge],
        "edge_labels": texts(graph.edge_labels),
        "directed": graph.directed,
        "coordinates": coordinates(graph),
        "molecule": molecule,
        "highlight": place and {k: getattr(place, k) for k in ("root", "nodes", "edges")},
    }


def training_graph(model: FittedModel, index: int) -> dict[str, Any]:
    """Return the name of a training graph and its value, with the sign of a limit, or its class."""
    target, known = model.training.reported[index], {"name": model.training.called(index)}
    if model.classes is not None:
        return known | {"class": str(model.classes[target])}
    return known | {"value": target, "sign": model.training.sign(index)}


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
    estimator: FittedEstimator, given: PredictedGraphs, chosen: dict[int, str]
) -> Iterator[dict[str, Any]]:
    """Yield the graphs to draw, each explained and with its nearest training graphs."""
    model, train = estimator.model_, estimator._train_graphs
    features = given.predictions.graphs.patterns.features.select(np.array(list(chosen)))
    near = nearest_graphs(features, model.training_graphs.patterns, _N_NEAREST)
    trained = f"A training {given.noun} has the same patterns."
    if given.by_smiles:
        trained = "The model was fitted to this molecule."
    for place, (index, kind) in enumerate(chosen.items()):
        working_on(f"explanation {place + 1} of {len(chosen)}")
        found = explain(model, given.graphs, n_neighbors=0, found=given.predictions, index=index)
        neighbors = []
        nearest = zip(near.positions[place].tolist(), near.similarity[place].tolist(), strict=True)
        for graph, similarity in nearest:
            drawing = None if train is None else drawing_data(train[graph])
            words = similarity_in_words(similarity, given.alone)
            row = {"index": graph, "similarity": similarity, "alike": words, "drawing": drawing}
            neighbors.append(row | training_graph(model, graph))
        label = found.class_label
        strongest = found.pattern_contributions.head(_MOST_PATTERNS)
        texts = (shortened(text, _LONGEST_PATTERN) for text in strongest["pattern"])
        values = map(_short, strongest["contribution"].tolist())
        yield {
            "kind": kind,
            **given.row(index),
            "drawing": drawing_data(given.graphs[index]),
            "contributions": [_short(x) for x in found.node_contributions.tolist()],
            "toward": None if label is None else str(label),
            "decision": _short(found.decision),
            "base": _short(found.base),
            "rest": [[name, _short(value)] for name, value in found.rest_in_words],
            "descriptors": [
                [name, _short(value)]
                for name, value in found.descriptor_contributions[["name", "contribution"]]
                .head(_MOST_DESCRIPTORS)
                .itertuples(index=False)
            ],
            "warning": found.warning,
            "structure": found.structure_note,
            "patterns": [list(pair) for pair in zip(texts, values, strict=True)],
            "neighbors": neighbors,
            "domain": domain_sentence(given, index),
            "training": trained if given.in_training[index] else None,
        }


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def domain_sentence(given: PredictedGraphs, index: int) -> str:
    """Return whether a prediction is in the domain of applicability, and why."""
    words = similarity_in_words(float(given.similarity[index]), given.alone)
    has = "the" if words.startswith("same") else "a similarity of"
    near = f"the nearest training {given.noun} has {has} {words}"
    if given.domain is None or given.in_domain is None or given.expected_error is None:
        return f"T{near[1:]}."
    least, largest = given.domain.least_similarity, given.domain.largest_error
    if given.in_domain[index]:
        return f"Inside the domain of applicability: {near} (at least {least:.2f} is needed)."
    error, reasons = given.expected_error[index], []
    if given.similarity[index] < least:
        reasons.append(f"{near} only (at least {least:.2f} is needed)")
    if error > largest:
        unit = "" if given.classes is None else " in the decision value"
        digits = next((d for d in (2, 3) if f"{error:.{d}g}" != f"{largest:.{d}g}"), 4)
        text = f"the expected error of {error:.{digits}g}{unit} is above {largest:.{digits}g}"
        if given.scale is not None:
            text += f" on the scale of {given.scale.in_words}"
        reasons.append(text)
    return f"Outside the domain of applicability: {', and '.join(reasons)}."


# --- matched pairs ----------------------------------------------------------------------------


def pair_section(estimator: FittedEstimator) -> dict[str, Any] | None:
    """Return similar training graphs with different targets; None without training graphs."""
    model, train = estimator.model_, estimator._train_graphs
    if train is None:
        return None
    pairs, n_compared = striking_pairs(model)
    pairs = [p for p in pairs if max(train.sizes[k] for k in p[:2]) <= LARGEST_DRAWN]
    rows = []
    for *pair, similarity in pairs[:MOST_PAIRS]:
        both, sides = train[pair], []
        for index, graph, nodes in zip(pair, both, differing_nodes(both), strict=True):
            edges = tuple((u, v) for u, v in graph.edges if u in nodes and v in nodes)
            drawing = drawing_data(graph, Occurrence(-1, nodes, edges) if nodes else None)
            row = {"index": index, "drawing": drawing}
            sides.append(row | training_graph(model, index))
        rows.append({"similarity": similarity, "sides": sides})
    return {"rows": rows, "n_compared": n_compared, "n_training": len(train)} if rows else None


def striking_pairs(model: FittedModel) -> tuple[list[tuple[int, int, float]], int]:
    """Return pairs of training graphs with their similarity, and how many graphs were compared.

    Of classes: different ones, the most similar first. Of numbers: by the difference of the values
    over one minus the similarity (the structure-activity landscape index).
    """
    features, targets = model.training_graphs.patterns, model.training.reported
    measured = np.arange(len(targets))[model.training.exact]
    chosen = np.random.default_rng(0).permutation(measured)[:_MOST_COMPARED]
    part, targets = features.select(chosen), targets[chosen]
    shared = pair_sums(part.pairs, None, model.weights)
    union = part.diagonal[:, None] + part.diagonal - shared
    similarity = np.divide(shared, union, out=np.ones_like(union), where=union > 0)
    apart = np.abs(np.subtract.outer(targets, targets)).astype(float)
    wanted = (similarity >= _LEAST_SIMILARITY) & (similarity < _SAME) & (apart > 0)
    worth = similarity if model.classes is not None else apart / np.maximum(1 - similarity, 1e-9)
    worth = np.triu(np.where(wanted, worth, 0.0), 1)
    found: list[tuple[int, int, float]] = []
    while len(found) < 2 * MOST_PAIRS and worth.max(initial=0.0) > 0:
        i, j = np.unravel_index(worth.argmax(), worth.shape)
        found.append((int(chosen[i]), int(chosen[j]), float(similarity[i, j])))
        worth[[i, j]] = worth[:, [i, j]] = 0.0
    return found, len(chosen)


def differing_nodes(pair: GraphCollection) -> tuple[tuple[int, ...], ...]:
    """Return the nodes of each of two graphs that have no counterpart in the other.

    Of molecules, those outside the largest common substructure; of other graphs, those whose label
    and neighbours' labels occur more often than in the other graph.
    """
    if not is_molecule(pair[0]):
        colors = PatternVocabulary.fit(pair, depth=1)[1].colors[1]
        one, other = (x.tolist() for x in np.split(colors, [int(pair.sizes[0])]))
        return _unmatched(one, other), _unmatched(other, one)
    return atoms_that_differ([molecule_of(graph) for graph in pair])


def _unmatched(colors: list[int], others: list[int]) -> tuple[int, ...]:
    return tuple(k for k, x in enumerate(colors) if colors[: k + 1].count(x) > others.count(x))


# --- fragments and patterns -------------------------------------------------------------------


def fragment_section(
    estimator: FittedEstimator,
    given: PredictedGraphs | None,
    n_fragments: int | None = None,
    known: KnownInverses | None = None,
) -> dict[str, Any] | None:
    """Return the fragments of the training graphs, ``fragments_`` of the model.

    Of many graphs they are those of a sample; where the model does not know its training graphs,
    of the graphs of the report. ``n_fragments``: so many, searched anew; ``known`` as in
    :func:`treelens.explain.effects.inverse_covariances`.
    """
    model, train = estimator.model_, estimator._train_graphs
    table, n_jobs = None, estimator._n_jobs()
    of_given = train is None and given is not None and len(given) >= _FEWEST
    if given is not None and of_given:
        kept = _sample(len(given), _SAMPLED)
        shown, truth = given.graphs[kept], None if given.truth is None else given.truth[kept]
        table = fragment_table(
            model.expansion,
            shown,
            truth,
            n_fragments=_MOST_OF_GIVEN,
            min_support=max(_FEWEST, round(_RAREST_SHARE * len(kept))),
            seen=given.predictions.graphs.select(kept),
            n_jobs=n_jobs,
        )
    if train is not None:
        shown, truth = train, model.training.reported
        few = len(train) <= _MOST_SEARCHED
        if n_fragments is None and (few or estimator._fragments is not None):
            table = estimator.fragments_
        else:
            if not few:
                kept = _sample(len(train), _SAMPLED)
                shown, truth = train[kept], truth[kept]
            n = MOST_FRAGMENTS if n_fragments is None else n_fragments
            table = fragment_table(
                model.expansion, shown, truth, n_fragments=n, n_jobs=n_jobs, known=known
            )
    if table is None:
        return None
    rows = list(_rows(table, shown, truth, model.classes))
    size = table.attrs["size"]
    return {
        "of_given": of_given,
        "left_out": table.attrs["left_out"],
        "n_graphs": len(shown),
        "n_all": len(given) if given is not None and of_given else len(train or shown),
        "toward": table.attrs["toward"],
        "size": size if "per_node" in size else None,  # of many classes one for each
        "named": shown.names is not None,
        "rows": rows,
        "none": table.attrs["none"],
    }


def _sample(n: int, most: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _rows(
    table: FragmentTable,
    shown: GraphCollection,
    truth: np.ndarray | None,
    classes: np.ndarray | None,
) -> Iterator[dict[str, Any]]:
    scaffolds: dict[int, str] = {}
    for rank in table.index[:MOST_FRAGMENTS].tolist():
        found = table.loc[rank].to_dict()
        place, holders = found["drawing"].place, found["drawing"].holders
        graph = shown[place.graph_index]
        examples = found["examples"]
        if shown.names is None:  # positions; molecules are called by their SMILES
            examples = [graph_name(shown, k) or k for k in examples]
        row = {name: found[name] for name in ("name", "pattern", "depth", "effect", "error")}
        row |= {
            "rank": rank,
            "title": table.title(rank),
            "smiles": fragment_smiles(graph, place),
            "smarts": found.get("smarts"),
            "class_label": str(found["class_label"]) if "class_label" in found else None,
            "support": found["support"],
            "by_class": None,
            "mean_with": None,
            "mean_without": None,
            "confounders": confounders(shown, holders, truth, classes, scaffolds),
            "examples": list(map(str, examples)),
            "drawing": drawing_data(graph, place),
        }
        if truth is not None and classes is None:
            row["mean_with"], row["mean_without"] = measured_with_and_without(holders, truth)
        elif truth is not None and classes is not None:
            inside, outside = measured_with_and_without(holders, truth, len(classes))
            outside = outside or [None] * len(classes)
            row["by_class"] = [
                [str(label), found[f"support {label}"], inside[k], outside[k]]
                for k, label in enumerate(classes.tolist())
            ]
        yield row


def _attribute_rows(
    expansion: KernelExpansion, graphs: Sequence[Any], sizes: np.ndarray
) -> list[dict[str, Any]]:
    """Return shares of attributes and of labels in absolute effects; none where there are no cells.

    ``sizes`` are the mean absolute effects of the patterns of the first view.
    """
    parts = [part for part in expansion.parts if part.source.asked(part.source.n_patterns - 1)]
    if not parts:
        return []
    found = {0: sizes}
    for place, part in enumerate(expansion.parts):
        if place and part in parts:
            effects = effects_of_patterns(expansion, graphs, place=place)
            found[place] = np.asarray(abs(effects).sum(axis=0)).ravel() / effects.shape[0]
    tables = []
    for place, size in found.items():
        part = expansion.parts[place]
        patterns = part.first_pattern + np.arange(len(size))
        tables.append(attribute_table(part.source, patterns, size))
    table = pd.concat(tables, ignore_index=True)
    table = table.sort_values("contribution", ascending=False, kind="stable", ignore_index=True)
    shares = table["contribution"] / max(table["contribution"].sum(), 1e-300)
    return table.assign(share=shares).to_dict("records")  # type: ignore[return-value]


def pattern_section(model: FittedModel, given: PredictedGraphs | None) -> dict[str, Any]:
    """Return the patterns that change predictions most, of the report's or the training graphs."""
    expansion, source = model.expansion, model.expansion.source
    views: Sequence[GraphViews] = model.training_terms
    if given is not None:
        views = [term.shown(given.predictions.graphs).features for term in expansion.terms]
    chosen = _sample(views[0].patterns.pairs.n_graphs, _MOST_EXPLAINED)
    some = [graphs.select(chosen) for graphs in views]
    effects = effects_of_patterns(expansion, some)  # (n, n_patterns)
    holders = np.bincount(effects.indices, minlength=effects.shape[1])
    size = np.asarray(abs(effects).sum(axis=0)).ravel() / len(chosen)
    sign = -1.0 if positive_code(expansion.classes) == 0 else 1.0
    total = sign * np.asarray(effects.sum(axis=0)).ravel()
    order = np.lexsort((np.arange(len(size)), -size))[:MOST_PATTERNS]
    order = order[size[order] > 0]
    support, ids = model.training.histograms.support, order + expansion.first_pattern
    texts, trees, depths = pattern_texts(source, ids), source.tree_names(ids), source.pattern_depths
    rows = [
        {
            "id": pattern,
            "text": text,
            "level": tree_name,
            "depth": int(depths[pattern]),
            "weight": expansion.weights[k],
            "support": support[k],
            "mean_absolute_effect": size[k],
            "effect": total[k] / holders[k],
            "drawing": _tree(expansion.forest, pattern, text),
        }
        for k, pattern, text, tree_name in zip(order, ids.tolist(), texts, trees, strict=True)
    ]
    return {
        "attributes": _attribute_rows(expansion, some, size),
        "n_all": len(size),
        "n_explained": len(chosen),
        "of_given": given is not None,
        "rows": rows,
    }


def _tree(forest: PatternForest | None, pattern: int, text: str) -> list[dict[str, Any]]:
    """Return the nodes of the unfolded tree of a pattern, parents first."""
    nodes = [TreeNode(-1, 0, text, None, False)]
    tree, inner = (0, 0) if forest is None else forest.place(pattern)
    if forest is not None and tree < len(forest.trees):  # else it is a cell of attributes
        nodes = unfold_within(forest.vocabularies[tree], inner, _MOST_TREE_NODES)
    return [
        node._asdict()
        | {"label": str(node.label), "edge_label": node.edge_label and str(node.edge_label)}
        for node in nodes
    ]


# --- the card of one molecule, without a report --------------------------------------------------


def compound_card(
    estimator: FittedEstimator, graphs: GraphCollection, evidence: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a chemist reads about one molecule, with drawings as SVG; text is escaped.

    That is its row in the report's cards (numbers are as these have them), ``svg``, ``groups``
    (name, number of occurrences, what their atoms add) and ``difference``. ``graphs`` may have
    another molecule to compare it with; ``evidence`` is of :func:`group_evidence`.
    """
    given = predict_graphs(estimator, graphs, None)
    assert given is not None
    with one_blas_thread():
        (row,) = card_section(estimator, given, {0: "all"})
    values = np.array(row["contributions"])
    spread = usual_spread(estimator.model_)
    units = Units.of({"std": spread} if given.classes is None else None)
    draw = Drawings(units, "molecule", color_limit([values], spread))
    groups: list[dict[str, Any]] = []
    for name, places in groups_of(molecule_of(given.graphs[0])):
        atoms = sorted({atom for place in places for atom in place})
        group = {"name": name, "n": len(places), "effect": float(values[atoms].sum())}
        groups.append(group | {"measured": (evidence or {}).get(name)})
    groups = sorted(groups, key=lambda group: -abs(group["effect"]))[:_MOST_GROUPS]
    card = {name: row[name] for name in row if name not in ("drawing", "patterns", "kind")}
    card["neighbors"] = [
        {name: near[name] for name in near if name != "drawing"} | {"svg": draw.training(near)}
        for near in row["neighbors"]
    ]
    return card | {
        "svg": draw.card(row),
        "groups": groups,
        "difference": None if len(graphs) < 2 else _difference(estimator, given),
    }


def _difference(estimator: Any, given: PredictedGraphs) -> dict[str, Any]:
    """How the first prediction differs from the second; the deviation is that of the difference.

    It is None where the model has no covariance between graphs.
    """
    if given.classes is None and not estimator.model_.has_joint:
        first, second = given.predictions.mean[:, 0].tolist()
        return {"predicted": first - second, "std": None}
    if given.classes is None:
        mean, cov = estimator.predict(
            given.graphs, return_cov=True, include_noise=False, learned_scale=True
        )
        variance = max(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], 0.0)
        return {"predicted": float(mean[0] - mean[1]), "std": float(np.sqrt(variance))}
    chances = given.probabilities[0] - given.probabilities[1]
    names = [str(label) for label in given.classes]
    return {"probabilities": dict(zip(names, chances.tolist(), strict=True))}


def group_holders(smiles: Sequence[str] | None) -> dict[str, np.ndarray]:
    """Return which molecules have each group, (n_molecules,) by its name; none without SMILES."""
    if smiles is None:
        return {}
    molecules = parsed_smiles(smiles, stereo=False)
    found = {}
    for name, query in group_queries().items():
        has = [molecule is not None and molecule.HasSubstructMatch(query) for molecule in molecules]
        found[name] = np.array(has, dtype=bool)
    return found


def group_evidence(
    estimator: FittedEstimator, holders: Mapping[str, np.ndarray] | None = None
) -> dict[str, dict[str, Any]]:
    """Return what was measured with and without the groups that some training molecules have.

    ``holders`` are :func:`group_holders` of all molecules that the model was fitted to, if known.
    """
    model = estimator.model_
    training, classes = model.training, model.classes
    scale, known = training.record.reported, dict[str, dict[str, Any]]()
    if holders is None:
        all_holders = group_holders(training.smiles)
    else:
        all_holders = {name: has[model.training_positions] for name, has in holders.items()}
    for name, own in all_holders.items():
        has = np.flatnonzero(own)
        if not 0 < len(has) < len(training.targets):
            continue
        n_classes = None if classes is None else len(classes)
        values: Any = measured_with_and_without(has, training.reported, n_classes)
        if classes is not None:
            values = [dict(zip(map(str, classes), x, strict=True)) for x in values]
        elif scale is not None:  # means of logarithms: geometric means
            values = scale.inverse(np.array(values)).tolist()
        known[name] = {"n": len(has), "with": values[0], "without": values[1]}
    return known
