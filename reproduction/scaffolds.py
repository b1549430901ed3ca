"""Numbers of molecules on folds of whole scaffolds.

TREELENS_DATA=... python -m reproduction scaffolds --out docs/results
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduction.data import StudyOptions, load_molecules
from reproduction.numbers import METHODS, SETS, add_row
from reproduction.pages import command_line, markdown_table, write_json, write_page
from reproduction.rows import RowFile
from reproduction.summaries import regression_summary
from treelens.evaluation.splits import ScaffoldKFold

N_FOLDS = 5


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "regression_scaffold.jsonl", ("set", "method", "split"))
    for name in asked.sets or SETS:
        data = load_molecules(name)
        folds = ScaffoldKFold(N_FOLDS, random_state=0).split(data.graphs)
        for split, (train, test) in enumerate(folds):
            for method in asked.methods or METHODS:
                row = {"set": name, "method": method, "split": split}
                add_row(rows, row, data, train, test, asked)


def write_scaffolds(out: Path, rows: list[dict[str, Any]]) -> None:
    """The page, and its numbers: of splits that every method of the set has."""
    whole = [row for row in rows if _is_whole(row, rows)]
    summary = regression_summary(whole)
    write_json(out / "regression_scaffold.json", summary)
    lines = [
        [name, method, f"{found['rmse']:.3f} ± {found['std']:.3f}",
         f"{100 * found['coverage']:.0f} %" if "coverage" in found else "", found["n_splits"]]
        for name, methods in summary.items()
        for method, found in methods.items()
    ]  # fmt: skip
    parts = [
        f"The sets of the [page on random splits](regression.md) in {N_FOLDS} folds of whole "
        "Bemis-Murcko scaffolds (`treelens.evaluation.splits.ScaffoldKFold`, `random_state=0`): no "
        "ring system of a test molecule was trained on, and all molecules without a ring are one "
        "scaffold, half of FreeSolv among them. Settings as there. ± is the standard deviation "
        "over folds, which differ much in size; coverage is that of 90 % intervals. Folds that "
        "some method lacks are left out.",
        markdown_table(["set", "method", "RMSE", "coverage", "folds"], lines),
    ]
    title = "Numbers of molecules, whole scaffolds held out"
    write_page(out / "regression_scaffold.md", title, command_line("scaffolds"), parts)


def _is_whole(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    methods = {r["method"] for r in rows if r["set"] == row["set"]}
    here = {r["method"] for r in rows if (r["set"], r["split"]) == (row["set"], row["split"])}
    return here == methods
