"""What a GPU is good for: every step of the evidence on all of HIV, whole fits, exact folds.

TREELENS_DATA=... python -m reproduction device --device cuda --out docs/results
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions
from reproduction.rows import RowFile, versions
from treelens.estimators.evidence import class_columns
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import ScaffoldKFold
from treelens.gp.evidence import EvidenceProblem, PatternHierarchy
from treelens.gp.evidence_device import DeviceEvidence
from treelens.gp.search import starting_parameters
from treelens.patterns.forest import PatternForest, usual_trees
from treelens.patterns.pairs import PairFeatures

STEP_SETS = ("NCI1", "HIV")
FIT_SET = "NCI1"
FOLD_SET = "HIV"
N_FOLDS = 5
_REPEATS = 3
# More graphs than any set here has: the posterior is exact.
_ALL = 1_000_000


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    device = "cuda" if asked.device == "cpu" else asked.device
    rows = RowFile(asked.out / "device.jsonl", ("set", "what", "fold"))
    for name in asked.sets or STEP_SETS:
        graphs, y = tl.load_dataset(name)
        if name in STEP_SETS:
            add_steps(rows, name, graphs, y, device, asked.n_jobs)
        if name == FIT_SET:
            add_fits(rows, name, graphs, y, device)
        if name == FOLD_SET:
            folds = ScaffoldKFold(N_FOLDS, random_state=0).split(graphs, y)
            add_folds(rows, name, graphs, y, list(folds), device, asked.n_jobs)


def add_steps(
    rows: RowFile, name: str, graphs: Any, y: np.ndarray, device: str, n_jobs: int
) -> None:
    """One evaluation of evidence and gradient at uniform weights, step by step."""
    key = {"set": name, "what": "steps", "fold": 0}
    if key in rows:
        return
    problem = evidence_problem(graphs, y, n_jobs)
    found = timed_steps(DeviceEvidence(problem, device))
    support = np.diff(problem.features.lists.offsets).astype(float)
    size = {
        "n": problem.n_graphs, "pairs_in_lists": float((support**2).sum()),
        "shared_patterns": int((support > 1).sum()),
    }  # fmt: skip
    rows.append(key | size | found | {"gpu": device_name()} | versions())
    print(name, {step: round(seconds, 4) for step, seconds in found.items()}, flush=True)


def evidence_problem(graphs: Any, y: np.ndarray, n_jobs: int) -> EvidenceProblem:
    """All graphs, as :class:`treelens.GraphClassifier` sees them by default."""
    forest, colors = PatternForest.fit(graphs, 4, usual_trees(graphs), n_jobs)
    classes, codes = np.unique(y, return_inverse=True)
    columns = class_columns(codes, len(classes))
    return EvidenceProblem(
        PairFeatures.of_counts(forest.count(colors, n_jobs)),
        PatternHierarchy(forest.level_offsets, forest.parents),
        columns - columns.mean(axis=0), np.ones(len(graphs)), 30.0, n_jobs,
    )  # fmt: skip


def timed_steps(evidence: DeviceEvidence) -> dict[str, float]:
    """Seconds of each step of an evaluation, the best of a few."""
    problem, covariance = evidence.problem, evidence.covariance
    parameters = starting_parameters(problem)
    weights, scales = problem.weights(parameters), parameters.kernel_scales()
    noise = parameters.noise * problem.noise_factors
    best: dict[str, float] = {}

    def clock(step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        synchronize()
        best[step] = min(best.get(step, np.inf), time.perf_counter() - start)
        return result

    evidence(parameters, "branches")  # compile
    for _ in range(_REPEATS):
        clock("kernel", lambda: covariance.make(weights, scales, noise))
        clock("factor", covariance.factor)
        clock("solve", lambda: covariance.solve(problem.targets))
        clock("inverse", covariance.invert)
        clock("gather", lambda: covariance.gather(covariance.matrix))
        clock("evaluation", lambda: evidence(parameters, "branches"))
    return best


def add_fits(rows: RowFile, name: str, graphs: Any, y: np.ndarray, device: str) -> None:
    """The default classifier on a whole set, on two threads of the CPU and on the GPU."""
    for where in (device, "cpu"):
        key = {"set": name, "what": f"fit on {where.partition(':')[0]}", "fold": 0}
        if key in rows:
            continue
        make = {"device": where, "n_jobs": 2, "random_state": 0, "learning_size": _ALL}
        tl.GraphClassifier(depth=1, **make).fit(graphs[::40], y[::40])  # compile
        start = time.perf_counter()
        model = tl.GraphClassifier(**make).fit(graphs, y)
        seconds = time.perf_counter() - start
        found = {"seconds": seconds, "evidence": model.evidence_, "loo": model.loo_.accuracy}
        rows.append(key | found | {"n": len(graphs), "gpu": device_name()} | versions())
        print(key, found, flush=True)


def add_folds(
    rows: RowFile, name: str, graphs: Any, y: np.ndarray,
    folds: Sequence[tuple[np.ndarray, np.ndarray]], device: str, n_jobs: int,
) -> None:  # fmt: skip
    """The exact process on folds of whole scaffolds."""
    for fold, (train, test) in enumerate(folds):
        for what, weights in (("exact, learned", "branches"), ("exact, uniform", "uniform")):
            key = {"set": name, "what": what, "fold": fold}
            if key in rows:
                continue
            start = time.perf_counter()
            model = tl.GraphClassifier(
                weights=weights, device=device, exact_size=_ALL, n_jobs=n_jobs, random_state=0
            ).fit(graphs[train], y[train])
            fitted = time.perf_counter()
            said = model.model_.decide(graphs[test], n_jobs=n_jobs, device=device)
            done = time.perf_counter()
            chances = said.probabilities
            scores = class_scores(y[test], chances.argmax(axis=1), chances, positive=1)
            found = {k: scores[k] for k in ("roc_auc", "pr_auc")} | {
                "n": len(train), "seconds": fitted - start, "predict_seconds": done - fitted,
            }  # fmt: skip
            rows.append(key | found | {"gpu": device_name()} | versions())
            print(key, found, flush=True)


def synchronize() -> None:
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def device_name() -> str:
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
