"""Fitted models as kernel expansions, and how a kernel value divides among patterns.

Every model is ``f(G) = c + sum over i of a_i k(G, G_i)`` over some training graphs ``G_i``, the
*basis*. Every kernel is a function of two weighted sums over patterns,

- ``S = sum_v w_v z_v``, what the graph and a basis graph share, and
- ``A = sum_v w_v a_v``, what the graph shares with itself,

and of constants of the basis graph. Scale the terms of every known pattern ``v`` in both sums by
``t_v`` between 0 and 1. The share of a pattern in ``k(1) - k(0)`` is its *Aumann-Shapley value*
(integrated gradients): its slope, integrated while all patterns enter together,

    share_v = integral over t from 0 to 1 of  dk/dt_v (t, ..., t)
            = w_v z_v * integral of dk/dS  +  w_v a_v * integral of dk/dA,

so one pair of integrals serves all patterns of a pair of graphs. The shares add up to
``k(1) - k(0)`` exactly. Where the kernel is linear in the sums, the share is the pattern's term.

Patterns outside the vocabulary match nothing, so they are no part of ``S``. They do belong to
``A``, and are constant in ``t``: their effect is in ``k(0)``, and no pattern is charged for it.

The integrals have closed forms, written so that nothing cancels, except that of the Tanimoto part
of an exponential kernel: there Gauss-Legendre quadrature of an entire function gives all digits
for any ``gamma`` of use (up to about 100).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.explain import _compiled
from treelens.gp.model import FittedGP
from treelens.kernels.gram import interleaved, pair_sums
from treelens.kernels.mixture import MixtureKernel
from treelens.kernels.table import check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.models.predictions import predicted_codes
from treelens.models.thresholds import Threshold, calibrated
from treelens.models.training import TrainingGraphs
from treelens.patterns.features import Features, RefinedGraphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.pairs import PairFeatures
from treelens.svm.solver import class_values

if TYPE_CHECKING:
    from treelens.svm.model import FittedSVM


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Outputs that are linear in kernel values: ``intercepts + coefficients @ k(graph, basis)``.

    Two classes share one output, positive for the second; more have one output each.
    """

    forest: PatternForest
    first_level: int  # of the forest that the kernel uses; its first pattern is number 0 here
    kernel: WeightedKernel | MixtureKernel
    weights: np.ndarray  # (n_patterns,) of the patterns from first_level on
    basis: Features  # of the n training graphs that have a coefficient
    basis_indices: np.ndarray  # (n,) their positions in the training set
    coefficients: np.ndarray  # (n_outputs, n)
    intercepts: np.ndarray  # (n_outputs,)
    classes: np.ndarray | None  # None for regression
    training: TrainingGraphs
    refine: Callable[..., RefinedGraphs]  # from graphs and n_jobs
    # Coefficients and intercepts of one output for every two classes, in the order of
    # treelens.svm.solver, where classes are predicted by voting.
    votes: tuple[np.ndarray, np.ndarray] | None = None
    slope: float | None = None  # of probabilities, where a threshold predicts a rare class
    threshold: Threshold | None = None
    gp: FittedGP | None = None

    @property
    def level_depths(self) -> np.ndarray:
        return self.forest.level_depths[self.first_level :]

    @property
    def first_pattern(self) -> int:
        """Id in the forest of the first pattern in use."""
        return int(self.forest.level_offsets[self.first_level])

    @property
    def usual_out_of_vocabulary(self) -> float:
        """The out-of-vocabulary share of patterns above which an explanation warns."""
        return self.training.usual_out_of_vocabulary

    @cached_property
    def training_features(self) -> Features:
        """Features of all training graphs, which the basis may be a part of."""
        histograms = self.training.histograms
        if self.basis.pairs.n_graphs == histograms.n_graphs:
            return self.basis
        if not isinstance(self.kernel, WeightedKernel):
            assert self.gp is not None
            return self.gp.training_graphs
        pairs = PairFeatures.from_histograms(histograms, self.kernel.pair_feature, unit=False)
        return Features(pairs, pairs.diagonal(self.weights))

    def training_targets(self, positions: np.ndarray) -> tuple[str, np.ndarray]:
        """``"value"`` or ``"class_label"``, and those of some training graphs."""
        targets = self.training.targets[positions]
        return (
            ("value", targets) if self.classes is None else ("class_label", self.classes[targets])
        )

    def slope_rows(self, graphs: Features, n_jobs: int = 1) -> PathSlopes:
        """Kernel values of graphs with the basis and their slopes in the two sums."""
        rows, basis, lists = graphs.pairs.rows, self.basis.pairs, self.basis.pairs.lists
        if len(rows) == 1:
            shared = _compiled.shared_sums(
                rows.indices, rows.values, self.weights[rows.indices], lists.offsets,
                lists.indices, lists.values, basis.minimum, basis.n_graphs,
            )[None, :] * (graphs.pairs.scale[0] * basis.scale)  # fmt: skip
        else:
            shared = pair_sums(graphs.pairs, basis, self.weights, n_jobs=n_jobs)
        known = graphs.pairs.diagonal(self.weights)
        unseen = np.maximum(graphs.diagonal - known, 0.0)
        sums = KernelSums(shared, known, unseen, self.basis.diagonal)
        if isinstance(self.kernel, MixtureKernel):
            return mixture_slopes(sums, *self.kernel.scales.as_tuple(), n_jobs=n_jobs)
        sums = sums._replace(offset=self.kernel.offset, gamma=self.kernel.gamma or 0.0)
        return path_slopes(self.kernel.name, sums)

    def covariate_effects(self, covariates: np.ndarray | None) -> np.ndarray:
        """What the covariates of one graph, shape (1, d), add to the outputs: (n_outputs,)."""
        scales = getattr(self.kernel, "covariates", None)
        if scales is None or covariates is None:
            return np.zeros(len(self.intercepts))
        return (self.coefficients @ scales.matrix(covariates, self.basis.covariates).T)[:, 0]

    def predicted_code(self, kernel: np.ndarray, covariates: np.ndarray) -> int:
        """The predicted class from kernel values (n,) and :meth:`covariate_effects`."""
        if self.votes is not None:
            coefficients, intercepts = self.votes
            return int(class_values((coefficients @ kernel + intercepts)[None, :]).argmax())
        decisions = (self.coefficients @ kernel + self.intercepts + covariates)[None, :]
        if self.threshold is None or self.slope is None:
            return int(predicted_codes(decisions)[0])
        return int(self.threshold.name(calibrated(decisions, self.slope))[0])


def expansion_of(model: FittedSVM | FittedGP) -> KernelExpansion:
    """The kernel expansion of a fitted model, made once and kept with it."""
    kept = model.__dict__.get("_expansion")
    if kept is not None:
        return kept
    if isinstance(model, FittedGP):
        assert model.training is not None
        kept = KernelExpansion(
            model.weighted.forest, 0, model.kernel, model.weights, model.basis_graphs,
            model.basis_indices, model.coefficients, model.target_offset, model.classes,
            model.training, model.refine, None, model.slope, model.threshold, model,
        )  # fmt: skip
    else:
        decision: Any = model.decision
        svm, patterns = decision.svm, model.patterns
        coefficients, intercepts = svm.per_class
        kept = KernelExpansion(
            patterns.forest, patterns.first_depth,
            decision.kernel, model.weights, decision.basis, decision.basis_indices,
            coefficients, intercepts, model.classes, model.training,
            partial(patterns.refine, weights=model.kernel.weights),
            (svm.coefficients, svm.intercepts) if svm.pairwise else None,
        )  # fmt: skip
    object.__setattr__(model, "_expansion", kept)
    return kept


# --- kernel values along the path -------------------------------------------------------------


class KernelSums(NamedTuple):
    """The weighted sums behind kernel values of m graphs with n basis graphs."""

    shared: np.ndarray  # (m, n) <W, Z(G, G_i)>
    known: np.ndarray  # (m,) <W, Z(G, G)>, the part of patterns in the vocabulary
    unseen: np.ndarray  # (m,) the rest of it
    others: np.ndarray  # (n,) <W, Z(G_i, G_i)>
    offset: float = 0.0  # the constant b of the kernel wwl
    gamma: float = 0.0


class PathSlopes(NamedTuple):
    """Kernel values before and after the patterns enter, and mean slopes on the way: (m, n)."""

    start: np.ndarray  # kernel values without any known pattern
    end: np.ndarray  # kernel values of the graphs
    per_shared: np.ndarray  # integral of dk/dS
    per_own: np.ndarray  # integral of dk/dA


def path_slopes(kernel: str, sums: KernelSums) -> PathSlopes:
    """Follow one kernel of the table from no known pattern to the whole graph.

    ``end - start == per_shared * shared + per_own * known`` up to rounding.

    Examples
    --------
    >>> one = np.ones(1)
    >>> sums = KernelSums(np.array([[0.5]]), one, 0 * one, one, offset=1.0, gamma=2.0)
    >>> path = path_slopes("wwl", sums)
    >>> bool(np.isclose(path.end - path.start, path.per_shared * sums.shared).all())
    True
    """
    check_kernel(kernel)
    return PATHS[kernel](sums)


# Nodes of quadrature. For many pairs of graphs: up to this gamma twelve give ten digits.
_MANY_NODES, _FEW_NODES, _SMALL_GAMMA = 32, 12, 5.0


def mixture_slopes(
    sums: KernelSums,
    gamma: float,
    rho: float,
    amplitude: float = 1.0,
    share: float = 1.0,
    n_jobs: int = 1,
) -> PathSlopes:
    """Follow ``amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho (A + B - 2 S)))``.

    ``T = S / (A + B - S)`` is the Tanimoto similarity.
    """
    few = gamma <= _SMALL_GAMMA and len(sums.shared) > 1
    rule = unit_interval_rule(_FEW_NODES if few else _MANY_NODES)
    found = PathSlopes(*(np.empty_like(sums.shared) for _ in range(4)))
    interleaved(
        lambda k, step: _compiled.mixture_path_rows(
            k, step, *sums[:4], gamma, rho, amplitude, share, *rule, *found
        ),
        n_jobs,
    )
    return found


def unit_interval_rule(n_nodes: int = _MANY_NODES) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _linear(sums: KernelSums) -> PathSlopes:
    """``k = S``."""
    zeros = np.zeros_like(sums.shared)
    return PathSlopes(zeros, sums.shared, np.ones_like(zeros), zeros)


def _exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (b - S))``: along the path ``log k`` is linear in t."""
    rise = sums.gamma * sums.shared
    end = np.exp(rise - sums.gamma * sums.offset)
    safe = np.where(rise == 0, 1.0, rise)
    mean = end * np.where(rise == 0, 1.0, -np.expm1(-safe) / safe)
    start = np.full_like(end, np.exp(-sums.gamma * sums.offset))
    return PathSlopes(start, end, sums.gamma * mean, np.zeros_like(mean))


# Below this ratio the closed form loses digits and the series has more than enough of them.
_SMALL_RATIO, _SERIES_TERMS = 0.05, 14


def _tanimoto(sums: KernelSums) -> PathSlopes:
    """``k = S / (A + B - S)``, where ``dk/dS = (A + B) / (...)^2`` and ``dk/dA = -S / (...)^2``.

    Along the path the denominator is ``p (1 + r t)`` and the numerators are linear in t, so the
    integrals are those of ``1 / (1 + r t)^2`` and ``t / (1 + r t)^2``.
    """
    known = sums.known[:, None]
    p = sums.unseen[:, None] + sums.others
    p = np.where(p > 0, p, 1.0)  # a training graph without patterns shares nothing
    ratio = np.maximum(known - sums.shared, 0.0) / p
    small, large = np.minimum(ratio, _SMALL_RATIO), np.maximum(ratio, _SMALL_RATIO)
    series = np.zeros_like(ratio)
    for n in reversed(range(_SERIES_TERMS)):
        series = (n + 1) / (n + 2) - small * series
    closed = (np.log1p(large) - large / (1.0 + large)) / large**2
    tilted = np.where(ratio < _SMALL_RATIO, series, closed) / p**2
    constant = 1.0 / (p * (1.0 + ratio))
    return PathSlopes(
        np.zeros_like(p), sums.shared * constant, constant + known * tilted, -sums.shared * tilted
    )


def _cosine(sums: KernelSums) -> PathSlopes:
    """``k = S / sqrt(A B)``: powers of ``A(t)``, which is linear in t."""
    root = np.sqrt(sums.unseen + sums.known)[:, None]
    both = root + np.sqrt(sums.unseen)[:, None]
    empty = root == 0
    root, both = np.where(empty, 1.0, root), np.where(empty, 1.0, both)
    other = np.sqrt(sums.others)
    scale = np.divide(1.0, other, out=np.zeros_like(other), where=other > 0) * ~empty
    return PathSlopes(
        np.zeros_like(scale),
        sums.shared * scale / root,
        2.0 * scale / both,
        -sums.shared * scale / (root * both**2),
    )


PATHS: Mapping[str, Callable[[KernelSums], PathSlopes]] = MappingProxyType(
    {
        "wwl": _exponential,
        "laplacian": lambda sums: mixture_slopes(sums, 0.0, 0.5 * sums.gamma, share=0.0),
        "tanimoto": _tanimoto,
        "tanimoto-rbf": lambda sums: mixture_slopes(sums, sums.gamma, 0.0),
        "wl-oa": _linear,
        "wl-subtree": _linear,
        "wwl-linear": _linear,
        "wl-subtree-cosine": _cosine,
    }
)
