"""Table 2: ten times repeated nested 10-fold cross-validation of every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.methods import (
    FIXED_METHODS,
    PAPER_METHODS,
    TABLE2_METHODS,
    WL_METHODS,
)
from reproduction.progress import Work, run_all
from reproduction.protocol import (
    N_OUTER,
    DataSet,
    fixed_kernels,
    run_fixed_fold,
    run_paper_fold,
    run_wl_fold,
)
from reproduction.rows import RowFile, versions
from treelens.graphs.datasets import load_dataset

DATASETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "PROTEINS", "NCI1", "ENZYMES")
KEY = ("dataset", "method", "repetition", "fold", "seed")


def run_table2(
    out: str | Path,
    *,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] = TABLE2_METHODS,
    repetitions: int = 10,
    n_jobs: int = 1,
    seed: int = 0,
    folder: str | None = None,
) -> Path:
    """Make every row of Table 2 that the folder does not hold yet.

    Parameters
    ----------
    out : path
        Folder for ``table2.jsonl``; rows already there are kept and not made again.
    datasets, methods : sequences of str
    repetitions : int
    n_jobs : int
        Processes; folds are dealt out to them.
    seed : int
        The same seed gives the same rows.
    folder : str, optional
        Where the data sets lie; by default as in :func:`treelens.load_dataset`.
    """
    path = Path(out) / "table2.jsonl"
    file = RowFile(path, KEY)
    facts = versions()
    for name in datasets:
        works = list(_works(name, methods, repetitions, seed, file, folder))
        for rows in run_all(works, n_jobs, f"Table 2, {name}"):
            for row in rows:
                file.append({**row, "versions": facts})
    for method in (m for m in methods if m in WL_METHODS and WL_METHODS[m].members):
        for row in list(_chosen_rows(method, file.rows)):
            if row not in file:
                file.append(row)
    return path


def _chosen_rows(method: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of a method that takes, in every fold, the member with the best score inside it."""
    members = WL_METHODS[method].members
    folds: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["method"] in members:
            key = tuple(row[name] for name in KEY if name != "method")
            folds.setdefault(key, {})[row["method"]] = row
    for found in folds.values():
        if len(found) == len(members):
            # On a tie the member that is named first, as the simpler ones are.
            best = max((found[m] for m in members), key=lambda row: row["inner_score"])
            yield {**best, "method": method, "chosen_method": best["method"]}


def _works(
    name: str,
    methods: Sequence[str],
    repetitions: int,
    seed: int,
    file: RowFile,
    folder: str | None,
) -> Iterator[Work]:
    """The folds that still miss rows."""
    own = [m for m in methods if m not in WL_METHODS or not WL_METHODS[m].members]
    missing = [
        (repetition, fold, [m for m in own if _key(name, m, repetition, fold, seed) not in file])
        for repetition in range(repetitions)
        for fold in range(N_OUTER)
    ]
    if not any(wanted for _, _, wanted in missing):
        return
    data = load_protocol_data(name, folder)
    kernels = {
        method: fixed_kernels(data, method)
        for method in FIXED_METHODS
        if any(method in wanted for _, _, wanted in missing)
    }
    for repetition, fold, wanted in missing:
        weighted = [m for m in wanted if m in WL_METHODS]
        if weighted:
            yield Work(run_wl_fold, (data, repetition, fold, weighted, seed))
        for method in (m for m in wanted if m in PAPER_METHODS):
            yield Work(run_paper_fold, (data, repetition, fold, [method], seed))
        for method in (m for m in wanted if m in FIXED_METHODS):
            arguments = (data, kernels[method], method, repetition, fold, seed)
            yield Work(_one_row, arguments)


def load_protocol_data(name: str, folder: str | None = None) -> DataSet:
    """A data set by name, ready for the protocol."""
    graphs, y = load_dataset(name, folder=folder)
    return DataSet.from_graphs(name, graphs, np.asarray(y))


def _one_row(*arguments: Any) -> list[dict[str, Any]]:
    return [run_fixed_fold(*arguments)]


def _key(name: str, method: str, repetition: int, fold: int, seed: int) -> dict[str, Any]:
    return dict(zip(KEY, (name, method, repetition, fold, seed), strict=True))
