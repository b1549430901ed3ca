"""Which patterns move the predictions of a Gaussian process, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from treelens.explain.decode import find_occurrences, pattern_texts
from treelens.explain.effects import effects_of_patterns
from treelens.explain.expansion import expansion_of
from treelens.explain.smarts import atom_label_of, forest_smarts
from treelens.gp.model import FittedGP
from treelens.graphs.collection import GraphCollection
from treelens.patterns.features import select_features
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.vocabulary import NodeColors
from treelens.report.patterns import LARGEST_DRAWN, place_of, tree_data
from treelens.report.said import SaidOfGraphs

MOST_GRAPHS = 100
# Fewer than a report led by patterns shows: here fragments come first.
MOST_PATTERNS = 60


@dataclass(frozen=True)
class PatternEffects:
    """What patterns add to the predictions of some graphs.

    Attributes
    ----------
    values : csr_array, shape (n_graphs, n_patterns)
        Empty where the graph does not hold the pattern.
    indices : ndarray
        Which of the graphs given, or of the training graphs, these are.
    given : bool
        Whether they are among the graphs given to the report, or training graphs.
    colors : NodeColors or None
        Of the graphs given.
    """

    values: sparse.csr_array
    indices: np.ndarray
    given: bool
    colors: NodeColors | None

    @property
    def n_graphs(self) -> int:
        return self.values.shape[0]

    def mean_size(self) -> np.ndarray:
        """Mean absolute effect over all graphs, 0 where a graph lacks it: (n_patterns,)."""
        return np.asarray(abs(self.values).sum(axis=0)).ravel() / self.n_graphs

    def holders(self) -> np.ndarray:
        """How many of the graphs hold each pattern."""
        return np.bincount(self.values.indices, minlength=self.values.shape[1])

    def mean_and_error(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean effect in the graphs that hold a pattern, and its standard error.

        NaN without a graph, the error also with a single one.
        """
        n = self.holders().astype(float)
        n[n == 0] = np.nan
        mean = np.asarray(self.values.sum(axis=0)).ravel() / n
        off = self.values.data - mean[self.values.indices]
        squares = np.bincount(self.values.indices, weights=off**2, minlength=len(n))
        return mean, np.sqrt(squares / np.where(n > 1, n * (n - 1.0), np.nan))


def measured_effects(model: FittedGP, given: SaidOfGraphs | None) -> PatternEffects:
    """Effects in a sample of the graphs given, or else of the training graphs."""
    expansion = expansion_of(model)
    if given is None:
        chosen = _sample(model.basis.n_graphs)
        values = effects_of_patterns(expansion, select_features(model.basis_graphs, chosen))
        return PatternEffects(values, model.basis_indices[chosen], False, None)
    chosen, seen = _sample(len(given)), given.said.graphs
    colors = seen.colors.select_graphs(chosen)
    values = effects_of_patterns(expansion, select_features(seen.features, chosen))
    return PatternEffects(values, chosen, True, colors)


def _sample(n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).permutation(n)[:MOST_GRAPHS])


# --- the table --------------------------------------------------------------------------------


def effect_section(
    model: FittedGP,
    forest: PatternForest,
    given: SaidOfGraphs | None,
    effects: PatternEffects,
) -> dict[str, Any]:
    """The patterns that move predictions most, with all there is to say about each.

    ``forest`` carries the labels that people are to see.
    """
    size = effects.mean_size()
    support = np.zeros(forest.n_patterns, dtype=np.int64)
    assert model.training is not None
    support[:] = model.training.histograms.support
    order = np.lexsort((np.arange(len(size)), -support, -size))[:MOST_PATTERNS]
    order = order[size[order] > 0]
    mean, error = effects.mean_and_error()
    holders, places = effects.holders(), _places(model, given, effects, order.tolist())
    smarts = _smarts(model, given, order.tolist())
    texts = pattern_texts(forest, order)
    rows = [
        {
            "id": pattern,
            "text": text,
            **_where(forest, pattern),
            "weight": model.weights[pattern],
            "support": support[pattern],
            "size": size[pattern],
            "effect": mean[pattern],
            "effect_error": error[pattern],
            "n_holders": holders[pattern],
            "smarts": smarts.get(pattern),
            "occurrence": places.get(pattern),
        }
        for pattern, text in zip(order.tolist(), texts, strict=True)
    ]
    return {
        "n_all": forest.n_patterns,
        "n_shown": len(rows),
        "n_graphs": effects.n_graphs,
        "of_given": effects.given,
        "rows": rows,
    }


def _where(forest: PatternForest, pattern: int) -> dict[str, Any]:
    tree, inner = forest.place(pattern)
    vocabulary = forest.vocabularies[tree]
    return {
        "forest_tree": forest.trees[tree],
        "depth": vocabulary.depth_of(inner),
        "tree": tree_data(vocabulary, inner),
    }


def _places(
    model: FittedGP,
    given: SaidOfGraphs | None,
    effects: PatternEffects,
    patterns: list[int],
) -> dict[int, dict[str, Any]]:
    """One occurrence of each pattern in the graphs given, where one is fit to be drawn."""
    if given is None or effects.colors is None:
        return {}
    sample = given.graphs[effects.indices]
    forest = model.weighted.forest
    places = {}
    for pattern, found in find_occurrences(forest, sample, patterns, colors=effects.colors).items():
        if found and sample.sizes[found[0].graph_index] <= LARGEST_DRAWN:
            index = int(effects.indices[found[0].graph_index])
            places[pattern] = place_of(given.shown[index], found[0]) | {"graph": index}
    return places


def _smarts(
    model: FittedGP, given: SaidOfGraphs | None, patterns: list[int]
) -> dict[int, str | None]:
    """SMARTS that match exactly the atoms that carry each pattern, where graphs are molecules."""
    forest = model.weighted.forest
    if given is None or not _are_molecules(given.graphs):
        return {}
    own = [v for v, t in zip(forest.vocabularies, forest.trees, strict=True) if _own_labels(t)]
    kind = atom_label_of(given.graphs, own[0]) if own else "element"
    return {pattern: forest_smarts(forest, pattern, kind or "unknown") for pattern in patterns}


def _own_labels(tree: str) -> bool:
    return TREES[tree][0] == "labels"


def _are_molecules(graphs: GraphCollection) -> bool:
    return "smiles" in graphs.graph_data or "mol" in graphs.graph_data
