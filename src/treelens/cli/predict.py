"""``treelens predict``: classes of new graphs, row by row."""

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
    from treelens.estimators.classifier import GraphSVC

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
            "--target", help="A column with the true class, to count hits.", metavar="COLUMN"
        ),
    ] = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict the classes of DATA with a MODEL.

    Writes one line a row: class, its probability, decision value, and the share of the graph that
    training never saw. Rows that cannot be read stay, empty, with the reason in the last column.
    Text that a spreadsheet would run as a formula gets a single quote in front.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, read_data
        from treelens.estimators.files import checked_target
        from treelens.estimators.persistence import load_model

        if out is not None:
            checked_target(out, reads=chain([model], files_behind(data)))
        loaded = load_model(model)
        loaded.n_jobs = jobs
        rows = read_data(data, target, smiles, note=output.note)
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


def prediction_table(model: GraphSVC, data: GraphData) -> pd.DataFrame:
    """One line per row of the source, in its order.

    Columns: ``row`` (from 1), ``smiles`` where there are any, ``class``, ``probability`` (of that
    class), ``decision`` (two classes: positive for the second; several: of the predicted one),
    ``unseen_share``, one ``probability CLASS`` per class, and ``problem``.
    """
    import numpy as np
    import pandas as pd

    decisions = model.decision_function(data.graphs)
    probabilities = model.predict_proba(data.graphs)  # (n_graphs, n_classes)
    classes = model.predict(data.graphs)
    codes = np.searchsorted(model.classes_, classes)
    everyone = np.arange(len(codes))
    columns: dict[str, Any] = {
        "class": classes,
        "probability": probabilities[everyone, codes],
        "decision": decisions if decisions.ndim == 1 else decisions[everyone, codes],
        "unseen_share": model.unseen_share(data.graphs),
        **{f"probability {c}": probabilities[:, k] for k, c in enumerate(model.classes_.tolist())},
    }
    columns["class"] = pd.array(classes.astype(str), dtype="object")
    table = pd.DataFrame(columns, index=data.rows).reindex(np.arange(data.n_rows))
    table.insert(0, "row", np.arange(1, data.n_rows + 1))
    if data.texts is not None:
        table.insert(1, "smiles", data.texts)
    table["problem"] = np.where(
        np.isin(np.arange(data.n_rows), data.rows), "", "no molecule that RDKit can read"
    )
    return table


def summarise_predictions(
    model: GraphSVC, data: GraphData, table: pd.DataFrame, output: Output
) -> dict[str, Any]:
    """Counts, hits where the true class is known, and notes on what looks wrong."""
    import numpy as np

    from treelens.cli.data import unreadable_rows
    from treelens.cli.fit import class_sizes

    if data.n_unreadable:
        output.note(
            f"{data.n_unreadable} of {data.n_rows} rows could not be read and have an empty "
            f"prediction: {unreadable_rows(data)}."
        )
    predicted = table["class"].dropna().to_numpy().astype(str)
    unseen = float(table["unseen_share"].mean())
    if unseen > _STRANGE:
        output.note(
            f"Training never saw {percent(unseen)} of what these graphs are made of: they are "
            "probably labelled in another way, and the predictions mean little."
        )
    hits = None
    if data.y is not None:
        hits = float(np.mean(data.y.astype(str) == predicted))
        if not np.isin(data.y.astype(str), model.classes_.astype(str)).any():
            output.note("None of the true classes is a class of the model: nothing can be right.")
    return {
        "n_rows": data.n_rows,
        "n_unreadable": data.n_unreadable,
        "predicted": class_sizes(predicted),
        "mean_unseen_share": unseen,
        "accuracy": hits,
    }


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV, whole or not at all; see :func:`treelens.cli.csv_text.csv_text`."""
    from treelens.estimators.files import whole_file

    with whole_file(path) as file:
        file.write(csv_text(table, index=False).encode("utf-8"))


def _show(output: Output, result: dict[str, Any]) -> None:
    counts = ", ".join(f"{name} {n}" for name, n in result["predicted"].items())
    sentence = (
        f"{result['n_rows']} rows; predicted {counts}; {result['n_unreadable']} not readable."
    )
    if result["accuracy"] is not None:
        sentence += f" Accuracy: {percent(result['accuracy'])}."
    output.progress(sentence)
    if "out" in result:
        output.line(f"Predictions: {result['out']}")
