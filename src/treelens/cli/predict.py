"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, counted, percent
from treelens.cli.transform import learned_scale
from treelens.storage.csv_text import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from treelens.cli.data import GraphData
    from treelens.cli.predict_models import AskedRows, NamedModel

__all__ = ["learned_scale", "predict_cli", "summarise_predictions", "write_table"]
# Beyond this mean share of patterns never seen in training, the labels are probably other ones.
_STRANGE = 0.5


def predict_cli(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL",
            help="A file that 'treelens fit' wrote, or several: one table for all of them.",
            show_default=False,
        ),
    ],
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The CSV file to write.", show_default="print it"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="A column with the truth, to score predictions; of several models one each, with "
            "commas between.",
            metavar="COLUMN",
        ),
    ] = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    atom_label: options.AtomLabel = None,
    hydrogens: options.Hydrogens = None,
    part_size: Annotated[
        int | None,
        typer.Option(
            "--part-size",
            help="Predict a long table so many rows at a time, in processes; the same command goes "
            "on where a stopped one was. Needs --out. Numbers may differ from those of the table "
            "at once in the last digits (about 1e-13 of their size).",
            metavar="ROWS",
            min=1,
            show_default="all at once",
        ),
    ] = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict numbers or classes of DATA with a MODEL, or with several.

    Writes one line a row, after the columns that name it (--id). Numbers: prediction, standard
    deviation, the interval that should hold nine of ten new measurements, and the share of the
    graph that training never saw, in the units of the training table. Classes: class, its
    probability, decision value, and that share. Both: whether the model may be believed there
    (in_domain), the error to expect, and the similarity to the nearest training graph. Rows that
    cannot be read stay, empty, with the reason in the last column.
    With several models, the target of each stands before the names of its columns.
    Text that a spreadsheet would run as a formula gets a single quote in front.
    Molecules are read as those were that the model was fitted to.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind
        from treelens.cli.molecules import warnings_in_words
        from treelens.cli.places import refuse_model_after_models
        from treelens.cli.predict_models import AskedRows, load_models, read_for_models
        from treelens.cli.predict_table import predicted_table
        from treelens.storage.files import checked_target

        refuse_model_after_models(data)
        asked = AskedRows(smiles, ids, atom_label, hydrogens)
        if out is not None:
            checked_target(out, reads=chain(models, files_behind(data)))
        if part_size is not None:
            result = _in_parts(models, data, out, target, part_size, asked, jobs)
            if warned := result.pop("warned"):
                output.note(warnings_in_words(warned))
            _tell_outside_of_parts(result, output.note)
            output.finish(result, _show)
            return
        loaded = load_models(models, jobs)
        sets = read_for_models(loaded, data, target, asked, output.note)
        table = predicted_table(loaded, sets)
        result = summarise_predictions(loaded, sets, table.of_models, output)
        if out is not None:
            write_table(table.whole, out)
            result["out"] = str(out)
        elif as_json:
            result["predictions"] = table.whole.to_dict("records")
        else:
            output.csv(csv_text(table.whole, index=False))
        output.finish(result, _show)


def _in_parts(
    models: list[Path], data: str, out: Path | None, target: str | None, part_size: int,
    asked: AskedRows, jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Predict a table part by part."""
    from treelens.cli.console import InputError
    from treelens.cli.predict_parts import PartsPlan, predict_in_parts

    if out is None:
        raise InputError("--part-size needs --out: parts are kept beside the file to write.")
    if target is not None:
        raise InputError("--part-size: predictions are not scored in parts. Leave --target out.")
    out = out.expanduser()
    plan = PartsPlan(tuple(map(str, models)), data, part_size, asked)
    return {**predict_in_parts(plan, out, jobs), "out": str(out)}


def summarise_predictions(
    models: Sequence[NamedModel],
    sets: Sequence[GraphData],
    tables: Sequence[pd.DataFrame],
    output: Output,
) -> dict[str, Any]:
    """Counts, scores where the truth is known, and notes on what looks wrong."""
    from treelens.cli.data import unreadable_rows

    first = max(sets, key=lambda data: data.n_unreadable)
    if first.n_unreadable:
        output.note(
            f"{first.n_unreadable} of {first.n_rows} rows could not be read and have an empty "
            f"prediction: {unreadable_rows(first)}."
        )
    counts = {"n_rows": first.n_rows, "n_unreadable": first.n_unreadable}
    told = [_of_one(*each, output) for each in zip(models, sets, tables, strict=True)]
    if len(models) == 1:
        return counts | told[0]
    names = [{"model": str(each.path), "target": each.name} for each in models]
    return counts | {"models": [name | one for name, one in zip(names, told, strict=True)]}


def _of_one(
    named: NamedModel, data: GraphData, table: pd.DataFrame, output: Output
) -> dict[str, Any]:
    """What one model said of the rows."""
    about = f"{named.name}: " if named.prefix else ""

    def note(text: str) -> None:
        output.note(about + text)

    unseen = float(table["out_of_vocabulary"].mean())
    if unseen > _STRANGE:
        note(
            f"Training never saw {percent(unseen)} of what these graphs are made of: they are "
            "probably labelled in another way, and the predictions mean little."
        )
    if "in_domain" in table:
        inside = table.iloc[data.rows]["in_domain"].astype(bool)
        _tell_outside(int((~inside).sum()), len(inside), note)
    of_numbers = data.task == "regression"
    summary = (
        _sum_up_numbers(data, table) if of_numbers else _sum_up_classes(named.model, data, table)
    )
    if data.labelled is not None and not data.labelled.all():
        note(
            f"{counted(int((~data.labelled).sum()), 'row')} without {data.target_name!r}: "
            "predicted, and not scored."
        )
    if not summary.pop("any_known", True):
        note("None of the true classes is a class of the model: nothing can be right.")
    return {"mean_out_of_vocabulary": unseen, **summary}


def _tell_outside(n_outside: int, n_graphs: int, note: Callable[[str], None]) -> None:
    if n_outside:
        note(
            f"{n_outside} of {n_graphs} graphs lie outside of where the model may be believed "
            "(in_domain is False): expect larger errors there."
        )


def _tell_outside_of_parts(result: dict[str, Any], note: Callable[[str], None]) -> None:
    n_readable = result["n_rows"] - result["n_unreadable"]
    for one in result.get("models", [result]):
        about = f"{one['target']}: " if "target" in one else ""
        _tell_outside(one["n_outside"], n_readable, partial(_noted, note, about))


def _noted(note: Callable[[str], None], about: str, text: str) -> None:
    note(about + text)


def _sum_up_classes(model: Any, data: GraphData, table: pd.DataFrame) -> dict[str, Any]:
    import numpy as np

    from treelens.cli.scores import class_scores, class_sizes

    readable, has, y = _scored(data, table)
    summary: dict[str, Any] = {
        "predicted": class_sizes(readable["class"].to_numpy().astype(str)),
        "accuracy": None,
    }
    if y is None or not len(y):
        return {**summary, "any_known": True}
    readable = readable.iloc[has]
    chances = readable[[f"probability {c}" for c in model.classes_.tolist()]].to_numpy()
    rarer = np.bincount(model.train_codes_, minlength=2)
    positive = model.classes_[int(rarer[1] <= rarer[0])] if len(model.classes_) == 2 else None
    named = readable["class"].to_numpy().astype(str)
    scores = class_scores(y, chances, model.classes_, named, positive)
    known = bool(np.isin(y.astype(str), model.classes_.astype(str)).any())
    return {**summary, **scores, "n_scored": len(y), "any_known": known}


def _scored(data: GraphData, table: pd.DataFrame) -> tuple[pd.DataFrame, Any, Any]:
    """Lines with a prediction, which of them have a truth, and these truths (None: no column)."""
    import numpy as np

    readable = table.iloc[data.rows]
    has = np.arange(len(readable)) if data.labelled is None else np.flatnonzero(data.labelled)
    return readable, has, None if data.y is None else data.y[has]


def _sum_up_numbers(data: GraphData, table: pd.DataFrame) -> dict[str, Any]:
    from treelens.evaluation.metrics import number_scores

    readable, has, y = _scored(data, table)
    mean = readable["prediction"].to_numpy()
    summary = {"predicted": {"smallest": mean.min(), "largest": mean.max()}}
    if y is None or not len(y):
        return summary
    scale = data.transform
    std = readable["std" if scale is None else f"std_{scale.name}"].to_numpy()
    there = mean if scale is None else scale.there(mean)  # scores are those of what was learned
    named = {} if scale is None else {"scale": scale.name}
    return {**summary, **number_scores(y, there[has], std[has]), "n_scored": len(y), **named}


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV, whole or not at all; see :func:`treelens.storage.csv_text.csv_text`."""
    from treelens.storage.files import whole_file

    with whole_file(path) as file:
        file.write(csv_text(table, index=False).encode("utf-8"))


def _show(output: Output, result: dict[str, Any]) -> None:
    counts = f"{result['n_rows']} rows; {{}}{result['n_unreadable']} not readable."
    if "models" not in result:
        output.progress(" ".join([counts.format(f"{_range(result)}; "), *_scores(result)]))
    else:
        output.progress(counts.format(""))
        for each in result["models"]:
            output.progress(" ".join([f"{each['target']}: {_range(each)}.", *_scores(each)]))
    if "out" in result:
        output.line(f"Predictions: {result['out']}")


def _range(result: dict[str, Any]) -> str:
    """What was predicted, from where to where or how often."""
    predicted = result["predicted"]
    if "accuracy" not in result:
        ends = [predicted[name] for name in ("smallest", "largest")]
        what = "nothing" if None in ends else "from {:.4g} to {:.4g}".format(*ends)
    else:
        what = ", ".join(f"{name} {n}" for name, n in predicted.items())
    return f"predicted {what}"


def _scores(result: dict[str, Any]) -> list[str]:
    """Sentences about how near the truth the predictions came, where it is known."""
    from treelens.cli.scores import score_sentences

    told = score_sentences(result)
    if "scale" in result:  # errors are those on the scale that was learned on
        told = [re.sub(r"^(RMSE|MAE):", rf"\1 of {result['scale']}:", line) for line in told]
    if result.get("names_one_class"):
        told.append("Every row was put into the same class.")
    return told
