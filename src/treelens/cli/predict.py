"""``treelens predict``: numbers or classes of new graphs, row by row."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent
from treelens.cli.csv_text import csv_text

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
    atom_label: options.AtomLabel = None,
    hydrogens: options.Hydrogens = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict numbers or classes of DATA with a MODEL.

    Writes one line a row. Numbers: prediction, standard deviation, the interval that should hold
    nine of ten new measurements, and the share of the graph that training never saw. Classes:
    class, its probability, decision value, and that share. Both: whether the model may be believed
    there (in_domain), the error to expect, and the similarity to the nearest training graph.
    Rows that cannot be read stay, empty, with the reason in the last column.
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
        loaded = load_model(model)
        loaded.n_jobs = jobs
        reading = Reading(atom_label, hydrogens, loaded.recipe_)
        rows = read_data(data, target, smiles, note=output.note, reading=reading)
        if is_regressor(loaded):
            rows = rows.with_numbers()
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


def prediction_table(model: Any, data: GraphData) -> pd.DataFrame:
    """Classes: one line per row of the source, in its order.

    Columns: ``row`` (from 1), ``smiles`` where there are any, ``class``, ``probability`` (of that
    class), ``decision`` (two classes: positive for the second; several: of the predicted one),
    ``out_of_vocabulary``, one ``probability CLASS`` per class, of a Gaussian process ``in_domain``,
    ``expected_error`` and ``similarity`` (to the nearest training graph), and ``problem``.
    """
    import numpy as np
    import pandas as pd

    if hasattr(model, "predict_table"):
        found = model.predict_table(data.graphs)
        found["class"] = pd.array(found["class"].astype(str), dtype="object")
        return _by_row(_with_domain_last(found, model), data)
    decisions = model.decision_function(data.graphs)
    probabilities = model.predict_proba(data.graphs)  # (n_graphs, n_classes)
    classes = model.predict(data.graphs)
    codes = np.searchsorted(model.classes_, classes)
    everyone = np.arange(len(codes))
    columns: dict[str, Any] = {
        "class": pd.array(classes.astype(str), dtype="object"),
        "probability": probabilities[everyone, codes],
        "decision": decisions if decisions.ndim == 1 else decisions[everyone, codes],
        "out_of_vocabulary": out_of_vocabulary(model, data.graphs),
        **{f"probability {c}": probabilities[:, k] for k, c in enumerate(model.classes_.tolist())},
    }
    return _by_row(columns, data)


def _with_domain_last(found: pd.DataFrame, model: Any) -> dict[str, Any]:
    """The columns of a model's own table in the order of the file."""
    chances = [f"probability {c}" for c in model.classes_.tolist()]
    names = {"class": "class", "probability": "probability", "decision": "decision",
             "out_of_vocabulary": "out_of_vocabulary", **{c: c for c in chances},
             **{c: c for c in ("in_domain", "expected_error", "similarity")}}  # fmt: skip
    return {new: found[old].to_numpy() for old, new in names.items()}


def number_predictions(model: Any, data: GraphData) -> pd.DataFrame:
    """Numbers: one line per row of the source, in its order.

    Columns: ``row`` (from 1), ``smiles`` where there are any, ``prediction``, ``std`` (of a new
    measurement, noise included), ``lower_90`` and ``upper_90``, between which nine of ten should
    lie, ``out_of_vocabulary``, ``in_domain``, ``expected_error``, ``similarity`` (to the nearest
    training graph), and ``problem``.
    """
    found = model.predict_table(data.graphs)
    names = ("prediction", "std", "lower_90", "upper_90", "out_of_vocabulary", "in_domain",
             "expected_error", "similarity")  # fmt: skip
    return _by_row({name: found[name].to_numpy() for name in names}, data)


def out_of_vocabulary(model: Any, graphs: Any) -> Any:
    """Share of each graph's patterns that training never saw, of any model."""
    return model.out_of_vocabulary(graphs)


def _by_row(columns: dict[str, Any], data: GraphData) -> pd.DataFrame:
    """Columns about the graphs, with an empty line for each row that could not be read."""
    import numpy as np
    import pandas as pd

    table = pd.DataFrame(columns, index=data.rows).reindex(np.arange(data.n_rows))
    table.insert(0, "row", np.arange(1, data.n_rows + 1))
    if data.texts is not None:
        table.insert(1, "smiles", data.texts)
    table["problem"] = np.where(
        np.isin(np.arange(data.n_rows), data.rows), "", "no molecule that RDKit can read"
    )
    return table


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
    if data.y is not None and not of_numbers and not summary.pop("any_known"):
        output.note("None of the true classes is a class of the model: nothing can be right.")
    return {
        "n_rows": data.n_rows,
        "n_unreadable": data.n_unreadable,
        "mean_unseen_share": unseen,
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

    readable = table.iloc[data.rows]
    summary: dict[str, Any] = {
        "predicted": class_sizes(readable["class"].to_numpy().astype(str)),
        "accuracy": None,
    }
    if data.y is None:
        return summary
    chances = readable[[f"probability {c}" for c in model.classes_.tolist()]].to_numpy()
    rarer = np.bincount(model.train_codes_, minlength=2)
    positive = model.classes_[int(rarer[1] <= rarer[0])] if len(model.classes_) == 2 else None
    named = readable["class"].to_numpy().astype(str)
    scores = class_scores(data.y, chances, model.classes_, named, positive)
    known = bool(np.isin(data.y.astype(str), model.classes_.astype(str)).any())
    return {**summary, **scores, "any_known": known}


def _sum_up_numbers(data: GraphData, table: pd.DataFrame) -> dict[str, Any]:
    from treelens.cli.scores import number_scores

    readable = table.iloc[data.rows]
    mean, std = (readable[name].to_numpy() for name in ("prediction", "std"))
    scores = {} if data.y is None else number_scores(data.y, mean, std)
    return {"predicted": {"smallest": mean.min(), "largest": mean.max()}, **scores}


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV, whole or not at all; see :func:`treelens.cli.csv_text.csv_text`."""
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
        what = f"from {predicted['smallest']:.4g} to {predicted['largest']:.4g}"
    else:
        what = ", ".join(f"{name} {n}" for name, n in predicted.items())
    return f"{result['n_rows']} rows; predicted {what}; {result['n_unreadable']} not readable."


def _scores(result: dict[str, Any]) -> list[str]:
    """Sentences about how near the truth the predictions came, where it is known."""
    from treelens.cli.scores import score_sentences

    told = score_sentences(result)
    if result.get("names_one_class"):
        told.append("Every row was put into the same class.")
    return told
