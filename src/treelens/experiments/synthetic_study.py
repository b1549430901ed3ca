"""The study of made graphs: can learning find the one pattern that decides?

Train on noisy copies of substructures 1 to 4 and test on those of 5 to 8 (see
:mod:`treelens.graphs.synthetic`), depth 2, ten data sets. The rule of selection is the library's
general one, not one made for this study: accuracy in repeated 5-fold cross-validation on the
training graphs, ties broken by the hinge loss there, then in favour of what is simpler.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from treelens.estimators.classifier import GraphSVC
from treelens.estimators.selection import radii_for
from treelens.experiments.methods import CS, GAMMAS
from treelens.experiments.pages import (
    command_line,
    counts_text,
    markdown_table,
    p_text,
    plus_minus,
    write_json,
    write_page,
)
from treelens.experiments.progress import Work, run_all
from treelens.experiments.published import PAPER_SYNTHETIC
from treelens.experiments.rows import RowFile, versions
from treelens.experiments.sheets import Sheet, WeightedPattern, pattern_gallery
from treelens.experiments.significance import paired_t_test
from treelens.explain.decode import Occurrence
from treelens.explain.draw import Style, graph_scene
from treelens.graphs.collection import Graph
from treelens.graphs.synthetic import (
    SUBSTRUCTURES,
    TEST_SUBSTRUCTURES,
    TRAINING_SUBSTRUCTURES,
    make_synthetic,
)

DEPTH = 2
N_DATASETS = 10
PATTERN = "0(0,1,2)"  # the text form of 1-0(-2)-0
KEY = ("dataset", "method", "include_depth_zero")
_N_TRAIN = 80
_RADII = radii_for(_N_TRAIN)
# method -> radii it may choose from
METHODS: dict[str, tuple[float, ...]] = {
    "wwl": (0.0,),
    "learned_wwl": _RADII,
    "learned_wwl_paper_radii": (0.1, 0.5, 1.0),
    "learned_wwl_wide_radii": (0.3, 1.0, 3.0, 10.0, 30.0),
    "as_chosen": (0.0, *_RADII),
}
# Whether node labels count as patterns -> the methods to run
_METHODS_BY_DEPTH_ZERO = {
    True: tuple(METHODS),
    False: ("wwl", "learned_wwl", "learned_wwl_wide_radii"),
}
_TITLES = {
    "wwl": "WWL (uniform weights)",
    "learned_wwl": "learned WWL",
    "learned_wwl_paper_radii": "learned WWL, the paper's radii (0.1, 0.5, 1)",
    "learned_wwl_wide_radii": "learned WWL, radii up to 30",
    "as_chosen": "uniform or learned, as chosen inside",
}


def run_synthetic(out: str | Path, quick: bool = False) -> list[Path]:
    """Run what is missing, then write rows, summary, page and figures."""
    folder = Path(out)
    file = RowFile(folder / "synthetic.jsonl", KEY)
    facts = versions()
    for row in run_all(_works(quick, file), 1, "Synthetic study"):
        file.append({**row, "versions": facts})
    figures = [
        *draw_substructures().save(folder / "figures", "synthetic_substructures"),
        *draw_depth_one_patterns(0).save(folder / "figures", "synthetic_patterns"),
    ]
    summary = summarize(file.rows)
    page = write_page(
        folder / "synthetic.md", "The synthetic study", command_line("synthetic"),
        _page_parts(summary, file.rows),
    )  # fmt: skip
    return [file.path, write_json(folder / "synthetic.json", summary), page, *figures]


def _works(quick: bool, file: RowFile) -> list[Work]:
    """The rows that are missing; a quick run compares two methods on two data sets."""
    methods = {True: ("wwl", "learned_wwl"), False: ()} if quick else _METHODS_BY_DEPTH_ZERO
    return [
        Work(run_one, key)
        for depth_zero in (True, False)
        for dataset in range(2 if quick else N_DATASETS)
        for method in methods[depth_zero]
        if dict(zip(KEY, key := (dataset, method, depth_zero), strict=True)) not in file
    ]


# --- one data set -----------------------------------------------------------------------------


def fit_one(dataset: int, method: str, include_depth_zero: bool = True) -> GraphSVC:
    """The classifier chosen on the training substructures of one data set."""
    graphs, y = make_synthetic(random_state=dataset)
    model = GraphSVC(
        form="exponential", depth=DEPTH, radius=METHODS[method], gamma=GAMMAS, C=CS,
        include_depth_zero=include_depth_zero, random_state=dataset, progress=False,
    )  # fmt: skip
    train = _members(graphs, TRAINING_SUBSTRUCTURES)
    return model.fit(graphs[train], y[train])


def run_one(dataset: int, method: str, include_depth_zero: bool) -> dict[str, Any]:
    """The row of one method on one data set."""
    start = time.perf_counter()
    model = fit_one(dataset, method, include_depth_zero)
    graphs, y = make_synthetic(random_state=dataset)
    test = _members(graphs, TEST_SUBSTRUCTURES)
    right = model.predict(graphs[test]) == y[test]
    numbers = np.asarray(graphs.graph_data["substructure"])[test]
    return {
        "dataset": dataset, "method": method, "include_depth_zero": include_depth_zero,
        "accuracy": float(right.mean()),
        "accuracy_by_substructure": {
            str(k): float(right[numbers == k].mean()) for k in TEST_SUBSTRUCTURES
        },
        "choice": {key: model.choice_[key] for key in ("radius", "depth", "form", "gamma", "C")},
        "inner_score": model.choice_["score"],
        "pattern": pattern_standing(model.patterns_) if model.choice_["radius"] > 0 else None,
        "seed": dataset, "seconds": round(time.perf_counter() - start, 3),
    }  # fmt: skip


def _members(graphs: Any, substructures: tuple[int, ...]) -> np.ndarray:
    return np.flatnonzero(np.isin(graphs.graph_data["substructure"], substructures))


def pattern_standing(patterns: Any) -> dict[str, Any]:
    """Weight and rank (1: the highest) of ``1-0(-2)-0`` among the patterns of depth 1."""
    level = patterns[patterns["depth"] == 1]
    weight = float(level.loc[level["pattern"] == PATTERN, "weight"].iloc[0])
    return {
        "weight": weight,
        "rank": 1 + int((level["weight"] > weight).sum()),
        "n_patterns": len(level),
    }


# --- summary ----------------------------------------------------------------------------------


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over data sets, in percent, and where the pattern stands."""
    chosen = [row for row in rows if row["include_depth_zero"]]
    learned = [row["pattern"] for row in chosen if row["method"] == "learned_wwl"]
    ranks = [standing["rank"] for standing in learned]
    return {
        **_summaries(chosen),
        "top_pattern_rank": {
            "pattern": "1-0(-2)-0", "depth": 1, "median": float(np.median(ranks)), "ranks": ranks,
            "mean_weight": float(np.mean([standing["weight"] for standing in learned])),
            "n_patterns": [standing["n_patterns"] for standing in learned],
        },
        "without_depth_zero": _summaries([r for r in rows if not r["include_depth_zero"]]),
        "published": PAPER_SYNTHETIC,
    }  # fmt: skip


def _summaries(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {method: _summary(rows, method) for method in _methods_of(rows)}


def _methods_of(rows: list[dict[str, Any]]) -> list[str]:
    return [method for method in METHODS if any(row["method"] == method for row in rows)]


def _summary(rows: list[dict[str, Any]], method: str) -> dict[str, Any]:
    scores = [100 * row["accuracy"] for row in rows if row["method"] == method]
    std = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return {
        "mean": round(float(np.mean(scores)), 4),
        "std": None if std is None else round(std, 4),
        "n_datasets": len(scores),
    }


def _page_parts(summary: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    learned = [r for r in rows if r["method"] == "learned_wwl" and r["include_depth_zero"]]
    return [
        _design_text(), _accuracy_table(summary), _difference_text(rows),
        "![The eight substructures](figures/synthetic_substructures.png)",
        _ranks_text(summary), _inner_text(rows), "Radii chosen by learned WWL (radius: data sets): "
        + counts_text(row["choice"]["radius"] for row in learned) + ".",
        "![Patterns of depth 1 with their learned weights](figures/synthetic_patterns.png)",
        "## Every data set", _rows_table(rows),
    ]  # fmt: skip


def _design_text() -> str:
    return (
        "Noisy copies (20 each) of eight substructures; substructures 1 to 4 are for training, 5 "
        f"to 8 for testing; depth {DEPTH}; {N_DATASETS} data sets from seeds 0 to "
        f"{N_DATASETS - 1}. The rule of selection is the library's general one and was fixed "
        "before the run: `gamma`, `C` and the radius by accuracy in five times repeated 5-fold "
        "cross-validation on the training graphs, ties broken by the hinge loss on the graphs "
        "held out there, then in favour of the simpler. Radii: those that the library tries for so "
        f"few graphs ({', '.join(f'{r:g}' for r in _RADII)}). It was first run with radii up "
        "to 30, which the library tried at that time; it no longer does, on account of small real "
        "data sets. Both grids are shown, and the paper's.\n\n"
        "**How to read the figures.** The paper's drawings are lost. Our eight substructures were "
        "designed to satisfy every sentence that the paper says about them, and the design was "
        "tuned, by its test accuracy, to resemble the published study. So agreement with the "
        "paper's 82.4 and 95 is by construction, and no evidence for or against the paper's "
        "figures. What the study does show is the mechanism: where all training graphs of a class "
        "share a pattern that uniform weights drown, learned weights find it, and graphs of a new "
        "kind that hold it are recognised."
    )


def _inner_text(rows: list[dict[str, Any]]) -> str:
    def inner(method: str) -> float:
        scores = [r["inner_score"] for r in rows if r["method"] == method]
        return 100 * float(np.mean(scores))

    return (
        f"The inner accuracy, on graphs of the training substructures, is {inner('wwl'):.1f} with "
        f"uniform and {inner('learned_wwl'):.1f} with learned weights: many candidates, "
        "of every radius, are perfect there, so it is the hinge loss that chooses the radius."
    )


def _accuracy_table(summary: dict[str, Any]) -> str:
    lines = []
    for method in (m for m in METHODS if m in summary):
        main, other = summary[method], summary["without_depth_zero"].get(method)
        without = "" if other is None else plus_minus(other["mean"], other["std"])
        lines.append(
            [_TITLES[method], plus_minus(main["mean"], main["std"]), without,
             PAPER_SYNTHETIC.get(method, ""), main["n_datasets"]]
        )  # fmt: skip
    header = ["method", "test accuracy", "depths 1 and 2 only", "paper", "data sets"]
    note = "The headline counts node labels as patterns of depth 0, as Table 2 and the library do."
    return f"{markdown_table(header, lines)}\n\n{note}"


def _difference_text(rows: list[dict[str, Any]]) -> str:
    scores = {(r["method"], r["dataset"]): r["accuracy"] for r in rows if r["include_depth_zero"]}
    gains = np.array([scores["learned_wwl", k] - scores["wwl", k] for m, k in scores if m == "wwl"])
    p_value = p_text(paired_t_test(gains)) if len(gains) > 1 else "-"
    return (
        f"Learned minus uniform: {100 * gains.mean():+.2f} points; better on "
        f"{int((gains > 0).sum())} of {len(gains)} data sets; paired one-sided t-test p = "
        f"{p_value} (the data sets are drawn independently, so nothing needs correcting)."
    )


def _ranks_text(summary: dict[str, Any]) -> str:
    standing = summary["top_pattern_rank"]
    return (
        "Rank of `1-0(-2)-0`, a node labelled 0 with neighbours 0, 1 and 2, by weight among the "
        f"patterns of depth 1 ({min(standing['n_patterns'])} to {max(standing['n_patterns'])} per "
        f"data set): median {standing['median']:g}, all: "
        f"{', '.join(map(str, standing['ranks']))}. Its mean weight is "
        f"{standing['mean_weight']:.2f} (uniform: 1)."
    )


def _rows_table(rows: list[dict[str, Any]]) -> str:
    cells = {(r["dataset"], r["method"]): r for r in rows if r["include_depth_zero"]}
    methods = _methods_of(rows)
    lines = []
    for dataset in sorted({dataset for dataset, _ in cells}):
        learned = cells[dataset, "learned_wwl"]
        scores = [f"{100 * cells[dataset, m]['accuracy']:.1f}" for m in methods]
        choice = f"{learned['choice']['radius']:g}"
        lines.append([dataset, *scores, choice, learned["pattern"]["rank"]])
    titles = [_TITLES[method] for method in methods]
    return markdown_table(["seed", *titles, "radius", "rank of the pattern"], lines)


# --- figures ----------------------------------------------------------------------------------


def draw_substructures() -> Sheet:
    """The eight, positive ones with the pattern marked; training above, test below."""
    width, height, heading = 250, 125, 22
    sheet = Sheet(4 * width, 2 * (height + 2 * heading))
    for row, numbers in enumerate((TRAINING_SUBSTRUCTURES, TEST_SUBSTRUCTURES)):
        top = row * (height + 2 * heading)
        for column, number in enumerate(numbers):
            graph = SUBSTRUCTURES[number]
            scene = graph_scene(graph, None, None, _planted(graph), Style(width, height))
            sheet.draw(scene, column * width, top + 2 * heading)
            sign = "positive" if graph.data["class"] > 0 else "negative"
            use = "training" if row == 0 else "test"
            sheet.write(f"{number}: {sign}, {use}", (column + 0.5) * width, top + heading, 14,
                        ha="center", weight="bold")  # fmt: skip
    return sheet


def _planted(graph: Graph) -> Occurrence | None:
    nodes = graph.data["planted"]
    if not nodes:
        return None
    edges = tuple((min(nodes[0], leaf), max(nodes[0], leaf)) for leaf in nodes[1:])
    return Occurrence(0, 1, 0, nodes[0], nodes, edges)


def draw_depth_one_patterns(dataset: int, n_each: int = 7) -> Sheet:
    """The highest and lowest learned weights of depth 1 on one data set."""
    model = fit_one(dataset, "learned_wwl")
    level = model.patterns_
    level = level[level["depth"] == 1]
    groups = [
        (f"Highest weights at depth 1 (seed {dataset}, radius {model.choice_['radius']:g})",
         level.iloc[:n_each]),
        ("Lowest weights", level.iloc[::-1].iloc[:n_each]),
    ]  # fmt: skip
    return pattern_gallery(
        model.vocabulary_,
        [
            (heading, [WeightedPattern(int(k), _caption(row)) for k, row in part.iterrows()])
            for heading, part in groups
        ],
    )


def _caption(row: Any) -> tuple[str, ...]:
    return (
        f"weight {row['weight']:.2f}",
        f"{row['support']} graphs",
        "more in: " + ("positive" if row["leans_to"] > 0 else "negative"),
    )
