"""Which patterns get weight on real molecules: depths 1 and 2 of MUTAG and PTC_MR, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction.learners import study_learner
from reproduction.methods import LEARNER
from reproduction.pages import command_line, markdown_table, write_json, write_page
from reproduction.progress import Work, run_all
from reproduction.sheets import WeightedPattern, pattern_gallery
from reproduction.weight_stability import weight_stability
from treelens.explain.names import LABEL_NAMES, named_vocabulary
from treelens.explain.pattern_table import pattern_table
from treelens.graphs.datasets import load_dataset
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

NAMES = ("MUTAG", "PTC_MR")
DEPTH = 2
RADIUS = 1.0  # the largest of the paper's grid
N_RESAMPLES = 10
_N_EACH = 6
_CLASS_WORDS = {
    "MUTAG": {-1: "not mutagenic", 1: "mutagenic"},
    "PTC_MR": {-1: "not carcinogenic", 1: "carcinogenic"},
}


def run_patterns(out: str | Path, quick: bool = False) -> list[Path]:
    """Learn the weights of both sets, draw the patterns that moved most, write the page."""
    folder = Path(out)
    names = NAMES[:1] if quick else NAMES
    works = [Work(_named_table, (name,)) for name in names]
    tables = dict(run_all(works, 1, "Learned patterns"))
    written, parts = [], [_introduction()]
    for name in names:
        vocabulary, table = tables[name]
        parts += [f"## {name}", f"Labels: {LABEL_NAMES[name].source}."]
        for depth in range(1, DEPTH + 1):
            level = table[table["depth"] == depth]
            figure = f"patterns_{name}_depth{depth}"
            sheet = pattern_gallery(vocabulary, _groups(level, name, depth))
            written += sheet.save(folder / "figures", figure)
            parts += [
                f"### Depth {depth}: {len(level)} patterns",
                f"![Patterns of depth {depth} of {name}](figures/{figure}.png)",
                _page_table(level, name),
            ]
    page = write_page(
        folder / "patterns.md", "Learned patterns of MUTAG and PTC_MR", command_line("patterns"),
        parts,
    )  # fmt: skip
    data = {name: _table_data(table) for name, (_, table) in tables.items()}
    return [write_json(folder / "patterns.json", data), page, *written]


def _named_table(name: str) -> tuple[str, tuple[PatternVocabulary, Any]]:
    graphs, y = load_dataset(name)
    return name, learned_patterns(graphs, np.asarray(y), name)


def learned_patterns(graphs: Any, y: np.ndarray, name: str) -> tuple[PatternVocabulary, Any]:
    """Patterns of all graphs with their learned weights and the error bars of these."""
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, DEPTH)
    classes, codes = np.unique(y, return_inverse=True)

    def learn(indices: np.ndarray) -> np.ndarray:
        features = PairFeatures.from_histograms(histograms.select_graphs(indices))
        learner = study_learner(radius=RADIUS, random_state=0, **LEARNER)
        return learner.fit(features, codes[indices]).weights_

    named = named_vocabulary(vocabulary, name)
    weights = learn(np.arange(len(graphs)))
    table = pattern_table(PatternForest.of_vocabulary(named), histograms, weights, codes, classes)
    stability = weight_stability(learn, histograms, codes, n_resamples=N_RESAMPLES, random_state=0)
    first = int(vocabulary.level_offsets[1])
    return named, table.assign(error=stability.error[table.index - first])


def _groups(level: Any, name: str, depth: int) -> list[tuple[str, list[WeightedPattern]]]:
    parts = [
        (f"{name}, depth {depth}: highest weights", level.iloc[:_N_EACH]),
        (f"{name}, depth {depth}: lowest weights", level.iloc[::-1].iloc[:_N_EACH]),
    ]
    return [
        (heading, [WeightedPattern(int(k), _caption(row, name)) for k, row in part.iterrows()])
        for heading, part in parts
    ]


def _caption(row: Any, name: str) -> tuple[str, ...]:
    return (
        f"{row['weight']:.3f} ± {row['error']:.3f}",
        f"in {row['support']} graphs",
        f"more in: {_CLASS_WORDS[name][int(row['class'])]}",
    )


def _page_table(level: Any, name: str) -> str:
    ends = [*level.iloc[:_N_EACH].iterrows(), *level.iloc[-_N_EACH:].iterrows()]
    rows = [
        [f"`{row['pattern']}`", f"{row['weight']:.3f}", f"{row['error']:.3f}", row["support"],
         _CLASS_WORDS[name][int(row["class"])]]
        for _, row in ends
    ]  # fmt: skip
    return markdown_table(["pattern", "weight", "error", "graphs", "more frequent in"], rows)


def _table_data(table: Any) -> list[dict[str, Any]]:
    columns = ["pattern", "depth", "weight", "error", "support", "class"]
    records = table[columns].round({"weight": 6, "error": 6}).to_dict("records")
    return [{k: None if v != v else v for k, v in record.items()} for record in records]


def _introduction() -> str:
    return (
        f"Weights of WWL with depths 1 to {DEPTH}, learned on all graphs of a set within radius "
        f"{RADIUS:g} per depth (the largest of the paper's grid), without edge labels. The error "
        f"is the jackknife's standard error over {N_RESAMPLES} parts. A pattern is written as a "
        "root with its neighbours in brackets. A weight above 1 does not speak for one class: it "
        "says that sharing the pattern should bring two graphs nearer, and the last column says "
        "where the pattern is more frequent. Of each depth the highest and the lowest weights are "
        "shown; all of them are in `patterns.json`."
    )
