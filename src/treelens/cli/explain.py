"""``treelens explain``, ``fragments``, ``patterns`` and ``info``: what a model has learned."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from treelens.cli import options
from treelens.cli.console import Output, command
from treelens.cli.data import files_behind, kind_of, load_model, noun_of, read_for_model

if TYPE_CHECKING:
    from treelens.estimators.files import AnyModel

_SHARE = "frequency "  # what the columns of classes are called
Sort = Annotated[Literal["auto", "weight", "difference", "support"], options.option(
    "--sort",
    help="difference: by its size (two classes: mean share of nodes in the second minus the first; "
    "more: largest minus smallest; numbers: mean of graphs with it minus without); auto: weight "
    "where weights were learned, else difference.",
)]  # fmt: skip


@command
def explain_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    target: options.Truth = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
) -> None:
    """Explain the predictions of a MODEL on DATA in one HTML file that needs nothing else."""
    from treelens.storage.files import checked_target

    kind_of(data)
    checked_target(out, reads=chain([model], files_behind(data)))
    loaded = load_model(model, jobs)
    table = read_for_model(output, data, loaded, target, smiles)
    loaded.report(out, table.graphs, table.y, names=table.source)
    result = {"n_graphs": len(table.graphs), "out": str(out)}
    output.finish(result, lambda output, result: output.line(f"Report: {result['out']}"))


# --- fragments ------------------------------------------------------------------------------------


@command
def fragments_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    top: Annotated[int, typer.Option("--top", help="At most so many.", min=1)] = 40,
    target: options.Truth = None,
    out: Annotated[
        Path | None, typer.Option("--csv", "-o", help="Write the table to this CSV file.")
    ] = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
) -> None:
    """Print the fragments of DATA with the largest effects on the predictions of a MODEL.

    Best with the data that the model was trained on: each graph is then explained by the others.
    """
    from treelens.storage.files import checked_target, write_csv

    kind_of(data)
    if out is not None:
        checked_target(out, reads=chain([model], files_behind(data)))
    loaded = load_model(model, jobs)
    rows = read_for_model(output, data, loaded, target, smiles)
    y = None if target is None or rows.y is None else rows.learned()[1]
    table = loaded.fragments(rows.graphs, y, n_fragments=top)
    result: dict[str, Any] = {
        "model": str(model),
        "noun": noun_of(rows.graphs.recipe),
        "n_graphs": len(rows.graphs),
        "fragments": [{"rank": k, **row} for k, row in table.to_dict("index").items()],
        **{str(name): value for name, value in table.attrs.items()},
    }
    if out is not None:
        write_csv(out, table, index=True)
        result["out"] = str(out)
    output.finish(result, _show_fragments)


def _show_fragments(output: Output, result: dict[str, Any]) -> None:
    if result["none"]:
        output.line(result["none"])
    rows = [
        [
            row["rank"], row["name"] or row["pattern"], row.get("smarts") or "",
            f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"],
        ]
        for row in result["fragments"]
    ]  # fmt: skip
    toward = f" (for {result['toward']})" if result["toward"] is not None else ""
    title = "Fragments: those first that add most beyond the ones above them"
    if rows:
        output.table(["", "fragment", "SMARTS", f"effect{toward}", result["noun"]], rows, title)
    if rows and "effect" in result["size"]:
        size, node = result["size"], "atom" if result["noun"] == "molecules" else "node"
        output.line(
            f"Size: the mean {node}, whatever it is, adds {size['per_node']:+.4f}; "
            f"{size['mean_nodes']:.1f} {node}s, the mean, add {size['effect']:+.3f}."
        )
    if "out" in result:
        output.line(f"The table: {result['out']}")


# --- patterns -------------------------------------------------------------------------------------


@command
def patterns_cli(
    output: Output,
    model: options.ModelPath,
    top: Annotated[int, typer.Option("--top", help="How many to print.", min=0)] = 20,
    sort: Sort = "auto",
    out: options.CsvOut = None,
) -> None:
    """Print the patterns of a MODEL: weight, support, and the class or values it goes with."""
    from treelens.estimators.files import load
    from treelens.storage.files import checked_target, write_csv

    if out is not None:
        checked_target(out, reads=[model])
    loaded = load(model)
    result = {
        "model": str(model),
        "method": "svc" if hasattr(loaded, "best_params_") else "evidence",
        "learned": learned_weights(loaded),
        "recipe": None if loaded.recipe_ is None else loaded.recipe_.to_plain(),
        "n_patterns": len(loaded.weights_),
        "patterns": top_patterns(loaded, top, sort),
    }
    if out is not None:
        write_csv(out, loaded.patterns_, index=True)
        result["out"] = str(out)
    output.finish(result, _show_patterns)


def learned_weights(model: AnyModel) -> bool:
    """Whether the weights of a model are learned ones, not uniform."""
    if hasattr(model, "best_params_"):
        return bool(model.best_params_["weight_radius"] > 0)
    return bool(model.best_weights_ != "uniform")


def top_patterns(model: AnyModel, n: int, order: str = "auto") -> list[dict[str, Any]]:
    """Return the first ``n`` patterns, one dict each."""
    table = model.patterns_  # sorted by weight already
    shares = table.filter(regex=f"^{_SHARE}")
    if "mean_with" in table:
        table["difference"] = table["mean_with"] - table["mean_without"]
    elif shares.shape[1] == 2:
        table["difference"] = shares.iloc[:, 1] - shares.iloc[:, 0]
    else:
        table["difference"] = shares.max(axis=1) - shares.min(axis=1)
    if order == "auto":
        order = "weight" if learned_weights(model) else "difference"
    if order != "weight":
        table = table.sort_values(order, ascending=False, kind="stable", key=abs)
    return cast("list[dict[str, Any]]", table.head(n).reset_index().to_dict("records"))


def _show_patterns(output: Output, result: dict[str, Any]) -> None:
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
    """Print a table; a pattern reads root(neighbour(...),...), with the bond before a neighbour."""
    first = patterns[0] if patterns else {}
    classes = [str(name).removeprefix(_SHARE) for name in first if str(name).startswith(_SHARE)]
    side, compared = {"class": "class"}, "largest - smallest"
    if "mean_with" in first:
        side, compared = {"mean with it": "mean_with", "mean without": "mean_without"}, (
            "with - without")  # fmt: skip
    elif len(classes) == 2:
        compared = f"{classes[1]} - {classes[0]}"
    rows = [
        [row["pattern"], row["depth"], float(row["weight"]), row["support"],
         *(row[x] if x != "class" else str(row[x]) for x in side.values()),
         float(row["difference"])]
        for row in patterns
    ]  # fmt: skip
    title = f"Patterns: {len(rows)} of {n_patterns}" + ("" if learned else " (weights are uniform)")
    output.table(["pattern", "depth", "weight", noun, *side, compared], rows, title)


# --- info -----------------------------------------------------------------------------------------


@command
def info_cli(output: Output, model: options.ModelPath) -> None:
    """Show what a MODEL was fitted to, and how: table and columns, recipe, kernel, sizes."""
    from treelens.estimators.files import load

    facts = model_facts(load(model))
    output.finish({"model": str(model), "bytes": model.stat().st_size, **facts}, _show_info)


def model_facts(model: Any) -> dict[str, Any]:
    """Return facts about a fitted model as plain data."""
    from sklearn.base import is_regressor

    recipe, training = model.recipe_, model.model_.training
    table = None if recipe is None else recipe.table
    if training.smiles is not None:
        kept = "SMILES" + ("" if training.names is None else ", names") + " and values kept"
    else:
        kept = "pattern counts and values kept"
        if recipe is not None and recipe.is_molecular:
            kept = f"SMILES and names left out; {kept}"
    named = table is not None and table.target is not None
    return {
        "kind": type(model).__name__,
        "task": "regression" if is_regressor(model) else "classification",
        "classes": None if is_regressor(model) else model.classes_.astype(str).tolist(),
        "recipe": None if recipe is None else recipe.to_plain(),
        "recipe_in_words": "not known" if recipe is None else str(recipe),
        "training_data": kept,
        "target_in_words": table.target_in_words if table is not None and named else None,
        **(_svc_facts(model) if hasattr(model, "best_params_") else _gp_facts(model)),
    }


def _gp_facts(model: Any) -> dict[str, Any]:
    from treelens.estimators.fit_summary import covariate_facts

    fitted = model.model_
    forest, scales = fitted.weighted.forest, fitted.scales
    weights = fitted.weighted.level_weights.tolist()
    levels = zip(forest.level_names, weights, strict=True) if len(set(weights)) > 1 else ()
    return {
        "kernel": {
            "gamma": scales.gamma, "rho": scales.rho, "amplitude": scales.amplitude,
            "share": scales.share, "noise": fitted.noise, "weights": model.best_weights_,
            "depth": model.best_depth_, "trees": list(forest.trees),
        },
        "sizes": {
            "graphs": len(fitted.training.targets),
            "graphs_in_all": fitted.training.n_in_all,
            "basis_graphs": len(fitted.basis_indices),
            "patterns": len(model.weights_),
        },
        "levels": dict(levels),
        "covariates": covariate_facts(model),
        "learning": model.learning_gain_.sentence,
    }  # fmt: skip


def _svc_facts(model: Any) -> dict[str, Any]:
    histograms = model.model_.training.histograms
    sizes = {"graphs": histograms.n_graphs, "patterns": histograms.n_patterns}
    return {"kernel": dict(model.best_params_), "sizes": sizes, "levels": {}, "learning": None}


def covariate_list(facts: dict[str, Any]) -> str:
    """Return covariates and descriptors in words."""
    names = [name for name in facts["names"] if not name.startswith("rdkit:")]
    n_descriptors = len(facts["names"]) - len(names)
    shown = names[:5] + ([f"{len(names) - 5} more"] if len(names) > 5 else [])
    shown += [f"{n_descriptors} descriptors of the molecules"] if n_descriptors else []
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def _show_info(output: Output, result: dict[str, Any]) -> None:
    table = (result["recipe"] or {}).get("table") or {}
    sections = {
        f"{result['model']} ({result['bytes']:,} bytes)": {
            "kind": result["kind"],
            "predicts": result["target_in_words"] or result["task"],
            "classes": ", ".join((result["classes"] or [])[:20]),
        },
        "Fitted to": {
            "file": table.get("source"),
            "molecules in column": table.get("smiles"),
            "rows named by": ", ".join(table.get("ids") or []),
            **(table.get("counts") or {}),
            "read from": result["recipe_in_words"],
            "training data": result["training_data"],
        },
        "Kernel": result["kernel"],
        "Sizes": result["sizes"],
        "Weight of levels": result["levels"],
    }
    for title, lines in sections.items():
        rows = {name: value for name, value in lines.items() if value not in (None, "")}
        if rows:
            output.line(title)
        for name, value in rows.items():
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else text
            output.line(f"  {name:{max(map(len, rows))}}  {text}")
        if rows:
            output.line()
    if result["learning"]:
        output.line(result["learning"])
    if facts := result.get("covariates"):
        output.line(
            f"Beside the structure: {covariate_list(facts)}. Their part of the fitted values has a "
            f"standard deviation of {facts['spread']:.3g}, that of structure "
            f"{facts['spread_of_structure']:.3g}."
        )
