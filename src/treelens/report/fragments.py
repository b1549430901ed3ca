"""The fragments and patterns that change predictions most."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.contributions import attribute_table
from treelens.explain.decode import TreeNode, pattern_texts, unfold_within, with_label_names
from treelens.explain.effects import effects_of_patterns
from treelens.explain.fragments import (
    FragmentTable,
    confounders,
    fragment_smiles,
    fragment_table,
    measured_with_and_without,
)
from treelens.graphs.collection import GraphCollection
from treelens.patterns.features import RefinedGraphs, select_features
from treelens.patterns.forest import PatternForest
from treelens.report.cards import drawing_data
from treelens.report.predicted import PredictedGraphs, graph_name

MOST_FRAGMENTS = 24
_MOST_OF_GIVEN = 12  # naming a fragment takes as long as drawing ten
_MOST_SEARCHED = 600  # graphs
_RAREST_SHARE, _FEWEST = 0.01, 3  # of the graphs must have a fragment
MOST_PATTERNS = 40
_MOST_EXPLAINED = 100  # graphs that effects of patterns are averaged over
_MOST_TREE_NODES = 40


def fragment_section(
    estimator: Any,
    forest: PatternForest,
    given: PredictedGraphs | None,
    names: str | None = None,
) -> dict[str, Any] | None:
    """Return the fragments of the graphs of the report, or else of the training graphs.

    ``forest`` has the labels to show. None for a model from a file without graphs, or with too few.
    Of many graphs a sample is searched, as many as take about a second.
    """
    model, train = estimator.model_, estimator._train_graphs
    table, options = None, {"n_jobs": estimator._n_jobs()}
    of_given = given is not None and len(given) >= _FEWEST
    if given is not None and of_given:
        graphs, shown, truth = given.graphs, given.shown, given.truth
        seen = given.predictions.graphs
        if len(given) > _MOST_SEARCHED:
            kept = _sample(len(given))
            graphs, shown = graphs[kept], shown[kept]
            truth = None if truth is None else truth[kept]
            seen = RefinedGraphs(
                seen.colors.select_graphs(kept),
                seen.histograms.select_graphs(kept),
                select_features(seen.features, kept),
            )
        least = max(_FEWEST, round(_RAREST_SHARE * len(graphs)))
        table = fragment_table(
            model.expansion, graphs, truth, n_fragments=_MOST_OF_GIVEN, min_support=least,
            seen=seen, inverse=given.inverse, **options,
        )  # fmt: skip
    if (table is None or not len(table)) and train is not None:
        of_given, shown, truth = False, train, model.training.targets
        if len(train) <= _MOST_SEARCHED or estimator._fragments is not None:
            table = estimator.fragments_
        else:
            kept = _sample(len(train))
            shown, truth = train[kept], truth[kept]
            table = fragment_table(
                model.expansion, shown, truth, n_fragments=MOST_FRAGMENTS, **options
            )
        shown = with_label_names(shown, names)
    if table is None:
        return None
    rows = _rows(table, shown, forest if names else None, truth, model.classes)
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
        "strongest": [
            row for rank in table.attrs["strongest"][:3] for row in rows if row["rank"] == rank
        ],
    }


def _sample(n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).permutation(n)[:_MOST_SEARCHED])


def _rows(
    table: FragmentTable,
    shown: GraphCollection,
    named: PatternForest | None,
    truth: np.ndarray | None,
    classes: np.ndarray | None,
) -> list[dict[str, Any]]:
    """Return rows of the table; ``named`` has names where the table has codes of labels."""
    assert table.pictures is not None
    assert table.holders is not None
    rows, scaffolds = [], dict[int, str]()
    for rank in table.index[:MOST_FRAGMENTS].tolist():
        place, holders = table.pictures[rank][1], table.holders[rank]
        found, graph = table.loc[rank].to_dict(), shown[place.graph_index]
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
        if named is not None:
            row["pattern"] = pattern_texts(named, [place.pattern])[0]
            row["title"] = row["name"] or row["pattern"]
        if truth is not None and classes is None:
            row["mean_with"], row["mean_without"] = measured_with_and_without(holders, truth)
        elif truth is not None and classes is not None:
            inside, outside = measured_with_and_without(holders, truth, len(classes))
            outside = outside or [None] * len(classes)
            row["by_class"] = [
                [str(label), found[f"support {label}"], inside[k], outside[k]]
                for k, label in enumerate(classes.tolist())
            ]
        rows.append(row)
    return rows


def pattern_section(
    model: Any, forest: PatternForest, given: PredictedGraphs | None
) -> dict[str, Any]:
    """Return the patterns that change the predictions of some graphs most.

    The graphs are a sample of those of the report, or else of the training graphs.
    """
    expansion = model.expansion
    graphs = model.training_graphs if given is None else given.predictions.graphs.features
    n = graphs.pairs.n_graphs
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:_MOST_EXPLAINED])
    effects = effects_of_patterns(expansion, select_features(graphs, chosen))  # (n, n_patterns)
    holders = np.bincount(effects.indices, minlength=effects.shape[1])
    size = np.asarray(abs(effects).sum(axis=0)).ravel() / len(chosen)
    total = np.asarray(effects.sum(axis=0)).ravel()
    order = np.lexsort((np.arange(len(size)), -size))[:MOST_PATTERNS]
    order = order[size[order] > 0]
    support, ids = model.training.histograms.support, order + expansion.first_pattern
    texts, trees, depths = pattern_texts(forest, ids), forest.tree_names(ids), forest.pattern_depths
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
            "drawing": _tree(forest, pattern, text),
        }
        for k, pattern, text, tree_name in zip(order, ids.tolist(), texts, trees, strict=True)
    ]
    attributes = []
    if forest.cells is not None:
        table = attribute_table(forest, expansion.first_pattern + np.arange(len(size)), size)
        shares = table["contribution"] / max(table["contribution"].sum(), 1e-300)
        attributes = table.assign(share=shares).to_dict("records")
    return {
        "attributes": attributes,
        "n_all": len(size),
        "n_explained": len(chosen),
        "of_given": given is not None,
        "rows": rows,
    }


def _tree(forest: PatternForest, pattern: int, text: str) -> list[dict[str, Any]]:
    """Return the nodes of the unfolded tree of a pattern, parents first."""
    tree, inner = forest.place(pattern)
    nodes = [TreeNode(-1, 0, text, None, False)]
    if tree < len(forest.trees):  # else it is a cell of attributes
        nodes = unfold_within(forest.vocabularies[tree], inner, _MOST_TREE_NODES)
    texts = [(str(x.label), None if x.edge_label is None else str(x.edge_label)) for x in nodes]
    return [
        node._replace(label=label, edge_label=edge_label)._asdict()
        for node, (label, edge_label) in zip(nodes, texts, strict=True)
    ]
