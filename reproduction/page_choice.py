"""The page about the default's choice of weights: is it ever far behind, and does learning pay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from reproduction.compare import WEIGHTS, all_rows
from reproduction.pages import (
    grouped,
    listed,
    markdown_table,
    p_text,
    save_figure,
    signed,
    write_page,
)
from treelens.evaluation.validation import corrected_paired_test

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
    ratio: float  # test part divided by training part
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

    def gain(self, ours: str, theirs: str) -> tuple[float, float | None]:
        """How much better, in points or in percent of the error, with its standard error."""
        # Over splits the error is that of Nadeau and Bengio; of an assay, with one split, that of
        # the mean over test molecules.
        first, second = self.scores[ours], self.scores[theirs]
        if self.unit == "points":
            mean, error, _ = corrected_paired_test(100 * (first - second), self.ratio)
            return mean, error
        if len(first) > 1:
            scaled = 100 * (second - first) / second.mean()
            mean, error, _ = corrected_paired_test(scaled, self.ratio)
            return mean, error
        mean = 100 * float(1 - first[0] / second[0])
        if "errors" not in self.rows[ours][0]:
            return mean, None
        squares = [np.square(self.rows[method][0]["errors"]) for method in (ours, theirs)]
        away = (squares[1] - squares[0]) / (2 * squares[1].mean())
        return mean, 100 * float(away.std(ddof=1) / np.sqrt(len(away)))

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
        sizes = own["auto"][0]
        title = name + {"scaffold": ", scaffolds"}.get(kind, "") + (", labels" if labels else "")
        found.append(Comparison(title, part, scores, sizes["n_test"] / sizes["n_train"], own))
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
            mean, error = each.gain("auto", each.best)
            late = len(each.rows["auto"]) > 1 and mean < -TOLERANCE[unit]
            behind += [each.name] if late else []
            lines.append(
                [
                    each.name,
                    len(each.rows["auto"]),
                    each.text("auto"),
                    *(f"**{each.text(m)}**" if m == each.best else each.text(m) for m in known),
                    _gain_text(mean, error) + (" !" if late else ""),
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

# (set, unit) -> (gain, half the 95 % interval, p-value) of branches and depths over uniform ones
Gain = tuple[float, float, float]


def learning_gains(found: list[Comparison]) -> dict[tuple[str, str], dict[str, Gain]]:
    """Weights that are learned against uniform ones at the best depth, the largest gain first."""
    # Without descriptors, so that the graph alone decides.
    gains: dict[tuple[str, str], dict[str, Gain]] = {}
    for each in found:
        if {"uniform", "branches"} <= set(each.scores):
            n = len(each.scores["auto"])
            freedom = n - 1 if n > 1 else each.rows["auto"][0]["n_test"] - 1
            gains[each.name, each.unit] = {
                m: _interval(*each.gain(m, "uniform"), freedom)
                for m in ("branches", "depths")
                if m in each.scores
            }
    return dict(sorted(gains.items(), key=lambda item: -item[1]["branches"][0]))


def _interval(mean: float, error: float | None, freedom: int) -> Gain:
    if not error:
        return mean, np.nan, np.nan
    half = float(stats.t.ppf(0.975, freedom)) * error
    return mean, half, float(stats.t.sf(mean / error, freedom))


def gain_parts(found: list[Comparison]) -> list[str]:
    """The figure, its table, and how often the gain is clear."""
    gains = learning_gains(found)
    if not gains:
        return []
    return [
        "## Where learning pays",
        finding(gains),
        "![Gain of learned over uniform weights](figures/learning_pays.png)",
        "Weights for every branch of patterns, and one weight per depth, minus uniform weights at "
        "the best depth; graphs alone, without descriptors. In percent of the error (numbers) or "
        "in points (classes), with 95 % intervals; p is one-sided, for branches.",
        markdown_table(
            ["set", "unit", "branches − uniform", "p", "depths − uniform"],
            [
                [
                    name,
                    unit,
                    _gain_text(*own["branches"][:2]),
                    "" if np.isnan(own["branches"][2]) else p_text(own["branches"][2]),
                    _gain_text(*own["depths"][:2]) if "depths" in own else "",
                ]
                for (name, unit), own in gains.items()
            ],
        ),
    ]


def _gain_text(mean: float, error: float | None) -> str:
    return signed(mean) + ("" if error is None or np.isnan(error) else f" ± {error:.2f}")


def finding(gains: dict[tuple[str, str], dict[str, Gain]]) -> str:
    """Say in how many sets learning clearly helps or hurts beyond the choice of depth."""
    own = {n: g["branches"] for (n, _), g in gains.items() if not n.startswith("MoleculeACE")}
    better = [name for name, (mean, half, _) in own.items() if mean - half > 0]
    worse = [name for name, (mean, half, _) in own.items() if mean + half < 0]
    return (
        f"On {len(own)} sets (each assay is one), weights learned for every pattern against "
        "uniform weights at the best depth: clearly better (95 % interval above 0) on "
        f"{len(better)}"
        + (f" ({listed(better)})" if better else "")
        + f", clearly worse on {len(worse)}"
        + (f" ({listed(worse)})" if worse else "")
        + f", no clear difference on {len(own) - len(better) - len(worse)}. Without any "
        f"effect about {0.025 * len(own):.0f} of so many intervals would lie above 0, and as many "
        "below."
    )


def draw_gains(folder: Path, gains: dict[tuple[str, str], dict[str, Gain]]) -> list[Path]:
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
            lines = [(k + shift, *g[method][:2]) for k, (_, g) in enumerate(own) if method in g]
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
