"""Tables of the field's own benchmarks: TDC, ExpansionRx, Errica's folds and ibenchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from reproduction.data import TDC_SETS
from reproduction.expansion import FOUR_FIFTHS, OFFICIAL
from reproduction.pages import (
    Rows,
    from_rows,
    grouped,
    markdown_table,
    plus_minus,
    save_figure,
)

PUBLISHED: dict[str, Any] = json.loads(
    Path(__file__).parents[1].joinpath("published_field.json").read_text(encoding="utf-8")
)
NAMES = {
    "auto": "treelens",
    "patterns": "patterns alone",
    "ecfp6_gp_descriptors": "ECFP6 GP, descriptors",
    "boosting": "boosting",
}
SCORES = {"mae": "MAE", "spearman": "Spearman", "roc_auc": "ROC AUC", "pr_auc": "PR AUC"}
SMALLER_IS_BETTER = ("mae",)
RUN_FOR_US = "LightGBM, run by a reader"  # on the whole training part; not published
_TRUTHS = {
    "N_O": "number of nitrogen and oxygen atoms",
    "N": "number of nitrogen atoms",
    "N_minus_O": "nitrogen atoms less oxygen atoms",
    "amide": "number of amides",
    "amide_class": "whether there is an amide",
}
_EXPLAINERS = ("treelens", "treelens by occlusion", "ECFP4 forest by SHAP")


# --- TDC ----------------------------------------------------------------------------------------


def tdc(rows: Rows) -> str:
    """Every set: our score with its interval, rivals, and the leader of June 2024."""
    lines = []
    for name, own in grouped(rows, "set").items():
        by_method, score = {r["method"]: r for r in own}, TDC_SETS[name]
        ours, leader = by_method["auto"], PUBLISHED["tdc"][name]
        low, high = ours["interval"]
        cells = [_number(by_method[m][score]) if m in by_method else "–" for m in NAMES]
        cells[0] += f" ({_number(low)} to {_number(high)})"
        sizes = f"{name}, {ours['n_train']:,} + {ours['n_test']:,}"
        lines.append([sizes, SCORES[score], *cells, _number(leader), standing(ours, leader)])
    header = ["set, train + test", "score", *NAMES.values(), "leader 6/2024", "treelens is"]
    return markdown_table(header, lines)


def standing(row: Mapping[str, Any], published: float) -> str:
    """Return whether a score is ahead of a published one, level (in its interval) or behind.

    Examples
    --------
    >>> row = {"set": "ames", "roc_auc": 0.9, "interval": [0.88, 0.92]}
    >>> standing(row, 0.89), standing(row, 0.85), standing(row, 0.91), standing(row, 0.95)
    ('ahead, level', 'ahead', 'behind, level', 'behind')
    """
    score = TDC_SETS[row["set"]]
    ours, (low, high) = row[score], row["interval"]
    ahead = ours <= published if score in SMALLER_IS_BETTER else ours >= published
    return ("ahead" if ahead else "behind") + (", level" if low <= published <= high else "")


def tdc_summary(rows: Rows) -> str:
    """How many sets each method is the best on, its mean rank, and its time for all sets.

    Only sets count that all methods were run on.
    """
    by_set = {n: {r["method"]: r for r in own} for n, own in grouped(rows, "set").items()}
    whole = {n: own for n, own in by_set.items() if set(NAMES) <= set(own)}
    ranks: dict[str, list[float]] = {method: [] for method in NAMES}
    for name, own in whole.items():
        sign = 1 if TDC_SETS[name] in SMALLER_IS_BETTER else -1
        found = rankdata([sign * own[m][TDC_SETS[name]] for m in NAMES])  # ties share a rank
        for method, rank in zip(NAMES, found.tolist(), strict=True):
            ranks[method].append(rank)
    lines = []
    for method, title in NAMES.items():
        seconds = sum(own[method]["cpu_seconds"] for own in whole.values())
        own_ranks = np.array(ranks[method])
        n_best = int((own_ranks < 2).sum())
        row = [title, f"{n_best} of {len(own_ranks)}", f"{own_ranks.mean():.2f}"]
        lines.append([*row, f"{seconds / 60:.1f}"])
    return markdown_table(["", "best of these", "mean rank", "processor minutes, all fits"], lines)


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


# --- ExpansionRx --------------------------------------------------------------------------------

ENDPOINTS = {
    "LogD": "LogD",
    "KSOL": "KSOL",
    "HLM CLint": "HLM",
    "MLM CLint": "MLM",
    "Caco-2 Permeability Papp A>B": "Papp",
    "Caco-2 Permeability Efflux": "efflux",
    "MPPB": "MPPB",
    "MBPB": "MBPB",
    "MGMB": "MGMB",
}
_OURS = {
    ("panel", OFFICIAL): "treelens, one panel",
    ("auto", OFFICIAL): "treelens, each endpoint",
    ("panel", FOUR_FIFTHS): "panel, random 4/5 of train",
    ("auto", FOUR_FIFTHS): "each endpoint, random 4/5",
    ("ecfp6_gp_descriptors", OFFICIAL): "ECFP6 GP, descriptors",
    ("boosting", OFFICIAL): "boosting",
}


def expansion(rows: Rows) -> str:
    """R2 of each endpoint, their mean, the mean relative absolute error, and coverage."""
    found = {(r["method"], r["protocol"]): r["endpoints"] for r in rows}
    lines = []
    for key, title in _OURS.items():
        if key not in found:
            continue
        own = [found[key][name] for name in ENDPOINTS]
        r2, rae = ([each[score] for each in own] for score in ("r2", "rae"))
        within = [each["coverage"] for each in own if "coverage" in each]
        cover = f"{min(within):.2f} to {max(within):.2f}" if within else ""
        lines.append([title, *map(_r2, r2), _r2(np.mean(r2)), f"{np.mean(rae):.3f}", cover])
    for title, r2 in PUBLISHED["expansion"].items():
        where = "" if title == RUN_FOR_US else " (published)"
        lines.append([title + where, *map(_r2, r2), _r2(np.mean(r2)), "", ""])
    header = ["R2", *ENDPOINTS.values(), "mean", "MA-RAE", "within 90 %"]
    return markdown_table(header, lines)


def _r2(value: float | np.floating) -> str:
    return f"{value:.2f}".replace("-", "−")


# --- graphs -------------------------------------------------------------------------------------


def errica(rows: Rows) -> str:
    """Mean accuracies on the ten outer folds, and published ones on the same folds."""
    found = grouped(rows, "set", "method")
    sets = list(dict.fromkeys(row["set"] for row in rows))
    lines = []
    for method, title in (("auto", "treelens"), ("uniform", "uniform weights, best depth")):
        cells = [_accuracy(found[n, method]) if (n, method) in found else "–" for n in sets]
        lines.append([title, *cells])
    seconds = [np.mean([r["cpu_seconds"] for r in found[n, "auto"]]) for n in sets]
    published = [
        "; ".join(f"{who} {_published(x)}" for who, x in PUBLISHED["errica"][n].items())
        for n in sets
    ]
    lines += [
        ["published", *published],
        ["a fit, processor seconds", *(f"{s:.0f}" for s in seconds)],
    ]
    return markdown_table(["accuracy, %", *sets], lines)


def _accuracy(rows: Sequence[Mapping[str, Any]]) -> str:
    values = [100 * row["accuracy"] for row in rows]
    return plus_minus(float(np.mean(values)), float(np.std(values)), 1)


def _published(value: float | Sequence[float]) -> str:
    return plus_minus(value[0], value[1], 1) if isinstance(value, list) else f"{value:.1f}"


# --- atoms --------------------------------------------------------------------------------------


def atoms(rows: Rows) -> str:
    """ROC AUC of atoms, and the share of causes among as many first atoms as there are."""
    by_set = {n: {r["explainer"]: r for r in own} for n, own in grouped(rows, "set").items()}
    lines = []
    for name, title in _TRUTHS.items():
        own = by_set[name]
        cells = [
            f"{own[e]['roc_auc']:.3f}, {own[e]['top']:.3f}" if e in own else "–"
            for e in _EXPLAINERS
        ]
        lines.append([title, *cells])
    return markdown_table(["ROC AUC, top n", *_EXPLAINERS], lines)


# --- the figure of the README -------------------------------------------------------------------


def draw(folder: Path, rows: Rows, graphs: Rows, assays: Rows) -> Path:
    """Draw bars of three benchmarks; what was published by others is hatched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _bars(left, _expansion_bars(rows), "ExpansionRx, 9 endpoints\nmean R2 (higher is better)")
    _bars(middle, _assay_bars(assays), "MoleculeACE, 18 kept-aside assays\nRMSE (lower is better)")
    _bars(right, _graph_bars(graphs), "NCI1, Errica's folds\naccuracy, % (higher is better)")
    return save_figure(figure, folder, "field")


def _expansion_bars(rows: Rows) -> list[tuple[str, float, bool]]:
    found = {(r["method"], r["protocol"]): r["endpoints"].values() for r in rows}
    shown = {"panel": "treelens, one panel", "auto": "treelens, each endpoint"}
    shown |= {"boosting": "boosting, tuned"}
    ours = [
        (title, float(np.mean([each["r2"] for each in found[method, OFFICIAL]])), False)
        for method, title in shown.items()
        if (method, OFFICIAL) in found
    ]
    others = [(title, float(np.mean(r2)), True) for title, r2 in PUBLISHED["expansion"].items()]
    return ours + [bar for bar in others if bar[0] != RUN_FOR_US]


def _assay_bars(rows: Rows) -> list[tuple[str, float, bool]]:
    from reproduction.compare import NEW_ASSAYS
    from reproduction.published import PUBLISHED as OF_ASSAYS

    means = {
        method: float(np.mean([r["rmse"] for r in own if r["set"] in NEW_ASSAYS]))
        for method, own in grouped(rows, "method").items()
    }
    titles = {"auto": "treelens", "ecfp6_gp_descriptors": "ECFP6 GP, descriptors"}
    titles |= {"boosting": "boosting, tuned", "forest": "ECFP4 forest, tuned"}
    ours = [(title, means[method], False) for method, title in titles.items() if method in means]
    others = [
        (title, float(np.mean([OF_ASSAYS["sets"][n][title]["rmse"] for n in NEW_ASSAYS])), True)
        for title in ("CheMeleon", "SVM ECFP", "Chemprop")
    ]
    return ours + others


def _graph_bars(rows: Rows) -> list[tuple[str, float, bool]]:
    own = [100 * r["accuracy"] for r in rows if (r["set"], r["method"]) == ("NCI1", "auto")]
    published = PUBLISHED["errica"]["NCI1"].items()
    others = [(who, float(np.ravel(x)[0]), True) for who, x in published]
    return [("treelens", float(np.mean(own)), False), *others]


def _bars(panel: Any, bars: Sequence[tuple[str, float, bool]], title: str) -> None:
    names, values, published = zip(*bars[::-1], strict=True)
    colors = ["#0072b2" if name.startswith("treelens") else "#b0b0b0" for name in names]
    hatches = ["///" if own else "" for own in published]
    drawn = panel.barh(range(len(names)), values, color=colors, hatch=hatches, edgecolor="white")
    panel.bar_label(drawn, [f"{x:.3g}" for x in values], padding=3, fontsize=8)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_title(title, fontsize=9)
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.15)


TABLES = {
    "tdc": from_rows(tdc, "compare_tdc"),
    "tdc-summary": from_rows(tdc_summary, "compare_tdc"),
    "expansion": from_rows(expansion, "expansion"),
    "errica": from_rows(errica, "compare_errica"),
    "atoms": from_rows(atoms, "ibenchmark"),
}
FIGURES = {
    "field": from_rows(draw, "expansion", "compare_errica", "compare_moleculeace"),
}
