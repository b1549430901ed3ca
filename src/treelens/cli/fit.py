"""``treelens fit``: learn a model from a file and save it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from treelens.cli import options
from treelens.cli.console import Output, command, percent, score_text, shortened
from treelens.cli.explain import covariate_list, show_patterns
from treelens.kernels.table import KERNELS

if TYPE_CHECKING:
    from treelens.graphs.molecule_table import MoleculeTable

_LONGEST_NAME = 60
SCORES = {
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
    method: Annotated[Literal["gp", "svc"], options.option(
        help="gp: a Gaussian process with weights learned by marginal likelihood; svc: a "
        "support vector machine (classes only) with settings chosen by cross-validation.",
    )] = "gp",
    weights: Annotated[Literal["auto", "uniform", "depths", "branches"], options.option(
        help="With gp, what is learned: uniform (nothing), depths (one weight for each), "
        "branches (of the tree of patterns), or auto: chosen on held-out graphs.",
    )] = "auto",
    kernel: Annotated[str, options.option(
        help="With svc, the kernel: auto (wwl or tanimoto-rbf, by cross-validation), "
        f"{', '.join(KERNELS)}; or several with commas.",
    )] = "auto",
    weight_radius: Annotated[str, options.option(
        help="With svc, how far weights may move from 1: auto, 0 (uniform weights), 4, or 0,1,4.",
    )] = "auto",
    scoring: Annotated[
        Literal["auto", "accuracy", "balanced_accuracy", "roc_auc"], options.option(
        "--scoring",
        help="With svc, what to choose by; auto: accuracy, or with a rare class one of the others.",
    )] = "auto",
    top: Annotated[int, options.option(help="How many patterns to print.", min=0)] = 0,
    fragments: Annotated[int | None, options.option(
        min=0, help="How many of the fragments with the largest effects to print.",
        default="5; none of more than two classes or 3,000 graphs, where finding "
        "them takes a while",
    )] = None,
    training_data: Annotated[bool, options.option(
        "--training-data/--no-training-data",
        help="Whether the model keeps names and SMILES of its training molecules, to show them "
        "beside predictions; pattern counts and values stay in the file in any case.",
    )] = True,
) -> None:  # fmt: skip
    """Learn from DATA to predict a number or a class, and save the model.

    Fits a Gaussian process on the subtree patterns of the graphs, whose weights are learned by
    marginal likelihood. Prints leave-one-out scores and the fragments with the largest effects.
    With --method svc, fits a support vector machine: settings left at auto are chosen by
    cross-validation. What was done about rows (repeated, unreadable, without a target) is noted.
    """
    from treelens.graphs.recipe import noun_of
    from treelens.storage.files import checked_target

    svc = method == "svc"
    own = {"--kernel": kernel, "--weight-radius": weight_radius, "--scoring": scoring}
    others = own if not svc else {
        "--weights": weights, "--covariates": training.covariates,
        "--descriptors": training.descriptors, "--threshold": training.threshold,
    }  # fmt: skip
    for option, value in others.items():
        if value not in (None, "auto"):
            other = "gp" if svc else "svc"
            raise ValueError(
                f"{option} is an option of --method {other}. Leave it out, or use --method {other}."
            )
    if svc and training.task == "regression":
        raise ValueError("--method svc learns classes only. Leave it out to predict numbers.")
    settings = training.svc_settings(*own.values()) if svc else training.gp_settings(weights)
    reads = list(options.files_behind(data))
    checked_target(out, reads=reads)  # before the work rather than after it
    tables, paths = training.read(output, data, ids, svc), [out]
    if len(tables) > 1:  # model-logP.treelens
        names = [re.sub(r"[^\w.+-]+", "_", table.target_name).strip("_") for table in tables]
        paths = [out.with_name(f"{out.stem}-{name or 'target'}{out.suffix}") for name in names]
    for path in paths:
        checked_target(path, reads=reads)
    models, results = [], []
    for table, path in zip(tables, paths, strict=True):
        named = f" ({table.target})" if table.target else ""
        size = f"{len(table.graphs)} {noun_of(table.graphs.recipe)}"
        output.progress(f"Fitting {size} of {table.source}{named} ...")
        model, result = fit_model(table, method, settings, training.threshold, top, fragments)
        models.append(model)
        results.append({**result, "model": str(path)})
    for model, path in zip(models, paths, strict=True):  # all of them, or none
        model.save(path, training_data)
    one = len(results) == 1
    output.finish(results[0] if one else {"models": results}, show_fit if one else _show_each)


def fit_model(
    data: MoleculeTable, method: str, settings: dict[str, Any], threshold: str = "auto",
    top: int = 0, fragments: int | None = None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Fit a model, and return it with a summary as plain data."""
    from treelens import GraphClassifier, GraphRegressor, GraphSVC
    from treelens.estimators import fit_summary

    start = time.perf_counter()
    beside = {} if method == "svc" else {"covariates": data.covariates or None}
    if method == "svc":
        model: Any = GraphSVC(**settings)
    elif data.task == "regression":
        model = GraphRegressor(**settings)
    else:
        model = GraphClassifier(**settings, threshold=threshold)
    model.fit(data.graphs, data.y, **beside)
    return model, {
        "method": method,
        "task": data.task,
        "data": fit_summary.data_summary(data),
        **fit_summary.fit_summary(model),
        **fit_summary.pattern_summary(model, top),
        **fit_summary.first_fragments(model, data.graphs, fragments),
        "seconds": time.perf_counter() - start,
    }


def show_fit(output: Output, result: dict[str, Any]) -> None:
    """Print a fit for people, of any model."""
    data, noun = result["data"], result["noun"]
    if "classes" in data:
        what = "classes " + ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    else:
        what = "{} from {smallest:g} to {largest:g}, median {median:g}".format(
            data["target"] or "values", **data["values"]
        )
        what += f"; fitted on a {data['transform']} scale" if data["transform"] else ""
        what += f"; {data['limits']}" if data["limits"] else ""
    output.line(f"{data['source']}: {data['n_graphs']} {noun}; {what}")
    if result["method"] == "svc":
        _show_svc(output, result)
    else:
        _show_leave_one_out(output, result)
    output.line()
    _show_fragments(output, result)
    if result["patterns"]:
        show_patterns(output, result)
    output.line(f"Time: {result['seconds']:.1f} s")
    if "model" in result:
        output.line(f"Model: {result['model']}")


def _show_leave_one_out(output: Output, result: dict[str, Any]) -> None:
    """Print scores beside those of the mean or the most frequent class, and remarks on them."""
    scores, noun = result["leave_one_out"], result["noun"]
    ours, positive = scores["model"], scores.get("positive")
    heads = {n: title for n, title in SCORES.items() if ours.get(n) is not None}
    if positive:
        heads |= {n: f"{n} ({positive})" for n in ("recall", "precision") if n in heads}
    sides = {"mean of all": "mean", "most frequent class": "majority", "this model": "model"}
    rows = [[title, *(score_text(n, scores[side].get(n)) for n in heads)]
            for title, side in sides.items() if side in scores]  # fmt: skip
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
    output.line(f"Chosen on these splits: {kind} weights, {_setting(choice)}.")
    if gain is not None:
        error = gain["standard_error"]
        how = "" if error is None else (
            f" (standard error {100 * error:.1f}, one-sided p = {gain['p_value']:.2f})"
        )  # fmt: skip
        output.line(f"Learning changed the score by {100 * gain['difference']:+.1f} points{how}.")


def _setting(row: dict[str, Any]) -> str:
    parts = [row["kernel"], f"depth {row['depth']}"]
    parts += [f"radius {row['weight_radius']:g}"] if row["weight_radius"] else []
    parts += [] if row["gamma"] is None else [f"gamma {row['gamma']:g}"]
    return ", ".join([*parts, f"C {row['C']:g}"])


def _show_fragments(output: Output, result: dict[str, Any]) -> None:
    if result["no_fragments_for"]:
        output.line(
            f"Finding fragments takes a while with {result['no_fragments_for']}: --fragments 5 "
            "prints the first, 'treelens fragments' all."
        )
    if result["none"]:
        output.line(result["none"])
    if not result["fragments"]:
        return
    numbers = result["task"] == "regression"
    rows = []
    for row in result["fragments"]:
        shown = row["smiles"] or row["pattern"]
        name = shortened(f"{row['name']}, {shown}" if row["name"] else shown, _LONGEST_NAME)
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
    columns = ["fragment", f"{effect} ± standard error", result["noun"], f"their {mean}",
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
            score = f"leave-one-out {SCORES[name]} {value:.3f}"
        rows.append([each["data"]["target"], each["task"], each["data"]["n_graphs"], score,
                     each["model"]])  # fmt: skip
    columns = ["target", "task", result["models"][0]["noun"], "score", "model"]
    output.table(columns, rows, "All targets")
