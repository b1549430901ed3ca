"""Predictions of several endpoints as a table: for each its value, interval and domain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from treelens.estimators.panel_answers import (
    endpoint_scores,
    learned_cells,
    learned_deviations,
    values_of,
)
from treelens.estimators.panel_columns import COMMON_COLUMNS, panel_columns, scale_suffix
from treelens.estimators.prediction_table import number_columns
from treelens.evaluation.metrics import NINETY
from treelens.gp.panel_domain import PanelDomain
from treelens.gp.panel_model import FittedPanel, PanelEndpoint, PanelPredictions
from treelens.models.domain import Neighbourhood, expected_error


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
        suffix, scale = scale_suffix(endpoint), endpoint.record.scale
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
    scale, suffix = endpoint.record.scale, scale_suffix(endpoint)
    found = number_columns(mean, std, scale)
    return found | {
        "std" + suffix: std if suffix or scale is None else scale.inverse_std(mean, std)
    }


def _nearest(around: list[Neighbourhood]) -> tuple[np.ndarray, np.ndarray]:
    """Return the similarity to the nearest training graph, measured in any endpoint, and which."""
    alike = np.stack([own.similarity for own in around])
    best = (alike.argmax(axis=0), np.arange(alike.shape[1]))
    return alike[best], np.stack([own.nearest for own in around])[best]


def predicted_summary(model: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what was predicted of each endpoint, and scores where it was measured."""
    readable = rows["out_of_vocabulary"].notna().to_numpy()
    found = rows[readable]
    unseen = found["out_of_vocabulary"].astype(float)
    endpoints, outside = [], np.zeros(len(found), dtype=bool)
    for end in model.model_.endpoints:
        own = found.filter(like=f"{end.name}_").copy()
        own.columns = [name.removeprefix(f"{end.name}_") for name in own.columns]
        outside |= (own["in_domain"].astype(str) != "True").to_numpy()
        endpoints.append({"endpoint": end.name, **_predicted(end, own)})
        has = own["measured"].notna().to_numpy()
        truth = learned_cells(end, own["measured"].to_numpy(dtype=object), has)
        mean, std = _on_learned_scale(end, own)
        scores = endpoint_scores(end, truth, mean, std)
        endpoints[-1] |= {name: x for name, x in scores.items() if x is not None}
    return {
        "mean_out_of_vocabulary": float(unseen.mean() if len(found) else 0),
        "n_outside": int(outside.sum()),
        "endpoints": endpoints,
    }


def _predicted(end: PanelEndpoint, own: pd.DataFrame) -> dict[str, Any]:
    if end.classes is not None:
        classes, counts = np.unique(own["class"].astype(str), return_counts=True)
        return {"predicted": dict(zip(classes.tolist(), counts.tolist(), strict=True))}
    values = own["prediction"].astype(float)
    ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
    return {"predicted": dict(zip(("smallest", "largest"), ends, strict=True))}


def _on_learned_scale(
    end: PanelEndpoint, own: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray | None]:
    if end.classes is not None:
        return own["decision"].to_numpy(dtype=float), None
    names = ("median" if "median" in own else "prediction", "lower_90", "upper_90")
    found = [own[name].to_numpy(dtype=float) for name in names]
    if (scale := end.record.scale) is not None:
        found = [scale.forward(values) for values in found]
    return found[0], (found[2] - found[1]) / (2.0 * NINETY)
