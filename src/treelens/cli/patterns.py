"""``treelens patterns``: the patterns of a model, with their weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from treelens.cli import options
from treelens.cli.console import Output, command
from treelens.storage.csv_text import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from treelens.estimators.files import AnyModel

_SHARE = "frequency "  # what the columns of classes are called
ORDERS = ("auto", "weight", "difference", "support")


def patterns_cli(
    model: options.ModelPath,
    top: Annotated[int, typer.Option("--top", help="How many to print.", min=0)] = 20,
    sort: Annotated[str, options.option(
        "--sort",
        help="weight; difference, by its size (two classes: mean share of nodes in the second "
        "minus the first; more: largest minus smallest; numbers: mean of graphs with it minus "
        "without); support; auto: weight where weights were learned, else difference.",
    )] = "auto",
    out: Annotated[Path | None, options.option(
        "--out", "-o", help="Write all patterns to this CSV file.",
    )] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Print the patterns of a MODEL: weight, support, and the class or values it goes with."""
    with command(as_json, debug) as output:
        from treelens.estimators.files import load
        from treelens.estimators.svc import GraphSVC
        from treelens.storage.files import checked_target, whole_file

        if out is not None:
            checked_target(out, reads=[model])
        loaded = load(model)
        result = {
            "model": str(model),
            "method": "svc" if isinstance(loaded, GraphSVC) else "evidence",
            "learned": learned_weights(loaded),
            "recipe": None if loaded.recipe_ is None else loaded.recipe_.to_plain(),
            "n_patterns": len(loaded.weights_),
            "patterns": top_patterns(loaded, top, sort),
        }
        if out is not None:
            with whole_file(out) as file:
                file.write(csv_text(loaded.patterns_, index=True).encode("utf-8"))
            result["out"] = str(out)
        output.finish(result, _show)


def learned_weights(model: AnyModel) -> bool:
    """Whether the weights of a model are learned ones, not uniform."""
    from treelens.estimators.svc import GraphSVC

    if isinstance(model, GraphSVC):
        return bool(model.best_params_["weight_radius"] > 0)
    return bool(model.best_weights_ != "uniform")


def top_patterns(model: AnyModel, n: int, order: str = "auto") -> list[dict[str, Any]]:
    """The first ``n`` patterns in an order of :data:`ORDERS`, one dict each."""
    options.check_choice("--sort", order, ORDERS)
    table = model.patterns_  # sorted by weight already
    table["difference"] = _differences(table)
    if order == "auto":
        order = "weight" if learned_weights(model) else "difference"
    if order != "weight":
        table = table.sort_values(order, ascending=False, kind="stable", key=abs)
    return cast("list[dict[str, Any]]", table.head(n).reset_index().to_dict("records"))


def _differences(table: pd.DataFrame) -> pd.Series:
    if "mean_with" in table:
        return table["mean_with"] - table["mean_without"]
    shares = table.filter(regex=f"^{_SHARE}")
    if shares.shape[1] == 2:
        return shares.iloc[:, 1] - shares.iloc[:, 0]
    return shares.max(axis=1) - shares.min(axis=1)


def _compared(columns: Iterable[Any]) -> str:
    """The head of the column of differences."""
    columns = list(columns)
    if "mean_with" in columns:
        return "with - without"
    classes = [str(c).removeprefix(_SHARE) for c in columns if str(c).startswith(_SHARE)]
    return f"{classes[1]} - {classes[0]}" if len(classes) == 2 else "largest - smallest"


def _show(output: Output, result: dict[str, Any]) -> None:
    from treelens.cli.fit import noun_of
    from treelens.graphs.recipe import GraphRecipe

    recipe = result["recipe"]
    source = "graphs from another source" if recipe is None else GraphRecipe.from_plain(recipe)
    output.line(f"Fitted to: {source}")
    found = result["patterns"], result["learned"], result["n_patterns"], noun_of(recipe)
    show_patterns(output, *found)
    if "out" in result:
        output.line(f"All patterns: {result['out']}")


def show_patterns(
    output: Output, patterns: list[dict[str, Any]], learned: bool, n_patterns: int, noun: str
) -> None:
    """A table; ``pattern`` reads root(neighbour(...),...), with the bond before the neighbour."""
    of_numbers = bool(patterns) and "mean_with" in patterns[0]
    means = {"mean with it": "mean_with", "mean without": "mean_without"}
    side = means if of_numbers else {"class": "class"}
    rows = [
        [row["pattern"], row["depth"], float(row["weight"]), row["support"],
         *(row[name] if of_numbers else str(row[name]) for name in side.values()),
         float(row["difference"])]
        for row in patterns
    ]  # fmt: skip
    title = f"Patterns: {len(rows)} of {n_patterns}" + ("" if learned else " (weights are uniform)")
    compared = _compared(patterns[0]) if patterns else "difference"
    columns = ["pattern", "depth", "weight", noun, *side, compared]
    output.table(columns, rows, title)
