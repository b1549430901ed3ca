"""The page of the formulations: learned against uniform weights, and what wins, from the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.edges import edge_parts
from reproduction.formulations import DEFAULT, FORMULATIONS
from reproduction.grids import GRIDS
from reproduction.pages import (
    command_line,
    markdown_table,
    p_text,
    write_json,
    write_page,
)
from reproduction.protocol import N_OUTER
from reproduction.significance import Folds, compare
from reproduction.table2 import DATASETS

Rows = Sequence[dict[str, Any]]
Cell = dict[str, Any]  # accuracy, uniform_accuracy, difference (percent), p_value, n_folds
Summary = dict[str, dict[str, Cell]]  # [dataset][formulation]
# Not a formulation of its own: in every fold the one with the best score on the training part.
CHOSEN = "chosen"
_LEVEL = 0.05


def write_formulations(folder: Path, rows: Rows) -> list[Path]:
    """Write ``formulations.json`` and ``formulations.md``."""
    if not rows:
        raise ValueError(
            f"{folder / 'formulations.jsonl'} holds no row of this seed: run formulations without "
            "--tables-only first."
        )
    summary = summarize(rows)
    parts = [
        _introduction(rows), "## In short", _in_short(summary), "## Learned minus uniform",
        _gain_text(summary), _gain_table(summary), "## Accuracy", _accuracy_text(),
        _accuracy_table(summary), "## Choices at an edge of their grid", *_edges(rows),
    ]  # fmt: skip
    title = "Other ways to learn the weights"
    return [
        write_json(folder / "formulations.json", summary),
        write_page(folder / "formulations.md", title, command_line("formulations"), parts),
    ]


def grid_of(row: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """What a row chose from; those on file were made with Table 2's first grid."""
    grid = GRIDS[row.get("grid", "first")]
    n_train = round(row["n_test"] * (N_OUTER - 1) * 2 / 3)
    radii = FORMULATIONS[row["formulation"]].radii or grid.radii_for(n_train)
    return {"depth": grid.depths, "gamma": grid.gammas, "C": grid.Cs, "radius": tuple(radii)}


def _edges(rows: Rows) -> list[str]:
    return edge_parts(rows, grid_of, lambda r: _title(r["formulation"]), lambda r: r["dataset"])


# --- numbers ----------------------------------------------------------------------------------


def summarize(rows: Rows) -> Summary:
    """Means over folds, in percent, and the corrected one-sided test of learned against uniform.

    Examples
    --------
    >>> row = {"dataset": "A", "formulation": "box", "repetition": 0, "seed": 100,
    ...        "accuracy": 0.75, "uniform_accuracy": 0.5,
    ...        "inner_score": 0.7, "uniform_inner_score": 0.6}
    >>> summarize([{**row, "fold": fold} for fold in range(10)])["A"]["box"]["difference"]
    25.0
    """
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in [*rows, *chosen_rows(rows)]:
        found[row["dataset"], row["formulation"]].append(row)
    names = {name for name, _ in found}
    order = [*(n for n in DATASETS if n in names), *sorted(names - set(DATASETS))]
    return {
        name: {f: _cell(found[name, f]) for f in (*FORMULATIONS, CHOSEN) if (name, f) in found}
        for name in order
    }


def chosen_rows(rows: Rows) -> list[dict[str, Any]]:
    """In every fold the formulation, and the uniform twin, with the best inner score.

    Only folds in which all formulations of the data set have been run count; the one that comes
    first in the table wins ties.
    """
    folds: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    possible: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        key = row["dataset"], row["repetition"], row["fold"]
        folds[key][row["formulation"]] = row
        possible[row["dataset"]].add(row["formulation"])
    chosen = []
    for (name, repetition, fold), found in folds.items():
        if len(found) == len(possible[name]):
            ordered = [found[f] for f in FORMULATIONS if f in found]
            learned = max(ordered, key=lambda row: row["inner_score"])
            uniform = max(ordered, key=lambda row: row["uniform_inner_score"])
            chosen.append(
                {
                    "dataset": name, "formulation": CHOSEN, "repetition": repetition, "fold": fold,
                    "accuracy": learned["accuracy"],
                    "uniform_accuracy": uniform["uniform_accuracy"],
                }
            )  # fmt: skip
    return chosen


def _cell(rows: Rows) -> Cell:
    learned, uniform = _folds(rows, "accuracy"), _folds(rows, "uniform_accuracy")
    test = compare(learned, uniform, N_OUTER)
    return {
        "accuracy": _percent(sum(learned.values()) / len(learned)),
        "uniform_accuracy": _percent(sum(uniform.values()) / len(uniform)),
        "difference": _percent(test.difference),
        "p_value": None if test.p_corrected is None else round(test.p_corrected, 6),
        "n_folds": test.n_folds,
    }


def _folds(rows: Rows, column: str) -> Folds:
    return {(row["repetition"], row["fold"]): float(row[column]) for row in rows}


def _percent(share: float) -> float:
    return round(100 * share, 4)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _column(summary: Summary, formulation: str, field: str) -> list[float]:
    """A figure of one formulation on every data set that has it."""
    return [cells[formulation][field] for cells in summary.values() if formulation in cells]


def _present(summary: Summary) -> list[str]:
    """Formulations with rows, in order."""
    return [f for f in (*FORMULATIONS, CHOSEN) if any(f in cells for cells in summary.values())]


def _tests(summary: Summary) -> list[tuple[str, str, Cell]]:
    return [
        (name, f, cell)
        for name, cells in summary.items()
        for f, cell in cells.items()
        if cell["p_value"] is not None
    ]


# --- words ------------------------------------------------------------------------------------


def _title(formulation: str) -> str:
    if formulation == CHOSEN:
        return "the one with the best score inside, fold by fold"
    return FORMULATIONS[formulation].title


def _introduction(rows: Rows) -> str:
    seeds = sorted({row["seed"] + row["repetition"] for row in rows})
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return (
        "Learned WWL with one thing changed at a time, under the nested protocol of Table 2: in "
        "every fold depths, scales and `C` are raced on the training part with uniform weights, "
        "then the radii at the settings that lead, and weights are learned on the training part "
        f"alone. The folds are others than Table 2's: shuffled with {named} instead of 0 to 9. "
        "Every formulation is compared with uniform weights on the very same folds, in the same "
        "kernel form and with the same patterns. The rows, one per fold, are in "
        f"`formulations.jsonl`.{_classes_text(rows)}"
    )


def _classes_text(rows: Rows) -> str:
    """A word on rows that were made before several classes were decided one against one."""
    old = {row["dataset"] for row in rows if "grid" not in row}
    if "ENZYMES" not in old:
        return ""
    return (
        " Those of ENZYMES were made with one machine for each of its six classes against the "
        "rest; Table 2 has since gone over to one for every two classes."
    )


def _in_short(summary: Summary) -> str:
    """What wins and what does not, made from the numbers so that they cannot disagree."""
    lines = [_verdict(summary), _range_text(summary), _level_text(summary)]
    return "\n".join(f"- {line}" for line in lines if line)


def _verdict(summary: Summary) -> str:
    tests = _tests(summary)
    if not tests:
        return ""
    ahead = [test for test in tests if test[2]["p_value"] < _LEVEL]
    behind = [test for test in tests if test[2]["p_value"] > 1 - _LEVEL]
    winners = [test for test in tests if test[2]["p_value"] * len(tests) < _LEVEL]
    name, formulation, cell = min(tests, key=lambda test: test[2]["p_value"])
    return (
        f"{_winners_text(winners)} There are {len(tests)} comparisons. Taken one by one at "
        f"{_LEVEL:g}, significantly ahead of uniform weights: {len(ahead)} ({_listed(ahead)}); "
        f"behind: {len(behind)} ({_listed(behind)}). {_LEVEL * len(tests):.1f} of either kind "
        f"would be expected if nothing differed. The smallest p-value, {p_text(cell['p_value'])} "
        f"({_title(formulation)}, {name}), becomes "
        f"{p_text(min(1.0, cell['p_value'] * len(tests)))} after allowing for their number "
        "(times the number of tests)."
    )


def _winners_text(winners: Sequence[tuple[str, str, Cell]]) -> str:
    if not winners:
        return "No formulation wins on any data set once the number of tests is allowed for."
    return f"Ahead of uniform weights, the number of tests allowed for: {_listed(winners)}."


def _listed(tests: Sequence[tuple[str, str, Cell]]) -> str:
    return "; ".join(f"{_title(f)} on {name}" for name, f, _ in tests) or "none"


def _range_text(summary: Summary) -> str:
    """Mean gain over data sets of every formulation: the default, the best and the worst."""
    gains = {f: _mean(_column(summary, f, "difference")) for f in _present(summary) if f != CHOSEN}
    best, worst = max(gains, key=lambda f: gains[f]), min(gains, key=lambda f: gains[f])
    text = (
        "Averaged over the data sets each was run on, learning changes accuracy by between "
        f"{gains[worst]:+.2f} points ({_title(worst)}) and {gains[best]:+.2f} ({_title(best)})"
    )
    if DEFAULT in gains:
        text += f"; by {gains[DEFAULT]:+.2f} in the default formulation"
    if CHOSEN in _present(summary):
        chosen = _mean(_column(summary, CHOSEN, "difference"))
        text += f"; by {chosen:+.2f} where the formulation is itself chosen on the training part"
    return f"{text}."


def _level_text(summary: Summary) -> str:
    """The highest accuracies, among formulations that have rows on every data set."""
    everywhere = [f for f in FORMULATIONS if len(_column(summary, f, "accuracy")) == len(summary)]
    if DEFAULT not in everywhere:
        return ""
    learned = {f: _mean(_column(summary, f, "accuracy")) for f in everywhere}
    uniform = {f: _mean(_column(summary, f, "uniform_accuracy")) for f in everywhere}
    best, plain = max(learned, key=lambda f: learned[f]), max(uniform, key=lambda f: uniform[f])
    return (
        f"Highest mean accuracy over all data sets with learned weights: {learned[best]:.2f} "
        f"({_title(best)}; the default has {learned[DEFAULT]:.2f}); with uniform weights: "
        f"{uniform[plain]:.2f} ({_twin_title(plain)}; the default's has {uniform[DEFAULT]:.2f})."
    )


def _twin_title(formulation: str) -> str:
    spec = FORMULATIONS[formulation]
    return f"{spec.kernel} form" + (", edge labels" if spec.edge_labels else "")


def _gain_text(summary: Summary) -> str:
    return (
        "Points by which learned weights are ahead of uniform ones (negative: behind), and the "
        "one-sided p-value of the corrected resampled t-test of Nadeau and Bengio over folds. "
        f"There are {len(_tests(summary))} tests in this table and no correction for their number "
        "in its p-values. The line before the last chooses the formulation in every fold by its "
        "score on the training part, and its rival the form and vocabulary likewise; it is the "
        "only one that may be read as a gain from choosing. Cells with another number of folds "
        "than the last line says have it in square brackets."
    )


def _usual_folds(cells: dict[str, Cell]) -> int:
    return max(cell["n_folds"] for cell in cells.values())


def _gain_table(summary: Summary) -> str:
    rows = [
        [
            _title(f), *(_gain_cell(cells, f) for cells in summary.values()),
            f"{_mean(_column(summary, f, 'difference')):+.2f}",
        ]
        for f in _present(summary)
    ]  # fmt: skip
    folds = ["folds", *(_usual_folds(cells) for cells in summary.values()), ""]
    return markdown_table(["formulation", *summary, "mean"], [*rows, folds])


def _gain_cell(cells: dict[str, Cell], formulation: str) -> str:
    if formulation not in cells:
        return ""
    cell = cells[formulation]
    p_value = "-" if cell["p_value"] is None else p_text(cell["p_value"])
    folds = "" if cell["n_folds"] == _usual_folds(cells) else f" [{cell['n_folds']}]"
    return f"{cell['difference']:+.2f}, {p_value}{folds}"


def _accuracy_text() -> str:
    return "Mean accuracy in percent with learned weights; in brackets with uniform ones."


def _accuracy_table(summary: Summary) -> str:
    rows = [
        [_title(f), *(_accuracy_cell(cells.get(f)) for cells in summary.values())]
        for f in _present(summary)
    ]
    return markdown_table(["formulation", *summary], rows)


def _accuracy_cell(cell: Cell | None) -> str:
    return "" if cell is None else f"{cell['accuracy']:.2f} ({cell['uniform_accuracy']:.2f})"
