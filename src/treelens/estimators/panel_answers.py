"""What a fitted panel says, in the units of its endpoints: predictions, scores and tables."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import scipy

from treelens.array_checks import is_frame
from treelens.errors import GraphDataError
from treelens.evaluation.metrics import CLASS_SCORES, class_scores, number_scores
from treelens.explain.scene import diverging_rgb, ink_on, to_hex
from treelens.gp.panel import CellTable
from treelens.gp.panel_model import FittedPanel, PanelEndpoint, PanelPredictions
from treelens.gp.panel_sharing import errors_taken_off
from treelens.maps import TargetMap
from treelens.models.predictions import warn_if_slope_at_bound
from treelens.targets import TargetRecord, Targets, as_number, objects, positive_code

Choose = Callable[[Targets, np.ndarray], "TargetMap | None"]
_NUMBER_SCORES = ("rmse", "mae", "r2", "coverage")
_KINDS = ("single", "new", "gap")
_CLASS_SCORES = ("roc_auc", "pr_auc", "mcc", "accuracy")


# --- what a panel is given ------------------------------------------------------------------------


def endpoints_to_learn(
    y: Targets, kind: str | None = None, choose: Choose = lambda y, positions: None
) -> tuple[tuple[PanelEndpoint, ...], CellTable]:
    """Return the endpoints of targets, and what is learned of them.

    ``kind`` is ``"numbers"`` or ``"classes"`` where all endpoints are to be of one; else each is
    what its column holds. Classes are -1 and 1, gaps are NaN. ``choose`` returns the scale of
    numbers, from the targets and the positions of their graphs, where none is asked for.
    """
    has, endpoints = y.measured, []
    found = CellTable.plain(np.full(has.shape, np.nan))
    exact = has & y.exact
    for k, each in enumerate(y.columns or ()):
        n = int(exact[:, k].sum())
        if n < 2:
            limits = "" if has[:, k].sum() == n else " besides limits"
            raise GraphDataError(
                f"The endpoint {each.name!r} has {n} values{limits}; 2 are needed."
            )
        if kind == "numbers" and each.has_classes:
            first = y.values[has[:, k], k][0]
            raise GraphDataError(
                f"The endpoint {each.name!r} holds classes, such as {first!r:.40}: learn classes "
                "with GraphClassifier, or both kinds together with GraphPanel."
            )
        given, classes = y.values[has[:, k], k].tolist(), None
        record = TargetRecord(each.name, each.unit)
        if kind == "classes" or (kind is None and each.has_classes):
            classes = _two_classes(given, each.name)
        else:
            numbers = y.endpoint(k)
            scale = choose(numbers, np.flatnonzero(has[:, k])) if each.transform is None else None
            record = (numbers if scale is None else numbers.on_scale(scale)).record
        endpoint = PanelEndpoint(record, 0.0, 1.0, classes)
        endpoints.append(endpoint)
        found.values[:, k] = learned_cells(endpoint, y.values[:, k], has[:, k])
        _fill_in(found, k, y.endpoint(k), has[:, k], endpoint.record.scale)
    return tuple(endpoints), found


def _fill_in(
    table: CellTable, column: int, y: Targets, has: np.ndarray, scale: TargetMap | None
) -> None:
    """Fill in limits, weights and known noise of one endpoint, measured of the graphs of a mask."""
    if y.limits is not None:
        table.limits[has, column] = y.limits
    if y.sample_weight is not None:
        table.factors[has, column] = 1.0 / y.weights()
    if y.noise is not None:
        known = y if scale is None else y.on_scale(scale)
        std = known.learned_noise()
        assert std is not None
        table.known[has, column] = std**2


def _two_classes(labels: list[Any], name: str) -> np.ndarray:
    try:
        classes, _ = Targets(_plain(labels)).classes()
    except GraphDataError as error:
        raise GraphDataError(f"The endpoint {name!r}: {error}") from error
    if len(classes) != 2:
        shown = ", ".join(map(str, classes.tolist()[:4]))
        raise GraphDataError(
            f"The endpoint {name!r} has {len(classes)} classes ({shown}, ...), and endpoints of a "
            "panel have two: learn it by itself, or one class against the others."
        )
    return classes


def _plain(labels: list[Any]) -> list[Any]:
    """Return labels with whole numbers that gaps have made floats as whole numbers again."""
    whole = all(isinstance(x, float) and x == round(x) for x in labels)
    return [int(x) for x in labels] if whole else labels


def learned_cells(endpoint: PanelEndpoint, column: np.ndarray, has: np.ndarray) -> np.ndarray:
    """Return the cells of an endpoint as they are learned, NaN in gaps: (n_graphs,)."""
    found, name = np.full(len(column), np.nan), endpoint.name
    given = column[has].tolist()
    if endpoint.classes is not None:
        if not given:
            return found
        try:
            codes = Targets(_plain(given)).codes_among(endpoint.classes)
        except GraphDataError as error:
            raise GraphDataError(f"The endpoint {name!r}: {error}") from error
        found[has] = np.where(codes == 1, 1.0, -1.0)
        return found
    numbers = np.array([as_number(x) for x in given])
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        place = int(np.flatnonzero(has)[wrong[0]])
        raise GraphDataError(
            f"The endpoint {name!r} is one of numbers, and y holds {given[wrong[0]]!r:.40} at "
            f"position {place}: correct it, or leave it empty."
        )
    known = Targets(numbers)
    places = np.flatnonzero(has)
    scale = endpoint.record.scale
    if scale is not None:
        scale.checked(numbers, lambda k: f"{name!r} of graph {places[k]}")
    found[has] = known.numbers_on(scale)
    return found


def cells_for(model: FittedPanel, y: object, n_graphs: int) -> np.ndarray:
    """Return values of endpoints of new graphs as the model learned its own, NaN in gaps.

    Columns of a DataFrame, and endpoints of targets, are found by their names. Limits are gaps: no
    values to score with, or to know other endpoints by.
    """
    names = model.endpoint_names
    if isinstance(y, Targets) and y.endpoints is not None:
        y = pd.DataFrame(np.where(y.exact, y.values, np.nan), columns=list(y.endpoints))
    if is_frame(y):
        unknown = [str(name) for name in y.columns if str(name) not in names]
        if unknown:
            raise GraphDataError(
                f"{unknown[0]!r} is none of the endpoints of this model, {', '.join(names)}: leave "
                "the column out."
            )
        y = y.rename(columns=str).reindex(columns=list(names))
    targets = Targets.of(y, n_graphs, several=True)
    if targets.endpoints is None or len(targets.endpoints) != len(names):
        raise GraphDataError(f"Give one column for each endpoint: {', '.join(names)}.")
    has = targets.measured
    columns = [
        learned_cells(endpoint, targets.values[:, k], has[:, k])
        for k, endpoint in enumerate(model.endpoints)
    ]
    return np.stack(columns, axis=1)


# --- predictions ----------------------------------------------------------------------------------


def values_of(model: FittedPanel, mean: np.ndarray, std: np.ndarray | None = None) -> np.ndarray:
    """Return numbers in their units and classes, from what is learned: (n_graphs, n_endpoints).

    With standard deviations, numbers are means in their units, else medians.
    """
    columns = []
    for k, endpoint in enumerate(model.endpoints):
        scale, own = endpoint.record.scale, mean[:, k]
        if endpoint.classes is not None:
            columns.append(endpoint.classes[endpoint.codes(own)])
        elif scale is None or std is None:
            columns.append(own if scale is None else scale.inverse(own))
        else:
            columns.append(scale.inverse_mean(own, std[:, k]))
    kinds = {column.dtype.kind for column in columns}
    if len(kinds) > 1:
        columns = [objects(column.tolist()) for column in columns]
    return np.stack(columns, axis=1)


def learned_deviations(found: PanelPredictions, include_noise: bool = True) -> np.ndarray:
    """Return standard deviations on the scales that are learned, (n_graphs, n_endpoints)."""
    assert found.covariance is not None
    assert found.variance is not None
    variance = np.diagonal(found.covariance, axis1=1, axis2=2)
    std: np.ndarray = np.sqrt(found.variance if include_noise else variance)
    return std


def intervals_of(model: FittedPanel, found: PanelPredictions, level: float) -> np.ndarray:
    """Return bounds of measurements in the units of the endpoints: (n_graphs, n_endpoints, 2)."""
    std = learned_deviations(found)
    width = scipy.special.ndtri(0.5 + 0.5 * level) * std
    bounds = np.stack([found.mean - width, found.mean + width], axis=2)
    for k, endpoint in enumerate(model.endpoints):
        if (scale := endpoint.record.scale) is not None:
            bounds[:, k] = scale.inverse(bounds[:, k])
    return bounds


def deviations_of(
    model: FittedPanel, found: PanelPredictions, include_noise: bool = True
) -> np.ndarray:
    """Return standard deviations in the units of the endpoints; of classes, of decision values."""
    std = learned_deviations(found, include_noise)
    for k, endpoint in enumerate(model.endpoints):
        if (scale := endpoint.record.scale) is not None:
            std[:, k] = scale.inverse_std(found.mean[:, k], std[:, k])
    return std


def covariance_of(
    model: FittedPanel, found: PanelPredictions, include_noise: bool = True
) -> np.ndarray:
    """Return covariances between endpoints on the scales that are learned."""
    assert found.covariance is not None
    covariance, own = found.covariance.copy(), np.arange(len(model.endpoints))
    if include_noise:
        covariance[:, own, own] = found.variance
    return covariance


def probabilities_of(model: FittedPanel, mean: np.ndarray) -> dict[str, np.ndarray]:
    """Return probabilities of both classes, (n_graphs, 2), by the name of the endpoint."""
    return {
        endpoint.name: endpoint.probabilities(mean[:, k])
        for k, endpoint in enumerate(model.endpoints)
        if endpoint.classes is not None
    }


# --- scores ---------------------------------------------------------------------------------------


def endpoint_scores(
    endpoint: PanelEndpoint, truth: np.ndarray, mean: np.ndarray, std: np.ndarray | None
) -> dict[str, Any]:
    """Return the scores of one endpoint where it is measured, as its record reports them.

    ``truth``, ``mean`` and ``std`` are on the scale that is learned.
    """
    known = ~np.isnan(truth)
    scores: dict[str, Any] = {"n": int(known.sum())}
    if not known.any():
        return scores
    truth, mean, std = truth[known], mean[known], None if std is None else std[known]
    if endpoint.classes is None:
        hidden = endpoint.record.hidden
        reported = truth if hidden is None else hidden.inverse(truth)
        return scores | number_scores(reported, mean, std, hidden)
    positive = positive_code(endpoint.classes)
    found = class_scores(
        (truth > 0).astype(int), endpoint.codes(mean), endpoint.probabilities(mean), positive
    )
    return scores | {name: found[name] for name in CLASS_SCORES}


def score_table(
    model: FittedPanel, truth: np.ndarray, mean: np.ndarray, std: np.ndarray | None
) -> pd.DataFrame:
    """Return scores with a row for each endpoint; what is not of its kind is NaN."""
    kinds = {endpoint.classes is None for endpoint in model.endpoints}
    names = (_NUMBER_SCORES if True in kinds else ()) + (_CLASS_SCORES if False in kinds else ())
    rows = []
    for k, endpoint in enumerate(model.endpoints):
        own = None if std is None else std[:, k]
        found = endpoint_scores(endpoint, truth[:, k], mean[:, k], own)
        rows.append({"n": found["n"], **{name: found.get(name) for name in names}})
    index = pd.Index(model.endpoint_names, name="endpoint")
    return pd.DataFrame(rows, index=index).astype({"n": int, **dict.fromkeys(names, float)})


def mean_score(model: FittedPanel, table: pd.DataFrame) -> float:
    """Return the mean over endpoints of R2, or of the accuracy where they have classes.

    Endpoints without a score, such as those that were not measured, are left out.
    """
    rows = zip(model.endpoints, table.to_dict("records"), strict=True)
    found = [row["r2" if endpoint.classes is None else "accuracy"] for endpoint, row in rows]
    known = [score for score in found if not np.isnan(score)]
    if not known:
        raise GraphDataError("y holds too few values of any endpoint to score predictions with.")
    return float(np.mean(known))


def left_out_table(model: FittedPanel) -> pd.DataFrame:
    """Return scores by leave-one-out, of new molecules, of gaps and of single models."""
    left_out, table = model.record.left_out, model.measured
    found = {
        "new": score_table(model, table, left_out.new, left_out.new_std),
        "gap": score_table(model, table, left_out.gap, left_out.gap_std),
        "single": score_table(model, table, left_out.single, None),
    }
    return pd.concat(found, names=["kind", "endpoint"])


def warn_of_slopes(model: FittedPanel) -> None:
    """Warn where left-out decision values of an endpoint make no good probabilities."""
    for endpoint in model.endpoints:
        if endpoint.slope is not None:
            warn_if_slope_at_bound(endpoint.slope)


def panel_html(model: FittedPanel, name: str) -> str:
    """Return a fitted panel as HTML: scores left out, correlations and a warning; escaped."""
    n_graphs, n_cells = len(model.training.targets), int((~np.isnan(model.training.targets)).sum())
    lines = [f"{name}: {len(model.endpoints)} endpoints, {n_cells:,} cells of {n_graphs:,} graphs"]
    if not model.record.converged:
        lines.append("⚠ The search for what endpoints share did not converge.")
    scores = left_out_table(model).loc["new"].assign(alone=model.shares_alone)
    parts = [f"<p>{escape(line)}</p>" for line in lines]
    parts += ["<p>Left out with their graphs</p>"]
    parts += [scores.to_html(float_format="{:.3g}".format, na_rep="")]
    parts += ["<p>Correlations</p>", heat_html(correlation_table(model))]
    return f'<div class="treelens-model">{"".join(parts)}</div>'


def heat_html(table: pd.DataFrame) -> str:
    """Return numbers from -1 to 1 as an HTML table of coloured cells; names are escaped."""
    numbered = [f"{k} {escape(str(name))}" for k, name in enumerate(table.index, start=1)]
    head = "".join(f"<th>{k}</th>" for k in range(1, len(table.columns) + 1))
    rows = []
    for name, values in zip(numbered, table.to_numpy(), strict=True):
        cells = []
        for value in values.tolist():
            color = diverging_rgb(value, 1.0)
            style = f"background:{to_hex(color)};color:{ink_on(color)};text-align:center"
            cells.append(f'<td style="{style}">{value:+.2f}</td>')
        rows.append(f"<tr><th>{name}</th>{''.join(cells)}</tr>")
    body = f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<table>{body}</table>"


# --- what is shared -------------------------------------------------------------------------------


def correlation_table(model: FittedPanel) -> pd.DataFrame:
    """Return correlations of the endpoints, without noise."""
    names = list(model.endpoint_names)
    return pd.DataFrame(model.correlations, index=names, columns=names)


def help_table(model: FittedPanel, n_jobs: int = 1) -> pd.DataFrame | None:
    """Return by how much a measured endpoint (columns) lowers squared errors of others (rows)."""
    found = errors_taken_off(model, n_jobs)
    names = list(model.endpoint_names)
    return None if found is None else pd.DataFrame(found, index=names, columns=names)


def sharing_table(model: FittedPanel, helps: pd.DataFrame | None) -> pd.DataFrame:
    """Return what each endpoint gains from the others; ``helps`` is a :func:`help_table`."""
    scores = left_out_table(model)
    rows = []
    for endpoint, alone in zip(model.endpoints, model.shares_alone.tolist(), strict=True):
        name = "r2" if endpoint.classes is None else "roc_auc"
        by_kind = {kind: float(scores[name][kind][endpoint.name]) for kind in _KINDS}
        row: dict[str, Any] = {"n": int(scores["n"]["new"][endpoint.name]), "score": name}
        row |= {**by_kind, "gain": by_kind["new"] - by_kind["single"], "alone": alone}
        own = None if helps is None else helps.loc[endpoint.name].dropna()
        if own is not None and len(own):
            row |= {"helped_by": own.idxmax(), "error_taken_off": own.max()}
        rows.append(row)
    index = pd.Index(model.endpoint_names, name="endpoint")
    columns = ["n", "score", *_KINDS, "gain", "alone", "helped_by", "error_taken_off"]
    return pd.DataFrame(rows, index=index).reindex(columns=columns)


def share_table(model: FittedPanel) -> pd.DataFrame:
    """Return the share of each view in the variance of each endpoint."""
    parts, names = model.variances, list(model.endpoint_names)
    return pd.DataFrame(parts / parts.sum(axis=0), index=model.view_names, columns=names)


def noise_series(model: FittedPanel) -> pd.Series:
    """Return the standard deviation of a measurement of each endpoint."""
    return pd.Series(np.sqrt(model.noise), index=list(model.endpoint_names), name="noise")
