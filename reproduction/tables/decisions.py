"""Tables of decisions: campaigns, advice on matched pairs, the applicability domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.decisions import CHOICE_SETS, METHODS, N_BATCH, N_START, SETS
from reproduction.pages import (
    Rows,
    from_rows,
    grouped,
    markdown_table,
    mean_and_error,
    plus_minus,
    save_figure,
    signed,
)

OURS = "expected_improvement"
NAMES = {
    OURS: "treelens, expected improvement (default)",
    "greedy": "treelens, greedy",
    "ecfp_gp": "ECFP6 GP, expected improvement",
    "ecfp_forest": "ECFP4 random forest, greedy",
    "random": "random",
}
# Colours of Okabe and Ito, told apart by line style as well.
_STYLES = {
    OURS: ("#d55e00", "-"),
    "greedy": ("#0072b2", "--"),
    "ecfp_gp": ("#009e73", "-."),
    "ecfp_forest": ("#666666", ":"),
    "random": ("#aaaaaa", "-"),
}


# --- campaigns --------------------------------------------------------------------------------


def campaigns(rows: Rows) -> str:
    """Share of the best found, and how far the default is ahead of each other method."""
    kept, sets = _whole(rows)
    if not sets:
        return ""
    lines = _shares(kept, sets, _over_batches, tuple(METHODS))
    for line, method in zip(lines, _in_order(kept, sets, tuple(METHODS)), strict=True):
        ahead = "" if method == OURS else _difference(mean_differences(kept, sets, method))
        line.append(ahead)
    header = ["found over ten batches, %", *sets, "mean", "default ahead by"]
    return markdown_table(header, lines)


def untouched(rows: Rows) -> str:
    """How far the default is ahead on the sets that its strategy was not chosen on."""
    kept, sets = _whole(rows)
    others = [name for name in sets if name not in CHOICE_SETS]
    if not others:
        return ""
    methods = ("greedy", "ecfp_gp", "ecfp_forest")
    lines = [[NAMES[m], _difference(mean_differences(kept, others, m))] for m in methods]
    return markdown_table([f"default minus, on {' and '.join(others)}", "points"], lines)


def _whole(rows: Rows) -> tuple[Rows, list[str]]:
    """Return the rows and names of the sets that all methods were run on."""
    kept = [row for row in rows if row["method"] in METHODS]
    sets = [n for n in SETS if {r["method"] for r in kept if r["set"] == n} == set(METHODS)]
    return [row for row in kept if row["set"] in sets], sets


def _over_batches(row: Mapping[str, Any]) -> float:
    return float(np.mean(row["found"][1:]))


def _in_order(rows: Rows, sets: Sequence[str], methods: Sequence[str]) -> list[str]:
    means = {m: _mean_share(rows, sets, m, _over_batches) for m in methods}
    return sorted(methods, key=lambda m: -means[m])


def _mean_share(
    rows: Rows, sets: Sequence[str], method: str, score: Callable[[Mapping[str, Any]], float]
) -> float:
    own = grouped([r for r in rows if r["method"] == method], "set")
    return float(np.mean([np.mean([100 * score(r) for r in own[name]]) for name in sets]))


def _shares(
    rows: Rows,
    sets: Sequence[str],
    score: Callable[[Mapping[str, Any]], float],
    methods: Sequence[str],
) -> list[list[str]]:
    found = grouped(rows, "set", "method")
    lines = []
    for m in _in_order(rows, sets, methods):
        cells = [mean_and_error([100 * score(r) for r in found[name, m]]) for name in sets]
        texts = [plus_minus(*cell, 1) for cell in cells]
        lines.append([NAMES[m], *texts, f"{_mean_share(rows, sets, m, score):.1f}"])
    return lines


def mean_differences(rows: Rows, sets: Sequence[str], theirs: str) -> tuple[float, float | None]:
    """Return our share less that of another method, paired by start, as a mean over sets."""
    # The standard error is that of the mean over sets, whose repetitions are independent.
    found = {(r["set"], r["method"], r["seed"]): 100 * _over_batches(r) for r in rows}
    means, squares = [], []
    for name in sets:
        seeds = [seed for s, m, seed in found if (s, m) == (name, theirs)]
        apart = [
            found[name, OURS, seed] - found[name, theirs, seed]
            for seed in seeds
            if (name, OURS, seed) in found
        ]
        mean, error = mean_and_error(apart)
        means.append(mean)
        squares.append(np.nan if error is None else error**2)
    error = float(np.sqrt(np.sum(squares)) / len(sets))
    return float(np.mean(means)), None if np.isnan(error) else error


def _difference(found: tuple[float, float | None]) -> str:
    mean, error = found
    return signed(mean, 1) + ("" if error is None else f" ± {error:.1f}")


def draw_campaigns(folder: Path, rows: Rows) -> Path | None:
    """Draw one panel a set: the share found against the number of molecules measured."""
    from matplotlib.figure import Figure

    by_set = grouped(_whole(rows)[0], "set")
    if not by_set:
        return None
    figure = Figure(figsize=(0.6 + 2.6 * len(by_set), 3.2), layout="constrained")
    panels = figure.subplots(1, len(by_set), squeeze=False, sharey=True)[0]
    for panel, (name, found) in zip(panels, by_set.items(), strict=True):
        by_method = grouped(found, "method")
        for method, (color, line) in _STYLES.items():
            shares = 100 * np.array([row["found"] for row in by_method[method]])
            measured = N_START + N_BATCH * np.arange(shares.shape[1])
            error = shares.std(axis=0, ddof=min(1, len(shares) - 1)) / np.sqrt(len(shares))
            means, label = shares.mean(axis=0), NAMES[method]
            panel.errorbar(measured, means, error, label=label, color=color, ls=line, lw=1.6)
        panel.set(title=name, xlabel="molecules measured")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("best 2 % found, percent")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=5, frameon=False, fontsize=7)
    return save_figure(figure, folder, "campaigns")


# --- matched pairs and the domain ---------------------------------------------------------------


def matched_pairs(rows: Rows) -> str:
    """Predicted against measured differences of held-out matched pairs."""
    names = {"default": "treelens", "ecfp_gp_radii": "ECFP6 GP"}
    lines = [
        [
            f"{row['set']}, {row['n_pairs']}",
            names[row["method"]],
            f"{row['correlation']:.2f}",
            f"{row['rmse']:.2f}",
            f"{row['rmse_of_none']:.2f}",
            f"{100 * row['right_sign']:.0f} %",
            f"{100 * row['coverage_joint']:.0f} %",
            f"{row['width_joint']:.2f} ({row['width_apart']:.2f})",
        ]
        for row in rows
    ]
    header = [
        "assay, pairs",
        "model",
        "correlation",
        "RMSE",
        "RMSE of no difference",
        "right sign",
        "in 90 % interval",
        "width (without covariance)",
    ]
    return markdown_table(header, lines)


def known_changes(rows: Rows) -> str:
    """Correlations where the training part shows the same change."""
    lines = [
        [
            f"{row['set']}, {row['n_supported']}",
            f"{row['correlation_supported']:.2f}",
            signed(row["correlation_pairs"]).removeprefix("+"),
        ]
        for row in rows
        if row["method"] == "default"
    ]
    return markdown_table(["assay, pairs", "treelens", "mean of training pairs"], lines)


def domain(rows: Rows) -> str:
    """Errors of thirds in the order of the expected error, and outside of the domain."""
    lines = []
    for (name, split), found in grouped(rows, "set", "split").items():
        cells = [f"{_mean(found, part):.3f}" for part in ("near", "middle", "far")]
        cells += [f"{_mean(found, r):.2f}" for r in ("ratio", "std_ratio", "similarity_ratio")]
        outside = sum(r["n_outside"] for r in found) / sum(r["n_test"] for r in found)
        lines.append([f"{name}, {split}", *cells, f"{100 * outside:.0f} %", _mean_text(found)])
    header = [
        "RMSE",
        "nearest third",
        "middle",
        "furthest",
        "ratio",
        "by std alone",
        "by similarity alone",
        "outside",
        "RMSE outside",
    ]
    return markdown_table(header, lines)


def _mean(rows: Rows, name: str) -> float:
    return float(np.mean([row[name] for row in rows if row[name] is not None]))


def _mean_text(rows: Rows) -> str:
    known = [row for row in rows if row["outside"] is not None]
    return f"{_mean(known, 'outside'):.3f}" if known else ""


TABLES = {
    "campaigns": from_rows(campaigns, "campaign"),
    "campaigns-untouched": from_rows(untouched, "campaign"),
    "matched-pairs": from_rows(matched_pairs, "advice"),
    "known-changes": from_rows(known_changes, "advice"),
    "domain": from_rows(domain, "domain"),
}
FIGURES = {"campaigns": from_rows(draw_campaigns, "campaign")}
