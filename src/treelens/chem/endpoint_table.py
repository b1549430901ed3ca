"""Several targets of one table of molecules: each read as one target is, then put side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treelens.chem.identity import same_molecules
from treelens.chem.molecule_table import MoleculeTable
from treelens.errors import GraphDataError, first_few
from treelens.graphs.cells import is_missing, read_cell
from treelens.graphs.columns import several_columns
from treelens.graphs.kinds import GraphRecipe
from treelens.graphs.tables import find_column
from treelens.graphs.target_columns import looks_numeric
from treelens.targets import Endpoint, Targets

ALL, CELLS = "all", "cells"
_MOSTLY = 0.8  # of the cells that hold anything: a column with so many numbers is an endpoint


def endpoint_columns(base: MoleculeTable, wanted: str | Sequence[str] | None) -> list[str]:
    """Return the columns to learn: as named (``"a,b"``), or ``"all"`` that hold numbers."""
    table = base.table
    if wanted is None or (table is None and wanted != ALL):
        return []
    if table is None:
        raise GraphDataError(f"{base.source} is no table: it has no columns to learn.")
    if wanted != ALL or ALL in table.columns:
        if isinstance(wanted, str):
            return several_columns(table.columns, wanted, "target", base.source)
        return [find_column(table.columns, name, "target", base.source) for name in wanted]
    found = []
    for name in table.columns:
        if name in (base.smiles, *base.ids) or table.columns.count(name) > 1:
            continue
        cells = [text for text in base.column(name) if not is_missing(text)]
        numbers = [text for text in cells if looks_numeric(read_cell(text).number)]
        if len(set(numbers)) > 1 and len(numbers) >= _MOSTLY * len(cells):
            found.append(name)
    if len(found) < 2:
        raise GraphDataError(
            f"target='all': {base.source} has {len(found)} columns of numbers besides those that "
            "name the rows, and several endpoints are two or more. Name them."
        )
    return found


def with_endpoints(
    base: MoleculeTable,
    names: Sequence[str],
    *,
    duplicates: str = "merge",
    transform: str | None = None,
    qualifier: str | None = None,
    noise: str | None = None,
    **reading: Any,
) -> MoleculeTable:
    """Return the rows with a value in any of several columns; see :func:`read_table`.

    ``reading`` are more parameters of :meth:`MoleculeTable.with_target`, which reads each column:
    units, repeated molecules and what counts as missing are those of one target. A transform is for
    the columns of numbers; ``qualifier`` and ``noise`` name one for each, as ``"{} modifier"``.
    """
    notes = list(base.notes)
    endpoints = list[Endpoint]()
    cells = list[tuple[np.ndarray, Targets]]()
    molecule = _molecules(base, duplicates)
    position = {row: graph for graph, row in enumerate(base.rows.tolist())}
    for name in names:
        beside = {
            **reading,
            "duplicates": duplicates,
            "qualifier": column_of(base, name, qualifier),
            "noise": noise if noise == CELLS else column_of(base, name, noise),
        }
        own = base.with_target(name, **beside)
        if transform not in (None, "auto", "none") and own.task == "regression":
            own = base.with_target(name, transform=transform, **beside)
        notes += [f"{name}: {note}" for note in own.notes[len(base.notes) :] if not _usual(note)]
        targets = own.targets
        assert targets is not None
        classes = own.task != "regression"
        chosen = None if classes else (targets.transform or _of(transform))
        endpoints.append(Endpoint(name, classes, targets.unit, chosen))
        at = molecule[[position[row] for row in own.rows.tolist()]]
        cells.append((at, targets))
    counted = [_counted(name, own) for name, (_, own) in zip(names, cells, strict=True)]
    notes.append(f"learned together, with the number of values: {first_few(counted, 100)}.")
    has = np.unique(np.concatenate([at for at, _ in cells]))
    placed = [(np.searchsorted(has, at), own) for at, own in cells]
    data = replace(base.pick(has), notes=notes, task="several")
    members = [np.flatnonzero(molecule == graph) for graph in has]
    left = int(len(base.graphs) - np.isin(molecule, has).sum())
    counts = {"rows without a value, left out": left} if left else {}
    if n_repeats := sum(map(len, members)) - len(has):
        counts["rows merged with others of their molecule"] = n_repeats
    data = replace(
        data,
        targets=Targets.of_endpoints(endpoints, placed, len(has)),
        merged=tuple(base.rows[own] for own in members),
        counts={**base.counts, **counts},
        ids={name: values for name, values in base.ids.items() if name not in names},
    )
    recipe = replace(data.graphs.recipe or GraphRecipe(), table=data.record)
    return replace(data, graphs=replace(data.graphs, recipe=recipe))


def _of(transform: str | None) -> str | None:
    """Return "none" where numbers are to be learned as they are; None where that is chosen."""
    return "none" if transform == "none" else None


def _usual(note: str) -> bool:
    """Whether a note is about what several columns always have: gaps, and numbers."""
    return " is missing in " in note or "holds numbers: fitting a regression" in note


def _molecules(base: MoleculeTable, duplicates: str) -> np.ndarray:
    """Return the first graph that is the same molecule, or each graph by itself to keep all."""
    chemical = bool({"smiles", "mol"} & set(base.graphs.graph_data))
    if duplicates == "keep" or not chemical:
        return np.arange(len(base.graphs))
    return same_molecules(base.graphs).groups


def column_of(base: MoleculeTable, target: str, pattern: str | None) -> str | None:
    """Return the column that a pattern such as ``"{} modifier"`` names for a target.

    The braces stand for the name of the target; None where there is no such column.
    """
    if pattern is None or base.table is None:
        return None
    if "{}" not in pattern:
        raise GraphDataError(
            f"{pattern!r} is one column, and there are several targets: write {{}} for the name of "
            "the target, as in '{} modifier'."
        )
    column = pattern.replace("{}", target)
    return column if column in base.table.columns else None


def _counted(name: str, targets: Targets) -> str:
    """Return an endpoint with the number of its values and limits."""
    n_exact = int(targets.exact.sum())
    limits = f" and {len(targets) - n_exact} limits" if n_exact < len(targets) else ""
    return f"{name} ({n_exact}{limits})"
