"""Predictions of a table, chunk by chunk: the work of ``treelens predict``.

What it imports is not needed for a help text, so that the command imports it when it runs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer

from treelens import __version__
from treelens.array_checks import Columns
from treelens.chem import predicted_rows
from treelens.chem.exports import ENDINGS, table_file
from treelens.chem.predicted_rows import (
    NamedModel,
    PredictedRows,
    SeenTable,
    named_predictors,
    numeric_columns,
    read_predictions,
    read_truth,
    truth_columns,
    with_profile,
    without_names,
)
from treelens.chem.sdf import read_sdf
from treelens.cli import options
from treelens.cli.console import Output, visible
from treelens.cli.predicted_counts import Counts
from treelens.graphs import tables
from treelens.graphs.tables import Table
from treelens.parallel import in_processes
from treelens.storage.files import csv_text
from treelens.storage.partial import PartialOutput

if TYPE_CHECKING:
    from rdkit.Chem import Mol

CHUNK_ROWS = 4000  # fewer than the molecules that chem.parsing keeps: each is parsed once
_CHUNKS_IN_PROCESSES = 4  # from so many chunks on, processes work on them
_SECONDS_BETWEEN_LINES = 10.0  # of progress
# A file that a later run can continue, what appends a chunk to one, or nothing to write to.
Place = Path | Callable[[Columns], None] | None


class Job(NamedTuple):
    """What is predicted, and with what; it can be passed to a process."""

    models: tuple[Path, ...]
    data: str
    kind: str
    smiles: str | None
    ids: str | None
    intervals: str
    max_atoms: int
    sheet: str | None
    ignore_measured: bool
    views: tuple[Path, ...] = ()
    text_format: str | None = None  # of standard input: "csv" or "smi"
    profile: Path | None = None

    def load(self, jobs: int) -> list[NamedModel]:
        if self.intervals == "posterior":
            models = named_predictors(self.models, jobs)
        else:
            models = options.load_models(self.models, jobs)
            for each in models:
                if each.model.model_.endpoint_names:
                    raise ValueError(
                        f"--intervals {self.intervals} is for models of one endpoint, and "
                        f"{each.path} has several."
                    )
                each.model._intervals = self.intervals
        models = [each._replace(tables=options.tables_for(each, self.views)) for each in models]
        if self.profile is not None and self.intervals != "posterior":
            raise ValueError(f"--profile {self.profile} is without --intervals: leave one out.")
        return models if self.profile is None else with_profile(models, self.profile)


def predict(
    output: Output,
    models: list[NamedModel],
    job: Job,
    target: str | None,
    out: Path | None,
    jobs: int,
) -> tuple[Counts, Columns | None]:
    """Return what to say of the predictions, and the rows that are still to write."""
    if out is None or out.suffix.lower() not in ENDINGS:
        return _predicted(output, models, job, target, out, jobs)
    with table_file(out, numeric_columns(models), truth_columns(models)) as append:
        counts, whole = _predicted(output, models, job, target, append, jobs)
        if whole is not None and job.kind in ("tu", "name"):
            append(whole)
    return counts, None


def _predicted(
    output: Output,
    models: list[NamedModel],
    job: Job,
    target: str | None,
    place: Place,
    jobs: int,
) -> tuple[Counts, Columns | None]:
    if job.kind in ("tu", "name"):
        return _predict_graphs(output, models, job, target)
    return _predict_table(output, models, job, target, place, jobs)


def _predict_graphs(
    output: Output, models: Sequence[NamedModel], job: Job, target: str | None
) -> tuple[Counts, Columns]:
    """Predict graphs that come with classes, all at once; return what to say, and all rows."""
    table = options.read_data(
        job.data,
        smiles=job.smiles,
        sheet=job.sheet,
        names=job.ids,
        target=target,
        model=models[0].model,
    )
    output.note(*table.notes)
    whole = predicted_rows.predict_rows(models, [table] * len(models))
    has_classes = [each.model.model_.classes is not None for each in models]
    truths = [(table.rows, table.targets) if known else None for known in has_classes]
    return Counts.of(models, whole, truths), whole


def _predict_table(
    output: Output,
    models: list[NamedModel],
    job: Job,
    target: str | None,
    place: Place,
    jobs: int,
) -> tuple[Counts, Columns | None]:
    """Predict a table in chunks; return what to say of it, and the rows that are still to write.

    Names and SMILES are not kept of chunks that have been written. Rows of a Parquet file, and
    those of standard input, which are printed as they are predicted, are not kept at all where
    nothing has to be known of all: none of the models has several endpoints, and there is no truth.
    """
    out, append = (place, None) if isinstance(place, Path) else (None, place)
    targets = _targets_for(models, target)
    seen = SeenTable(job.data, models, job.smiles, targets)
    chunks = _chunks(job, any(getattr(each.model.recipe_, "hydrogens", None) for each in models))
    first = list(islice(chunks, _CHUNKS_IN_PROCESSES))
    if not first:
        raise ValueError(f"{job.data} has column names but no rows: nothing to predict.")
    several = any(each.model.model_.endpoint_names for each in models)
    scored = several or any(name is not None for name in targets)
    asked = out is not None or output.as_json or job.kind != "stdin"
    kept = scored or (asked and append is None)
    counts = None if kept else Counts(models)
    parts: list[Columns] = []
    partial: Any = nullcontext()
    if len(first) > 1 and out is not None and job.kind == "table":
        given = (*job.models, Path(job.data), *job.views, *filter(None, [job.profile]))
        files = [path.expanduser() for path in given]
        settings = {
            "smiles": job.smiles,
            "ids": job.ids,
            "intervals": job.intervals,
            "max_atoms": job.max_atoms,
            "sheet": job.sheet,
            "ignore_measured": job.ignore_measured,
            "chunk": CHUNK_ROWS,
            "version": __version__,
        }
        partial = PartialOutput(out, files, settings)
    with partial as sink:
        n_done = 0 if sink is None else sink.n_rows

        def waiting() -> Iterator[tuple[Table, Sequence[Any] | None]]:
            for table, molecules in chain(first, chunks):
                seen.add(table, molecules)
                if table.first_row >= n_done:  # not done by an earlier run
                    yield table, molecules

        if len(first) == _CHUNKS_IN_PROCESSES and jobs != 1 and job.kind != "sdf":
            warnings.filterwarnings("ignore", ".*have been cancelled")  # by Ctrl-C
            calls = ((job, *chunk) for chunk in waiting())
            done = in_processes(_predict_chunk, calls, jobs)
        else:
            done = (_predict_chunk(job, *chunk, models) for chunk in waiting())
        for chunk in _with_progress(output, done, n_done):
            output.note(*chunk.notes)
            if append is not None:
                append(chunk.columns)
                if counts is None:
                    parts.append(without_names(models, chunk.columns))
                else:
                    counts.add(chunk.columns)
                continue
            if counts is None and sink is None:
                parts.append(chunk.columns)
                continue
            text = csv_text(chunk.columns, index=False, header=chunk.columns["row"][0] == 1)
            if counts is not None:
                counts.add(chunk.columns)
                typer.echo(visible(text), nl=False)
            elif sink is not None:
                sink.append(text.encode("utf-8"), chunk.columns.n_rows)
        if sink is not None:
            parts = [read_predictions(models, sink.path)]
            sink.finish()
    notes = seen.notes()
    truths = [
        None if name is None else read_truth(each, seen.table, name, job.smiles, notes)
        for each, name in zip(models, targets, strict=True)
    ]
    output.note(*notes)
    if counts is not None:
        return counts, None
    whole = Columns((name, np.concatenate([each[name] for each in parts])) for name in parts[0])
    return Counts.of(models, whole, truths), None if sink is not None else whole


def _with_progress(
    output: Output, chunks: Iterable[PredictedRows], n_rows: int
) -> Iterator[PredictedRows]:
    """Yield predicted chunks, and print now and then how many rows are done."""
    if n_rows:
        output.progress(f"Continuing after {n_rows:,} rows that are done.")
    printed = time.monotonic()
    for chunk in chunks:
        n_rows += chunk.columns.n_rows
        if time.monotonic() > printed + _SECONDS_BETWEEN_LINES:
            output.progress(f"{n_rows:,} rows predicted ...")
            printed = time.monotonic()
        yield chunk


def _targets_for(models: Sequence[NamedModel], target: str | None) -> list[str | None]:
    """Return the column with the truth for each model: by the names of targets, else in order."""
    several = [each for each in models if each.model.model_.endpoint_names]
    if target is not None and several:
        raise ValueError(
            f"--target: {several[0].path} has several endpoints, and is scored on the columns of "
            "their names. Leave it out."
        )
    if target is None or len(models) == 1:
        return [target] * len(models)
    columns: list[str | None] = [*options.split_columns(target, "--target")]
    names = [each.name for each in models]
    if set(columns) <= set(names):
        return [name if name in columns else None for name in names]
    if len(columns) != len(models):
        raise ValueError(
            f"--target {target}: these are {len(columns)} columns for {len(models)} models "
            f"({', '.join(names)}). Name one for each, in their order."
        )
    return columns


def _predict_chunk(
    job: Job,
    table: Table,
    molecules: Sequence[Mol | None] | None,
    models: list[NamedModel] | None = None,
) -> PredictedRows:
    models = models or _loaded(job)
    given = job.smiles, job.ids, job.max_atoms, job.ignore_measured
    return predicted_rows.predict_molecules(models, table, molecules, *given)


@lru_cache(maxsize=1)
def _loaded(job: Job) -> list[NamedModel]:
    return job.load(jobs=1)


def _chunks(job: Job, hydrogens: bool) -> Iterator[tuple[Table, Sequence[Any] | None]]:
    """Yield a table in chunks of rows, with the molecules of an SDF."""
    path, molecules = Path(job.data).expanduser(), None
    tables.check_sheet(path, job.sheet)
    if job.kind == "table" and tables.inner_suffix(path) in tables.STREAMED_ENDINGS:
        yield from ((table, None) for table in tables.read_table_blocks(path, CHUNK_ROWS))
        return
    if job.kind == "table" and tables.inner_suffix(path) in tables.PARQUET_ENDINGS:
        blocks = tables.read_parquet_blocks(path, CHUNK_ROWS)
        yield from ((table, None) for table in blocks if table.rows)
        return
    if job.kind == "stdin":
        yield from ((table, None) for table in options.input_blocks(job.text_format, CHUNK_ROWS))
        return
    if job.kind == "sdf":
        molecules, table = read_sdf(path, keep_hydrogens=hydrogens)
    elif job.kind == "table":
        table = tables.read_text_table(path, job.sheet)
    else:
        table = options.source_table(job.data)
    for start in range(0, len(table.rows), CHUNK_ROWS):
        some = slice(start, start + CHUNK_ROWS)
        yield table.part(some), None if molecules is None else molecules[some]
