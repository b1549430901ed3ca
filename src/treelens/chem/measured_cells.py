"""Cells of a new table that a model of several endpoints may fill in others with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.parsing import molar_mass, smiles_parser
from treelens.chem.units import factors_to_unit
from treelens.estimators.panel_columns import panel_file_names
from treelens.estimators.profile import Profile
from treelens.gp.panel_model import FittedPanel, PanelEndpoint
from treelens.graphs.target_columns import read_target

if TYPE_CHECKING:
    from treelens.estimators.panel_fitting import PanelEstimator


def panel_file_columns(
    model: PanelEstimator,
    table: MoleculeTable,
    ignore_measured: bool,
    notes: list[str],
    profile: Profile | None = None,
) -> dict[str, Any]:
    """Return the columns of files for the graphs of a table, with what was measured of them."""
    names, fitted = panel_file_names(model.model_), model.model_
    names = [*([] if profile is None else profile.names()), *names]
    if not len(table.graphs):
        return {name: np.empty(0) for name in names}
    known = measured_cells(fitted, table, notes)
    given = None if ignore_measured else known
    found = model._panel_predictions(table.graphs, given, profile=profile).reset_index(drop=True)
    for end in fitted.endpoints:
        found[f"{end.name}_measured"] = known[end.name].to_numpy()
        if end.classes is not None:
            found[f"{end.name}_class"] = found[f"{end.name}_class"].astype(str).astype(object)
    if "nearest_name" in names:
        found["nearest_name"] = [fitted.training.called(int(k)) for k in found["nearest"]]
    return {name: found[name].to_numpy() for name in names}


def measured_cells(model: FittedPanel, table: MoleculeTable, notes: list[str]) -> pd.DataFrame:
    """Return what a table has of the endpoints of a model, in their units; NaN where nothing."""
    empty = np.full(len(table.graphs), np.nan)
    columns = {
        end.name: empty.astype(object if end.classes is not None else float)
        for end in model.endpoints
    }
    if table.table is not None:
        for end in model.endpoints:
            if table.table.columns.count(end.name) == 1:
                _read_cells(end, table, columns[end.name], notes)
    return pd.DataFrame(columns)


def _read_cells(
    end: PanelEndpoint, table: MoleculeTable, column: np.ndarray, notes: list[str]
) -> None:
    """Read the cells of one endpoint into a column; limits are no measurements to fill in with."""
    text, own_notes = table.table, list[str]()
    assert text is not None
    task = "regression" if end.classes is None else "classification"
    y, has, limits = read_target(text, end.name, table.rows, task, own_notes)
    places = np.flatnonzero(has)
    if limits is not None:
        notes.append(
            f"column {end.name!r} has limits in {int((limits != 0).sum())} rows: these are not "
            "used to predict other columns, nor scored."
        )
        y, places = y[limits == 0], places[limits == 0]
    if end.classes is not None:
        column[places] = y.tolist()
        return
    numbers = pd.to_numeric(pd.Series(y), errors="coerce").to_numpy(dtype=np.float64)
    known = np.isfinite(numbers)
    if not known.all():
        first = int(np.argmin(known))
        place = table.place(int(places[first]))
        notes.append(
            f"column {end.name!r} holds no number in {int((~known).sum())} rows, such as {place} "
            f"({str(y[first])!r:.40}): these count as not measured."
        )
    places = places[known]
    column[places] = _in_unit(end, table, places, numbers[known], notes)


def _in_unit(
    end: PanelEndpoint,
    table: MoleculeTable,
    places: np.ndarray,
    numbers: np.ndarray,
    notes: list[str],
) -> np.ndarray:
    """Return numbers in the unit of the endpoint; NaN where they cannot be converted."""
    text = table.table
    if end.record.unit is None or text is None or not len(numbers):
        return numbers
    rows = table.rows[places]

    def mass(k: int) -> float:
        molecule = None if table.texts is None else smiles_parser()(table.texts[rows[k]])
        return np.nan if molecule is None else molar_mass(molecule)

    _, factors = factors_to_unit(text, end.name, rows, end.record.unit, None, mass, [])
    if factors is None:
        return numbers
    if n := int((~np.isfinite(factors)).sum()):
        notes.append(
            f"{n} rows of {end.name!r} cannot be converted to {end.record.unit}: not used."
        )
    return np.where(np.isfinite(factors), numbers * factors, np.nan)
