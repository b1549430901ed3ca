"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent, score_text
from treelens.cli.data import (
    files_behind,
    is_smiles,
    kind_of,
    load_models,
    noun_of,
    read_data,
    source_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from treelens.cli.partial import PartialOutput
    from treelens.estimators.named_models import NamedModel, PredictedRows
    from treelens.graphs.tables import Table

CHUNK_ROWS = 5000
_CHUNKS_IN_PROCESSES = 4  # from so many chunks on, processes work on them
_MANY_UNKNOWN = 0.5  # mean share of patterns that the training graphs do not have
_WORDS = {"coverage": "Within the 90 % interval", "accuracy": "Accuracy", "recall": "Recall",
          "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
          "log_loss": "Log loss"}  # fmt: skip


@command
def predict_cli(
    output: Output,
    *,
    models: Annotated[list[Path] | None, typer.Argument(
        metavar="MODEL", show_default=False,
        help="A file that 'treelens fit' wrote, or several: one table for all of them.",
    )] = None,
    data: options.Data,
    out: Annotated[Path | None, options.option(
        "--out", "-o", help="The CSV file to write.", default="print it",
    )] = None,
    target: Annotated[str | None, options.option(
        "--target", metavar="COLUMN",
        help="A column with the truth, to score predictions; of several models one each, with "
        "commas between.",
    )] = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    intervals: Annotated[Literal["posterior", "scaffold"], options.option(
        "--intervals", help="90 % intervals of numbers; scaffold: wider, for molecules of new "
        "scaffolds.",
    )] = "posterior",
    jobs: options.Jobs = -1,
) -> None:  # fmt: skip
    """Predict numbers or classes of DATA with a MODEL, or with several.

    Writes one line a row, after the columns that name it (--id). Numbers: prediction, standard
    deviation and 90 % interval of a new measurement, in the units of the training table. Classes:
    class, its probability, decision value. Both: whether the molecule lies in the domain of
    applicability (in_domain), the expected error, the similarity to the nearest training graph,
    and the share of its patterns that are not in the training graphs. Rows that cannot be read
    stay, empty, with the reason in the last column.
    With several models, the target of each stands before the names of its columns.
    Text that a spreadsheet would run as a formula gets a single quote in front.
    A long table is predicted in chunks; the same command continues one that was stopped.
    """
    from treelens.storage.files import checked_target, whole_file

    if not models:
        raise ValueError(f"Expected a MODEL and then DATA, and there is {data} alone.")
    for path in map(str, models[1:]):
        if not Path(path).exists() and is_smiles(path):
            raise ValueError(
                f"{path} stands among the models, and is a SMILES. DATA is one SMILES: give "
                "several in a file, or one a line on standard input, with - for DATA."
            )
    kind, place = kind_of(data), None
    if out is not None:
        place = checked_target(out, reads=chain(models, files_behind(data)))
    job = _Job(tuple(map(str, models)), data, kind, smiles, ids, intervals)
    loaded = job.load(jobs)
    predict = _predict_graphs if kind in ("tu", "name") else _predict_table
    whole, truths, done = predict(output, loaded, job, target, place, jobs)
    result = _summary(output, loaded, whole, truths)
    if place is not None and not done:
        with whole_file(place) as file:
            file.write(_csv(whole, header=True))
    elif output.as_json and out is None:
        result["predictions"] = whole.to_dict("records")
    elif kind == "smiles" and out is None and sys.stdout.isatty():
        output.table(["", ""], whole.iloc[0].drop(["row", "problem"]).dropna().items())
    elif out is None and not done:
        output.csv(_csv(whole, header=True).decode())
    if kind == "smiles" and out is None and not output.as_json and not result["n_unreadable"]:
        return  # all there is to say was printed
    output.finish(result | ({} if out is None else {"out": str(out)}), _show)


class _Job(NamedTuple):
    """What is predicted, and with what; it can be passed to a process."""

    models: tuple[str, ...]
    data: str
    kind: str
    smiles: str | None
    ids: str | None
    intervals: str

    def load(self, jobs: int) -> list[NamedModel]:
        models = load_models([Path(path) for path in self.models], jobs)
        for each in models:
            each.model._intervals = self.intervals
        return models


# --- predictions ----------------------------------------------------------------------------------


def _predict_graphs(
    output: Output, models: Sequence[NamedModel], job: _Job, target: str | None,
    out: Path | None, jobs: int,
) -> tuple[pd.DataFrame, list[Any], bool]:  # fmt: skip
    """Predict graphs that come with classes, all at once; see ``_predict_table``."""
    from sklearn.base import is_regressor

    from treelens.estimators.named_models import predict_rows

    table = read_data(
        job.data, smiles=job.smiles, names=job.ids, target=target, model=models[0].model
    )
    output.note(*table.notes)
    prefixes = [each.prefix for each in models]
    frame = predict_rows([each.model for each in models], [table] * len(models), prefixes)
    truths = [None if is_regressor(each.model) else (table.rows, table.y) for each in models]
    return frame, truths, False


def _predict_table(
    output: Output, models: list[NamedModel], job: _Job, target: str | None,
    out: Path | None, jobs: int,
) -> tuple[pd.DataFrame, list[Any], bool]:  # fmt: skip
    """Predict a table in chunks; return all rows, truths, and whether the rows are written."""
    import pandas as pd

    from treelens.graphs.tables import find_column

    targets = _targets_for(models, target)
    texts: list[list[str]] = [[] for _ in targets]  # the truths of each model
    recipes = [each.model.recipe_ for each in models]
    hydrogens = any(recipe is not None and recipe.hydrogens for recipe in recipes)
    chunks = _chunks(job, hydrogens)
    first = list(islice(chunks, _CHUNKS_IN_PROCESSES))
    if not first:
        raise ValueError(f"{job.data} has column names but no rows: nothing to predict.")
    frames: list[pd.DataFrame] = []
    printed = len(first) > 1 and out is None and not output.as_json
    partial = len(first) > 1 and out is not None and job.kind == "table"
    many = len(first) == _CHUNKS_IN_PROCESSES and jobs != 1 and job.kind != "sdf"
    with _partial_output(job, out) if partial and out is not None else nullcontext() as sink:
        n_done = 0 if sink is None else sink.n_rows

        def waiting() -> Iterator[tuple[Table, Sequence[Any] | None]]:
            for table, molecules in chain(first, chunks):
                for column, cells in zip(targets, texts, strict=True):
                    if column is not None:
                        find_column(table.columns, column, "target", table.source)
                        cells.extend(table.column(column, "target"))
                if table.first_row >= n_done:  # not done by an earlier run
                    yield table, molecules

        for chunk in _predicted(models, job, waiting(), jobs if many else 1):
            output.note(*chunk.notes)
            data = _csv(chunk.frame, header=chunk.frame["row"].iloc[0] == 1)
            if sink is not None:
                sink.append(data, len(chunk.frame))
                continue
            frames.append(chunk.frame)
            if printed:
                output.csv(data.decode())
        if sink is not None:
            frames = [_read_back(models, sink.path)]
            sink.finish()
    truths = [
        _truth(output, each.model, job.data, name, cells)
        for each, name, cells in zip(models, targets, texts, strict=True)
    ]
    return pd.concat(frames, ignore_index=True), truths, partial or printed


def _targets_for(models: Sequence[NamedModel], target: str | None) -> list[str | None]:
    """Return the column with the truth for each model: by the names of targets, else in order."""
    if target is None or len(models) == 1:
        return [target] * len(models)
    columns = options.split_columns(target, "--target")
    names = [each.name for each in models]
    if set(columns) <= set(names):
        return [name if name in columns else None for name in names]
    if len(columns) != len(models):
        raise ValueError(
            f"--target {target}: these are {len(columns)} columns for {len(models)} models "
            f"({', '.join(names)}). Name a column for each, in the order of the models."
        )
    return list(columns)


def _partial_output(job: _Job, out: Path) -> PartialOutput:
    from treelens import __version__
    from treelens.cli.partial import PartialOutput

    files = [Path(path).expanduser() for path in (*job.models, job.data)]
    settings = {"smiles": job.smiles, "ids": job.ids, "intervals": job.intervals,
                "chunk": CHUNK_ROWS, "version": __version__}  # fmt: skip
    return PartialOutput(out, files, settings)


def _read_back(models: Sequence[NamedModel], path: Path) -> pd.DataFrame:
    """Return the predictions in a file, without the columns that name the rows."""
    import pandas as pd

    from treelens.estimators.prediction_table import file_columns
    from treelens.storage.files import harmless

    wanted = ["problem", *(each.prefix + n for each in models for n in file_columns(each.model))]
    known = {harmless(name): name for name in wanted}
    texts = ("class", "nearest_class", "nearest_name")
    text = {harmless(each.prefix + name): str for each in models for name in texts}
    found = pd.read_csv(path, dtype=text | {"problem": str}, usecols=list(known),
                        keep_default_na=False, na_values=[""])  # fmt: skip
    return found.rename(columns=known)


def _predicted(
    models: list[NamedModel], job: _Job, chunks: Iterator[Any], jobs: int
) -> Iterator[PredictedRows]:
    """Yield chunks in their order, predicted here or in processes."""
    from treelens.estimators.named_models import predict_molecules

    if jobs == 1:
        for table, molecules in chunks:
            yield predict_molecules(models, table, molecules, job.smiles, job.ids)
        return
    from joblib import Parallel, delayed

    work = (delayed(_in_a_process)(job, *chunk) for chunk in chunks)
    yield from Parallel(n_jobs=jobs, return_as="generator", pre_dispatch="2*n_jobs")(work)


def _in_a_process(job: _Job, table: Table, molecules: None) -> PredictedRows:
    from treelens.estimators.named_models import predict_molecules

    return predict_molecules(_loaded(job), table, molecules, job.smiles, job.ids)


@lru_cache(maxsize=1)
def _loaded(job: _Job) -> list[NamedModel]:
    return job.load(jobs=1)


def _chunks(job: _Job, hydrogens: bool) -> Iterator[tuple[Table, Sequence[Any] | None]]:
    """Yield a table in chunks of rows, with the molecules of an SDF."""
    from treelens.graphs.tables import (
        STREAMED_ENDINGS,
        inner_suffix,
        read_sdf,
        read_table_blocks,
        read_text_table,
    )

    path, molecules = Path(job.data).expanduser(), None
    if job.kind == "table" and inner_suffix(path) in STREAMED_ENDINGS:
        yield from ((table, None) for table in read_table_blocks(path, CHUNK_ROWS))
        return
    if job.kind == "sdf":
        molecules, table = read_sdf(path, keep_hydrogens=hydrogens)
    else:
        table = read_text_table(path) if job.kind == "table" else source_table(job.data)
    for start in range(0, len(table.rows), CHUNK_ROWS):
        some = slice(start, start + CHUNK_ROWS)
        lines = None if table.lines is None else table.lines[some]
        part = table._replace(rows=table.rows[some], lines=lines, first_row=start)
        yield part, None if molecules is None else molecules[some]


def _truth(
    output: Output, model: Any, source: str, column: str | None, cells: list[str]
) -> tuple[Any, Any] | None:
    """Return rows with a truth, and the truths; None where no column was named."""
    import numpy as np
    from sklearn.base import is_regressor

    from treelens.graphs.tables import Table
    from treelens.graphs.targets import as_numbers, read_target

    if column is None:
        return None
    table = Table(source, [column], [[cell] for cell in cells], None)
    notes: list[str] = []
    task = "regression" if is_regressor(model) else "classification"
    y, labelled, limits = read_target(table, column, np.arange(len(cells)), task, notes)
    rows = np.flatnonzero(labelled)
    if n := len(cells) - len(rows):
        notes.append(f"{n} row{'s' if n > 1 else ''} without {column!r}: predicted, not scored.")
    if limits is not None:
        notes[-1] = f"{int((limits != 0).sum())} rows have limits: predicted, not scored."
        rows, y = rows[limits == 0], y[limits == 0]
    output.note(*notes)
    if task == "regression":
        y = as_numbers(y, column, lambda k: table.place(int(rows[k])), learn=False)
    return rows, y


def _csv(frame: pd.DataFrame, header: bool) -> bytes:
    from treelens.storage.files import csv_text

    return csv_text(frame, index=False, header=header).encode("utf-8")


# --- printing -------------------------------------------------------------------------------------


def _summary(
    output: Output, models: Sequence[NamedModel], whole: pd.DataFrame, truths: Sequence[Any]
) -> dict[str, Any]:
    """Return counts and scores where the truth is known; note what looks wrong."""
    from treelens.estimators.named_models import summarize_rows
    from treelens.estimators.prediction_table import file_columns
    from treelens.graphs.errors import first_few

    bad = whole.index[whole["problem"].fillna("") != ""]
    if len(bad):
        shown = first_few([f"row {k + 1} ({whole['problem'][k]})" for k in bad])
        output.note(
            f"{len(bad)} of {len(whole)} rows could not be read and have an empty prediction: "
            f"{shown}."
        )
    found = []
    for each, truth in zip(models, truths, strict=True):
        columns = file_columns(each.model)
        own = whole[[each.prefix + name for name in columns]].set_axis(columns, axis=1)
        summary = summarize_rows(each.model, own, truth)
        about = f"{each.name}: " if each.prefix else ""
        noun = noun_of(each.model.recipe_)
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
        if summary.get("n_known_classes") == 0:
            output.note(f"{about}None of the true classes is a class of the model.")
        found.append(summary)
    counts = {"n_rows": len(whole), "n_unreadable": len(bad)}
    if len(models) == 1:
        return counts | found[0]
    names = [{"model": str(each.path), "target": each.name} for each in models]
    return counts | {"models": [name | one for name, one in zip(names, found, strict=True)]}


def _show(output: Output, result: dict[str, Any]) -> None:
    n = result["n_rows"]
    counts = f"{n} row{'s' if n != 1 else ''}; {{}}{result['n_unreadable']} not readable."
    if "models" not in result:
        output.progress(" ".join([counts.format(f"{_range(result)}; "), *_scores(result)]))
    else:
        output.progress(counts.format(""))
        for each in result["models"]:
            output.progress(" ".join([f"{each['target']}: {_range(each)}.", *_scores(each)]))
    if "out" in result:
        output.line(f"Predictions: {result['out']}")


def _range(result: dict[str, Any]) -> str:
    predicted = result["predicted"]
    if "accuracy" in result:
        return "predicted " + ", ".join(f"{name} {n}" for name, n in predicted.items())
    ends = [predicted[name] for name in ("smallest", "largest")]
    return "predicted " + ("nothing" if None in ends else "from {:.4g} to {:.4g}".format(*ends))


def _scores(result: dict[str, Any]) -> list[str]:
    """Return scores in words, where the truth is known: ``["RMSE: 0.5.", "R2: 0.812."]``."""
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    words = []
    for name, (title, _) in {**CLASS_SCORES, **NUMBER_SCORES}.items():
        if result.get(name) is None or name == "nlpd":
            continue
        title = _WORDS.get(name, title)
        if "scale" in result and name in ("rmse", "mae"):
            title += f" of {result['scale']}"
        if result.get("positive") and name in ("recall", "precision", "pr_auc"):
            title += f" ({result['positive']})"
        words.append(f"{title}: {score_text(name, result[name])}.")
    if result.get("names_one_class"):
        words.append("All rows were predicted to be of the same class.")
    return words
