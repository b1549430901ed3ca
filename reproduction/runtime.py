"""Running times: single-pair steps against full batches, and the whole task on real data sets.

On synthetic graphs, as their number N or the depth H grows: what 500 steps of either kind cost, as
the paper compares, and what it costs to come within a thousandth of the optimum. On real data sets:
learning, kernel and support vector machine together, for one setting and for the paper's grid.

All times are CPU seconds of one thread; compiling is not timed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from reproduction.data import StudyOptions
from reproduction.methods import GRIDS, study_learner
from reproduction.pages import Rows, grouped, markdown_table, save_figure
from reproduction.published import PAPER_SECONDS
from treelens.estimators.kernels import WassersteinWL
from treelens.estimators.svc import GraphSVC
from treelens.graphs.collection import GraphCollection
from treelens.graphs.datasets import load_dataset, make_synthetic
from treelens.pairwise.learn import LearnedWeights, learn_weights
from treelens.pairwise.objective import AllPairsObjective
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

KEY = ("experiment", "dataset", "n_graphs", "depth", "solver", "fold", "seed")
SOLVERS = ("stochastic", "batch", "quasi-newton")
NUMBERS, DEPTH = (50, 100, 200, 400, 600, 800, 1000), 2
DEPTHS, NUMBER = (1, 2, 3, 4, 5, 6, 7), 100
N_STEPS = 500
STEP_SIZE = 1e-4
QUALITY = 1e-3  # how far above the optimum, relative to it
MOST_STEPS = 1 << 23
N_REPETITIONS = 3
RADIUS = 1.0
TASK_DEPTH, TASK_GAMMA, TASK_C = 3, 1.0, 100.0
DATASETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1")
N_FOLDS = 10
# Folds in which the choice from the paper's grid is timed: the larger sets take minutes for each.
GRID_FOLDS = {"MUTAG": 3, "PTC_MR": 3, "PROTEINS": 1, "NCI1": 1}
TASK_LEARNERS: dict[str, dict[str, Any]] = {
    "stochastic": {"solver": "stochastic", "n_checks": 0},
    "batch": {"solver": "batch", "tol": QUALITY, "max_iter": 1000},
    "quasi-newton": {"solver": "quasi-newton", "tol": QUALITY},
}
_PAPER = GRIDS["paper"]
PAPER_GRID: dict[str, Any] = {
    "depth": _PAPER.depths,
    "weight_radius": _PAPER.radii,
    "gamma": _PAPER.gammas,
    "C": _PAPER.Cs,
}
_LONG_ENOUGH = 0.5  # seconds; what takes less is timed three times


def run(options: StudyOptions) -> None:
    """Measure what the folder lacks; with ``quick`` fewer graphs and one fold of two sets."""
    with options.rows("runtime", KEY) as file:
        for place, function, *arguments in [*_curves(options.quick), *_tasks(options.quick)]:
            file.add(dict(zip(KEY, place, strict=True)), function, *arguments)


def _curves(quick: bool) -> Iterator[tuple[Any, ...]]:
    """Yield key, function and arguments of every measurement on synthetic graphs."""
    numbers, depths = (NUMBERS[:4], DEPTHS[:4]) if quick else (NUMBERS, DEPTHS)
    points = dict.fromkeys([*((n, DEPTH) for n in numbers), *((NUMBER, h) for h in depths)])
    for n_graphs, depth in points:
        for fold in range(1 if quick else N_REPETITIONS):
            for solver in SOLVERS:
                point = (n_graphs, depth, solver, fold)
                if solver != "quasi-newton":
                    yield ("steps", "synthetic", *point, 0), time_steps, *point
                yield ("quality", "synthetic", *point, 0), time_to_quality, *point


def _tasks(quick: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the same for real data sets."""
    for name in DATASETS[:2] if quick else DATASETS:
        graphs, y = load_dataset(name)
        for experiment, function, n_folds, depth in (
            ("task", time_task, N_FOLDS, TASK_DEPTH),
            ("grid", time_grid, GRID_FOLDS[name], max(PAPER_GRID["depth"])),
        ):
            for fold in range(1 if quick else n_folds):
                for solver in SOLVERS:
                    place = (experiment, name, len(graphs), depth, solver, fold, 0)
                    yield place, function, graphs, np.asarray(y), solver, fold


# --- the clock --------------------------------------------------------------------------------


@cache
def warm_up() -> None:
    """Have everything compiled, once in a process."""
    graphs, y = make_synthetic(2, random_state=0)
    for solver in SOLVERS:
        _classify(graphs, y, np.arange(len(y)), np.arange(4), solver)
        _choose(
            graphs, y, np.arange(len(y)), np.arange(4), solver, {"depth": 1, "weight_radius": 0.5}
        )


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of one thread, the least of three if it is short, and what the work returned."""
    warm_up()
    times: list[float] = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that solvers are stopped early is the point
        while not times or (len(times) < 3 and times[0] < _LONG_ENOUGH):
            start = time.process_time()
            result = work()
            times.append(time.process_time() - start)
    return min(times), result


# --- made graphs ------------------------------------------------------------------------------


def made_features(n_graphs: int, depth: int, seed: int) -> tuple[PairFeatures, np.ndarray]:
    """Pair features of so many graphs of the eight-substructure study, and their classes."""
    graphs, y = make_synthetic(-(-n_graphs // 8), random_state=seed)
    some = np.random.default_rng(seed).permutation(len(graphs))[:n_graphs]
    counts = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs[some], depth))
    return PairFeatures.from_histograms(counts.select_depths(1, depth)), y[some]


def time_steps(n_graphs: int, depth: int, solver: str, fold: int) -> dict[str, Any]:
    """What 500 steps cost, on single pairs or on all of them, with the paper's numbers."""
    features, y = made_features(n_graphs, depth, fold)
    options = {
        "margins": (1.0, 0.5),
        "sigma": 0.1,
        "balance": False,
        "radius": RADIUS,
        "tol": 0.0,
        "step_size": STEP_SIZE,
        "solver": solver,
        "random_state": fold,
        "n_steps": N_STEPS,
        "halvings": 0,
        "average": False,
        "n_checks": 0,
        "max_iter": N_STEPS,
    }
    seconds, learned = cpu_seconds(lambda: learn_weights(features, y, **options))
    return {"seconds": seconds, "n_iter": learned.n_iter, "n_patterns": features.n_patterns}


def time_to_quality(n_graphs: int, depth: int, solver: str, fold: int) -> dict[str, Any]:
    """What it costs to come within a thousandth of the optimum, if one knows when to stop."""
    warm_up()
    features, y = made_features(n_graphs, depth, fold)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = learn_weights(features, y, radius=RADIUS, tol=1e-6, max_iter=1000)
        margins = best.margins  # given, so that no run has to find them again
        fixed = {
            "radius": RADIUS,
            "random_state": fold,
            "sigma": margins.sigma,
            "b": margins.b,
            "margins": (margins.alpha1, margins.alpha2),
        }
        target = best.history[-1] * (1.0 + QUALITY)
        options = _shortest_run(features, y, solver, target, fixed)
    seconds = None
    if options is not None:
        seconds, _ = cpu_seconds(lambda: learn_weights(features, y, **options))
    return {
        "seconds": seconds,
        "n_patterns": features.n_patterns,
        "n_iter": None if options is None else options.get("n_steps", options.get("max_iter")),
        "start": float(best.history[0]),
        "optimum": float(best.history[-1]),
    }


def _shortest_run(
    features: PairFeatures, y: np.ndarray, solver: str, target: float, fixed: dict[str, Any]
) -> dict[str, Any] | None:
    """Options of the shortest run whose objective is at most ``target``; None if there is none."""
    options: dict[str, Any] = {**fixed, "solver": solver, "tol": 0.0}
    if solver != "stochastic":
        history = learn_weights(features, y, **options, max_iter=2000).history
        reached = np.flatnonzero(history <= target)
        return {**options, "max_iter": max(1, int(reached[0]))} if len(reached) else None
    n_steps = 1 << 9
    while n_steps <= MOST_STEPS:
        options |= {"n_steps": n_steps, "n_checks": 0}
        if _objective(features, y, learn_weights(features, y, **options)) <= target:
            return options
        n_steps *= 2
    return None


def _objective(features: PairFeatures, y: np.ndarray, learned: LearnedWeights) -> float:
    codes = np.unique(y, return_inverse=True)[1]
    objective = AllPairsObjective(features, codes, learned.margins, balance=True)
    return objective.value(learned.weights)


# --- real data sets ---------------------------------------------------------------------------


def fold_of(y: np.ndarray, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test graphs of one of ten folds."""
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(y, y))[fold]


def time_task(graphs: GraphCollection, y: np.ndarray, solver: str, fold: int) -> dict[str, Any]:
    """One setting: patterns, weights, kernel, machine and predictions of a fold."""
    train, test = fold_of(y, fold)
    seconds, (accuracy, kernel) = cpu_seconds(lambda: _classify(graphs, y, train, test, solver))
    vocabulary = PatternVocabulary.fit(graphs[train], TASK_DEPTH)
    histograms = PatternHistograms.from_colors(*vocabulary).select_depths(1, TASK_DEPTH)
    features = PairFeatures.from_histograms(histograms)
    return {
        "seconds": seconds,
        "accuracy": accuracy,
        "n_iter": kernel.learner_.n_iter_,
        "objective": _objective(features, y[train], kernel.learner_.result_),
    }


def _classify(
    graphs: GraphCollection, y: np.ndarray, train: np.ndarray, test: np.ndarray, solver: str
) -> tuple[float, WassersteinWL]:
    learner = study_learner(RADIUS, random_state=0, **TASK_LEARNERS[solver])
    kernel = WassersteinWL(
        TASK_DEPTH,
        gamma=TASK_GAMMA,
        weights=learner,
        include_depth_zero=False,
        edge_labels=False,
    )
    machine = SVC(kernel="precomputed", C=TASK_C)
    machine.fit(kernel.fit_transform(graphs[train], y[train]), y[train])
    return float(machine.score(kernel.transform(graphs[test]), y[test])), kernel


def time_grid(graphs: GraphCollection, y: np.ndarray, solver: str, fold: int) -> dict[str, Any]:
    """The choice from the paper's grid by cross-validation on a fold's training part."""
    train, test = fold_of(y, fold)
    seconds, (accuracy, choice) = cpu_seconds(
        lambda: _choose(graphs, y, train, test, solver, PAPER_GRID)
    )
    return {"seconds": seconds, "accuracy": accuracy, "choice": choice}


def _choose(
    graphs: GraphCollection,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    solver: str,
    grid: dict[str, Any],
) -> tuple[float, dict[str, Any]]:
    model = GraphSVC(
        "wwl",
        **grid,
        include_depth_zero=False,
        edge_labels=False,
        learner=study_learner(random_state=0, **TASK_LEARNERS[solver]),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        random_state=0,
        progress=False,
    )
    model.fit(graphs[train], y[train])
    wanted = ("depth", "weight_radius", "gamma", "C")
    return float(model.score(graphs[test], y[test])), {k: model.best_params_[k] for k in wanted}


# --- the page -----------------------------------------------------------------------------------

TITLES = {
    "stochastic": "stochastic",
    "batch": "full batch",
    "quasi-newton": "quasi-Newton (default)",
}
_STYLES = {
    "stochastic": ("#0072b2", "o"),
    "batch": ("#d55e00", "s"),
    "quasi-newton": ("#009e73", "^"),
}


def curve(rows: Rows, experiment: str, solver: str, over: str) -> dict[int, float | None]:
    """Return median seconds over the number of graphs or the depth; None where not reached."""
    fixed, value = ("depth", DEPTH) if over == "n_graphs" else ("n_graphs", NUMBER)
    wanted = (experiment, solver, value)
    own = [row for row in rows if (row["experiment"], row["solver"], row[fixed]) == wanted]
    times = {x: [row["seconds"] for row in found] for x, found in grouped(own, over).items()}
    return {x: None if None in times[x] else float(np.median(times[x])) for x in sorted(times)}


def seconds_text(seconds: float | str | None) -> str:
    """Return a time in readable units."""
    if seconds is None or isinstance(seconds, str):
        return seconds or "–"
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 60:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}' {rest}''" if minutes < 60 else f"{minutes // 60}h {minutes % 60}'"


def table3(rows: Rows) -> str:
    """Seconds of one setting and of the paper's grid, by data set and solver."""
    own = [row for row in rows if row["seed"] == 0 and row["experiment"] in ("task", "grid")]
    lines = [
        _task_line(name, solver, found)
        for name, found in grouped(own, "dataset").items()
        for solver in TITLES
        if any(r["solver"] == solver for r in found)
    ]
    header = [
        "data set",
        "solver",
        "one setting",
        "excess",
        "paper's grid",
        "the paper",
    ]
    return markdown_table(header, lines)


def growth(rows: Rows) -> str:
    """How seconds grow with the number of graphs and the depth, from the least to the most."""
    kinds = {"steps": "500 steps", "quality": "within 0.1 % of the optimum"}
    own = [row for row in rows if row["seed"] == 0 and row["experiment"] in kinds]
    if not own:
        return ""
    lines = []
    for experiment, title in kinds.items():
        for solver in TITLES:
            cells = [_growth_cell(curve(own, experiment, solver, x)) for x in ("n_graphs", "depth")]
            if any(cells):
                lines.append([title, TITLES[solver], *cells])
    sizes, depths = ([row[key] for row in own] for key in ("n_graphs", "depth"))
    header = [f"{min(sizes)} to {max(sizes)} graphs", f"depth {min(depths)} to {max(depths)}"]
    return markdown_table(["", "solver", *header], lines)


def _growth_cell(seconds: dict[int, float | None]) -> str:
    known = [value for value in seconds.values() if value]
    if not known:
        return ""
    factor = known[-1] / known[0]
    return f"{seconds_text(known[0])} to {seconds_text(known[-1])} (× {factor:.1f})"


def _task_line(name: str, solver: str, rows: Rows) -> list[Any]:
    task, choice = (
        [r for r in rows if (r["experiment"], r["solver"]) == (kind, solver)]
        for kind in ("task", "grid")
    )
    lowest = {
        fold: min(r["objective"] for r in found)
        for fold, found in grouped([r for r in rows if "objective" in r], "fold").items()
    }
    excess = float(np.mean([r["objective"] / lowest[r["fold"]] - 1.0 for r in task]))
    seconds = [float(np.mean([r["seconds"] for r in x])) if x else None for x in (task, choice)]
    return [
        name,
        TITLES[solver],
        seconds_text(seconds[0]),
        f"{100 * excess:.3f} %",
        seconds_text(seconds[1]),
        seconds_text(PAPER_SECONDS.get(solver, {}).get(name)),
    ]


def draw_runtime(folder: Path, rows: Rows) -> Path:
    """Draw seconds over N on the left, over H on the right."""
    from matplotlib.figure import Figure

    rows = [row for row in rows if row["seed"] == 0]
    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for panels, (experiment, title) in zip(
        axes, (("steps", "500 steps"), ("quality", "to within 0.1 % of the optimum")), strict=True
    ):
        for panel, over in zip(panels, ("n_graphs", "depth"), strict=True):
            for solver, (color, mark) in _STYLES.items():
                found = curve(rows, experiment, solver, over)
                reached = {x: seconds for x, seconds in found.items() if seconds is not None}
                if reached:
                    panel.plot(
                        list(reached),
                        list(reached.values()),
                        marker=mark,
                        color=color,
                        ms=5,
                        label=TITLES[solver],
                    )
            panel.set(yscale="log", title=title)
            panel.grid(alpha=0.25)
        panels[0].set_ylabel("CPU seconds, one thread")
    axes[1, 0].set_xlabel("number of graphs N (H = 2)")
    axes[1, 1].set_xlabel("depth H (N = 100)")
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    return save_figure(figure, folder, "runtime")
