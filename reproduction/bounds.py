"""The bounds beside what they bound: twin runs with the same draws, one graph replaced.

From a data set n graphs are drawn to learn from, and one more to put in the place of one of them.
Both sets are learned from with the same draws of pairs; how far the weights end up apart is what
stability bounds. The loss over pairs of graphs that neither run saw, less the loss over the
training pairs, is the measured gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.data import StudyOptions
from reproduction.rows import RowFile, Work, run_all, versions
from treelens.graphs.collection import GraphCollection
from treelens.graphs.datasets import load_dataset
from treelens.graphs.synthetic import make_synthetic
from treelens.pairwise.bounds import (
    LossConstants,
    StepPlan,
    any_solver_gap,
    constants_of,
    mean_pair_loss,
    stability_gap,
    weight_stability,
)
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import Margins
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

KEY = ("dataset", "run", "n_graphs", "repetition", "seed")
DEPTH = 2
RADIUS = 1.0
MARGINS = Margins(alpha1=1.0, alpha2=0.5, sigma=0.1)  # the paper's, fixed beforehand
DELTA = 0.05
N_REPETITIONS = 20
N_SYNTHETIC = 2400
MOST_TEST_GRAPHS = 400

SIZES = {
    "synthetic": (25, 50, 100, 200, 400, 800, 1600),
    "MUTAG": (20, 40, 80, 140),
    "NCI1": (50, 200, 800, 3200),
}
QUICK_SIZES = {"synthetic": (25, 100, 400), "MUTAG": (20, 40, 80)}


@dataclass(frozen=True)
class TwinRun:
    """How both runs of a pair of twins learn.

    Attributes
    ----------
    title : str
    plan : StepPlan or None
        Single-pair steps of one size; None for the optimum.
    most_graphs : int
        Larger training sets are left out.
    """

    title: str
    plan: StepPlan | None = None
    most_graphs: int = 10**9

    def options(self) -> dict[str, Any]:
        """For the learner."""
        if self.plan is None:
            return {"solver": "quasi-newton", "tol": 1e-4}
        return {
            "solver": "stochastic", "n_steps": self.plan.n_steps, "step_size": self.plan.step_size,
            "halvings": 0, "average": False, "n_checks": 0,
        }  # fmt: skip


RUNS = {
    "paper": TwinRun("the paper's 500 steps of 0.0001", StepPlan.constant(500, 1e-4)),
    "short": TwinRun("1,000 steps of 0.01", StepPlan.constant(1000, 0.01)),
    "long": TwinRun("20,000 steps of 0.05", StepPlan.constant(20_000, 0.05)),
    "optimum": TwinRun("the optimum (quasi-Newton)", None, most_graphs=400),
}


@dataclass(frozen=True)
class Population:
    """The graphs of a data set, all of them counted, and the constants that hold for all pairs."""

    name: str
    codes: np.ndarray
    histograms: PatternHistograms = field(repr=False)
    constants: LossConstants

    @classmethod
    def from_graphs(cls, name: str, graphs: GraphCollection, y: np.ndarray) -> Population:
        counts = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, DEPTH))
        histograms = counts.select_depths(1, DEPTH)
        pairs = PairFeatures.from_histograms(histograms)
        constants = constants_of(pairs, MARGINS, np.full(histograms.n_depths, RADIUS))
        return cls(name, np.unique(y, return_inverse=True)[1], histograms, constants)

    def features(self, graphs: np.ndarray) -> PairFeatures:
        return PairFeatures.from_histograms(self.histograms.select_graphs(graphs))


def run(options: StudyOptions) -> None:
    """Measure divergence and gap of twin runs, beside their bounds, where the folder lacks them."""
    run_bounds(options.out, options.quick, repetitions=options.repeats)


def run_bounds(
    out: str | Path,
    quick: bool = False,
    *,
    sizes: dict[str, Sequence[int]] | None = None,
    repetitions: int | None = None,
    n_jobs: int = 1,
    seed: int = 0,
) -> Path:
    """Add the missing rows of ``rows/bounds.jsonl``; ``sizes`` are numbers of graphs by set."""
    n_repetitions = repetitions or (5 if quick else N_REPETITIONS)
    with RowFile(Path(out) / "rows" / "bounds.jsonl", KEY) as file:
        for name, numbers in (sizes or (QUICK_SIZES if quick else SIZES)).items():
            works = list(_works(name, numbers, n_repetitions, seed, file))
            for rows in run_all(works, n_jobs, f"Bounds, {name}"):
                for row in rows:
                    file.append({**row, "versions": versions()})
    return file.path


def load_population(name: str, seed: int = 0) -> Population:
    """A data set by name; "synthetic" is made."""
    if name == "synthetic":
        graphs, y = make_synthetic(N_SYNTHETIC // 8, random_state=seed)
    else:
        graphs, y = load_dataset(name)
    return Population.from_graphs(name, graphs, np.asarray(y))


def _works(
    name: str, sizes: Sequence[int], repetitions: int, seed: int, file: RowFile
) -> Iterator[Work]:
    """One work for each run and size that misses rows."""
    missing: list[tuple[str, int, list[int]]] = []
    for run, twin in RUNS.items():
        for n_graphs in (n for n in sizes if n <= twin.most_graphs):
            wanted = [
                r
                for r in range(repetitions)
                if dict(zip(KEY, (name, run, n_graphs, r, seed), strict=True)) not in file
            ]
            if wanted:
                missing.append((run, n_graphs, wanted))
    if missing:
        population = load_population(name, seed)
        for run, n_graphs, wanted in missing:
            yield Work(twin_rows, (population, run, n_graphs, wanted, seed))


def twin_rows(
    population: Population, run: str, n_graphs: int, repetitions: Sequence[int], seed: int = 0
) -> list[dict[str, Any]]:
    """Rows of several pairs of twins."""
    return [twin_row(population, run, n_graphs, repetition, seed) for repetition in repetitions]


def twin_row(
    population: Population, run: str, n_graphs: int, repetition: int, seed: int = 0
) -> dict[str, Any]:
    """One pair of twins: what was measured and what the theory allows."""
    rng = np.random.default_rng([seed, repetition, n_graphs])
    order = rng.permutation(len(population.codes))
    train, extra = order[:n_graphs], order[n_graphs]
    test = order[n_graphs + 1 : n_graphs + 1 + MOST_TEST_GRAPHS]
    twin = train.copy()
    twin[rng.integers(n_graphs)] = extra
    draws = int(rng.integers(2**31))
    weights = _learn(population, run, train, draws)
    divergence = float(np.linalg.norm(weights - _learn(population, run, twin, draws)))
    train_loss = _loss(population, train, weights, diagonal=True)
    test_loss = _loss(population, test, weights, diagonal=False)
    return {
        "dataset": population.name, "run": run, "n_graphs": n_graphs, "repetition": repetition,
        "seed": seed, "divergence": divergence, "moved": float(np.linalg.norm(weights - 1.0)),
        "train_loss": train_loss, "test_loss": test_loss, "gap": test_loss - train_loss,
        **predicted(population.constants, run, n_graphs),
    }  # fmt: skip


def predicted(constants: LossConstants, run: str, n_graphs: int) -> dict[str, Any]:
    """The bounds: for the optimum only the one that holds for any solver."""
    radius = RADIUS * float(np.sqrt(DEPTH))
    lipschitz, loss_bound = constants.lipschitz, constants.loss_bound
    plan = RUNS[run].plan
    divergence = gap = None
    if plan is not None:
        divergence = weight_stability(n_graphs, plan, constants)
        divergence = min(divergence, 2.0 * radius)  # two points of the balls are no farther apart
        gap = stability_gap(n_graphs, lipschitz * divergence, loss_bound, DELTA)
    return {
        "divergence_bound": divergence,
        "gap_bound": gap,
        "any_solver_bound": any_solver_gap(n_graphs, radius, lipschitz, loss_bound, DELTA),
        "loss_bound": loss_bound,
        "pair_norm": constants.pair_norm,
    }


def _learn(population: Population, run: str, graphs: np.ndarray, draws: int) -> np.ndarray:
    learned = learn_weights(
        population.features(graphs), population.codes[graphs], radius=RADIUS, balance=False,
        margins=(MARGINS.alpha1, MARGINS.alpha2), sigma=MARGINS.sigma, b=MARGINS.b,
        random_state=draws, **RUNS[run].options(),
    )  # fmt: skip
    return learned.weights


def _loss(population: Population, graphs: np.ndarray, weights: np.ndarray, diagonal: bool) -> float:
    features, codes = population.features(graphs), population.codes[graphs]
    return mean_pair_loss(features, codes, weights, MARGINS, diagonal=diagonal)
