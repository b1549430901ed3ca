"""Predictions of several endpoints as a table: for each its value, interval and domain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from treelens.estimators.panel_answers import learned_deviations, values_of
from treelens.evaluation.metrics import NINETY
from treelens.gp.panel_domain import PanelDomain
from treelens.gp.panel_model import FittedPanel, PanelEndpoint, PanelPredictions
from treelens.maps import TargetMap
from treelens.models.domain import Neighbourhood, expected_error

COMMON_COLUMNS = ("similarity", "nearest", "out_of_vocabulary")


def panel_columns(model: FittedPanel, measured: bool = False) -> list[str]:
    """Return the columns of :func:`panel_table`, in order."""
    names = [name for end in model.endpoints for name in _columns_of(end, measured)]
    return [*names, *COMMON_COLUMNS]


def panel_file_names(model: FittedPanel) -> list[str]:
    """Return the columns of files: of the nearest training graph its name, if it is known."""
    names, training = panel_columns(model, measured=True), model.training
    place = names.index("nearest")
    has_identity = training.names is not None or training.smiles is not None
    names[place : place + 1] = ["nearest_name"] if has_identity else []
    return names


def panel_text_names(model: FittedPanel) -> list[str]:
    """Return those of :func:`panel_file_names` that hold no numbers, but for ``in_domain``."""
    classes = [end.name for end in model.endpoints if end.classes is not None]
    names = [f"{name}_{what}" for name in classes for what in ("class", "measured")]
    return [*names, "nearest_name"]


def number_columns(
    mean: np.ndarray, std: np.ndarray, scale: TargetMap | None
) -> dict[str, np.ndarray]:
    """Return predictions and 90 % intervals in the units of the targets."""
    bounds = {"lower_90": mean - NINETY * std, "upper_90": mean + NINETY * std}
    if scale is None:
        return {"prediction": mean, **bounds}
    back = {name: scale.inverse(bound) for name, bound in bounds.items()}
    return {"prediction": scale.inverse_mean(mean, std), "median": scale.inverse(mean), **back}


def _suffix(endpoint: PanelEndpoint) -> str:
    """Return the end of the names of columns on a scale: only logarithms that were asked for."""
    reported = endpoint.record.reported
    return "" if reported is None else f"_{reported.name}"


def _columns_of(endpoint: PanelEndpoint, measured: bool) -> list[str]:
    suffix = _suffix(endpoint)
    if endpoint.classes is None:
        median = [] if endpoint.record.scale is None else ["median"]
        names = ["prediction", *median, "std" + suffix, "lower_90", "upper_90"]
    else:
        chances = [f"probability_{label}" for label in endpoint.classes.tolist()]
        names = ["class", "probability", "decision", *chances]
    names += ["in_domain", "expected_error" + suffix] + (["measured"] if measured else [])
    return [f"{endpoint.name}_{name}" for name in names]


class Surroundings(NamedTuple):
    """The training graphs around others, and what follows for their predictions."""

    around: list[Neighbourhood]  # of each endpoint
    expected: np.ndarray  # (n_graphs, n_endpoints) errors to expect, on the scales that are learned
    inside: np.ndarray  # (n_graphs, n_endpoints) whether they are in the domain

    @classmethod
    def of(cls, found: PanelPredictions, domain: PanelDomain, n_jobs: int = 1) -> Surroundings:
        """Return them for predictions with variances."""
        around = domain.around(found.graphs.patterns.features, n_jobs)
        std = learned_deviations(found)
        columns = [expected_error(std[:, k], own) for k, own in enumerate(around)]
        triples = zip(domain.endpoints, columns, around, strict=True)
        inside = [own.holds(expected, near) for own, expected, near in triples]
        return cls(around, np.stack(columns, axis=1), np.stack(inside, axis=1))


def panel_table(
    model: FittedPanel,
    found: PanelPredictions,
    near: Surroundings,
    measured: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return predictions with variances as a table.

    ``measured`` (n_graphs, n_endpoints) are known cells, on the scales that are learned.
    """
    std = learned_deviations(found)
    columns: dict[str, Any] = {}
    for k, endpoint in enumerate(model.endpoints):
        own = _endpoint_values(endpoint, found.mean[:, k], std[:, k])
        expected = near.expected[:, k]
        own["in_domain"] = near.inside[:, k]
        suffix, scale = _suffix(endpoint), endpoint.record.scale
        if scale is not None and not suffix:
            expected = scale.inverse_std(found.mean[:, k], expected)
        own["expected_error" + suffix] = expected
        if measured is not None:
            shown = values_of(model, measured)[:, k].astype(object)
            shown[np.isnan(measured[:, k])] = np.nan
            own["measured"] = shown if endpoint.classes is not None else shown.astype(float)
        columns |= {f"{endpoint.name}_{name}": values for name, values in own.items()}
    columns |= zip(COMMON_COLUMNS, _nearest(near.around), strict=False)
    columns["out_of_vocabulary"] = found.out_of_vocabulary
    return pd.DataFrame(columns)[panel_columns(model, measured is not None)]


def _endpoint_values(
    endpoint: PanelEndpoint, mean: np.ndarray, std: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns of predictions of one endpoint."""
    if endpoint.classes is not None:
        chances, codes = endpoint.probabilities(mean), endpoint.codes(mean)
        of_each = zip(endpoint.classes.tolist(), chances.T, strict=True)
        return {
            "class": endpoint.classes[codes],
            "probability": chances[np.arange(len(codes)), codes],
            "decision": mean,
            **{f"probability_{label}": own for label, own in of_each},
        }
    scale, suffix = endpoint.record.scale, _suffix(endpoint)
    found = number_columns(mean, std, scale)
    return found | {
        "std" + suffix: std if suffix or scale is None else scale.inverse_std(mean, std)
    }


def _nearest(around: list[Neighbourhood]) -> tuple[np.ndarray, np.ndarray]:
    """Return the similarity to the nearest training graph, measured in any endpoint, and which."""
    alike = np.stack([own.similarity for own in around])
    best = (alike.argmax(axis=0), np.arange(alike.shape[1]))
    return alike[best], np.stack([own.nearest for own in around])[best]
