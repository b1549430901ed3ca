"""What Table 2's methods chose from: which grid made which rows, edges, and the paper's grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.edges import edge_parts
from reproduction.grids import GRIDS, Grid
from reproduction.methods import (
    FIXED_METHODS,
    OTHER_METHODS,
    PAPER_METHODS,
    TABLE2_METHODS,
    WL_METHODS,
    title_of,
)
from reproduction.pages import markdown_table, plus_minus
from reproduction.protocol import N_OUTER
from reproduction.published import published_accuracy

Row = Mapping[str, Any]
# Rows of an earlier version name no grid.
_FIRST = "first"
# Inner training parts are at least this share of the outer ones.
_INNER_SHARE = 2 / 3
_SEVERAL_CLASSES = "ENZYMES"


def grid_name(row: Row) -> str:
    """The key in ``GRIDS`` of the grid that a row was made with."""
    return str(row.get("grid", _FIRST))


def grid_of(row: Row) -> dict[str, tuple[Any, ...]]:
    """Parameters that the method of a row chose, with the values that it chose from.

    Examples
    --------
    >>> grid_of({"method": "shortest_path", "grid": "first"})
    {'C': (0.1, 1.0, 10.0, 100.0)}
    """
    grid, method = GRIDS[grid_name(row)], row["method"]
    if method == "random_walk":
        return {"max_length": grid.lengths, "decay": grid.decays, "C": grid.Cs}
    if method in FIXED_METHODS:
        return {"C": grid.Cs}
    spec = {**WL_METHODS, **PAPER_METHODS}[method]
    if spec.preset and method not in PAPER_METHODS:
        return {}  # it takes over what WWL chose
    values: dict[str, tuple[Any, ...]] = {
        "depth": grid.depths, "gamma": grid.gammas, "C": grid.Cs,
    }  # fmt: skip
    learns = spec.uniform or spec.members or method == "paper_grid_converged"
    return {**values, "radius": _radii(grid, row)} if learns else values


def _radii(grid: Grid, row: Row) -> tuple[float, ...]:
    return grid.radii_for(round(row["n_test"] * (N_OUTER - 1) * _INNER_SHARE))


def grids_text(rows: Sequence[Row]) -> str:
    """Which sets and methods were run with which grid, in words."""
    lines = []
    for name in ("wide", _FIRST):
        chosen = [row for row in rows if grid_name(row) == name and grid_of(row)]
        if chosen:
            lines.append(f"- *{name}*: {_values_text(GRIDS[name])}. {_where_text(chosen, rows)}")
    return (
        "Two grids were used; the first proved too narrow, and what could be run again was run "
        "again in the wider one.\n\n" + "\n".join(lines)
    )


def wider_grid_parts(rows: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Whether the wide grid does better than the first one, on folds that were run with both.

    ``others`` are rows of the grid that the table does not show.
    """
    cells: dict[tuple[str, str, str], dict[tuple[int, int], float]] = {}
    for row in (*others, *rows):
        key = row["dataset"], row["method"], grid_name(row)
        cells.setdefault(key, {})[row["repetition"], row["fold"]] = row["accuracy"]
    lines = []
    for name, method in dict.fromkeys((row["dataset"], row["method"]) for row in others):
        first, wide = (cells.get((name, method, grid), {}) for grid in (_FIRST, "wide"))
        shared = sorted(first.keys() & wide.keys())
        if shared:
            both = [100 * float(np.mean([part[k] for k in shared])) for part in (first, wide)]
            lines.append([name, title_of(method), *(f"{x:.2f}" for x in both), len(shared)])
    if not lines:
        return []
    text = (
        "What the wide grid brings where both were run, without learning and on the same folds "
        "(`wider_grid.jsonl` has the rows that the table above does not show):"
    )
    return [text, markdown_table(["data set", "method", "first", "wide", "folds"], lines)]


def _values_text(grid: Grid) -> str:
    def listed(values: Sequence[Any]) -> str:
        return ", ".join(f"{value:g}" for value in values)

    return (
        f"depth {listed(grid.depths)}; `gamma` {listed(grid.gammas)}; `C` {listed(grid.Cs)}; "
        f"radius {listed(grid.radii)} (training parts of 1,500 graphs or more: "
        f"{listed(grid.radii_of_many)}); random walks of length {listed(grid.lengths)}, decay "
        f"{listed(grid.decays)}"
    )


def _where_text(chosen: Sequence[Row], rows: Sequence[Row]) -> str:
    """Data sets with the methods that have this grid there, or "all methods"."""
    parts = []
    for dataset in dict.fromkeys(row["dataset"] for row in chosen):
        here = {row["method"] for row in chosen if row["dataset"] == dataset}
        known = {r["method"] for r in rows if r["dataset"] == dataset and grid_of(r)}
        known -= set(PAPER_METHODS)
        titles = [title_of(method) for method in TABLE2_METHODS if method in here]
        parts.append(f"{dataset}: {'all methods' if here == known else ', '.join(titles)}")
    return "; ".join(parts) + "."


def table2_edge_parts(rows: Sequence[Row]) -> list[str]:
    """The section about choices at an edge of their grid."""
    ordered = sorted(rows, key=_rank)
    return [
        *edge_parts(ordered, grid_of, lambda r: title_of(r["method"]), lambda r: r["dataset"]),
        "Depth 1 is the shallowest that has a subtree pattern at all, and the smallest radius is "
        "the one nearest to uniform weights: learned methods often go there because learning does "
        "not help. The presets take over what WWL chose.",
    ]


def _rank(row: Row) -> int:
    return (*TABLE2_METHODS, *OTHER_METHODS).index(row["method"])


def classes_text(rows: Sequence[Row]) -> str:
    """How the several classes of ENZYMES are decided, which changed between the two grids."""
    several = [row for row in rows if row["dataset"] == _SEVERAL_CLASSES]
    old = {row["method"] for row in several if grid_name(row) == _FIRST}
    if not several:
        return ""
    left = ", ".join(title_of(method) for method in TABLE2_METHODS if method in old)
    return (
        f"{_SEVERAL_CLASSES} has six classes. Its rows of the wide grid decide between every two "
        "of them by a machine of their own and count votes (one against one, as LIBSVM does)"
        + (f"; older rows ({left}) set each class against the rest." if left else ".")
    )


def unlabelled_parts(rows: Sequence[Row]) -> list[str]:
    """Random walks and shortest paths with and without labels, beside the paper's figures."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["method"], row["dataset"]), []).append(row)
    names = list(dict.fromkeys(name for m, name in cells if m.endswith("_unlabelled")))
    if not names:
        return []
    lines = []
    for labelled in ("random_walk", "shortest_path"):
        for method in (labelled, f"{labelled}_unlabelled"):
            texts = [_folds_text(cells.get((method, name), ())) for name in names]
            lines.append([title_of(method), *texts])
        published = [_published_text(labelled, name) for name in names]
        lines.append([f"{title_of(labelled)}, the paper", *published])
    text = (
        "Our random walks and shortest paths are above the paper's on most sets. Ours count "
        "labelled walks and paths, normalised. The paper says that its walks are labelled, but not "
        "how long, how weighted or whether normalised, and nothing about its paths. The same "
        "kernels with all labels made equal:"
    )
    return ["## Without labels", text, markdown_table(["", *names], lines)]


def paper_grid_parts(rows: Sequence[Row]) -> list[str]:
    """The paper's grid with three learners, beside the paper's own figures."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["method"] in PAPER_METHODS:
            cells.setdefault((row["method"], row["dataset"]), []).append(row)
    if not cells:
        return []
    names = list(dict.fromkeys(name for _, name in cells))
    lines = [
        [title_of(m), *(_folds_text(cells.get((m, name), ())) for name in names)]
        for m in PAPER_METHODS
        if any((m, name) in cells for name in names)
    ]
    for m, title in (("wwl", "the paper's WWL"), ("learned_wwl", "the paper's learned WWL")):
        lines.append([title, *(_published_text(m, name) for name in names)])
    text = (
        "Everything as the paper prints it: depths 1 to H with H from 1 to 6 and no node labels, "
        "`gamma` in {0.0001, 0.001, 0.01}, `C` from 0.001 to 1000, radii 0.1, 0.5 and 1, margins "
        "1.0 and 0.5, `sigma` 0.1; all points of the grid are tried in the inner cross-validation. "
        "With the printed 500 steps of 0.0001 the weights cannot leave a ball of 0.05, so that no "
        "radius matters and the line is WWL's but for rounding. Learned to the optimum with the "
        "same margins, they do move."
    )
    return ["## The paper's own grid", text, markdown_table(["", *names], lines)]


def _published_text(method: str, name: str) -> str:
    published = published_accuracy(method, name)
    return "–" if published is None else plus_minus(*published)


def _folds_text(rows: Sequence[Row]) -> str:
    """Mean and deviation over repetitions, and how many folds if not a hundred."""
    if not rows:
        return "not run"
    scores = {(row["repetition"], row["fold"]): 100 * row["accuracy"] for row in rows}
    whole = [
        np.mean([scores[r, f] for f in range(N_OUTER)])
        for r in sorted({r for r, _ in scores})
        if all((r, f) in scores for f in range(N_OUTER))
    ]
    if not whole:
        return f"{np.mean(list(scores.values())):.2f} [{len(scores)} folds]"
    std = float(np.std(whole, ddof=1)) if len(whole) > 1 else None
    text = plus_minus(float(np.mean(whole)), std)
    return text if len(whole) == N_OUTER else f"{text} [{N_OUTER * len(whole)} folds]"
