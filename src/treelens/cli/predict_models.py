"""One model or several on the same rows: their names, what they read, and what cannot be mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treelens.cli.console import InputError
from treelens.cli.covariates import needed_by
from treelens.cli.reading import Reading
from treelens.cli.transform import learned_scale

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.graphs.recipe import GraphRecipe
    from treelens.graphs.record import TableRecord


class NamedModel(NamedTuple):
    """A model, and what its columns are called by."""

    path: Path
    model: Any
    name: str  # its target; where that is not known, its file
    prefix: str  # before the names of its columns; empty where there is one model

    @property
    def record(self) -> TableRecord | None:
        """The table that it was fitted to."""
        return None if self.model.recipe_ is None else self.model.recipe_.table


@dataclass(frozen=True)
class AskedRows:
    """What the options of ``treelens predict`` say about the rows to read.

    Attributes
    ----------
    smiles, ids, atom_label : str or None
        As on the command line.
    hydrogens : bool or None
    """

    smiles: str | None = None
    ids: str | None = None
    atom_label: str | None = None
    hydrogens: bool | None = None


def load_models(paths: Sequence[Path], n_jobs: int) -> list[NamedModel]:
    """The models of files, in their order, or an error where they cannot stand side by side."""
    from treelens.cli.places import load_before_data

    models = []
    for path in paths:
        model = load_before_data(path)
        model.n_jobs = n_jobs
        named = NamedModel(path, model, path.stem, "")
        name = path.stem if named.record is None else named.record.target or path.stem
        models.append(named._replace(name=name, prefix=f"{name}_" if len(paths) > 1 else ""))
    _check_mixture(models)
    return models


def _check_mixture(models: Sequence[NamedModel]) -> None:
    seen: dict[str, NamedModel] = {}
    for each in models:
        other = seen.setdefault(each.name, each)
        if other is not each:
            raise InputError(
                f"{other.path} and {each.path} both predict {each.name!r}, so that their columns "
                "would have the same names. Give one model for each target."
            )
    of_molecules = {_reads_molecules(each): each for each in models}
    if len(of_molecules) > 1:
        raise InputError(
            f"{of_molecules[True].path} was fitted to molecules, {of_molecules[False].path} to "
            f"graphs that are none ({of_molecules[False].model.recipe_}): they cannot read the "
            "same data. Predict with one after the other."
        )


def _reads_molecules(each: NamedModel) -> bool:
    recipe = each.model.recipe_
    return recipe is None or recipe.is_molecular  # graphs of unknown making may be molecules


def targets_for(models: Sequence[NamedModel], asked: str | None) -> list[str | None]:
    """The column with the truth for each model: by the names of their targets, else in order."""
    if asked is None or len(models) == 1:
        return [asked] * len(models)
    columns = [name.strip() for name in asked.split(",") if name.strip()]
    names = [each.name for each in models]
    if set(columns) <= set(names):
        return [name if name in columns else None for name in names]
    if len(columns) != len(models):
        raise InputError(
            f"--target {asked}: these are {len(columns)} columns, and there are {len(models)} "
            f"models ({', '.join(names)}). Name a column for each, in the order of the models and "
            "with commas between, or some of the models' own targets."
        )
    return list(columns)


def readings_for(
    models: Sequence[NamedModel], asked: AskedRows, columns: Sequence[str]
) -> list[Reading]:
    """How each model reads molecules; all read the same column and name rows by the same ones."""
    recipes: list[GraphRecipe | None] = [each.model.recipe_ for each in models]
    records = [each.record for each in models]
    known = [record for record in records if record is not None]
    if len(models) > 1 and known:
        column = _common_column(models, asked, columns)
        ids = tuple(dict.fromkeys(name for record in known for name in record.ids))
        recipes = [
            recipe
            if recipe is None or record is None
            else replace(recipe, table=replace(record, smiles=column, ids=ids))
            for recipe, record in zip(recipes, records, strict=True)
        ]
    return [Reading(asked.atom_label, asked.hydrogens, recipe) for recipe in recipes]


def _common_column(
    models: Sequence[NamedModel], asked: AskedRows, columns: Sequence[str]
) -> str | None:
    """The one column with SMILES that models know and the table has."""
    found = {
        each.record.smiles: each
        for each in models
        if each.record is not None and each.record.smiles in columns
    }
    if len(found) > 1 and asked.smiles is None:
        (one, first), (other, second), *_ = found.items()
        raise InputError(
            f"{first.path} was fitted to the SMILES of column {one!r}, {second.path} to those of "
            f"{other!r}, and the table has both: say which one to read with --smiles COLUMN."
        )
    return next(iter(found), None)


def for_each_model(
    models: Sequence[NamedModel],
    readings: Sequence[Reading],
    read: Callable[[Reading], GraphData],
    targets: Sequence[str | None],
    note: Callable[[str], None],
) -> list[GraphData]:
    """Rows as each model wants them; molecules are made once for all models that read alike."""
    from sklearn.base import is_regressor

    from treelens.cli.covariates import with_columns
    from treelens.cli.data import with_targets

    made: dict[GraphRecipe, GraphData] = {}
    sets = []
    for each, reading, target in zip(models, readings, targets, strict=True):
        recipe = reading.recipe_for("smiles")
        if recipe not in made:
            made[recipe] = read(reading)
        data = with_columns(made[recipe], needed_by(each.model))
        task = None if reading.table is None else reading.table.task
        (data,) = with_targets(data, target, False, task, note, several=False)
        numbers = is_regressor(each.model)
        sets.append(data.with_numbers(learned_scale(each.model)) if numbers else data)
    return sets


def read_for_models(
    models: Sequence[NamedModel],
    source: str,
    target: str | None,
    asked: AskedRows,
    note: Callable[[str], None],
) -> list[GraphData]:
    """The rows behind a source for each model; the source is opened once."""
    from treelens.cli.data import read_rows
    from treelens.cli.molecules import MoleculeFile
    from treelens.cli.sources import kind_of

    kind = kind_of(source)
    opened = MoleculeFile(Path(source).expanduser()) if kind in ("table", "sdf") else None
    columns = opened.opened()[0].columns if opened is not None and kind == "table" else ()
    targets = targets_for(models, target)
    told: set[str] = set()

    def note_once(text: str) -> None:
        if text not in told:
            told.add(text)
            note(text)

    def read(reading: Reading) -> GraphData:
        return read_rows(source, target, asked.smiles, note_once, reading, asked.ids, opened)

    readings = readings_for(models, asked, columns)
    return for_each_model(models, readings, read, targets, note_once)
