"""Which patterns get weight on real molecules: depths 1 and 2 of MUTAG and PTC_MR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.data import StudyOptions
from reproduction.learners import study_learner
from reproduction.methods import LEARNER
from reproduction.weight_stability import weight_stability
from treelens.explain.decode import named_forest, pattern_table
from treelens.graphs.datasets import load_dataset
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

NAMES = ("MUTAG", "PTC_MR")
DEPTH = 2
RADIUS = 1.0  # the largest of the paper's grid
N_RESAMPLES = 10


def run(options: StudyOptions) -> None:
    """Learn the weights of both sets and write ``rows/patterns.json``."""
    tables = {}
    for name in options.sets or (NAMES[:1] if options.quick else NAMES):
        graphs, y = load_dataset(name)
        tables[name] = _records(learned_patterns(graphs, np.asarray(y), name))
    path = options.out / "rows" / "patterns.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


def learned_patterns(graphs: Any, y: np.ndarray, name: str) -> Any:
    """Return the patterns of all graphs with learned weights and jackknife standard errors."""
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, DEPTH)
    classes, codes = np.unique(y, return_inverse=True)

    def learn(indices: np.ndarray) -> np.ndarray:
        features = PairFeatures.from_histograms(histograms.select_graphs(indices))
        learner = study_learner(radius=RADIUS, random_state=0, **LEARNER)
        return learner.fit(features, codes[indices]).weights_

    forest = named_forest(PatternForest.of_vocabulary(vocabulary), name)
    table = pattern_table(forest, histograms, learn(np.arange(len(graphs))), codes, classes)
    stability = weight_stability(learn, histograms, codes, n_resamples=N_RESAMPLES, random_state=0)
    return table.assign(error=stability.error[table.index - int(vocabulary.level_offsets[1])])


def _records(table: Any) -> list[dict[str, Any]]:
    columns = ["pattern", "depth", "weight", "error", "support"]
    records = table[columns].round({"weight": 6, "error": 6}).to_dict("records")
    return [{k: None if v != v else v for k, v in record.items()} for record in records]


def pattern_parts(out: Path) -> list[str]:
    """Return the section of the page about the paper."""
    if not (out / "rows" / "patterns.json").exists():
        return []
    return [
        "## Learned patterns of MUTAG and PTC_MR",
        f"Weights of WWL with depths 1 to {DEPTH}, learned on all graphs within radius {RADIUS:g} "
        "per depth (the largest of the paper's grid), without edge labels: the six highest and the "
        f"six lowest of each depth. Bars are the jackknife's standard error over {N_RESAMPLES} "
        "parts. A weight above 1 says that sharing the pattern should bring two graphs nearer; it "
        "does not speak for one class. All weights are in `rows/patterns.json`.",
        "![Highest and lowest learned weights](figures/patterns.png)",
    ]
