"""``treelens fragments``: the fragments with the largest effects on predictions."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command


def fragments_cli(
    model: options.ModelPath,
    data: options.Data,
    top: Annotated[int, typer.Option("--top", help="At most so many.", min=1)] = 40,
    target: options.Truth = None,
    out: Annotated[
        Path | None, typer.Option("--csv", "-o", help="Write the table to this CSV file.")
    ] = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Print the fragments of DATA with the largest effects on the predictions of a MODEL.

    Best with the data that the model was trained on: each graph is then explained by the others.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, kind_of, load_model, read_for_model
        from treelens.cli.fit import noun_of
        from treelens.storage.csv_text import csv_text
        from treelens.storage.files import checked_target, whole_file

        kind_of(data)
        if out is not None:
            checked_target(out, reads=chain([model], files_behind(data)))
        loaded = load_model(model, options.checked_jobs(jobs))
        rows = read_for_model(output, data, loaded, target, smiles)
        y = None if target is None or rows.y is None else rows.learned()[1]
        table = loaded.fragments(rows.graphs, y, n_fragments=top)
        result: dict[str, Any] = {
            "model": str(model),
            "noun": noun_of(rows.graphs.recipe),
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
    output.table(["", "fragment", "SMARTS", f"effect{toward}", result["noun"]], rows, "Fragments")
    if "effect" in result["size"]:
        size = result["size"]
        output.line(
            f"Size, apart from structure: {size['effect']:+.3f} for {size['mean_nodes']:.1f} "
            f"{'atoms' if result['noun'] == 'molecules' else 'nodes'}."
        )
    if "out" in result:
        output.line(f"The table: {result['out']}")
