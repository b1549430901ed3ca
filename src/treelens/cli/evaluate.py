"""``treelens evaluate``: several models side by side, each fitted anew in every outer fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import InputError, Output, command, percent, score_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from treelens.evaluation.splits import Split
    from treelens.graphs.molecule_table import MoleculeTable

EVIDENCE = {"evidence": None, "evidence_branches": "branches", "evidence_depths": "depths",
            "evidence_uniform": "uniform"}  # fmt: skip
# Kernels of GraphSVC; with learned_ before the name, weights are learned by pairwise losses.
SVC_KERNELS = {
    "wl_subtree": ("wl-subtree", "wl-subtree-cosine"),
    "wl_oa": ("wl-oa", "tanimoto"),
    "wwl": ("wwl",),
    "wl_tanimoto": ("tanimoto-rbf",),
}
BASELINE_NAMES = ("ecfp_gp", "ecfp_forest", "boosting")
KNOWN = (*EVIDENCE, "svc", *SVC_KERNELS, *(f"learned_{name}" for name in SVC_KERNELS),
         *BASELINE_NAMES)  # fmt: skip
WITH_COVARIATES = "+covariates"  # after the name of a model that takes them
_SPLITS = {
    "random": "random folds, copies of a molecule together",
    "scaffold": "folds of whole Murcko scaffolds",
    "cluster": "folds of whole clusters (Butina, ECFP4 Tanimoto 0.4)",
}
SplitKind = Annotated[str, options.option(
    "--split",
    help="How test graphs are kept apart: random, scaffold (whole Murcko scaffolds), cluster "
    "(whole clusters of similar molecules), time=COLUMN (train on the past; merged rows count "
    "from the latest of their dates), column=COLUMN (train and test, or groups that stay "
    "together). Copies of a molecule are never on both sides.",
)]  # fmt: skip
Models = Annotated[str, options.option(
    "--models",
    help="Which to compare: evidence (what 'treelens fit' does), evidence_branches, "
    "evidence_depths, evidence_uniform; for classes also svc (what 'treelens fit --method svc' "
    "does), wl_subtree, wl_oa, wwl, wl_tanimoto, each also as learned_NAME; for molecules also "
    "ecfp_gp, ecfp_forest, boosting. Others than evidence and learned_NAME are tested against "
    "the first.",
)]  # fmt: skip
Baselines = Annotated[bool, options.option(
    "--baselines",
    help="Add ecfp_gp, ecfp_forest and boosting: models on fingerprints and descriptors, tuned "
    "within the training part.",
)]  # fmt: skip
Score = Annotated[str | None, options.option(
    "--score", help="The score that is tested.",
    default="roc_auc; accuracy of several classes; rmse of numbers",
)]  # fmt: skip
Positive = Annotated[str | None, options.option(
    "--positive", metavar="CLASS", default="the second one",
    help="Of two classes the one that PR AUC, recall and precision are about.",
)]  # fmt: skip
Folds = Annotated[int, typer.Option("--folds", help="Outer folds.", min=2)]
Repeats = Annotated[int, typer.Option("--repeats", help="Repetitions of them.", min=1)]


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
    qualifier: options.Qualifier = None,
    covariates: options.Covariates = None,
    descriptors: options.Descriptors = "auto",
    split: SplitKind = "random",
    models: Models = "evidence,evidence_uniform",
    baselines: Baselines = False,
    score: Score = None,
    positive: Positive = None,
    threshold: options.Threshold = "auto",
    depth: options.Depth = "auto",
    folds: Folds = 5,
    repeats: Repeats = 1,
    max_invalid: options.MaxInvalid = 0.1,
    missing: options.Missing = "skip",
    duplicates: options.Duplicates = "merge",
    noise: options.Noise = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Compare models on DATA by nested cross-validation, with tests of significance.

    All settings are chosen within the training part of each outer fold, thresholds too. Models with
    learned weights are tested against uniform weights, models with covariates against the same
    without them, the others against the first. Classes are scored by ROC AUC, PR AUC, MCC, accuracy
    and more; numbers by RMSE, MAE, R2, the negative log predictive density (NLPD) and the share
    within the 90 % interval.
    """
    with command(as_json, debug) as output:
        from treelens.cli.fit import training_sets
        from treelens.evaluation.table_splits import check_split, table_splits

        check_split(split)
        options.check_threshold(threshold)
        names = _model_names(models, baselines)
        (table,) = training_sets(
            output, data, target, smiles=smiles, max_invalid=max_invalid,
            covariates=options.column_list(covariates, "--covariates"),
            descriptors="rdkit" if descriptors == "rdkit" else None,
            recipe=options.recipe_options(atom_label, hydrogens, bond_label, standardize,
                                          standardize_steps),
            task=task, transform=transform, duplicates=duplicates, missing=missing, several=False,
            qualifier=qualifier, noise=noise,
        )  # fmt: skip
        if baselines and not {"smiles", "mol"} & set(table.graphs.graph_data):
            output.note("the baselines are left out: these graphs were not read from molecules.")
            names = [name for name in names if name not in BASELINE_NAMES]
        chosen = _models(names, table, depth, descriptors, threshold, seed, jobs)
        notes: list[str] = []
        parts = table_splits(table, split, folds, repeats, seed, notes)
        if table.limits is not None:
            parts = _exact_tests(parts, table.limits, names, notes)
        output.note(*notes)
        result = evaluate_models(table, chosen, parts, score, positive, output.progress)
        result |= {"split": split, "n_folds": folds, "n_repeats": repeats}
        output.finish(result, _show)


# --- models -----------------------------------------------------------------------------------


def _model_names(models: str, baselines: bool) -> list[str]:
    names = [name.strip() for name in models.split(",")]
    for name in names:
        options.check_choice("--models", name, KNOWN)
    return list(dict.fromkeys([*names, *(BASELINE_NAMES if baselines else ())]))


def _models(names: Sequence[str], table: MoleculeTable, *settings: Any) -> dict[str, Any]:
    """Estimators by name; where the table has covariates, the evidence ones also with them."""
    chosen = {name: _model(name, table.task, *settings) for name in names}
    if not table.covariates:
        return chosen
    both = {f"{name}{WITH_COVARIATES}": _with_covariates(model, table.covariates)
            for name, model in chosen.items() if name in EVIDENCE}  # fmt: skip
    return {**both, **chosen}


def _model(
    name: str, task: str, depth: str, descriptors: str, threshold: str, seed: int, jobs: int
) -> Any:
    """An estimator, not yet fitted."""
    from treelens import GraphClassifier, GraphRegressor, GraphSVC, PairwiseWeights
    from treelens.estimators.baselines import BASELINES
    from treelens.estimators.published import LearnedKernelSVC
    from treelens.pairwise.settings import QuasiNewton

    regression = task == "regression"
    if name in EVIDENCE:
        settings = options.process_settings(depth, EVIDENCE[name], descriptors, seed, jobs)
        if regression:
            return GraphRegressor(**settings, progress=False)
        return GraphClassifier(**settings, threshold=threshold, progress=False)
    if name in BASELINE_NAMES:
        return BASELINES[name][regression](n_jobs=options.checked_jobs(jobs), random_state=seed)
    if regression:
        raise InputError(
            f"--models {name}: it learns classes, and this is a regression. Use of "
            f"{', '.join(EVIDENCE)}, or --task classification."
        )
    settings = options.svc_settings(None, depth, None, None, seed, jobs)
    model = GraphSVC(**settings, progress=False)
    base = name.removeprefix("learned_")
    if base in SVC_KERNELS:
        model.set_params(kernel=list(SVC_KERNELS[base]), weight_radius=0.0)
    if base == name:
        return model
    return LearnedKernelSVC(model, PairwiseWeights(solver=QuasiNewton(tol=1e-3), random_state=seed))


def _with_covariates(model: Any, names: Sequence[str]) -> Any:
    """An estimator that is fitted with these covariates wherever it is fitted."""
    kind = type(model)

    def fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return kind.fit(self, X, y, sample_weight, covariates=list(names))

    own = type(kind.__name__, (kind,), {"fit": fit, "__module__": kind.__module__})
    return own(**model.get_params(deep=False))


def rival_of(name: str, names: list[str]) -> str | None:
    """What a model is tested against: itself without learning or covariates, else the first."""
    base = name.removesuffix(WITH_COVARIATES)
    similar = [other for other in names if other.endswith(WITH_COVARIATES) == (base != name)]
    learns = base in EVIDENCE and base != "evidence_uniform"
    if base != name:
        others = [other for other in similar if other != name]
        return base if learns or not others else others[0]
    twin = "evidence_uniform" if learns else name.removeprefix("learned_")
    rival = twin if twin in similar and twin != name else similar[0]
    return None if rival == name else rival


# --- scores -----------------------------------------------------------------------------------


def _exact_tests(
    splits: Sequence[Split], limits: Any, names: list[str], notes: list[str]
) -> list[Split]:
    """Splits with measured values alone in their test parts."""
    exact = [(train, test[limits[test] == 0]) for train, test in splits]
    if not all(len(test) for _, test in exact):
        raise InputError("A test part holds limits only: use fewer --folds, or another --split.")
    others = ", ".join(name for name in names if name not in EVIDENCE)
    notes.append(
        "limits are learned from but not scored: scores are of measured values, among which a "
        "model that never predicts beyond the limits looks better than it is."
        + (f" {others}: limits are taken for values." if others else "")
    )
    return exact


def evaluate_models(
    table: MoleculeTable,
    models: dict[str, Any],
    splits: Sequence[Split],
    score: str | None = None,
    positive: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Scores of each model on the test parts, and paired tests, as plain data."""
    import numpy as np

    from treelens.cli.fit import noun_of
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES
    from treelens.evaluation.validation import (
        cross_validate,
        mean_scores,
        paired_tests,
        positive_class,
    )

    graphs, y = table.learned()
    numbers = table.task == "regression"
    classes = [] if numbers else [str(name) for name in np.unique(y).tolist()]
    tested = score or ("rmse" if numbers else "roc_auc" if len(classes) == 2 else "accuracy")
    options.check_choice("--score", tested, list(NUMBER_SCORES if numbers else CLASS_SCORES))
    if positive is not None and (len(classes) != 2 or positive not in classes):
        raise InputError(
            f"--positive {positive}: expected one of two classes; there are "
            f"{', '.join(classes[:10]) or 'none'}."
        )
    named = (positive or str(positive_class(y))) if len(classes) == 2 else None
    found = cross_validate(
        models, graphs, y, splits, positive=named,
        progress=lambda name, seconds: progress(f"{name}: {seconds:.0f} s"),
    )  # fmt: skip
    names = list(models)
    return {
        "source": table.source,
        "target": table.target,
        "task": table.task,
        "noun": noun_of(graphs.recipe),
        "n_graphs": len(graphs),
        "n_splits": len(splits),
        "n_tested": int(np.mean([len(test) for _, test in splits])),
        "positive": named,
        **({} if named is None else {"positive_share": float((y.astype(str) == named).mean())}),
        **_without_a_model(y, numbers, splits),
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


def _without_a_model(y: Any, numbers: bool, splits: Sequence[Split]) -> dict[str, float]:
    """Scores of predicting the mean, or the most frequent class, of the training part."""
    import numpy as np

    if numbers:
        errors = [np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in splits]
        return {"mean_rmse": float(np.mean(errors))}
    classes, codes = np.unique(y, return_inverse=True)
    most = [np.bincount(codes[train], minlength=len(classes)).argmax() for train, _ in splits]
    hits = [np.mean(codes[test] == m) for m, (_, test) in zip(most, splits, strict=True)]
    return {"majority": float(np.mean(hits))}


# --- printing ---------------------------------------------------------------------------------


def _show(output: Output, result: dict[str, Any]) -> None:
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    numbers = result["task"] == "regression"
    known = NUMBER_SCORES if numbers else CLASS_SCORES
    shown = [name for name in known if any(m[name] is not None for m in result["models"])]
    tests = {test["model"]: test for test in result["tests"]}
    reference = ("mean of all", "rmse") if numbers else ("most frequent class", "accuracy")
    value = f"{result['mean_rmse']:.4g}" if numbers else percent(result["majority"])
    rows = [[reference[0], *(value if name == reference[1] else "" for name in shown), *[""] * 4]]
    for model in result["models"]:
        cells = [_cell(model, name, known, result["n_splits"]) for name in shown]
        rows.append([model["model"], *cells, *_verdict(tests.get(model["model"]), result),
                     f"{model['seconds']:.0f} s"])  # fmt: skip
    columns = ["model", *(known[name][0] for name in shown), "difference", "against", "p (Holm)",
               "time"]  # fmt: skip
    output.table(columns, rows, _title(result))
    output.line(_reading(result, known))
    for model in result["models"]:
        if model["n_one_class"]:
            output.line(
                f"{model['model']} predicts one class throughout in {model['n_one_class']} of "
                f"{result['n_splits']} test parts: its accuracy there is the share of that class."
            )


def _cell(model: dict[str, Any], name: str, known: Any, n_splits: int) -> str:
    text = score_text(name, model[name])
    if not text or text.endswith("%") or name != next(iter(known)) or n_splits == 1:
        return text
    return f"{text} ± {model[f'{name}_std']:{'.2g' if name == 'rmse' else '.3f'}}"


def _verdict(test: dict[str, Any] | None, result: dict[str, Any]) -> list[str]:
    if test is None or test["difference"] == test["standard_error"] == 0:  # the same predictions
        return ["", "", ""]
    digits = ".3g" if result["tested"] in ("rmse", "mae", "nlpd", "log_loss") else ".3f"
    change = f"{test['difference']:+{digits}}"
    if result["n_splits"] == 1:  # there is no spread to test against
        return [change, test["against"], ""]
    return [f"{change} ± {test['standard_error']:.2g}", test["against"], f"{test['p_holm']:.3f}"]


def _title(result: dict[str, Any]) -> str:
    kind, _, column = result["split"].partition("=")
    how = _SPLITS.get(kind) or (f"by {column!r}, past before future" if kind == "time"
                                else f"by {column!r}")  # fmt: skip
    repeated = f" x {result['n_repeats']}" if result["n_splits"] > result["n_folds"] else ""
    n = result["n_splits"] // (result["n_repeats"] if repeated else 1)
    parts = f"{n}{repeated} test parts" if n > 1 else "one test part"
    return f"{result['source']}: {result['n_graphs']} {result['noun']}, {parts}, {how}"


def _reading(result: dict[str, Any], known: Any) -> str:
    name, more = known[result["tested"]]
    words = [f"Differences of {name}, {'positive' if more else 'negative'} is better."]
    if result["n_splits"] > 1:
        words.append("P-values: two-sided corrected resampled t-test (Nadeau and Bengio), Holm.")
    if result["positive"] is not None:
        words.append(
            f"PR AUC, recall and precision are about the class {result['positive']!r} "
            f"({percent(result['positive_share'])} of the {result['noun']})."
        )
    return " ".join([*words, "All settings were chosen within each training part."])
