"""Could learning be set up better? Every formulation under the nested protocol of Table 2.

In every fold the settings are raced with uniform weights first, then the formulation's radii at the
leading settings, all on the training part; the test part is scored once. The uniform twin of a
formulation, same fold, form and vocabulary, is scored beside it. Folds are drawn with a seed of
their own: what leads here leads on other folds than Table 2's, though on the same graphs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.formulations import DEFAULT, FORMULATIONS, Formulation
from reproduction.formulations_page import write_formulations
from reproduction.learners import DepthScaledWeights, SmoothedWeights, StudyWeights, pattern_parents
from reproduction.methods import GRID, LEARNER
from reproduction.progress import Work, run_all
from reproduction.protocol import (
    N_OUTER,
    DataSet,
    inner_splits,
    kernel_search,
    learned_search,
    outer_split,
    uniform_search,
)
from reproduction.rows import RowFile, read_rows, versions
from treelens.graphs.datasets import load_dataset
from treelens.svm.search import Candidate, SearchResult, Split

KEY = ("dataset", "formulation", "repetition", "fold", "seed")
SEED = 100  # repetition r is split with seed 100 + r; Table 2 uses 0 to 9
DATASETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "ENZYMES", "PROTEINS")
# Repetitions and folds of each: as many as keep the whole below an hour on one core.
PLAN = {
    "MUTAG": (3, N_OUTER),
    "PTC_MR": (3, N_OUTER),
    "PTC_DGCNN": (2, N_OUTER),
    "ENZYMES": (2, N_OUTER),
    "PROTEINS": (1, N_OUTER),
    "NCI1": (1, 5),
}
_USUAL_PLAN = 1, N_OUTER
QUICK_DATASETS = ("MUTAG",)
QUICK_FORMULATIONS = (DEFAULT, "smoothed")
LEARNERS: dict[str, type] = {
    "pairwise": StudyWeights,
    "depth-scaled": DepthScaledWeights,
    "smoothed": SmoothedWeights,
}


def run_formulations(
    out: str | Path,
    quick: bool = False,
    *,
    datasets: Sequence[str] | None = None,
    formulations: Sequence[str] | None = None,
    repetitions: int | None = None,
    n_jobs: int = 1,
    seed: int = SEED,
    tables_only: bool = False,
) -> list[Path]:
    """Make the rows that the folder does not hold yet, then write the summary and the page.

    Parameters
    ----------
    out : path
        Folder for ``formulations.jsonl``, ``.json`` and ``.md``.
    quick : bool
        One repetition of a few formulations on MUTAG.
    datasets, formulations : sequences of str, optional
    repetitions : int, optional
        By default as in :data:`PLAN`; NCI1, if asked for, has its first five folds only.
    n_jobs : int
        Processes; folds are dealt out to them.
    seed : int
    tables_only : bool
        Make no rows.
    """
    path = Path(out) / "formulations.jsonl"
    if not tables_only:
        names = formulations or (QUICK_FORMULATIONS if quick else tuple(FORMULATIONS))
        _check_names(names)
        file, facts = RowFile(path, KEY), versions()
        for name in datasets or (QUICK_DATASETS if quick else DATASETS):
            folds = planned_folds(name, 1 if quick and repetitions is None else repetitions)
            works = list(_works(name, names, folds, seed, file))
            for rows in run_all(works, n_jobs, f"Formulations, {name}"):
                for row in rows:
                    file.append({**row, "versions": facts})
    rows = [row for row in read_rows(path) if row["seed"] == seed]
    return [path, *write_formulations(Path(out), rows)]


def _check_names(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in FORMULATIONS]
    if unknown:
        raise ValueError(
            f"There is no formulation {unknown[0]!r}: choose among {', '.join(FORMULATIONS)}."
        )


def planned_folds(name: str, repetitions: int | None = None) -> list[tuple[int, int]]:
    """Repetitions and folds of a data set, in the order in which they are run."""
    usual, n_folds = PLAN.get(name, _USUAL_PLAN)
    return [(r, fold) for r in range(repetitions or usual) for fold in range(n_folds)]


def _works(
    name: str,
    formulations: Sequence[str],
    folds: Sequence[tuple[int, int]],
    seed: int,
    file: RowFile,
) -> Iterator[Work]:
    """The folds that still miss rows, each with the formulations that it misses."""
    missing = []
    for fold in folds:
        keys = {f: dict(zip(KEY, (name, f, *fold, seed), strict=True)) for f in formulations}
        missing.append((fold, [f for f, key in keys.items() if key not in file]))
    if not any(wanted for _, wanted in missing):
        return
    vocabularies = load_vocabularies(name)
    for fold, wanted in missing:
        possible = [f for f in wanted if FORMULATIONS[f].edge_labels in vocabularies]
        if possible:
            yield Work(run_fold, (vocabularies, *fold, possible, seed))


def load_vocabularies(name: str) -> dict[bool, DataSet]:
    """A data set without edge labels, and with them if it has any."""
    graphs, y = load_dataset(name)
    kinds = [False] if graphs.edge_alphabet is None else [False, True]
    return {kind: DataSet.from_graphs(name, graphs, np.asarray(y), kind) for kind in kinds}


# --- one fold ---------------------------------------------------------------------------------


class _Twin(NamedTuple):
    """Uniform weights on one fold: the search that learning starts from, and its result."""

    search: SearchResult
    choice: Candidate
    accuracy: float
    seconds: float


def run_fold(
    vocabularies: dict[bool, DataSet],
    repetition: int,
    fold: int,
    formulations: Sequence[str],
    seed: int = SEED,
) -> list[dict[str, Any]]:
    """Rows of several formulations on one fold; they share the searches of their uniform twins."""
    codes = vocabularies[False].codes
    train, test = outer_split(codes, repetition, fold, seed)
    inner = inner_splits(codes, train, seed + 1000 * repetition + fold)
    twins: dict[tuple[str, bool], _Twin] = {}
    rows = []
    for name in formulations:
        spec = FORMULATIONS[name]
        data = vocabularies[spec.edge_labels]
        if spec.twin not in twins:
            twins[spec.twin] = _uniform_twin(data, inner, (train, test), spec.kernel, seed)
        facts = _learned_facts(data, inner, (train, test), spec, twins[spec.twin], seed)
        rows.append(
            {
                "dataset": data.name, "formulation": name, "repetition": repetition, "fold": fold,
                "seed": seed, "n_test": len(test), "grid": GRID, **facts,
            }
        )  # fmt: skip
    return rows


def _uniform_twin(data: DataSet, inner: list[Split], outer: Split, kernel: str, seed: int) -> _Twin:
    start = time.perf_counter()
    search = uniform_search(data, inner, (kernel,), seed)
    choice = search.winner()
    score = _final_score(data, outer, StudyWeights(), choice)
    return _Twin(search, choice, score, round(time.perf_counter() - start, 3))


def _learned_facts(
    data: DataSet, inner: list[Split], outer: Split, spec: Formulation, twin: _Twin, seed: int
) -> dict[str, Any]:
    """What one formulation chooses and reaches, beside its twin."""
    start = time.perf_counter()
    learner = make_learner(spec, data, seed)
    search = learned_search(data, inner, twin.search, learner, spec.radii)
    choice = search.winner()
    return {
        "accuracy": _final_score(data, outer, learner, choice),
        "uniform_accuracy": twin.accuracy,
        "choice": choice._asdict(), "uniform_choice": twin.choice._asdict(),
        "inner_score": search.mean(choice), "uniform_inner_score": twin.search.mean(twin.choice),
        "seconds": round(time.perf_counter() - start, 3), "uniform_seconds": twin.seconds,
    }  # fmt: skip


def _final_score(data: DataSet, outer: Split, learner: Any, choice: Candidate) -> float:
    """Learned on the training part to the learner's own tolerance, scored on the test part."""
    final = kernel_search(data, [outer], learner, final=True)
    return final.run([choice], race=False).scores[choice][0]


def make_learner(spec: Formulation, data: DataSet, seed: int) -> Any:
    """The learner of a formulation; the search sets its radius."""
    settings = {**LEARNER, "random_state": seed, **spec.settings}
    if spec.learner == "smoothed":
        settings["parents"] = pattern_parents(data.vocabulary)
    return LEARNERS[spec.learner](**settings)
