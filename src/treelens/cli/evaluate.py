"""``treelens evaluate``: several models side by side, each learned anew in every outer fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from treelens.cli.data import GraphData
    from treelens.evaluation.splits import Split

Split_ = Annotated[
    str,
    typer.Option(
        "--split",
        help="How test graphs are kept apart: random, scaffold (whole Murcko scaffolds), cluster "
        "(whole clusters of like molecules), time=COLUMN (train on the past; rows that were merged "
        "count from the latest of their dates), column=COLUMN (train and test, or groups that stay "
        "whole). Copies of a molecule never part.",
    ),
]
Models_ = Annotated[
    str | None,
    typer.Option(
        "--models", "--kernels",
        help="Which to compare: evidence (what 'treelens fit' does), evidence_depths, "
        "evidence_uniform; for classes also svc (what 'treelens fit --method svc' does), "
        "wl_subtree, wl_oa, wwl, wl_tanimoto, the same with learned_ before it; ecfp_forest, "
        "ecfp_gp, ecfp_svm. Those without a uniform twin are tested against the first.",
        show_default="evidence,evidence_uniform",
    ),
]  # fmt: skip
Baselines_ = Annotated[
    bool,
    typer.Option(
        "--baselines",
        help="Also what a chemist would run: ecfp_forest, ecfp_gp and, for classes, ecfp_svm, "
        "each tuned within the training part.",
    ),
]


def evaluate_cli(
    data: options.Data,
    target: options.Target = None,
    smiles: options.Smiles = None,
    atom_label: options.AtomLabel = None,
    bond_label: options.BondLabel = None,
    hydrogens: options.Hydrogens = None,
    standardize: options.Standardize = False,
    standardize_steps: options.StandardizeSteps = None,
    task: options.Task = "auto",
    transform: options.TargetTransform = None,
    covariates: options.Covariates = None,
    descriptors: options.Descriptors = None,
    split: Split_ = "random",
    models: Models_ = None,
    baselines: Baselines_ = False,
    score: Annotated[
        str | None,
        typer.Option(
            "--score", help="The score that is tested.",
            show_default="roc_auc; accuracy of several classes; rmse of numbers",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive", metavar="CLASS", show_default="the rarer one",
            help="Of two classes the one that PR AUC, recall and precision are about.",
        ),
    ] = None,
    threshold: options.Threshold = "auto",
    depth: options.Depth = "auto",
    folds: Annotated[int, typer.Option("--folds", help="Outer folds.", min=2)] = 5,
    repeats: Annotated[int, typer.Option("--repeats", help="Repetitions of them.", min=1)] = 1,
    edge_labels: options.EdgeLabels = None,
    max_invalid: options.MaxInvalid = 0.1,
    missing: options.Missing = "skip",
    duplicates: options.Duplicates = "merge",
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Compare models on DATA by nested cross-validation, with tests of significance.

    All settings are chosen within the training part of each outer fold, thresholds too. What
    learns is tested against itself with uniform weights, or with covariates against itself without
    them, the others against the first that is alike. Classes are scored by ROC AUC, PR AUC, MCC,
    accuracy and more; numbers by RMSE, MAE, R2, the negative log predictive density (NLPD) and the
    share within the 90 % interval.
    """
    with command(as_json, debug) as output:
        from treelens.cli.covariates import asked_covariates
        from treelens.cli.data import read_training_data
        from treelens.cli.evaluate_models import (
            beside_structure,
            drop_impossible,
            model_names,
            models_for,
        )
        from treelens.cli.reading import Reading
        from treelens.cli.split_option import check_split, splits_for

        options.check_choice("--task", task, options.TASKS)
        check_split(split)
        options.check_threshold(threshold)
        all_of_them = "all" if baselines else None
        names = model_names(models, all_of_them)
        beside = asked_covariates(covariates, descriptors)
        if task != "auto":  # what cannot be is told before anything is read
            models_for([n for n in names if n != "ecfp_svm"], task, depth, edge_labels, seed, jobs)
        rows = read_training_data(
            data, target, smiles, max_invalid, duplicates, output.note,
            Reading.asked(atom_label, hydrogens, bond_label, standardize, standardize_steps),
            task, missing=missing, transform=transform, covariates=beside,
        )  # fmt: skip
        names = drop_impossible(
            names, all_of_them, rows.task, int(len(rows.graphs) * (1 - 1 / folds)),
            bool({"smiles", "mol"} & set(rows.graphs.graph_data)), output.note,
        )  # fmt: skip
        chosen = models_for(names, rows.task, depth, edge_labels, seed, jobs)
        if beside:
            chosen = beside_structure(chosen, beside)
        for model in chosen.values():
            if hasattr(model, "threshold"):
                model.threshold = threshold
        parts = splits_for(rows, split, folds, repeats, seed, output.note)
        result = evaluate_models(rows, chosen, parts, score, positive, output.progress)
        result |= {"split": split, "n_folds": folds, "n_repeats": repeats}
        output.finish(result, show_evaluation)


def evaluate_models(
    data: GraphData,
    models: dict[str, Any],
    splits: Sequence[Split],
    score: str | None = None,
    positive: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Scores of each model on the test parts, and paired tests, as plain data."""
    import numpy as np

    from treelens.cli.evaluate_models import rival_of
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES
    from treelens.evaluation.validation import (
        cross_validate,
        mean_scores,
        paired_tests,
        positive_class,
    )

    assert data.y is not None
    numbers = data.task == "regression"
    known = NUMBER_SCORES if numbers else CLASS_SCORES
    n_classes = 0 if numbers else len(np.unique(data.y))
    tested = score or ("rmse" if numbers else "roc_auc" if n_classes == 2 else "accuracy")
    options.check_choice("--score", tested, list(known))
    named = None if numbers else _checked_positive(positive, data.y) or positive_class(data.y)
    found = cross_validate(
        models, data.graphs, data.y, splits, positive=named,
        progress=lambda name, seconds: progress(f"{name}: {seconds:.0f} s"),
    )  # fmt: skip
    names = list(models)
    return {
        "source": data.source,
        "target": data.target,
        "task": data.task,
        "n_graphs": len(data.graphs),
        "n_splits": len(splits),
        "n_tested": int(np.mean([len(test) for _, test in splits])),
        "positive": positive
        if numbers or n_classes != 2
        else str(positive or positive_class(data.y)),
        **_without_a_model(data, splits),
        "models": [
            {"model": name, **mean_scores(found[name]["scores"]), **found[name]} for name in names
        ],
        "tested": tested,
        "tests": paired_tests(
            {name: found[name]["scores"][tested] for name in names},
            float(np.mean([len(test) / len(train) for train, test in splits])),
            lambda name: rival_of(name, names),
        ),
    }


def _share(y: Any, name: Any) -> float:
    return float((y.astype(str) == str(name)).mean())


def _checked_positive(positive: str | None, y: Any) -> str | None:
    import numpy as np

    classes = [str(name) for name in np.unique(y).tolist()]
    if positive is not None and (len(classes) != 2 or positive not in classes):
        raise InputError(
            f"--positive {positive}: expected one of two classes; there are "
            f"{', '.join(classes[:10])}."
        )
    return positive


def _without_a_model(data: GraphData, splits: Sequence[Split]) -> dict[str, float]:
    """What saying the mean, or the most frequent class, of the training part would score."""
    import numpy as np

    y = data.y
    assert y is not None
    if data.task == "regression":
        errors = [np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in splits]
        return {"mean_rmse": float(np.mean(errors))}
    classes, codes = np.unique(y, return_inverse=True)
    most = [np.bincount(codes[train], minlength=len(classes)).argmax() for train, _ in splits]
    hits = [np.mean(codes[test] == m) for m, (_, test) in zip(most, splits, strict=True)]
    share = (
        {} if len(classes) != 2 else {"positive_share": float(np.bincount(codes).min() / len(y))}
    )
    return {"majority": float(np.mean(hits)), **share}


# --- for a person at a terminal -----------------------------------------------------------------


def show_evaluation(output: Output, result: dict[str, Any]) -> None:
    """One table, and what to know about it."""
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    numbers = result["task"] == "regression"
    known = NUMBER_SCORES if numbers else CLASS_SCORES
    shown = [name for name in known if any(m[name] is not None for m in result["models"])]
    tests = {test["model"]: test for test in result["tests"]}
    rows = [_reference_row(result, shown)]
    for model in result["models"]:
        cells = [_cell(model, name, known) for name in shown]
        rows.append([model["model"], *cells, *_verdict(tests.get(model["model"]), result["tested"]),
                     f"{model['seconds']:.0f} s"])  # fmt: skip
    columns = ["model", *(known[name][0] for name in shown), "difference", "against", "p (Holm)",
               "time"]  # fmt: skip
    output.table(columns, rows, _title(result))
    output.line(_reading(result, known))
    for model in result["models"]:
        if model["n_one_class"]:
            output.line(
                f"{model['model']} names one class throughout in {model['n_one_class']} of "
                f"{result['n_splits']} test parts: its accuracy there is the share of that class."
            )


def _reference_row(result: dict[str, Any], shown: list[str]) -> list[str]:
    numbers = "mean_rmse" in result
    name, score = ("mean of the values", "rmse") if numbers else ("majority class", "accuracy")
    value = f"{result['mean_rmse']:.4g}" if numbers else percent(result["majority"])
    return [name, *(value if column == score else "" for column in shown), "", "", "", ""]


def _cell(model: dict[str, Any], name: str, known: Any) -> str:
    value, spread = model[name], model[f"{name}_std"]
    if value is None:
        return ""
    if name in ("accuracy", "balanced_accuracy", "recall", "precision", "coverage"):
        return percent(value)
    first = name == next(iter(known))
    if name in ("rmse", "mae"):
        return f"{value:.4g}" + (f" ± {spread:.2g}" if first and spread is not None else "")
    return f"{value:.3f}" + (f" ± {spread:.3f}" if first and spread is not None else "")


def _verdict(test: dict[str, Any] | None, tested: str) -> list[str]:
    if test is None:
        return ["", "", ""]
    digits = ".3g" if tested in ("rmse", "mae", "nlpd", "log_loss") else ".3f"
    change = f"{test['difference']:+{digits}}"
    if test["p_holm"] is None:  # one test part
        return [change, test["against"], ""]
    return [f"{change} ± {test['standard_error']:.2g}", test["against"], f"{test['p_holm']:.3f}"]


def _title(result: dict[str, Any]) -> str:
    from treelens.cli.split_option import WORDS

    kind, _, column = result["split"].partition("=")
    how = WORDS.get(kind) or (f"by {column!r}, past before future" if kind == "time"
                              else f"by {column!r}")  # fmt: skip
    repeated = f" x {result['n_repeats']}" if result["n_splits"] > result["n_folds"] else ""
    n = result["n_splits"] // (result["n_repeats"] if repeated else 1)
    parts = f"{n}{repeated} test parts" if n > 1 else "one test part"
    return f"{result['source']}: {result['n_graphs']} graphs, {parts}, {how}"


def _reading(result: dict[str, Any], known: Any) -> str:
    name, more = known[result["tested"]]
    words = [
        f"Differences of {name}, {'positive' if more else 'negative'} is better; two-sided "
        "corrected resampled t-test (Nadeau and Bengio), Holm over the table."
    ]
    if result.get("positive") is not None:
        words.append(
            f"PR AUC, recall and precision are about the class {result['positive']!r} "
            f"({percent(result['positive_share'])} of the graphs)."
        )
    return " ".join([*words, "All settings were chosen within each training part."])
