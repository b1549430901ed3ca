"""``treelens evaluate`` for numbers: Gaussian processes side by side on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError, Output, percent
from treelens.cli.scores import number_scores

if TYPE_CHECKING:
    import numpy as np

    from treelens.cli.data import GraphData
    from treelens.cli.evaluate import EvidencePlan

SCORES = ("rmse", "r2", "nlpd", "coverage")


def evaluate_numbers(
    data: GraphData,
    plans: dict[str, EvidencePlan],
    n_folds: int = 10,
    n_repeats: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Scores on held-out folds, and paired tests of the RMSE, as plain data."""
    import numpy as np

    from treelens.cli.evaluate import paired_tests

    splits = _splits(len(data.graphs), n_folds, n_repeats, seed)
    scores: dict[str, dict[str, np.ndarray]] = {}
    seconds: dict[str, float] = {}
    for name, plan in plans.items():
        start = time.perf_counter()
        folds = [_run_fold(plan, data, *split) for split in splits]
        seconds[name] = time.perf_counter() - start
        scores[name] = {score: np.array([fold[score] for fold in folds]) for score in SCORES}
        progress(f"{name}: RMSE {scores[name]['rmse'].mean():.4g} in {seconds[name]:.0f} s")
    test_to_train = float(np.mean([len(test) / len(train) for train, test in splits]))
    return {
        "source": data.source,
        "target": data.target,
        "task": "regression",
        "n_graphs": len(data.graphs),
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "mean_rmse": _rmse_of_the_mean(data.y, splits),
        "kernels": [
            {
                "kernel": name,
                **{score: float(x.mean()) for score, x in found.items()},
                "rmse_standard_deviation": float(found["rmse"].std()),
                "scores": {score: x.tolist() for score, x in found.items()},
                "seconds": seconds[name],
            }
            for name, found in scores.items()
        ],
        "tests": paired_tests({name: x["rmse"] for name, x in scores.items()}, test_to_train),
    }


def _splits(n_graphs: int, n_folds: int, n_repeats: int, seed: int) -> list[Any]:
    import numpy as np
    from sklearn.model_selection import RepeatedKFold

    if n_graphs < 2 * n_folds:
        raise InputError(
            f"There are {n_graphs} graphs: with --folds {n_folds} some folds would hold less than "
            f"two. Use --folds {max(2, n_graphs // 2)}, or more graphs."
        )
    splitter = RepeatedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
    return list(splitter.split(np.zeros(n_graphs)))


def _run_fold(
    plan: EvidencePlan, data: GraphData, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    assert data.y is not None
    fitted = plan.fit(data.graphs[train], data.y[train])
    mean, std = fitted.predict(data.graphs[test], return_std=True)
    return number_scores(data.y[test], mean, std)


def _rmse_of_the_mean(y: Any, splits: list[Any]) -> float:
    """RMSE of the mean of each training part on its test part, the mean over folds."""
    import numpy as np

    errors = [np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in splits]
    return float(np.mean(errors))


def show_numbers(output: Output, result: dict[str, Any]) -> None:
    """For a person at a terminal."""
    tests = {test["kernel"]: test for test in result["tests"]}
    rows = [["mean of the values", f"{result['mean_rmse']:.4g}", *[""] * 7]]
    for row in result["kernels"]:
        test = tests.get(row["kernel"])
        verdict = ["", "", ""]
        if test is not None:
            change = f"{test['difference']:+.3g} ± {test['standard_error']:.2g}"
            verdict = [change, test["against"], f"{test['p_holm']:.3f}"]
        rmse = f"{row['rmse']:.4g} ± {row['rmse_standard_deviation']:.2g}"
        rows.append([row["kernel"], rmse, f"{row['r2']:.3f}", f"{row['nlpd']:.3f}",
                     percent(row["coverage"]), *verdict, f"{row['seconds']:.0f} s"])  # fmt: skip
    columns = ["kernel", "RMSE", "R2", "NLPD", "within 90 %", "difference", "against", "p (Holm)",
               "time"]  # fmt: skip
    title = (
        f"{result['source']}: {result['n_graphs']} graphs, {result['n_folds']} outer folds"
        + (f" x {result['n_repeats']}" if result["n_repeats"] > 1 else "")
        + ", learned anew within each"
    )
    output.table(columns, rows, title)
    output.line(
        "Differences of RMSE, negative is better; two-sided corrected resampled t-test (Nadeau and "
        "Bengio). A fold's predictions come from a model that never saw it."
    )
