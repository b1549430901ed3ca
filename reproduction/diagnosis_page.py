"""The page of the diagnosis: measurements in tables, and what they say in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduction.methods import TABLE2_METHODS, WL_METHODS, title_of
from reproduction.pages import (
    command_line,
    counts_text,
    markdown_table,
    p_text,
    write_json,
    write_page,
)
from reproduction.protocol import N_OUTER
from reproduction.significance import compare
from reproduction.tables import folds_of

Summary = dict[str, dict[str, Any]]


def write_diagnosis(folder: Path, summary: Summary, table2: Sequence[dict[str, Any]]) -> list[Path]:
    """Write ``diagnosis.json`` and ``diagnosis.md``."""
    parts = [
        _introduction(), "## In short", _in_short(summary),
        "## How far the weights move, and what that does to the kernel",
        _matrix_table(summary), _matrix_text(), "## Nearest neighbours: the distance alone",
        _neighbor_text(), *_neighbor_tables(summary), "## The SVM, and which radius it chooses",
        *_svm_parts(table2),
    ]  # fmt: skip
    title = "Where learning helps, and where it does not"
    return [
        write_json(folder / "diagnosis.json", summary),
        write_page(folder / "diagnosis.md", title, command_line("diagnosis"), parts),
    ]


def _introduction() -> str:
    return (
        "Weights are learned on the training part of every fold, at the depth and radius that "
        "learned WWL chooses most often in Table 2 (depth 3 and the middle radius where Table 2 "
        "has no rows yet), node labels counted as depth 0. The depth was chosen on training parts "
        "that overlap with the test parts of other folds; uniform and learned weights share it. "
        "Means over 10 folds; three times 10 for sets of up to 400 graphs; 5 of the 10 for more "
        "than 2,000."
    )


def _in_short(summary: Summary) -> str:
    """The measurements in sentences, made from the numbers so that they cannot disagree."""
    gains = {part: [_gain(s[f"{part}_alignment"]) for s in summary.values()]
             for part in ("train", "test")}  # fmt: skip
    cells = [
        (name, rule, kinds["chosen"])
        for name, s in summary.items()
        for rule, kinds in s["neighbors"].items()
    ]
    best = max(cells, key=lambda cell: cell[2]["gain"])
    worst = min(cells, key=lambda cell: cell[2]["gain"])
    n_sure = sum(cell["p_value"] < 0.05 for _, _, cell in cells)
    return "\n".join(
        [
            "- The alignment of the kernel matrix with the classes, which is what learning works "
            f"for, rises by {min(gains['train']):+.3f} to {max(gains['train']):+.3f} on the "
            f"training graphs and by {min(gains['test']):+.3f} to {max(gains['test']):+.3f} on "
            "test graphs.",
            "- Nearest neighbours under the distance chosen on the training part gain between "
            f"{_gain_text(worst)} and {_gain_text(best)} points; of {len(cells)} such gains "
            f"{n_sure} are significant at 0.05 by the corrected test, one-sided.",
            "- Weights are learned for the distance `b - <W, Z>`. Over all data sets and rules, "
            f"radius 10 changes accuracy there by {_mean_gain(summary, metric=False):+.1f} points "
            f"on average, and by {_mean_gain(summary, metric=True):+.1f} in the metric form, for "
            "which they were not learned.",
        ]
    )


def _mean_gain(summary: Summary, metric: bool) -> float:
    gains = [
        cell["gain"]
        for s in summary.values()
        for kinds in s["neighbors"].values()
        for kind, cell in kinds.items()
        if "radius 10" in kind and kind.endswith("metric form") == metric
    ]
    return sum(gains) / len(gains)


def _gain(pair: dict[str, float]) -> float:
    return pair["learned"] - pair["uniform"]


def _gain_text(cell: tuple[str, str, dict[str, float]]) -> str:
    name, rule, numbers = cell
    return f"{numbers['gain']:+.1f} ({name}, {rule})"


def _matrix_table(summary: Summary) -> str:
    header = [
        "data set", "depth", "radius", "moved per depth, from 0", "patterns moved by > 0.01",
        "change of the matrix", "up to scale", "alignment, training", "alignment, test",
    ]  # fmt: skip
    rows = [
        [
            name, s["depth"], f"{s['radius']:g}", ", ".join(f"{x:.2f}" for x in s["moved"]),
            f"{100 * s['share_moved']:.1f} %", f"{100 * s['relative_change']:.1f} %",
            f"{100 * s['change_up_to_scale']:.1f} %", _arrow(s["train_alignment"]),
            _arrow(s["test_alignment"]),
        ]
        for name, s in summary.items()
    ]  # fmt: skip
    return markdown_table(header, rows)


def _arrow(pair: dict[str, float]) -> str:
    return f"{pair['uniform']:.3f} → {pair['learned']:.3f}"


def _matrix_text() -> str:
    return (
        "Moved: `||w_h - 1||_2`, at most the radius. Change: `||K_W - K_1|| / ||K_1||` of the "
        'matrices `<W, Z>` of the training graphs; "up to scale" centres both and lets the best '
        "factor be chosen, since an SVM sees neither a constant added to the kernel nor, its `C` "
        "being free, a factor. Alignment: cosine between the centred matrix and the matrix that "
        "is 1 where two graphs share a class, uniform → learned."
    )


def _neighbor_text() -> str:
    return (
        "Accuracy in percent of the nearest neighbours; in brackets the gain over uniform weights "
        "and the one-sided p-value of the corrected test over folds. The distance is `b - <W, Z>`, "
        "or the metric form, the weighted L1 distance of the histograms; with uniform weights the "
        "two are the same. Only the last line selects anything: it takes, in every fold, what is "
        "most accurate on a third of the training part, uniform weights included, and is the "
        "honest figure. Ties between distances or votes are shared out."
    )


def _neighbor_tables(summary: Summary) -> list[str]:
    parts = []
    first = next(iter(summary.values()))["neighbors"]
    for rule, kinds in first.items():
        rows = [
            [
                "chosen on the training part" if kind == "chosen" else kind,
                *(_neighbor_cell(s["neighbors"][rule][kind], kind) for s in summary.values()),
            ]
            for kind in kinds
        ]
        parts += [f"### {rule}", markdown_table(["weights", *summary], rows)]
    return parts


def _neighbor_cell(cell: dict[str, float], kind: str) -> str:
    if kind == "uniform":
        return f"{cell['accuracy']:.1f}"
    return f"{cell['accuracy']:.1f} ({cell['gain']:+.1f}, {p_text(cell['p_value'])})"


def _svm_parts(table2: Sequence[dict[str, Any]]) -> list[str]:
    """Gains of learned over uniform weights in Table 2, beside the radii that were chosen."""
    folds = folds_of(table2)
    pairs = [(m, WL_METHODS[m].uniform) for m in TABLE2_METHODS if m in WL_METHODS]
    rows = []
    for name, methods in folds.items():
        for learned, uniform in pairs:
            if uniform in methods and learned in methods:
                test = compare(methods[learned], methods[str(uniform)], N_OUTER)
                rows.append(
                    [name, title_of(learned), f"{100 * test.difference:+.2f}",
                     "-" if test.p_corrected is None else p_text(test.p_corrected),
                     _radii(table2, name, learned), test.n_folds]
                )  # fmt: skip
    if not rows:
        return ["Table 2 has no rows in this folder yet."]
    header = [
        "data set",
        "method",
        "learned minus uniform",
        "p, corrected",
        "radius: folds",
        "folds",
    ]
    return [
        "From the rows of Table 2, under the nested protocol: an SVM weighs graphs by itself, and "
        "can make up for much of what weights on patterns would do.",
        markdown_table(header, rows),
        _inside_text(table2),
    ]


def _radii(table2: Sequence[dict[str, Any]], name: str, method: str) -> str:
    if WL_METHODS[method].preset:
        return "fixed"
    return counts_text(
        r["choice"]["weight_radius"]
        for r in table2
        if (r["dataset"], r["method"]) == (name, method)
    )


def _inside_text(table2: Sequence[dict[str, Any]]) -> str:
    rows = [row for row in table2 if row["method"] == "best_of_all"]
    if not rows:
        return ""
    names = dict.fromkeys(row["dataset"] for row in rows)
    parts = []
    for name in names:
        radii = [row["choice"]["weight_radius"] for row in rows if row["dataset"] == name]
        parts.append(f"{name} {sum(r > 0 for r in radii)} of {len(radii)}")
    return (
        "Where the method may choose between uniform and learned weights by inner "
        f"cross-validation, it takes learned ones in: {', '.join(parts)} folds."
    )
