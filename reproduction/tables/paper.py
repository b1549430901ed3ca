"""Tables of the paper's experiments: its Tables 1 to 3, the synthetic study, the bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reproduction import bounds, runtime, synthetic_study
from reproduction.accuracy import (
    TWINS,
    Comparison,
    Folds,
    compare,
    folds_of,
    formulation_tests,
    learning_tests,
    summarize,
    table2_rows,
)
from reproduction.choices import SCORES, draw_gains, learning_counts
from reproduction.figures import draw_patterns
from reproduction.methods import title_of
from reproduction.pages import Rows, from_rows, markdown_table, p_text, plus_minus, signed
from reproduction.published import PAPER_P_VALUES, possible_p_values, published_accuracy, table1
from treelens.evaluation.statistics import holm

_WHOLE = 100  # folds of a complete line
LINES = (
    "random_walk",
    "shortest_path",
    "wl_subtree",
    "wl_oa_plain",
    "wl_oa",
    "wwl",
    "learned_wl_subtree",
    "learned_wl_oa",
    "learned_wwl",
    "paper_protocol",
    "preset_released_code",
    "random_walk_unlabelled",
    "shortest_path_unlabelled",
)
# What the paper compares, and what its claims are about.
PAIRS = (
    ("learned_wwl", "wwl"),
    ("learned_wwl", "wl_oa_plain"),
    ("wwl", "wl_oa_plain"),
    ("learned_wwl", "wl_oa"),
    ("learned_wwl", "random_walk"),
    ("learned_wwl", "shortest_path"),
    ("learned_wwl", "wl_subtree"),
)
PAPER_SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1")


# --- Table 2 ----------------------------------------------------------------------------------


def table2(machines: Rows) -> str:
    """Accuracies of the paper's methods and of ours, with the paper's figures in brackets."""
    summary = summarize([row for row in table2_rows(machines) if row["dataset"] != "DD"])
    lines = [
        [title_of(m), *(_cell(summary[name], m, name) for name in summary)]
        for m in LINES
        if any(m in methods for methods in summary.values())
    ]
    return markdown_table(["accuracy, %", *summary], lines)


def _cell(methods: Mapping[str, dict[str, Any]], method: str, name: str) -> str:
    published = published_accuracy(method, name)
    beside = "" if published is None else f" ({published[0]:.2f})"
    if method not in methods:
        return f"–{beside}"
    cell = methods[method]
    fewer = "" if cell["n_folds"] == _WHOLE else f" [{cell['n_folds']}]"
    return plus_minus(cell["mean"], cell["std"]) + fewer + beside


def learning(*parts: Rows) -> str:
    """Learned minus uniform weights of the same method, on the same folds."""
    folds = folds_of(table2_rows(*parts))
    tests = learning_tests(folds)
    cells = {(ours, name): _cell_of(test) for name, ours, test, _ in tests}
    lines = [
        [title_of(ours), *(cells.get((ours, name), "–") for name in folds)]
        for ours in TWINS
        if any((ours, name) in cells for name in folds) and not ours.startswith("gp_")
    ]
    if tests:
        last = f"{min(p for *_, p in tests):.3f} of {len(tests)}"
        lines.append(["smallest p after Holm's correction", last, *[""] * (len(folds) - 1)])
    return markdown_table(["learned minus uniform (p)", *folds], lines)


def depths(*parts: Rows) -> str:
    """How much of the gain of the Gaussian process is the choice of depth."""
    folds = folds_of(table2_rows(*parts))
    steps = {
        "all that learning changes": ("gp_branches", "gp_uniform"),
        "of it, one weight per depth": ("gp_depths", "gp_uniform"),
        "beyond that, branches": ("gp_branches", "gp_depths"),
    }
    lines = [
        [title, *(_cell_of(_tested(methods, *pair)) for methods in folds.values())]
        for title, pair in steps.items()
    ]
    return markdown_table(["points (p)", *folds], lines)


def _tested(methods: Mapping[str, Folds], ours: str, theirs: str) -> Comparison | None:
    """Compare two methods, where both have folds in common."""
    if not methods.get(ours, {}).keys() & methods.get(theirs, {}).keys():
        return None
    return compare(methods[ours], methods[theirs])


def _cell_of(test: Comparison | None) -> str:
    if test is None:
        return "–"
    return f"{signed(100 * test.difference)} ({p_text(test.p_corrected)})"


def formulations(rows: Rows) -> str:
    """Other ways to learn weights against uniform ones: the smallest p-value of each set."""
    found = formulation_tests(rows)
    p_values = [p for own in found.values() for p in own]
    adjusted = min((p for p in holm(p_values) if p is not None), default=1.0)
    tried = len({row["formulation"] for row in rows})
    cells = [f"{min(own, default=1.0):.3f} of {len(own)}" for own in found.values()]
    line = [f"smallest p of {tried} formulations", *cells, f"{adjusted:.3f}"]
    return markdown_table(["", *found, "after Holm's correction for all"], [line])


def pairs(machines: Rows) -> str:
    """Differences that the paper's claims are about, with its own and with the corrected test."""
    folds = folds_of(table2_rows(machines))
    sets = [name for name in PAPER_SETS if name in folds]
    lines = []
    for ours, theirs in PAIRS:
        cells = []
        for test in (_tested(folds[name], ours, theirs) for name in sets):
            both = (test.p_repetitions, test.p_corrected) if test else ()
            p_values = "; ".join(p_text(p) for p in both if p is not None)
            cells.append(f"{signed(100 * test.difference)} ({p_values})" if test else "–")
        lines.append([f"{title_of(ours)} − {title_of(theirs)}", *cells])
    return markdown_table(["points (paper's p; corrected p)", *sets], lines)


def printed_p_values(_: Rows) -> str:
    """The p-values that the paper prints, and those that its printed figures allow."""
    lines = []
    for (theirs, name), value in PAPER_P_VALUES.items():
        if theirs == "wwl":
            low, high = (_p_value(p) for p in possible_p_values(name))
            lines.append([name, value, f"{low} to {high}"])
    return markdown_table(["learned WWL against WWL", "printed p", "possible p"], lines)


def _p_value(p_value: float) -> str:
    return "0" if p_value < 1e-9 else (f"{p_value:.1e}" if p_value < 1e-3 else f"{p_value:.4f}")


TABLE2: Sequence[str] = ("table2", "compare_table2", "compare_attributes")
COMPARED = tuple(f"compare_{part}" for part in SCORES)
TABLES = {
    "table-1": from_rows(table1, "table1"),
    "table-2": from_rows(table2, "table2"),
    "table-2-learning": from_rows(learning, *TABLE2),
    "table-2-depths": from_rows(depths, *TABLE2),
    "formulations": from_rows(formulations, "formulations"),
    "table-2-pairs": from_rows(pairs, "table2"),
    "printed-p-values": from_rows(printed_p_values, "table2"),
    "learning": from_rows(learning_counts, *COMPARED),
    "synthetic": from_rows(synthetic_study.table, "synthetic"),
    "table-3": from_rows(runtime.table3, "runtime"),
    "growth-of-learning": from_rows(runtime.growth, "runtime"),
    "bounds": from_rows(bounds.table, "bounds"),
    "moved": from_rows(bounds.moved, "bounds"),
}
FIGURES = {
    "learning_pays": from_rows(draw_gains, *COMPARED),
    "patterns": from_rows(draw_patterns, "patterns"),
    "runtime": from_rows(runtime.draw_runtime, "runtime"),
    "bounds": from_rows(bounds.draw_bounds, "bounds"),
}
