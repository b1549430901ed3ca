"""Predictions of all rows of a table of molecules, by one model or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from treelens.array_checks import Columns
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.molecules import made_smiles
from treelens.chem.parsing import (
    MAX_ATOMS,
    in_fragments,
    molar_mass,
    quiet,
    rdkit,
    reasons,
    smiles_parser,
)
from treelens.chem.recipe import MoleculeRecipe, recipe_for_molecules
from treelens.chem.sdf import smiles_column
from treelens.chem.table_reader import (
    READ_LARGEST,
    READ_WHOLE,
    about_fragments,
    covariate_names,
    rows_of_table,
)
from treelens.chem.units import factors_to_unit
from treelens.estimators.prediction_table import (
    file_columns,
    learned_scale,
    nearest_columns,
    prediction_columns,
    text_columns,
)
from treelens.estimators.predictor import load_predictor
from treelens.estimators.profile import IN_PROFILE, Profile
from treelens.evaluation.metrics import class_scores, codes_among, number_scores
from treelens.gp.keyed_rows import with_rows
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import noun_of
from treelens.graphs.tables import Table
from treelens.graphs.target_columns import as_numbers, read_target
from treelens.storage.files import harmless
from treelens.targets import objects, positive_code

if TYPE_CHECKING:
    from treelens.estimators.predictor import TablePredictor


Truth: TypeAlias = tuple[np.ndarray, np.ndarray]  # rows that are known, and their values
Scored: TypeAlias = tuple[Columns, np.ndarray, np.ndarray]  # predicted, measured, and their rows


class NamedModel(NamedTuple):
    """A model, and what its columns are called by."""

    path: Path
    model: Any
    name: str  # its target; where that is not known, its file
    prefix: str  # before the names of its columns; empty where there is one model
    tables: Any = None  # rows for the ids of new molecules, where the model has tables
    profile: Profile | None = None  # what is wanted of new molecules

    @property
    def record(self) -> Any:
        """The record of the table that it was fitted to, or None."""
        return getattr(self.model.recipe_, "table", None)

    @property
    def columns(self) -> list[str]:
        """Its columns of files, without the prefix."""
        return [*([] if self.profile is None else self.profile.names()), *file_columns(self.model)]


def name_models(paths: Sequence[Path], models: Sequence[Any]) -> list[NamedModel]:
    """Return models with names, or raise where they cannot stand side by side."""
    named: dict[str, NamedModel] = {}
    molecular: dict[bool, Path] = {}
    for path, model in zip(paths, models, strict=True):
        each = NamedModel(path, model, path.stem, "")
        name = model.model_.training.record.name or path.stem
        if name in named:
            raise ValueError(f"{named[name].path} and {path} both predict {name!r}: use one.")
        named[name] = each._replace(name=name, prefix=f"{name}_" if len(paths) > 1 else "")
        molecular[noun_of(model.recipe_) == "molecules" or model.recipe_ is None] = path
    if len(molecular) > 1:
        raise ValueError(
            f"{molecular[True]} was fitted to molecules, {molecular[False]} to other graphs: use "
            "one after the other."
        )
    return list(named.values())


def with_profile(models: Sequence[NamedModel], path: Path) -> list[NamedModel]:
    """Return the only model with the profile in a file, or raise where it does not fit."""
    if len(models) > 1:
        raise ValueError(
            f"--profile {path} is for one MODEL, of one or several targets: fit the targets "
            "together for the probability of all conditions."
        )
    profile = Profile.read(path)
    profile.check(models[0].model.model_)
    return [models[0]._replace(profile=profile)]


def named_predictors(paths: Sequence[Path], n_jobs: int) -> list[NamedModel]:
    """Return what predicts of files, without the estimators where these are not needed."""
    return name_models(paths, [load_predictor(path, n_jobs) for path in paths])


class PredictedRows(NamedTuple):
    """Predictions of the rows of a table, and notes."""

    columns: Columns
    notes: list[str]


def predict_molecules(
    models: Sequence[NamedModel],
    table: Table,
    molecules: Sequence[Any] | None = None,
    smiles: str | None = None,
    ids: str | None = None,
    max_atoms: int = MAX_ATOMS,
    ignore_measured: bool = False,
) -> PredictedRows:
    """Predict the rows of a table as each model reads them; equal recipes share the molecules.

    Columns of the table that are endpoints of a model of several fill in the others, unless
    ``ignore_measured``.
    """
    beside = dict.fromkeys(n for each in models for n in covariate_names((), None, each.model))
    records = _common_records(models, smiles, table.columns)
    made: dict[MoleculeRecipe, MoleculeTable] = {}
    readings = []
    with quiet():
        for each, record in zip(models, records, strict=True):
            reader = "smiles" if molecules is None else "sdf"
            recipe = recipe_for_molecules(each.model.recipe_, reader)
            recipe = replace(recipe, max_atoms=max_atoms)
            if recipe not in made:
                own = molecules
                if own is not None and not recipe.hydrogens:  # another model may need them
                    own = [None if m is None else rdkit().RemoveHs(m) for m in own]
                made[recipe] = rows_of_table(table, own, recipe, smiles, ids, list(beside), record)
            readings.append(made[recipe])
        notes: list[str] = []
        columns = predict_rows(models, readings, ignore_measured, notes)
    notes = [note for read in made.values() for note in read.notes] + notes
    return PredictedRows(columns, notes)


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
    return [
        None if each.record is None else replace(each.record, smiles=column, ids=ids)
        for each in models
    ]


def predict_rows(
    models: Sequence[NamedModel],
    tables: Sequence[MoleculeTable],
    ignore_measured: bool = False,
    notes: list[str] | None = None,
) -> Columns:
    """Return predictions of all rows, as each model reads them; empty with a ``problem``."""
    first, notes = tables[0], [] if notes is None else notes
    same_recipe = len({table.graphs.recipe for table in tables}) == 1
    body = _by_row(made_smiles(first.graphs), first) if same_recipe else Columns()
    for each, table in zip(models, tables, strict=True):
        if each.tables is not None:
            joined = with_rows(table.graphs, each.tables, each.model.model_.keyed_tables)
            table = replace(table, graphs=joined)
        columns = {} if same_recipe else made_smiles(table.graphs)
        if each.model.model_.endpoint_names:
            from treelens.chem.measured_cells import panel_file_columns  # few models have several

            given = ignore_measured, notes, each.profile
            columns |= panel_file_columns(each.model, table, *given)
        else:
            columns |= _columns_in_files(each, table.graphs)
        own = _by_row(columns, table)
        body |= {each.prefix + name: values for name, values in own.items()}
    start = 1 if first.table is None else 1 + first.table.first_row
    left = Columns(row=np.arange(start, start + first.n_rows))
    taken = {"row", "smiles", "problem", *body}  # a table may use these names itself
    left |= {f"{n} (given)" if n in taken else n: objects(x) for n, x in first.ids.items()}
    if first.texts is not None:
        left["smiles"] = objects(first.texts)
    problem = np.full(first.n_rows, "", dtype=object)
    unreadable = sorted({row for table in tables for row in table.unreadable.tolist()})
    known = {row: why for table in tables for row, why in table.why.items()}
    for row, why in reasons(first.texts, unreadable, known).items():
        problem[row] = why
    return Columns({**left, **body, "problem": problem})


def _columns_in_files(each: NamedModel, graphs: GraphCollection) -> dict[str, Any]:
    model, columns = each.model, each.columns
    if not len(graphs):
        return {name: np.empty(0) for name in columns}
    table = prediction_columns(model, graphs, profile=each.profile)
    if "nearest_name" in columns:
        nearest = table["nearest"]
        table["nearest_name"] = objects(map(model.model_.training.called, nearest.tolist()))
        table |= nearest_columns(model, nearest)
    for name in {"class", "nearest_class"} & set(table):
        table[name] = objects(map(str, table[name].tolist()))
    return {name: table[name] for name in columns}


def _by_row(columns: dict[str, Any], table: MoleculeTable) -> Columns:
    """Columns about graphs, with an empty line for each row that could not be read."""
    found = Columns()
    for name, given in columns.items():
        values = given if isinstance(given, np.ndarray) else objects(given)
        if len(table.rows) < table.n_rows:
            kind = float if values.dtype.kind in "fiu" and len(values) else object
            found[name] = np.full(table.n_rows, np.nan, dtype=kind)
            found[name][table.rows] = values
        else:
            found[name] = values
    return found


def summarize_rows(each: NamedModel, rows: Columns, truth: Truth | None = None) -> dict[str, Any]:
    """Return what was predicted, and scores where the truth (rows, values) is known."""
    found = _summary(each.model, rows, truth)
    if each.profile is not None:
        found["n_in_profile"] = int((rows[IN_PROFILE].astype(float) > 0.5).sum())
    return found


def _summary(model: TablePredictor, rows: Columns, truth: Truth | None) -> dict[str, Any]:
    if model.model_.endpoint_names:
        from treelens.estimators.panel_table import predicted_summary

        return predicted_summary(model, rows.frame())
    # Numbers are scored on the learned scale; recall and so on are of the positive class.
    readable = ~np.isnan(rows["out_of_vocabulary"].astype(float))
    found = Columns((name, values[readable]) for name, values in rows.items())
    unseen = found["out_of_vocabulary"].astype(float)
    summary: dict[str, Any] = {"mean_out_of_vocabulary": float(unseen.mean() if len(unseen) else 0)}
    if "in_domain" in found:
        summary["n_outside"] = int((found["in_domain"].astype(str) != "True").sum())
    scored = None
    if truth is not None and (kept := readable[truth[0]]).any():
        own = Columns((name, values[truth[0][kept]]) for name, values in rows.items())
        scored = own, np.asarray(truth[1])[kept], truth[0][kept]
    of = _number_summary if model.model_.classes is None else _class_summary
    return summary | of(model, found, scored)


def _class_summary(model: Any, found: Columns, truth: Scored | None) -> dict[str, Any]:
    known = model.model_.classes
    plain = {harmless(str(c)): str(c) for c in known.tolist()}  # as files have them

    def named(classes: np.ndarray) -> np.ndarray:
        return objects(plain.get(str(c), str(c)) for c in classes.tolist())

    classes, counts = np.unique(named(found["class"]), return_counts=True)
    sizes = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    if truth is None:
        return {"predicted": sizes, "accuracy": None}
    rows, y, _ = truth
    columns = [rows[f"probability_{c}"].astype(float) for c in known.tolist()]
    chances = np.stack(columns, axis=1)
    positive = positive_code(known)
    codes = codes_among(y, known)
    predicted = codes_among(named(rows["class"]), known)
    return {
        "predicted": sizes,
        **class_scores(codes, predicted, chances, positive),
        "positive": None if positive is None else str(known[positive]),
        "n_scored": len(y),
        "n_known_classes": int((codes >= 0).sum()),
    }


def _number_summary(model: TablePredictor, found: Columns, truth: Scored | None) -> dict[str, Any]:
    values = found["prediction"].astype(float)
    ends = [float(values.min()), float(values.max())] if len(values) else [None, None]
    summary: dict[str, Any] = {"predicted": {"smallest": ends[0], "largest": ends[1]}}
    if truth is None:
        return summary
    rows, y, places = truth
    scale, suffix = learned_scale(model)
    names = ("prediction", "std" + suffix, "lower_90", "upper_90")
    mean, std, lower, upper = (rows[name].astype(float) for name in names)
    scores: dict[str, Any] = number_scores(y, mean, std)
    if suffix and scale is not None:  # scored on the scale that was asked for
        y = scale.checked(y, lambda k: f"the value of row {int(places[k]) + 1}")
        scores = number_scores(y, scale.forward(rows["median"].astype(float)), std)
        summary["scale"] = scale.name
    elif scale is not None:  # intervals are no multiples of deviations, and densities not normal
        middle = number_scores(y, rows["median"].astype(float))
        within = float(np.mean((lower <= y) & (y <= upper)))
        scores |= {"mae": middle["mae"], "nlpd": None, "coverage": within}
    return {**summary, **scores, "n_scored": len(y)}


class SeenTable:
    """What is kept of a table that is read in chunks: its rows, for the truth, and its salts."""

    def __init__(
        self,
        source: str,
        models: Sequence[NamedModel],
        smiles: str | None,
        targets: Sequence[str | None],
    ) -> None:
        self.table = Table(source, [], [], None)
        self._models, self._smiles = models, smiles
        self._targets = [name for name in targets if name is not None]
        self._n_rows = self._n_salts = 0
        self._first_salt: int | None = None

    def add(self, chunk: Table, molecules: Sequence[Any] | None) -> None:
        """Take some rows, with the molecules of an SDF."""
        for name in self._targets:
            chunk.column(name, "target")  # raises where there is none, before the work
        if self._targets:
            self.table.columns[:] = chunk.columns
            self.table.rows.extend(chunk.rows)
        if molecules is None:
            records = (each.record for each in self._models)
            known = [r.smiles for r in records if r is not None and r.smiles in chunk.columns]
            column = smiles_column(chunk, self._smiles, next(iter(known), None), [])
            molecules = chunk.column(column, "smiles")
        self._n_rows += len(chunk.rows)
        salts = [chunk.first_row + k for k, x in enumerate(molecules) if in_fragments(x)]
        self._n_salts += len(salts)
        if self._first_salt is None and salts:
            self._first_salt = salts[0]

    def notes(self) -> list[str]:
        """Return that there are salts, and what the models read of them."""
        recipes = [each.model.recipe_ for each in self._models]
        largest = all(recipe is not None and "fragment" in recipe.standardize for recipe in recipes)
        how_read = READ_LARGEST if largest else READ_WHOLE
        return about_fragments(self._n_salts, self._first_salt, self._n_rows, how_read)


def _columns_without_names(models: Sequence[NamedModel]) -> list[str]:
    return ["problem", *(each.prefix + n for each in models for n in each.columns)]


def without_names(models: Sequence[NamedModel], rows: Columns) -> Columns:
    """Return predictions without the columns that name the rows."""
    return Columns((name, rows[name]) for name in _columns_without_names(models))


def numeric_columns(models: Sequence[NamedModel]) -> set[str]:
    """Return the columns of files that hold numbers."""
    texts = {each.prefix + name for each in models for name in text_columns(each.model)}
    found = set(_columns_without_names(models)) - texts - {"problem"}
    return {name for name in found if not name.endswith("in_domain")}


def read_predictions(models: Sequence[NamedModel], path: Path) -> Columns:
    """Return the predictions in a file, without the columns that name the rows."""
    known = {harmless(name): name for name in _columns_without_names(models)}
    text = {harmless(e.prefix + name): str for e in models for name in text_columns(e.model)}
    import pandas as pd  # of long tables only

    found = pd.read_csv(
        path,
        dtype=text | {"problem": str},
        usecols=list(known),
        keep_default_na=False,
        na_values=[""],
    )
    return Columns((known[str(name)], column.to_numpy()) for name, column in found.items())


def read_truth(
    named: NamedModel, table: Table, column: str, smiles: str | None, notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a measured value or class, and these, in the unit of the model."""
    classes = named.model.model_.classes is not None
    every = np.arange(len(table.rows))
    task = "classification" if classes else "regression"
    y, labelled, limits = read_target(table, column, every, task, notes)
    rows = np.flatnonzero(labelled)
    n_without = len(every) - len(rows)
    if limits is not None:  # the last note says that limits are learned from
        notes[-1] = f"{int((limits != 0).sum())} rows have limits: predicted, not scored."
        rows, y = rows[limits == 0], y[limits == 0]
    if n_without:
        several = "s" if n_without > 1 else ""
        notes.append(f"{n_without} row{several} without {column!r}: predicted, not scored.")
    if classes:
        return rows, y
    y = as_numbers(y, column, lambda k: table.place(int(rows[k])), learn=False)
    return _in_unit_of(named, table, column, rows, y, smiles, notes)


def _in_unit_of(
    named: NamedModel,
    table: Table,
    column: str,
    rows: np.ndarray,
    y: np.ndarray,
    smiles: str | None,
    notes: list[str],
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and values in the unit of a model, without those that cannot be converted."""
    unit = named.model.model_.training.record.unit
    if unit is None:
        return rows, y

    def mass(k: int) -> float:
        known = None if named.record is None else named.record.smiles
        texts = table.column(smiles_column(table, smiles, known, []), "smiles")
        molecule = smiles_parser()(texts[rows[k]])
        return np.nan if molecule is None else molar_mass(molecule)

    _, factors = factors_to_unit(table, column, rows, unit, None, mass, notes)
    if factors is None:
        return rows, y
    clear = np.isfinite(factors)
    if not clear.all():
        notes.append(f"{(~clear).sum()} rows cannot be converted to {unit}: predicted, not scored.")
    return rows[clear], (y * factors)[clear]
