"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, counted, percent
from treelens.cli.covariates import needed_by
from treelens.cli.molecules import reasons
from treelens.cli.predict_columns import class_columns, number_columns
from treelens.cli.transform import Transform, transform_named
from treelens.storage.csv_text import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from treelens.cli.data import GraphData
    from treelens.estimators.files import FullModel

# Beyond this mean share of patterns never seen in training, the labels are probably other ones.
_STRANGE = 0.5


def predict_cli(
    model: options.ModelPath,
    data: options.Data,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The CSV file to write.", show_default="print it"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", help="A column with the truth, to score predictions.", metavar="COLUMN"
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
            "on where a stopped one was. Needs --out.",
            metavar="ROWS",
            min=1,
            show_default="all at once",
        ),
    ] = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict numbers or classes of DATA with a MODEL.

    Writes one line a row, after the columns that name it (--id). Numbers: prediction, standard
    deviation, the interval that should hold nine of ten new measurements, and the share of the
    graph that training never saw, in the units of the training table. Classes: class, its
    probability, decision value, and that share. Both: whether the model may be believed there
    (in_domain), the error to expect, and the similarity to the nearest training graph. Rows that
    cannot be read stay, empty, with the reason in the last column.
    Text that a spreadsheet would run as a formula gets a single quote in front.
    Molecules are read as those were that the model was fitted to.
    """
    with command(as_json, debug) as output:
        from sklearn.base import is_regressor

        from treelens.cli.data import files_behind, read_data
        from treelens.cli.reading import Reading
        from treelens.estimators.files import load_model
        from treelens.storage.files import checked_target

        if out is not None:
            checked_target(out, reads=chain([model], files_behind(data)))
        if part_size is not None:
            asked = (smiles, ids, atom_label, hydrogens)
            output.finish(_in_parts(model, data, out, target, part_size, asked, jobs), _show)
            return
        loaded = load_model(model)
        loaded.n_jobs = jobs
        reading = Reading(atom_label, hydrogens, loaded.recipe_)
        rows = read_data(
            data, target, smiles, note=output.note, reading=reading, ids=ids,
            covariates=needed_by(loaded),
        )  # fmt: skip
        if is_regressor(loaded):
            rows = rows.with_numbers(learned_scale(loaded))
            table = number_predictions(loaded, rows)
        else:
            table = prediction_table(loaded, rows)
        result = summarise_predictions(loaded, rows, table, output)
        if out is not None:
            write_table(table, out)
            result["out"] = str(out)
        elif as_json:
            result["predictions"] = table.to_dict("records")
        else:
            output.csv(csv_text(table, index=False))
        output.finish(result, _show)


def _in_parts(
    model: Path, data: str, out: Path | None, target: str | None, part_size: int,
    asked: tuple[Any, ...], jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Predict a table part by part."""
    from treelens.cli.console import InputError
    from treelens.cli.predict_parts import PartsPlan, predict_in_parts

    if out is None:
        raise InputError("--part-size needs --out: parts are kept beside the file to write.")
    if target is not None:
        raise InputError("--part-size: predictions are not scored in parts. Leave --target out.")
    out = out.expanduser()
    result = predict_in_parts(PartsPlan(str(model), data, part_size, *asked), out, jobs)
    return {**result, "out": str(out)}


def prediction_table(model: Any, data: GraphData) -> pd.DataFrame:
    """Classes: one line per row of the source, in its order.

    Columns: ``row`` (from 1), those that name the rows, ``smiles`` where there are any, those of
    :func:`treelens.cli.predict_columns.class_columns`, and ``problem``.
    """
    return _by_row(class_columns(model, data.graphs), data)


def number_predictions(model: Any, data: GraphData) -> pd.DataFrame:
    """The same for numbers: see :func:`treelens.cli.predict_columns.number_columns`."""
    return _by_row(number_columns(model, data.graphs, data.transform), data)


def learned_scale(model: Any) -> Transform | None:
    """The scale that a model of numbers learned on."""
    recipe = model.recipe_
    known = None if recipe is None or recipe.table is None else recipe.table.transform
    return transform_named(known)


def _by_row(columns: dict[str, Any], data: GraphData) -> pd.DataFrame:
    """Columns about the graphs, with an empty line for each row that could not be read."""
    import numpy as np
    import pandas as pd

    if "standardized" in data.graphs.graph_data:
        columns = {"standard_smiles": _smiles_of(data), **columns}
    elif "mol" in data.graphs.graph_data:
        columns = {"smiles": _smiles_of(data), **columns}
    table = pd.DataFrame(columns, index=data.rows).reindex(np.arange(data.n_rows))
    before = {"row": np.arange(1, data.n_rows + 1), **_named(data.ids, columns)}
    if data.texts is not None:
        before["smiles"] = data.texts
    problem = pd.Series("", index=table.index, dtype="object")
    for row, why in reasons(data.texts, data.unreadable_rows.tolist()).items():
        problem[row] = why
    return pd.concat([pd.DataFrame(before, index=table.index), table], axis=1).assign(
        problem=problem
    )


def _smiles_of(data: GraphData) -> list[str]:
    """The SMILES of each molecule: of its standard form, or of what an SDF holds."""
    from treelens.graphs.gathering import rdkit

    known = data.graphs.graph_data
    if "smiles" in known:
        return list(known["smiles"])
    return [rdkit().MolToSmiles(molecule) for molecule in known["mol"]]


def _named(ids: dict[str, list[str]], columns: dict[str, Any]) -> dict[str, list[str]]:
    """Columns that name the rows, under their own names where these are free."""
    taken = {"row", "smiles", "problem", *columns}  # a table may call its own columns so
    return {name if name not in taken else f"{name} (given)": x for name, x in ids.items()}


def summarise_predictions(
    model: FullModel, data: GraphData, table: pd.DataFrame, output: Output
) -> dict[str, Any]:
    """Counts, scores where the truth is known, and notes on what looks wrong."""
    from treelens.cli.data import unreadable_rows

    if data.n_unreadable:
        output.note(
            f"{data.n_unreadable} of {data.n_rows} rows could not be read and have an empty "
            f"prediction: {unreadable_rows(data)}."
        )
    of_numbers = data.task == "regression"
    unseen = float(table["out_of_vocabulary"].mean())
    if unseen > _STRANGE:
        output.note(
            f"Training never saw {percent(unseen)} of what these graphs are made of: they are "
            "probably labelled in another way, and the predictions mean little."
        )
    if "in_domain" in table:
        _tell_outside(table.iloc[data.rows]["in_domain"].astype(bool), output)
    summary = _sum_up_numbers(data, table) if of_numbers else _sum_up_classes(model, data, table)
    if data.labelled is not None and not data.labelled.all():
        output.note(
            f"{counted(int((~data.labelled).sum()), 'row')} without {data.target_name!r}: "
            "predicted, and not scored."
        )
    if not summary.pop("any_known", True):
        output.note("None of the true classes is a class of the model: nothing can be right.")
    return {
        "n_rows": data.n_rows,
        "n_unreadable": data.n_unreadable,
        "mean_out_of_vocabulary": unseen,
        **summary,
    }


def _tell_outside(inside: Any, output: Output) -> None:
    n_outside = int((~inside).sum())
    if n_outside:
        output.note(
            f"{n_outside} of {len(inside)} graphs lie outside of where the model may be believed "
            "(in_domain is False): expect larger errors there."
        )


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
    from treelens.models.metrics import number_scores

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
    output.progress(" ".join([_counts(result), *_scores(result)]))
    if "out" in result:
        output.line(f"Predictions: {result['out']}")


def _counts(result: dict[str, Any]) -> str:
    predicted = result["predicted"]
    if "accuracy" not in result:
        ends = [predicted[name] for name in ("smallest", "largest")]
        what = "nothing" if None in ends else "from {:.4g} to {:.4g}".format(*ends)
    else:
        what = ", ".join(f"{name} {n}" for name, n in predicted.items())
    return f"{result['n_rows']} rows; predicted {what}; {result['n_unreadable']} not readable."


def _scores(result: dict[str, Any]) -> list[str]:
    """Sentences about how near the truth the predictions came, where it is known."""
    from treelens.cli.scores import score_sentences

    told = score_sentences(result)
    if "scale" in result:  # errors are those on the scale that was learned on
        told = [re.sub(r"^(RMSE|MAE):", rf"\1 of {result['scale']}:", line) for line in told]
    if result.get("names_one_class"):
        told.append("Every row was put into the same class.")
    return told
