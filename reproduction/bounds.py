"""The bounds beside what they bound: twin runs with the same draws, one graph replaced.

From a data set n graphs are drawn to learn from, and one more to put in the place of one of them.
Both sets are learned from with the same draws of pairs; how far the weights end up apart is what
stability bounds. The loss over pairs of graphs that neither run saw, less the loss over the
training pairs, is the measured gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.data import StudyOptions
from reproduction.pages import Rows, grouped, markdown_table, save_figure
from treelens.graphs.collection import GraphCollection
from treelens.graphs.datasets import load_dataset, make_synthetic
from treelens.pairwise.bounds import (
    LossConstants,
    StepPlan,
    any_solver_gap,
    constants_of,
    stability_gap,
    weight_stability,
)
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import AllPairsObjective, Margins, smooth_hinge_same
from treelens.patterns.histograms import PairFeatures, PatternHistograms
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


class TwinRun(NamedTuple):
    """How both runs of a pair of twins learn."""

    title: str
    plan: StepPlan | None = None  # single-pair steps of one size; None for the optimum
    most_graphs: int = 10**9  # larger training sets are left out

    def options(self) -> dict[str, Any]:
        """For the learner."""
        if self.plan is None:
            return {"solver": "quasi-newton", "tol": 1e-4}
        return {
            "solver": "stochastic",
            "n_steps": self.plan.n_steps,
            "step_size": self.plan.step_size,
            "halvings": 0,
            "average": False,
            "n_checks": 0,
        }


RUNS = {
    "paper": TwinRun("the paper's 500 steps of 0.0001", StepPlan.halving(500, 1e-4)),
    "short": TwinRun("1,000 steps of 0.01", StepPlan.halving(1000, 0.01)),
    "long": TwinRun("20,000 steps of 0.05", StepPlan.halving(20_000, 0.05)),
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
    sizes = QUICK_SIZES if options.quick else SIZES
    n_repetitions = options.repeats or (5 if options.quick else N_REPETITIONS)
    population = cache(load_population)
    with options.rows("bounds", KEY) as file:
        for name, numbers in sizes.items():
            for run, twin in RUNS.items():
                for n_graphs in (n for n in numbers if n <= twin.most_graphs):
                    for repetition in range(n_repetitions):
                        place = (name, run, n_graphs, repetition, 0)
                        key = dict(zip(KEY, place, strict=True))
                        if key not in file:
                            file.add(key, twin_row, population(name), run, n_graphs, repetition)


def load_population(name: str) -> Population:
    """A data set by name; "synthetic" is made."""
    if name == "synthetic":
        graphs, y = make_synthetic(N_SYNTHETIC // 8, random_state=0)
    else:
        graphs, y = load_dataset(name)
    return Population.from_graphs(name, graphs, np.asarray(y))


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
        "dataset": population.name,
        "run": run,
        "n_graphs": n_graphs,
        "repetition": repetition,
        "seed": seed,
        "divergence": divergence,
        "moved": float(np.linalg.norm(weights - 1.0)),
        "train_loss": train_loss,
        "test_loss": test_loss,
        "gap": test_loss - train_loss,
        **predicted(population.constants, run, n_graphs),
    }


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
        population.features(graphs),
        population.codes[graphs],
        radius=RADIUS,
        balance=False,
        margins=(MARGINS.alpha1, MARGINS.alpha2),
        sigma=MARGINS.sigma,
        b=MARGINS.b,
        random_state=draws,
        **RUNS[run].options(),
    )
    return learned.weights


def _loss(population: Population, graphs: np.ndarray, weights: np.ndarray, diagonal: bool) -> float:
    """The mean over ordered pairs; without ``diagonal`` over pairs of two different graphs."""
    features, codes, n = population.features(graphs), population.codes[graphs], len(graphs)
    mean = AllPairsObjective(features, codes, MARGINS, balance=False).value(weights)
    if diagonal:
        return mean
    own = smooth_hinge_same(MARGINS.b - features.diagonal(weights), MARGINS.alpha2, MARGINS.sigma)
    return float((n * mean - own.mean()) / (n - 1))


# --- the page ---------------------------------------------------------------------------------

# Distinct for every kind of eye (Okabe and Ito).
_COLORS = {"paper": "#0072b2", "short": "#009e73", "long": "#d55e00", "optimum": "#cc79a7"}
_QUANTILE = 0.95
_FLOOR = 1e-4  # of the gap's axis: smaller measured gaps are noise of the test graphs


class Cell(NamedTuple):
    """All repetitions of one data set, run and number of graphs."""

    n_graphs: int
    divergence: float  # the mean
    high_gap: float  # 95 % quantile
    divergence_bound: float | None
    gap_bound: float | None
    any_solver_bound: float
    loss_bound: float


def summarize(rows: Rows) -> dict[tuple[str, str], list[Cell]]:
    """Data set and run -> a cell for every number of graphs, ascending."""
    groups = grouped(rows, "dataset", "run", "n_graphs")
    cells: dict[tuple[str, str], list[Cell]] = {}
    for (dataset, run, n_graphs), members in sorted(groups.items(), key=lambda item: item[0][2]):
        divergence = float(np.mean([row["divergence"] for row in members]))
        gap = float(np.quantile([row["gap"] for row in members], _QUANTILE))
        bounds = [members[0][name] for name in Cell._fields[3:]]
        cells.setdefault((dataset, run), []).append(Cell(n_graphs, divergence, gap, *bounds))
    return cells


def table(rows: Rows) -> str:
    """On how many lines what was measured is below its bound, and the bound says something."""
    lines = []
    by_run: dict[str, list[Cell]] = {run: [] for run in RUNS}
    for (_, run), cells in summarize([row for row in rows if row["seed"] == 0]).items():
        by_run[run] += cells
    for run, cells in by_run.items():
        if not cells:
            continue
        n = len(cells)
        bounded = [(c, c.divergence_bound, c.gap_bound) for c in cells if c.gap_bound is not None]
        kept = sum(c.divergence <= (limit or 0.0) for c, limit, _ in bounded)
        gaps = sum(c.high_gap <= min(c.any_solver_bound, c.gap_bound or np.inf) for c in cells)
        telling = sum(gap < c.loss_bound for c, _, gap in bounded)
        any_solver = sum(c.any_solver_bound < c.loss_bound for c in cells)
        shown = [f"{kept} of {n}", f"{telling} of {n}"] if bounded else ["no bound", "no bound"]
        lines.append([run, shown[0], f"{gaps} of {n}", shown[1], f"{any_solver} of {n}"])
    header = [
        "run",
        "weights within the bound",
        "gap within the bounds",
        "stability bound below M",
        "bound for any solver below M",
    ]
    return markdown_table(header, lines)


def moved(rows: Rows) -> str:
    """How far the printed steps move the weights."""
    found = grouped([row for row in rows if row["run"] == "paper"], "dataset")
    lines = []
    for name, own in found.items():
        far = [row["moved"] for row in own]
        lines.append([name, f"{np.mean(far):.4f}", f"{max(far):.4f}"])
    return markdown_table(["`‖W − 1‖` after the printed steps", "mean", "largest"], lines)


def draw_bounds(folder: Path, rows: Rows) -> Path:
    """Divergence above, gap below, a column for each data set; dashed lines are bounds."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = [row for row in rows if row["seed"] == 0]
    cells = summarize(rows)
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = Figure(figsize=(1.2 + 3.4 * len(datasets), 6.8), layout="constrained")
    axes = figure.subplots(2, len(datasets), squeeze=False, sharey="row")
    for (above, below), dataset in zip(axes.T, datasets, strict=True):
        for run, color in _COLORS.items():
            own = cells.get((dataset, run), [])
            n = [cell.n_graphs for cell in own]
            for panel, values, bounds, label in (
                (above, [c.divergence for c in own], [c.divergence_bound for c in own], run),
                (below, [max(c.high_gap, _FLOOR) for c in own], [c.gap_bound for c in own], None),
            ):
                if own:
                    panel.plot(n, values, "o-", color=color, ms=4, label=label)
                if own and bounds[0] is not None:
                    panel.plot(n, bounds, "--", color=color)
        # what does not depend on the run: the bound for any solver, and the largest loss
        longest = max((group for (name, _), group in cells.items() if name == dataset), key=len)
        n = [cell.n_graphs for cell in longest]
        below.plot(n, [cell.any_solver_bound for cell in longest], "--", color="black")
        below.axhline(longest[0].loss_bound, color="0.6", lw=1)
        above.set_title(dataset)
        below.set_xlabel("training graphs n")
    axes[0, 0].set_ylabel("‖W − W′‖, one graph replaced")
    axes[1, 0].set_ylabel("gap of the pair loss, 95 % quantile")
    for panel in axes.flat:
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.grid(alpha=0.25)
        sizes = panel.lines[0].get_xdata()
        panel.set_xticks(sizes, labels=[str(n) for n in sizes])
        panel.minorticks_off()
    axes[1, 0].set_ylim(bottom=_FLOOR)
    runs, names = axes[0, 0].get_legend_handles_labels()
    styles = ({"color": "0.3", "ls": "--"}, {"color": "black", "ls": "--"}, {"color": "0.6"})
    handles = [*runs, *(Line2D([], [], **style) for style in styles)]
    labels = [
        *(f"{name}, measured" for name in names),
        "stability bound",
        "bound for any solver",
        "largest loss M",
    ]
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return save_figure(figure, folder, "bounds")
