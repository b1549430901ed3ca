"""``treelens explain``: a report on a model and its predictions, to open in a browser."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command


def explain_cli(
    model: options.ModelPath,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    target: options.Truth = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Explain the predictions of a MODEL on DATA in one HTML file that needs nothing else."""
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, kind_of, load_model, read_for_model
        from treelens.storage.files import checked_target

        kind_of(data)
        checked_target(out, reads=chain([model], files_behind(data)))
        loaded = load_model(model, options.checked_jobs(jobs))
        table = read_for_model(output, data, loaded, target, smiles)
        loaded.report(out, table.graphs, table.y, names=table.source)
        output.finish({"n_graphs": len(table.graphs), "out": str(out)}, _show)


def _show(output: Output, result: dict[str, Any]) -> None:
    output.line(f"Report: {result['out']}")
