"""The default beside its fixed choices: is it ever far behind, and does learning pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.compare import WEIGHTS
from reproduction.pages import (
    Rows,
    at_earlier_defaults,
    grouped,
    holm_of,
    markdown_table,
    ratio_of,
    save_figure,
)
from treelens.evaluation.statistics import PairedTest, corrected_t_test

FIXED = (*WEIGHTS, *(f"{w}_descriptors" for w in WEIGHTS))
# Part -> (score, its name, what a difference is measured in).
SCORES = {
    "moleculeace": ("rmse", "RMSE", "%"),
    "numbers": ("rmse", "RMSE", "%"),
    "classes": ("roc_auc", "ROC AUC", "points"),
    "table2": ("accuracy", "accuracy", "points"),
    "attributes": ("accuracy", "accuracy", "points"),
}
TOLERANCE = {"%": 1.0, "points": 0.5}  # that the default may be behind the best fixed choice


class Comparison(NamedTuple):
    """One set: scores of each method over the splits that all of them have."""

    name: str
    part: str
    scores: dict[str, np.ndarray]  # method -> (n_splits,)
    ratio: float  # test parts divided by training parts
    rows: dict[str, list[Any]]

    @property
    def unit(self) -> str:
        return SCORES[self.part][2]

    def mean(self, method: str) -> float:
        """The mean over splits, of accuracy and areas in percent."""
        return float(self.scores[method].mean()) * (1 if self.unit == "%" else 100)

    @property
    def best(self) -> str:
        """The fixed choice with the best mean, in hindsight."""
        fixed = [method for method in FIXED if method in self.scores]
        return (min if self.unit == "%" else max)(fixed, key=self.mean)

    def gain(self, ours: str, theirs: str) -> PairedTest:
        """How much better, in points or in percent of the error of the second."""
        first, second = self.scores[ours], self.scores[theirs]
        if self.unit == "points":
            return corrected_t_test(100 * first, 100 * second, self.ratio)
        rows = [self.rows[method][0] for method in (ours, theirs)]
        if len(first) == 1 and "errors" in rows[0]:
            # Over test molecules: the mean of these differences is that of the two RMSE.
            squares = [np.square(row["errors"]) for row in rows]
            roots = [float(np.sqrt(np.mean(each))) for each in squares]
            scale = 100 / (roots[1] * sum(roots))
            return corrected_t_test(scale * squares[1], scale * squares[0])
        scale = 100 / second.mean()
        return corrected_t_test(scale * second, scale * first, self.ratio)


def comparisons(
    parts: Mapping[str, Rows], methods: Sequence[str] = ("auto", *FIXED)
) -> list[Comparison]:
    """Return the sets that have the default and a fixed choice, over the splits that all share."""
    # Of graphs with attributes, labels alone are a set of their own.
    found = []
    rows = [
        {
            **row,
            "method": row["method"].removesuffix("_labels"),
            "labels": row["method"].endswith("_labels"),
            "part": part,
        }
        for part, own in parts.items()
        for row in at_earlier_defaults(own)
    ]
    for (part, name, kind, labels), members in grouped(
        [row for row in rows if row["method"] in methods], "part", "set", "kind", "labels"
    ).items():
        by_method = grouped(members, "method")
        if "auto" not in by_method or not set(FIXED) & set(by_method):
            continue
        n_most = max(len(own) for own in by_method.values())
        # A method that a run has hardly begun would leave few splits to all the others.
        kept = {m: own for m, own in by_method.items() if 2 * len(own) >= n_most}
        shared = set.intersection(*({row["split"] for row in own} for own in kept.values()))
        own = {
            method: sorted((r for r in own if r["split"] in shared), key=lambda r: r["split"])
            for method, own in kept.items()
        }
        if not shared or "auto" not in own:
            continue
        score = SCORES[part][0]
        scores = {m: np.array([row[score] for row in found]) for m, found in own.items()}
        title = name + {"scaffold": ", scaffolds"}.get(kind, "") + (", labels" if labels else "")
        found.append(Comparison(title, part, scores, ratio_of(own["auto"]), own))
    return found + _pooled([each for each in found if each.part == "moleculeace"])


def _pooled(assays: list[Comparison]) -> list[Comparison]:
    """The assays as one set, whose splits they are; they have no molecules in common."""
    if len(assays) < 2:
        return []
    shared = [m for m in assays[0].scores if all(m in each.scores for each in assays)]
    return [
        Comparison(
            f"MoleculeACE, {len(assays)} assays",
            "moleculeace",
            {m: np.concatenate([each.scores[m] for each in assays]) for m in shared},
            0.0,
            {m: [row for each in assays for row in each.rows[m]] for m in shared},
        )
    ]


# --- learning ---------------------------------------------------------------------------------


def learning_gains(found: list[Comparison]) -> dict[tuple[str, str], dict[str, PairedTest]]:
    """Weights that are learned against uniform ones at the best depth, the largest gain first."""
    # By set and unit. Without descriptors, so that the graph alone decides.
    gains = {
        (each.name, each.unit): {
            m: each.gain(m, "uniform") for m in ("branches", "depths") if m in each.scores
        }
        for each in found
        if {"uniform", "branches"} <= set(each.scores)
    }
    return dict(sorted(gains.items(), key=lambda item: -item[1]["branches"].difference))


def counts(found: list[Comparison]) -> list[list[Any]]:
    """Return, for each kind of sets, where learning clearly helps or hurts beyond the depth."""
    # An assay is a set; 95 % intervals, and p-values with Holm's correction for all sets.
    gains = {(n, u): g["branches"] for (n, u), g in learning_gains(found).items()}
    own = {key: test for key, test in gains.items() if not key[0].startswith("MoleculeACE")}
    sure = holm_of(own)
    lines = []
    for unit, title in (("%", "numbers"), ("points", "classes")):
        tests = {key: test for key, test in own.items() if key[1] == unit}
        known = [test.interval for test in tests.values() if test.interval is not None]
        better = sum(low > 0 for low, _ in known)
        worse = sum(high < 0 for _, high in known)
        names = [key[0] for key in tests if (sure[key] or 1.0) < 0.05]
        means = float(np.mean([test.difference for test in tests.values()])) if tests else 0.0
        cells = [better, worse, len(tests) - better - worse, ", ".join(names) or "none"]
        lines.append([title, len(tests), f"{means:+.2f} {unit}", *cells])
    return lines


def learning_counts(*parts: Rows) -> str:
    """On how many sets learned weights are clearly better or worse than uniform ones."""
    header = [
        "targets",
        "sets",
        "mean gain",
        "clearly better",
        "clearly worse",
        "no clear difference",
        "significant after Holm's correction",
    ]
    return markdown_table(header, counts(comparisons(dict(zip(SCORES, parts, strict=True)))))


def _half(test: PairedTest) -> float | None:
    return None if test.interval is None else test.interval[1] - test.difference


def draw_gains(folder: Path, *parts: Rows) -> Path | None:
    """Draw what learning adds: one panel for numbers and one for classes, a line per set."""
    from matplotlib.figure import Figure

    gains = learning_gains(comparisons(dict(zip(SCORES, parts, strict=True))))

    titles = {"%": "numbers: error taken off, %", "points": "classes: points gained"}
    shown = {u: [(n, g) for (n, unit), g in gains.items() if unit == u] for u in titles}
    shown = {unit: own[::-1] for unit, own in shown.items() if own}
    if not shown:
        return None
    height = 1.0 + 0.24 * max(map(len, shown.values()))
    figure = Figure(figsize=(5.2 * len(shown), height), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    styles = {"branches": ("#d55e00", "o", 0.12), "depths": ("#0072b2", "s", -0.16)}
    for panel, (unit, own) in zip(panels, shown.items(), strict=True):
        for method, (color, marker, shift) in styles.items():
            lines = [
                (k + shift, g[method].difference, _half(g[method]) or np.nan)
                for k, (_, g) in enumerate(own)
                if method in g
            ]
            if lines:
                y, x, half = np.array(lines).T
                panel.errorbar(
                    x,
                    y,
                    xerr=half,
                    fmt=marker,
                    color=color,
                    ms=4,
                    lw=1.2,
                    label=f"weights of {method}",
                )
        panel.axvline(0.0, color="0.4", lw=0.8)
        panel.set_yticks(range(len(own)), labels=[name for name, _ in own], fontsize=8)
        panel.set(title="", xlabel=titles[unit], ylim=(-0.7, len(own) - 0.3))
        panel.grid(axis="x", alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle("Learned minus uniform weights at the best depth, 95 % intervals", fontsize=10)
    return save_figure(figure, folder, "learning_pays")
