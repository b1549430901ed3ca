"""``treelens fit``: learn a model from a file and save it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent, score_text

if TYPE_CHECKING:
    from treelens.graphs.molecule_table import MoleculeTable

MODEL = Path("model.treelens")
FRAGMENTS_SHOWN = options.FRAGMENTS_SHOWN
# Each of several classes is explained by itself, and with so many graphs it takes longer than
# fitting.
_MOST_CLASSES, _MOST_GRAPHS = 2, 3000
_LONGEST_NAME = 60


def fit_cli(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the model.")] = MODEL,
    target: options.Target = None,
    smiles: options.Smiles = None,
    ids: options.Ids = None,
    atom_label: options.AtomLabel = None,
    bond_label: options.BondLabel = None,
    hydrogens: options.Hydrogens = None,
    standardize: options.Standardize = False,
    standardize_steps: options.StandardizeSteps = None,
    task: options.Task = "auto",
    transform: options.TargetTransform = None,
    qualifier: options.Qualifier = None,
    covariates: options.Covariates = None,
    descriptors: options.Descriptors = "auto",
    method: options.Method = "evidence",
    depth: options.Depth = "auto",
    weights: options.Weights = None,
    kernel: options.Kernel = None,
    weight_radius: options.WeightRadius = None,
    scoring: options.Scoring = None,
    threshold: options.Threshold = "auto",
    max_invalid: options.MaxInvalid = 0.1,
    missing: options.Missing = "skip",
    duplicates: options.Duplicates = "merge",
    noise: options.Noise = None,
    top: options.Top = 0,
    fragments: options.Fragments = None,
    training_data: options.TrainingData = True,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Learn from DATA to predict a number or a class, and save the model.

    Fits a Gaussian process on the subtree patterns of the graphs, whose weights are learned by
    marginal likelihood. Prints leave-one-out scores and the fragments with the largest effects.
    With --method svc, fits a support vector machine: settings left at auto are chosen by
    cross-validation. What was done about rows (repeated, unreadable, without a target) is noted.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind
        from treelens.storage.files import checked_target

        settings = _settings(method, task, threshold, covariates, descriptors, weights, depth,
                             kernel, weight_radius, scoring, seed, jobs)  # fmt: skip
        reads = list(files_behind(data))
        checked_target(out, reads=reads)  # before the work rather than after it
        sets = training_sets(
            output, data, target, smiles=smiles, names=ids, max_invalid=max_invalid,
            covariates=options.column_list(covariates, "--covariates"),
            descriptors="rdkit" if descriptors == "rdkit" else None,
            recipe=options.recipe_options(atom_label, hydrogens, bond_label, standardize,
                                          standardize_steps),
            task=None if method == "svc" and task == "auto" else task, transform=transform,
            duplicates=duplicates, missing=missing, qualifier=qualifier, noise=noise,
        )  # fmt: skip
        paths = [out] if len(sets) == 1 else [_path_for(out, each.target_name) for each in sets]
        for path in paths:
            checked_target(path, reads=reads)
        results = []
        for training, path in zip(sets, paths, strict=True):
            named = f" ({training.target})" if training.target else ""
            size = f"{len(training.graphs)} {noun_of(training.graphs.recipe)}"
            output.progress(f"Fitting {size} of {training.source}{named} ...")
            model, result = fit_model(training, method, settings, threshold, top, fragments)
            model.save(path, training_data)
            results.append({**result, "model": str(path)})
        one = len(results) == 1
        output.finish(results[0] if one else {"models": results}, show_fit if one else _show_each)


def _settings(
    method: str, task: str, threshold: str, covariates: str | None, descriptors: str,
    weights: str | None, depth: str, kernel: str | None, weight_radius: str | None,
    scoring: str | None, seed: int, jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Options as parameters of the estimator; those of the other method are refused."""
    options.check_choice("--method", method, options.METHODS)
    options.check_threshold(threshold)
    of_svc = {"--kernel": kernel, "--weight-radius": weight_radius, "--scoring": scoring}
    of_evidence = {
        "--weights": weights, "--covariates": covariates,
        "--descriptors": None if descriptors == "auto" else descriptors,
        "--threshold": None if threshold == "auto" else threshold,
    }  # fmt: skip
    other, those = ("evidence", of_evidence) if method == "svc" else ("svc", of_svc)
    for option, value in those.items():
        if value is not None:
            raise InputError(
                f"{option} is an option of --method {other}. Leave it out, or use --method {other}."
            )
    if method == "svc" and task == "regression":
        raise InputError("--method svc learns classes only. Leave it out to predict numbers.")
    if method == "svc":
        return options.svc_settings(kernel, depth, weight_radius, scoring, seed, jobs)
    return options.process_settings(depth, weights, descriptors, seed, jobs)


def training_sets(
    output: Output,
    source: str,
    target: str | None,
    *,
    recipe: dict[str, Any],
    task: str | None,
    transform: str | None,
    duplicates: str,
    missing: str,
    qualifier: str | None = None,
    several: bool = True,
    noise: str | None = None,
    **reading: Any,
) -> list[MoleculeTable]:
    """One table to learn from for each target of ``--target a,b,c``; molecules are read once."""
    from treelens.cli.data import read_data
    from treelens.graphs.columns import several_columns

    options.check_choice("--missing", missing, ("skip", "error"))
    base = read_data(source, target=target, **reading, **recipe)
    output.note(*base.notes)
    targets: list[str | None] = [None]
    if target is not None and base.table is not None:
        targets = [*several_columns(base.table.columns, target, "target", base.source)]
    if len(targets) > 1 and not several:
        raise InputError(f"--target {target}: only 'treelens fit' takes several columns.")
    if len(targets) > 1 and qualifier is not None:
        raise InputError("--qualifier is for one --target: fit the others by themselves.")
    sets = []
    for name in targets:
        own = base.with_target(
            name, task=task, transform=transform, duplicates=duplicates,
            on_missing="raise" if missing == "error" else "skip", qualifier=qualifier, noise=noise,
        )  # fmt: skip
        for note in own.notes[len(base.notes) :]:
            output.note(f"{own.target}: {note}" if len(targets) > 1 else note)
        sets.append(own)
    return sets


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
    from treelens.cli.patterns import top_patterns
    from treelens.estimators.fit_summary import fit_summary

    start = time.perf_counter()
    if method == "svc":
        model: Any = GraphSVC(**settings).fit(data.graphs, data.y)
    else:
        numbers = data.task == "regression"
        if numbers and threshold != "auto":
            raise InputError(f"--threshold is for classes, and {data.target_name!r} has numbers.")
        own = settings if numbers else {**settings, "threshold": threshold}
        model = (GraphRegressor if numbers else GraphClassifier)(**own)
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

    from treelens.graphs.limits import limits_in_words

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
    low, middle, high = (float(x) for x in np.quantile(data.y, [0.0, 0.5, 1.0]))
    spread = float(data.y.std())
    values = {"smallest": low, "median": middle, "largest": high, "standard_deviation": spread}
    limits = None if data.limits is None else limits_in_words(data.y, data.limits).rstrip(".")
    return {**facts, "values": values, "limits": limits}


def _first_fragments(model: Any, data: MoleculeTable, n: int | None) -> dict[str, Any]:
    """The fragments with the largest effects; ``n=None``: a few, unless that takes long."""
    n_classes = 0 if data.task == "regression" else len(model.classes_)
    too_long = None
    if n is None and n_classes > _MOST_CLASSES:
        too_long = f"{n_classes} classes"
    elif n is None and len(data.graphs) > _MOST_GRAPHS:
        too_long = f"{len(data.graphs):,} {noun_of(data.graphs.recipe)}"
    n = FRAGMENTS_SHOWN if n is None else n
    if too_long or not n:
        return {"fragments": [], "no_fragments_for": too_long}
    table = model.fragments(data.graphs, n_fragments=n, smarts=False)
    rows = [_fragment_row(model, data.graphs, table, rank) for rank in table.index.tolist()]
    return {"fragments": rows, "no_fragments_for": None, "toward": table.attrs["toward"]}


def _fragment_row(model: Any, graphs: Any, table: Any, rank: int) -> dict[str, Any]:
    """A fragment with what was measured with and without it, on the learned scale."""
    from treelens.explain.fragment_context import (
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
    from treelens.cli.patterns import show_patterns

    noun = noun_of(result["recipe"])
    output.line(_data_sentence(result["data"], noun))
    if settings := reading_words(result["recipe"]):
        output.line(settings)
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


def noun_of(recipe: Any) -> str:
    """What graphs are called, by their recipe or by that as plain data."""
    from treelens.graphs.recipe import MOLECULE_READERS

    reader = recipe["reader"] if isinstance(recipe, dict) else getattr(recipe, "reader", None)
    return "molecules" if reader in MOLECULE_READERS else "graphs"


def reading_words(recipe: dict[str, Any] | None) -> str | None:
    """How molecules were read, where that is not the default way."""
    if noun_of(recipe) == "graphs" or recipe is None:
        return None
    words = {
        f"atoms labelled by {recipe['atom_label']}": recipe["atom_label"] != "element",
        f"bonds labelled by {recipe['bond_label']}": recipe["bond_label"] not in (None, "order"),
        "hydrogens are atoms": recipe["hydrogens"],
        f"standardised ({', '.join(recipe['standardize'])})": recipe["standardize"],
    }
    used = [text for text, applies in words.items() if applies]
    return f"Molecules read with {'; '.join(used)}." if used else None


def _data_sentence(data: dict[str, Any], noun: str) -> str:
    if "classes" in data:
        what = "classes " + ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    else:
        values = data["values"]
        what = (
            f"{data['target'] or 'values'} from {values['smallest']:g} to "
            f"{values['largest']:g}, median {values['median']:g}"
        )
        what += f"; fitted on a {data['transform']} scale" if data["transform"] else ""
        what += f"; {data['limits']}" if data["limits"] else ""
    return f"{data['source']}: {data['n_graphs']} {noun}; {what}"


def _show_leave_one_out(output: Output, result: dict[str, Any], noun: str) -> None:
    """Scores beside those of the mean or the most frequent class, and remarks on them."""
    from treelens.cli.info import covariate_list
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    scores, numbers = result["leave_one_out"], result["task"] == "regression"
    ours, positive = scores["model"], scores.get("positive")
    simple, name = (scores["mean"], "mean of all") if numbers else (
        scores["majority"], "most frequent class")  # fmt: skip
    shown = ["rmse", "r2", "coverage"] if numbers else [
        n for n in CLASS_SCORES if ours[n] is not None and n != "log_loss"
    ]  # fmt: skip
    heads = {n: title for n, (title, _) in {**CLASS_SCORES, **NUMBER_SCORES}.items()}
    heads["coverage"] = "within 90 % interval"
    if positive:
        heads |= {n: f"{heads[n]} ({positive})" for n in ("recall", "precision", "pr_auc")}
    rows = [[title, *(score_text(n, found.get(n)) for n in shown)]
            for title, found in ((name, simple), ("this model", ours))]  # fmt: skip
    scale = result["data"]["transform"]
    of = f" of {scale} of {result['data']['target']}" if scale else ""
    title = f"Leave-one-out predictions{of} (each of the {noun} from all the others)"
    output.table(["", *(heads[n] for n in shown)], rows, title)
    if limits := scores.get("limits"):
        n_limits = limits["lower"] + limits["upper"]
        output.line(
            f"The scores are those of the {limits['exact']} measured values. {limits['held']} of "
            f"the {n_limits} limits are predicted on their side."
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
        least, share = (f"{100 * sure[name]:.0f} %" for name in ("least", "share"))
        output.line(
            f"Where it is at least {least} sure ({share} of the {noun}), it is wrong for "
            f"{percent(1 - sure['accuracy'])}."
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
        row = scores[title]
        if row is not None:
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
            f"{FRAGMENTS_SHOWN} prints the first, 'treelens fragments' all."
        )
    if not result["fragments"]:
        return
    numbers = result["task"] == "regression"
    text = (lambda x: "" if x is None else f"{x:.3g}") if numbers else percent
    rows = []
    for row in result["fragments"]:
        shown = row["smiles"] or row["pattern"]
        name = f"{row['name']}, {shown}" if row["name"] else shown
        name = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        name += f", for {row['class_label']}" if "class_label" in row else ""
        rows.append([name + (" (!)" if row["confounders"] else ""),
                     f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"],
                     text(row["measured_with"]), text(row["measured_without"])])  # fmt: skip
    toward = "" if result["toward"] is None else f" on {result['toward']}"
    scale = result["data"]["transform"]
    mean = f"mean {scale}" if scale else "mean" if numbers else "share" + toward.replace("on", "of")
    columns = ["fragment", f"effect{toward} ± standard error", noun, f"their {mean}",
               f"{mean} without it"]  # fmt: skip
    output.table(columns, rows, "Fragments with the largest effect on predictions")
    for row in result["fragments"]:
        if row["confounders"]:
            output.line(
                f"(!) {row['name'] or row['smiles'] or row['pattern']}: "
                f"{'; '.join(row['confounders'])}. The effect may not be that of the fragment."
            )


def _show_each(output: Output, result: dict[str, Any]) -> None:
    """All models one after the other, and then side by side."""
    for each in result["models"]:
        show_fit(output, each)
        output.line()
    rows = [
        [each["data"]["target"], each["task"], each["data"]["n_graphs"], _score(each),
         each["model"]] for each in result["models"]
    ]  # fmt: skip
    noun = noun_of(result["models"][0]["recipe"])
    output.table(["target", "task", noun, "score", "model"], rows, "All targets")


def _score(result: dict[str, Any]) -> str:
    """One score that can be compared between targets."""
    if result["method"] == "svc":
        return f"cross-validated {result['scoring']} {result['choice']['score']:.3f}"
    name, title = ("r2", "R2") if result["task"] == "regression" else ("roc_auc", "ROC AUC")
    return f"leave-one-out {title} {result['leave_one_out']['model'][name]:.3f}"
