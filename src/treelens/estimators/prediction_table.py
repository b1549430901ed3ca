"""Predictions of graphs as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.array_checks import Columns
from treelens.errors import check_choice
from treelens.estimators.panel_columns import panel_file_names, panel_text_names
from treelens.estimators.profile import Profile, single_outlook
from treelens.evaluation.metrics import NINETY
from treelens.graphs.collection import GraphCollection
from treelens.maps import TargetMap
from treelens.models.domain import expected_error
from treelens.models.fitted import FittedModel

if TYPE_CHECKING:
    import pandas as pd

    from treelens.estimators.predictor import TablePredictor

DOMAIN_COLUMNS = ("in_domain", "expected_error", "similarity", "nearest", "out_of_vocabulary")


def prediction_table(
    model: Any,
    graphs: GraphCollection,
    intervals: str | None = None,
    profile: Profile | None = None,
) -> pd.DataFrame:
    """Return predictions, named by the graphs; by default with the intervals set for the model."""
    import pandas as pd  # a file is written without it

    index = None if graphs.names is None else pd.Index(list(graphs.names), name="name")
    return pd.DataFrame(prediction_columns(model, graphs, intervals, profile), index=index)


def prediction_columns(
    model: Any,
    graphs: GraphCollection,
    intervals: str | None = None,
    profile: Profile | None = None,
) -> Columns:
    """Return the columns of :func:`prediction_table`, those of a profile first."""
    intervals = getattr(model, "_intervals", "posterior") if intervals is None else intervals
    check_choice("intervals", intervals, ("posterior", "scaffold"))
    classes = model.model_.classes
    if intervals != "posterior" and classes is not None:
        raise ValueError("Intervals are those of numbers: a classifier has probabilities.")
    has_domain = model.model_.has_variance
    found = model._decide(graphs, variance=has_domain)
    scale, suffix = learned_scale(model)
    columns: dict[str, Any] = {"out_of_vocabulary": found.out_of_vocabulary}
    if classes is not None:
        chances, codes, rows = found.probabilities, found.predicted_codes, np.arange(len(graphs))
        one = found.decisions.shape[1] == 1
        columns |= {
            "class": classes[codes],
            "probability": chances[rows, codes],
            "decision": found.decisions[:, 0] if one else found.decisions[rows, codes],
            **{f"probability_{c}": chances[:, k] for k, c in enumerate(classes.tolist())},
        }
    else:
        factor = 1.0 if intervals == "posterior" else model._widening(intervals)
        mean, std = found.mean[:, 0], factor * np.sqrt(found.variance)
        columns |= number_columns(mean, std, scale)
        columns["std" + suffix] = std if suffix or scale is None else scale.inverse_std(mean, std)
    if found.from_covariates is not None and found.from_covariates.shape[1] == 1:
        columns["from_covariates" + suffix] = found.from_covariates[:, 0]
    if has_domain:
        domain = model.model_.domain(model._n_jobs())
        around = domain.around(found.graphs.patterns.features, model._n_jobs())
        expected = expected_error(np.sqrt(found.variance), around)
        inside = domain.holds(expected, around)
        if scale is not None and not suffix:
            expected = scale.inverse_std(found.mean[:, 0], expected)
        columns |= {
            "in_domain": inside,
            "expected_error" + suffix: expected,
            "similarity": around.similarity,
            "nearest": around.nearest,
        }
    own = Columns((name, columns[name]) for name in table_columns(model))
    if profile is None:
        return own
    return Columns({**profile.columns(*single_outlook(model.model_, found)), **own})


def number_columns(
    mean: np.ndarray, std: np.ndarray, scale: TargetMap | None
) -> dict[str, np.ndarray]:
    """Return predictions and 90 % intervals in the units of the targets."""
    bounds = {"lower_90": mean - NINETY * std, "upper_90": mean + NINETY * std}
    if scale is None:
        return {"prediction": mean, **bounds}
    back = {name: scale.inverse(bound) for name, bound in bounds.items()}
    return {"prediction": scale.inverse_mean(mean, std), "median": scale.inverse(mean), **back}


def table_columns(model: TablePredictor) -> list[str]:
    """Return the columns of :func:`prediction_table` for a fitted model, in order."""
    (scale, suffix), classes = learned_scale(model), model.model_.classes
    if classes is not None:
        columns = ["class", "probability", "decision"]
        columns += [f"probability_{c}" for c in classes.tolist()]
    else:
        columns = ["prediction", "median", "std" + suffix, "lower_90", "upper_90"]
        if scale is None:
            columns.remove("median")
    if model.model_.covariate_names and (classes is None or len(classes) < 3):
        columns.append("from_covariates" + suffix)
    if not model.model_.has_variance:
        return [*columns, "out_of_vocabulary"]
    return columns + [n + suffix if n == "expected_error" else n for n in DOMAIN_COLUMNS]


def file_columns(model: Any) -> list[str]:
    """Return the columns of files: of the nearest training graph its name and value, if known."""
    if model.model_.endpoint_names:
        return panel_file_names(model.model_)
    columns, training = table_columns(model), model.model_.training
    if "nearest" in columns:
        has_identity = training.names is not None or training.smiles is not None
        known = ["nearest_name", *nearest_columns(model, np.empty(0, dtype=int))]
        place = columns.index("nearest")
        columns[place : place + 1] = known if has_identity else []
    return columns


def text_columns(model: Any) -> list[str]:
    """Return the columns of files that hold texts."""
    if model.model_.endpoint_names:
        return panel_text_names(model.model_)
    return ["class", "nearest_class", "nearest_name", "nearest_limit"]


def measured_values(model: FittedModel, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return values of training graphs in the units of the table, and limits; or their classes."""
    targets, limits = model.training.targets[positions], model.training.limits
    if model.classes is not None:
        return {"value": model.classes[targets]}
    scale = model.training.record.scale
    found = {"value": targets if scale is None else scale.inverse(targets)}
    if limits is not None:
        found["limit"] = np.array(["", ">", "<"])[limits[positions]]
    return found


def nearest_columns(model: TablePredictor, positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return what files have of the nearest training graphs."""
    found = measured_values(model.model_, positions)
    if model.model_.classes is not None:
        return {"nearest_class": found["value"]}
    return {f"nearest_{name}": values for name, values in found.items()}


def learned_scale(model: TablePredictor) -> tuple[TargetMap | None, str]:
    """Return the scale that numbers were learned on, and the end of names of columns on it.

    Only scales that were asked for, logarithms, have such columns.
    """
    record = model.model_.training.record
    return record.scale, "" if record.reported is None else f"_{record.reported.name}"
