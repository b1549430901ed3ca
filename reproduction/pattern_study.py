"""Which patterns get weight on real molecules: depths 1 and 2 of MUTAG and PTC_MR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reproduction.data import StudyOptions
from reproduction.label_names import with_label_names
from reproduction.methods import LEARNER, study_learner
from treelens.explain.contributions import pattern_table
from treelens.graphs.datasets import load_dataset
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PairFeatures, PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

NAMES = ("MUTAG", "PTC_MR")
DEPTH = 2
RADIUS = 1.0  # the largest of the paper's grid
N_RESAMPLES = 10


def run(options: StudyOptions) -> None:
    """Learn the weights of both sets and write a row for each pattern."""
    with options.rows("patterns", ("set", "depth", "pattern")) as rows:
        known = {row["set"] for row in rows.rows}
        for name in options.sets or (NAMES[:1] if options.quick else NAMES):
            if name not in known:
                graphs, y = load_dataset(name)
                for record in _records(learned_patterns(graphs, np.asarray(y), name)):
                    rows.append({"set": name, **record})


def learned_patterns(graphs: Any, y: np.ndarray, name: str) -> Any:
    """Return the patterns of all graphs with learned weights and jackknife standard errors."""
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(1, DEPTH)
    classes, codes = np.unique(y, return_inverse=True)

    def learn(indices: np.ndarray) -> np.ndarray:
        features = PairFeatures.from_histograms(histograms.select_graphs(indices))
        learner = study_learner(radius=RADIUS, random_state=0, **LEARNER)
        return learner.fit(features, codes[indices]).weights_

    forest = PatternForest.of_vocabulary(with_label_names(vocabulary, name))
    table = pattern_table(forest, histograms, learn(np.arange(len(graphs))), codes, classes)
    errors = jackknife_errors(learn, histograms, codes, N_RESAMPLES)
    return table.assign(error=errors[table.index - int(vocabulary.level_offsets[1])])


def jackknife_errors(
    learn: Callable[[np.ndarray], np.ndarray],
    histograms: PatternHistograms,
    codes: np.ndarray,
    n_folds: int,
) -> np.ndarray:
    """Return standard errors of the weights that ``learn`` finds for some training graphs."""
    # Each of so many folds is left out in turn; those without a pattern say nothing about its
    # weight, whose error is NaN where fewer than two are left.
    shuffled = np.random.default_rng(0).permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(len(codes), dtype=int)
    fold[by_class] = np.arange(len(codes)) % n_folds  # classes are dealt out evenly
    weights = np.full((n_folds, histograms.n_patterns), np.nan)
    for k in range(n_folds):
        kept = np.flatnonzero(fold != k)
        found = histograms.select_graphs(kept).support > 0
        weights[k, found] = learn(kept)[found]
    n = (~np.isnan(weights)).sum(axis=0)
    mean = np.nansum(weights, axis=0) / n.clip(1)
    squares = np.nansum((weights - mean) ** 2, axis=0)
    return np.where(n > 1, np.sqrt((n - 1) / n.clip(1) * squares), np.nan)


def _records(table: Any) -> list[dict[str, Any]]:
    columns = ["pattern", "depth", "weight", "error", "support"]
    records = table[columns].round({"weight": 6, "error": 6}).to_dict("records")
    return [{k: None if v != v else v for k, v in record.items()} for record in records]
