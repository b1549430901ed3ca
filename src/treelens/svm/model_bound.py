"""The generalisation bound of a fitted classifier: its parts, in the terms of the theory."""

from __future__ import annotations

from typing import Any

from treelens.pairwise.bounds import fitted_bound
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.settings import LearnerSettings
from treelens.patterns.pairs import PairFeatures
from treelens.svm.model import FittedSVM


def model_bound(model: FittedSVM, delta: float) -> dict[str, Any]:
    """See ``GraphSVC.generalization_bound``."""
    training, choice = model.training, model.choice
    pairs = PairFeatures.from_histograms(training.histograms, model.patterns.kind)
    parameters = {**(choice.learner or {}), "n_jobs": 1}
    learned = choice.learned
    if learned is None:  # uniform weights: the margins are those it would have learned with
        parameters["radius"] = 0.0
        learned = learn_weights(pairs, training.targets, **parameters)
    settings = LearnerSettings(**parameters)
    bound = fitted_bound(pairs, training.targets, settings, learned, delta)
    if choice.best_params["n_candidates"] > 1:
        bound["caveats"].append(
            f"The model was chosen among {choice.best_params['n_candidates']} candidates by "
            "cross-validation on the same graphs; the theorems are about one fixed beforehand."
        )
    return bound
