"""The page about numbers of molecules, and the table that the README quotes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.page_compare import PUBLISHED, write_numbers
from reproduction.pages import (
    METHOD_NAMES,
    Rows,
    common_rows,
    current,
    grouped,
    listed,
    markdown_table,
    paired,
    plus_minus,
    rows_of,
    save_figure,
    write_page,
)

# Colours of Okabe and Ito, told apart by line style as well.
_STYLES = {
    "default": ("#d55e00", "-"), "uniform": ("#0072b2", "--"),
    "treelens": ("#d55e00", "-"), "treelens_uniform": ("#0072b2", "--"),
    "ecfp_gp": ("#009e73", "-."), "ecfp_forest": ("#666666", ":"),
}  # fmt: skip
SETS = ("ESOL", "FreeSolv", "Lipophilicity")
# Columns of the short table; ours come first.
OURS = ("default", "depths", "uniform")
RIVALS = ("ecfp4_gp", "ecfp_gp", "ecfp_forest", "ecfp_boosting")
# (set, size) -> method -> (mean error, standard error, splits)
Curves = dict[tuple[str, int], dict[str, tuple[float, float, int]]]


def write(out: Path) -> Path | None:
    """Write ``numbers.md`` and the figure of learning curves."""
    if rows_of(out, "compare_numbers"):
        return write_numbers(out)
    random, scaffold = rows_of(out, "regression"), rows_of(out, "regression_scaffold")
    if not random:
        return None
    curves = curves_of(rows_of(out, "curves"))
    if curves:
        draw_curves(out / "figures", curves)
    parts = [
        short_table(out),
        coverage_text(random, scaffold),
        *_random_parts(random),
        *_scaffold_parts(scaffold),
        *_assay_parts(out),
        *_curve_parts(curves),
    ]
    return write_page(out, "numbers", "Numbers of molecules", parts)


# --- random splits ----------------------------------------------------------------------------


def mean_errors(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    """Return mean scores by set and method."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (name, method), members in grouped(rows, "set", "method").items():
        errors = [row["rmse"] for row in members]
        summary: dict[str, Any] = {
            "rmse": float(np.mean(errors)),
            "std": float(np.std(errors, ddof=1)) if len(errors) > 1 else None,
            "n": len(errors),
        }
        for score in ("nlpd", "coverage"):
            if all(score in row for row in members):
                summary[score] = float(np.mean([row[score] for row in members]))
        found.setdefault(name, {})[method] = summary
    return found


def short_table(out: Path) -> str:
    """Return the table of the README: three sets over their splits, and the mean of assays."""
    rows = rows_of(out, "regression")
    found, main = mean_errors(rows), current(rows, "default")
    methods = (*(current(rows, method) for method in OURS), *RIVALS)
    lines = []
    for name in (name for name in SETS if main in found.get(name, {})):
        n = found[name][main]["n"]
        cells = [_short_cell(found[name].get(method), n) for method in methods]
        lines.append([f"{name}, {n} random splits", *cells])
    assays = grouped(rows_of(out, "moleculeace"), "method")
    if main in assays:
        n = len(assays[main])
        cells = [
            f"{np.mean([r['rmse'] for r in assays[m]]):.3f}" if len(assays.get(m, ())) == n else "–"
            for m in methods
        ]
        lines.append([f"MoleculeACE, mean of {n} assays", *cells])
    names = [METHOD_NAMES[m].removeprefix("treelens, ") for m in methods]
    return markdown_table(["RMSE on held-out molecules", *names], lines)


def _short_cell(cell: Mapping[str, Any] | None, n: int) -> str:
    if cell is None:
        return "–"
    return f"{cell['rmse']:.3f}" + ("" if cell["n"] == n else f" ({cell['n']} splits)")


def coverage_text(random: Rows, scaffold: Rows) -> str:
    """Return how many held-out values the 90 % intervals hold, on either kind of split."""
    parts = []
    for rows, kind in ((random, "random splits"), (scaffold, "folds of whole scaffolds")):
        found = mean_errors(rows)
        main = current(rows, "default") if rows else ""
        shares = [100 * found[n][main]["coverage"] for n in SETS if main in found.get(n, {})]
        if shares:
            low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
            span = low if low == high else f"{low} to {high}"
            parts.append(f"{span} % of the held-out values on {kind}")
    return f"The 90 % intervals of `GraphRegressor` contain {listed(parts)}." if parts else ""


_ABOUT = (
    "Random 80/20 splits, seeds 0 to 19. Everything that is learned or tuned comes from the "
    "training part. *treelens* is `GraphRegressor` as it was by default when the rows were made: "
    "depth 4, weights of depths and branches. Uniform weights are fixed at depth 4, too; part of "
    "what learning takes off is the choice of depth, as the lines with one weight per depth show. "
    "The ECFP Gaussian processes have an amplitude times the "
    "Tanimoto kernel of counts and no weight per radius, so they have less to fit with than ours. "
    "The forest (500 trees) and boosting (200 rounds at a rate of 0.1) are untuned. ± is the "
    "standard deviation over splits, coverage that of 90 % intervals. How the settings of treelens "
    "were chosen, partly on splits of these sets, is in [defaults](defaults.md). ESOL holds 13 "
    "molecules twice (stereochemistry aside), and the random splits do not keep copies together: "
    "1.6 % of its test molecules also occur in the training part. The scaffold folds below do."
)


def _random_parts(rows: Rows) -> list[str]:
    parts = ["## Random splits", _ABOUT]
    for name, methods in mean_errors(rows).items():
        lines = [
            [METHOD_NAMES[m], plus_minus(x["rmse"], x["std"], 3),
             f"{x['nlpd']:.2f}" if "nlpd" in x else "",
             f"{100 * x['coverage']:.0f} %" if "coverage" in x else "", x["n"]]
            for m, x in sorted(methods.items(), key=lambda item: item[1]["rmse"])
        ]  # fmt: skip
        own = [row for row in rows if row["set"] == name]
        main = current(own, "default")
        gains = [
            f"{100 * gain['difference'] / methods[theirs]['rmse']:.1f} % below "
            f"{METHOD_NAMES[theirs].removeprefix('treelens, ')} (p = {gain['p_value']:.2g})"
            for theirs in (current(own, "uniform"), current(own, "depths"))
            if (gain := paired(own, theirs, main, "rmse", ("split",), 0.25)) is not None
        ]
        header = ["method", "RMSE", "NLPD", "coverage", "splits"]
        parts += [f"### {name}", markdown_table(header, lines)]
        if gains:
            parts.append(f"The error of treelens is {listed(gains)}; corrected one-sided tests.")
    return parts


def _scaffold_parts(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [
        [name, METHOD_NAMES[m], plus_minus(x["rmse"], x["std"], 3),
         f"{100 * x['coverage']:.0f} %" if "coverage" in x else "", x["n"]]
        for name, methods in mean_errors(common_rows(rows, ["set"], ["split"])).items()
        for m, x in sorted(methods.items(), key=lambda item: item[1]["rmse"])
    ]  # fmt: skip
    return [
        "## Whole scaffolds held out",
        "Five folds of whole Bemis-Murcko scaffolds: no ring system of a test molecule was trained "
        "on, and all molecules without a ring are one scaffold, half of FreeSolv among them. "
        "Errors are larger and intervals hold fewer values than on random splits: expect this for "
        "new chemistry. ± is the standard deviation over folds.",
        markdown_table(["set", "method", "RMSE", "coverage", "folds"], lines),
    ]


# --- MoleculeACE ------------------------------------------------------------------------------


def _assay_parts(out: Path) -> list[str]:
    rows = rows_of(out, "moleculeace")
    if not rows:
        return []
    own = {(r["set"], r["method"]): r for r in rows}
    sets, methods = (list(dict.fromkeys(r[k] for r in rows)) for k in ("set", "method"))

    def value(name: str, method: str, score: str) -> float | None:
        found = own.get((name, method)) or PUBLISHED["sets"].get(name, {}).get(method) or {}
        return found.get(score)

    columns = [*methods, *PUBLISHED["methods"]]
    lines = [[name, *(_number(value(name, m, "rmse"), 3) for m in columns)] for name in sets]
    for score, label in (("rmse", "**mean**"), ("rmse_cliff", "**mean, cliffs**")):
        cells = []
        for method in columns:
            known = [x for name in sets if (x := value(name, method, score)) is not None]
            cells.append(f"{np.mean(known):.3f}" if len(known) == len(sets) else "")
        lines.append([label, *cells])
    return [
        "## MoleculeACE",
        f"{len(sets)} assays (van Tilborg, Alenicheva and Grisoni 2022), RMSE of pKi or pEC50 on "
        f"the published test parts. The first {len(methods)} columns were made here, the others "
        f"are as published ({PUBLISHED['sources']}). Most of the lead over published figures is "
        "the Gaussian process and exact counts, which the ECFP processes share; the part of "
        "learning is the difference to uniform weights.",
        markdown_table(["assay", *(METHOD_NAMES.get(m, m) for m in columns)], lines),
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


# --- learning curves --------------------------------------------------------------------------


def curves_of(rows: Rows) -> Curves:
    """Return mean errors over the splits that every method of the set has at that size."""
    kept = common_rows(rows, ["set", "size"], ["split"])
    curves: Curves = {}
    for (name, size, method), found in grouped(kept, "set", "size", "method").items():
        errors = np.array([row["rmse"] for row in found])
        error = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
        cell = float(errors.mean()), float(error), len(errors)
        curves.setdefault((name, size), {})[method] = cell
    return dict(sorted(curves.items()))


def gain_at(cells: Mapping[str, tuple[float, float, int]]) -> float:
    """Return the percentage of the error of uniform weights that learning takes off."""
    ours, uniform = (
        cells.get(new, cells.get(old))
        for new, old in (("default", "treelens"), ("uniform", "treelens_uniform"))
    )
    return 100 * (1 - ours[0] / uniform[0]) if ours and uniform else 0.0


def _curve_parts(curves: Curves) -> list[str]:
    if not curves:
        return []
    known = {method for cells in curves.values() for method in cells}
    methods = [method for method in _STYLES if method in known]
    lines = [
        [name, size, *(_number(cells.get(m, (None,))[0], 3) for m in methods),
         f"{gain_at(cells):+.1f} %", next(iter(cells.values()))[2]]
        for (name, size), cells in curves.items()
    ]  # fmt: skip
    texts = []
    for name in dict.fromkeys(name for name, _ in curves):
        sizes = [size for n, size in curves if n == name]
        first, last = (gain_at(curves[name, size]) for size in (sizes[0], sizes[-1]))
        texts.append(f"{first:+.0f} % at {sizes[0]} and {last:+.0f} % at {sizes[-1]} on {name}")
    header = ["set", "molecules", *(METHOD_NAMES[m] for m in methods), "learning takes off",
              "splits"]  # fmt: skip
    return [
        "## Learning curves",
        "The error against the number of training molecules, means over random splits that each "
        "hold a fifth of the set out; default settings. Learned weights take off the error of "
        f"uniform weights at depth 4: {'; '.join(texts)}. Part of it is the choice of depth.",
        "![Error against the number of training molecules](figures/curves.png)",
        markdown_table(header, lines),
    ]


def draw_curves(folder: Path, curves: Curves) -> list[Path]:
    """Draw one panel a set, the error against the number of molecules."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(name for name, _ in curves))
    figure = Figure(figsize=(0.6 + 3.4 * len(names), 3.4), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        sizes = [size for n, size in curves if n == name]
        for method, (color, line) in _STYLES.items():
            if any(method not in curves[name, size] for size in sizes):
                continue
            means, errors = np.array([curves[name, size][method][:2] for size in sizes]).T
            panel.errorbar(
                sizes, means, errors, label=METHOD_NAMES[method], color=color, ls=line, lw=1.8
            )
        panel.set(title=name, xscale="log", xlabel="training molecules")
        panel.set_xticks(sizes, labels=[str(size) for size in sizes], fontsize=8)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("RMSE on held-out molecules")
    panels[0].legend(frameon=False, fontsize=8)
    return save_figure(figure, folder, "curves")
