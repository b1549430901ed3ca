"""Limits in the place of values: data censored by us, so that the truth is known; and its page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import Molecules, StudyOptions, load_molecules, random_splits
from reproduction.pages import (
    Rows,
    common_rows,
    difference_text,
    grouped,
    listed,
    markdown_table,
    paired,
    rows_of,
    write_page,
)
from treelens.evaluation.metrics import number_scores

SETS = ("FreeSolv", "ESOL", "CHEMBL2034_Ki", "CHEMBL2835_Ki")
# Which end of the values is censored: their lowest or their highest 30 %, in the training part.
SIDES = {"low": -1, "high": 1}
METHODS = ("limits", "left_out", "clipped", "uncensored")
SHARE, N_SPLITS = 0.3, 10


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("censored", ("set", "side", "method", "split")) as rows:
        for name in options.sets or SETS:
            data = load_molecules(name)
            splits = random_splits(len(data.values), options.repeats or N_SPLITS)
            for split, train, test in splits:
                for side in SIDES:
                    for method in options.methods or METHODS:
                        key = {"set": name, "side": side, "method": method, "split": split}
                        rows.add(key, _scores, data, train, test, side, method, options.n_jobs)


def _scores(
    data: Molecules, train: np.ndarray, test: np.ndarray, side: str, method: str, n_jobs: int
) -> dict[str, Any]:
    """Return scores on all test values, and on those within the range that is measured."""
    sign, start = SIDES[side], time.perf_counter()
    true = data.values[train]
    limit = float(np.quantile(true, SHARE if sign < 0 else 1.0 - SHARE))
    limits = np.where(sign * (true - limit) > 0, sign, 0)
    values = np.where(limits != 0, limit, true)
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0, progress=False)
    graphs = data.graphs[train]
    if method == "limits":
        model.fit(graphs, values, limits=limits)
    elif method == "left_out":
        model.fit(graphs[limits == 0], values[limits == 0])
    else:
        model.fit(graphs, values if method == "clipped" else true)
    truth = data.values[test]
    mean, std = model.predict(data.graphs[test], return_std=True)
    inside = sign * (truth - limit) <= 0
    within = number_scores(truth[inside], mean[inside], std[inside])
    return {
        **number_scores(truth, mean, std),
        **{f"{score}_within": value for score, value in within.items()},
        "limit": limit,
        "n_limits": int((limits != 0).sum()),
        "n_train": len(train),
        "n_test": len(test),
        "n_within": int(inside.sum()),
        "weights": model.best_weights_,
        "seconds": time.perf_counter() - start,
    }


_TITLES = {
    "limits": "limits used",
    "left_out": "left out",
    "clipped": "clipped",
    "uncensored": "true values",
}
_OTHERS = ("left_out", "clipped")


def write(out: Path) -> Path | None:
    """Write ``censored.md``."""
    rows = common_rows(rows_of(out, "censored"), ["set", "side"], ["split"])
    if not rows:
        return None
    n_splits = len({row["split"] for row in rows})
    parts = [
        f"In the training part the lowest or the highest {100 * SHARE:.0f} % of the values are "
        "replaced by a limit, the quantile itself. `GraphRegressor` is fitted with `limits`; "
        "without the molecules that have one; with limits taken for values (clipped); and, for "
        f"comparison, with the true values. {n_splits} random splits, 80 % of the molecules for "
        "training; of the assays the published training part. Scores are of all test molecules, "
        "with their true values.",
        "## Error",
        _score_table(rows, "rmse"),
        "Differences of RMSE, negative: limits are better. The error is that of the corrected "
        "resampled t-test (Nadeau and Bengio) over splits.",
        _difference_table(rows, "rmse"),
        _ahead_text(rows),
        "## Error bars",
        "Negative log predictive density, lower is better:",
        _score_table(rows, "nlpd"),
        _difference_table(rows, "nlpd"),
        "Share within the 90 % interval:",
        _score_table(rows, "coverage", 2),
        "## Test values within the measured range alone",
        "Where a table has limits, its test values beyond them are limits, too, and cannot be "
        "scored. RMSE of the others:",
        _score_table(rows, "rmse_within"),
        _within_text(rows),
    ]
    return write_page(out, "censored", "Values known only as limits", parts)


def _mean(found: Rows, score: str) -> float:
    return float(np.mean([row[score] for row in found]))


def _score_table(rows: Rows, score: str, digits: int = 3) -> str:
    groups = grouped(rows, "set", "side", "method")
    lines = [
        [name, side, *(f"{_mean(groups[name, side, m], score):.{digits}f}" for m in METHODS)]
        for name, side in grouped(rows, "set", "side")
    ]
    return markdown_table(["set", "censored", *(_TITLES[m] for m in METHODS)], lines)


def _difference_table(rows: Rows, score: str) -> str:
    lines = []
    for (name, side), own in grouped(rows, "set", "side").items():
        cells = []
        for other in _OTHERS:
            found = paired(own, "limits", other, score, ("split",))
            cells.append("" if found is None else difference_text(found))
        lines.append([name, side, *cells])
    return markdown_table(["set", "censored", "against left out", "against clipped"], lines)


def _ahead_text(rows: Rows) -> str:
    sides = grouped(rows, "set", "side")
    near = []
    for (name, side), own in sides.items():
        found = [paired(own, "limits", m, "rmse", ("split",)) for m in _OTHERS]
        if any(t is None or t.difference > -(t.standard_error or 0.0) for t in found):
            near.append(f"{name}, {side}")
    text = (
        f"By more than that error, limits are ahead of both in {len(sides) - len(near)} of "
        f"{len(sides)} cases."
    )
    return text + (
        f" Not in {listed(near, '; ')}: where the values beyond the limit lie close to it, "
        "clipping loses little."
        if near
        else ""
    )


def _within_text(rows: Rows) -> str:
    groups = grouped(rows, "set", "side", "method")
    sides = list(grouped(rows, "set", "side"))

    def loses(name: str, side: str, method: str) -> bool:
        best = min(_mean(groups[name, side, m], "rmse_within") for m in _OTHERS)
        return best < _mean(groups[name, side, method], "rmse_within")

    worse = [each for each in sides if loses(*each, "limits")]
    beaten = [each for each in worse if loses(*each, "uncensored")]
    return (
        f"By this score leaving out or clipping is ahead of limits in {len(worse)} of "
        f"{len(sides)} cases, but in {len(beaten)} of them also ahead of the model that was fitted "
        "to the true values: it rewards models that never predict beyond the limit, as the "
        "molecules for which that is wrong do not count. `treelens evaluate` can score a table "
        "with limits in no other way; read its comparison with baselines accordingly."
    )
