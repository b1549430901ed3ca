"""Several targets of one table of molecules: each read as one target is, then put side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treelens.chem.identity import same_molecules
from treelens.chem.molecule_table import MoleculeTable
from treelens.errors import GraphDataError, first_few
from treelens.graphs.cells import is_missing, is_number, read_cell
from treelens.graphs.columns import several_columns
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.tables import find_column
from treelens.targets import Endpoint, Targets

ALL = "all"
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
        numbers = [text for text in cells if is_number(read_cell(text).number)]
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
    **reading: Any,
) -> MoleculeTable:
    """Return the rows with a value in any of several columns; see :func:`read_table`.

    ``reading`` are more parameters of :meth:`MoleculeTable.with_target`, which reads each column:
    units, repeated molecules and what counts as missing are those of one target. A transform is for
    the columns of numbers.
    """
    notes, unused = list(base.notes), list[str]()
    endpoints, cells = list[Endpoint](), list[dict[int, Any]]()
    molecule = _molecules(base, duplicates)
    position = {row: graph for graph, row in enumerate(base.rows.tolist())}
    for name in names:
        own = base.with_target(name, duplicates=duplicates, **reading)
        if transform not in (None, "auto", "none") and own.task == "regression":
            own = base.with_target(name, duplicates=duplicates, transform=transform, **reading)
        notes += [f"{name}: {note}" for note in own.notes[len(base.notes) :] if not _usual(note)]
        _check_exact(own, name)
        targets = own.targets
        assert targets is not None
        if targets.noise is not None:
            unused.append(name)
        classes = own.task != "regression"
        chosen = None if classes else (targets.transform or _of(transform))
        endpoints.append(Endpoint(name, classes, targets.unit, chosen))
        at = molecule[[position[row] for row in own.rows.tolist()]]
        cells.append(dict(zip(at.tolist(), targets.values.tolist(), strict=True)))
    if unused:
        notes.append(f"known noise is not used with several targets ({first_few(unused)}).")
    counted = [f"{name} ({len(own)})" for name, own in zip(names, cells, strict=True)]
    notes.append(f"learned together, with the number of values: {first_few(counted, 100)}.")
    has = sorted({graph for own in cells for graph in own})
    place = {graph: k for k, graph in enumerate(has)}
    placed = [{place[graph]: value for graph, value in own.items()} for own in cells]
    data = replace(base.pick(np.array(has, dtype=np.int64)), notes=notes, task="several")
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


def _check_exact(table: MoleculeTable, name: str) -> None:
    """Raise where a column has limits, which a panel does not learn from yet."""
    targets = table.targets
    if targets is None or targets.limits is None:
        return
    places = np.flatnonzero(targets.limits)
    signs = {1: ">", -1: "<"}
    shown = [
        f"{table.place(int(k))}: {signs[int(targets.limits[k])]}{targets.values[k]:g}"
        for k in places
    ]
    raise GraphDataError(
        f"column {name!r} has limits in {len(places)} rows ({first_few(shown, 3)}), and several "
        "targets are learned from measured values. Leave these cells empty, write numbers alone, "
        "or learn the column by itself."
    )
