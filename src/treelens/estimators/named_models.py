"""Several models side by side: one table of predictions for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.estimators.prediction_table import predict_rows
from treelens.graphs.chem import quiet, rdkit
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.table_reader import covariate_names, rows_of_table

if TYPE_CHECKING:
    import pandas as pd

    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.tables import Table


class NamedModel(NamedTuple):
    """A model, and what its columns are called by."""

    path: Path
    model: Any
    name: str  # its target; where that is not known, its file
    prefix: str  # before the names of its columns; empty where there is one model

    @property
    def record(self) -> Any:
        """The record of the table that it was fitted to, or None."""
        return None if self.model.recipe_ is None else self.model.recipe_.table


def name_models(paths: Sequence[Path], models: Sequence[Any]) -> list[NamedModel]:
    """Return models with names, or raise where they cannot stand side by side."""
    named: list[NamedModel] = []
    for path, model in zip(paths, models, strict=True):
        each = NamedModel(path, model, path.stem, "")
        name = path.stem if each.record is None else each.record.target or path.stem
        named.append(each._replace(name=name, prefix=f"{name}_" if len(paths) > 1 else ""))
    seen: dict[str, NamedModel] = {}
    for each in named:
        if (other := seen.setdefault(each.name, each)) is not each:
            raise ValueError(
                f"{other.path} and {each.path} both predict {each.name!r}. Use one model for each "
                "target."
            )
    kinds = {each.model.recipe_ is None or each.model.recipe_.is_molecular: each.path
             for each in named}  # fmt: skip
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[True]} was fitted to molecules, {kinds[False]} to other graphs: use one after "
            "the other."
        )
    return named


class PredictedRows(NamedTuple):
    """Predictions of the rows of a table, and notes."""

    frame: pd.DataFrame
    notes: list[str]


def predict_molecules(
    models: Sequence[NamedModel],
    table: Table,
    molecules: Sequence[Any] | None = None,
    smiles: str | None = None,
    ids: str | None = None,
) -> PredictedRows:
    """Predict the rows of a table as each model reads them; equal recipes share the molecules."""
    beside = dict.fromkeys(n for each in models for n in covariate_names((), None, each.model))
    records = _common_records(models, smiles, table.columns)
    made: dict[GraphRecipe, MoleculeTable] = {}
    readings = []
    with quiet():
        for each, record in zip(models, records, strict=True):
            known = each.model.recipe_ or GraphRecipe()
            recipe = known.for_new_molecules("smiles" if molecules is None else "sdf")
            if recipe not in made:
                own = molecules
                if own is not None and not recipe.hydrogens:  # another model may need them
                    own = [None if m is None else rdkit().RemoveHs(m) for m in own]
                made[recipe] = rows_of_table(
                    table, own, recipe, smiles, ids, list(beside), record, may_be_empty=True
                )
            readings.append(made[recipe])
        frame = predict_rows([each.model for each in models], readings,
                             [each.prefix for each in models])  # fmt: skip
    return PredictedRows(frame, [note for read in made.values() for note in read.notes])


def _common_records(
    models: Sequence[NamedModel], smiles: str | None, columns: Sequence[str]
) -> list[Any]:
    """The records of the models, with one column of SMILES and the same ids."""
    known = [each for each in models if each.record is not None]
    if len(models) == 1 or not known:
        return [each.record for each in models]
    found = {each.record.smiles: each for each in known if each.record.smiles in columns}
    if len(found) > 1 and smiles is None:
        (one, first), (other, second), *_ = found.items()
        raise ValueError(
            f"{first.path} was fitted to the SMILES of column {one!r}, {second.path} to those of "
            f"{other!r}, and the table has both: name the one to read with smiles=COLUMN."
        )
    ids = tuple(dict.fromkeys(name for each in known for name in each.record.ids))
    column = next(iter(found), None)
    return [None if each.record is None else replace(each.record, smiles=column, ids=ids)
            for each in models]  # fmt: skip
