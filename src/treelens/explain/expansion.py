"""Fitted models as kernel expansions, and how a kernel value divides among patterns.

Every model is ``f(G) = c + sum over i of a_i k(G, G_i)`` over some training graphs ``G_i``, the
*basis*. Every kernel is a function of two weighted sums over patterns,

- ``S = sum_v w_v z_v``, what the graph and a basis graph share, and
- ``A = sum_v w_v a_v``, what the graph shares with itself,

and of constants of the basis graph. Let every known pattern ``v`` of the graph take part to a
degree ``t_v`` between 0 and 1, which scales its terms in both sums. The share of a pattern in
``k(1) - k(0)`` is the *Aumann-Shapley value* (also known as integrated gradients): its slope,
gathered while all patterns enter together,

    share_v = integral over t from 0 to 1 of  dk/dt_v (t, ..., t)
            = w_v z_v * integral of dk/dS  +  w_v a_v * integral of dk/dA,

so one pair of integrals serves all patterns of a pair of graphs. By the chain rule the shares add
up to ``k(1) - k(0)`` exactly. Where the kernel is linear in the sums, the share is the pattern's
term.

Patterns never seen in training match nothing, so they are no part of ``S``. They do belong to the
graph, hence to ``A``, and there they stay for all ``t``: their effect is in ``k(0)``, and no
pattern or node is charged for it.

The integrals have closed forms, written so that nothing cancels; where there is none, for
``tanimoto-rbf``, Gauss-Legendre quadrature of an entire function gives all digits for any
``gamma`` of use (up to about 100).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.explain import _compiled
from treelens.gp.model import FittedGP
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import interleaved, pair_sums
from treelens.kernels.mixture import MixtureKernel, MixtureScales
from treelens.kernels.table import check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.models.calibration import calibrated
from treelens.models.predictions import predicted_codes
from treelens.models.thresholds import Threshold
from treelens.patterns.features import Features, SeenGraphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms, usual_out_of_vocabulary
from treelens.svm.solver import class_values

if TYPE_CHECKING:
    from treelens.svm.model import FittedSVM


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """Outputs that are linear in kernel values: ``intercepts + coefficients @ k(graph, basis)``.

    Attributes
    ----------
    forest : PatternForest
    first_level : int
        The first level of the forest that the kernel uses; its first pattern is number 0 here.
    kernel : WeightedKernel or MixtureKernel
    weights : ndarray, shape (n_patterns,)
        Of the patterns from ``first_level`` on.
    basis : Features
        Of the ``n`` training graphs that have a coefficient.
    basis_indices : ndarray of int, shape (n,)
        Their positions in the training set.
    targets : ndarray, shape (n,)
        Their values, or classes as positions in ``classes``.
    coefficients : ndarray, shape (n_outputs, n)
    intercepts : ndarray, shape (n_outputs,)
    classes : ndarray, shape (n_classes,), or None
        Two classes share one output, positive for the second; more have one output each. None
        where numbers are predicted.
    histograms : PatternHistograms
        Of training graphs: they set which share of unseen patterns is usual.
    refine : callable
        From graphs and a number of threads to :class:`SeenGraphs`.
    votes : (coefficients, intercepts), optional
        One row for every two classes, in the order of :mod:`treelens.svm.solver`, where
        classes are predicted by voting. ``coefficients`` has the mean of the rows of each class.
    slope, threshold : optional
        Of the probabilities, where a rare class is predicted from a threshold on.
    gp : FittedGP, optional
        The model, where coefficients without one training graph have a closed form.
    """

    forest: PatternForest
    first_level: int
    kernel: WeightedKernel | MixtureKernel
    weights: np.ndarray
    basis: Features
    basis_indices: np.ndarray
    targets: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: np.ndarray | None
    histograms: PatternHistograms
    refine: Callable[..., SeenGraphs]
    votes: tuple[np.ndarray, np.ndarray] | None = None
    slope: float | None = None
    threshold: Threshold | None = None
    gp: FittedGP | None = None

    @property
    def level_depths(self) -> np.ndarray:
        return self.forest.level_depths[self.first_level :]

    @property
    def first_pattern(self) -> int:
        """Id in the forest of the first pattern in use."""
        return int(self.forest.level_offsets[self.first_level])

    @cached_property
    def usual_out_of_vocabulary(self) -> float:
        """The unseen share of patterns above which an explanation warns."""
        return usual_out_of_vocabulary(self.histograms)

    def basis_targets(self, picked: np.ndarray) -> tuple[str, np.ndarray]:
        """``"value"`` or ``"class_label"``, and those of some basis graphs."""
        targets = self.targets[picked]
        if self.classes is None:
            return "value", targets
        return "class_label", self.classes[targets]

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        return self.found_in(self.refine(graph), 0)

    def found_in(self, seen: SeenGraphs, index: int) -> FoundPatterns:
        """The known patterns of one of several graphs that were refined before."""
        return FoundPatterns.of(seen, index, self.weights, self.first_level)

    def slopes(self, sums: KernelSums) -> PathSlopes:
        """Kernel values of one graph with the basis, and their slopes in the two sums."""
        if isinstance(self.kernel, MixtureKernel):
            return mixture_slopes(self.kernel.scales, sums)
        return path_slopes(self.kernel.name, sums)

    def slope_rows(self, graphs: Features, n_jobs: int = 1) -> PathSlopes:
        """Slopes of several graphs, each array of shape (n_graphs, n_basis)."""
        sums = pair_sums(graphs.pairs, self.basis.pairs, self.weights, n_jobs=n_jobs)
        known = graphs.pairs.diagonal(self.weights)
        unseen = np.maximum(graphs.diagonal - known, 0.0)
        if not isinstance(self.kernel, MixtureKernel):
            rows = [
                self.slopes(self.kernel_sums(row, float(a), float(b)))
                for row, a, b in zip(sums, known, unseen, strict=True)
            ]
            return PathSlopes(*map(np.array, zip(*rows, strict=True)))
        scales, found = self.kernel.scales, PathSlopes(*(np.empty_like(sums) for _ in range(4)))
        rule = unit_interval_rule(_FEW_NODES if scales.gamma <= _SMALL_GAMMA else _MANY_NODES)
        interleaved(
            lambda k, step: _compiled.mixture_path_rows(
                k, step, sums, known, unseen, self.basis.diagonal, *scales.as_tuple(), *rule, *found
            ),
            n_jobs,
        )
        return found

    def kernel_sums(self, shared: np.ndarray, own_known: float, own_unseen: float) -> KernelSums:
        gamma = getattr(self.kernel, "gamma", None) or 0.0
        offset = getattr(self.kernel, "offset", 0.0)
        return KernelSums(shared, own_known, own_unseen, self.basis.diagonal, offset, gamma)

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
    if kept is None:
        kept = _gp_expansion(model) if isinstance(model, FittedGP) else _svm_expansion(model)
        object.__setattr__(model, "_expansion", kept)
    return kept


def _gp_expansion(model: FittedGP) -> KernelExpansion:
    assert model.training is not None
    return KernelExpansion(
        forest=model.weighted.forest,
        first_level=0,
        kernel=model.kernel,
        weights=model.weights,
        basis=model.basis_graphs,
        basis_indices=model.basis_indices,
        targets=model.training.targets[model.basis_indices],
        coefficients=model.coefficients,
        intercepts=model.target_offset,
        classes=model.classes,
        histograms=model.basis,
        refine=model.look_at,
        slope=model.slope,
        threshold=model.threshold,
        gp=model,
    )


def _svm_expansion(model: FittedSVM) -> KernelExpansion:
    decision: Any = model.decision
    coefficients, intercepts = decision.svm.per_class
    return KernelExpansion(
        forest=PatternForest.of_vocabulary(model.patterns.vocabulary),
        first_level=model.patterns.first_depth,
        kernel=decision.kernel,
        weights=model.weights,
        basis=decision.basis,
        basis_indices=decision.basis_indices,
        targets=model.training.targets[decision.basis_indices],
        coefficients=coefficients,
        intercepts=intercepts,
        classes=model.classes,
        histograms=model.training.histograms,
        refine=partial(_refined, model),
        votes=(decision.svm.coefficients, decision.svm.intercepts)
        if decision.svm.pairwise
        else None,
    )


def _refined(model: FittedSVM, graphs: GraphCollection, n_jobs: int = 1) -> SeenGraphs:
    return model.patterns.look_at(graphs, model.kernel.weights, n_jobs)


class FoundPatterns(NamedTuple):
    """The known patterns of one graph, numbered from the first level in use on."""

    colors: np.ndarray  # (n_levels, n_nodes), numbered per level, -1 where unseen
    patterns: np.ndarray  # (n_found,), ascending
    values: np.ndarray  # (n_found,), what the pair feature combines
    level_offsets: np.ndarray
    minimum: bool  # whether it combines by minima, else by products
    scale: float
    own_unseen: float  # what patterns outside the vocabulary add to the graph's own sum
    out_of_vocabulary: float
    covariates: np.ndarray | None = None  # (1, n_covariates) of the graph, where a model has any

    @classmethod
    def of(
        cls, seen: SeenGraphs, index: int, weights: np.ndarray, first_level: int = 0
    ) -> FoundPatterns:
        pairs, offsets = seen.features.pairs, seen.colors.node_offsets
        row = slice(pairs.rows.offsets[index], pairs.rows.offsets[index + 1])
        colors = seen.colors.colors[first_level:, offsets[index] : offsets[index + 1]]
        found = cls(
            colors, pairs.rows.indices[row], pairs.rows.values[row], pairs.level_offsets,
            pairs.minimum, float(pairs.scale[index]), 0.0,
            np.count_nonzero(colors < 0) / max(colors.size, 1),
        )  # fmt: skip
        known = float(found.own_terms(weights).sum())
        unseen = max(float(seen.features.diagonal[index]) - known, 0.0)
        table = seen.features.covariates
        return found._replace(
            own_unseen=unseen if found.out_of_vocabulary else 0.0,
            covariates=None if table is None else table[index : index + 1],
        )

    @property
    def counts(self) -> np.ndarray:
        """How many nodes carry each pattern, shape (n_found,)."""
        ids = (self.colors + self.level_offsets[:-1, None])[self.colors >= 0]
        return np.bincount(np.searchsorted(self.patterns, ids), minlength=len(self.patterns))

    def own_terms(self, weights: np.ndarray) -> np.ndarray:
        """Each pattern's term in ``<W, Z(G, G)>``, shape (n_found,)."""
        values = self.values if self.minimum else self.values**2
        return weights[self.patterns] * values * self.scale**2


# --- kernel values along the path -------------------------------------------------------------


@dataclass(frozen=True)
class KernelSums:
    """The sums behind one row of a kernel matrix: one graph against n basis graphs."""

    shared: np.ndarray  # (n,) <W, Z(G, G_i)>
    own_known: float  # <W, Z(G, G)>, the part of patterns known from training
    own_unseen: float  # the rest of it
    others: np.ndarray  # (n,) <W, Z(G_i, G_i)>
    offset: float  # the constant b of the kernel wwl
    gamma: float

    @property
    def similarity(self) -> np.ndarray:
        """The learned Tanimoto similarity, from 0 to 1: what is shared over what either has."""
        union = self.own_known + self.own_unseen + self.others - self.shared
        found = np.divide(self.shared, union, out=np.ones_like(union), where=union > 0)
        return np.minimum(found, 1.0)


class PathSlopes(NamedTuple):
    """A kernel row before and after the patterns enter, and its mean slopes on the way."""

    start: np.ndarray  # (n,) kernel values without any known pattern
    end: np.ndarray  # (n,) kernel values of the graph
    per_shared: np.ndarray  # (n,) integral of dk/dS
    per_own: np.ndarray  # (n,) integral of dk/dA


def path_slopes(kernel: str, sums: KernelSums) -> PathSlopes:
    """Follow one kernel of the table from no known pattern to the whole graph.

    For every entry, ``end - start == per_shared * shared + per_own * own_known`` up to rounding.

    Examples
    --------
    >>> sums = KernelSums(np.array([0.5]), 1.0, 0.0, np.array([1.0]), offset=1.0, gamma=2.0)
    >>> path = path_slopes("wwl", sums)
    >>> bool(np.isclose(path.end - path.start, path.per_shared * sums.shared)[0])
    True
    """
    check_kernel(kernel)
    return PATHS[kernel](sums)


def mixture_slopes(scales: MixtureScales, sums: KernelSums) -> PathSlopes:
    """Follow the kernel of Gaussian processes, a weighted sum of two kernels of the table.

    Its L1 distance ``A + B - 2 S`` is twice that of the kernel laplacian.
    """
    near = _tanimoto_exponential(replace(sums, gamma=scales.gamma))
    far = _metric(replace(sums, gamma=2.0 * scales.rho))
    parts = [
        scales.amplitude * (scales.share * a + (1.0 - scales.share) * b)
        for a, b in zip(near, far, strict=True)
    ]
    return PathSlopes(*parts)


def _linear(sums: KernelSums) -> PathSlopes:
    """``k = S``."""
    zeros = np.zeros_like(sums.shared)
    return PathSlopes(zeros, sums.shared, np.ones_like(zeros), zeros)


def _exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (b - S))``: along the path ``log k`` is linear in t."""
    log_start = np.full_like(sums.shared, -sums.gamma * sums.offset)
    log_end = log_start + sums.gamma * sums.shared
    mean = _mean_exponential(log_start, log_end)
    return PathSlopes(np.exp(log_start), np.exp(log_end), sums.gamma * mean, np.zeros_like(mean))


def _metric(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma ((A + B) / 2 - S))``, whose logarithm is linear in t as well."""
    log_start = -0.5 * sums.gamma * (sums.own_unseen + sums.others)
    log_end = log_start + sums.gamma * (sums.shared - 0.5 * sums.own_known)
    mean = _mean_exponential(log_start, log_end)
    return PathSlopes(
        np.exp(log_start), np.exp(log_end), sums.gamma * mean, -0.5 * sums.gamma * mean
    )


def _tanimoto(sums: KernelSums) -> PathSlopes:
    """``k = S / (A + B - S)``, where ``dk/dS = (A + B) / (...)^2`` and ``dk/dA = -S / (...)^2``.

    Along the path the denominator is ``p + q t`` and the numerators are linear in t, so with
    ``r = q / p`` the integrals are those of ``1 / (1 + r t)^2`` and ``t / (1 + r t)^2``.
    """
    # A training graph without patterns shares nothing: any positive p will do for it.
    p = sums.own_unseen + sums.others  # (n,)
    p = np.where(p > 0, p, 1.0)
    ratio = np.maximum(sums.own_known - sums.shared, 0.0) / p
    constant_part = 1.0 / (p * (1.0 + ratio))
    linear_part = _mean_tilted(ratio) / p**2
    end = sums.shared / (p * (1.0 + ratio))
    return PathSlopes(
        np.zeros_like(end),
        end,
        constant_part + sums.own_known * linear_part,
        -sums.shared * linear_part,
    )


def _tanimoto_exponential(sums: KernelSums) -> PathSlopes:
    """``k = exp(-gamma (1 - T))`` with ``T`` as above: ``k`` times ``gamma`` times T's slopes.

    The denominator ``p (1 + r t)`` of T grows like an exponential in the variable of integration
    ``s``: ``1 + r t = exp(s log(1 + r))``, so no pole comes near, however large ``r``.
    """
    p = sums.own_unseen + sums.others  # (n,)
    p = np.where(p > 0, p, 1.0)[:, None]
    shared = sums.shared[:, None]
    ratio = np.maximum(sums.own_known - shared, 0.0) / p
    stretch = np.log1p(ratio)
    nodes, weights = unit_interval_rule()  # (n_nodes,)
    growth = np.exp(stretch * nodes)  # (n, n_nodes), 1 + r t
    flat = ratio < _FLAT_RATIO
    safe = np.where(flat, 1.0, ratio)
    t = np.where(flat, nodes, np.expm1(stretch * nodes) / safe)
    dt_ds = np.where(flat, 1.0, stretch / safe) * growth
    kernel = np.exp(-sums.gamma * (1.0 - shared * t / (p * growth)))
    factor = sums.gamma * weights * dt_ds * kernel / (p * growth) ** 2
    start = np.full_like(sums.shared, np.exp(-sums.gamma))
    end = np.exp(-sums.gamma * (1.0 - shared / (p * (1.0 + ratio))))[:, 0]
    by_shared = (factor * (p + sums.own_known * t)).sum(axis=1)
    return PathSlopes(start, end, by_shared, -(factor * shared * t).sum(axis=1))


def _cosine(sums: KernelSums) -> PathSlopes:
    """``k = S / sqrt(A B)``: powers of ``A(t)``, which is linear in t."""
    root = np.sqrt(sums.own_unseen + sums.own_known)
    if root == 0:
        zeros = np.zeros_like(sums.shared)
        return PathSlopes(zeros, zeros, zeros, zeros)
    both = root + np.sqrt(sums.own_unseen)
    other = np.sqrt(sums.others)
    scale = np.divide(1.0, other, out=np.zeros_like(other), where=other > 0)
    return PathSlopes(
        np.zeros_like(scale),
        sums.shared * scale / root,
        2.0 * scale / both,
        -sums.shared * scale / (root * both**2),
    )


PATHS: Mapping[str, Callable[[KernelSums], PathSlopes]] = MappingProxyType(
    {
        "wwl": _exponential,
        "laplacian": _metric,
        "tanimoto": _tanimoto,
        "tanimoto-rbf": _tanimoto_exponential,
        "wl-oa": _linear,
        "wl-subtree": _linear,
        "wwl-linear": _linear,
        "wl-subtree-cosine": _cosine,
    }
)


def _mean_exponential(log_start: np.ndarray, log_end: np.ndarray) -> np.ndarray:
    """Mean over t from 0 to 1 of a value whose logarithm moves linearly between two ends."""
    gap = np.abs(log_end - log_start)
    safe = np.where(gap == 0, 1.0, gap)
    mean_of_fall = np.where(gap == 0, 1.0, -np.expm1(-safe) / safe)
    return np.exp(np.maximum(log_start, log_end)) * mean_of_fall


# Below this ratio the path's denominator is constant to the last digit.
_FLAT_RATIO = 1e-12
# Nodes of quadrature. For many pairs of graphs: up to this gamma twelve give ten digits.
_MANY_NODES, _FEW_NODES, _SMALL_GAMMA = 32, 12, 5.0


def unit_interval_rule(n_nodes: int = _MANY_NODES) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return 0.5 * (nodes + 1.0), 0.5 * weights


# Below this ratio the closed form loses digits and the series has more than enough of them.
_SMALL_RATIO = 0.05
_SERIES_TERMS = 14


def _mean_tilted(ratio: np.ndarray) -> np.ndarray:
    """Integral of ``t / (1 + ratio t)^2`` over t from 0 to 1, for ``ratio >= 0``."""
    small = np.minimum(ratio, _SMALL_RATIO)
    series = np.zeros_like(ratio)
    for n in reversed(range(_SERIES_TERMS)):
        series = (n + 1) / (n + 2) - small * series
    safe = np.maximum(ratio, _SMALL_RATIO)
    closed = (np.log1p(safe) - safe / (1.0 + safe)) / safe**2
    return np.where(ratio < _SMALL_RATIO, series, closed)
