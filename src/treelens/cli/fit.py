"""``treelens fit``: learn a model from a file and save it; also the way of ``--method svc``."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent
from treelens.cli.covariates import asked_covariates
from treelens.cli.fit_evidence import (
    evidence_settings,
    fit_evidence,
    show_evidence,
    threshold_setting,
)
from treelens.cli.fit_fragments import USUALLY_SHOWN, first_fragments, show_fragments
from treelens.cli.scores import class_sizes

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.estimators.svc import GraphSVC
    from treelens.svm.search import Candidate, SearchResult

SCORINGS = ("auto", "accuracy", "balanced_accuracy", "roc_auc")


def fit_cli(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the model.")] = Path(
        "model.treelens"
    ),
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
    units: options.Units = None,
    covariates: options.Covariates = None,
    descriptors: options.Descriptors = None,
    method: options.Method = "evidence",
    depth: options.Depth = "auto",
    weights: options.Weights = None,
    kernel: options.Kernel = None,
    weight_radius: options.WeightRadius = None,
    edge_labels: options.EdgeLabels = None,
    scoring: options.Scoring = None,
    threshold: options.Threshold = "auto",
    max_invalid: options.MaxInvalid = 0.1,
    missing: options.Missing = "skip",
    duplicates: options.Duplicates = "merge",
    top: Annotated[int, typer.Option("--top", help="How many patterns to print.", min=0)] = 10,
    fragments: Annotated[
        int | None,
        typer.Option(
            "--fragments",
            help="How many of the fragments that move predictions to print.",
            min=0,
            show_default=f"{USUALLY_SHOWN}; none of more than two classes or 3,000 graphs, where "
            "finding them takes a while",
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Learn from DATA to predict a number or a class, and save the model.

    Fits a Gaussian process whose evidence decides how much every pattern weighs. Prints
    leave-one-out scores, whether learned weights predict better than uniform ones, the fragments
    that move predictions with their effects, and the patterns that matter. With --method svc, a
    support vector machine: what is left at auto is chosen by cross-validation, and the scores are
    those of that. What is wrong with the rows, and what was done about it, is told line by line.
    """
    with command(as_json, debug) as output:
        options.check_choice("--method", method, options.METHODS)
        options.check_choice("--task", task, options.TASKS)
        options.check_threshold(threshold)
        of_svc = {"--kernel": kernel, "--weight-radius": weight_radius, "--scoring": scoring,
                  "--edge-labels": edge_labels}  # fmt: skip
        if method == "svc":
            _refuse_what_svc_has_not(task, weights, threshold, covariates or descriptors)
            settings = classifier_settings(
                kernel or "auto", depth, weight_radius or "auto", edge_labels, scoring or "auto",
                seed, jobs,
            )  # fmt: skip
        else:
            settings = evidence_settings(depth, weights, seed, jobs, of_svc)
        beside = asked_covariates(covariates, descriptors)
        from treelens.cli.data import files_behind, read_training_sets
        from treelens.cli.places import refuse_model_as_data
        from treelens.cli.reading import Reading
        from treelens.storage.files import checked_target

        refuse_model_as_data(data)
        checked_target(out, reads=files_behind(data))  # before the work rather than after it
        sets = read_training_sets(
            data, target, smiles, max_invalid, duplicates, output.note,
            Reading.asked(atom_label, hydrogens, bond_label, standardize, standardize_steps),
            None if method == "svc" and task == "auto" else task,
            ids=ids, missing=missing, transform=transform, units=units, covariates=beside,
        )  # fmt: skip
        paths = [out] if len(sets) == 1 else [path_for(out, each) for each in sets]
        for path in paths:
            checked_target(path, reads=files_behind(data))
        fit, show = (fit_model, show_fit) if method == "svc" else (fit_evidence, show_evidence)
        results = []
        for training, path in zip(sets, paths, strict=True):
            output.progress(
                f"Learning from {len(training.graphs)} graphs of {_named(training)} ..."
            )
            own = {} if method == "svc" else threshold_setting(threshold, training)
            own = own | ({} if method == "svc" else {"covariates": beside})
            model, result = fit(training, settings | own, top, fragments)
            model.save(path)
            results.append({**result, "model": str(path)})
        if len(sets) == 1:
            output.finish(results[0], show)
        else:
            output.finish({"models": results}, lambda o, r: _show_each(o, r, show))


def path_for(out: Path, data: GraphData) -> Path:
    """Where the model of one of several targets goes: ``model-logP.treelens``."""
    name = re.sub(r"[^\w.+-]+", "_", data.target_name).strip("_") or "target"
    return out.with_name(f"{out.stem}-{name}{out.suffix}")


def _named(data: GraphData) -> str:
    return data.source if data.target is None else f"{data.source} ({data.target})"


def _show_each(output: Output, result: dict[str, Any], show: Any) -> None:
    """All models one after the other, and then side by side."""
    for each in result["models"]:
        show(output, each)
        output.line()
    rows = [_one_line_of(each) for each in result["models"]]
    output.table(["target", "task", "graphs", "score", "model"], rows, "All targets")


def _one_line_of(result: dict[str, Any]) -> list[Any]:
    data = result["data"]
    if result["method"] == "svc":
        score = f"cross-validated {result['scoring']} {result['choice']['score']:.3f}"
    elif result["task"] == "regression":
        score = f"leave-one-out R2 {result['leave_one_out']['model']['r2']:.3f}"
    else:
        score = f"leave-one-out accuracy {percent(result['leave_one_out']['model']['accuracy'])}"
    return [data["target"], result["task"], data["n_graphs"], score, result["model"]]


def _refuse_what_svc_has_not(
    task: str, weights: str | None, threshold: str, covariates: str | None
) -> None:
    if covariates is not None:
        raise InputError(
            f"--covariates {covariates}: support vector machines take none. Leave out --method svc."
        )
    if task == "regression":
        raise InputError(
            "--method svc learns classes only. Leave it out to predict numbers, or make a column "
            "of classes."
        )
    if weights is not None:
        raise InputError(
            "--weights is an option of --method evidence; support vector machines have "
            "--weight-radius: 0 for uniform weights."
        )
    if threshold != "auto":
        raise InputError(
            "--threshold is an option of --method evidence; support vector machines balance rare "
            "classes."
        )


def classifier_settings(
    kernel: str = "auto",
    depth: str = "auto",
    weight_radius: str = "auto",
    edge_labels: bool | None = None,
    scoring: str = "auto",
    seed: int = 0,
    jobs: int = -1,
) -> dict[str, Any]:
    """Options of the command line as parameters of ``GraphSVC``."""
    options.check_choice("--scoring", scoring, SCORINGS)
    options.check_jobs(jobs)
    return {
        "kernel": options.parsed_kernels(kernel),
        "depth": options.parsed_numbers(depth, "--depth", int),
        "weight_radius": options.parsed_numbers(weight_radius, "--weight-radius", float),
        "edge_labels": "auto" if edge_labels is None else edge_labels,
        "scoring": scoring,
        "random_state": seed,
        "n_jobs": jobs,
    }


def fit_model(
    data: GraphData, settings: dict[str, Any], top: int = 10, fragments: int | None = None
) -> tuple[GraphSVC, dict[str, Any]]:
    """Fit, and sum up what came of it as plain data."""
    from treelens.cli.patterns import top_patterns
    from treelens.estimators.svc import GraphSVC

    start = time.perf_counter()
    model = GraphSVC(**settings).fit(data.graphs, data.y)
    scores = compared_scores(model, data, settings)
    return model, {
        "method": "svc",
        "task": "classification",
        "data": {
            "source": data.source,
            "target": data.target,
            "n_graphs": len(data.graphs),
            "n_left_out": data.n_rows - len(data.graphs),
            "classes": class_sizes(data.y),
        },
        "scoring": model.best_params_["scoring"],
        "scores": scores,
        "learning_gain": model.learning_gain_,
        "choice": model.best_params_,
        "recipe": None if model.recipe_ is None else model.recipe_.to_plain(),
        "n_patterns": model.train_histograms_.n_patterns,
        "patterns": top_patterns(model, top),
        **first_fragments(model, data, fragments),
        "seconds": time.perf_counter() - start,
    }


def recipe_sentence(recipe: dict[str, Any] | None) -> str:
    """What made the graphs that a model was fitted to."""
    from treelens.graphs.recipe import GraphRecipe

    shown = "graphs of unknown making" if recipe is None else GraphRecipe.from_plain(recipe)
    return f"Fitted to: {shown}"


def compared_scores(model: GraphSVC, data: GraphData, settings: dict[str, Any]) -> dict[str, Any]:
    """Cross-validated scores: majority class, best uniform and best learned candidate.

    They come from the validation that also chose between candidates, so they are slightly
    optimistic; ``treelens evaluate`` nests the choice.
    """
    from treelens.estimators.svc import GraphSVC

    uniform_search = model.cv_results_
    if (
        uniform_search.best(lambda c: c.weight_radius == 0) is None
    ):  # only radii above 0 were asked for
        plain_model = GraphSVC(**{**settings, "weight_radius": 0.0}).fit(data.graphs, data.y)
        uniform_search = plain_model.cv_results_
    uniform = uniform_search.best(lambda c: c.weight_radius == 0)
    learned = model.cv_results_.best(lambda c: c.weight_radius > 0)
    return {
        "majority": majority_score(data.y, model.best_params_["scoring"]),
        "uniform": _score_row(uniform_search, uniform),
        "learned": _score_row(model.cv_results_, learned),
        "learned_fell_behind": learned is None
        and any(c.weight_radius > 0 for c in model.cv_results_.scores),
    }


def majority_score(y: Any, scoring: str) -> float:
    """What the largest class, given to all graphs, scores."""
    import numpy as np

    _, counts = np.unique(y, return_counts=True)
    if scoring == "accuracy":
        return float(counts.max() / counts.sum())
    return 0.5 if scoring == "roc_auc" else 1.0 / len(counts)


def _score_row(search: SearchResult, candidate: Candidate | None) -> dict[str, Any] | None:
    import numpy as np

    if candidate is None:
        return None
    scores = search.scores[candidate]
    return {
        "mean": float(np.mean(scores)),
        "standard_deviation": float(np.std(scores)),
        "n_splits": len(scores),
        **candidate._asdict(),
    }


def show_fit(output: Output, result: dict[str, Any]) -> None:
    """For a person at a terminal."""
    from treelens.cli.patterns import show_patterns

    data = result["data"]
    classes = ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    output.line(f"{data['source']}: {data['n_graphs']} graphs; classes {classes}")
    output.line(recipe_sentence(result["recipe"]))
    if (sentence := rare_sentence(result["choice"])) is not None:
        output.line(sentence)
    show_scores(output, result)
    output.line(
        "The settings were chosen on these same splits, so the figures are slightly optimistic; "
        "'treelens evaluate' nests the choice."
    )
    output.line(chosen_sentence(result))
    output.line()
    show_fragments(output, result)
    show_patterns(
        output, result["patterns"], result["choice"]["weight_radius"] > 0, result["n_patterns"]
    )
    output.line(f"Time: {result['seconds']:.1f} s")
    if "model" in result:
        output.line(f"Model: {result['model']}")


def show_scores(output: Output, result: dict[str, Any]) -> None:
    """The three rows that say whether anything was learned."""
    scores, name = result["scores"], result["scoring"].replace("_", " ")
    rows = [["majority class", percent(scores["majority"]), ""]]
    for title, key in (("uniform weights", "uniform"), ("learned weights", "learned")):
        row = scores[key]
        if row is not None:
            spread = f"{percent(row['mean'])} ± {100 * row['standard_deviation']:.1f}"
            rows.append([title, spread, _setting(row)])
    if scores["learned_fell_behind"]:
        rows.append(["learned weights", "", "tried, clearly behind after a few splits"])
    n_splits = scores["uniform"]["n_splits"]
    output.table(
        ["", name, "best setting"],
        rows,
        f"Cross-validated {name} (mean ± deviation of {n_splits} splits)",
    )


def rare_sentence(choice: dict[str, Any]) -> str | None:
    """What was done about a rare class; None where there is none, or nothing was done."""
    rare, balanced = choice["rare_class"], choice["class_weight"] == "balanced"
    if rare is None or not (balanced or choice["scoring"] != "accuracy"):
        return None
    weighed = ", and errors weigh the same in every class" if balanced else ""
    return (
        f"Class {rare['class']} is rare ({percent(rare['share'])}): settings are chosen by "
        f"{choice['scoring'].replace('_', ' ')}{weighed}."
    )


def _setting(row: dict[str, Any]) -> str:
    parts = [row["kernel"], f"depth {row['depth']}"]
    parts += [f"radius {row['weight_radius']:g}"] if row["weight_radius"] else []
    parts += [] if row["gamma"] is None else [f"gamma {row['gamma']:g}"]
    return ", ".join([*parts, f"C {row['C']:g}"])


def chosen_sentence(result: dict[str, Any]) -> str:
    """What was chosen, and whether learning helped, in a sentence or two."""
    choice, gain = result["choice"], result["learning_gain"]
    kind = "learned" if choice["weight_radius"] > 0 else "uniform"
    sentence = f"Chosen: {kind} weights, {_setting(choice)}."
    if gain is not None:
        sentence += f" Learning changed the score by {100 * gain['difference']:+.1f}"
        if gain["p_value"] is None:  # one split
            return f"{sentence} points."
        sentence += (
            f" ± {100 * gain['standard_error']:.1f} points (one-sided p = {gain['p_value']:.2f})."
        )
    return sentence
