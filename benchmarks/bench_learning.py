"""Learning weights, measured in its own steps and in Gram matrices: ratios, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

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
from treelens.kernels.gram import pair_sums
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import AllPairsObjective, BallConstraint, Margins
from treelens.pairwise.solvers import StochasticGradient, stochastic_gradient
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.targets import Targets

DEPTH = 3
STEPS = 1_000_000
NAIVE_STEPS = 5_000
MARGINS = Margins(alpha1=0.9, alpha2=0.7, sigma=0.05)
STEP_SIZE = 0.01
RADIUS = 1.0


class Problem(NamedTuple):
    """Training graphs of NCI1, ready for the learner."""

    features: PairFeatures
    codes: np.ndarray
    room: np.ndarray  # where the Gram matrix goes: warm, so that it is at its fastest

    def objective(self, n_jobs: int) -> AllPairsObjective:
        return AllPairsObjective(self.features, self.codes, MARGINS, False, n_jobs)

    def ball(self) -> BallConstraint:
        offsets = self.features.level_offsets
        return BallConstraint(offsets, np.full(len(offsets) - 1, RADIUS))

    def gram(self) -> np.ndarray:
        return pair_sums(self.features, n_jobs=THREADS, out=self.room)


def rows() -> Iterator[Row]:
    data = load("NCI1")
    return measured(CLAIMS, None if data is None else problem_of(*data))


def problem_of(graphs: tl.GraphCollection, y: np.ndarray) -> Problem:
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, DEPTH))
    features = PairFeatures.from_histograms(histograms.select_depths(1, DEPTH))
    room = np.zeros((len(graphs), len(graphs)))
    return Problem(features, Targets(y).classes()[1].astype(np.int32), room)


# --- one measurement a claim ------------------------------------------------------------------


def steps_per_second(problem: Problem) -> tuple[str, bool]:
    rate = _compiled_rate(problem)
    return f"{rate:,.0f} steps/s", rate >= 1_000_000


def steps_against_numpy(problem: Problem) -> tuple[str, bool]:
    """Both on one core; the rival's vectors are short enough to suffer from more threads."""
    with threadpool_limits(limits=1):
        ours, theirs = _compiled_rate(problem), _naive_rate(problem)
    ratio = ours / theirs
    return f"{ratio:,.0f} × ({ours:,.0f} against {theirs:,.0f} steps/s)", ratio >= 300


def gradient_in_grams(problem: Problem) -> tuple[str, bool]:
    objective = problem.objective(THREADS)
    weights = np.ones(problem.features.n_patterns)
    gram, gradient = best_times(problem.gram, lambda: objective.value_and_gradient(weights))
    ratio = gradient / gram
    return f"{ratio:.2f} × ({gradient * 1e3:.0f} ms against {gram * 1e3:.0f} ms)", ratio <= 3


def solution_in_grams(problem: Problem) -> tuple[str, bool]:
    """Everything that ``PairwiseWeights.fit`` does, choosing the margins included."""

    def learn(radius: float) -> float:
        learned = learn_weights(problem.features, problem.codes, radius=radius, n_jobs=THREADS)
        return float(learned.gaps[-1])

    radii = (0.1, 1.0, 5.0)
    gaps = [learn(radius) for radius in radii]
    gram, *times = best_times(
        problem.gram, *[lambda r=radius: learn(r) for radius in radii], repeats=3
    )
    shown = ", ".join(
        f"radius {radius:g}: {seconds / gram:.0f} ×"
        for radius, seconds in zip(radii, times, strict=True)
    )
    met = max(gaps) <= 1e-4 and max(times) / gram <= 60
    return f"{shown} (gaps at most {max(gaps):.1e}, Gram matrix {gram * 1e3:.0f} ms)", met


_MEMORY = """
import json
import treelens as tl
from treelens.pairwise.learn import learn_weights
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.histograms import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

graphs, y = tl.load_dataset("NCI1")
histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 3))
features = PairFeatures.from_histograms(histograms.select_depths(1, 3))
for options in ({}, {"solver": "stochastic", "tol": 1.0}):
    learn_weights(features, y, n_jobs=2, **options)
with open("/proc/self/status") as lines:
    print(json.dumps(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))))
"""


def memory(problem: Problem) -> tuple[str, bool]:
    """The whole process, interpreter and libraries included."""
    gigabytes = in_fresh_process(_MEMORY) * 1024 / 1e9
    return f"{gigabytes:.2f} GB", gigabytes <= 1.5


# --- the step, compiled and plain -------------------------------------------------------------


def _compiled_rate(problem: Problem) -> float:
    objective, ball = problem.objective(1), problem.ball()

    def run(n_steps: int) -> None:
        settings = StochasticGradient(n_steps, halvings=0, average=False, n_checks=0, tol=0.0)
        stochastic_gradient(objective, ball, settings, STEP_SIZE, 0)

    return STEPS / best_times(lambda: run(STEPS), repeats=5)[0]


def _naive_rate(problem: Problem) -> float:
    """Histograms as dicts, weights as an array, the same draws, steps and projections."""
    features, codes = problem.features, problem.codes
    histograms = [
        dict(
            zip(
                features.rows.indices[a:b].tolist(), features.rows.values[a:b].tolist(), strict=True
            )
        )
        for a, b in zip(features.rows.offsets[:-1], features.rows.offsets[1:], strict=True)
    ]
    levels = [
        slice(a, b)
        for a, b in zip(features.level_offsets[:-1], features.level_offsets[1:], strict=True)
    ]
    draws = np.random.default_rng(0).integers(len(codes), size=(NAIVE_STEPS, 2)).tolist()

    def run() -> None:
        weights = np.ones(features.n_patterns)
        for i, j in draws:
            z = np.zeros(features.n_patterns)
            for pattern in histograms[i].keys() & histograms[j].keys():
                z[pattern] = min(histograms[i][pattern], histograms[j][pattern])
            distance = MARGINS.b - weights @ z
            if codes[i] == codes[j]:
                slope = -np.clip((distance - MARGINS.alpha2) / MARGINS.sigma, 0, 1)
            else:
                slope = np.clip((MARGINS.alpha1 - distance) / MARGINS.sigma, 0, 1)
            weights = weights - STEP_SIZE * slope * z
            for level in levels:
                shift = weights[level] - 1
                norm = np.linalg.norm(shift)
                if norm > RADIUS:
                    weights[level] = 1 + shift * (RADIUS / norm)

    return NAIVE_STEPS / once(run)


ON = "NCI1, depths 1 to 3"
CLAIMS = [
    Claim(
        f"Stochastic steps with exact projection, {ON}, one core",
        ">= 1,000,000 a second",
        steps_per_second,
    ),
    Claim("The same, against dicts and NumPy", ">= 300 ×", steps_against_numpy),
    Claim(
        f"One full-batch value and gradient, {ON}, against its Gram matrix",
        "<= 3 × its time",
        gradient_in_grams,
    ),
    Claim(
        f"Weights to a relative gap of 1e-4, {ON}, against its Gram matrix",
        "<= 60 × its time",
        solution_in_grams,
    ),
    Claim(f"Peak memory of learning, {ON}", "<= 1.5 GB", memory),
]
