"""The generalisation bound of a fitted classifier: its parts handed over to the theory room."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from treelens.estimators.weights import PairwiseWeights
from treelens.learning.settings import LearnerSettings, with_preset
from treelens.patterns.pairs import PairFeatures
from treelens.theory.fitted import fitted_bound


def model_bound(model: Any, delta: float) -> dict[str, Any]:
    """See ``GraphSVC.generalization_bound``."""
    pairs = PairFeatures.from_histograms(model.train_histograms_, model._extractor.kind)
    learner = model.learner_
    if learner is None:  # uniform weights: the margins are those it would have learned with
        base = PairwiseWeights() if model.learner is None else clone(model.learner)
        learner = base.set_params(radius=0.0, preset=None).fit(pairs, model.train_codes_)
    parameters = learner.get_params(deep=False)
    preset = parameters.pop("preset")
    settings = with_preset(LearnerSettings(**parameters), preset)
    bound = fitted_bound(pairs, model.train_codes_, settings, learner.result_, delta)
    if model.best_params_["n_candidates"] > 1:
        bound["caveats"].append(
            f"The model was chosen among {model.best_params_['n_candidates']} candidates by "
            "cross-validation on the same graphs; the theorems are about one fixed beforehand."
        )
    return bound
