"""The patterns worth a look, with a tree to draw and a place where each occurs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from treelens.explain.decode import Occurrence, environment_smiles, find_occurrences, unfold_within
from treelens.explain.layout import is_molecule
from treelens.explain.names import LabelNames, named_vocabulary
from treelens.explain.pattern_table import class_separation, pattern_table, rank_patterns
from treelens.explain.smarts import atom_label_of, pattern_smarts
from treelens.graphs.collection import Graph
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.report.details import drawable
from treelens.report.given import GivenGraphs
from treelens.svm.model import FittedSVM

if TYPE_CHECKING:
    import pandas as pd

MOST_PATTERNS = 100
_MOST_TREE_NODES = 40
LARGEST_DRAWN = 150  # nodes; beyond that a drawing shows nothing
_LONGEST_TEXT = 90
_N_BINS = 24


def shown_vocabulary(model: FittedSVM, names: str | LabelNames | None = None) -> PatternVocabulary:
    """The vocabulary with the labels that people are to see."""
    vocabulary = model.patterns.vocabulary
    return vocabulary if names is None else named_vocabulary(vocabulary, names)


def pattern_section(
    model: FittedSVM,
    vocabulary: PatternVocabulary,
    given: GivenGraphs | None,
    influence: Mapping[int, float],
) -> dict[str, Any]:
    """The leading patterns and how they were picked."""
    table = _full_table(model, influence if given is not None else None)
    by = _rankings(model, given is not None)
    chosen = leading_patterns(table, by, MOST_PATTERNS)
    places = _places(model, given, chosen.index.tolist())
    smarts = _exact_smarts(model, given, chosen.index.tolist())
    rows = [
        _pattern_row(row, vocabulary, places.get(row["pattern_id"]))
        | {"smarts": smarts.get(row["pattern_id"])}
        for row in cast("list[dict[str, Any]]", chosen.reset_index().to_dict("records"))
    ]
    return {"n_all": len(table), "n_shown": len(rows), "sorted_by": by[0], "rows": rows}


def _rankings(model: FittedSVM, with_graphs: bool) -> list[str]:
    """The columns that decide which patterns are shown, the one to sort by first."""
    learned = ["weight"] if model.kernel.weights is not None else []
    return [*learned, "separation", *(["influence"] if with_graphs else [])]


def _full_table(model: FittedSVM, influence: Mapping[int, float] | None) -> pd.DataFrame:
    """All patterns with separation, relative frequencies per class in one column, and influence."""
    histograms, codes = model.training.histograms, model.training.targets
    vocabulary = model.patterns.vocabulary
    table = pattern_table(
        PatternForest.of_vocabulary(vocabulary), histograms, model.weights, codes, model.classes
    )
    start = int(vocabulary.level_offsets[histograms.first_depth])
    separation = class_separation(histograms, codes, len(model.classes))
    own = table.index.to_numpy() - start  # position of every pattern among those in use
    table["separation"] = separation[own]
    frequencies = [f"frequency {label}" for label in model.classes.tolist()]
    table["frequencies"] = table[frequencies].to_numpy().tolist()
    if influence is not None:
        table["influence"] = [influence.get(pattern, 0.0) for pattern in table.index.tolist()]
    return table.drop(columns=frequencies)


def leading_patterns(table: pd.DataFrame, by: list[str], most: int) -> pd.DataFrame:
    """The first of several rankings in turn, until there are ``most``; sorted by the first."""
    rankings = [rank_patterns(table, column).index.to_numpy()[:most] for column in by]
    in_turn = np.stack(rankings, axis=1).ravel()
    chosen = list(dict.fromkeys(in_turn.tolist()))[:most]
    return rank_patterns(table.loc[chosen], by[0])


def _pattern_row(
    row: dict[str, Any], vocabulary: PatternVocabulary, place: dict[str, Any] | None
) -> dict[str, Any]:
    pattern = row["pattern_id"]
    return {
        "id": pattern,
        "text": vocabulary.texts(np.array([pattern]))[0],
        **{name: row[name] for name in ("depth", "weight", "support", "separation")},
        "influence": row.get("influence"),
        "frequencies": row["frequencies"],
        "leans_to": str(row["class"]),
        "tree": tree_data(vocabulary, pattern),
        "occurrence": place,
    }


def tree_data(vocabulary: PatternVocabulary, pattern: int) -> dict[str, list[Any]]:
    """The unfolded tree, one entry per node, parents first (-1: the root)."""
    tree = unfold_within(vocabulary, pattern, _MOST_TREE_NODES)
    return {
        "parents": [node.parent for node in tree],
        "labels": [str(node.label) for node in tree],
        "edge_labels": [None if x.edge_label is None else str(x.edge_label) for x in tree],
        "cut": [node.cut for node in tree],
    }


# --- places -----------------------------------------------------------------------------------


def _places(
    model: FittedSVM, given: GivenGraphs | None, patterns: list[int]
) -> dict[int, dict[str, Any]]:
    """One occurrence of each pattern in the given graphs, where there is one fit to be drawn."""
    if given is None:
        return {}
    found = find_occurrences(
        PatternForest.of_vocabulary(model.patterns.vocabulary),
        given.graphs,
        patterns,
        colors=given.colors,
    )
    return {
        pattern: place_of(given.shown[occurrences[0].graph_index], occurrences[0])
        for pattern, occurrences in found.items()
        if occurrences and given.graphs.sizes[occurrences[0].graph_index] <= LARGEST_DRAWN
    }


def place_of(graph: Graph, occurrence: Occurrence) -> dict[str, Any]:
    """A graph to draw with one occurrence of a pattern in it."""
    return {
        "graph": occurrence.graph_index,
        "root": occurrence.root,
        "nodes": occurrence.nodes,
        "smiles": environment_smiles(graph, occurrence) if is_molecule(graph) else None,
        **drawable(graph),
    }


def _exact_smarts(
    model: FittedSVM, given: GivenGraphs | None, patterns: list[int]
) -> dict[int, str | None]:
    """SMARTS that match exactly the atoms that carry each pattern, where graphs are molecules."""
    kind = None if given is None else atom_label_of(given.graphs, model.patterns.vocabulary)
    if kind is None:
        return {}
    return {
        pattern: pattern_smarts(model.patterns.vocabulary, pattern, kind) for pattern in patterns
    }


def short_texts(
    vocabulary: PatternVocabulary | PatternForest, patterns: set[int]
) -> dict[int, str]:
    """The text of some patterns, cut to a line."""
    ids = np.array(sorted(patterns), dtype=np.int64)
    texts = vocabulary.texts(ids)
    return {
        int(pattern): text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
        for pattern, text in zip(ids.tolist(), texts, strict=True)
    }


def weights_by_depth(model: FittedSVM) -> dict[str, Any]:
    """How the weights of each depth are spread: counts in common bins, and quantiles."""
    weights, histograms, learned = model.weights, model.training.histograms, model.choice.learned
    low, high = min(0.0, float(weights.min())), max(2.0, float(weights.max()))
    edges = np.linspace(low, high, _N_BINS + 1)
    radii = None if learned is None else learned.radii
    depths = []
    for k in range(histograms.n_depths):
        start, stop = histograms.level_offsets[k : k + 2]
        part = weights[start:stop]
        depths.append(
            {
                "depth": histograms.first_depth + k,
                "n_patterns": len(part),
                "moved": float(np.linalg.norm(part - 1.0)),
                "radius": None if radii is None else radii[k],
                "n_unmoved": int((np.abs(part - 1.0) < 1e-6).sum()),
                "quantiles": np.quantile(part, [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]),
                "counts": np.histogram(part, edges)[0],
            }
        )
    return {"uniform": model.kernel.weights is None, "bin_edges": edges, "depths": depths}
