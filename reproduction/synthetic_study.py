"""The study of synthetic graphs: does learning find the one pattern that decides?

Train on noisy copies of substructures 1 to 4 and test on those of 5 to 8 (see
:mod:`treelens.graphs.datasets`), depth 2, ten data sets. Settings are chosen by accuracy in
repeated 5-fold cross-validation on the training graphs, ties broken by the hinge loss there, then
in favour of the simpler. Noise either spares the pattern or falls anywhere, as the paper says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reproduction.data import StudyOptions
from reproduction.methods import GRIDS, PAPER_MARGINS, study_learner
from reproduction.pages import Rows, grouped, markdown_table, p_text, plus_minus
from reproduction.published import PAPER_SYNTHETIC
from treelens.estimators.svc import GraphSVC
from treelens.evaluation.statistics import PairedTest, corrected_t_test
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.datasets import (
    PATTERN_CENTRE,
    PATTERN_NEIGHBORS,
    TEST_SUBSTRUCTURES,
    TRAINING_SUBSTRUCTURES,
    make_synthetic,
)
from treelens.svm.search import radii_for

DEPTH = 2
N_DATASETS = 10
PATTERN = "0(0,1,2)"  # the text form of 1-0(-2)-0
KEY = ("dataset", "method", "include_depth_zero", "noise", "protect_pattern")
_RADII = radii_for(80)  # of the library, for as many graphs as there are to train on
_PAPER = GRIDS["paper"]


@dataclass(frozen=True)
class Method:
    """What a method of the study chooses from, and how its weights are learned."""

    radii: tuple[float, ...]
    learner: dict[str, Any] = field(default_factory=dict)
    gammas: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    Cs: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)


def _in_the_papers_grid(radii: tuple[float, ...], **learner: Any) -> Method:
    return Method(radii, learner, _PAPER.gammas, _PAPER.Cs)


METHODS: dict[str, Method] = {
    "wwl": Method((0.0,)),
    "learned_wwl": Method(_RADII),
    "learned_wwl_paper_radii": Method(_PAPER.radii),
    "learned_wwl_wide_radii": Method((0.3, 1.0, 3.0, 10.0, 30.0)),
    "as_chosen": Method((0.0, *_RADII)),
    "paper_grid_wwl": _in_the_papers_grid((0.0,)),
    # Its 500 steps of 1e-4 reach no radius of the grid, so one will do.
    "preset_paper": _in_the_papers_grid(_PAPER.radii[:1], preset="paper", n_checks=0),
    "preset_released_code": _in_the_papers_grid((1.0,), preset="released-code", n_checks=0),
    "paper_margins": _in_the_papers_grid(_PAPER.radii, **PAPER_MARGINS),
}
_IN_THE_PAPERS_GRID = ("paper_grid_wwl", "preset_paper", "preset_released_code", "paper_margins")
_COMPARED = ("wwl", "learned_wwl")


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("synthetic", KEY) as file:
        for dataset, method, with_labels, spared in _keys(options.quick):
            place = (dataset, method, with_labels, "usual", spared)
            key = dict(zip(KEY, place, strict=True))
            file.add(key, run_one, dataset, method, with_labels, spared)


def _keys(quick: bool) -> Iterator[tuple[Any, ...]]:
    """Every row of the study; a quick run compares two methods on two data sets."""
    for dataset in range(2 if quick else N_DATASETS):
        for method in _COMPARED if quick else METHODS:
            yield dataset, method, method not in _IN_THE_PAPERS_GRID, True
    for dataset in range(0 if quick else N_DATASETS):
        for method in (*_COMPARED, *_IN_THE_PAPERS_GRID):
            yield dataset, method, method not in _IN_THE_PAPERS_GRID, False
        for method in _COMPARED:
            yield dataset, method, False, True


# --- one data set -----------------------------------------------------------------------------


def made(dataset: int, protect_pattern: bool) -> tuple[GraphCollection, np.ndarray]:
    """The graphs and classes of one data set."""
    return make_synthetic(
        noise_nodes=(3, 6),
        noise_edges=(1, 1),
        random_state=dataset,
        protect_pattern=protect_pattern,
    )


def fit_one(
    dataset: int, method: str, include_depth_zero: bool = True, protect_pattern: bool = True
) -> GraphSVC:
    """The classifier chosen on the training substructures of one data set."""
    graphs, y = made(dataset, protect_pattern)
    spec = METHODS[method]
    model = GraphSVC(
        kernel="wwl",
        depth=DEPTH,
        weight_radius=spec.radii,
        gamma=spec.gammas,
        C=spec.Cs,
        learner=study_learner(random_state=dataset, **spec.learner) if spec.learner else None,
        include_depth_zero=include_depth_zero,
        random_state=dataset,
        progress=False,
    )
    train = _members(graphs, TRAINING_SUBSTRUCTURES)
    return model.fit(graphs[train], y[train])


def run_one(
    dataset: int, method: str, include_depth_zero: bool, protect_pattern: bool
) -> dict[str, Any]:
    """The scores of one method on one data set."""
    model = fit_one(dataset, method, include_depth_zero, protect_pattern)
    graphs, y = made(dataset, protect_pattern)
    test = _members(graphs, TEST_SUBSTRUCTURES)
    right = model.predict(graphs[test]) == y[test]
    numbers = np.asarray(graphs.graph_data["substructure"])[test]
    learned = model.best_params_["weight_radius"] > 0
    return {
        "accuracy": float(right.mean()),
        "accuracy_by_substructure": {
            str(k): float(right[numbers == k].mean()) for k in TEST_SUBSTRUCTURES
        },
        "carriers": carriers(graphs, y),
        "choice": {
            key: model.best_params_[key]
            for key in ("weight_radius", "depth", "kernel", "gamma", "C")
        },
        "inner_score": model.best_params_["score"],
        "pattern": pattern_standing(model.patterns_) if learned else None,
        "seed": dataset,
    }


def _members(graphs: Any, substructures: tuple[int, ...]) -> np.ndarray:
    return np.flatnonzero(np.isin(graphs.graph_data["substructure"], substructures))


def carriers(graphs: GraphCollection, y: np.ndarray) -> dict[str, float]:
    """Share of the graphs of either class that hold the pattern after the noise."""
    holds = np.array([_holds_pattern(graph) for graph in graphs])
    return {"positive": float(holds[y > 0].mean()), "negative": float(holds[y < 0].mean())}


def _holds_pattern(graph: Graph) -> bool:
    around: list[list[int]] = [[] for _ in graph.node_labels]
    for u, v in graph.edges:
        around[u].append(graph.node_labels[v])
        around[v].append(graph.node_labels[u])
    return any(
        label == PATTERN_CENTRE and sorted(labels) == list(PATTERN_NEIGHBORS)
        for label, labels in zip(graph.node_labels, around, strict=True)
    )


def pattern_standing(patterns: Any) -> dict[str, Any] | None:
    """Weight and rank (1: the highest) of ``1-0(-2)-0`` among the patterns of depth 1."""
    # None where noise has left it in no training graph.
    level = patterns[patterns["depth"] == 1]
    found = level.loc[level["pattern"] == PATTERN, "weight"]
    if found.empty:
        return None
    weight = float(found.iloc[0])
    return {
        "weight": weight,
        "rank": 1 + int((level["weight"] > weight).sum()),
        "n_patterns": len(level),
    }


# --- the page -----------------------------------------------------------------------------------

_TITLES = {
    "wwl": "WWL (uniform weights)",
    "learned_wwl": "learned WWL",
    "learned_wwl_paper_radii": "learned WWL, the paper's radii (0.1, 0.5, 1)",
    "learned_wwl_wide_radii": "learned WWL, radii up to 30",
    "as_chosen": "uniform or learned, chosen by inner folds",
    "paper_grid_wwl": "the paper's grid: WWL",
    "preset_paper": "the paper's grid: margins, step and steps as printed",
    "preset_released_code": "the paper's grid: the released code's margins and steps",
    "paper_margins": "the paper's grid: its margins, weights learned to the optimum",
}


def summarize(rows: Rows) -> dict[str, Any]:
    """Return means over data sets in percent, and the rank of the planted pattern."""
    spared = [row for row in rows if row["protect_pattern"]]
    free = [row for row in rows if not row["protect_pattern"]]
    with_labels = [row for row in spared if row["include_depth_zero"]]
    return {
        **_means(with_labels),
        "ranks": _ranks(with_labels),
        "without_depth_zero": _means([r for r in spared if not r["include_depth_zero"]]),
        "unprotected": {**_means(free), "ranks": _ranks(free), "carriers": _carriers(free)},
    }


def _means(rows: Rows) -> dict[str, dict[str, Any]]:
    found = {}
    for method, own in grouped(rows, "method").items():
        scores = [100 * row["accuracy"] for row in own]
        std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
        found[method] = {"mean": float(np.mean(scores)), "std": std}
    return found


def _ranks(rows: Rows) -> list[int]:
    return [r["pattern"]["rank"] for r in rows if r["method"] == "learned_wwl" and r["pattern"]]


def _carriers(rows: Rows) -> dict[str, float]:
    """Return the percentage of positive and of negative graphs that hold the pattern."""
    return {
        sign: 100 * float(np.mean([row["carriers"][sign] for row in rows])) if rows else 0.0
        for sign in ("positive", "negative")
    }


def table(rows: Rows) -> str:
    """Accuracy of every method where noise spares the pattern and where it falls anywhere."""
    own = [row for row in rows if row["noise"] == "usual"]
    found = summarize(own)
    bare, free = found["without_depth_zero"], found["unprotected"]
    lines = [
        [
            title,
            _cell(bare if m in _IN_THE_PAPERS_GRID else found, m),
            _cell(free, m),
            PAPER_SYNTHETIC.get(m, ""),
        ]
        for m, title in _TITLES.items()
        if m in found or m in bare or m in free
    ]
    ranks = [part["ranks"] for part in (found, free)]
    first = [f"{own.count(1)} of {len(own)}" if own else "" for own in ranks]
    lines.append(["data sets where the planted pattern has the largest weight", *first, ""])
    kept = f"{free['carriers']['positive']:.0f} %" if "wwl" in free else ""
    lines.append(["positive graphs that keep the pattern", "100 %", kept, ""])
    if test := gain(own):
        text = f"{100 * test.difference:+.1f} (p {p_text(test.p_value)})"
        lines.append(["learned minus uniform, t-test over data sets", text, "", ""])
    return markdown_table(["", "noise spares the pattern", "noise anywhere", "paper"], lines)


def gain(rows: Rows) -> PairedTest | None:
    """Test learned against uniform weights over data sets whose noise spares the pattern."""
    scores = {
        (r["method"], r["dataset"]): r["accuracy"]
        for r in rows
        if r["protect_pattern"] and r["include_depth_zero"]
    }
    sets = [k for method, k in scores if method == "wwl" and ("learned_wwl", k) in scores]
    if not sets:
        return None
    return corrected_t_test(*([scores[m, k] for k in sets] for m in ("learned_wwl", "wwl")))


def _cell(found: dict[str, Any], method: str) -> str:
    cell = found.get(method)
    return "" if cell is None else plus_minus(cell["mean"], cell["std"])
