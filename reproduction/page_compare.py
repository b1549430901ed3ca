"""Pages of the comparisons: numbers and classes of molecules beside rivals, MoleculeACE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from reproduction.compare import NEW_ASSAYS, OLD_ASSAYS
from reproduction.earlier_classes import earlier_parts
from reproduction.pages import (
    Rows,
    difference_text,
    grouped,
    holm_of,
    listed,
    markdown_table,
    p_text,
    paired,
    plus_minus,
    rows_of,
    save_figure,
    ties,
    write_page,
)
from reproduction.published import PUBLISHED
from treelens.evaluation.statistics import Comparison, compare_ranks, holm

NAMES = {
    "auto": "treelens",
    "uniform": "uniform weights, best depth",
    "depths": "weights of depths",
    "branches": "weights of branches",
    "uniform_descriptors": "uniform weights, descriptors",
    "depths_descriptors": "weights of depths, descriptors",
    "branches_descriptors": "weights of branches, descriptors",
    "ecfp4_gp": "ECFP4 GP",
    "ecfp6_gp": "ECFP6 GP",
    "ecfp6_gp_descriptors": "ECFP6 GP, descriptors",
    "forest": "ECFP4 forest",
    "boosting": "boosting, ECFP4 and descriptors",
    "chemprop": "Chemprop",
    "chemprop_ensemble": "Chemprop, five networks",
}
RIVALS = (
    "ecfp4_gp",
    "ecfp6_gp",
    "ecfp6_gp_descriptors",
    "forest",
    "boosting",
    "chemprop",
    "chemprop_ensemble",
)
SHORT = (
    "auto",
    "uniform",
    "branches",
    "ecfp6_gp",
    "ecfp6_gp_descriptors",
    "forest",
    "boosting",
    "chemprop_ensemble",
)
NUMBERS = {"rmse": "RMSE", "mae": "MAE", "r2": "R2", "nlpd": "NLPD", "coverage": "within 90 %"}
CLASSES = {
    "roc_auc": "ROC AUC",
    "pr_auc": "PR AUC",
    "mcc": "MCC",
    "brier": "Brier",
    "log_loss": "log loss",
    "accuracy": "accuracy",
}
KINDS = {"random": "random splits", "scaffold": "folds of whole scaffolds"}


# --- all pages --------------------------------------------------------------------------------


def score_table(rows: Rows, scores: Mapping[str, str], smaller: bool) -> str:
    """Return the lines of one set: means of all scores, the difference to treelens, seconds."""
    lines = []
    first, by_method = next(iter(scores)), grouped(rows, "method")
    tests = {m: paired(rows, m, "auto", first, ("split",)) for m in by_method if m != "auto"}
    adjusted = holm_of(tests)
    for method, own in by_method.items():
        values = {s: [r[s] for r in own if r.get(s) is not None] for s in scores}
        mean = float(np.mean(values[first]))
        spread = float(np.std(values[first], ddof=1)) if len(own) > 1 else None
        test = tests.get(method)
        lines.append(
            (
                mean,
                [
                    NAMES[method],
                    plus_minus(mean, spread, 3),
                    *(f"{np.mean(values[s]):.3f}" if values[s] else "" for s in list(scores)[1:]),
                    "" if test is None else f"{difference_text(test)} ({p_text(adjusted[method])})",
                    _seconds_text(own),
                    len(own),
                ],
            )
        )
    lines.sort(key=lambda line: line[0] if smaller else -line[0])
    header = ["method", *scores.values(), "to treelens (p, Holm)", "fit, s", "splits"]
    return markdown_table(header, [line for _, line in lines])


def _seconds_text(rows: Rows) -> str:
    if any(row.get("best_params", {}).get("accelerator") == "gpu" for row in rows):
        return "GPU"
    return f"{np.mean([row['cpu_seconds'] for row in rows]):.1f}"


def places_text(rows: Rows, score: str, smaller: bool) -> str:
    """Return where a rival that was run on all splits is ahead of the default, and by how much."""
    texts = []
    for (name, kind), own in grouped(rows, "set", "kind").items():
        n_splits = sum(row["method"] == "auto" for row in own)
        means = {
            m: float(np.mean([r[score] for r in found]))
            for m, found in grouped(own, "method").items()
            if m in ("auto", *RIVALS) and len(found) == n_splits
        }
        best = (min if smaller else max)(means, key=lambda m: means[m])
        behind = abs(means[best] - means.get("auto", means[best]))
        if behind >= 0.0005:
            texts.append(f"{name}, {KINDS.get(kind, kind)}: {behind:.3f} behind {NAMES[best]}")
    if not rows:
        return ""
    if not texts:
        return "By these means no rival is ahead of treelens; most leads are within their errors."
    return "Where a rival is ahead of treelens: " + "; ".join(texts) + "."


# --- numbers ----------------------------------------------------------------------------------


def short_table(out: Path) -> str:
    """Return the table of the README: RMSE of three sets over their splits, and of the assays."""
    # Bold: the best of a line and all that are level with it.
    lines = []
    for title, rows in _short_rows(out).items():
        values = {m: [r["rmse"] for r in own] for m, own in grouped(rows, "method").items()}
        level = _level(rows)
        cells = []
        for method in SHORT:
            errors = values.get(method, [])
            spread = len(errors) > 1 and not _of_assays(rows)
            std = float(np.std(errors, ddof=1)) if spread else None
            whole = errors and len(errors) == len(values["auto"])
            text = plus_minus(float(np.mean(errors)), std, 3) if whole else "–"
            cells.append(f"**{text}**" if method in level else text)
        lines.append([title, *cells])
    shown = [k for k in range(len(SHORT)) if any(line[k + 1] != "–" for line in lines)]
    lines = [[line[0], *(line[k + 1] for k in shown)] for line in lines]
    return markdown_table(["RMSE", *(NAMES[SHORT[k]] for k in shown)], lines)


def _short_rows(out: Path) -> dict[str, Rows]:
    """The rows behind each line of the table of the README."""
    numbers = rows_of(out, "compare_numbers")
    found = {
        f"{name}, {len({r['split'] for r in own})} {text}": own
        for kind, text in KINDS.items()
        for name, own in grouped([r for r in numbers if r["kind"] == kind], "set").items()
    }
    assays = rows_of(out, "compare_moleculeace")
    if assays:
        found[f"MoleculeACE, {len({r['set'] for r in assays})} assays"] = assays
    return {t: [r for r in own if r["method"] in {*SHORT, *RIVALS}] for t, own in found.items()}


def _of_assays(rows: Rows) -> bool:
    return len({row["set"] for row in rows}) > 1


def _level(rows: Rows) -> tuple[str, ...]:
    """The best of the methods of the README, and all that are level with it."""
    own = [row for row in rows if row["method"] in SHORT]
    if not _of_assays(own):
        return ties(own, "rmse", smaller=True)
    by_set = [{r["method"]: r["rmse"] for r in found} for found in grouped(own, "set").values()]
    shared = [m for m in SHORT if all(m in found for found in by_set)]
    scores = {m: [found[m] for found in by_set] for m in shared}
    return compare_ranks(scores, greater_is_better=False).ties


def lead_text(out: Path) -> str:
    """Say what is bold in the table of the README, and where treelens differs from a rival."""
    tests = {}
    for title, rows in _short_rows(out).items():
        values = {m: [r["rmse"] for r in own] for m, own in grouped(rows, "method").items()}
        rivals = [m for m in RIVALS if len(values.get(m, ())) == len(values["auto"])]
        if not rivals:
            continue
        best = min(rivals, key=lambda m: np.mean(values[m]))
        test = None if _of_assays(rows) else paired(rows, "auto", best, "rmse", ("split",))
        tests[title] = _assay_p(rows, "auto", best) if test is None else test.p_value
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    known = {title: p for title, p in adjusted.items() if p is not None}
    if not known:
        return ""
    least = min(known, key=lambda title: known[title])
    apart = [title for title, p in known.items() if p < 0.05]
    return (
        "Bold: level with the best of a line (Tukey's HSD over splits, with the error of Nadeau "
        "and Bengio; over assays Nemenyi's; 5 %). After Holm's correction for the lines treelens "
        f"and the best rival differ significantly on {listed(apart) if apart else 'none'} "
        f"(smallest p = {known[least]:.2f}: {least})."
    )


def _assay_p(rows: Rows, ours: str, theirs: str, score: str = "rmse") -> float | None:
    """The p-value of Wilcoxon's test over assays; None for fewer than five."""
    first, second = ({r["set"]: r[score] for r in rows if r["method"] == m} for m in (ours, theirs))
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 5:
        return None
    return float(stats.wilcoxon([first[k] for k in shared], [second[k] for k in shared]).pvalue)


def coverage_text(out: Path) -> str:
    """Return how many held-out values the 90 % intervals hold, on either kind of split."""
    parts = []
    rows = [r for r in rows_of(out, "compare_numbers") if r["method"] == "auto"]
    for kind, text in KINDS.items():
        own = grouped([r for r in rows if r["kind"] == kind], "set").values()
        shares = [100 * np.mean([r["coverage"] for r in found]) for found in own]
        if shares:
            ends = dict.fromkeys((f"{min(shares):.0f}", f"{max(shares):.0f}"))
            parts.append(f"{' to '.join(ends)} % of the held-out values on {text}")
    return f"The 90 % intervals of `GraphRegressor` contain {listed(parts)}." if parts else ""


def write_numbers(out: Path) -> Path | None:
    """Write ``numbers.md`` with the figures of calibration and of ranks."""
    rows = rows_of(out, "compare_numbers")
    if not rows:
        return None
    parts = [
        _ABOUT,
        short_table(out),
        lead_text(out),
        coverage_text(out),
        places_text(rows, "rmse", True),
    ]
    for kind, text in KINDS.items():
        own = grouped([r for r in rows if r["kind"] == kind], "set")
        parts += [f"## {text.capitalize()}"] if own else []
        for name, found in own.items():
            parts += [f"### {name}, {text}", score_table(found, NUMBERS, smaller=True)]
    draw_calibration(out / "figures", rows)
    parts += [
        "## Calibration",
        "Share of held-out values within intervals of each level.",
        "![Nominal level and share within](figures/calibration.png)",
    ]
    return write_page(out, "numbers", "Numbers of molecules", [*parts, *assay_parts(out)])


_ABOUT = (
    "Everything that is learned or tuned comes from the training part of a split, and copies of a "
    "molecule (stereoisomers included, which patterns do not tell apart) are never in both parts. "
    "*treelens* is `GraphRegressor()`; the next lines fix the weights that it would choose, "
    "without or with descriptors. The ECFP Gaussian processes have the same kernel form and a "
    "weight for each radius; the forest and boosting are tuned by inner folds; Chemprop (2.3) has "
    "its defaults and stops by a tenth of the training part. ± is the standard deviation over "
    "splits. Differences to treelens have the corrected standard error of Nadeau and Bengio and a "
    "two-sided p-value with Holm's correction for the lines of a table. Seconds are processor time "
    "of a fit on one thread; *GPU* stands for networks that were trained on one."
)


def draw_calibration(folder: Path, rows: Rows) -> list[Path]:
    """Draw a panel for each kind of splits: the share within against the level, set by set."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in KINDS if any(r["kind"] == kind for r in rows)]
    figure = Figure(figsize=(3.6 * len(kinds), 3.6), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    colors = ("#0072b2", "#d55e00", "#009e73")
    for panel, kind in zip(panels, kinds, strict=True):
        names = list(dict.fromkeys(row["set"] for row in rows))
        for color, name in zip(colors, names, strict=False):
            for method, line in (("auto", "o-"), ("ecfp6_gp", "s--")):
                own = [
                    r["calibration"]
                    for r in rows
                    if (r["kind"], r["set"], r["method"]) == (kind, name, method)
                ]
                if own:
                    levels = [float(level) for level in own[0]]
                    shares = np.mean([list(each.values()) for each in own], axis=0)
                    label = f"{name}, {NAMES[method]}"
                    panel.plot(levels, shares, line, color=color, ms=4, lw=1.2, label=label)
        panel.plot([0.5, 0.95], [0.5, 0.95], color="0.6", lw=0.8)
        panel.set(title=KINDS[kind], xlabel="level of the interval")
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("share of held-out values within")
    panels[0].legend(frameon=False, fontsize=7)
    return save_figure(figure, folder, "calibration")


# --- MoleculeACE ------------------------------------------------------------------------------


def assay_parts(out: Path) -> list[str]:
    """The section on MoleculeACE: every assay, means, wins, tests, ranks."""
    rows = rows_of(out, "compare_moleculeace")
    if not rows:
        return []
    by_set = {name: {r["method"]: r for r in own} for name, own in grouped(rows, "set").items()}
    methods = [m for m in NAMES if all(m in own for own in by_set.values())]
    columns = [m for m in SHORT if m in methods] + PUBLISHED["methods"]
    full = {
        name: own | {m: PUBLISHED["sets"][name][m] for m in PUBLISHED["methods"]}
        for name, own in by_set.items()
    }
    lines = [[n, *(f"{full[n][m]['rmse']:.3f}" for m in columns)] for n in by_set]
    parts = [
        "## MoleculeACE",
        f"{len(by_set)} assays (van Tilborg, Alenicheva and Grisoni 2022), RMSE of pKi or pEC50 on "
        "the published test parts; cliffs are the test molecules on an activity cliff. The last "
        f"{len(PUBLISHED['methods'])} columns are as published ({PUBLISHED['sources']}). Twelve of "
        "the assays served to choose settings, the other eighteen were run once.",
        markdown_table(["assay", *(NAMES.get(m, m) for m in columns)], lines),
    ]
    for title, names in (
        ("All assays", list(by_set)),
        ("Assays that served for choices", OLD_ASSAYS),
        ("Assays that were kept aside", NEW_ASSAYS),
    ):
        found = {name: full[name] for name in names if name in full}
        if len(found) > 1 and (title == "All assays" or len(found) < len(full)):
            every = [*methods, *PUBLISHED["methods"]]
            parts += [f"### {title}", _assay_table(found, every)]
    errors = {m: [own[m]["rmse"] for own in full.values()] for m in columns}
    ranks = compare_ranks(errors, greater_is_better=False)
    draw_ranks(out / "figures", ranks, len(full))
    parts += [
        "Mean ranks over assays (Friedman's test that all are alike: p "
        f"{'' if ranks.p_value < 0.001 else '= '}{p_text(ranks.p_value)}). Methods within the "
        "critical difference around treelens (Nemenyi, 5 %) cannot be told from it. Level with the "
        f"best rank are {listed(NAMES.get(m, m) for m in ranks.ties)}.",
        "![Mean ranks](figures/ranks.png)",
    ]
    return parts


def _assay_table(found: Mapping[str, Mapping[str, Any]], methods: Sequence[str]) -> str:
    rows = [{**own[m], "set": name, "method": m} for name, own in found.items() for m in methods]
    tests = {
        score: {m: _assay_p(rows, "auto", m, score) for m in methods if m != "auto"}
        for score in ("rmse", "rmse_cliff")
    }
    adjusted = [dict(zip(own, holm(list(own.values())), strict=True)) for own in tests.values()]
    lines = []
    for method in methods:
        own = {name: each[method] for name, each in found.items()}
        means = [np.mean([r[score] for r in own.values()]) for score in tests]
        last = [""] * 3
        if method != "auto":
            wins = sum(found[n]["auto"]["rmse"] < own[n]["rmse"] for n in found)
            last = [f"{wins} of {len(found)}", *(p_text(each[method]) for each in adjusted)]
        lines.append([NAMES.get(method, method), *(f"{x:.3f}" for x in means), *last])
    lines.sort(key=lambda line: line[1])
    header = [
        "method",
        "mean RMSE",
        "on cliffs",
        "treelens better on",
        "p (Wilcoxon, Holm)",
        "on cliffs",
    ]
    return markdown_table(header, lines)


def draw_ranks(folder: Path, compared: Comparison, n_assays: int) -> list[Path]:
    """Draw mean ranks, with the critical difference on either side of treelens."""
    from matplotlib.figure import Figure

    ranks, critical = compared.centers, compared.critical_difference
    order = sorted(ranks, key=lambda m: -ranks[m])
    figure = Figure(figsize=(6.4, 0.9 + 0.25 * len(order)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(ranks["auto"] - critical, ranks["auto"] + critical, color="#d55e00", alpha=0.12)
    colors = ["#d55e00" if m == "auto" else "0.3" for m in order]
    panel.scatter([ranks[m] for m in order], range(len(order)), c=colors, s=24, zorder=2)
    panel.set_yticks(range(len(order)), labels=[NAMES.get(m, m) for m in order], fontsize=8)
    panel.set(xlabel=f"mean rank over {n_assays} assays (1: smallest error)")
    panel.grid(axis="x", alpha=0.25)
    return save_figure(figure, folder, "ranks")


# --- classes ----------------------------------------------------------------------------------


def write_classes(out: Path) -> Path | None:
    """Write ``classes.md``."""
    rows = rows_of(out, "compare_classes")
    if not rows:
        return None
    parts = [
        "Five stratified random folds (a molecule, copies and stereoisomers included, is never in "
        "two) and five folds of whole Bemis-Murcko scaffolds. Methods as in "
        "[numbers](numbers.md). MCC and accuracy are of predicted classes, with a threshold that "
        "is tuned on the training part where a class is rare; Brier score and log loss are of "
        "probabilities. ± is the standard deviation over folds. Chemprop was trained on a GPU, "
        "whose time did not suffice for all ensembles on scaffold folds and HIV; lines of HIV with "
        "fewer folds are slow ones. P-values are as in numbers.",
        places_text(rows, "roc_auc", smaller=False),
    ]
    for (name, kind), own in grouped(rows, "set", "kind").items():
        parts += [f"## {name}, {KINDS[kind]}", score_table(own, CLASSES, smaller=False)]
    parts += earlier_parts(out)
    return write_page(out, "classes", "Classes of molecules", parts)
