"""The fragments and patterns that change predictions most."""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.explain.attributes import attribute_table
from treelens.explain.decode import pattern_texts, unfold_within
from treelens.explain.effects import effects_of_patterns
from treelens.explain.expansion import expansion_of
from treelens.explain.fragment_context import (
    confounders,
    fragment_smiles,
    measured_with_and_without,
)
from treelens.explain.fragments import FragmentTable, fragment_table
from treelens.explain.names import LabelNames, with_label_names
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
    names: str | LabelNames | None = None,
) -> dict[str, Any] | None:
    """Return the fragments of the graphs of the report, or else of the training graphs.

    ``forest`` has the labels to show. None for a model from a file without graphs, or with too few.
    """
    model, train = estimator.model_, estimator._train_graphs
    table, shown, truth = None, None, model.training.targets
    of_given = given is not None and len(given) >= _FEWEST
    if given is not None and of_given:
        graphs, shown, truth, seen = _sample(given)
        table = fragment_table(
            expansion_of(model), graphs, truth, n_fragments=_MOST_OF_GIVEN,
            min_support=max(_FEWEST, round(_RAREST_SHARE * len(graphs))),
            n_jobs=estimator._n_jobs(), seen=seen,
        )  # fmt: skip
    if (table is None or not len(table)) and train is not None:
        table, shown, truth = _of_training(estimator, train)
        of_given, shown = False, shown if names is None else with_label_names(shown, names)
    if table is None or shown is None:
        return None
    rows = _rows(table, shown, forest, names, truth, model.classes)
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
        "strongest": [
            row for rank in table.attrs["strongest"][:3] for row in rows if row["rank"] == rank
        ],
    }


def _of_training(
    estimator: Any, train: GraphCollection
) -> tuple[FragmentTable, GraphCollection, np.ndarray]:
    """Return the fragments of the training graphs, or of a sample of many."""
    targets = estimator.model_.training.targets
    if len(train) <= _MOST_SEARCHED or estimator._fragments is not None:
        return estimator.fragments_, train, targets
    kept = np.sort(np.random.default_rng(0).permutation(len(train))[:_MOST_SEARCHED])
    some, truth = train[kept], targets[kept]
    table = fragment_table(
        expansion_of(estimator.model_), some, truth, n_fragments=MOST_FRAGMENTS,
        n_jobs=estimator._n_jobs(),
    )  # fmt: skip
    return table, some, truth


def _sample(
    given: PredictedGraphs,
) -> tuple[GraphCollection, GraphCollection, np.ndarray | None, RefinedGraphs]:
    """Return at most so many graphs as a search takes about a second for, with all about them."""
    seen = given.predictions.graphs
    if len(given) <= _MOST_SEARCHED:
        return given.graphs, given.shown, given.truth, seen
    kept = np.sort(np.random.default_rng(0).permutation(len(given))[:_MOST_SEARCHED])
    some = RefinedGraphs(
        seen.colors.select_graphs(kept),
        seen.histograms.select_graphs(kept),
        select_features(seen.features, kept),
    )
    truth = None if given.truth is None else given.truth[kept]
    return given.graphs[kept], given.shown[kept], truth, some


def _rows(
    table: FragmentTable,
    shown: GraphCollection,
    forest: PatternForest,
    names: str | LabelNames | None,
    truth: np.ndarray | None,
    classes: np.ndarray | None,
) -> list[dict[str, Any]]:
    rows = []
    scaffolds: dict[int, str] = {}
    for rank in table.index[:MOST_FRAGMENTS].tolist():
        assert table.pictures is not None
        assert table.holders is not None
        _, place = table.pictures[rank]
        found, graph = table.loc[rank].to_dict(), shown[place.graph_index]
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
            "confounders": confounders(shown, table.holders[rank], truth, classes, scaffolds),
            "examples": [_example(shown, example) for example in found["examples"]],
            "drawing": drawing_data(graph, place),
        }
        if names is not None:  # the table has codes of labels
            row["pattern"] = pattern_texts(forest, [place.pattern])[0]
            row["title"] = row["name"] or row["pattern"]
        if truth is not None:
            n_classes = None if classes is None else len(classes)
            both = measured_with_and_without(table.holders[rank], truth, n_classes)
            if classes is None:
                row["mean_with"], row["mean_without"] = both
            else:
                shares = zip(classes.tolist(), *(s or [None] * len(classes) for s in both),
                             strict=True)  # fmt: skip
                row["by_class"] = [
                    [str(c), found[f"support {c}"], inside, outside]
                    for c, inside, outside in shares
                ]
        rows.append(row)
    return rows


def _example(shown: GraphCollection, example: Any) -> str:
    """Return the name of an example, of a molecule without one its SMILES."""
    known = shown.names is None and isinstance(example, int)
    return str((graph_name(shown, example) if known else None) or example)


def pattern_section(
    model: Any, forest: PatternForest, given: PredictedGraphs | None
) -> dict[str, Any]:
    """Return the patterns that change the predictions of some graphs most.

    The graphs are a sample of those of the report, or else of the training graphs.
    """
    expansion = expansion_of(model)
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
    rows = [
        {
            "id": pattern,
            "text": text,
            "level": tree_name,
            "depth": depth,
            "weight": expansion.weights[k],
            "support": support[k],
            "mean_absolute_effect": size[k],
            "effect": total[k] / holders[k],
            "drawing": _tree(forest, pattern, text),
        }
        for k, pattern, text, tree_name, depth in zip(
            order.tolist(),
            ids.tolist(),
            pattern_texts(forest, ids),
            forest.tree_names(ids),
            forest.pattern_depths[ids].tolist(),
            strict=True,
        )
    ]
    attributes = []
    if forest.cells is not None:
        everything = expansion.first_pattern + np.arange(len(size))
        table = attribute_table(forest, everything, size)
        shares = table["contribution"] / max(table["contribution"].sum(), 1e-300)
        attributes = table.assign(share=shares).to_dict("records")
    return {
        "attributes": attributes,
        "n_all": len(size),
        "n_explained": len(chosen),
        "of_given": given is not None,
        "rows": rows,
    }


def _tree(forest: PatternForest, pattern: int, text: str) -> dict[str, list[Any]]:
    """Return the unfolded tree of a pattern, one entry per node, parents first (-1: the root)."""
    tree, inner = forest.place(pattern)
    if tree == len(forest.trees):  # a cell of attributes
        return {"parents": [-1], "labels": [text], "edge_labels": [None], "cut": [False]}
    nodes = unfold_within(forest.vocabularies[tree], inner, _MOST_TREE_NODES)
    return {
        "parents": [node.parent for node in nodes],
        "labels": [str(node.label) for node in nodes],
        "edge_labels": [None if x.edge_label is None else str(x.edge_label) for x in nodes],
        "cut": [node.cut for node in nodes],
    }
