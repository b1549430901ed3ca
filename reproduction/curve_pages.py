"""Pages and figures of learning curves and of active learning, from their rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.pages import command_line, markdown_table, write_json, write_page
from reproduction.sheets import save_figure

Rows = Sequence[dict[str, Any]]
# Mean error and its standard error over splits, by set, method and number of molecules.
Curves = dict[str, dict[str, dict[int, tuple[float, float, int]]]]

# What is drawn how: colours of Okabe and Ito, told apart by line style as well.
_STYLES = {
    "treelens": ("treelens, weights learned", "#d55e00", "-"),
    "treelens_uniform": ("treelens, uniform weights", "#0072b2", "--"),
    "ecfp_gp": ("ECFP6 counts, Tanimoto GP", "#009e73", "-."),
    "ecfp_forest": ("ECFP4 counts, forest", "#666666", ":"),
    "treelens_variance": ("treelens, by variance", "#d55e00", "-"),
    "treelens_random": ("treelens, at random", "#0072b2", "--"),
    "ecfp_gp_variance": ("ECFP6 GP, by variance", "#009e73", "-."),
    "ecfp_gp_random": ("ECFP6 GP, at random", "#666666", ":"),
}


def curves_of(rows: Rows) -> Curves:
    """Mean errors over the splits that every method of the set has at that size."""
    curves: Curves = {}
    for name in dict.fromkeys(row["set"] for row in rows):
        of_set = [row for row in rows if row["set"] == name]
        methods = list(dict.fromkeys(row["method"] for row in of_set))
        for size in sorted({row["size"] for row in of_set}):
            found = {
                method: {r["split"]: r["rmse"] for r in of_set
                         if r["method"] == method and r["size"] == size}
                for method in methods
            }  # fmt: skip
            common = sorted(set.intersection(*(set(splits) for splits in found.values())))
            if common:
                for method, splits in found.items():
                    errors = np.array([splits[split] for split in common])
                    curves.setdefault(name, {}).setdefault(method, {})[size] = _mean(errors)
    return curves


def _mean(errors: np.ndarray) -> tuple[float, float, int]:
    n = len(errors)
    spread = float(errors.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return float(errors.mean()), spread, n


def write_curves(out: Path, rows: Rows) -> None:
    """The page of learning curves, its figure and its numbers."""
    curves = curves_of(rows)
    write_json(out / "curves.json", plain_curves(curves))
    draw_curves(out / "figures", "curves", curves)
    parts = [
        "How the error falls with the number of training molecules: means over random splits that "
        "each hold a fifth of the set out. A training part is contained in every larger one of the "
        "same split; everything learned or tuned comes from it. All settings are the defaults. "
        "Bars in the figure are standard errors over splits.",
        "![Error against the number of training molecules](figures/curves.png)",
        *(_curve_part(name, methods) for name, methods in curves.items()),
    ]
    write_page(out / "curves.md", "Learning curves", command_line("curves"), parts)


def _curve_part(name: str, methods: dict[str, dict[int, tuple[float, float, int]]]) -> str:
    sizes = sorted(next(iter(methods.values())))
    lines = [
        [size, *(f"{methods[m][size][0]:.3f}" for m in methods), _gain(methods, size),
         methods[next(iter(methods))][size][2]]
        for size in sizes
    ]  # fmt: skip
    header = ["molecules", *(_STYLES[m][0] for m in methods), "learning takes off", "splits"]
    return f"## {name}\n\n" + markdown_table(header, lines)


def _gain(methods: dict[str, dict[int, tuple[float, float, int]]], size: int) -> str:
    if not {"treelens", "treelens_uniform"} <= set(methods):
        return ""
    learned, uniform = methods["treelens"][size][0], methods["treelens_uniform"][size][0]
    return f"{100 * (1 - learned / uniform):+.1f} %"


def write_active(out: Path, rows: Rows) -> None:
    """The page of active learning, its figure and its numbers."""
    curves = curves_of(rows)
    write_json(out / "active.json", plain_curves(curves))
    draw_curves(out / "figures", "active", curves)
    shown = (100, 200, 400, 600, 800, 1000)
    parts = [
        "A model is fitted to 100 molecules and then, 50 at a time, to more of a pool of four "
        "fifths of the set; the error is that on the last fifth, which is never chosen from. By "
        "variance the 50 are taken that the model itself is least certain of, all at once; at "
        "random any. Means over splits; bars are standard errors.",
        "![Error against the number of molecules measured](figures/active.png)",
    ]
    for name, methods in curves.items():
        lines = [
            [size, *(f"{methods[m][size][0]:.3f}" for m in methods)]
            for size in shown if all(size in found for found in methods.values())
        ]  # fmt: skip
        header = ["molecules", *(_STYLES[m][0] for m in methods)]
        parts.append(f"## {name}\n\n" + markdown_table(header, lines))
        parts.append(_verdict(methods))
    write_page(out / "active.md", "Active learning", command_line("active"), parts)


def _verdict(methods: dict[str, dict[int, tuple[float, float, int]]]) -> str:
    """What choosing by variance was worth, read off the last round."""
    last = max(next(iter(methods.values())))
    sentences = []
    for model, title in (("treelens", "treelens"), ("ecfp_gp", "the ECFP6 process")):
        chosen, random = methods[f"{model}_variance"][last][0], methods[f"{model}_random"][last][0]
        change = 100 * (chosen / random - 1)
        word = "above" if change > 0 else "below"
        sentences.append(
            f"at {last} molecules the error of {title} is {abs(change):.1f} % {word} what random "
            "choice gives"
        )
    return "Choosing by variance: " + "; ".join(sentences) + "."


def plain_curves(curves: Curves) -> dict[str, Any]:
    """For JSON: {set: {method: {size: {rmse, error, n_splits}}}}."""
    return {
        name: {
            method: {
                str(size): {"rmse": mean, "error": error, "n_splits": n}
                for size, (mean, error, n) in found.items()
            }
            for method, found in methods.items()
        }
        for name, methods in curves.items()
    }


def draw_curves(folder: Path, name: str, curves: Curves) -> list[Path]:
    """One panel a set, error against the number of molecules."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(0.6 + 3.4 * len(curves), 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (title, methods) in zip(panels, curves.items(), strict=True):
        for method, found in methods.items():
            label, color, line = _STYLES[method]
            sizes = sorted(found)
            means, errors = np.array([found[size][:2] for size in sizes]).T
            panel.errorbar(sizes, means, errors, label=label, color=color, ls=line, lw=1.8)
        panel.set(title=title, xlabel="training molecules", xscale="log", ylim=(0, None))
        ticks = (
            sizes
            if len(sizes) < 10
            else [size for size in sizes if size == sizes[0] or size % 200 == 0]
        )
        panel.set_xticks(ticks, [str(size) for size in ticks], rotation=45)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("RMSE on held-out molecules")
    panels[0].legend(frameon=False, fontsize=8)
    return save_figure(figure, folder, name)
