"""The columns of a table of predictions: what a model says of graphs, each refined once.

A new column is an entry here: a function of the model and of what it said, which is a
:class:`treelens.models.predictions.Predictions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treelens.cli.transform import Transform
    from treelens.graphs.collection import GraphCollection
    from treelens.models.predictions import Predictions

Columns = dict[str, Any]  # each (n_graphs,)


def class_columns(model: Any, graphs: GraphCollection) -> Columns:
    """``class``, ``probability`` (of that class), ``decision``, and what tells of doubt.

    ``decision`` is positive for the second of two classes; of several, it is that of the predicted
    one. Before what tells of doubt comes one ``probability CLASS`` per class.
    """
    import numpy as np
    import pandas as pd

    said = _said(model, graphs)
    decisions, probabilities, codes = said.decisions, said.probabilities, said.predicted_codes
    assert probabilities is not None
    everyone = np.arange(len(codes))
    one = decisions.shape[1] == 1
    return {
        "class": pd.array(model.classes_[codes].astype(str), dtype="object"),
        "probability": probabilities[everyone, codes],
        "decision": decisions[:, 0] if one else decisions[everyone, codes],
        **beside_columns(said),
        "out_of_vocabulary": said.out_of_vocabulary,
        **{f"probability {c}": probabilities[:, k] for k, c in enumerate(model.classes_.tolist())},
        **doubt_columns(model, said),
    }


def number_columns(model: Any, graphs: GraphCollection, transform: Transform | None) -> Columns:
    """``prediction``, ``std``, ``lower_90``, ``upper_90``, and what tells of doubt.

    ``std`` is that of a new measurement, noise included, and nine of ten should lie between the
    last two. Of a model that learned on another scale, predictions and bounds are taken back to the
    units of the table (the prediction is then a median); ``std`` and ``expected_error`` stay, and
    are called by the scale they are on.
    """
    import numpy as np

    from treelens.evaluation.metrics import NINETY

    said = _said(model, graphs)
    assert said.variance is not None
    mean, std = said.mean[:, 0], np.sqrt(said.variance)
    back = (lambda x: x) if transform is None else transform.back
    on_scale = "" if transform is None else f"_{transform.name}"
    doubts = doubt_columns(model, said)
    return {
        "prediction": back(mean),
        f"std{on_scale}": std,
        "lower_90": back(mean - NINETY * std),
        "upper_90": back(mean + NINETY * std),
        **{name + on_scale: x for name, x in beside_columns(said).items()},
        "out_of_vocabulary": said.out_of_vocabulary,
        **{name + on_scale * (name == "expected_error"): x for name, x in doubts.items()},
    }


def beside_columns(said: Predictions) -> Columns:
    """``from_covariates``: what they add to the number or the decision, where there are any."""
    if said.from_covariates is None or said.from_covariates.shape[1] > 1:
        return {}
    return {"from_covariates": said.from_covariates[:, 0]}


def doubt_columns(model: Any, said: Predictions) -> Columns:
    """``in_domain``, ``expected_error`` and ``similarity`` to the nearest training graph.

    Of Gaussian processes; other models have none of them.
    """
    import numpy as np

    from treelens.gp.domain import expected_error

    if not hasattr(model, "domain_") or said.variance is None:
        return {}
    domain = model.domain_
    around = domain.around(said.graphs.features, model._n_jobs())
    expected = expected_error(np.sqrt(said.variance), around)
    return {
        "in_domain": domain.holds(expected, around),
        "expected_error": expected,
        "similarity": around.similarity,
    }


def _said(model: Any, graphs: GraphCollection) -> Predictions:
    """What the model says; of a Gaussian process with variances."""
    return (
        model._decide(graphs, variance=True)
        if hasattr(model, "domain_")
        else (model._decide(graphs))
    )
