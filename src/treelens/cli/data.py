"""From what stands behind DATA on the command line to graphs and targets, with helpful errors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from treelens.cli.columns import target_column, target_columns, units_in
from treelens.cli.console import InputError, counted
from treelens.cli.covariates import refuse_the_answer, table_columns, with_columns
from treelens.cli.graph_data import GraphData, Note
from treelens.cli.molecules import MoleculeFile, reasons, tell_fragments, tell_warnings
from treelens.cli.options import ABOUT_MISSING, check_choice
from treelens.cli.reading import Reading
from treelens.cli.repeats import tell_shared_names, without_repeats
from treelens.cli.sources import files_behind, kind_of
from treelens.cli.target import (
    check_class_column,
    check_number_column,
    looks_measured,
    read_target,
)
from treelens.cli.transform import Transform, transform_named

__all__ = [
    "GraphData", "files_behind", "read_data", "read_rows", "read_training_data",
    "read_training_sets", "unreadable_rows", "with_targets",
]  # fmt: skip
_ROWS_IN_A_MESSAGE = 5
FEWEST_ROWS = 3  # below, no class can have two members beside another
_DECADES, _FEW_OF_ALL = 1000.0, 0.1


def _silent(text: str) -> None:
    """For those who do not want to be told."""


# --- to learn from ----------------------------------------------------------------------------


def read_training_data(
    source: str,
    target: str | None = None,
    smiles: str | None = None,
    max_invalid: float = 0.1,
    duplicates: str = "merge",
    note: Note = _silent,
    reading: Reading | None = None,
    task: str | None = None,
    **more: Any,
) -> GraphData:
    """Graphs with targets that can be learned from, or an error that says what to change.

    ``task`` is one of :data:`treelens.cli.options.TASKS`; None: only classes will do. ``more`` is
    for :func:`read_training_sets`.
    """
    sets = read_training_sets(
        source, target, smiles, max_invalid, duplicates, note, reading, task, **more
    )
    if len(sets) > 1:
        raise InputError(
            f"--target {target}: one column, please. Only 'treelens fit' takes several at a time."
        )
    return sets[0]


def read_training_sets(
    source: str,
    target: str | None = None,
    smiles: str | None = None,
    max_invalid: float = 0.1,
    duplicates: str = "merge",
    note: Note = _silent,
    reading: Reading | None = None,
    task: str | None = None,
    *,
    ids: str | None = None,
    missing: str = "skip",
    transform: str | None = None,
    units: str | None = None,
    covariates: Sequence[str] = (),
) -> list[GraphData]:
    """One set for each target of ``--target a,b,c``; the molecules are read once."""
    check_choice("--missing", missing, ABOUT_MISSING)
    scale = transform_named(transform)
    reading = reading or Reading()
    data = with_columns(read_rows(source, target, smiles, note, reading, ids), covariates)
    _check_share_unreadable(data, max_invalid, note)
    if reading.recipe is None:  # what there is to say where a way of reading can be chosen
        tell_fragments(data.graphs, note)
    tell_shared_names(data, note)
    sets = []
    found = with_targets(data, target, True, task, note)
    for each in found:
        refuse_the_answer(covariates, each.target, each.smiles)
        each = each.with_labels_only(missing, note)
        each = replace(_for_task(each, task, scale, note), units=units or units_in(each.target))
        tell = _about(each.target_name, note) if len(found) > 1 else note
        each = without_repeats(_checked(each, task), duplicates, tell, table_columns(covariates))
        sets.append(_recorded(_checked(each, task)))
    return sets


def _about(target: str, note: Note) -> Note:
    """Notes on one of several targets that do not name it begin with its name."""
    return lambda text: note(f"{target}: {text}")


def _for_task(
    data: GraphData, task: str | None, transform: Transform | None, note: Note
) -> GraphData:
    """With targets as the task has them; "auto" goes by what they look like, and says so."""
    assert data.y is not None
    if task != "regression":
        _check_enough(data)
    if task == "auto" and (looks_measured(data.y) or transform is not None):
        note(
            f"column {data.target_name!r} holds numbers: fitting a regression; "
            "--task classification to overrule."
        )
        task = "regression"
    if task == "regression":
        numbers = data.with_numbers(transform)
        _tell_decades(numbers, note)
        return numbers
    if transform is not None:
        raise InputError(f"--transform {transform.name} is for numbers, and these are classes.")
    return data


def _check_enough(data: GraphData) -> None:
    """So few rows tell neither classes from numbers nor anything else."""
    assert data.y is not None
    if len(data.y) >= FEWEST_ROWS:
        return
    why = "; ".join(f"{what}: {n}" for what, n in data.counts.items())
    raise InputError(
        f"{data.source}: {counted(len(data.y), 'row')} of {data.n_rows} with a graph and a target "
        f"({data.target_name!r}) {'is' if len(data.y) == 1 else 'are'} left"
        f"{f' ({why})' if why else ''}, too few to learn from. Add rows, or name another column "
        "with --target."
    )


def _tell_decades(data: GraphData, note: Note) -> None:
    """Values over many powers of ten, most of them small, are better learned as logarithms."""
    import numpy as np

    y = data.y
    assert y is not None
    low, middle, high = np.quantile(y, [0.0, 0.5, 1.0])
    many = low > 0 and high > _DECADES * low
    if data.transform is None and many and middle < _FEW_OF_ALL * high:
        note(
            f"{data.target_name!r} runs from {low:g} to {high:g}, most of it near the lower end: "
            "--transform log10 probably serves better."
        )


def _checked(data: GraphData, task: str | None) -> GraphData:
    """Refuse what leaves nothing to learn."""
    assert data.y is not None
    if data.task == "regression":
        check_number_column(data.y, data.target_name)
        return data
    check_class_column(data.y, data.target_name, data.rows, sure=task == "classification")
    # Numbers that stand for classes would be taken for a measurement again.
    return replace(data, y=data.y.astype(str)) if data.y.dtype.kind == "f" else data


def _recorded(data: GraphData) -> GraphData:
    """With a recipe that says what the table was; a model keeps it."""
    from treelens.graphs.record import TableRecord
    from treelens.graphs.standardize import changes_in_words

    recipe = data.graphs.recipe
    if recipe is None:
        return data
    changes = changes_in_words(data.graphs.graph_data.get("standardized", ()))
    record = TableRecord(
        Path(data.source).name, data.smiles, data.target, tuple(data.ids), data.task,
        None if data.transform is None else data.transform.name, data.units,
        {"rows": data.n_rows, **data.counts, **changes, "graphs": len(data.graphs)},
    )  # fmt: skip
    return replace(data, graphs=data.graphs.with_recipe(replace(recipe, table=record)))


# --- to look at -------------------------------------------------------------------------------


def read_data(
    source: str,
    target: str | None = None,
    smiles: str | None = None,
    need_target: bool = False,
    note: Note = _silent,
    reading: Reading | None = None,
    ids: str | None = None,
    covariates: Sequence[str] = (),
) -> GraphData:
    """Graphs of any source; rows that cannot be read are left out, but counted."""
    data = with_columns(
        read_rows(source, target, smiles, note, reading or Reading(), ids), covariates
    )
    task = None if reading is None or reading.table is None else reading.table.task
    (with_target,) = with_targets(data, target, need_target, task, note, several=False)
    return with_target


def with_targets(
    data: GraphData, target: str | None, need: bool, task: str | None, note: Note,
    several: bool = True,
) -> list[GraphData]:  # fmt: skip
    """The same graphs with each of the targets that were asked for."""
    if data.table is None:  # classes came along
        return [data]
    columns, sets = data.table.columns, []
    asked = target_columns(columns, target, data.source) if several else [target]
    for name in asked:
        column = target_column(columns, name, need, data.source)
        if column is None:
            return [data]
        if name is None and column.casefold() != "label":
            note(f"there is no column 'label': the target is {column!r}; --target names another.")
        found = read_target(data.table, column, data.rows, task, note)
        sets.append(replace(data, y=found.y, labelled=found.labelled, target=column))
    return sets


def read_rows(
    source: str, target: str | None, smiles: str | None, note: Note, reading: Reading,
    ids: str | None, opened: MoleculeFile | None = None,
) -> GraphData:  # fmt: skip
    """Graphs without targets of a table; of other sources, with those that they bring along.

    ``opened`` is the file behind the source, if it was opened already.
    """
    import numpy as np

    kind = kind_of(source)
    if kind in ("table", "sdf"):
        path = Path(source).expanduser()
        targets = (target or "").split(",") if target else []
        found = (opened or MoleculeFile(path)).read(
            reading, smiles, ids, [target or "", *targets], note
        )
        rows = np.array(found["graphs"].graph_data["row"], dtype=np.int64)
        data = GraphData(source=str(path), y=None, rows=rows, **found)
        unreadable = data.unreadable_rows
        counts = {"rows without a readable molecule": len(unreadable)} if len(unreadable) else {}
        return replace(data, unreadable=unreadable, counts=counts)
    for option, value in (("--target", target), ("--smiles", smiles), ("--id", ids)):
        if value is not None:
            note(f"{option} {value} is not used: {source} brings its classes along.")
    if kind != "name":
        return _read_tu(source, reading)
    data = _read_dataset(source, reading)
    tell_warnings(note)
    return data


def _read_tu(source: str, reading: Reading) -> GraphData:
    import numpy as np

    from treelens.graphs.tudataset import read_tudataset

    reading.check_no_molecules(source)
    graphs, y = read_tudataset(source)
    return GraphData(source, graphs, y, np.arange(len(graphs)), len(graphs))


def _read_dataset(name: str, reading: Reading) -> GraphData:
    import numpy as np

    from treelens.graphs.datasets import dataset_info, load_by_recipe
    from treelens.graphs.errors import InvalidMoleculesWarning

    info = dataset_info(name)
    if info.kind != "smiles":
        reading.check_no_molecules(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidMoleculesWarning)
        graphs, y = load_by_recipe(name, reading.recipe_for("smiles"))
    rows = np.array(graphs.graph_data.get("row", np.arange(len(graphs))), dtype=np.int64)
    return GraphData(name, graphs, y, rows, info.n_graphs)


# --- rows without a molecule ------------------------------------------------------------------


def _check_share_unreadable(data: GraphData, max_invalid: float, note: Note) -> None:
    if not data.n_unreadable:
        return
    share = data.n_unreadable / data.n_rows
    found = (
        f"{data.source}: {data.n_unreadable} of {data.n_rows} rows ({100 * share:.0f} %) hold no "
        f"molecule that RDKit can read: {unreadable_rows(data)}."
    )
    if share > max_invalid:
        raise InputError(
            f"{found} With so many, the column or the file is probably not what it should be. "
            f"Correct them, name another column with --smiles, or leave them out with "
            f"--max-invalid {min(1.0, share + 0.01):.2f}."
        )
    note(f"{found} They were left out.")


def unreadable_rows(data: GraphData) -> str:
    """The first rows that could not be read, in words."""
    missing = data.unreadable_rows.tolist()
    first = missing[:_ROWS_IN_A_MESSAGE]
    why = reasons(data.texts, first)
    shown = [
        (f"row {row + 1}" if data.table is None else data.table.place(row))
        + (f" {data.texts[row][:40]!r} ({why[row]})" if data.texts else _name_of(data, row))
        for row in first
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _name_of(data: GraphData, row: int) -> str:
    """What names a row whose molecule has no text, as a record of an SDF has none."""
    names = [column[row] for column in data.ids.values() if column[row]]
    return f" {names[0][:40]!r}" if names else ""
