"""A kernel expansion fitted without estimators, to be explained."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from sklearn.svm import SVC

import treelens as tl
from treelens.explain.expansion import KernelExpansion
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import pair_sums
from treelens.kernels.table import KERNELS
from treelens.kernels.weighted import WeightedKernel, kernel_matrix
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features, PatternExtractor
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


def _fit_decision(
    graphs: GraphCollection,
    y: np.ndarray,
    kernel: str = "wwl",
    depth: int = 2,
    first_depth: int = 0,
    gamma: float = 1.0,
    C: float = 10.0,
    random_weights: bool = False,
) -> KernelExpansion:
    vocabulary, colors = PatternVocabulary.fit(graphs, depth, graphs.edge_codes is not None)
    histograms = PatternHistograms.from_colors(vocabulary, colors)
    histograms = histograms.select_depths(first_depth, depth)
    pairs = PairFeatures.from_histograms(histograms, KERNELS[kernel].pair_feature, unit=False)
    rng = np.random.default_rng(7)
    weights = rng.uniform(0, 2, pairs.n_patterns) if random_weights else np.ones(pairs.n_patterns)
    diagonal = pairs.diagonal(weights)
    offset = float(diagonal.max())
    matrix = kernel_matrix(
        kernel, pair_sums(pairs, weights=weights), diagonal, diagonal, offset, gamma
    )
    classes, codes = np.unique(y, return_inverse=True)
    targets = [1] if len(classes) == 2 else range(len(classes))
    coefficients, intercepts = np.zeros((len(targets), len(y))), np.zeros(len(targets))
    for row, target in enumerate(targets):
        svc = SVC(kernel="precomputed", C=C).fit(matrix, codes == target)
        coefficients[row, svc.support_] = svc.dual_coef_[0]
        intercepts[row] = svc.intercept_[0]
    extractor = PatternExtractor(vocabulary, first_depth, KERNELS[kernel].pair_feature)
    return KernelExpansion(
        PatternForest.of_vocabulary(vocabulary), first_depth,
        WeightedKernel(kernel, weights, gamma, offset), weights,
        Features(pairs, diagonal), np.arange(len(y)), coefficients, intercepts, classes,
        TrainingGraphs(histograms, codes), partial(extractor.refine, weights=weights),
    )  # fmt: skip


@pytest.fixture
def fit_decision() -> Callable[..., KernelExpansion]:
    return _fit_decision


@pytest.fixture(scope="module")
def nitrobenzene():
    return tl.as_graph_collection(["O=[N+]([O-])c1ccccc1"])
