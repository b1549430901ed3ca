"""Tables of numbers and classes of molecules beside rivals, and the figures of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.choices import TOLERANCE, comparisons
from reproduction.compare import NEW_ASSAYS, OLD_ASSAYS
from reproduction.pages import (
    EARLIER,
    Rows,
    common_rows,
    difference_text,
    from_rows,
    grouped,
    holm_of,
    markdown_table,
    p_text,
    paired,
    plus_minus,
    save_figure,
    signed,
    ties,
)
from reproduction.published import PUBLISHED
from treelens.evaluation.statistics import Comparison, PairedTest, compare_ranks

NAMES = {
    "auto": "treelens",
    EARLIER: "treelens 0.1",
    "ecfp4_gp": "ECFP4 GP",
    "ecfp6_gp": "ECFP6 GP",
    "ecfp6_gp_descriptors": "ECFP6 GP, descriptors",
    "forest": "ECFP4 forest",
    "boosting": "boosting, ECFP4 and descriptors",
    "chemprop": "Chemprop",
    "chemprop_ensemble": "Chemprop, five networks",
}
RIVALS = tuple(NAMES)[2:]
SHORT = tuple(name for name in NAMES if name not in ("ecfp4_gp", "chemprop"))
OF_CLASSES = ("auto", *RIVALS[:-1])
ASSAY_RIVALS = ("ecfp6_gp", "ecfp6_gp_descriptors", "forest", "boosting")
KINDS = {"random": "random splits", "scaffold": "folds of whole scaffolds"}


# --- numbers ----------------------------------------------------------------------------------


def numbers(rows: Rows, assays: Rows) -> str:
    """RMSE of three sets over their splits, and of the assays."""
    # Bold: the best of a line and all that are level with it.
    return _scores(_number_lines(rows, assays), SHORT, "rmse", smaller=True)


def _scores(lines: Mapping[str, Rows], methods: Sequence[str], score: str, smaller: bool) -> str:
    cells = []
    for title, own in lines.items():
        values = {m: [r[score] for r in found] for m, found in grouped(own, "method").items()}
        level = _level(own, methods, score, smaller)
        line = []
        for method in methods:
            found = values.get(method, [])
            whole = found and len(found) == len(values["auto"])
            std = None if of_assays(own) or len(found) < 2 else float(np.std(found, ddof=1))
            text = plus_minus(float(np.mean(found)), std, 3) if whole else "–"
            line.append(f"**{text}**" if method in level else text)
        cells.append([title, *line])
    shown = [k for k in range(len(methods)) if any(line[k + 1] != "–" for line in cells)]
    header = ["RMSE" if score == "rmse" else "ROC AUC", *(NAMES[methods[k]] for k in shown)]
    return markdown_table(header, [[line[0], *(line[k + 1] for k in shown)] for line in cells])


def _number_lines(rows: Rows, assays: Rows) -> dict[str, Rows]:
    beside = {f"MoleculeACE, {len(grouped(assays, 'set'))} assays": assays} if assays else {}
    return lines_of(rows) | beside


def lines_of(rows: Rows) -> dict[str, Rows]:
    """Return the rows of our default and of rivals by set and kind of splits, random ones first."""
    known = [row for row in rows if row["method"] in NAMES]
    return {
        f"{name}, {len({r['split'] for r in own})} {text}": own
        for kind, text in KINDS.items()
        for name, own in grouped([r for r in known if r["kind"] == kind], "set").items()
    }


def of_assays(rows: Rows) -> bool:
    """Whether rows are of several sets, with one split each."""
    return len({row["set"] for row in rows}) > 1


def _level(rows: Rows, methods: Sequence[str], score: str, smaller: bool) -> tuple[str, ...]:
    """The best of some methods, and all that are level with it."""
    own = [row for row in rows if row["method"] in methods]
    if of_assays(own):
        by_method = {name: {r["method"]: r for r in found} for name, found in by_set(own)}
        return _ranks(by_method, methods).ties
    return ties(own, score, smaller)


def by_set(rows: Rows) -> Any:
    """Return pairs of a set and its rows."""
    return grouped(rows, "set").items()


def difference_cell(test: PairedTest | None, p_value: float | None) -> str:
    """Return a difference with its corrected p-value in brackets."""
    if test is None:
        return "–"
    return f"{difference_text(test._replace(standard_error=None))} ({p_text(p_value)})"


def networks(rows: Rows) -> str:
    """RMSE of the networks and of ours on the random splits that both were run on."""
    methods = ("auto", "chemprop", "chemprop_ensemble")
    own = [r for r in rows if r["kind"] == "random" and r["method"] in methods]
    found = grouped(common_rows(own, ["set"], ["split"]), "set", "method")
    lines = [
        [name, len(found[name, "auto"]), *(_text(found.get((name, m)), "rmse") for m in methods)]
        for name, method in found
        if method == "auto"
    ]
    return markdown_table(["RMSE", "random splits", *(NAMES[m] for m in methods)], lines)


def error_bars(rows: Rows) -> str:
    """Log densities and shares within 90 % intervals."""
    methods = ("auto", "ecfp6_gp_descriptors")
    lines = []
    for title, own in lines_of(rows).items():
        found = grouped(own, "method")
        cells = [_text(found.get(m), "nlpd") for m in methods]
        cells += [_percent(found.get(m), "coverage", 1) for m in methods]
        lines.append([title, *cells])
    header = [f"{NAMES[m]}: {text}" for text in ("NLPD", "within 90 %") for m in methods]
    return markdown_table(["", *header], lines)


def widened(rows: Rows) -> str:
    """Shares of values on new scaffolds within 90 % intervals, as they are and widened."""
    lines = []
    for name, found in grouped([r for r in rows if r["split"] == "scaffold"], "set").items():
        shares = [[100 * row[kind] for row in found] for kind in ("posterior", "scaffold")]
        cells = [f"{np.mean(x):.1f} ({min(x):.0f} to {max(x):.0f})" for x in shares]
        lines.append([name, *cells, f"{_mean(found, 'factor'):.2f}"])
    return markdown_table(
        ["within 90 %, new scaffolds", "`posterior`", "`scaffold`", "factor"], lines
    )


def _mean(rows: Rows, score: str) -> float:
    return float(np.mean([row[score] for row in rows]))


def _text(rows: Rows | None, score: str) -> str:
    """Return the mean of a score, if there are rows."""
    return f"{_mean(rows, score):.3f}" if rows else "–"


def _percent(rows: Rows | None, score: str, digits: int) -> str:
    return f"{100 * _mean(rows, score):.{digits}f} %" if rows else "–"


# --- MoleculeACE ------------------------------------------------------------------------------

Scores = Mapping[str, Mapping[str, Mapping[str, Any]]]  # assay -> method -> its errors


def assays_of(rows: Rows, names: Sequence[str]) -> Scores:
    """Return the errors of ours and of published models on some assays."""
    found = {name: {r["method"]: r for r in own} for name, own in by_set(rows) if name in names}
    return {
        name: own | {m: PUBLISHED["sets"][name][m] for m in PUBLISHED["methods"]}
        for name, own in found.items()
    }


def _assay_methods() -> list[str]:
    return ["auto", *ASSAY_RIVALS, *PUBLISHED["methods"]]


def assays(rows: Rows) -> str:
    """Mean errors over assays, wins of ours, and whether the ranks differ."""
    aside, used = (assays_of(rows, names) for names in (NEW_ASSAYS, OLD_ASSAYS))
    if not aside or not used:
        return ""
    compared = _ranks(aside, _assay_methods())
    lines = []
    for method in _assay_methods():
        wins, p_value = ["", ""], ""
        if method != "auto":
            wins = [_wins(found, method) for found in (aside, used)]
            p_value = p_text(compared.p_value_between("auto", method))
        errors = [_error(aside, method), _error(aside, method, "rmse_cliff"), _error(used, method)]
        cells = [f"{error:.4f}" for error in errors]
        lines.append([NAMES.get(method, method), *cells[:2], wins[0], p_value, cells[2], wins[1]])
    header = [
        f"{len(aside)} kept aside: RMSE",
        "on cliffs",
        "treelens better",
        "p",
        f"{len(used)} used: RMSE",
        "treelens better",
    ]
    return markdown_table(["", *header], sorted(lines, key=lambda line: line[1]))


def _error(found: Scores, method: str, score: str = "rmse") -> float:
    return float(np.mean([own[method][score] for own in found.values()]))


def _wins(found: Scores, method: str) -> str:
    n = sum(own["auto"]["rmse"] < own[method]["rmse"] for own in found.values())
    return f"{n} of {len(found)}"


def _ranks(found: Scores, methods: Sequence[str]) -> Comparison:
    shared = [m for m in methods if all(m in own for own in found.values())]
    errors = {m: [own[m]["rmse"] for own in found.values()] for m in shared}
    return compare_ranks(errors, greater_is_better=False)


def draw_ranks(folder: Path, rows: Rows) -> Path:
    """Draw mean ranks over all assays, with the critical difference on either side of ours."""
    from matplotlib.figure import Figure

    compared = _ranks(assays_of(rows, (*NEW_ASSAYS, *OLD_ASSAYS)), _assay_methods())
    ranks, critical = compared.centers, compared.critical_difference
    order = sorted(ranks, key=lambda m: -ranks[m])
    figure = Figure(figsize=(6.4, 0.9 + 0.25 * len(order)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(ranks["auto"] - critical, ranks["auto"] + critical, color="#d55e00", alpha=0.12)
    colors = ["#d55e00" if m == "auto" else "0.3" for m in order]
    panel.scatter([ranks[m] for m in order], range(len(order)), c=colors, s=24, zorder=2)
    panel.set_yticks(range(len(order)), labels=[NAMES.get(m, m) for m in order], fontsize=8)
    panel.set(xlabel="mean rank over 30 assays (1: smallest error)", xlim=(0.5, len(order) + 0.5))
    panel.grid(axis="x", alpha=0.25)
    return save_figure(figure, folder, "ranks")


def draw_calibration(folder: Path, rows: Rows) -> Path:
    """Draw a panel for each kind of splits: the share within against the level, set by set."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in KINDS if any(r["kind"] == kind for r in rows)]
    figure = Figure(figsize=(3.6 * len(kinds), 3.6), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(row["set"] for row in rows))
    for panel, kind in zip(panels, kinds, strict=True):
        for color, name in zip(("#0072b2", "#d55e00", "#009e73"), names, strict=False):
            for method, line in (("auto", "o-"), ("ecfp6_gp", "s--")):
                wanted = (kind, name, method)
                own = [r for r in rows if (r["kind"], r["set"], r["method"]) == wanted]
                if own:
                    levels = [float(level) for level in own[0]["calibration"]]
                    shares = np.mean([list(r["calibration"].values()) for r in own], axis=0)
                    label = f"{name}, {NAMES[method]}"
                    panel.plot(levels, shares, line, color=color, ms=4, lw=1.2, label=label)
        panel.plot([0.5, 0.95], [0.5, 0.95], color="0.6", lw=0.8)
        panel.set(title=KINDS[kind], xlabel="level of the interval")
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("share of held-out values within")
    panels[0].legend(frameon=False, fontsize=7)
    return save_figure(figure, folder, "calibration")


# --- classes ----------------------------------------------------------------------------------


def classes(rows: Rows) -> str:
    """ROC AUC of every set and kind of splits."""
    return _scores(lines_of(rows), OF_CLASSES, "roc_auc", smaller=False)


RARE_SCORES = {
    "roc_auc": "ROC AUC",
    "pr_auc": "PR AUC",
    "mcc": "MCC",
    "recall": "recall",
    "precision": "precision",
}


def hiv(rows: Rows) -> str:
    """All of HIV on folds of whole scaffolds, beside a forest."""
    names = {"treelens": "treelens", "ecfp_forest": "ECFP4 forest, 500 trees"}
    kept = common_rows([{**r, "n_test": r["n"]} for r in rows], [], ["fold"])
    lines = [
        [names[m], *_rare_cells(found), f"{_mean(found, 'seconds'):.0f}"]
        for m, found in grouped(kept, "method").items()
    ]
    tests = {s: paired(kept, "treelens", "ecfp_forest", s, ("fold",)) for s in RARE_SCORES}
    shown = ["" if test is None else difference_text(test) for test in tests.values()]
    lines += [["difference", *shown, ""], ["p (Holm)", *map(p_text, holm_of(tests).values()), ""]]
    return markdown_table(["", *RARE_SCORES.values(), "seconds"], lines)


def _rare_cells(rows: Rows) -> list[str]:
    return [f"{_mean(rows, score):.3f}" for score in RARE_SCORES]


def rare(rows: Rows) -> str:
    """Scores of rare classes with the threshold of the default and with others."""
    names = {
        "default": "treelens",
        "named at 0.5": "treelens, the likelier class",
        "recall=0.9": "treelens, `threshold='recall=0.9'`",
        "ecfp_forest": "ECFP4 forest",
    }
    lines = []
    for (name, method), found in grouped(rows, "set", "method").items():
        share = f"{100 * found[0]['n_positive'] / found[0]['n']:.1f} %"
        size = f"{name}, {share} of {found[0]['n']:,}"
        lines.append([size, names[method], *_rare_cells(found)])
    return markdown_table(["set", "model", *RARE_SCORES.values()], lines)


# --- limits, and what the default chooses -------------------------------------------------------


def limits(rows: Rows) -> str:
    """RMSE where a part of the training values is known only as limits."""
    titles = {
        "limits": "limits used",
        "left_out": "left out",
        "clipped": "clipped",
        "uncensored": "true values",
    }
    kept = common_rows(rows, ["set", "side"], ["split"])
    sides = grouped(kept, "set", "side")
    tests = {
        (side, other): paired(own, "limits", other, "rmse", ("split",))
        for side, own in sides.items()
        for other in ("left_out", "clipped")
    }
    p_values = holm_of(tests)
    lines = []
    for side, own in sides.items():
        found = grouped(own, "method")
        means = [_text(found.get(m), "rmse") for m in titles]
        others = ("left_out", "clipped")
        cells = [difference_cell(tests[side, m], p_values[side, m]) for m in others]
        within = _percent(found.get("limits"), "coverage", 0)
        lines.append([", ".join(side), *means, *cells, within])
    header = ["RMSE", *titles.values(), "minus left out", "minus clipped", "within 90 %"]
    return markdown_table(header, lines)


def choice(*parts: Rows) -> str:
    """The default beside the fixed choice that is best in hindsight, over the sets of a kind."""
    titles = {
        "moleculeace": "MoleculeACE, % of the RMSE",
        "numbers": "numbers, % of the RMSE",
        "classes": "classes of molecules, points of ROC AUC",
        "table2": "sets of Table 2, points of accuracy",
        "attributes": "sets with attributes, points of accuracy",
    }
    found = comparisons(dict(zip(titles, parts, strict=True)))
    lines = []
    for part, title in titles.items():
        own = {c.name: c for c in found if c.part == part and "assays" not in c.name}
        gains = {name: c.gain("auto", c.best).difference for name, c in own.items()}
        if not gains:
            continue
        worst = min(gains, key=lambda name: gains[name])
        behind = sum(gain < -TOLERANCE[own[worst].unit] for gain in gains.values())
        mean = float(np.mean(list(gains.values())))
        lines.append([title, len(gains), signed(mean), behind, f"{worst}, {signed(gains[worst])}"])
    header = [
        "default minus best fixed choice",
        "sets",
        "mean",
        "clearly behind on",
        "furthest behind",
    ]
    return markdown_table(header, lines)


ALL_PARTS = tuple(
    f"compare_{part}" for part in ("moleculeace", "numbers", "classes", "table2", "attributes")
)
TABLES = {
    "numbers": from_rows(numbers, "compare_numbers", "compare_moleculeace"),
    "networks": from_rows(networks, "compare_numbers"),
    "error-bars": from_rows(error_bars, "compare_numbers"),
    "widened-intervals": from_rows(widened, "intervals"),
    "assays": from_rows(assays, "compare_moleculeace"),
    "classes": from_rows(classes, "compare_classes"),
    "hiv": from_rows(hiv, "hiv"),
    "rare-classes": from_rows(rare, "rare"),
    "limits": from_rows(limits, "censored"),
    "choice": from_rows(choice, *ALL_PARTS),
}
FIGURES = {
    "ranks": from_rows(draw_ranks, "compare_moleculeace"),
    "calibration": from_rows(draw_calibration, "compare_numbers"),
}
