"""Many graphs explained at once, whatever the model: what fragments and comparisons start from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from treelens.explain.classifier import ClassifierExplainer
from treelens.explain.contributions import contributions_of_nodes
from treelens.explain.fragment_effects import effects_of_graphs
from treelens.explain.fragment_seen import ExplainedGraphs
from treelens.explain.gaussian import GaussianDecision
from treelens.graphs.collection import GraphCollection
from treelens.patterns.features import SeenGraphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary


@dataclass(frozen=True, eq=False)
class ExplainedDecisions:
    """What nodes add to one output of a model, for many graphs.

    Attributes
    ----------
    seen : ExplainedGraphs
    base : ndarray, shape (n_graphs,)
        The decision before any known pattern is counted.
    decisions : ndarray, shape (n_graphs,)
        ``base`` and what the nodes of the graph add.
    left_out : bool
        Whether each graph was explained by the other training graphs alone.
    """

    seen: ExplainedGraphs
    base: np.ndarray
    decisions: np.ndarray
    left_out: bool


@singledispatch
def explained_by(
    decision: Any,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
) -> ExplainedDecisions:
    """Divide the decisions on many graphs among their nodes.

    Parameters
    ----------
    decision : GaussianDecision or ClassifierExplainer
    graphs : GraphCollection
    output : int
        Of more than two classes, the code of the one to explain.
    n_jobs : int
    looked_at : SeenGraphs, optional
        The graphs as the model sees them, where they were refined before.
    """
    raise TypeError(f"There is no explanation for {type(decision).__name__}.")


@explained_by.register
def _(
    decision: GaussianDecision,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
) -> ExplainedDecisions:
    effects = effects_of_graphs(decision, graphs, output, n_jobs, looked_at)
    forest = decision.vocabulary
    phi = effects.node_shares(forest.level_offsets).sum(axis=0)
    seen = ExplainedGraphs(forest, graphs, effects.colors, phi)
    return ExplainedDecisions(seen, effects.base, effects.decisions, effects.left_out)


@explained_by.register
def _(
    decision: ClassifierExplainer,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
) -> ExplainedDecisions:
    """A support vector machine has no closed form without a graph, so none is left out."""
    model = decision.model
    looked_at = model.decide(graphs, n_jobs=n_jobs).graphs if looked_at is None else looked_at
    phi, ends = np.empty(graphs.n_nodes), np.empty((len(graphs), 2))
    for index in range(len(graphs)):
        start, end = graphs.node_offsets[index : index + 2]
        made = decision.decision_on(looked_at.features, index)
        found = made.found_in(looked_at, index)
        phi[start:end], ends[index] = contributions_of_nodes(found, made, output)
    forest = one_tree(model.patterns.vocabulary)
    seen = ExplainedGraphs(forest, graphs, looked_at.colors, phi)
    return ExplainedDecisions(seen, ends[:, 0], ends[:, 1], left_out=False)


def one_tree(vocabulary: PatternVocabulary) -> PatternForest:
    """A forest of a single tree: the patterns of one vocabulary, from depth 0 on."""
    tree = "labels+edges" if vocabulary.uses_edge_labels else "labels"
    nothing_before = np.full(len(vocabulary.node_alphabet), -1, dtype=np.int64)
    return PatternForest((tree,), (vocabulary,), (nothing_before,))
