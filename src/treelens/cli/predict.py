"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from treelens import __version__
from treelens.cli import options
from treelens.cli.console import Output, command, percent, score_text, score_title, visible
from treelens.cli.endpoints import show_predicted
from treelens.errors import first_few
from treelens.parallel import in_processes
from treelens.storage.partial import PartialOutput

if TYPE_CHECKING:
    import pandas as pd

    from treelens.chem.predicted_rows import NamedModel, PredictedRows
    from treelens.graphs.tables import Table

CHUNK_ROWS = 5000
_CHUNKS_IN_PROCESSES = 4  # from so many chunks on, processes work on them
_SECONDS_BETWEEN_LINES = 10.0  # of progress
_MANY_UNKNOWN = 0.5  # mean share of patterns that the training graphs do not have
_SCORES = (
    "roc_auc",
    "pr_auc",
    "mcc",
    "accuracy",
    "balanced_accuracy",
    "recall",
    "precision",
    "log_loss",
    "rmse",
    "mae",
    "r2",
    "coverage",
)


@command
def predict_cli(
    output: Output,
    *,
    models: Annotated[
        list[Path] | None, options.argument("MODEL", "One file of 'treelens fit', or several.")
    ] = None,
    data: options.Data,
    out: Annotated[
        Path | None,
        options.option(
            "The CSV file to write.",
            "--out",
            "-o",
            default="print it",
        ),
    ] = None,
    target: Annotated[
        str | None,
        options.column(
            "Column with the truth, to score predictions; of several models one each (a,b).",
        ),
    ] = None,
    smiles: options.Smiles = None,
    sheet: options.Sheet = None,
    ids: options.Ids = None,
    intervals: Annotated[
        Literal["posterior", "scaffold"],
        options.option(
            "90 % intervals of numbers; scaffold: wider, for molecules of new scaffolds.",
        ),
    ] = "posterior",
    view: options.ViewFiles = None,
    ignore_measured: Annotated[
        bool,
        options.option(
            "Of a MODEL of several targets: predict them from structure alone, though DATA has "
            "columns with some of them.",
            "--ignore-measured",
        ),
    ] = False,
    max_atoms: options.MaxAtoms = 5000,
    jobs: options.Jobs = -1,
) -> None:
    """Predict numbers or classes of DATA with one or more MODELs.

    Writes one line a row. Numbers: prediction, standard deviation and 90 % interval of a new
    measurement. Classes: class, probabilities, decision value (of two, positive for the second).
    Both: whether the molecule is in the domain of applicability, the expected error, the similarity
    to the nearest training graph, and the share of patterns that no training graph has. Columns of
    several models begin with their targets. Rows that cannot be read stay, with the reason in the
    last column. A MODEL of several targets takes those that DATA has columns of to fill in the
    others; of a measured cell it shows the value and the prediction made without it. Text that a
    spreadsheet would run as a formula gets a quote in front. The same
    command continues one that was stopped.
    """
    from treelens.storage.files import checked_target, csv_text

    if not models:
        raise ValueError(f"Expected a MODEL and then DATA, and there is {data} alone.")
    kind, place = options.kind_of(data), None
    if out is not None:
        place = checked_target(out, reads=chain(models, options.files_behind(data)))
    job = _Job(tuple(models), data, kind, smiles, ids, intervals, max_atoms, sheet, ignore_measured)
    job = job._replace(views=tuple(view or ()))
    loaded = job.load(jobs)
    if kind in ("tu", "name"):
        whole, truths = _predict_graphs(output, loaded, job, target)
        done = False
    else:
        whole, truths, done = _predict_table(output, loaded, job, target, place, jobs)
    result = _summary(output, loaded, whole, truths)
    if output.as_json and out is None:
        result["predictions"] = whole.to_dict("records")
    elif kind == "smiles" and out is None and sys.stdout.isatty():
        output.table(["", ""], whole.iloc[0].drop(["row", "problem"]).dropna().items())
    elif out is None:
        typer.echo(visible(csv_text(whole, index=False)), nl=False)
    if kind == "smiles" and out is None and not output.as_json and not result["n_unreadable"]:
        return  # all there is to say was printed
    output.finish(result, _show, out, "Predictions", None if done else whole)


class _Job(NamedTuple):
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

    def load(self, jobs: int) -> list[NamedModel]:
        if self.intervals == "posterior":
            from treelens.chem.predicted_rows import named_predictors

            models = named_predictors(self.models, jobs)
        else:
            models = options.load_models(self.models, jobs)
            for each in models:
                if each.model.model_.endpoint_names:
                    raise ValueError(
                        f"--intervals {self.intervals} is for models of one target, and "
                        f"{each.path} has several."
                    )
                each.model._intervals = self.intervals
        return [each._replace(tables=options.tables_for(each, self.views)) for each in models]


def _predict_graphs(
    output: Output, models: Sequence[NamedModel], job: _Job, target: str | None
) -> tuple[pd.DataFrame, list[Any]]:
    """Predict graphs that come with classes, all at once; return all rows and truths."""
    from treelens.chem.predicted_rows import predict_rows

    table = options.read_data(
        job.data,
        smiles=job.smiles,
        sheet=job.sheet,
        names=job.ids,
        target=target,
        model=models[0].model,
    )
    output.note(*table.notes)
    frame = predict_rows(models, [table] * len(models))
    has_classes = [each.model.model_.classes is not None for each in models]
    return frame, [(table.rows, table.targets) if known else None for known in has_classes]


def _predict_table(
    output: Output,
    models: list[NamedModel],
    job: _Job,
    target: str | None,
    out: Path | None,
    jobs: int,
) -> tuple[pd.DataFrame, list[Any], bool]:
    """Predict a table in chunks; return all rows, truths, and whether the rows are written."""
    import pandas as pd

    from treelens.chem.predicted_rows import SeenTable, read_predictions, read_truth
    from treelens.storage.files import csv_text

    targets = _targets_for(models, target)
    seen = SeenTable(job.data, models, job.smiles, targets)
    chunks = _chunks(job, any(getattr(each.model.recipe_, "hydrogens", None) for each in models))
    first = list(islice(chunks, _CHUNKS_IN_PROCESSES))
    if not first:
        raise ValueError(f"{job.data} has column names but no rows: nothing to predict.")
    frames: list[pd.DataFrame] = []
    partial: Any = nullcontext()
    if len(first) > 1 and out is not None and job.kind == "table":
        files = [path.expanduser() for path in (*job.models, Path(job.data), *job.views)]
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
            if sink is None:
                frames.append(chunk.frame)
            else:
                text = csv_text(chunk.frame, index=False, header=chunk.frame["row"].iloc[0] == 1)
                sink.append(text.encode("utf-8"), len(chunk.frame))
        if sink is not None:
            frames = [read_predictions(models, sink.path)]
            sink.finish()
    notes = seen.notes()
    truths = [
        None if name is None else read_truth(each, seen.table, name, job.smiles, notes)
        for each, name in zip(models, targets, strict=True)
    ]
    output.note(*notes)
    return pd.concat(frames, ignore_index=True), truths, sink is not None


def _with_progress(
    output: Output, chunks: Iterable[PredictedRows], n_rows: int
) -> Iterator[PredictedRows]:
    """Yield predicted chunks, and print now and then how many rows are done."""
    if n_rows:
        output.progress(f"Continuing after {n_rows:,} rows that are done.")
    printed = time.monotonic()
    for chunk in chunks:
        n_rows += len(chunk.frame)
        if time.monotonic() > printed + _SECONDS_BETWEEN_LINES:
            output.progress(f"{n_rows:,} rows predicted ...")
            printed = time.monotonic()
        yield chunk


def _targets_for(models: Sequence[NamedModel], target: str | None) -> list[str | None]:
    """Return the column with the truth for each model: by the names of targets, else in order."""
    several = [each for each in models if each.model.model_.endpoint_names]
    if target is not None and several:
        raise ValueError(
            f"--target: {several[0].path} has several targets, and is scored on the columns of "
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
    job: _Job, table: Table, molecules: Any, models: list[NamedModel] | None = None
) -> PredictedRows:
    from treelens.chem.predicted_rows import predict_molecules

    models = models or _loaded(job)
    given = job.smiles, job.ids, job.max_atoms, job.ignore_measured
    return predict_molecules(models, table, molecules, *given)


@lru_cache(maxsize=1)
def _loaded(job: _Job) -> list[NamedModel]:
    return job.load(jobs=1)


def _chunks(job: _Job, hydrogens: bool) -> Iterator[tuple[Table, Sequence[Any] | None]]:
    """Yield a table in chunks of rows, with the molecules of an SDF."""
    from treelens.chem.sdf import read_sdf
    from treelens.graphs import tables

    path, molecules = Path(job.data).expanduser(), None
    tables.check_sheet(path, job.sheet)
    if job.kind == "table" and tables.inner_suffix(path) in tables.STREAMED_ENDINGS:
        yield from ((table, None) for table in tables.read_table_blocks(path, CHUNK_ROWS))
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


def _summary(
    output: Output, models: Sequence[NamedModel], whole: pd.DataFrame, truths: Sequence[Any]
) -> dict[str, Any]:
    """Return counts and scores where the truth is known; note what looks wrong."""
    from treelens.chem.predicted_rows import summarize_rows
    from treelens.estimators.prediction_table import file_columns
    from treelens.graphs.recipe import noun_of
    from treelens.models.domain import about_depth

    bad = whole.index[whole["problem"].fillna("") != ""]
    if len(bad):
        shown = first_few([f"row {k + 1} ({whole['problem'][k]})" for k in bad])
        output.note(f"{len(bad)} of {len(whole)} rows could not be read: {shown}.")
    found: list[dict[str, Any]] = []
    for each, truth in zip(models, truths, strict=True):
        columns = file_columns(each.model)
        own = whole[[each.prefix + name for name in columns]].set_axis(columns, axis=1)
        summary = summarize_rows(each.model, own, truth)
        scored = None if truth is None else truth[0]
        if each.model.model_.endpoint_names:
            measured = own.filter(regex="_measured$").notna().any(axis=1).to_numpy()
            scored, summary["n_scored"] = measured.nonzero()[0], int(measured.sum())
        if scored is not None and "smiles" in whole:
            trained = set(each.model.model_.training.smiles or ())
            summary["n_trained_on"] = int(whole["smiles"].iloc[scored].isin(trained).sum())
        about = f"{each.name}: " if each.prefix else ""
        noun = noun_of(each.model.recipe_)
        output.note(*(f"{about}{note}" for note in about_depth(each.model.model_)))
        unseen = summary["mean_out_of_vocabulary"]
        if unseen > _MANY_UNKNOWN:
            output.note(
                f"{about}{percent(unseen)} of the patterns of these {noun} do not occur in the "
                f"training {noun}: predictions are unreliable."
            )
        if n := summary.get("n_outside"):
            output.note(
                f"{about}{n} of {len(whole) - len(bad)} {noun} lie outside the domain of "
                "applicability (in_domain is False): expect larger errors there."
            )
        if n := summary.get("n_trained_on"):
            output.note(
                f"{about}{n} of {summary['n_scored']} scored {noun} are training {noun}: the "
                "scores are too good. Score others, or run 'treelens evaluate'."
            )
        if summary.get("n_known_classes") == 0:
            output.note(f"{about}None of the true classes is a class of the model.")
        found.append({"model": str(each.path), "target": each.name, **summary})
    counts = {"n_rows": len(whole), "n_unreadable": len(bad)}
    return counts | (found[0] if len(models) == 1 else {"models": found})


def _show(output: Output, result: dict[str, Any]) -> None:
    n = result["n_rows"]
    output.progress(f"{n} row{'s' if n != 1 else ''}; {result['n_unreadable']} not readable.")
    for each in result.get("models", [result]):
        if "endpoints" in each:
            show_predicted(output, each["endpoints"])
            continue
        output.progress(f"{each['target']}: {_in_words(each)}")


def _in_words(result: dict[str, Any]) -> str:
    """Return what was predicted, and scores where the truth is known: ``"... RMSE: 0.5."``."""
    found = result["predicted"]
    if "accuracy" in result:
        words = [f"predicted {', '.join(f'{name} {n}' for name, n in found.items()) or 'nothing'}."]
    elif found["smallest"] is None:
        words = ["predicted nothing."]
    else:
        words = ["predicted from {smallest:.4g} to {largest:.4g}.".format(**found)]
    for name in _SCORES:
        if result.get(name) is not None:
            title = score_title(name)
            if "scale" in result and name in ("rmse", "mae"):
                title += f" of {result['scale']}"
            if result.get("positive") and name in ("recall", "precision", "pr_auc"):
                title += f" ({result['positive']})"
            words.append(f"{title}: {score_text(name, result[name])}.")
    if result.get("names_one_class"):
        words.append("All rows were predicted to be of the same class.")
    return " ".join(words)
