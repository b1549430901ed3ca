"""``treelens info``: what a model was fitted to, and how."""

from __future__ import annotations

from typing import Any

from treelens.cli import options
from treelens.cli.console import Output, command


def info_cli(
    model: options.ModelPath, as_json: options.Json = False, debug: options.Debug = False
) -> None:
    """Show what a MODEL was fitted to, and how: table and columns, recipe, kernel, sizes."""
    with command(as_json, debug) as output:
        from treelens.estimators.files import load

        loaded = load(model)
        facts = model_facts(loaded)
        output.finish({"model": str(model), "bytes": model.stat().st_size, **facts}, _show)


def model_facts(model: Any) -> dict[str, Any]:
    """Facts about a fitted model as plain data."""
    from sklearn.base import is_regressor

    recipe = model.recipe_
    table = None if recipe is None else recipe.table
    named = table is not None and table.target is not None
    return {
        "kind": type(model).__name__,
        "task": "regression" if is_regressor(model) else "classification",
        "classes": None if is_regressor(model) else model.classes_.astype(str).tolist(),
        "recipe": None if recipe is None else recipe.to_plain(),
        "recipe_in_words": "not known" if recipe is None else str(recipe),
        "training_data": _training_data(model.model_),
        "target_in_words": table.target_in_words if table is not None and named else None,
        **(_process_facts(model) if hasattr(model, "learning_gain_") and hasattr(model, "evidence_")
           else _svc_facts(model)),
    }  # fmt: skip


def _training_data(fitted: Any) -> str:
    """What the file keeps of its training molecules, in words."""
    if fitted.training.smiles is not None:
        return "SMILES" + ("" if fitted.training.names is None else ", names") + " and values kept"
    if fitted.recipe is not None and fitted.recipe.is_molecular:
        return "SMILES and names left out; pattern counts and values kept"
    return "pattern counts and values kept"


def _process_facts(model: Any) -> dict[str, Any]:
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
    histograms = model.train_histograms_
    sizes = {"graphs": histograms.n_graphs, "patterns": histograms.n_patterns}
    return {"kernel": dict(model.best_params_), "sizes": sizes, "levels": {}, "learning": None}


def covariate_list(facts: dict[str, Any]) -> str:
    """Covariates and descriptors in words."""
    names = [name for name in facts["names"] if not name.startswith("rdkit:")]
    n_descriptors = len(facts["names"]) - len(names)
    shown = names[:5] + ([f"{len(names) - 5} more"] if len(names) > 5 else [])
    shown += [f"{n_descriptors} descriptors of the molecules"] if n_descriptors else []
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def _show(output: Output, result: dict[str, Any]) -> None:
    for title, lines in _sections(result).items():
        rows = {name: value for name, value in lines.items() if value not in (None, "")}
        if not rows:
            continue
        output.line(title)
        width = max(map(len, rows))
        for name, value in rows.items():
            output.line(f"  {name:{width}}  {_shown(value)}")
        output.line()
    if result["learning"]:
        output.line(result["learning"])
    if result.get("covariates"):
        facts = result["covariates"]
        output.line(
            f"Beside the structure: {covariate_list(facts)}. Their part of the fitted values has a "
            f"standard deviation of {facts['spread']:.3g}, that of structure "
            f"{facts['spread_of_structure']:.3g}."
        )


def _sections(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    table = (result["recipe"] or {}).get("table") or {}
    return {
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


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
