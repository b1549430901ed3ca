"""``treelens explain``: a report on a model, and on its decisions, to open in a browser."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command
from treelens.cli.covariates import needed_by

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.estimators.files import AnyModel


def explain_cli(
    model: options.ModelPath,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    target: Annotated[
        str | None,
        typer.Option("--target", help="A column with the true class or number.", metavar="COLUMN"),
    ] = None,
    smiles: options.Smiles = None,
    atom_label: options.AtomLabel = None,
    hydrogens: options.Hydrogens = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Explain the predictions of a MODEL on DATA in one HTML file that needs nothing else."""
    with command(as_json, debug) as output:
        from sklearn.base import is_regressor

        from treelens.cli.data import files_behind, read_data, unreadable_rows
        from treelens.cli.places import load_before_data, refuse_model_after_models
        from treelens.cli.reading import Reading
        from treelens.cli.transform import learned_scale
        from treelens.storage.files import checked_target

        refuse_model_after_models(data)
        checked_target(out, reads=chain([model], files_behind(data)))
        loaded = load_before_data(model)
        loaded.n_jobs = jobs
        reading = Reading(atom_label, hydrogens, loaded.recipe_)
        rows = read_data(
            data, target, smiles, note=output.note, reading=reading,
            covariates=needed_by(loaded),
        )  # fmt: skip
        rows = rows.with_labels_only("skip", output.note)
        rows = rows.with_numbers(learned_scale(loaded)) if is_regressor(loaded) else rows
        if rows.n_unreadable:
            output.note(f"Left out, not readable: {unreadable_rows(rows)}.")
        write_report(loaded, out, rows)
        output.finish({"n_graphs": len(rows.graphs), "out": str(out)}, _show)


def write_report(model: AnyModel, out: Path, data: GraphData) -> None:
    """The report of a model on some graphs, with element names where the data set is known."""
    model.report(out, data.graphs, data.y, names=data.source)


def _show(output: Output, result: dict[str, Any]) -> None:
    output.line(f"Report: {result['out']}")
