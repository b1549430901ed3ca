"""The columns of a table of predictions: what a model says of graphs, each refined once.

A new column is an entry here: a function of the model and of what it said, which is a
:class:`treelens.models.gaussian_process.Predictions` for a Gaussian process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treelens.cli.transform import Transform
    from treelens.graphs.collection import GraphCollection

Columns = dict[str, Any]  # each (n_graphs,)


def class_columns(model: Any, graphs: GraphCollection) -> Columns:
    """``class``, ``probability`` (of that class), ``decision``, and what tells of doubt.

    ``decision`` is positive for the second of two classes; of several, it is that of the predicted
    one. After what tells of doubt comes one ``probability CLASS`` per class.
    """
    import numpy as np
    import pandas as pd

    from treelens.models.svm import predicted_codes

    said, decisions, probabilities = _class_decisions(model, graphs)
    codes = predicted_codes(decisions)
    everyone = np.arange(len(codes))
    one = decisions.shape[1] == 1
    return {
        "class": pd.array(model.classes_[codes].astype(str), dtype="object"),
        "probability": probabilities[everyone, codes],
        "decision": decisions[:, 0] if one else decisions[everyone, codes],
        "unseen_share": said.unseen_fraction,
        **doubt_columns(model, said),
        **{f"probability {c}": probabilities[:, k] for k, c in enumerate(model.classes_.tolist())},
    }


def number_columns(model: Any, graphs: GraphCollection, transform: Transform | None) -> Columns:
    """``prediction``, ``std``, ``lower_90``, ``upper_90``, and what tells of doubt.

    ``std`` is that of a new measurement, noise included, and nine of ten should lie between the
    last two. Of a model that learned on another scale, all but ``std`` are taken back to the units
    of the table (the prediction is then a median), and ``std`` is called by the scale it is on.
    """
    import numpy as np

    from treelens.estimators.leave_one_out import NINETY

    said = model._decide(graphs, variance=True)
    mean, std = said.mean[:, 0], np.sqrt(said.variance)
    back = (lambda x: x) if transform is None else transform.back
    return {
        "prediction": back(mean),
        "std" if transform is None else f"std_{transform.name}": std,
        "lower_90": back(mean - NINETY * std),
        "upper_90": back(mean + NINETY * std),
        "out_of_vocabulary": said.unseen_fraction,
        **doubt_columns(model, said),
    }


def doubt_columns(model: Any, said: Any) -> Columns:
    """More columns on how far a prediction can be trusted: the place for ``in_domain``."""
    return {}


def _class_decisions(model: Any, graphs: GraphCollection) -> tuple[Any, Any, Any]:
    """What was said, decision values (n_graphs, n_outputs), probabilities (n_graphs, n_classes)."""
    from treelens.estimators.evidence import GraphClassifier
    from treelens.models.calibration import calibrated

    if isinstance(model, GraphClassifier):
        said = model._decide(graphs)
        return said, said.mean, calibrated(said.mean, model._temperature)
    machine = model.decide(graphs)
    return machine, machine.decisions, machine.probabilities
