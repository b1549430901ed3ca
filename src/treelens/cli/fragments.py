"""``treelens fragments``: the fragments that move a model's predictions."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command
from treelens.cli.covariates import needed_by


def fragments_cli(
    model: options.ModelPath,
    data: options.Data,
    top: Annotated[int, typer.Option("--top", help="At most so many.", min=1)] = 40,
    target: Annotated[
        str | None,
        typer.Option("--target", help="A column with the true class or number.", metavar="COLUMN"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--csv", "-o", help="Write the table to this CSV file.")
    ] = None,
    smiles: options.Smiles = None,
    atom_label: options.AtomLabel = None,
    hydrogens: options.Hydrogens = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Print which fragments of DATA move the predictions of a MODEL, and by how much.

    Best given the data that the model was trained on: each graph is then explained by the others.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, read_data
        from treelens.cli.places import load_before_data, refuse_model_after_models
        from treelens.cli.reading import Reading
        from treelens.storage.csv_text import csv_text
        from treelens.storage.files import checked_target, whole_file

        refuse_model_after_models(data)
        if out is not None:
            checked_target(out, reads=chain([model], files_behind(data)))
        loaded = load_before_data(model)
        if not hasattr(loaded, "fragments"):
            raise InputError(f"{model}: fragments need a model that `treelens fit` wrote.")
        loaded.n_jobs = jobs
        reading = Reading(atom_label, hydrogens, loaded.recipe_)
        rows = read_data(
            data, target, smiles, note=output.note, reading=reading,
            covariates=needed_by(loaded),
        )  # fmt: skip
        table = loaded.fragments(rows.graphs, rows.y if target else None, n_fragments=top)
        result: dict[str, Any] = {
            "model": str(model),
            "n_graphs": len(rows.graphs),
            "fragments": [{"rank": k, **row} for k, row in table.to_dict("index").items()],
        }
        result |= {str(name): value for name, value in table.attrs.items()}
        if out is not None:
            with whole_file(out) as file:
                file.write(csv_text(table, index=True).encode("utf-8"))
            result["out"] = str(out)
        output.finish(result, _show)


def _show(output: Output, result: dict[str, Any]) -> None:
    rows = [
        [
            row["rank"], row["name"] or row["pattern"], row.get("smarts") or "",
            f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"],
        ]
        for row in result["fragments"]
    ]  # fmt: skip
    toward = f" (for {result['toward']})" if result["toward"] is not None else ""
    output.table(["", "fragment", "SMARTS", f"effect{toward}", "graphs"], rows, "Fragments")
    if "effect" in result["size"]:
        size = result["size"]
        output.line(
            f"Size, apart from structure: {size['effect']:+.3f} for a graph of "
            f"{size['mean_nodes']:.1f} nodes."
        )
    if "out" in result:
        output.line(f"The table: {result['out']}")
