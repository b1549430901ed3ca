"""Table 2: ten times repeated nested 10-fold cross-validation of every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reproduction.data import StudyOptions
from reproduction.methods import (
    FIXED_METHODS,
    OTHER_METHODS,
    PAPER_METHODS,
    TABLE2_METHODS,
    WL_METHODS,
)
from reproduction.protocol import (
    N_OUTER,
    DataSet,
    fixed_kernels,
    run_fixed_fold,
    run_wl_fold,
)
from reproduction.rows import RowFile, Work, run_all, versions
from treelens.graphs.datasets import load_dataset

DATASETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "PROTEINS", "NCI1", "ENZYMES")
KEY = ("dataset", "method", "repetition", "fold", "seed")
QUICK = {"datasets": ("MUTAG",), "repetitions": 2}


def run(options: StudyOptions) -> None:
    """Make every row that the folder lacks; with ``quick`` two repetitions on MUTAG."""
    known = (*TABLE2_METHODS, *OTHER_METHODS)
    methods = options.methods or TABLE2_METHODS
    unknown = [method for method in methods if method not in known]
    if unknown:
        raise ValueError(f"There is no method {unknown[0]!r}: choose among {', '.join(known)}.")
    datasets = options.sets or (QUICK["datasets"] if options.quick else DATASETS)
    repetitions = options.repeats or (QUICK["repetitions"] if options.quick else 10)
    with options.rows("table2", KEY) as file:
        for name in datasets:
            works = list(_works(name, methods, repetitions, file))
            for rows in run_all(works, options.n_jobs, f"Table 2, {name}"):
                for row in rows:
                    file.append({**row, "versions": versions()})
        for method in (m for m in methods if m in WL_METHODS and WL_METHODS[m].members):
            for row in list(_chosen_rows(method, file.rows)):
                if row not in file:
                    file.append(row)


def _chosen_rows(method: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows of a method that takes, in every fold, the member with the best inner score."""
    members = WL_METHODS[method].members
    folds: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["method"] in members:
            key = tuple(row[name] for name in KEY if name != "method")
            folds.setdefault(key, {})[row["method"]] = row
    for found in folds.values():
        if len(found) == len(members):
            # On a tie the member that is named first: simpler ones are.
            best = max((found[m] for m in members), key=lambda row: row["inner_score"])
            yield {**best, "method": method, "chosen_method": best["method"]}


def _works(
    name: str, methods: Sequence[str], repetitions: int, file: RowFile, seed: int = 0
) -> Iterator[Work]:
    """Yield the folds that still lack rows."""

    def key(method: str, repetition: int, fold: int) -> dict[str, Any]:
        return dict(zip(KEY, (name, method, repetition, fold, seed), strict=True))

    own = [m for m in methods if m not in WL_METHODS or not WL_METHODS[m].members]
    missing = [
        (repetition, fold, [m for m in own if key(m, repetition, fold) not in file])
        for repetition in range(repetitions)
        for fold in range(N_OUTER)
    ]
    if not any(wanted for _, _, wanted in missing):
        return
    data = load_protocol_data(name)
    kernels = {
        method: fixed_kernels(data, method)
        for method in FIXED_METHODS
        if any(method in wanted for _, _, wanted in missing)
    }
    for repetition, fold, wanted in missing:
        weighted = [m for m in wanted if m in WL_METHODS]
        if weighted:
            yield run_wl_fold, (data, repetition, fold, weighted, seed)
        for method in (m for m in wanted if m in PAPER_METHODS):
            yield run_wl_fold, (data, repetition, fold, [method], seed)
        for method in (m for m in wanted if m in FIXED_METHODS):
            yield run_fixed_fold, (data, kernels[method], method, repetition, fold, seed)


def load_protocol_data(name: str) -> DataSet:
    """Load a data set by name, ready for the protocol."""
    graphs, y = load_dataset(name)
    return DataSet.from_graphs(name, graphs, np.asarray(y))
