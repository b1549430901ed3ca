"""Summary and figure of the bounds experiment, from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.pages import rows_of, save_figure

Rows = Sequence[Mapping[str, Any]]
# Distinct for every kind of eye (Okabe and Ito).
_COLORS = {"paper": "#0072b2", "short": "#009e73", "long": "#d55e00", "optimum": "#cc79a7"}
_QUANTILE = 0.95
_FLOOR = 1e-4  # of the gap's axis: smaller measured gaps are noise of the test graphs


class Cell(NamedTuple):
    """All repetitions of one data set, run and number of graphs."""

    n_graphs: int
    divergence: float
    largest_divergence: float
    divergence_bound: float | None
    gap: float
    high_gap: float
    gap_bound: float | None
    any_solver_bound: float
    loss_bound: float
    moved: float
    n_repetitions: int


def summarize(rows: Rows) -> dict[tuple[str, str], list[Cell]]:
    """Data set and run -> a cell for every number of graphs, ascending."""
    groups: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["run"], row["n_graphs"]), []).append(row)
    cells: dict[tuple[str, str], list[Cell]] = {}
    for (dataset, run, _), members in sorted(groups.items(), key=lambda item: item[0][2]):
        cells.setdefault((dataset, run), []).append(_cell(members))
    return cells


def _cell(rows: Rows) -> Cell:
    divergence = np.array([row["divergence"] for row in rows])
    gap = np.array([row["gap"] for row in rows])
    first = rows[0]
    return Cell(
        first["n_graphs"], float(divergence.mean()), float(divergence.max()),
        first["divergence_bound"], float(gap.mean()), float(np.quantile(gap, _QUANTILE)),
        first["gap_bound"], first["any_solver_bound"], first["loss_bound"],
        float(np.mean([row["moved"] for row in rows])), len(rows),
    )  # fmt: skip


# --- the page ---------------------------------------------------------------------------------


def bounds_parts(out: Path) -> list[str]:
    """Draw the figure and return the section of the page about the paper."""
    rows = [row for row in rows_of(out, "bounds") if row["seed"] == 0]
    if not rows:
        return []
    draw_bounds(out / "figures", rows)
    everything = [cell for group in summarize(rows).values() for cell in group]
    bounded = [cell for cell in everything if cell.divergence_bound is not None]
    kept = sum(cell.divergence <= (cell.divergence_bound or 0.0) for cell in bounded)
    below = sum(cell.high_gap <= _smallest(cell) for cell in everything)
    telling = sum((cell.gap_bound or np.inf) < cell.loss_bound for cell in bounded)
    telling_any = sum(cell.any_solver_bound < cell.loss_bound for cell in everything)
    return [
        "## The bounds",
        "Twin runs: n graphs are drawn and learned from twice with the same pairs, the second time "
        "with one graph replaced. The distance of the two weight vectors and the gap between the "
        "loss of unseen and of training pairs are compared with their bounds (depths 1 and 2, "
        "radius 1, margins 1 and 0.5, σ = 0.1). A gap can never exceed the largest loss M of a "
        "pair: a bound above M says nothing.",
        "![Bounds and measurements](figures/bounds.png)",
        f"The mean distance of the weights is below its bound in {kept} of {len(bounded)} cases, "
        "and the 95 % quantile of the gap below the smaller of its bounds in "
        f"{below} of {len(everything)}. The stability bound is below M in {telling} of "
        f"{len(bounded)} cases, all of them short runs; a bound that does not ask how the weights "
        f"were found in {telling_any} of {len(everything)}. Both bound the loss of pairs, not the "
        "classification error.",
    ]


def _smallest(cell: Cell) -> float:
    return min(cell.any_solver_bound, np.inf if cell.gap_bound is None else cell.gap_bound)


def _datasets(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in rows))


def draw_bounds(folder: Path, rows: Rows) -> list[Path]:
    """Divergence above, gap below, a column for each data set; dashed lines are bounds."""
    from matplotlib.figure import Figure

    cells = summarize(rows)
    datasets = _datasets(rows)
    figure = Figure(figsize=(1.2 + 3.4 * len(datasets), 6.8), layout="constrained")
    axes = figure.subplots(2, len(datasets), squeeze=False, sharey="row")
    for column, dataset in enumerate(datasets):
        for run, color in _COLORS.items():
            if (dataset, run) in cells:
                _draw_divergence(axes[0, column], cells[dataset, run], run, color)
                _draw_gap(axes[1, column], cells[dataset, run], color)
        _draw_common(axes[1, column], cells, dataset)
        axes[0, column].set_title(dataset)
        axes[1, column].set_xlabel("training graphs n")
    axes[0, 0].set_ylabel("‖W − W′‖, one graph replaced")
    axes[1, 0].set_ylabel("gap of the pair loss, 95 % quantile")
    for panel in axes.flat:
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.grid(alpha=0.25)
        sizes = panel.lines[0].get_xdata()
        panel.set_xticks(sizes, labels=[str(n) for n in sizes])
        panel.minorticks_off()
    axes[1, 0].set_ylim(bottom=_FLOOR)
    _add_legend(figure, axes)
    return save_figure(figure, folder, "bounds")


def _draw_divergence(panel: Any, cells: list[Cell], run: str, color: str) -> None:
    n = [cell.n_graphs for cell in cells]
    panel.plot(n, [cell.divergence for cell in cells], "o-", color=color, ms=4, label=run)
    if cells[0].divergence_bound is not None:
        panel.plot(n, [cell.divergence_bound for cell in cells], "--", color=color)


def _draw_gap(panel: Any, cells: list[Cell], color: str) -> None:
    n = [cell.n_graphs for cell in cells]
    panel.plot(n, [max(cell.high_gap, _FLOOR) for cell in cells], "o-", color=color, ms=4)
    if cells[0].gap_bound is not None:
        panel.plot(n, [cell.gap_bound for cell in cells], "--", color=color)


def _draw_common(panel: Any, cells: Mapping[tuple[str, str], list[Cell]], dataset: str) -> None:
    """What does not depend on the run: the bound for any solver, and the largest loss."""
    longest = max((group for (name, _), group in cells.items() if name == dataset), key=len)
    n = [cell.n_graphs for cell in longest]
    panel.plot(n, [cell.any_solver_bound for cell in longest], "--", color="black")
    panel.axhline(longest[0].loss_bound, color="0.6", lw=1)


def _add_legend(figure: Any, axes: Any) -> None:
    from matplotlib.lines import Line2D

    runs, names = axes[0, 0].get_legend_handles_labels()
    others = [
        Line2D([], [], color="0.3", ls="--"),
        Line2D([], [], color="black", ls="--"),
        Line2D([], [], color="0.6", lw=1),
    ]
    labels = [
        *(f"{name}, measured" for name in names), "stability bound", "bound for any solver",
        "largest loss M",
    ]  # fmt: skip
    figure.legend([*runs, *others], labels, loc="outside lower center", ncols=4, frameon=False)
