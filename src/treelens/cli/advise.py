"""``treelens advise``: which changes of a molecule would help."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command
from treelens.cli.suggest import Minimize, Wanted

_SHOWN = 20  # rows


def advise_cli(
    model: options.ModelPath,
    lead: Annotated[str, typer.Argument(
        metavar="LEAD", show_default=False,
        help="The molecule to change: a SMILES, or a file whose first molecule it is.",
    )],
    n: Annotated[int, typer.Option("--n", help="How many changes.", min=1)] = 50,
    minimize: Minimize = False,
    wanted: Wanted = None,
    training: Annotated[str | None, options.option(
        "--training", metavar="FILE", default="the molecules that the model keeps",
        help="The table that the model was fitted to.",
    )] = None,
    min_pairs: Annotated[int, options.option(
        "--min-pairs", help="Matched pairs that must show a change.", min=1,
    )] = 1,
    largest: Annotated[int, options.option(
        "--largest-change", help="Heavy atoms of a substituent.", min=1,
    )] = 10,
    out: Annotated[Path | None, options.option(
        "--out", "-o", help="Write the table to this CSV file.",
    )] = None,
    html: Annotated[Path | None, options.option(
        "--html", help="Write the table with drawings to this HTML file.",
    )] = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Predict what replacing a substituent of a LEAD would do, with a MODEL.

    Replacements are those that matched pairs of the training molecules show. Each line: the change,
    the new molecule, the predicted difference with the standard deviation of the difference, the
    pairs that support it with their mean measured difference, whether the new molecule lies in the
    domain of applicability, and the changes of weight and logP.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, load_model, read_data
        from treelens.decisions.advice_page import write_advice
        from treelens.decisions.advise import advise
        from treelens.models.training import smiles_of
        from treelens.storage.csv_text import csv_text
        from treelens.storage.files import checked_target, whole_file

        reads = list(chain([model], files_behind(lead), files_behind(training or "")))
        for path in (out, html):
            if path is not None:
                checked_target(path, reads=reads)
        loaded = load_model(model, options.checked_jobs(jobs))
        molecules = read_data(lead, model=loaded)
        texts = smiles_of(molecules.graphs)
        if texts is None:
            raise InputError(f"{lead} has no molecule: expected a SMILES, or a file with one.")
        if len(texts) > 1:
            output.note(f"{lead} has {len(texts)} molecules: only the first is looked at.")
        table = advise(
            loaded, texts[0], n, not minimize, wanted=wanted, min_pairs=min_pairs,
            largest_change=largest, training=_training(output, training, loaded),
        )  # fmt: skip
        result: dict[str, Any] = {
            "model": str(model), "lead": texts[0], "advice": table.to_dict("records"),
        }  # fmt: skip
        if out is not None:
            with whole_file(out) as file:
                file.write(csv_text(table, index=False).encode("utf-8"))
            result["out"] = str(out)
        if html is not None:
            result["html"] = str(write_advice(table, texts[0], html))
        output.finish(result, _show)


def _training(output: Output, source: str | None, model: Any) -> Any:
    """The training table that the command names, read as the model was fitted."""
    from treelens.graphs.table_reader import read_table

    if source is None:
        return None
    record = None if model.recipe_ is None else model.recipe_.table
    target = "auto" if record is None or record.target is None else record.target
    task = "classification" if hasattr(model, "classes_") else "regression"
    transform = None if record is None else record.transform
    table = read_table(source, target=target, task=task, transform=transform, model=model)
    output.note(*table.notes)
    return table


def _show(output: Output, result: dict[str, Any]) -> None:
    rows = []
    for row in result["advice"][:_SHOWN]:
        rows.append([
            row["change"], row["smiles"], f"{row['difference']:+.3g} ± {row['std']:.2g}",
            row["n_pairs"], f"{row['pair_mean']:+.3g}", "yes" if row["in_domain"] else "no",
            f"{row['weight_change']:+.1f}", f"{row['logp_change']:+.2f}",
        ])  # fmt: skip
    columns = ["change", "new molecule", "difference ± std", "pairs", "their mean", "in domain",
               "weight", "logP"]  # fmt: skip
    output.table(columns, rows, f"Changes of {result['lead']}")
    if len(result["advice"]) > _SHOWN:
        output.line(f"The first {_SHOWN} of {len(result['advice'])}.")
    for name, what in (("out", "table"), ("html", "page")):
        if name in result:
            output.line(f"The {what}: {result[name]}")
