"""New graphs, ranked by how probable it is that they meet a profile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from treelens.estimators.base import FittedEstimator
from treelens.estimators.panel_fitting import PanelEstimator
from treelens.estimators.prediction_table import prediction_table
from treelens.estimators.profile import IN_PROFILE, Profile
from treelens.graphs.collection import GraphCollection
from treelens.models.predictions import smiles_of


def profile_table(
    model: FittedEstimator,
    X: object,
    profile: Profile | dict[str, Any],
    *,
    measured: object = None,
    tables: object = None,
) -> pd.DataFrame:
    """Return predictions of graphs, ranked by the probability that they meet a profile.

    It is the probability that new measurements, with their noise, meet all conditions at once. The
    errors of different endpoints are correlated, as the model of several endpoints says, so that it
    is no product of the probabilities of each.

    Parameters
    ----------
    model : GraphPanel, GraphRegressor or GraphClassifier
        Of several endpoints or of one, whose name is that of ``y``, or ``"target"``.
    X : graphs
    profile : Profile or dict
    measured : DataFrame or array, optional
        Known cells of these graphs, as in :meth:`GraphPanel.predict`: a measured value meets its
        condition or does not, and the other endpoints are predicted with it.
    tables : optional
        As in ``predict`` of several endpoints.

    Returns
    -------
    DataFrame
        One row per graph, the most probable first: ``index``, the position in ``X``; ``name`` and
        ``smiles`` where known; ``probability_of_profile``; ``profile_share``, the share of the
        conditions that is expected to be met, by their weights; for each condition its probability,
        with the name of the endpoint and ``_in_profile``; then the columns of ``predict_table``.

    Examples
    --------
    >>> import treelens as tl
    >>> alcohols = ["C" * n + "O" for n in range(1, 10)]
    >>> model = tl.GraphRegressor(depth=1).fit(alcohols, [float(n) for n in range(1, 10)])
    >>> table = tl.profile_table(model, ["CO", "CCCCCCO"], {"target": "> 4"})
    >>> table["smiles"].tolist()
    ['CCCCCCO', 'CO']
    """
    wanted = Profile.of(profile)
    wanted.check(model._fitted_model)
    table = profile_rows(model, model._new_graphs(X), wanted, measured, tables)
    return table.sort_values(IN_PROFILE, ascending=False, kind="stable", ignore_index=True)


def profile_rows(
    model: FittedEstimator,
    graphs: GraphCollection,
    profile: Profile,
    measured: object,
    tables: object = None,
) -> pd.DataFrame:
    """Return the rows of :func:`profile_table` in the order of the graphs."""
    if isinstance(model, PanelEstimator) and model._is_panel:
        found = model._panel_predictions(graphs, measured, tables, profile)
    elif measured is not None or tables is not None:
        raise ValueError("measured= and tables= are for models of several endpoints.")
    else:
        found = prediction_table(model, graphs, profile=profile)
    known = {"index": np.arange(len(graphs)), "name": graphs.names, "smiles": smiles_of(graphs)}
    left = pd.DataFrame({name: x for name, x in known.items() if x is not None})
    return pd.concat([left, found.reset_index(drop=True)], axis=1)
