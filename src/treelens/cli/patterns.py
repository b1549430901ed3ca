"""``treelens patterns``: the patterns that a model knows, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command
from treelens.storage.csv_text import csv_text

if TYPE_CHECKING:
    import pandas as pd

    from treelens.estimators.files import AnyModel

_SHARE = "frequency "  # what the columns of classes are called
ORDERS = ("auto", "weight", "difference", "support")


def patterns_cli(
    model: options.ModelPath,
    top: Annotated[int, typer.Option("--top", help="How many to print.", min=0)] = 20,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            help="weight; difference, by its size (two classes: mean share of nodes in the second "
            "less in the first; more: the largest less the smallest; numbers: mean of graphs with "
            "it less without); support; auto: weight where weights were learned, else difference.",
        ),
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write all patterns to this CSV file.")
    ] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Print the patterns of a MODEL: weight, support, and the class or values it goes with."""
    with command(as_json, debug) as output:
        from treelens.estimators.files import load
        from treelens.storage.files import checked_target

        if out is not None:
            checked_target(out, reads=[model])
        loaded = load(model)
        result = {
            "model": str(model),
            **_facts(loaded),
            "recipe": None if loaded.recipe_ is None else loaded.recipe_.to_plain(),
            "n_patterns": len(loaded.weights_),
            "patterns": top_patterns(loaded, top, sort),
        }
        if out is not None:
            write_patterns(loaded, out)
            result["out"] = str(out)
        output.finish(result, _show)


def _facts(model: AnyModel) -> dict[str, Any]:
    """What decided the weights."""
    from treelens.estimators.svc import GraphSVC

    if isinstance(model, GraphSVC):
        return {"method": "svc", "choice": model.best_params_, "learned": learned_weights(model)}
    return {
        "method": "evidence",
        "depth": model.depth,
        "weights": model.weights,
        "learning_gain": vars(model.learning_gain_),
        "learned": learned_weights(model),
    }


def learned_weights(model: AnyModel) -> bool:
    """Whether the weights of a model are learned ones, not uniform."""
    from treelens.estimators.svc import GraphSVC

    if isinstance(model, GraphSVC):
        return bool(model.best_params_["weight_radius"] > 0)
    return model.weights != "uniform"


def top_patterns(model: AnyModel, n: int, order: str = "auto") -> list[dict[str, Any]]:
    """The first ``n`` patterns in an order of :data:`ORDERS`, one dict each."""
    if order not in ORDERS:
        raise InputError(f"--sort {order}: expected one of {', '.join(ORDERS)}.")
    table = model.patterns_  # sorted by weight already
    table["difference"] = _differences(table)
    if order == "auto":
        order = "weight" if learned_weights(model) else "difference"
    if order != "weight":
        table = table.sort_values(order, ascending=False, kind="stable", key=abs)
    return cast("list[dict[str, Any]]", table.head(n).reset_index().to_dict("records"))


def _differences(table: pd.DataFrame) -> pd.Series:
    """How far a pattern tells classes or values apart; :func:`_compared` says what less what."""
    if "mean_with" in table:
        return table["mean_with"] - table["mean_without"]
    shares = table[[_SHARE + name for name in _classes_of(table)]]
    if shares.shape[1] == 2:
        return shares.iloc[:, 1] - shares.iloc[:, 0]
    return shares.max(axis=1) - shares.min(axis=1)


def _classes_of(columns: Iterable[Any]) -> list[str]:
    return [str(c).removeprefix(_SHARE) for c in columns if str(c).startswith(_SHARE)]


def _compared(columns: Iterable[Any]) -> str:
    """The head of the column of differences: what less what."""
    columns = list(columns)
    if "mean_with" in columns:
        return "with less without"
    classes = _classes_of(columns)
    return f"{classes[1]} less {classes[0]}" if len(classes) == 2 else "most less least"


def write_patterns(model: AnyModel, path: Path) -> None:
    """All patterns as CSV; see :func:`treelens.storage.csv_text.csv_text`."""
    from treelens.storage.files import whole_file

    with whole_file(path) as file:
        file.write(csv_text(model.patterns_, index=True).encode("utf-8"))


def _show(output: Output, result: dict[str, Any]) -> None:
    from treelens.cli.fit import recipe_sentence

    output.line(recipe_sentence(result["recipe"]))
    if "learning_gain" in result:
        output.line(result["learning_gain"]["sentence"])
    show_patterns(output, result["patterns"], result["learned"], result["n_patterns"])
    if "out" in result:
        output.line(f"All patterns: {result['out']}")


def show_patterns(
    output: Output, patterns: list[dict[str, Any]], learned: bool, n_patterns: int
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
    columns = ["pattern", "depth", "weight", "graphs", *side, compared]
    output.table(columns, rows, title)
