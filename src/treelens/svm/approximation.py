"""Fitting a graph classifier on explicit features: time and memory linear in the graphs.

The kernel is replaced by features (:mod:`treelens.kernels.approximate`), the support vector machine
by a linear model of scikit-learn on them. Nyström features are combinations of kernel values with
landmarks, so that model *is* a kernel machine whose training graphs are the landmarks. The others
give a :class:`~treelens.svm.linear_on_features.LinearOnFeatures`.

Patterns that a single training graph holds match no other graph; they are dropped, and count as
unseen. That changes no kernel value between two training graphs, and keeps the vocabulary small;
what a new graph would share with that single one is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.kernels.approximate import NystroemFeatures, UnaryFeatures
from treelens.kernels.binning import RandomBinning, buckets_for
from treelens.kernels.table import KERNELS, RANDOM_KERNELS, UNARY_KERNELS
from treelens.patterns.features import Features
from treelens.svm.approximate_search import ApproximateSearch
from treelens.svm.fitting import Scheme, Weighed, basis_features
from treelens.svm.landmarks import hard_landmarks
from treelens.svm.linear_models import fit_linear
from treelens.svm.linear_on_features import LinearOnFeatures
from treelens.svm.model import LinearOnKernel
from treelens.svm.search_result import Candidate
from treelens.svm.svm import SVM
from treelens.svm.task import Task

# Kernels that each approximation has features for, and those that "auto" tries.
APPROXIMATIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "random-binning": (RANDOM_KERNELS, ("wwl",)),
    "nystroem": (tuple(KERNELS), ("wwl", "tanimoto")),
    "unary": (UNARY_KERNELS, ("wl-oa", "wwl-linear")),
}
MIN_SUPPORT = 2


def kernels_for(approximation: str, kernel: Any) -> list[str]:
    """The kernels to try, or an error where there are no features for one."""
    known, auto = APPROXIMATIONS[approximation]
    kernels = list(auto) if isinstance(kernel, str) and kernel == "auto" else kernel
    kernels = [kernels] if isinstance(kernels, str) else list(kernels)
    unknown = [f for f in kernels if f not in known]
    if unknown or not kernels:
        raise ValueError(
            f"approximation={approximation!r} has features for the kernels {', '.join(known)}; "
            f"got kernel={kernel!r}."
        )
    return kernels


def _fit_decision(
    task: Task, chosen: Candidate, weighed: Weighed
) -> LinearOnKernel | LinearOnFeatures:
    """Features and linear model on all training graphs."""
    if task.approximation == "nystroem":
        return _fit_nystroem(task, chosen, weighed)
    feature_map = _feature_map(task, weighed)
    mapped = feature_map.transform(weighed.features, task.n_jobs)
    coefficients, intercepts = fit_linear(
        str(task.approximation), mapped, task.codes, [chosen.C], task.sample_weight
    )[0]
    return LinearOnFeatures(feature_map, coefficients, intercepts, weighed.kernel)


def _fit_nystroem(task: Task, chosen: Candidate, weighed: Weighed) -> LinearOnKernel:
    """A linear model on whitened kernel values is one on the kernel values themselves."""
    positions = hard_landmarks(
        weighed.features, task.codes, task.sample_weight, weighed.kernel, task.n_components,
        np.random.default_rng(task.seed), task.n_jobs,
    )  # fmt: skip
    landmarks: Features = basis_features(weighed, positions)
    feature_map = NystroemFeatures.fit(landmarks, weighed.kernel, task.n_jobs)
    mapped = feature_map.transform(weighed.features, task.n_jobs).astype(np.float32)
    coefficients, intercepts = fit_linear(
        "nystroem", mapped, task.codes, [chosen.C], task.sample_weight
    )[0]
    svm = SVM(coefficients @ feature_map.whitening.T, intercepts)
    return LinearOnKernel(weighed.kernel, landmarks, positions, svm)


def _feature_map(task: Task, weighed: Weighed) -> RandomBinning | UnaryFeatures:
    kernel, n_components = weighed.kernel, task.n_components
    if task.approximation == "unary":
        return UnaryFeatures.fit(weighed.features, kernel.name, kernel.weights)
    return RandomBinning(
        n_components, task.seed, kernel.name, float(kernel.gamma or 0.0), kernel.offset,
        kernel.weights, buckets_for(len(task.codes), n_components),
    )  # fmt: skip


BY_FEATURES = Scheme(ApproximateSearch, _fit_decision, MIN_SUPPORT, "Choosing settings")
