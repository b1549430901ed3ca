"""``treelens compare``: two models on the same graphs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.comparable import (
    SCORES_OF_OWN_CLASSES,
    checked_task,
    common_scale,
    common_target,
    rows_in_both,
    rows_of_common_classes,
    same_classes,
)
from treelens.cli.console import Output, command, percent
from treelens.cli.covariates import needed_by

if TYPE_CHECKING:
    import numpy as np

    from treelens.cli.data import GraphData
    from treelens.estimators.files import AnyModel

_ROWS_SHOWN = 20
_HEADS = {"a": "A", "b": "B", "difference": "B less A"}


def compare_cli(
    model_a: Annotated[Path, typer.Argument(metavar="A", help="A model file.")],
    model_b: Annotated[Path, typer.Argument(metavar="B", help="Another model file.")],
    data: options.Data,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="The column (SDF: property) with the class or the number.",
            show_default="the one that the models were fitted to",
            metavar="COLUMN",
        ),
    ] = None,
    smiles: options.Smiles = None,
    max_invalid: options.MaxInvalid = 0.1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Draw what the two see differently: one HTML file with the fragments whose "
            "effects differ and the molecules that they disagree on.",
        ),
    ] = None,
    jobs: options.Jobs = -1,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Compare two models, A and B, on DATA with known classes or numbers.

    Classes: the accuracy of each, McNemar's exact test on the graphs where one is right and the
    other wrong, and those graphs. Numbers: RMSE, R2 and the share within the 90 % interval of
    each, Wilcoxon's signed-rank test on the absolute errors, and the graphs where the two differ
    most. With --out also the fragments whose effects differ, with errors. DATA should be graphs
    that neither was trained on. Models with different classes are compared on those in common.
    """
    with command(as_json, debug) as output:
        from treelens.cli.data import files_behind
        from treelens.cli.places import load_before_data, refuse_model_after_models
        from treelens.storage.files import checked_target

        refuse_model_after_models(data)
        if out is not None:
            checked_target(out, reads=chain([model_a, model_b], files_behind(data)))
        models = [load_before_data(model_a), load_before_data(model_b)]
        task = checked_task(models, drawn=out is not None)
        for model in models:
            model.n_jobs = jobs
        target = target or common_target(models, data, output.note)
        rows = _rows_for_both(models, data, target, smiles, max_invalid, task, output.note)
        compare = compare_regressions if task == "regression" else compare_models
        show = show_regressions if task == "regression" else show_comparison
        result = compare(models[0], models[1], *rows)
        if out is not None:
            result |= drawn_comparison(models, rows, (model_a, model_b), out)
        output.finish({"a": str(model_a), "b": str(model_b), **result}, show)


def _rows_for_both(
    models: list[AnyModel], data: str, target: str | None, smiles: str | None,
    max_invalid: float, task: str | None, note: Callable[[str], None],
) -> tuple[GraphData, GraphData]:  # fmt: skip
    """The same rows as each of the models reads them."""
    from treelens.cli.data import read_training_data
    from treelens.cli.reading import Reading

    readings = [Reading(recipe=model.recipe_) for model in models]
    # Rows that repeat a molecule stay: what counts as one differs between two readings.
    how: dict[str, Any] = {
        "task": task,
        "duplicates": "keep",
        "transform": common_scale(models, task),
        "covariates": sorted({name for model in models for name in needed_by(model)}),
    }
    rows = read_training_data(
        data, target, smiles, max_invalid, note=note, reading=readings[0], **how
    )
    rows_b = rows
    if readings[1] != readings[0]:  # what there was to say about the rows has been said
        rows_b = read_training_data(data, target, smiles, max_invalid, reading=readings[1], **how)
        rows, rows_b = rows_in_both(rows, rows_b)
    if task == "regression":
        return rows, rows_b
    return rows_of_common_classes(models, (rows, rows_b), note)


def drawn_comparison(
    models: list[AnyModel],
    rows: tuple[GraphData, GraphData],
    names: tuple[Path, Path],
    out: Path,
) -> dict[str, Any]:
    """Write the page of what two models see differently; the fragments as plain data."""
    from treelens.explain.comparison import compare_on
    from treelens.report.comparison_page import write_comparison

    found = compare_on(models[0], models[1], rows[0].graphs, rows[1].graphs, rows[0].y)
    write_comparison(found, out, (str(names[0]), str(names[1])))
    return {
        "agreement": found.agreement,
        "units": found.fragments.attrs["units"],
        "toward": found.toward,
        "fragments": [{"rank": k, **row} for k, row in found.fragments.to_dict("index").items()],
        "out": str(out),
    }


def compare_models(
    a: Any, b: Any, data: GraphData, data_b: GraphData | None = None
) -> dict[str, Any]:
    """Accuracies, McNemar's exact test and the disagreements, as plain data.

    ``data_b`` are the same rows as ``b`` wants them read, where that differs.
    """
    assert data.y is not None
    truth = data.y.astype(str)
    said_a, scores_a = _named(a, data, truth)
    said_b, scores_b = _named(b, data_b or data, truth)
    right_a, right_b = said_a == truth, said_b == truth
    if not same_classes([a, b]):
        scores_a, scores_b = (
            scores | dict.fromkeys(SCORES_OF_OWN_CLASSES) for scores in (scores_a, scores_b)
        )
    return {
        "source": data.source,
        "n_graphs": len(truth),
        "accuracy_a": float(right_a.mean()),
        "accuracy_b": float(right_b.mean()),
        "scores_a": scores_a,
        "scores_b": scores_b,
        **mcnemar(right_a, right_b),
        "disagreements": [
            {
                "row": int(data.rows[i]) + 1,
                **({"smiles": data.texts[data.rows[i]]} if data.texts else {}),
                "true": truth[i], "a": said_a[i], "b": said_b[i],
            }
            for i in (said_a != said_b).nonzero()[0].tolist()
        ],
    }  # fmt: skip


def _named(model: Any, data: GraphData, truth: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """The classes that a model names, as texts, and all scores of them."""
    from treelens.cli.scores import class_scores

    said = model.predict(data.graphs).astype(str)
    return said, class_scores(truth, model.predict_proba(data.graphs), model.classes_, said)


def compare_regressions(
    a: Any, b: Any, data: GraphData, data_b: GraphData | None = None
) -> dict[str, Any]:
    """Scores, a paired test of the absolute errors, and what differs most, as plain data."""
    import numpy as np

    from treelens.evaluation.metrics import number_scores

    assert data.y is not None
    said_a, std_a = a.predict(data.graphs, return_std=True)
    said_b, std_b = b.predict((data_b or data).graphs, return_std=True)
    order = np.argsort(-np.abs(said_a - said_b), kind="stable").tolist()
    return {
        "source": data.source,
        "n_graphs": len(data.y),
        "scores_a": number_scores(data.y, said_a, std_a),
        "scores_b": number_scores(data.y, said_b, std_b),
        "p_value": signed_rank(np.abs(data.y - said_a), np.abs(data.y - said_b)),
        "differences": [
            {
                "row": int(data.rows[i]) + 1,
                **({"smiles": data.texts[data.rows[i]]} if data.texts else {}),
                "true": float(data.y[i]), "a": float(said_a[i]), "b": float(said_b[i]),
                "difference": float(said_b[i] - said_a[i]),
            }
            for i in order
        ],
    }  # fmt: skip


def signed_rank(errors_a: np.ndarray, errors_b: np.ndarray) -> float:
    """Wilcoxon's test whether the errors of one model tend to be smaller on the same graphs."""
    from scipy.stats import wilcoxon

    if (errors_a == errors_b).all():  # nothing to rank
        return 1.0
    return float(wilcoxon(errors_a, errors_b).pvalue)


def mcnemar(right_a: np.ndarray, right_b: np.ndarray) -> dict[str, Any]:
    """The exact test whether one of two models is right more often on the same graphs."""
    from scipy.stats import binomtest

    only_a, only_b = int((right_a & ~right_b).sum()), int((~right_a & right_b).sum())
    n = only_a + only_b
    p_value = binomtest(only_a, n).pvalue if n else 1.0
    return {"only_a_right": only_a, "only_b_right": only_b, "p_value": float(p_value)}


def show_comparison(output: Output, result: dict[str, Any]) -> None:
    """For a person at a terminal."""
    rows = []
    for name in ("a", "b"):
        scores = result[f"scores_{name}"]
        rows.append([name.upper(), result[name], scores["roc_auc"], scores["pr_auc"], scores["mcc"],
                     percent(scores["accuracy"]), result[f"only_{name}_right"]])  # fmt: skip
    title = f"{result['source']}: {result['n_graphs']} graphs"
    columns = ["", "model", "ROC AUC", "PR AUC", "MCC", "accuracy",
               "right where the other is wrong"]  # fmt: skip
    output.table(columns, rows, title)
    output.line(f"McNemar's exact test: p = {result['p_value']:.3g}")
    different = result["disagreements"]
    _show_rows(output, different, f"They disagree on {len(different)} graphs")
    _show_fragments(output, result)


def show_regressions(output: Output, result: dict[str, Any]) -> None:
    """For a person at a terminal."""
    rows = []
    for name in ("a", "b"):
        scores = result[f"scores_{name}"]
        rows.append([name.upper(), result[name], scores["rmse"], scores["mae"], scores["r2"],
                     scores["nlpd"], percent(scores["coverage"])])  # fmt: skip
    title = f"{result['source']}: {result['n_graphs']} graphs"
    columns = ["", "model", "RMSE", "MAE", "R2", "NLPD", "within 90 % interval"]
    output.table(columns, rows, title)
    output.line(f"Wilcoxon's signed-rank test of the absolute errors: p = {result['p_value']:.3g}")
    _show_rows(output, result["differences"], "Graphs, those where they differ most first")
    _show_fragments(output, result)


def _show_fragments(output: Output, result: dict[str, Any]) -> None:
    if "out" not in result:
        return
    toward = "" if result["toward"] is None else f", for {result['toward']}"
    rows = [
        [
            (row["name"] or row["pattern"])
            + (f", for {row['class_label']}" if "class_label" in row else ""),
            *(f"{row[f'effect_{x}']:+.3f} ± {row[f'error_{x}']:.3f}" for x in "ab"),
            f"{row['difference']:+.3f} ± {row['error']:.3f}", row["found_by"], row["support"],
        ]
        for row in result["fragments"][:_ROWS_SHOWN]
    ]  # fmt: skip
    title = f"Fragments whose effects differ most ({result['units']}{toward})"
    output.table(["fragment", "in A", "in B", "B less A", "found by", "graphs"], rows, title)
    output.line(f"Drawn: {result['out']}")


def _show_rows(output: Output, different: list[dict[str, Any]], title: str) -> None:
    if different:
        columns = list(different[0])
        shown = [[row[column] for column in columns] for row in different[:_ROWS_SHOWN]]
        output.line()
        output.table([_HEADS.get(column, column) for column in columns], shown, title)
        if len(different) > len(shown):
            output.line(f"... and {len(different) - len(shown)} more; --json lists all.")
