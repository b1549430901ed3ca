"""Which training graphs the Nyström features compare with."""

from __future__ import annotations

import numpy as np

from treelens.kernels.approximate import NystroemFeatures
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features, select_features
from treelens.svm.linear_models import fit_linear
from treelens.svm.svm import own_margins

# Cost of the model that tells hard graphs from easy ones.
_COST = 10.0


def landmark_positions(n_graphs: int, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of landmark graphs, drawn without replacement, ascending."""
    n_landmarks = min(n_landmarks, n_graphs)
    return np.sort(rng.choice(n_graphs, size=n_landmarks, replace=False))


def hard_landmarks(
    features: Features,
    codes: np.ndarray,
    sample_weight: np.ndarray,
    kernel: WeightedKernel,
    n_landmarks: int,
    rng: np.random.Generator,
    n_jobs: int = 1,
) -> np.ndarray:
    """Positions of landmarks, ascending: half at random, half where those are in doubt.

    An SVM needs the graphs near its boundary. A model on the first half of the landmarks
    tells which these are: those of the smallest margins become the second half.

    Parameters
    ----------
    features, codes, sample_weight
        Of the training graphs.
    kernel : WeightedKernel
    n_landmarks : int
    rng : Generator
    n_jobs : int
    """
    n_graphs = len(codes)
    if n_landmarks < 2 or n_landmarks >= n_graphs:
        return landmark_positions(n_graphs, n_landmarks, rng)
    first = landmark_positions(n_graphs, n_landmarks // 2, rng)
    feature_map = NystroemFeatures.fit(select_features(features, first), kernel, n_jobs)
    mapped = feature_map.transform(features, n_jobs).astype(np.float32)
    coefficients, intercepts = fit_linear("nystroem", mapped, codes, [_COST], sample_weight)[0]
    margins = own_margins(codes, mapped @ coefficients.T + intercepts)
    margins[first] = np.inf
    hardest = np.argsort(margins, kind="stable")[: n_landmarks - len(first)]
    return np.sort(np.concatenate([first, hardest]))
