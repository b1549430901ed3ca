"""``treelens evaluate``: several models side by side, each fitted anew in every outer fold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import treelens as tl
from treelens.cli import options
from treelens.cli.console import Output, command, percent, score_text
from treelens.cli.endpoints import evaluate_endpoints, show_evaluated
from treelens.errors import check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from treelens.chem.molecule_table import MoleculeTable
    from treelens.evaluation.splits import Split

# Gaussian processes and their weights.
GP = {"gp": "auto", "gp_branches": "branches", "gp_depths": "depths", "gp_uniform": "uniform"}
# Kernels of GraphSVC; with learned_ before the name, weights are learned by pairwise losses.
SVC_KERNELS = {
    "wl_subtree": ("wl-subtree", "wl-subtree-cosine"),
    "wl_oa": ("wl-oa", "tanimoto"),
    "wwl": ("wwl",),
    "wl_tanimoto": ("tanimoto-rbf",),
}
BASELINE_NAMES = ("ecfp_gp", "ecfp_forest", "boosting")
WITH_COVARIATES = "+covariates"  # after the name of a model that takes them
_MODELS = "gp,gp_uniform"
_SAME = 1e-9  # differences below this are rounding


@command
def evaluate_cli(
    output: Output,
    data: options.TrainingSource,
    training: options.Training,
    split: Annotated[
        str,
        options.option(
            "How test graphs are kept apart: random, scaffold (whole Murcko scaffolds), cluster "
            "(whole clusters of similar molecules), time=COLUMN (train on the past), column=COLUMN "
            "(train and test, or groups that stay together).",
        ),
    ] = "random",
    models: Annotated[
        str,
        options.option(
            "gp (what 'treelens fit' does), gp_branches, gp_depths, gp_uniform; of classes also "
            "svc, wl_subtree, wl_oa, wwl, wl_tanimoto, each also as learned_NAME; of molecules "
            "also ecfp_gp, ecfp_forest, boosting.",
        ),
    ] = _MODELS,
    baselines: Annotated[
        bool,
        options.option(
            "Add ecfp_gp, ecfp_forest, boosting: on fingerprints and descriptors.",
            "--baselines",
        ),
    ] = False,
    rival: Annotated[
        list[str] | None,
        options.option(
            "A scikit-learn estimator MODULE:NAME (sklearn.ensemble:RandomForestRegressor; its "
            "columns: ECFP4 counts and descriptors, of other graphs counts of patterns), or a CSV "
            "of predictions with a column row or of names, and fold. May be given again.",
            "--rival",
            metavar="RIVAL",
            default="none",
        ),
    ] = None,
    score: Annotated[
        str | None,
        options.option(
            "The score that is tested.",
            default="roc_auc; accuracy of several classes; rmse of numbers",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        options.option(
            "The class of PR AUC, recall and precision.",
            metavar="CLASS",
            default=options.POSITIVE,
        ),
    ] = None,
    folds: Annotated[int, options.option("Outer folds.", min=2)] = 5,
    repeats: Annotated[int, options.option("Repetitions of them.", min=1)] = 1,
) -> None:
    """Compare models on DATA by nested cross-validation.

    All settings and thresholds are chosen within the training part of each outer fold, and copies
    of a molecule are never on both sides. Models with learned weights are tested against uniform
    weights, models with covariates against the same without them, the others against the first.
    Several --target (endpoints): scores of each when they are learned together, and by itself.
    """
    from treelens.chem.table_splits import check_split, table_splits

    check_split(split)
    names = options.split_columns(models, "--models")
    names += [name for name in BASELINE_NAMES if baselines and name not in names]
    known = (*GP, "svc", *SVC_KERNELS, *(f"learned_{x}" for x in SVC_KERNELS), *BASELINE_NAMES)
    for name in names:
        check_choice("--models", name, known)
    table = training.read(output, data)
    if table.task == "several":
        one = {"--models": models if models != _MODELS else None, "--baselines": baselines or None}
        one["--rival"] = ", ".join(rival) if rival else None
        options.check_one_target({**one, "--score": score, "--positive": positive})
        notes = list[str]()
        splits = table_splits(table, split, folds, repeats, training.seed, notes)
        output.note(*notes)
        found = evaluate_endpoints(output, table, training.gp_settings(), splits)
        found |= {"split": split, "n_folds": folds, "n_repeats": repeats}
        output.finish(found, show_evaluated)
        return
    if baselines and not {"smiles", "mol"} & set(table.graphs.graph_data):
        output.note("the baselines are left out: these graphs were not read from molecules.")
        names = [name for name in names if name not in BASELINE_NAMES]
    chosen = {name: _model(name, table.task, training) for name in names}
    if table.covariates:
        chosen = {name + WITH_COVARIATES: chosen[name] for name in names if name in GP} | chosen
    notes = list[str]()
    table, own_parts = _add_rivals(chosen, rival or [], table, training, notes)
    if own_parts is not None and (split, repeats) != ("random", 1):
        raise ValueError("A file of predictions with a column 'fold' is the --split: leave it out.")
    parts = own_parts or table_splits(table, split, folds, repeats, training.seed, notes)
    if table.targets is not None and table.targets.limits is not None:
        exact = table.targets.exact
        parts = [(train, test[exact[test]]) for train, test in parts]
        if not all(len(test) for _, test in parts):
            raise ValueError("A test part has limits only: use fewer --folds, or another --split.")
        others = ", ".join(name for name in names if name not in GP)
        notes.append(
            "limits are learned from but not scored, which flatters models that never predict "
            "beyond them." + (f" {others}: limits are taken for values." if others else "")
        )
    output.note(*notes)
    result = _evaluated(output, table, chosen, parts, score, positive)
    if own_parts is not None:
        split, folds = "file", len(own_parts)
    result |= {"split": split, "n_folds": folds}
    output.finish(result | {"n_repeats": repeats}, _show)


def _add_rivals(
    chosen: dict[str, Any],
    rivals: Sequence[str],
    table: MoleculeTable,
    training: options.Training,
    notes: list[str],
) -> tuple[MoleculeTable, list[Split] | None]:
    """Add what a user brings to the models by name; return the splits of a file, if it has them.

    The graphs of the table know their positions, by which predictions in a file are looked up.
    """
    from treelens.chem.rivals import POSITION, read_rival, rival_estimator

    parts: list[Split] | None = None
    for name in rivals:
        if (path := Path(name).expanduser()).is_file():
            made, own_parts = read_rival(path, table, notes)
            if parts is not None and own_parts is not None:
                raise ValueError("--rival: only one file of predictions can have a column 'fold'.")
            title, parts = path.name, own_parts or parts
        else:
            title, made = rival_estimator(name, table.task, training.jobs, training.seed)
        if title in chosen:
            raise ValueError(f"--rival {name}: another model is called {title!r} already.")
        chosen[title] = made
    graphs = table.graphs.with_data({POSITION: range(len(table.graphs))})
    return replace(table, graphs=graphs), parts


def _model(name: str, task: str, training: options.Training) -> Any:
    """Return an estimator, not yet fitted."""
    from treelens.chem.baselines import BASELINES, LearnedKernelSVC
    from treelens.pairwise.solvers import QuasiNewton

    regression, seed = task == "regression", training.seed
    if name in GP:
        settings = training.gp_settings(GP[name])
        if regression:
            return tl.GraphRegressor(**settings, progress=False)
        return tl.GraphClassifier(**settings, threshold=training.threshold, progress=False)
    if name in BASELINE_NAMES:
        return BASELINES[name][regression](n_jobs=training.jobs, random_state=seed)
    if regression:
        raise ValueError(f"--models {name}: it learns classes, and this is a regression.")
    model = tl.GraphSVC(**training.svc_settings(), progress=False)
    base = name.removeprefix("learned_")
    if base in SVC_KERNELS:
        model.set_params(kernel=list(SVC_KERNELS[base]), weight_radius=0.0)
    if base == name:
        return model
    learner = tl.PairwiseWeights(solver=QuasiNewton(tol=1e-3), random_state=seed)
    return LearnedKernelSVC(model, learner)


def rival_of(name: str, names: list[str]) -> str | None:
    """Return the rival of a model: itself without covariates or learning, else the first."""
    if name.endswith(WITH_COVARIATES):
        return name.removesuffix(WITH_COVARIATES)
    twin = "gp_uniform" if name in GP else name.removeprefix("learned_")
    if twin == name or twin not in names:
        twin = next(other for other in names if not other.endswith(WITH_COVARIATES))
    return None if twin == name else twin


def _evaluated(
    output: Output,
    table: MoleculeTable,
    models: dict[str, Any],
    splits: Sequence[Split],
    score: str | None,
    positive: str | None,
) -> dict[str, Any]:
    """Return scores of each model on the test parts, and paired tests, as plain data."""
    import numpy as np
    from sklearn.dummy import DummyClassifier, DummyRegressor

    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES
    from treelens.evaluation.validation import compare_models, cross_validate, mean_scores
    from treelens.targets import positive_code

    graphs, y = table.graphs, table.targets
    assert y is not None
    numbers = table.task == "regression"
    if numbers and y.record.reported is not None:  # scores are on the scale that was asked for
        std = y.learned_noise()
        y = tl.Targets(y.learned(), limits=y.limits, noise=std, transform="none")
    labels = [str(label) for label in y.tolist()]
    classes = [] if numbers else [str(name) for name in np.unique(y).tolist()]
    tested = score or ("rmse" if numbers else "roc_auc" if len(classes) == 2 else "accuracy")
    known = NUMBER_SCORES if numbers else CLASS_SCORES
    check_choice("--score", tested, tuple(known))
    if positive is not None:
        check_choice("--positive", positive, tuple(classes if len(classes) == 2 else ()))
    code = None if numbers else positive_code(np.unique(y))
    named = positive if code is None else positive or classes[code]
    beside = {"covariates": list(table.covariates)}
    found = cross_validate(
        models,
        graphs,
        y,
        splits,
        positive=named,
        fit_options={name: beside for name in models if name.endswith(WITH_COVARIATES)},
        progress=lambda name, seconds: output.progress(f"{name}: {seconds:.0f} s"),
    )
    dummy = DummyRegressor() if numbers else DummyClassifier()  # the mean; the most frequent class
    reference = "rmse" if numbers else "accuracy"
    simple = cross_validate({"": dummy}, graphs, y, splits)[""]["scores"][reference]
    rival = partial(rival_of, names=list(models))
    return {
        "source": table.source,
        "target": table.target,
        "task": table.task,
        "noun": table.noun,
        "n_graphs": len(graphs),
        "n_splits": len(splits),
        "n_tested": int(np.mean([len(test) for _, test in splits])),
        "positive": named,
        **({} if named is None else {"positive_share": labels.count(named) / len(labels)}),
        "mean_rmse" if numbers else "majority": float(np.mean(simple)),
        "tested": tested,
        **compare_models(found, tested, known[tested][1], splits, rival),
        "models": [_row(name, each, mean_scores(each["scores"])) for name, each in found.items()],
    }


def _row(name: str, found: dict[str, Any], means: dict[str, Any]) -> dict[str, Any]:
    """Return means and scores of a model, without the predictions behind them."""
    return {"model": name, **means, **{k: v for k, v in found.items() if k != "held_out"}}


def _show(output: Output, result: dict[str, Any]) -> None:
    """Print the tested score, three others and the tests; 80 columns are wide enough."""
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    numbers, tested, models = result["task"] == "regression", result["tested"], result["models"]
    known = NUMBER_SCORES if numbers else CLASS_SCORES
    others = [name for name in known if any(model[name] is not None for model in models)]
    shown = [tested, *(name for name in others if name not in (tested, "nlpd"))][:4]
    simple, reference, value = (
        ("mean of all", "rmse", "mean_rmse")
        if numbers
        else ("most frequent class", "accuracy", "majority")
    )
    value = score_text(reference, result[value])
    rows = [[simple, *(value if name == reference else "" for name in shown)]]
    for model in models:
        cells = [score_text(name, model[name]) for name in shown]
        spread = model[f"{tested}_std"]
        if result["n_splits"] > 1 and spread is not None and spread > _SAME:
            cells[0] += f" ± {score_text(tested, float(f'{spread:.2g}')).removesuffix(' %')}"
        if (interval := result["intervals"].get(model["model"])) is not None:
            ends = [score_text(tested, end).removesuffix(" %") for end in interval]
            cells[0] += f" ({' to '.join(ends)})"
        rows.append([model["model"], *cells])
    n = result["n_splits"]
    parts = "one test part" if n == 1 else f"{n} test parts"
    size = f"{result['n_graphs']} {result['noun']}"
    title, more = known[tested]
    output.table(
        ["model", *(known[name][0] for name in shown)],
        rows,
        f"{result['source']}: {size}, {parts}, split by {result['split']}",
    )
    if result["tests"]:
        columns = ["model", "against", f"difference of {title}", "p (Holm)"]
        output.table(columns, map(_verdict, result["tests"]))
    words = [f"Differences of {title}, {'positive' if more else 'negative'} is better."]
    if n > 1:
        words.append("P-values: two-sided corrected resampled t-test (Nadeau and Bengio), Holm.")
    else:
        words.append("In brackets: 95 % intervals of a bootstrap of the test part.")
    level = result["level_with_best"]
    if level is not None and len(models) > 2:
        words.append(
            f"Best: {level[0]}; not distinguishable from it (Tukey's HSD, 5 %): "
            f"{', '.join(level[1:]) or 'none'}."
        )
    if result["positive"] is not None:
        words.append(
            f"PR AUC, recall and precision are about the class {result['positive']!r} "
            f"({percent(result['positive_share'])} of the {result['noun']})."
        )
    words.append("All settings were chosen within each training part. --json prints all scores.")
    output.line(" ".join(words))
    for model in models:
        if model["n_one_class"]:
            output.line(
                f"{model['model']} predicts one class throughout in {model['n_one_class']} of {n} "
                "test parts: its accuracy there is the share of that class."
            )


def _verdict(test: dict[str, Any]) -> list[str]:
    """Return the model, the rival, the difference with its standard error, and the p-value."""
    difference, error = test["difference"], test["standard_error"] or 0.0
    pair = [test["model"], test["against"]]
    if error < _SAME:  # one part, or the same difference in all: no spread
        if abs(difference) < _SAME:
            return [*pair, "none", ""]
        ends = [] if test["interval"] is None else [f"{end:+.2g}" for end in test["interval"]]
        span = f" ({' to '.join(ends)})" if ends else ""
        return [*pair, f"{difference:+.3g}{span}", ""]
    digits = max(0, 1 - floor(log10(error)))  # two of the standard error
    return [*pair, f"{difference:+.{digits}f} ± {error:.{digits}f}", f"{test['p_holm']:.3f}"]
