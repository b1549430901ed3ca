"""A fitted classifier as something that can be explained."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from treelens.explain.contributions import Explanation, explain_seen
from treelens.explain.expansion import KernelDecision
from treelens.graphs.collection import GraphCollection
from treelens.models.predictions import Predictions
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
