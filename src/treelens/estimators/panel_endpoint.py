"""One endpoint of a fitted panel, with all that models of one endpoint explain and report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from treelens.estimators.base import FittedEstimator
from treelens.explain.effects import KnownInverses
from treelens.explain.fragments import FragmentTable
from treelens.graphs.collection import GraphCollection
from treelens.models.fitted import FittedModel


class EndpointOfPanel(FittedEstimator):
    """An endpoint of a fitted panel: predictions, explanations, fragments and a report.

    :meth:`GraphPanel.endpoint` returns it. It belongs to the panel, and is neither fitted nor saved
    by itself.

    Parameters
    ----------
    panel : GraphPanel, GraphRegressor or GraphClassifier
        Fitted to several endpoints.
    name : str
    """

    _kept: tuple[Any, FittedModel] | None = None  # the model of the panel, and that of the endpoint

    def __init__(self, panel: Any, name: str) -> None:
        self.panel = panel
        self.name = name

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.model_.classes is None else "classifier"
        return tags

    @property
    def model_(self) -> FittedModel:  # type: ignore[override]
        """The model of the endpoint."""
        whole = self.panel.model_
        if self._kept is None or self._kept[0] is not whole:
            self._kept = whole, whole.endpoint(self.name)
        return self._kept[1]

    @property
    def classes_(self) -> np.ndarray | None:
        """The two classes of the endpoint; None of numbers."""
        return self.model_.classes

    def _n_jobs(self) -> int:
        return int(self.panel._n_jobs())

    @property
    def _train_graphs(self) -> GraphCollection | None:
        """The training graphs with a value of this endpoint."""
        graphs = self.panel._train_graphs
        return None if graphs is None else graphs[self.model_.training_positions]

    def kept_fragments(self, known: KnownInverses) -> FragmentTable:
        """Return :attr:`fragments_`, which endpoints of a panel share inverses for."""
        if self._fragments is None and (graphs := self._train_graphs) is not None:
            targets = self.model_.training.reported
            self._fragments = self._fragment_table(graphs, targets, known=known)
        return self.fragments_

    def predict(self, X: object, *, measured: object = None, tables: object = None) -> np.ndarray:
        """Return values or classes of this endpoint, shape (n_graphs,).

        The parameters are those of :meth:`GraphPanel.predict`.
        """
        values: np.ndarray = self.panel.predict(X, measured=measured, tables=tables)
        found = values[:, self.panel.endpoints_.index(self.name)]
        return found.astype(float) if self.model_.classes is None else found

    def fit(self, X: object, y: object) -> Any:
        """Refuse: the endpoint is a part of its panel."""
        raise ValueError(f"{self.name!r} is an endpoint of a panel: fit the panel.")

    def save(self, path: str | Path, training_data: bool = True, variances: bool = False) -> None:
        """Refuse: the endpoint is a part of its panel."""
        raise ValueError(f"{self.name!r} is an endpoint of a panel: save the panel.")


def joined_fragments(tables: Mapping[str, FragmentTable]) -> FragmentTable:
    """Return the fragments of several endpoints as one table, with a column ``endpoint``.

    Attributes are dicts by endpoint; ``none`` says why there are no fragments of any.
    """
    found = [table.assign(endpoint=name) for name, table in tables.items() if len(table)]
    whole = FragmentTable(pd.concat(found or list(tables.values()), ignore_index=True))
    whole.index = pd.RangeIndex(1, len(whole) + 1, name="rank")
    if found:
        whole.insert(0, "endpoint", whole.pop("endpoint"))
    whole.attrs = {
        key: {name: table.attrs[key] for name, table in tables.items()}
        for key in ("size", "left_out", "toward")
    }
    reasons = [table.attrs["none"] for table in tables.values()]
    whole.attrs["none"] = None if found else f"Of no endpoint: {reasons[0]}"
    return whole
