"""A fitted classifier as something that can be explained."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from treelens.explain.contributions import Explanation, explain_seen
from treelens.explain.expansion import KernelDecision
from treelens.graphs.collection import GraphCollection
from treelens.kernels.table import SUM_KERNELS
from treelens.models.predictions import Predictions
from treelens.patterns.features import Features
from treelens.patterns.histograms import SparseRows
from treelens.patterns.pairs import PairFeatures
from treelens.svm.linear_on_features import LinearOnFeatures
from treelens.svm.model import FittedSVM, LinearOnKernel


class ClassifierExplainer:
    """Explains decisions of one model on graphs that it has seen.

    ``decision_on(features, index)`` is what decides on one of them, as a :class:`KernelDecision`.

    Parameters
    ----------
    model : FittedSVM
    """

    def __init__(self, model: FittedSVM) -> None:
        self.model = model
        self.decision_on = decision_maker(model.decision, model)

    @property
    def classes(self) -> np.ndarray:
        return self.model.classes

    def explain(
        self,
        graphs: GraphCollection,
        said: Predictions,
        index: int,
        class_label: Any = None,
        n_neighbors: int = 5,
    ) -> Explanation:
        """Why graph ``index`` was decided the way it was."""
        decision = self.decision_on(said.graphs.features, index)
        return explain_seen(graphs, said.graphs, index, decision, class_label, n_neighbors)


@singledispatch
def decision_maker(decision: Any, model: FittedSVM) -> Any:
    """A function from features and the position of a graph to a :class:`KernelDecision`."""
    raise TypeError(f"There is no explanation for {type(decision).__name__}.")


@decision_maker.register
def _(decision: LinearOnKernel, model: FittedSVM) -> Any:
    made = kernel_decision(decision, model)
    return lambda features, index: made


@decision_maker.register
def _(decision: LinearOnFeatures, model: FittedSVM) -> Any:
    return lambda features, index: additive_decision(decision, model, features, index)


def kernel_decision(decision: LinearOnKernel, model: FittedSVM) -> KernelDecision:
    """The same decision for all graphs: a sum over training graphs."""
    svm, kernel = decision.svm, decision.kernel
    coefficients, intercepts = svm.per_class
    return KernelDecision(
        vocabulary=model.patterns.vocabulary,
        first_depth=model.patterns.first_depth,
        kernel=kernel.name,
        weights=model.weights,
        offset=kernel.offset,
        gamma=kernel.gamma,
        pairs=decision.basis.pairs,
        diagonal=decision.basis.diagonal,
        coefficients=coefficients,
        intercepts=intercepts,
        classes=model.classes,
        training_indices=decision.basis_indices,
        training_codes=model.training.targets[decision.basis_indices],
        out_of_vocabulary_limit=model.training.usual_out_of_vocabulary,
        votes=(svm.coefficients, svm.intercepts) if svm.pairwise else None,
    )


def additive_decision(
    decision: LinearOnFeatures, model: FittedSVM, features: Features, index: int
) -> KernelDecision:
    """The decision on one graph as a sum over its patterns.

    Every pattern of the graph stands for one training "graph" that holds nothing else, with the
    coefficient that gives the pattern its contribution.
    """
    one = _one_of(features, index)
    weights, rows, minimum = model.weights, one.pairs.rows, one.pairs.minimum
    bases, terms = decision.contributions(one)
    units = weights[rows.indices] * (rows.values if minimum else rows.values**2)
    n = len(rows.indices)
    alone = SparseRows(np.arange(n + 1, dtype=np.int64), rows.indices, rows.values)
    pairs = PairFeatures(
        alone.transposed(one.pairs.n_patterns), alone, one.pairs.level_offsets, minimum, np.ones(n)
    )
    return KernelDecision(
        vocabulary=model.patterns.vocabulary,
        first_depth=model.patterns.first_depth,
        kernel=SUM_KERNELS[model.patterns.kind],
        weights=weights,
        offset=decision.kernel.offset,
        gamma=None,
        pairs=pairs,
        diagonal=units,
        coefficients=np.divide(terms, units, out=np.zeros_like(terms), where=units > 0),
        intercepts=bases,
        classes=model.classes,
        training_indices=np.full(n, -1),
        training_codes=np.zeros(n, dtype=int),
        out_of_vocabulary_limit=model.training.usual_out_of_vocabulary,
    )


def _one_of(features: Features, index: int) -> Features:
    """The features of one graph."""
    pairs, rows = features.pairs, features.pairs.rows
    entries = slice(rows.offsets[index], rows.offsets[index + 1])
    n_entries = entries.stop - entries.start
    row = SparseRows(
        np.array([0, n_entries], dtype=np.int64), rows.indices[entries], rows.values[entries]
    )
    one = PairFeatures(
        row.transposed(pairs.n_patterns), row, pairs.level_offsets, pairs.minimum,
        pairs.scale[index : index + 1],
    )  # fmt: skip
    return Features(one, features.diagonal[index : index + 1])
