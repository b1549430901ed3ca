"""``treelens fit``: learn a model from a file and save it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import treelens as tl
from treelens.cli import options
from treelens.cli.console import (
    Output,
    command,
    percent,
    score_text,
    score_title,
    shortened,
    show_next_steps,
)
from treelens.cli.endpoints import show_endpoints
from treelens.cli.explain import covariate_list, explain_fragments, show_patterns
from treelens.kernels.table import KERNELS

if TYPE_CHECKING:
    from treelens.chem.molecule_table import MoleculeTable

_LONGEST_NAME = 60
_LONGEST_CLASS = 14
_VERY_FEW = 20  # graphs; fewer are said before anything else
_FEW = 10  # shares of fewer predictions are not printed
SCORES = ("rmse", "r2", "coverage", "roc_auc", "accuracy", "recall", "precision")


@command
def fit_cli(
    output: Output,
    data: options.TrainingSource,
    training: options.Training,
    out: options.Out = Path("model.treelens"),
    ids: options.Ids = None,
    view: options.ViewFiles = None,
    method: Annotated[
        Literal["gp", "svc"],
        options.option(
            "gp: a Gaussian process; svc: a support vector machine (classes only).",
        ),
    ] = "gp",
    weights: Annotated[
        Literal["auto", "uniform", "depths", "branches"],
        options.option(
            "gp: weights of patterns are all the same (uniform), one for each depth, or one for "
            "each branch of patterns (auto).",
        ),
    ] = "auto",
    kernel: Annotated[
        str,
        options.option(
            f"svc: one or several of {', '.join(KERNELS)}; auto: wwl,tanimoto-rbf.",
        ),
    ] = "auto",
    weight_radius: Annotated[
        str,
        options.option(
            "svc: how far weights may be from 1; 0: uniform weights; or several (0,1,4).",
        ),
    ] = "auto",
    scoring: Annotated[
        Literal["auto", "accuracy", "balanced_accuracy", "roc_auc"],
        options.option(
            "svc: what settings are chosen by; auto: accuracy, where no class is rare.",
        ),
    ] = "auto",
    top: Annotated[int, options.option("How many patterns to print.", min=0)] = 0,
    fragments: Annotated[
        int | None,
        options.option(
            "How many fragments to print.",
            min=0,
            default="5; none of more than two classes or 3,000 graphs, which takes a while",
        ),
    ] = None,
    training_data: Annotated[
        bool,
        options.option(
            "Whether names and SMILES of training molecules are in the model file. Pattern counts "
            "and values always are.",
        ),
    ] = True,
    variances: Annotated[
        bool,
        options.option(
            "Whether the model file has what standard deviations need, so that the first "
            "predictions come sooner: 2 bytes for every pair of training graphs.",
        ),
    ] = False,
) -> None:
    """Learn from DATA to predict a number or a class, or several.

    Fits a Gaussian process on subtree patterns of the graphs. Prints leave-one-out scores and the
    fragments with the largest effects, and notes what was done about rows (repeated, unreadable,
    without a target). Several --target are learned together into one MODEL, which fills gaps. With
    --method svc, settings left at auto are chosen by cross-validation.
    """
    from treelens.storage.files import checked_target

    svc = method == "svc"
    own = {"--kernel": kernel, "--weight-radius": weight_radius, "--scoring": scoring}
    others = (
        own
        if not svc
        else {
            "--view": view,
            "--weights": weights,
            "--covariates": training.covariates,
            "--descriptors": training.descriptors,
            "--threshold": training.threshold,
        }
    )
    for option, value in others.items():
        if value not in (None, "auto"):
            raise ValueError(f"{option} is an option of --method {'gp' if svc else 'svc'}.")
    if svc and training.task == "regression":
        raise ValueError("--method svc learns classes only. Leave it out to predict numbers.")
    settings = training.svc_settings(*own.values()) if svc else training.gp_settings(weights)
    checked_target(out, reads=list(options.files_behind(data)))  # before the work, not after it
    table = training.read(output, data, ids, svc)
    named = f" ({table.target})" if table.target else ""
    size = f"{len(table.graphs)} {table.noun}"
    if len(table.graphs) < _VERY_FEW:
        output.note(
            f"{size} are very few: predictions stay near the mean or the commoner class, and the "
            f"scores below say little. From some {_VERY_FEW} on there is something to learn."
        )
    if view:
        table, views = _with_views(table, view, ids, settings["descriptors"])
        settings |= views
    output.progress(f"Fitting {size} of {table.source}{named} ...")
    model, result = fit_model(table, method, settings, training.threshold, top, fragments)
    model.save(out, training_data, variances)
    output.finish({**result, "model": str(out)}, show_fit)


def _with_views(
    data: MoleculeTable, files: list[Path], ids: str | None, descriptors: bool | str
) -> tuple[MoleculeTable, dict[str, Any]]:
    """Return the data with their rows of files, and settings with a view for each file."""
    from dataclasses import replace

    from treelens.gp.keyed_rows import KeyedRows, usual_ids
    from treelens.graphs.kinds import PLAIN, kind_of_facts
    from treelens.views import usual_views

    tables, graphs = [tl.Table(path, on=usual_ids(path, ids)) for path in files], data.graphs
    for each in tables:
        graphs = KeyedRows.of(each.table, each.on).joined(graphs)
    if descriptors == "auto":  # what "auto" means where no views are listed
        plain = kind_of_facts(graphs.graph_data) is PLAIN
        descriptors = False if plain else "compact"
    settings = {"views": [*usual_views(graphs), *tables], "descriptors": descriptors}
    return replace(data, graphs=graphs), settings


def fit_model(
    data: MoleculeTable,
    method: str,
    settings: dict[str, Any],
    threshold: str = "auto",
    top: int = 0,
    fragments: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Fit a model, and return it with a summary as plain data."""
    from treelens.estimators import fit_report, panel_summary

    start = time.perf_counter()
    if data.targets is not None and data.targets.endpoints is not None:
        if top or fragments:
            raise ValueError("--top and --fragments are for one --target.")
        panel = tl.GraphPanel(**settings, threshold=threshold).fit(data.graphs, data.targets)
        result = panel_summary.fitted_summary(panel, data)
        return panel, {**result, "seconds": time.perf_counter() - start}
    beside = {} if method == "svc" else {"covariates": data.covariates or None}
    if method == "svc":
        model: Any = tl.GraphSVC(**settings)
    elif data.task == "regression":
        model = tl.GraphRegressor(**settings)
    else:
        model = tl.GraphClassifier(**settings, threshold=threshold)
    model.fit(data.graphs, data.targets, **beside)
    result = {
        "method": method,
        "task": data.task,
        "data": data.summary(),
        "target": model.model_.training.record.to_plain(),
        **fit_report.fit_summary(model),
        **fit_report.pattern_summary(model, top),
        **fit_report.first_fragments(model, data.graphs, fragments),
    }
    return model, {**result, "seconds": time.perf_counter() - start}


def show_fit(output: Output, result: dict[str, Any]) -> None:
    """Print a fit for people, of any model."""
    if result["task"] == "several":
        show_endpoints(output, result)
        return
    data, noun = result["data"], result["noun"]
    if "classes" in data:
        what = "classes " + ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    else:
        what = "{} from {smallest:g} to {largest:g}, median {median:g}".format(
            data["target"] or "values", **data["values"]
        )
        what += _scale_in_words(result["target"])
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
    show_next_steps(output, result)


def _scale_in_words(target: dict[str, Any]) -> str:
    """Say on which scale numbers were learned, where it is not their own."""
    if target["transform"] is None:
        return ""
    name = target["scale"]
    if not target["chosen"]:
        return f"; fitted on a {name} scale"
    return f"; learned as {name}, which fit better (--transform none: as they are)"


def _show_leave_one_out(output: Output, result: dict[str, Any]) -> None:
    """Print scores beside those of the mean or the most frequent class, and remarks on them."""
    scores, noun = result["leave_one_out"], result["noun"]
    ours = scores["model"]
    shown = SCORES if scores.get("positive") else (*SCORES, "balanced_accuracy")
    heads = {name: score_title(name) for name in shown if ours.get(name) is not None}
    sides = {"mean of all": "mean", "most frequent class": "majority", "this model": "model"}
    rows = [
        [title, *(score_text(n, scores[side].get(n)) for n in heads)]
        for title, side in sides.items()
        if side in scores
    ]
    scale = result["target"]["reported"]
    of = f" of {scale} of {result['data']['target']}" if scale else ""
    title = f"Leave-one-out predictions{of} (each of the {noun} from all the others)"
    output.table(["", *heads.values()], rows, title)
    if scores.get("positive"):
        output.line(f"Recall and precision are those of {scores['positive']}.")
    if (on_scale := scores.get("r2_on_scale")) is not None:
        name = result["target"]["scale"]
        output.line(
            f"On the scale that is learned ({name}), R2 is {on_scale:.2f}. RMSE and R2 above are "
            "of values as they are, whose squared errors are mostly those of the largest."
        )
    if limits := scores.get("limits"):
        output.line(
            f"The scores are those of the {limits['exact']} measured values. {limits['held']} of "
            f"the {limits['lower'] + limits['upper']} limits are predicted on their side."
        )
    if tuned := scores.get("threshold"):
        output.line(
            f"{tuned['class']} is predicted from a probability of {tuned['value']:.3g} on "
            f"(--threshold {tuned['rule']}): recall {percent(tuned['recall'])}, precision "
            f"{percent(tuned['precision'])}. From 0.5 on, the accuracy would be "
            f"{percent(tuned['accuracy_most_probable'])}."
        )
    if ours.get("names_one_class"):
        output.line(
            f"This model predicts the same class for all {noun}: its accuracy is the share of that "
            "class, and only its ranking (ROC AUC) may be of use."
        )
    if (sure := scores.get("sure")) and sure["n"] >= _FEW:
        output.line(
            f"Where it is at least {100 * sure['least']:.0f} % sure ({100 * sure['share']:.0f} % "
            f"of the {noun}), {percent(1 - sure['accuracy'])} of its predictions are wrong."
        )
    output.line(
        f"These scores are slightly optimistic: the model was tuned on all {noun}. 'treelens "
        "evaluate' is stricter."
    )
    if result["covariates"] is not None:
        output.line(f"Learned from structure and from {covariate_list(result['covariates'])}.")


def _show_svc(output: Output, result: dict[str, Any]) -> None:
    scores, choice = result["scores"], result["choice"]
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
    fragments, numbers = result["fragments"], result["task"] == "regression"
    if not fragments:
        return
    rows = []
    for row in fragments:
        name = shortened(_fragment_text(row), _LONGEST_NAME)
        name += f", for {row['class_label']}" if "class_label" in row else ""
        both = (row["measured_with"], row["measured_without"])
        rows.append(
            [
                name + (" (!)" if row["confounders"] else ""),
                f"{row['effect']:+.3f} ± {row['error']:.3f}",
                row["support"],
                *(
                    "" if x is None else f"{x:#.3g}".rstrip(".") if numbers else percent(x)
                    for x in both
                ),
            ]
        )
    toward, scale = result["toward"], result["target"]["reported"]
    named = "" if toward is None else shortened(toward, _LONGEST_CLASS)
    mean = f"mean {scale or ''}".strip() if numbers else named or "share"
    columns = ["fragment", "effect", result["noun"], f"{mean} with it", "without"]
    on = f" on {named}" if named else ""
    if result["target"]["scale"] is not None and not scale:
        on = f" in {result['target']['scale']}"
    title = f"Fragments and their effects{on} (± standard error), each beyond those above it"
    output.table(columns, rows, title)
    explain_fragments(output, result)
    for row in fragments:
        if row["confounders"]:
            output.line(
                f"(!) {_fragment_text(row)}: "
                f"{'; '.join(row['confounders'])}. The effect may not be that of the fragment."
            )


def _fragment_text(row: dict[str, Any]) -> str:
    """The name of a fragment, else its pattern, as in the table and in reports."""
    return str(row["name"] or row["pattern"])
