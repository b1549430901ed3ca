"""Table 2 from its rows: means beside the published ones, tests, and what was chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.methods import (
    EVIDENCE_METHODS,
    OTHER_METHODS,
    TABLE2_METHODS,
    WL_METHODS,
    title_of,
)
from reproduction.pages import (
    command_line,
    counts_text,
    markdown_table,
    p_text,
    plus_minus,
    write_json,
    write_page,
)
from reproduction.protocol import N_OUTER
from reproduction.published import PAPER, PAPER_BEST, published_accuracy, published_name
from reproduction.rows import read_rows
from reproduction.significance import Comparison, Folds, compare
from reproduction.table2 import DATASETS
from reproduction.table2_grids import (
    classes_text,
    grids_text,
    paper_grid_parts,
    table2_edge_parts,
    unlabelled_parts,
    wider_grid_parts,
)
from treelens.evaluation.validation import holm

Rows = Sequence[dict[str, Any]]
Summary = dict[str, dict[str, dict[str, Any]]]
N_REPETITIONS = 10
# Share of the folds of the others from which on a figure may be called the best.
_ENOUGH = 0.2
# The learned methods that choose for themselves.
LEARNED = tuple(m for m, spec in WL_METHODS.items() if spec.uniform and not spec.preset)
TESTED = (*LEARNED, "best_of_all", "evidence_branches")
LINES = (*TABLE2_METHODS, *EVIDENCE_METHODS)


def write_table2(out: str | Path, seed: int = 0) -> list[Path]:
    """Summarise ``table2.jsonl`` of a folder into ``table2.json``, tests and ``table2.md``."""
    folder = Path(out)
    known = (*TABLE2_METHODS, *OTHER_METHODS)
    every = [
        row
        for row in read_rows(folder / "table2.jsonl")
        if row["seed"] == seed and row["method"] in known
    ]
    rows = [row for row in every if row["method"] in TABLE2_METHODS]
    if not rows:
        raise ValueError(
            f"{folder / 'table2.jsonl'} holds no row of seed {seed}: run table2 without "
            "--tables-only first."
        )
    lines = [*rows, *evidence_rows(folder, seed)]
    summary, tests = summarize(lines), all_comparisons(lines)
    parts = [
        _protocol_text(), _accuracy_table(summary), _unfinished_text(summary),
        _against_paper(summary), _time_text(rows), classes_text(rows),
        *paper_grid_parts(every), *unlabelled_parts(every),
        "## Is learning better?", *_twin_parts(tests), _tests_text(tests), *_test_tables(tests),
        "## What was chosen", grids_text(rows),
        *wider_grid_parts(rows, read_rows(folder / "wider_grid.jsonl")),
        "### Choices at an edge of their grid", *table2_edge_parts(every), *_choice_tables(rows),
    ]  # fmt: skip
    command = command_line("table2")
    return [
        write_json(folder / "table2.json", summary),
        write_json(folder / "table2_tests.json", _tests_data(tests)),
        write_page(
            folder / "table2.md", "Table 2: accuracy of every method", command, filter(None, parts)
        ),
    ]


def evidence_rows(folder: Path, seed: int) -> list[dict[str, Any]]:
    """The rows of Gaussian processes, which were made on the folds of seed 0."""
    if seed != 0:
        return []
    return [
        {"dataset": row["set"], **{key: row[key] for key in _FOLD_KEYS}}
        for row in read_rows(folder / "evidence.jsonl")
    ]


_FOLD_KEYS = ("method", "repetition", "fold", "accuracy", "seconds")


# --- numbers ----------------------------------------------------------------------------------


def folds_of(rows: Rows) -> dict[str, dict[str, Folds]]:
    """``[dataset][method][repetition, fold] -> accuracy``, data sets and methods in order."""
    found: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for row in rows:
        key = row["repetition"], row["fold"]
        found[row["dataset"], row["method"]][key] = float(row["accuracy"])
    names = _ordered({name for name, _ in found}, DATASETS)
    return {
        name: {m: found[name, m] for m in _ordered({m for d, m in found if d == name}, LINES)}
        for name in names
    }


def _ordered(found: Iterable[str], order: Sequence[str]) -> list[str]:
    rank = {name: k for k, name in enumerate(order)}
    return sorted(found, key=lambda name: (rank.get(name, len(order)), name))


def summarize(rows: Rows) -> Summary:
    """Mean and standard deviation, in percent, for every data set and method.

    Examples
    --------
    >>> row = {"dataset": "A", "method": "wwl", "accuracy": 0.5, "seed": 0}
    >>> rows = [{**row, "repetition": r, "fold": f} for r in (0, 1) for f in range(10)]
    >>> summarize(rows)["A"]["wwl"]
    {'mean': 50.0, 'std': 0.0, 'n_folds': 20}
    """
    return {
        name: {method: _summary(folds) for method, folds in methods.items()}
        for name, methods in folds_of(rows).items()
    }


def _summary(folds: Folds) -> dict[str, Any]:
    """Over complete repetitions; before the first is complete, over the folds there are."""
    by_repetition: dict[int, list[float]] = defaultdict(list)
    for (repetition, _), value in folds.items():
        by_repetition[repetition].append(100 * value)
    complete = [values for values in by_repetition.values() if len(values) == N_OUTER]
    if not complete:
        values = [value for part in by_repetition.values() for value in part]
        return {"mean": round(float(np.mean(values)), 4), "std": None, "n_folds": len(values)}
    means = [float(np.mean(values)) for values in complete]
    std = round(float(np.std(means, ddof=1)), 4) if len(means) > 1 else None
    return {"mean": round(float(np.mean(means)), 4), "std": std, "n_folds": N_OUTER * len(means)}


def all_comparisons(rows: Rows) -> dict[str, dict[str, dict[str, Comparison]]]:
    """``[dataset][learned method][other method]``, wherever both have folds in common."""
    return {
        name: {
            ours: {
                theirs: compare(methods[ours], methods[theirs], N_OUTER)
                for theirs in methods
                if theirs != ours and methods[ours].keys() & methods[theirs].keys()
            }
            for ours in TESTED
            if ours in methods
        }
        for name, methods in folds_of(rows).items()
    }


def _tests_data(tests: dict[str, dict[str, dict[str, Comparison]]]) -> dict[str, Any]:
    return {
        name: {
            ours: {theirs: test._asdict() for theirs, test in row.items()}
            for ours, row in table.items()
        }
        for name, table in tests.items()
    }


# --- words ------------------------------------------------------------------------------------


def _protocol_text() -> str:
    return (
        f"Accuracy in percent: mean ± standard deviation over {N_REPETITIONS} repetitions of "
        f"stratified {N_OUTER}-fold cross-validation. In brackets: {PAPER}. Depth, kernel scale, "
        "`C`, radius and normalisation are chosen by cross-validation on the training part of "
        "each fold alone, and weights are learned on it alone; a learned method always uses "
        "learned weights (radius above 0), while the line that chooses inside may also fall back "
        "on uniform ones. *WL-OA* is the plain kernel, as in the paper; the next line may take its "
        "Tanimoto form instead, and nearly always does. The two presets use the depth, scale and "
        "`C` that WWL chose; the paper's step and number of steps leave the weights so near to 1 "
        "that the line equals WWL's. The line of the paper's protocol has the paper's own grid as "
        "well (see below). "
        "PTC_MR is the TU data set; PTC_DGCNN is the encoding that the paper's Table 1 describes, "
        "so the paper's figures stand beside both. The best of each column, among the methods with "
        "at least a fifth of the folds that others have, is bold. The Gaussian processes choose "
        "nothing by validation: they run at their default settings on the same folds. The rows, "
        "one per fold, are in `table2.jsonl` and `evidence.jsonl`."
    )


def _accuracy_table(summary: Summary) -> str:
    best = {
        name: max(cell["mean"] for cell in _furthest(methods).values())
        for name, methods in summary.items()
    }
    rows = [
        [title_of(m), *(_cell(summary[name], m, name, best[name]) for name in summary)]
        for m in LINES
        if any(m in methods for methods in summary.values())
    ]
    return markdown_table(["method", *summary], rows)


def _furthest(methods: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Methods with enough folds: a figure from a few of them must not pass for the best."""
    most = max((cell["n_folds"] for cell in methods.values()), default=0)
    return {m: cell for m, cell in methods.items() if cell["n_folds"] >= _ENOUGH * most}


def _cell(methods: dict[str, dict[str, Any]], method: str, name: str, best: float) -> str:
    published = published_accuracy(method, name)
    beside = "" if published is None else f" ({plus_minus(*published)})"
    if method not in methods:
        return f"not run{beside}"
    cell = methods[method]
    text = plus_minus(cell["mean"], cell["std"])
    is_best = f"{cell['mean']:.2f}" == f"{best:.2f}" and method in _furthest(methods)
    text = f"**{text}**" if is_best else text
    star = "" if cell["n_folds"] == N_REPETITIONS * N_OUTER else f" [{cell['n_folds']} folds]"
    return (text + star + beside).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _unfinished_text(summary: Summary) -> str:
    whole = N_REPETITIONS * N_OUTER
    cells = [cell for methods in summary.values() for cell in methods.values()]
    if all(cell["n_folds"] == whole for cell in cells):
        return f"Every figure comes from {whole} folds."
    return (
        f"Figures come from {whole} folds, save where another number stands beside them in square "
        "brackets: those have fewer repetitions, and only whole ones count as soon as there is one."
    )


def _against_paper(summary: Summary) -> str:
    """Our learned methods beside the paper's best figure of any method."""
    rows = []
    for name in summary:
        if published_name(name) not in PAPER_BEST:
            continue
        best = PAPER_BEST[published_name(name)]
        learned = {m: c for m, c in summary[name].items() if m in LEARNED}
        learned = {m: c["mean"] for m, c in _furthest(learned).items()}
        if learned:
            top = max(learned, key=lambda m: learned[m])
            wwl = learned.get("learned_wwl")
            rows.append(
                [name, f"{best:.2f}", "-" if wwl is None else f"{wwl:.2f} ({wwl - best:+.2f})",
                 f"{learned[top]:.2f} ({learned[top] - best:+.2f})", title_of(top)]
            )  # fmt: skip
    header = ["data set", "paper's best, any method", "our learned WWL", "our best learned", "is"]
    note = (
        "The paper calls its set PTC-MR; its figure stands beside both encodings. Our best learned "
        "method is picked by the very figure that is shown, so it is a little flattered; so is the "
        "paper's best."
    )
    return f"{markdown_table(header, rows)}\n\n{note}" if rows else ""


def _time_text(rows: Rows) -> str:
    """How long the paper's own experiment takes: learned WWL and the search that it builds on."""
    sets = [name for name in DATASETS if name in PAPER_BEST]
    seconds = sum(
        row.get("seconds", 0.0) for row in rows
        if row["method"] in ("wwl", "learned_wwl") and row["dataset"] in sets
    )  # fmt: skip
    return (
        f"Learned WWL, with the search over uniform weights that it builds on, took "
        f"{seconds / 3600:.1f} hours in one process over all folds of {', '.join(sets)} on file. "
        "The rows were made on two machines, some while other work was running."
    )


def uniform_twins() -> dict[str, str]:
    """Methods that learn, with the same method at uniform weights."""
    return {m: WL_METHODS[m].uniform for m in LEARNED} | {"evidence_branches": "evidence_uniform"}


def _twin_parts(tests: dict[str, dict[str, dict[str, Comparison]]]) -> list[str]:
    """Every method that learns against itself with uniform weights, Holm's correction over all."""
    twins = uniform_twins()
    found = [
        (name, ours, test)
        for name, table in tests.items()
        for ours, row in table.items()
        if (test := row.get(twins.get(ours, ""))) is not None and test.p_corrected is not None
    ]
    if not found:
        return []
    adjusted = holm([test.p_corrected for _, _, test in found])
    lines = [
        [name, title_of(ours), f"{100 * test.difference:+.2f}", p_text(test.p_corrected),
         p_text(p), test.n_folds]
        for (name, ours, test), p in zip(found, adjusted, strict=True)
    ]  # fmt: skip
    header = ["data set", "method", "ahead of its uniform twin by", "p", "p (Holm)", "folds"]
    text = (
        "Each method that learns weights against the same method with uniform ones, on the same "
        "folds: the corrected one-sided test, and the same after Holm's correction for the "
        f"{len(found)} lines of this table."
    )
    return [text, markdown_table(header, lines)]


def _tests_text(tests: dict[str, dict[str, dict[str, Comparison]]]) -> str:
    n_tests = sum(len(row) for table in tests.values() for row in table.values())
    return (
        "Each cell: points by which the learned method of the column is ahead of the method of "
        'the row (negative: behind), then two one-sided p-values for "ahead". The first is the '
        "paper's paired t-test over the means of repetitions, which takes repetitions on the same "
        "graphs for independent and so finds significance too easily. The second is the corrected "
        "resampled t-test of Nadeau and Bengio over folds, which allows for overlapping training "
        f"sets. There are {n_tests} tests on this page and no correction for their number: one in "
        "twenty falls below 0.05 where nothing differs."
    )


def _test_tables(tests: dict[str, dict[str, dict[str, Comparison]]]) -> list[str]:
    parts = []
    for name, table in tests.items():
        others = _ordered({theirs for row in table.values() for theirs in row}, LINES)
        rows = [
            [title_of(theirs), *(_test_cell(table[ours].get(theirs)) for ours in table)]
            for theirs in others
        ]
        parts += [f"### {name}", markdown_table(["against", *map(title_of, table)], rows)]
    return parts


def _test_cell(test: Comparison | None) -> str:
    if test is None:
        return ""
    values = [p_text(p) if p is not None else "-" for p in (test.p_repetitions, test.p_corrected)]
    return f"{100 * test.difference:+.2f}; {', '.join(values)}"


def _choice_tables(rows: Rows) -> list[str]:
    """How often each radius, depth and form was chosen by the Weisfeiler-Lehman methods."""
    chosen: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["method"] in WL_METHODS and not WL_METHODS[row["method"]].preset:
            chosen[row["dataset"], row["method"]].append(row["choice"])
    fields = ("weight_radius", "depth", "kernel", "gamma", "C")
    parts = []
    for name in _ordered({name for name, _ in chosen}, DATASETS):
        methods = _ordered({m for d, m in chosen if d == name}, TABLE2_METHODS)
        lines = [
            [title_of(m), *(counts_text(c[field] for c in chosen[name, m]) for field in fields)]
            for m in methods
        ]
        parts += [f"### {name}: folds per choice", markdown_table(["method", *fields], lines)]
    return parts
