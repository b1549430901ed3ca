"""The page about the default's choice of weights: is it ever far behind, and does learning pay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.compare import WEIGHTS, all_rows
from reproduction.pages import (
    difference_text,
    grouped,
    holm_of,
    listed,
    markdown_table,
    p_text,
    ratio_of,
    save_figure,
    write_page,
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

    def text(self, method: str) -> str:
        if method not in self.scores:
            return ""
        return f"{self.mean(method):.3f}" if self.unit == "%" else f"{self.mean(method):.1f}"

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

    @property
    def excess_loss(self) -> float:
        """Log loss of the default beyond that of the fixed choice that has least, nats a graph."""
        losses = {m: np.mean([row["log_loss"] for row in rows]) for m, rows in self.rows.items()}
        return float(losses.pop("auto") - min(losses.values()))

    @property
    def choices(self) -> str:
        """What the default chose, the most frequent first."""
        found = Counter(
            row["best_weights"]
            + (f" (depth {row['best_depth']})" if row["best_weights"] == "uniform" else "")
            + (", descriptors" if row["uses_descriptors"] else "")
            for row in self.rows["auto"]
        )
        return "; ".join(f"{text}: {n}" for text, n in found.most_common())


def comparisons(out: Path, methods: Sequence[str] = ("auto", *FIXED)) -> list[Comparison]:
    """Return the sets that have the default and a fixed choice, over the splits that all share."""
    # Of graphs with attributes, labels alone are a set of their own.
    found = []
    rows = [
        {
            **row,
            "method": row["method"].removesuffix("_labels"),
            "labels": row["method"].endswith("_labels"),
        }
        for row in all_rows(out)
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


def write(out: Path) -> Path | None:
    """Write ``choice.md`` and the figure of what learning adds."""
    found = comparisons(out)
    if not found:
        return None
    draw_gains(out / "figures", learning_gains(found))
    parts = [*choice_parts(found), *gain_parts(found)]
    return write_page(out, "choice", "What the default chooses, and where learning pays", parts)


# --- the choice -------------------------------------------------------------------------------


def choice_parts(found: list[Comparison]) -> list[str]:
    """The default beside each fixed choice."""
    behind, excess = [], [0.0]
    parts = [
        "## The default beside each fixed choice",
        "`auto` chooses weights (uniform ones at the depth of the largest evidence, one weight per "
        "depth, one per branch of patterns) and, of molecules, whether descriptors stand beside "
        "the graph. Each line compares it with the fixed choice that is best in hindsight: "
        "positive differences are in favour of `auto`, in percent of the error or in points, "
        "with the corrected standard error of resampled splits (of an assay, over its test "
        "molecules). Means are over the splits that all methods of a line share. *+d*: with "
        "descriptors. *Excess loss*: log loss of `auto`, the score that it chooses by, beyond "
        "that of the fixed choice with least, in nats per graph.",
    ]
    for part, members in grouped([{"part": c.part, "c": c} for c in found], "part").items():
        _, title, unit = SCORES[part]
        lines = []
        known = [m for m in FIXED if any(m in row["c"].scores for row in members)]
        for each in (row["c"] for row in members):
            gain = each.gain("auto", each.best)
            late = len(each.rows["auto"]) > 1 and gain.difference < -TOLERANCE[unit]
            behind += [each.name] if late else []
            lines.append(
                [
                    each.name,
                    len(each.rows["auto"]),
                    each.text("auto"),
                    *(f"**{each.text(m)}**" if m == each.best else each.text(m) for m in known),
                    difference_text(gain, 2) + (" !" if late else ""),
                    *([f"{each.excess_loss:+.3f}"] if unit == "points" else []),
                    each.choices,
                ]
            )
            excess += [each.excess_loss] if unit == "points" else []
        header = [
            f"{part}: {title}",
            "splits",
            "auto",
            *(m.replace("_descriptors", " +d") for m in known),
            f"auto − best, {unit}",
            *(["excess loss"] if unit == "points" else []),
            "auto chose",
        ]
        parts.append(markdown_table(header, lines))
    n = sum(len(each.rows["auto"]) > 1 for each in found)
    parts.insert(
        1,
        (
            f"On {n - len(behind)} of {n} sets (those with one split left aside) the default is at "
            "most 1 % of the error or 0.5 points behind the best fixed choice"
            + (f"; not on {listed(behind)} (marked with !)." if behind else ".")
            + f" By log loss, it is at most {max(excess):.3f} nats per graph behind on any set of "
            "classes. The best in hindsight of several noisy means is ahead by chance, too; "
            "[other rules](defaults.md) were tried on other splits."
        ),
    )
    return parts


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


def gain_parts(found: list[Comparison]) -> list[str]:
    """The figure, its table, and how often the gain is clear."""
    gains = learning_gains(found)
    if not gains:
        return []
    adjusted = holm_of({key: own["branches"] for key, own in gains.items()})
    return [
        "## Where learning pays",
        finding(gains),
        "![Gain of learned over uniform weights](figures/learning_pays.png)",
        "Weights for every branch of patterns, and one weight per depth, minus uniform weights at "
        "the best depth; graphs alone, without descriptors. In percent of the error (numbers) or "
        "in points (classes), with 95 % intervals; p is two-sided, for branches, with Holm's "
        "correction for the lines of the table.",
        markdown_table(
            ["set", "unit", "branches − uniform", "p (Holm)", "depths − uniform"],
            [
                [
                    *key,
                    interval_text(own["branches"]),
                    p_text(adjusted[key]),
                    interval_text(own["depths"]) if "depths" in own else "",
                ]
                for key, own in gains.items()
            ],
        ),
    ]


def interval_text(test: PairedTest) -> str:
    """Return a difference with half of its interval."""
    return difference_text(test._replace(standard_error=_half(test)), 2)


def _half(test: PairedTest) -> float | None:
    return None if test.interval is None else test.interval[1] - test.difference


def finding(gains: dict[tuple[str, str], dict[str, PairedTest]]) -> str:
    """Say in how many sets learning clearly helps or hurts beyond the choice of depth."""
    own = {n: g["branches"] for (n, _), g in gains.items() if not n.startswith("MoleculeACE")}
    better = [name for name, test in own.items() if test.interval and test.interval[0] > 0]
    worse = [name for name, test in own.items() if test.interval and test.interval[1] < 0]
    sure = [name for name, p in holm_of(own).items() if p is not None and p < 0.05]
    return (
        f"On {len(own)} sets (each assay is one), weights learned for every pattern against "
        "uniform weights at the best depth: clearly better (95 % interval above 0) on "
        f"{len(better)}"
        + (f" ({listed(better, '; ')})" if better else "")
        + f", clearly worse on {len(worse)}"
        + (f" ({listed(worse, '; ')})" if worse else "")
        + f", no clear difference on {len(own) - len(better) - len(worse)}. Without any "
        f"effect about {0.025 * len(own):.0f} of so many intervals would lie above 0, and as many "
        "below. Significant after Holm's correction for their number: "
        + (f"{listed(sure, '; ')}." if sure else "none.")
    )


def draw_gains(folder: Path, gains: dict[tuple[str, str], dict[str, PairedTest]]) -> list[Path]:
    """Draw one panel for numbers and one for classes, a line per set."""
    from matplotlib.figure import Figure

    titles = {"%": "numbers: error taken off, %", "points": "classes: points gained"}
    shown = {u: [(n, g) for (n, unit), g in gains.items() if unit == u] for u in titles}
    shown = {unit: own[::-1] for unit, own in shown.items() if own}
    if not shown:
        return []
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
