"""``treelens suggest`` and ``advise``: what to measure next, and which changes would help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent, shortened

_SHOWN = 24  # rows
_LONGEST = 14  # characters of a molecule: a line has 80


@command
def suggest_cli(
    output: Output,
    model: options.ModelPath,
    pool: options.Data,
    n: Annotated[int, typer.Option(help="How many to choose.", min=1)] = 24,
    strategy: Annotated[str, options.option(
        help="expected_improvement, ucb (mean plus --exploration standard deviations), thompson "
        "(joint samples), greedy (largest means) or uncertainty.",
    )] = "expected_improvement",
    minimize: options.Minimize = False,
    where: Annotated[str | None, options.option(
        metavar="CONDITION",
        help="Only candidates that meet it, such as 'MW < 500 and logP <= 5': names are columns of "
        "the table, or RDKit's descriptors.",
    )] = None,
    wanted: options.Wanted = None,
    exploration: Annotated[float, options.option(
        help="Standard deviations that ucb adds.", min=0.0,
    )] = 1.0,
    out: options.CsvOut = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    seed: Annotated[int, options.option(help="Of thompson.", min=0)] = 0,
    jobs: options.Jobs = -1,
) -> None:  # fmt: skip
    """Choose candidates of DATA to measure next, as one batch, with a MODEL.

    Writes one line a choice, the first choice first: its position in DATA (index, from 0), name,
    prediction with its 90 % interval, the probability that a measurement beats the best one so far
    (better), whether it is in the domain of applicability, and the nearest measured compound with
    its value. Candidates that the model was fitted to are left out.
    """
    from treelens.decisions.suggest import suggest

    loaded = options.load_model(model, jobs, [pool], [out])
    table = options.read_data(pool, smiles=smiles, names=ids, model=loaded)
    output.note(*table.notes)
    found = suggest(
        loaded, table, n, strategy, not minimize, where=where, wanted=wanted,
        exploration=exploration, random_state=seed,
    )  # fmt: skip
    result: dict[str, Any] = {
        "model": str(model), "pool": pool, "n_candidates": len(table.graphs),
        "n_meeting_condition": found.attrs["n_candidates"], "wanted": found.attrs["wanted"],
        "strategy": strategy, "suggestions": found.to_dict("records"),
    }  # fmt: skip
    output.finish(result, _show_suggestions, out, table=found)


def _show_suggestions(output: Output, result: dict[str, Any]) -> None:
    rows = []
    for row in result["suggestions"]:
        molecule = row.get("name") or row.get("smiles") or f"index {row['index']}"
        shown = {"molecule": shortened(str(molecule), _LONGEST)}
        if "prediction" in row:
            interval = f"{row['lower_90']:.3g} to {row['upper_90']:.3g}"
            shown["prediction (90 %)"] = f"{row['prediction']:.3g} ({interval})"
            shown["better"] = percent(row["probability_better"])
        else:
            shown["class"] = shortened(str(row["class"]), _LONGEST)
            shown["probability"] = percent(row["probability"])
        shown["domain"] = "yes" if row["in_domain"] else "no"
        near = row.get("nearest_name") or row.get("nearest_smiles") or ""
        value = row["nearest_value"]
        value = f"{value:.3g}" if isinstance(value, float) else value
        shown["nearest (value)"] = f"{shortened(str(near), _LONGEST - 3)} ({value})".lstrip()
        rows.append(shown)
    n_met, n_all = result["n_meeting_condition"], result["n_candidates"]
    title = f"{len(rows)} of {n_met} candidates"
    title += "" if n_met == n_all else f" that meet the condition ({n_all} in all)"
    title += "" if result["wanted"] is None else f", looking for class {result['wanted']}"
    _show_first(output, result, list(rows[0]), [list(row.values()) for row in rows], title)


@command
def advise_cli(
    output: Output,
    model: options.ModelPath,
    lead: Annotated[str, typer.Argument(
        metavar="LEAD", show_default=False,
        help="The molecule to change: a SMILES, or a file whose first molecule it is.",
    )],
    n: Annotated[int, typer.Option(help="How many changes.", min=1)] = 50,
    minimize: options.Minimize = False,
    wanted: options.Wanted = None,
    training: Annotated[str | None, options.option(
        metavar="FILE", default="the molecules that the model keeps",
        help="The table that the model was fitted to.",
    )] = None,
    min_pairs: Annotated[int, options.option(
        help="Matched pairs that must show a change.", min=1,
    )] = 1,
    largest: Annotated[int, options.option(
        "--largest-change", help="Heavy atoms of a substituent.", min=1,
    )] = 10,
    out: options.CsvOut = None,
    html: Annotated[Path | None, options.option(
        help="Write the table with drawings to this HTML file.",
    )] = None,
    jobs: options.Jobs = -1,
) -> None:  # fmt: skip
    """Predict what replacing a substituent of a LEAD would do, with a MODEL.

    Replacements are those that matched pairs of the training molecules show. Each line: the change,
    the new molecule, the predicted difference with the standard deviation of the difference, the
    number of pairs that show the change and their mean measured difference, which may have the
    opposite sign, whether the new molecule lies in the domain of applicability, and the changes of
    weight and logP.
    """
    from treelens.decisions.advise import advise, write_advice
    from treelens.models.predictions import smiles_of

    reads = [lead] if training is None else [lead, training]
    loaded = options.load_model(model, jobs, reads, [out, html])
    texts = smiles_of(options.read_data(lead, model=loaded).graphs)
    if texts is None:
        raise ValueError(f"{lead} has no molecule: expected a SMILES, or a file with one.")
    if len(texts) > 1:
        output.note(f"{lead} has {len(texts)} molecules: only the first is looked at.")
    known = None
    if training is not None:
        known = options.read_for_model(output, training, loaded, learn=True)
    table = advise(
        loaded, texts[0], n, not minimize, wanted=wanted, min_pairs=min_pairs,
        largest_change=largest, training=known,
    )  # fmt: skip
    result: dict[str, Any] = {
        "model": str(model), "lead": texts[0], "wanted": table.attrs["wanted"],
        "advice": table.to_dict("records"),
    }  # fmt: skip
    if html is not None:
        result["html"] = str(write_advice(table, texts[0], html))
    output.finish(result, _show_advice, out, table=table)


def _show_advice(output: Output, result: dict[str, Any]) -> None:
    opposite = [row["pair_mean"] * row["difference"] < 0 for row in result["advice"]]
    rows = [
        [
            row["change"], row["smiles"], f"{row['difference']:+.3g} ± {row['std']:.2g}",
            f"{row['pair_mean']:+.3g} of {row['n_pairs']}{' (!)' if against else ''}",
            "yes" if row["in_domain"] else "no",
            f"{row['weight_change']:+.1f}", f"{row['logp_change']:+.2f}",
        ]
        for row, against in zip(result["advice"], opposite, strict=True)
    ]  # fmt: skip
    columns = ["change", "molecule", "difference", "mean of pairs", "domain", "weight", "logP"]
    title = f"Changes of {result['lead']}"
    if result["wanted"] is not None:
        title += f", towards class {result['wanted']} (differences of the decision value)"
    _show_first(output, result, columns, rows, title, cut=columns[:2])
    if any(opposite[:_SHOWN]):
        output.line("(!) The pairs were measured to differ the other way than predicted.")
    if "html" in result:
        output.line(f"The page: {result['html']}")


def _show_first(
    output: Output, result: dict[str, Any], columns: list[str], rows: list[Any], title: str,
    cut: Sequence[str] = (),
) -> None:  # fmt: skip
    output.table(columns, rows[:_SHOWN], title, cut)
    if len(rows) > _SHOWN and "out" not in result:
        output.line(f"The first {_SHOWN} of {len(rows)}; --out FILE writes all.")
