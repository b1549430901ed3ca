"""``treelens fit`` by evidence: a Gaussian process of numbers or classes, and what came of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from treelens.cli import options
from treelens.cli.console import InputError, Output, percent
from treelens.cli.covariates import covariate_facts, covariate_sentence
from treelens.cli.fit_fragments import first_fragments, show_fragments
from treelens.cli.scores import class_scores, class_sizes

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.estimators.evidence import GraphClassifier, GraphRegressor

_FLATTERY = (
    "Leave-one-out: each graph is predicted from all the others. Weights were learned from all of "
    "them, so the figures flatter a little; 'treelens evaluate' learns anew for every fold."
)


def evidence_settings(
    depth: str = "auto",
    weights: str | None = None,
    seed: int = 0,
    jobs: int = -1,
    svc_options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Options of the command line as parameters of ``GraphRegressor`` and ``GraphClassifier``.

    ``svc_options`` are those of the other method, by name, which must not have been given.
    """
    for option, value in (svc_options or {}).items():
        if value is not None:
            raise InputError(
                f"{option} is an option of support vector machines, and evidence decides what it "
                f"would set. Leave it out, or add --method svc."
            )
    weights = weights or options.WEIGHTS[0]
    options.check_choice("--weights", weights, options.WEIGHTS)
    options.check_jobs(jobs)
    return {
        "depth": options.parsed_depth(depth),
        "weights": weights,
        "random_state": seed,
        "n_jobs": jobs,
    }


def threshold_setting(threshold: str, data: GraphData) -> dict[str, Any]:
    """``--threshold`` as a parameter, where there is something to name."""
    if data.task != "regression":
        return {"threshold": threshold}
    if threshold != "auto":
        raise InputError(
            f"--threshold {threshold}: it names classes, and {data.target_name!r} holds numbers. "
            "Leave it out."
        )
    return {}


def fit_evidence(
    data: GraphData, settings: dict[str, Any], top: int = 10, fragments: int | None = None
) -> tuple[GraphRegressor | GraphClassifier, dict[str, Any]]:
    """Fit, and sum up what came of it as plain data; ``settings`` may name covariates."""
    from treelens.cli.patterns import top_patterns
    from treelens.estimators.evidence import GraphClassifier, GraphRegressor

    kind = GraphRegressor if data.task == "regression" else GraphClassifier
    start = time.perf_counter()
    parameters = {name: value for name, value in settings.items() if name != "covariates"}
    model = kind(**parameters).fit(
        data.graphs, data.y, covariates=settings.get("covariates") or None
    )
    scores = _left_out_numbers(model) if data.task == "regression" else _left_out_classes(model)
    return model, {
        "method": "evidence",
        "task": data.task,
        "data": {
            "source": data.source,
            "target": data.target,
            "n_graphs": len(data.graphs),
            "n_left_out": data.n_rows - len(data.graphs),
            "transform": None if data.transform is None else data.transform.name,
            "units": data.units,
            **_target_facts(data),
        },
        "leave_one_out": scores,
        "learning_gain": vars(model.learning_gain_),
        "covariates": covariate_facts(model),
        "evidence": model.evidence_,
        "converged": model.converged_,
        "n_steps": len(model.history_),
        "depth": model.depth,
        "weights": model.weights,
        "trees": list(model.model_.weighted.forest.trees),
        "recipe": None if model.recipe_ is None else model.recipe_.to_plain(),
        "n_patterns": len(model.weights_),
        "patterns": top_patterns(model, top),
        **first_fragments(model, data, fragments),
        "seconds": time.perf_counter() - start,
    }


def _target_facts(data: GraphData) -> dict[str, Any]:
    import numpy as np

    assert data.y is not None
    if data.task != "regression":
        return {"classes": class_sizes(data.y)}
    low, middle, high = (float(x) for x in np.quantile(data.y, [0.0, 0.5, 1.0]))
    spread = float(data.y.std())
    return {
        "values": {"smallest": low, "median": middle, "largest": high, "standard_deviation": spread}
    }


def _left_out_numbers(model: Any) -> dict[str, Any]:
    from treelens.evaluation.metrics import number_scores

    left_out = model.loo_
    return {
        "model": number_scores(model.train_values_, left_out.predictions, left_out.std),
        "mean": {"rmse": float(model.train_values_.std()), "r2": 0.0},
    }


def _left_out_classes(model: Any) -> dict[str, Any]:
    import numpy as np

    counts = np.bincount(model.train_codes_)
    truth = model.classes_[model.train_codes_]
    return {
        "model": class_scores(
            truth, model.loo_.probabilities, model.classes_, model.loo_.predictions
        ),
        "majority": {"accuracy": float(counts.max() / counts.sum())},
        "threshold": _threshold_facts(model),
    }


def _threshold_facts(model: Any) -> dict[str, Any] | None:
    """What a rare class is named by, and how it was chosen."""
    if model.threshold_ is None:
        return None
    value, code = model.threshold_
    return {"class": str(model.classes_[code]), "value": value, "asked": str(model.threshold)}


# --- for a person at a terminal ---------------------------------------------------------------


def show_evidence(output: Output, result: dict[str, Any]) -> None:
    """What was learned, in the order in which one asks."""
    from treelens.cli.fit import recipe_sentence
    from treelens.cli.patterns import show_patterns

    output.line(_data_sentence(result["data"]))
    output.line(recipe_sentence(result["recipe"]))
    if result["task"] == "regression":
        _show_numbers(output, result["leave_one_out"])
        if result["data"]["transform"]:
            output.line(
                f"These are scores of {result['data']['transform']} of the target, which is what "
                "was learned; 'treelens predict' gives numbers as the table has them."
            )
    else:
        _show_classes(output, result["leave_one_out"])
    output.line(_FLATTERY)
    output.line(result["learning_gain"]["sentence"])
    if result["covariates"] is not None:
        output.line(covariate_sentence(result["covariates"]))
    output.line(_search_sentence(result))
    output.line()
    show_fragments(output, result)
    show_patterns(output, result["patterns"], result["weights"] != "uniform", result["n_patterns"])
    output.line(f"Time: {result['seconds']:.1f} s")
    if "model" in result:
        output.line(f"Model: {result['model']}")


def _data_sentence(data: dict[str, Any]) -> str:
    if "classes" in data:
        what = "classes " + ", ".join(f"{name} ({n})" for name, n in data["classes"].items())
    else:
        values = data["values"]
        name = data["target"] or "values"
        name = f"{data['transform']} of {name}" if data["transform"] else name
        what = (
            f"{name} from {values['smallest']:g} to {values['largest']:g}, "
            f"median {values['median']:g}"
        )
    return f"{data['source']}: {data['n_graphs']} graphs; {what}"


def _show_numbers(output: Output, scores: dict[str, Any]) -> None:
    ours, mean = scores["model"], scores["mean"]
    rows = [
        ["mean of the values", f"{mean['rmse']:.4g}", "0.000", "", ""],
        ["this model", f"{ours['rmse']:.4g}", f"{ours['r2']:.3f}", f"{ours['nlpd']:.3f}",
         percent(ours["coverage"])],
    ]  # fmt: skip
    columns = ["", "RMSE", "R2", "NLPD", "within 90 % interval"]
    output.table(columns, rows, "Leave-one-out scores")


def _show_classes(output: Output, scores: dict[str, Any]) -> None:
    from treelens.evaluation.metrics import CLASS_SCORES

    ours = scores["model"]
    names = [name for name in CLASS_SCORES if ours[name] is not None]
    shares = ("accuracy", "balanced_accuracy", "recall", "precision")
    cells = [percent(ours[name]) if name in shares else f"{ours[name]:.3f}" for name in names]
    majority = [percent(scores["majority"]["accuracy"]) if n == "accuracy" else "" for n in names]
    rows = [["majority class", *majority], ["this model", *cells]]
    output.table(["", *(CLASS_SCORES[n][0] for n in names)], rows, "Leave-one-out scores")
    threshold = scores["threshold"]
    if threshold is not None:
        why = "that class is rare" if threshold["asked"] == "auto" else threshold["asked"]
        output.line(
            f"{threshold['class']} is named from a probability of {threshold['value']:.3g} on "
            f"({why}; --threshold); PR AUC, recall and precision are about it."
        )
    if ours["names_one_class"]:
        output.line(
            "This model puts every graph into the same class: its accuracy is the share of that "
            "class, and only its ranking (ROC AUC) may be of use."
        )


def _search_sentence(result: dict[str, Any]) -> str:
    if result["weights"] == "uniform":
        what = "scales of the kernel"
    else:
        what = "weights of " + result["weights"]
    rest = "came to rest" if result["converged"] else "had not come to rest"
    return (
        f"The search for the {what} {rest} after {result['n_steps']} steps (log evidence "
        f"{result['evidence']:.1f}); depth {result['depth']}, trees {', '.join(result['trees'])}."
    )
