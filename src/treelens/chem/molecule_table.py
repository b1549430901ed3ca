"""A table of molecules: targets, repeated molecules and how they are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from treelens.chem.identity import same_molecules
from treelens.chem.molecules import leave_out
from treelens.chem.parsing import molar_mass, smiles_parser, unreadable_rows
from treelens.chem.repeats import members, merged_classes, merged_measurements, same_measurements
from treelens.chem.standardize import changes_in_words
from treelens.chem.units import factors_to_unit, note_kinds
from treelens.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    check_choice,
    first_few,
)
from treelens.graphs import target_columns as target_cells
from treelens.graphs.cells import is_missing
from treelens.graphs.collection import GraphCollection
from treelens.graphs.columns import default_target
from treelens.graphs.kinds import GraphRecipe, TableRecord, noun_of
from treelens.graphs.tables import Table, find_column
from treelens.maps import Logarithm
from treelens.targets import (
    Targets,
    likely_limits,
    likely_limits_in_words,
    map_named,
    standard_deviations,
    transform_named,
)

IN_CELLS = "cells"  # noise= of "12 ± 3"
DUPLICATES = ("merge", "first", "keep", "error")
_FIRST_SHOWN = 3  # molecules that a notebook draws
_FEWEST_ROWS = 3  # below, no class can have two members beside another


@dataclass(frozen=True)
class MoleculeTable:
    """The molecules of a table with their targets, and what was done to the rows.

    ``graphs, y = table`` unpacks ``graphs`` and ``targets``, which ``fit`` takes.

    Attributes
    ----------
    source : str
        The file.
    graphs : GraphCollection
        One graph per molecule; ``graphs.recipe.table`` is the record that a model keeps.
    targets : Targets or None
        Classes, or numbers in the units of the table with their limits, noise and transform.
    rows : ndarray of int, shape (n_graphs,)
        The row of each graph, from 0, among the ``n_rows`` of the table.
    smiles : str or None
        The column of the SMILES.
    task : str
        ``"regression"`` or ``"classification"``.
    covariates : list of str
        What to give to ``fit(..., covariates=...)``.
    notes : list of str
        What was done, in sentences; ``counts`` says to how many rows.
    ids : dict of str to list of str
        The columns that name the rows, for all rows of the table.
    table, texts : Table and list of str, or None
        The whole table as text, and the SMILES of all its rows.
    unreadable : ndarray of int
        Rows without a molecule that can be read; ``why`` has reasons for some of them.
    groups : ndarray of int, shape (n_graphs,), or None
        The first graph that is the same molecule: folds must not cut through a group.
    merged : tuple of ndarray of int or None
        The rows that each graph stands for, where rows were merged.
    """

    source: str
    graphs: GraphCollection
    targets: Targets | None
    rows: np.ndarray
    n_rows: int
    task: str = "classification"
    covariates: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    smiles: str | None = None
    table: Table | None = None
    texts: list[str] | None = None
    unreadable: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    why: dict[int, str] = field(default_factory=dict)
    groups: np.ndarray | None = None
    merged: tuple[np.ndarray, ...] | None = None

    def __iter__(self) -> Iterator[Any]:
        yield self.graphs
        yield self.targets

    def __repr__(self) -> str:
        of = "" if self.target is None else f", target {self.target!r} ({self.task})"
        found = f"{len(self.graphs)} molecules of {self.n_rows} rows of {self.source}"
        return "\n  - ".join([f"MoleculeTable: {found}{of}", *self.notes])

    def _repr_html_(self) -> str:
        """What was read, what was done to it, and the first molecules; all text is escaped."""
        first, *notes = map(escape, repr(self).split("\n  - "))
        items = "".join(f"<li>{note}</li>" for note in notes)
        shown = []
        for k in range(min(len(self.graphs), _FIRST_SHOWN)):
            target = "" if self.targets is None else f"{self.target}: {self._value(k)}"
            about = escape(", ".join(filter(None, (self.place(k), target))))
            picture = self.graphs[k]._repr_html_() or ""
            shown.append(
                f'<figure style="margin:0">{picture}<figcaption>{about}</figcaption></figure>'
            )
        pictures = f'<div style="display:flex;flex-wrap:wrap;gap:1em">{"".join(shown)}</div>'
        return f"<div><p><b>{first}</b></p><ul>{items}</ul>{pictures}</div>"

    def _value(self, graph: int) -> str:
        """The target of a graph; of several endpoints those that were measured."""
        own = np.ravel(self._known.values[graph]).tolist()
        return ", ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in own if x == x)

    @property
    def names(self) -> Any:
        """Names of the graphs; None where no column has any."""
        return self.graphs.names

    @property
    def record(self) -> TableRecord:
        """What a model keeps of the table."""
        changes = changes_in_words(self.graphs.graph_data.get("standardized", ()))
        # "rows" is the sum of "graphs" and of all that begin with "rows "
        left_out = {what: n for what, n in self.counts.items() if what.startswith("rows ")}
        kept = {"graphs": len(self.graphs), **self.counts, **changes}
        counts = {"rows": self.n_rows, **left_out, **kept}
        return TableRecord(
            Path(self.source).name,
            self.smiles,
            tuple(self.ids),
            counts,
        )

    @property
    def noun(self) -> str:
        """What the graphs are: "molecules" or "graphs"."""
        return noun_of(self.graphs.recipe)

    @property
    def target(self) -> str | None:
        """The column of the targets; None without them, and where they have no name."""
        return None if self.targets is None else self.targets.record.name

    @property
    def target_name(self) -> str:
        return self.target or "the class file"

    @property
    def _known(self) -> Targets:
        assert self.targets is not None
        return self.targets

    @property
    def _text(self) -> Table:
        return self.table or Table(self.source, [], [], None)

    def place(self, graph: int) -> str:
        """A graph in messages: its row, the line of the file, and what names it."""
        row = int(self.rows[graph])
        about = [column[row][:40] for column in self.ids.values() if column[row]][:1]
        if self.table is not None and self.table.lines is not None:
            about.insert(0, f"line {self.table.lines[row]}")
        return f"row {row + 1}" + (f" ({', '.join(about)})" if about else "")

    def summary(self) -> dict[str, Any]:
        """Return the size of a training table, and its classes or the range of its numbers."""
        known = self._known
        facts: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "n_graphs": len(self.graphs),
            "n_left_out": self.n_rows - len(self.graphs),
            "transform": known.transform if known.transform != "none" else None,
            "units": known.record.unit,
        }
        if self.task != "regression":
            classes, counts = np.unique(known.values, return_counts=True)
            sizes = zip(classes.astype(str).tolist(), counts.tolist(), strict=True)
            return {**facts, "classes": dict(sizes)}
        values = {
            "smallest": known.values.min(),
            "median": np.median(known.values),
            "largest": known.values.max(),
            "standard_deviation": known.values.std(),
        }
        limits = None
        if known.limits is not None:
            limits = target_cells.limits_in_words(known.values, known.limits).rstrip(".")
        return {**facts, "values": values, "limits": limits}

    def pick(self, keep: np.ndarray) -> MoleculeTable:
        """Some of the graphs."""
        arrays = {name: getattr(self, name) for name in ("graphs", "rows", "targets", "groups")}
        some: dict[str, Any] = {name: x[keep] for name, x in arrays.items() if x is not None}
        merged = None if self.merged is None else tuple(self.merged[k] for k in keep.tolist())
        return replace(self, merged=merged, **some)

    def column(
        self, name: str, rows: np.ndarray | None = None, parameter: str = "column"
    ) -> list[str]:
        """Return a column as text, for rows (by default the row of each graph)."""
        every = self._text.column(name, parameter)
        return [every[row] for row in (self.rows if rows is None else rows).tolist()]

    def about_unreadable(self) -> str:
        """Which rows hold no molecule, and why, in a sentence."""
        n, names = len(self.unreadable), next(iter(self.ids.values()), [])
        listed = unreadable_rows(
            self._text.place, self.texts, self.unreadable.tolist(), self.why, names
        )
        return (
            f"{self.source}: {n} of {self.n_rows} rows ({100 * n / self.n_rows:.0f} %) hold no "
            f"molecule that can be read: {listed}."
        )

    def labelled(
        self, target: str | None, on_invalid: str, on_missing: str = "raise", empty: bool = False
    ) -> tuple[GraphCollection, Any]:
        """Return what :func:`read_smiles` does; ``empty``: it may be that nothing is left."""
        if len(self.unreadable):
            none_left, found = not (len(self.graphs) or empty), self.about_unreadable()
            leave_out(found, "on_invalid", on_invalid, none_left, InvalidMoleculesWarning)
        if target is None:
            return self.graphs, None
        cells = self.column(target, parameter="target")
        has = np.array([not is_missing(text) for text in cells], dtype=bool)
        if not has.all():
            none_left, found = not (has.any() or empty), self._about_missing(target, has)
            leave_out(found, "on_missing", on_missing, none_left, MissingTargetsWarning)
        return self.graphs[np.flatnonzero(has)], target_cells.as_target(list(compress(cells, has)))

    def _about_missing(self, target: str, has: np.ndarray) -> str:
        """Which graphs have no target, by a mask of those that have one, in a sentence."""
        rows, cells = self.rows[~has].tolist(), self._text.column(target, "target")
        remarks = {row: cells[row][:20] for row in rows if not is_missing(cells[row])}
        shown = [self._text.place(k) + (f" {remarks[k]!r}" if k in remarks else "") for k in rows]
        what = "missing or no number" if remarks else "missing"
        return (
            f"{self.source}: the target {target!r} is {what} in {len(rows)} of {self.n_rows} "
            f"rows: {first_few(shown)}."
        )

    def with_target(
        self,
        target: str | None = None,
        *,
        task: str | None = "auto",
        transform: str | None = None,
        unit: str | None = None,
        unit_column: str | None = None,
        duplicates: str = "merge",
        on_missing: str = "skip",
        learn: bool = True,
        qualifier: str | None = None,
        noise: str | None = None,
        limits: str | None = None,
    ) -> MoleculeTable:
        """Return the rows that have a target; see :func:`read_table` for the parameters.

        ``task=None``: only classes will do. ``learn=False``: do not raise where the targets leave
        nothing to learn (test data).
        """
        if task is not None:
            check_choice("task", task, target_cells.TASKS)
        check_choice("duplicates", duplicates, DUPLICATES)
        if limits is not None:
            check_choice("limits", limits, ("auto",))
        check_choice("on_missing", on_missing, ("skip", "raise"))
        data = replace(self, notes=list(self.notes))
        if self.table is not None:
            data = data._rows_with_target(target, task, on_missing, qualifier)
        data = data._for_task(task, transform, noise, learn)
        if data.task == "regression":
            data = data._in_one_unit(unit, unit_column, on_missing)
            data = data._with_limits_at_ends() if limits == "auto" else data
        data = data._without_repeats(duplicates)
        y = data._known
        if learn:
            sure = task == "classification"
            measured = y.values[y.exact]
            target_cells.check_learnable(measured, data.task, data.target_name, data.place, sure)
        if y.limits is not None:
            signs = {"lower limits": y.limits > 0, "upper limits": y.limits < 0}
            counts = {kind: int(which.sum()) for kind, which in signs.items() if which.any()}
            data = replace(data, counts=data.counts | counts)
        if data.task != "regression" and y.dtype.kind == "f":  # numbers that stand for classes
            data = replace(data, targets=Targets(y.values.astype(str), name=y.record.name))
        recipe = replace(data.graphs.recipe or GraphRecipe(), table=data.record)
        return replace(data, graphs=replace(data.graphs, recipe=recipe))

    # --- the steps of with_target -----------------------------------------------------------

    def _rows_with_target(
        self, target: str | None, task: str | None, on_missing: str, qualifier: str | None
    ) -> MoleculeTable:
        """Rows with a target, read from the table."""
        table = self._text
        if target is None:
            column = default_target(table, self.notes)
        else:
            column = find_column(table.columns, target, "target", self.source)
        for name, what in ((column, "what is to be predicted"), (self.smiles, "the molecules")):
            if name is not None and name in self.covariates:
                raise GraphDataError(f"covariates: column {name!r} is {what}. Leave it out.")
        if qualifier is not None:
            qualifier = find_column(table.columns, qualifier, "qualifier", self.source)
        y, has, limits = target_cells.read_target(
            table, column, self.rows, task, self.notes, qualifier
        )
        if limits is None and qualifier is None and task in ("auto", "regression"):
            target_cells.note_qualifier_columns(table, self.notes)
        kept, counts = self, self.counts
        if not has.all():
            empty = np.array([is_missing(text) for text in self.column(column)])
            # of what else there is between numbers, there is a note already
            told = has | ~empty if on_missing == "skip" and has.any() else has
            if not told.all():
                found = self._about_missing(column, told)
                leave_out(found, "on_missing", on_missing, not has.any(), self.notes)
            kept = self.pick(np.flatnonzero(has))
            counts = {**counts, "rows without a value, left out": int((~has).sum())}
        ids = {name: values for name, values in self.ids.items() if name != column}
        read = Targets(y, limits=limits, name=column)
        return replace(kept, targets=read, counts=counts, ids=ids)

    def _for_task(
        self,
        task: str | None,
        transform: str | None,
        noise: str | None,
        learn: bool,
    ) -> MoleculeTable:
        """Targets, and their noise, as the task needs them; "auto" goes by what they look like."""
        y, limits, target = self._known.values, self._known.limits, self.target_name
        chosen = transform_named(transform)
        if learn and task != "regression" and len(y) < _FEWEST_ROWS:
            why = "".join(f"; {what}: {n}" for what, n in self.counts.items())
            raise GraphDataError(
                f"{self.source}: {len(y)} of {self.n_rows} rows have a molecule and a target "
                f"({target!r}{why}), too few to learn from. Name another with target=COLUMN."
            )
        measured = target_cells.looks_measured(y) or limits is not None
        measured = measured or chosen not in (None, "none")
        if task == "auto" and measured:
            self.notes.append(
                f"column {target!r} holds numbers: fitting a regression; task='classification' to "
                "learn classes."
            )
            task = "regression"
        if task != "regression":
            given = {"transform": None if chosen == "none" else chosen, "noise": noise}
            for parameter, value in given.items():
                if value is not None:
                    raise GraphDataError(
                        f"{parameter}={value!r} is for numbers, and these are classes. Leave it "
                        "out, or learn numbers with task='regression'."
                    )
            return replace(self, task="classification")
        y = target_cells.as_numbers(y, target, self.place, learn)
        scale = map_named(chosen, y)
        if scale is not None:
            scale.checked(y, lambda k: f"{target!r} in {self.place(k)}")
        std, column = None, self._noise(noise)
        if column is not None:
            std = standard_deviations(column, len(y), self.place)
            if n_empty := int(np.isnan(std).sum()):
                where = "behind ±" if noise == IN_CELLS else f"in {noise!r}"
                self.notes.append(
                    f"{n_empty} rows have no standard deviation {where}: they get the median."
                )
        known = Targets(y, limits=limits, noise=std, transform=transform, name=self.target)
        return replace(self, targets=known, task="regression")

    def _noise(self, noise: str | None) -> list[str] | None:
        """Standard deviations as text: of a column, or behind ± in the cells of the target."""
        if noise is not None and (noise != IN_CELLS or noise in self._text.columns):
            return self.column(noise, parameter="noise")
        if self.target is None or self.table is None:
            return None
        errors = target_cells.errors_in_cells(self._text, self.target, self.rows)
        first = next((k for k, text in enumerate(errors) if text), None)
        if first is None:
            if noise is not None:
                raise GraphDataError(
                    f"noise={noise!r}: no cell of {self.target!r} has an error behind ±. Name the "
                    "column with the standard deviations."
                )
            return None
        if noise is None:
            self.notes.append(
                f"column {self.target!r} has an error beside the number in {sum(map(bool, errors))}"
                f" rows, such as {self.column(self.target)[first][:20]!r}, and it was not used: "
                f"where it is the standard deviation, noise={IN_CELLS!r} learns from it."
            )
            return None
        return errors

    def _in_one_unit(
        self, unit: str | None, unit_column: str | None, on_missing: str
    ) -> MoleculeTable:
        """Numbers in the unit that is asked for, or in that of all rows."""
        if self.target is None:
            return self
        name, known, texts = self.target, self._known, self.texts

        def mass(graph: int) -> float:  # of the substance that was weighed, salts included
            if texts is not None:
                return molar_mass(smiles_parser()(texts[self.rows[graph]]))
            return molar_mass(self.graphs.graph_data["mol"][graph])

        unit, factors = factors_to_unit(
            self._text, name, self.rows, unit, unit_column, mass, self.notes
        )
        note_kinds(self._text, name, self.rows, self.covariates, self.notes)
        data, times = self, np.ones(len(known)) if factors is None else factors
        if not (clear := np.isfinite(times)).all():
            shown = first_few([self.place(k) for k in np.flatnonzero(~clear).tolist()])
            found = f"{name!r} cannot be converted to {unit} in {(~clear).sum()} rows: {shown}."
            leave_out(found, "on_missing", on_missing, not clear.any(), self.notes)
            data, known, times = self.pick(np.flatnonzero(clear)), known[clear], times[clear]
            left = {"rows whose unit cannot be converted, left out": int((~clear).sum())}
            data = replace(data, counts={**self.counts, **left})
        y = Targets(
            known.values * times,
            limits=known.limits,
            noise=None if known.noise is None else known.noise * times,
            transform=known.transform,
            name=name,
            unit=unit,
        )
        return replace(data, targets=y)

    def _with_limits_at_ends(self) -> MoleculeTable:
        """Take values that many rows share at an end of the range as limits, and say so."""
        known = self._known
        found = likely_limits(known.values) if known.limits is None else None
        if found is None:
            what = "the cells have limits" if known.limits is not None else "no end is shared"
            self.notes.append(f"limits='auto' found no values at the end of a range: {what}.")
            return self
        words = likely_limits_in_words(known.values, found)
        self.notes.append(f"{words}: they are taken as limits.")
        y = Targets(
            known.values,
            limits=found,
            noise=known.noise,
            transform=known.transform,
            name=known.name,
            unit=known.unit,
        )
        return replace(self, targets=y)

    def _without_repeats(self, how: str) -> MoleculeTable:
        """Each molecule once, as ``duplicates`` asks; covariates tell measurements apart."""
        if not {"smiles", "mol"} & set(self.graphs.graph_data):
            return self
        groups, n_stereo = same_molecules(self.graphs)
        n_repeats = len(groups) - len(np.unique(groups))
        data = replace(self, groups=groups)
        if not n_repeats:
            return data
        repeat = "rows repeat" if n_repeats > 1 else "row repeats"
        stereo = f" ({n_stereo} of them as another stereoisomer or isotope, which atom_label and "
        stereo += "bond_label can tell apart)"
        found = f"{n_repeats} {repeat} the molecule of another row{stereo if n_stereo else ''}"
        if how == "error":
            raise GraphDataError(f"{found}. Merge them, or choose how with duplicates=HOW.")
        columns = [c for c in self.covariates if c in self.graphs.graph_data]
        measured = same_measurements(groups, [self.graphs.graph_data[c] for c in columns])
        data._note_contradictions(measured)
        if how == "keep":
            self.notes.append(f"{found}. They were kept, and flatter scores across splits.")
            return data
        if how == "first":
            self.notes.append(f"{found}: only the first row of each was kept.")
            counts = {**self.counts, "rows of molecules that stand above, left out": n_repeats}
            return replace(data.pick(np.unique(groups)), counts=counts)
        return data._merged(measured, n_repeats, found, columns)

    def _merged(
        self, measured: np.ndarray, n_repeats: int, found: str, columns: list[str]
    ) -> MoleculeTable:
        """One graph for each measured molecule, with the mean of its values or its main class."""
        known, parts = self._known, members(measured)
        numbers, spread = self.task == "regression", None
        if numbers:
            merged, clear, spread = merged_measurements(known, measured)
            self._note_intervals(list(compress(parts, ~clear)), not clear.any())
        else:
            values, clear = merged_classes(known.values, measured)
            merged = Targets(values[clear], name=known.record.name)
        n_merged, n_ties = len(measured) - len(parts), int((~clear).sum())
        n_kept, counts, words = n_repeats - n_merged, dict(self.counts), []
        if n_kept:
            counts["repeated molecules under other covariates, kept"] = n_kept
            words.append(f"{n_kept} of them under other covariates ({', '.join(columns)}) are kept")
        if n_merged:
            counts["rows merged with others of their molecule"] = n_merged
            mean = "geometric mean" if known.transform in Logarithm.BASES else "mean"
            what = f"the {mean} of its different values" if numbers else "its most frequent class"
            what += "" if known.limits is None else ", else its tightest limit"
            words.append(f"each molecule counts once, with {what}")
        if spread is not None:
            words.append(spread.in_words(known.record.transform))
        if n_ties:
            why = "limits on both sides only" if numbers else "a tie between classes"
            counts[f"rows of molecules with {why}, left out"] = n_ties
        if n_ties and not numbers:
            words.append(f"{n_ties} with a tie between classes left out")
        self.notes.append(f"{found}: {'; '.join(words)}.")
        kept = list(compress(parts, clear))
        data = self.pick(np.array([part[0] for part in kept], dtype=np.int64))
        rows = tuple(self.rows[part] for part in kept)
        return replace(data, targets=merged, merged=rows, counts=counts)

    def _note_contradictions(self, measured: np.ndarray) -> None:
        """Note groups of different classes, or of numbers far apart, the furthest first."""
        numbers = self.task == "regression"
        y = self._known.learned() if numbers else self._known.values
        parts = [part for part in members(measured) if len(part) > 1]
        if numbers:
            limits = self._known.limits
            signs = np.zeros(len(y)) if limits is None else limits
            low, high = np.where(signs < 0, -np.inf, y), np.where(signs > 0, np.inf, y)
            apart = np.array([low[part].max() - high[part].min() for part in parts])
            torn = [parts[k] for k in np.argsort(-apart, kind="stable") if apart[k] > np.std(y)]
        else:
            torn = [part for part in parts if len(np.unique(y[part])) > 1]
        if not torn:
            return
        other = "values far apart" if numbers else "different classes"
        self.notes.append(f"{self._repeated(torn)} with {other}: {self._cells_of(torn)}.")

    def _note_intervals(self, parts: list[np.ndarray], none_left: bool) -> None:
        """Note that molecules are left out of which only limits on both sides are known."""
        if parts:
            found = (
                f"{self._repeated(parts)} with lower and upper limits and no measured value, which "
                f"is not learned: {self._cells_of(parts)}."
            )
            leave_out(found, "duplicates", "skip", none_left, self.notes)

    def _repeated(self, parts: list[np.ndarray]) -> str:
        return f"{len(parts)} repeated molecule{'s' if len(parts) > 1 else ''}"

    def _cells_of(self, parts: list[np.ndarray]) -> str:
        """Return the places of rows of molecules, and what these hold, in words."""
        cells = self._known.values if self.target is None else self.column(self.target)
        shown = [first_few([f"{self.place(i)}: {cells[i]}" for i in part], 4) for part in parts]
        return first_few(shown, 5, "; ")
