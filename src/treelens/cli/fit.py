"""``treelens fit``: learn a model from a file and save it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent, score_text
from treelens.cli.data import files_behind, noun_of
from treelens.cli.explain import covariate_list, show_patterns, top_patterns

if TYPE_CHECKING:
    from treelens.graphs.molecule_table import MoleculeTable

# Each of several classes is explained by itself, and with so many graphs it takes longer than
# fitting.
_MOST_CLASSES, _MOST_GRAPHS = 2, 3000
_LONGEST_NAME = 60
_SCORES = {
    "rmse": "RMSE", "r2": "R2", "coverage": "within 90 % interval", "roc_auc": "ROC AUC",
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "recall": "recall",
    "precision": "precision",
}  # fmt: skip


@command
def fit_cli(
    output: Output,
    data: options.TrainingSource,
    training: options.Training,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the model.")] = Path(
        "model.treelens"
    ),
    ids: options.Ids = None,
    method: options.Method = "evidence",
    weights: options.Weights = "auto",
    kernel: options.Kernel = "auto",
    weight_radius: options.WeightRadius = "auto",
    scoring: options.Scoring = "auto",
    top: options.Top = 0,
    fragments: options.Fragments = None,
    training_data: options.TrainingData = True,
) -> None:
    """Learn from DATA to predict a number or a class, and save the model.

    Fits a Gaussian process on the subtree patterns of the graphs, whose weights are learned by
    marginal likelihood. Prints leave-one-out scores and the fragments with the largest effects.
    With --method svc, fits a support vector machine: settings left at auto are chosen by
    cross-validation. What was done about rows (repeated, unreadable, without a target) is noted.
    """
    from treelens.storage.files import checked_target

    svc = method == "svc"
    others = {
        "--weights": weights, "--covariates": training.covariates,
        "--descriptors": training.descriptors, "--threshold": training.threshold,
    } if svc else {
        "--kernel": kernel, "--weight-radius": weight_radius, "--scoring": scoring,
    }  # fmt: skip
    for option, value in others.items():
        if value not in (None, "auto"):
            other = "evidence" if svc else "svc"
            raise ValueError(
                f"{option} is an option of --method {other}. Leave it out, or use --method {other}."
            )
    if svc and training.task == "regression":
        raise ValueError("--method svc learns classes only. Leave it out to predict numbers.")
    settings = (
        training.svc_settings(kernel, weight_radius, scoring)
        if svc
        else training.gp_settings(weights)
    )
    reads = list(files_behind(data))
    checked_target(out, reads=reads)  # before the work rather than after it
    tables = training.read(output, data, ids, svc)
    paths = [out] if len(tables) == 1 else [_path_for(out, each.target_name) for each in tables]
    for path in paths:
        checked_target(path, reads=reads)
    results = []
    for table, path in zip(tables, paths, strict=True):
        named = f" ({table.target})" if table.target else ""
        size = f"{len(table.graphs)} {noun_of(table.graphs.recipe)}"
        output.progress(f"Fitting {size} of {table.source}{named} ...")
        model, result = fit_model(table, method, settings, training.threshold, top, fragments)
        model.save(path, training_data)
        results.append({**result, "model": str(path)})
    one = len(results) == 1
    output.finish(results[0] if one else {"models": results}, show_fit if one else _show_each)


def _path_for(out: Path, target: str) -> Path:
    """Return the file for one of several targets: ``model-logP.treelens``."""
    name = re.sub(r"[^\w.+-]+", "_", target).strip("_") or "target"
    return out.with_name(f"{out.stem}-{name}{out.suffix}")


# --- fitting --------------------------------------------------------------------------------------


def fit_model(
    data: MoleculeTable,
    method: str,
    settings: dict[str, Any],
    threshold: str = "auto",
    top: int = 0,
    fragments: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Fit a model, and return it with a summary as plain data."""
    from treelens import GraphClassifier, GraphRegressor, GraphSVC
    from treelens.estimators.fit_summary import fit_summary

    start = time.perf_counter()
    if method == "svc":
        model: Any = GraphSVC(**settings).fit(data.graphs, data.y)
    else:
        if data.task != "regression":
            model = GraphClassifier(**settings, threshold=threshold)
        elif threshold != "auto":
            raise ValueError(f"--threshold is for classes, and {data.target_name!r} has numbers.")
        else:
            model = GraphRegressor(**settings)
        model.fit(data.graphs, data.y, covariates=data.covariates or None)
    return model, {
        "method": method,
        "task": data.task,
        "data": _data_facts(data),
        **fit_summary(model),
        "recipe": None if model.recipe_ is None else model.recipe_.to_plain(),
        "n_patterns": len(model.weights_),
        "patterns": top_patterns(model, top) if top else [],
        **_first_fragments(model, data, fragments),
        "seconds": time.perf_counter() - start,
    }


def _data_facts(data: MoleculeTable) -> dict[str, Any]:
    import numpy as np

    from treelens.graphs.targets import limits_in_words

    assert data.y is not None
    facts: dict[str, Any] = {
        "source": data.source, "target": data.target, "n_graphs": len(data.graphs),
        "n_left_out": data.n_rows - len(data.graphs), "transform": data.transform,
        "units": data.unit,
    }  # fmt: skip
    if data.task != "regression":
        classes, counts = np.unique(data.y, return_counts=True)
        sizes = zip(classes.tolist(), counts.tolist(), strict=True)
        return {**facts, "classes": {str(name): n for name, n in sizes}}
    values = {"smallest": data.y.min(), "median": np.median(data.y), "largest": data.y.max(),
              "standard_deviation": data.y.std()}  # fmt: skip
    limits = None if data.limits is None else limits_in_words(data.y, data.limits).rstrip(".")
    return {**facts, "values": values, "limits": limits}


def _first_fragments(model: Any, data: MoleculeTable, n: int | None) -> dict[str, Any]:
    """Return the fragments with the largest effects; ``n=None``: a few, unless it takes long."""
    n_classes = 0 if data.task == "regression" else len(model.classes_)
    too_long = None
    if n is None and n_classes > _MOST_CLASSES:
        too_long = f"{n_classes} classes"
    elif n is None and len(data.graphs) > _MOST_GRAPHS:
        too_long = f"{len(data.graphs):,} {noun_of(data.graphs.recipe)}"
    n = options.FRAGMENTS_SHOWN if n is None else n
    if too_long or not n:
        return {"fragments": [], "no_fragments_for": too_long, "none": None}
    table = model.fragments(data.graphs, n_fragments=n, smarts=False)
    rows = [_fragment_row(model, data.graphs, table, rank) for rank in table.index.tolist()]
    attrs = {name: table.attrs[name] for name in ("toward", "none")}
    return {"fragments": rows, "no_fragments_for": None, **attrs}


def _fragment_row(model: Any, graphs: Any, table: Any, rank: int) -> dict[str, Any]:
    """Return a fragment with what was measured with and without it, on the learned scale."""
    from treelens.explain.fragments import (
        confounders,
        fragment_smiles,
        measured_with_and_without,
    )

    classes, targets = model.model_.classes, model.model_.training.targets
    has = table.holders[rank]
    both = measured_with_and_without(has, targets, None if classes is None else len(classes))
    if classes is not None:  # shares of the class that effects speak of
        label = str(table.loc[rank].get("class_label", table.attrs["toward"]))
        code = [str(name) for name in classes.tolist()].index(label)
        both = both[0][code], None if both[1] is None else both[1][code]
    return {
        "rank": rank, **table.loc[rank].to_dict(), "smiles": fragment_smiles(*table.pictures[rank]),
        "measured_with": both[0], "measured_without": both[1],
        "confounders": confounders(graphs, has, targets, classes),
    }  # fmt: skip


# --- printing -------------------------------------------------------------------------------------


def show_fit(output: Output, result: dict[str, Any]) -> None:
    """Print a fit for people, of any model."""
    noun, recipe = noun_of(result["recipe"]), result["recipe"]
    output.line(_data_sentence(result["data"], noun))
    if noun == "molecules":  # how they were read, where that is not the default way
        words = {
            f"atoms labelled by {recipe['atom_label']}": recipe["atom_label"] != "element",
            f"bonds labelled by {recipe['bond_label']}": recipe["bond_label"] == "order+stereo",
            "hydrogens are atoms": recipe["hydrogens"],
            f"standardised ({', '.join(recipe['standardize'])})": recipe["standardize"],
        }
        if any(words.values()):
            used = (text for text, applies in words.items() if applies)
            output.line(f"Molecules read with {'; '.join(used)}.")
    if result["method"] == "svc":
        _show_svc(output, result)
    else:
        _show_leave_one_out(output, result, noun)
    output.line()
    _show_fragments(output, result, noun)
    if result["patterns"]:
        show_patterns(output, result["patterns"], True, result["n_patterns"], noun)
    output.line(f"Time: {result['seconds']:.1f} s")
    if "model" in result:
        output.line(f"Model: {result['model']}")


def _data_sentence(data: dict[str, Any], noun: str) -> str:
    if "classes" in data:
        what = "classes " + ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    else:
        what = "{} from {smallest:g} to {largest:g}, median {median:g}".format(
            data["target"] or "values", **data["values"]
        )
        what += f"; fitted on a {data['transform']} scale" if data["transform"] else ""
        what += f"; {data['limits']}" if data["limits"] else ""
    return f"{data['source']}: {data['n_graphs']} {noun}; {what}"


def _show_leave_one_out(output: Output, result: dict[str, Any], noun: str) -> None:
    """Print scores beside those of the mean or the most frequent class, and remarks on them."""
    scores, numbers = result["leave_one_out"], result["task"] == "regression"
    ours, positive = scores["model"], scores.get("positive")
    simple, name = (scores["mean"], "mean of all") if numbers else (
        scores["majority"], "most frequent class")  # fmt: skip
    heads = {n: title for n, title in _SCORES.items() if ours.get(n) is not None}
    if positive:
        heads |= {n: f"{n} ({positive})" for n in ("recall", "precision") if n in heads}
    rows = [[title, *(score_text(n, found.get(n)) for n in heads)]
            for title, found in ((name, simple), ("this model", ours))]  # fmt: skip
    scale = result["data"]["transform"]
    of = f" of {scale} of {result['data']['target']}" if scale else ""
    title = f"Leave-one-out predictions{of} (each of the {noun} from all the others)"
    output.table(["", *heads.values()], rows, title)
    if limits := scores.get("limits"):
        output.line(
            f"The scores are those of the {limits['exact']} measured values. {limits['held']} of "
            f"the {limits['lower'] + limits['upper']} limits are predicted on their side."
        )
    if threshold := scores.get("threshold"):
        why = "because it is rare" if threshold["rule"] == "auto" else f"by {threshold['rule']}"
        output.line(
            f"{threshold['class']} is predicted from a probability of {threshold['value']:.3g} on, "
            f"a threshold tuned {why} (--threshold): recall {percent(threshold['recall'])}, "
            f"precision {percent(threshold['precision'])}. Predicting the more probable class "
            f"instead has an accuracy of {percent(threshold['accuracy_most_probable'])}."
        )
    if ours.get("names_one_class"):
        output.line(
            f"This model predicts the same class for all {noun}: its accuracy is the share of that "
            "class, and only its ranking (ROC AUC) may be of use."
        )
    if sure := scores.get("sure"):
        output.line(
            f"Where it is at least {100 * sure['least']:.0f} % sure ({100 * sure['share']:.0f} % "
            f"of the {noun}), it is wrong for {percent(1 - sure['accuracy'])}."
        )
    output.line(
        f"The scores are slightly optimistic, since the model was tuned on all {noun}; 'treelens "
        "evaluate' tunes it without those that it is tested on."
    )
    if result["covariates"] is not None:
        output.line(f"Learned from structure and from {covariate_list(result['covariates'])}.")


def _show_svc(output: Output, result: dict[str, Any]) -> None:
    scores, choice, gain = result["scores"], result["choice"], result["learning_gain"]
    name = result["scoring"].replace("_", " ")
    rows = [["most frequent class", percent(scores["majority"]), ""]]
    for title in ("uniform", "learned"):
        if (row := scores[title]) is not None:
            spread = f"{percent(row['mean'])} ± {100 * row['standard_deviation']:.1f}"
            rows.append([f"{title} weights", spread, _setting(row)])
    output.table(["", name, "best settings"], rows, f"Cross-validated {name} (mean ± deviation)")
    rare = choice["rare_class"]
    if rare is not None and (choice["class_weight"] == "balanced" or name != "accuracy"):
        output.line(
            f"Class {rare['class']} is rare ({percent(rare['share'])}): settings were chosen by "
            f"{name}."
        )
    kind = "learned" if choice["weight_radius"] > 0 else "uniform"
    sentence = f"Chosen on these splits: {kind} weights, {_setting(choice)}."
    if gain is not None:
        sentence += f" Learning changed the score by {100 * gain['difference']:+.1f} points"
        spread = gain["standard_error"]
        sentence += "." if spread is None else (
            f" (standard error {100 * spread:.1f}, one-sided p = {gain['p_value']:.2f})."
        )  # fmt: skip
    output.line(sentence)


def _setting(row: dict[str, Any]) -> str:
    parts = [row["kernel"], f"depth {row['depth']}"]
    parts += [f"radius {row['weight_radius']:g}"] if row["weight_radius"] else []
    parts += [] if row["gamma"] is None else [f"gamma {row['gamma']:g}"]
    return ", ".join([*parts, f"C {row['C']:g}"])


def _show_fragments(output: Output, result: dict[str, Any], noun: str) -> None:
    if result["no_fragments_for"]:
        output.line(
            f"Finding fragments takes a while with {result['no_fragments_for']}: --fragments "
            f"{options.FRAGMENTS_SHOWN} prints the first, 'treelens fragments' all."
        )
    if result["none"]:
        output.line(result["none"])
    if not result["fragments"]:
        return
    numbers = result["task"] == "regression"
    rows = []
    for row in result["fragments"]:
        shown = row["smiles"] or row["pattern"]
        name = f"{row['name']}, {shown}" if row["name"] else shown
        name = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        name += f", for {row['class_label']}" if "class_label" in row else ""
        both = (row["measured_with"], row["measured_without"])
        rows.append([
            name + (" (!)" if row["confounders"] else ""),
            f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"],
            *("" if x is None else f"{x:.3g}" if numbers else percent(x) for x in both),
        ])  # fmt: skip
    toward, scale = result["toward"], result["data"]["transform"]
    mean = f"mean {scale}" if scale else "mean" if numbers else "share"
    mean += "" if numbers or toward is None else f" of {toward}"
    effect = "effect" if toward is None else f"effect on {toward}"
    columns = ["fragment", f"{effect} ± standard error", noun, f"their {mean}",
               f"{mean} without it"]  # fmt: skip
    output.table(columns, rows, "Fragments: those first that add most beyond the ones above them")
    for row in result["fragments"]:
        if row["confounders"]:
            output.line(
                f"(!) {row['name'] or row['smiles'] or row['pattern']}: "
                f"{'; '.join(row['confounders'])}. The effect may not be that of the fragment."
            )


def _show_each(output: Output, result: dict[str, Any]) -> None:
    """Print all models one after the other, and then side by side."""
    rows = []
    for each in result["models"]:
        show_fit(output, each)
        output.line()
        if each["method"] == "svc":
            score = f"cross-validated {each['scoring']} {each['choice']['score']:.3f}"
        else:
            name = "r2" if each["task"] == "regression" else "roc_auc"
            value = each["leave_one_out"]["model"][name]
            score = f"leave-one-out {_SCORES[name]} {value:.3f}"
        rows.append([each["data"]["target"], each["task"], each["data"]["n_graphs"], score,
                     each["model"]])  # fmt: skip
    noun = noun_of(result["models"][0]["recipe"])
    output.table(["target", "task", noun, "score", "model"], rows, "All targets")
