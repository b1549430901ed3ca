"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, score_text, score_title, visible
from treelens.cli.endpoints import show_predicted

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
            "The file to write: CSV, or what it ends in: .xlsx with drawings, .sdf, .parquet.",
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
    text_format: Annotated[
        Literal["csv", "smi"] | None,
        options.option(
            "What is on standard input (DATA is -): a table, or a SMILES and a name a line.",
            "--format",
            default="found out",
        ),
    ] = None,
    view: options.ViewFiles = None,
    ignore_measured: Annotated[
        bool,
        options.option(
            "Of a MODEL of several endpoints: predict them from structure alone, though DATA has "
            "columns with some of them.",
            "--ignore-measured",
        ),
    ] = False,
    profile: options.ProfileFile = None,
    max_atoms: options.MaxAtoms = 5000,
    jobs: options.Jobs = -1,
) -> None:
    """Predict numbers or classes of DATA with one or more MODELs.

    Writes one line a row. Numbers: prediction, standard deviation and 90 % interval of a new
    measurement. Classes: class, probabilities, decision value (of two, positive for the second).
    Both: whether the molecule is in the domain of applicability, the expected error, the similarity
    to the nearest training graph, and the share of patterns that no training graph has. Columns of
    several models begin with their targets. Rows that cannot be read stay, with the reason in the
    last column. What comes through standard input is printed in parts, as these are done. A MODEL
    of several endpoints takes those that DATA has columns of to fill in the others; of a measured
    cell it shows the value and the prediction made without it. Text that a spreadsheet would run as
    a formula gets a quote in front. The same command continues one that was stopped, unless it
    writes .parquet (all digits), .sdf (predictions as data fields) or .xlsx (with a drawing of each
    molecule), which appear when all rows are done.
    """
    from treelens.cli.predicting import Job, predict
    from treelens.storage.files import checked_target, csv_text

    if not models:
        raise ValueError(f"Expected a MODEL and then DATA, and there is {data} alone.")
    kind, place = options.kind_of(data), None
    if text_format is not None and kind != "stdin":
        raise ValueError(f"--format is for DATA on standard input (-), and not for {data}.")
    if out is not None:
        reads = chain(models, options.files_behind(data), filter(None, [profile]))
        place = checked_target(out, reads=reads)
    job = Job(tuple(models), data, kind, smiles, ids, intervals, max_atoms, sheet, ignore_measured)
    job = job._replace(views=tuple(view or ()), text_format=text_format, profile=profile)
    loaded = job.load(jobs)
    counts, whole = predict(output, loaded, job, target, place, jobs)
    result = counts.noted(output)
    if whole is None:
        output.finish(result, _show, out, "Predictions")
        return
    if output.as_json and out is None:
        rows = zip(*(values.tolist() for values in whole.values()), strict=True)
        result["predictions"] = [dict(zip(whole, row, strict=True)) for row in rows]
    elif kind == "smiles" and out is None and sys.stdout.isatty():
        row = {name: values[0] for name, values in whole.items() if values[0] == values[0]}
        output.table(["", ""], [(k, x) for k, x in row.items() if k not in ("row", "problem")])
    elif out is None:
        typer.echo(visible(csv_text(whole, index=False)), nl=False)
    if kind == "smiles" and out is None and not output.as_json and not result["n_unreadable"]:
        return  # all there is to say was printed
    output.finish(result, _show, out, "Predictions", whole)


def _show(output: Output, result: dict[str, Any]) -> None:
    n = result["n_rows"]
    output.progress(f"{n} row{'s' if n != 1 else ''}; {result['n_unreadable']} not readable.")
    if "n_in_profile" in result:
        good = f"{result['n_in_profile']} of {n - result['n_unreadable']}"
        output.progress(f"{good} have a probability of the profile above 50 %.")
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
