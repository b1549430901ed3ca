"""``treelens suggest``: the candidates of a pool to measure next."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent

Minimize = Annotated[bool, options.option(
    "--minimize", help="Small values are wanted; of two classes the first."
)]  # fmt: skip
Wanted = Annotated[str | None, options.option(
    "--wanted", metavar="CLASS", default="the second of two",
    help="Of a model of classes, the class that is looked for.",
)]  # fmt: skip
_SHOWN = 24  # rows


def suggest_cli(
    model: options.ModelPath,
    pool: options.Data,
    n: Annotated[int, typer.Option("--n", help="How many to choose.", min=1)] = 24,
    strategy: Annotated[str, options.option(
        "--strategy",
        help="expected_improvement, ucb (mean plus --exploration standard deviations), thompson "
        "(joint samples), greedy (largest means) or uncertainty.",
    )] = "expected_improvement",
    minimize: Minimize = False,
    where: Annotated[str | None, options.option(
        "--where", metavar="CONDITION",
        help="Only candidates that meet it, such as 'MW < 500 and logP <= 5': names are columns of "
        "the table, or RDKit's descriptors.",
    )] = None,
    wanted: Wanted = None,
    exploration: Annotated[float, options.option(
        "--exploration", help="Standard deviations that ucb adds.", min=0.0,
    )] = 1.0,
    out: Annotated[Path | None, options.option(
        "--out", "-o", help="The CSV file to write.", default="print a table",
    )] = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    seed: Annotated[int, options.option("--seed", help="Of thompson.", min=0)] = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Choose candidates of DATA to measure next, as one batch, with a MODEL.

    Writes one line a choice, the first choice first: its row in DATA (index, from 0), name,
    prediction with its 90 % interval, the probability that a measurement beats the best one so far,
    and the nearest measured compound with its value. Candidates that the model was fitted to are
    left out.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind, load_model, read_data
        from treelens.decisions.suggest import suggest
        from treelens.storage.csv_text import csv_text
        from treelens.storage.files import checked_target, whole_file

        if out is not None:
            checked_target(out, reads=chain([model], files_behind(pool)))
        loaded = load_model(model, options.checked_jobs(jobs))
        table = read_data(pool, smiles=smiles, names=ids, model=loaded)
        output.note(*table.notes)
        found = suggest(
            loaded, table, n, strategy, not minimize, where=where, wanted=wanted,
            exploration=exploration, random_state=seed,
        )  # fmt: skip
        result: dict[str, Any] = {
            "model": str(model), "pool": pool, "n_candidates": len(table.graphs),
            "strategy": strategy, "suggestions": found.to_dict("records"),
        }  # fmt: skip
        if out is not None:
            with whole_file(out) as file:
                file.write(csv_text(found, index=False).encode("utf-8"))
            result["out"] = str(out)
        output.finish(result, _show)


def _show(output: Output, result: dict[str, Any]) -> None:
    rows = []
    for row in result["suggestions"][:_SHOWN]:
        shown = {"row": row["index"] + 1, "molecule": row.get("name") or row.get("smiles", "")}
        if "prediction" in row:
            shown["prediction"] = f"{row['prediction']:.4g}"
            shown["90 % interval"] = f"{row['lower_90']:.4g} to {row['upper_90']:.4g}"
            shown["beats the best"] = percent(row["probability_better"])
        else:
            shown["class"], shown["probability"] = row["class"], percent(row["probability"])
        near = row.get("nearest_name") or row.get("nearest_smiles") or ""
        shown["nearest measured"], shown["similarity"] = near, f"{row['similarity']:.2f}"
        shown["its value"] = row["nearest_value"]
        rows.append(shown)
    title = f"{len(result['suggestions'])} of {result['n_candidates']} candidates"
    output.table(list(rows[0]), [list(row.values()) for row in rows], title)
    if len(result["suggestions"]) > _SHOWN and "out" not in result:
        output.line(f"The first {_SHOWN}; --out FILE writes all.")
    if "out" in result:
        output.line(f"The table: {result['out']}")
