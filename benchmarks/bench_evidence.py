"""What learning by evidence costs: one evaluation, one fit, and scikit-learn's own process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

import treelens as tl
from benchmarks.measure import (
    THREADS,
    Claim,
    Row,
    best_times,
    in_fresh_process,
    load,
    measured,
    once,
)
from treelens.gp.evidence import Evidence, EvidenceProblem
from treelens.gp.levels import PatternHierarchy
from treelens.gp.posterior import cholesky_in_place, inverse_in_place
from treelens.gp.terms import CountedTerm
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures

Data = tuple[tl.GraphCollection, np.ndarray]
N_EVALUATION = 2500  # graphs of NCI1 in one evaluation
N_RIVAL = 300  # and in scikit-learn's process, whose sums of minima are slow in NumPy
_FIT = """
import json, resource, sys, time
import numpy as np
import treelens as tl
graphs, y = tl.load_dataset("NCI1")
tl.GraphClassifier(depth=1, n_jobs=2).fit(graphs[::70], y[::70])  # compile
start = time.perf_counter()
model = tl.GraphClassifier(n_jobs=2, random_state=0).fit(graphs, y)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
n = int(model.history_.groupby("stage", sort=False)["n_evaluations"].max().sum())
print(json.dumps([seconds, peak, n]))
"""


def rows() -> Iterator[Row]:
    return measured(CLAIMS, load("NCI1"))


def _problem(graphs: tl.GraphCollection, y: np.ndarray, n: int) -> EvidenceProblem:
    some = np.random.default_rng(0).permutation(len(y))[:n]
    forest, colors = PatternForest.fit(graphs[some], 4, ("labels",), THREADS)
    signs = np.where(y[some] == y.max(), 1.0, -1.0)
    counted = CountedTerm(PairFeatures.of_counts(forest.count(colors)), PatternHierarchy.of(forest))
    return EvidenceProblem((counted,), (signs - signs.mean())[:, None], np.ones(n), THREADS)


def _one_evaluation(data: Data) -> tuple[str, bool]:
    problem = _problem(*data, N_EVALUATION)
    parameters, evaluate = problem.start, Evidence(problem)
    matrix = np.eye(N_EVALUATION) + 0.5

    def factor_and_invert() -> None:
        inverse_in_place(cholesky_in_place(matrix.copy(), THREADS), THREADS)

    whole, part = best_times(lambda: evaluate(parameters, "branches"), factor_and_invert, repeats=3)
    return f"{whole / part:.2f} x ({whole:.2f} s against {part:.2f} s)", whole <= 2.5 * part


class MixtureInNumPy(Kernel):
    """The mixture kernel with its four scales, as one would write it for scikit-learn."""

    def __init__(self, sums: np.ndarray, scales: tuple[float, ...] = (2.0, 0.01, 1.0, 0.1)):
        self.sums = sums
        self.scales = scales

    @property
    def hyperparameter_scales(self) -> Hyperparameter:
        return Hyperparameter("scales", "numeric", (1e-4, 1e3), 4)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        gamma, rho, amplitude, noise = self.scales
        rows = X[:, 0].astype(int)
        sums = self.sums[np.ix_(rows, rows)]
        own = np.diagonal(sums)
        both = own[:, None] + own[None, :]
        tanimoto, distance = sums / (both - sums), both - 2 * sums
        near, far = np.exp(-gamma * (1 - tanimoto)), np.exp(-rho * distance)
        signal = amplitude * 0.5 * (near + far)
        kernel = signal + noise * np.eye(len(rows))
        if not eval_gradient:
            return kernel
        slopes = [
            -gamma * (1 - tanimoto) * 0.5 * amplitude * near,
            -rho * distance * 0.5 * amplitude * far,
            signal,
            noise * np.eye(len(rows)),
        ]
        return kernel, np.stack(slopes, axis=2)

    def diag(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.scales[2] + self.scales[3])

    def is_stationary(self) -> bool:
        return False


def _against_scikit_learn(data: Data) -> tuple[str, bool]:
    """Weights do not enter the rival: it has four parameters where ours has thousands."""
    n_evaluations = 5
    problem = _problem(*data, N_RIVAL)
    parameters, evaluate = problem.start, Evidence(problem)
    (term,) = problem.terms
    rows, counts = term.features.rows, np.zeros((N_RIVAL, term.n_patterns))
    graph = np.repeat(np.arange(N_RIVAL), np.diff(rows.offsets))
    counts[graph, rows.indices] = rows.values

    def ours() -> None:
        for _ in range(n_evaluations):
            evaluate(parameters, "branches")

    def theirs() -> None:
        for _ in range(n_evaluations):
            sums = np.array([np.minimum(row, counts).sum(axis=1) for row in counts])
            process = GaussianProcessRegressor(MixtureInNumPy(sums), alpha=1e-9, optimizer=None)
            process.fit(np.arange(N_RIVAL)[:, None], problem.targets[:, 0])
            process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)

    ours()  # compile
    mine, rival = once(ours), once(theirs)
    words = f"{mine / rival:.3f} of its time ({mine:.1f} s against {rival:.1f} s)"
    return words, mine <= 0.25 * rival


def _one_fit(data: Data) -> tuple[str, bool]:
    seconds, gigabytes, n_evaluations = in_fresh_process(_FIT)
    words = f"{seconds:.0f} s, {gigabytes:.2f} GB, {n_evaluations} evaluations"
    return words, seconds <= 120 and gigabytes <= 2


CLAIMS = [
    Claim(
        f"one evaluation of evidence and gradient, {N_EVALUATION} graphs of NCI1, against its "
        "Cholesky factor and inverse alone",
        "at most 2.5 x its time",
        _one_evaluation,
    ),
    Claim(
        "as many evaluations by scikit-learn's GaussianProcessRegressor of the same kernel in "
        f"NumPy, {N_RIVAL} graphs of NCI1",
        "at most a quarter of its time",
        _against_scikit_learn,
    ),
    Claim(
        "one fit of GraphClassifier on NCI1 (4,110 graphs), two threads",
        "at most 120 s, 2 GB",
        _one_fit,
    ),
]
