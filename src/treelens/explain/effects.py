"""How kernel values, and so predictions, divide among the patterns of graphs.

Every model is ``f(G) = c + sum over i of a_i k(G, G_i)`` over some training graphs ``G_i``, the
*basis*. Every kernel is a function of two weighted sums over patterns,

- ``S = sum_v w_v z_v``, what the graph and a basis graph share, and
- ``A = sum_v w_v a_v``, what the graph shares with itself,

and of constants of the basis graph. Scale the terms of every pattern ``v`` in both sums by
``t_v`` between 0 and 1. The share of a pattern in ``k(1) - k(0)`` is its *Aumann-Shapley value*
(integrated gradients): its slope, integrated while all patterns enter together,

    share_v = integral over t from 0 to 1 of  dk/dt_v (t, ..., t)
            = w_v z_v * integral of dk/dS  +  w_v a_v * integral of dk/dA,

so one pair of integrals serves all patterns of a pair of graphs. The shares add up to
``k(1) - k(0)`` exactly, and ``k(0)`` is that of a graph without any pattern. Patterns outside the
vocabulary belong to ``A`` only; they have one share together, which the nodes that carry them
divide. The integrals have closed forms, written so that nothing cancels, except that of the
Tanimoto part of an exponential kernel: there Gauss-Legendre quadrature gives all digits for any
``gamma`` of use (up to about 100). Tables of numbers are divided in
:mod:`treelens.explain.numbers`.

The largest term of the prediction of a training graph is its own. So graphs with its patterns are
explained *without that graph*: with ``A`` the covariance of the targets and
``alpha = inv(A) y``, the coefficients that the Gaussian process would have without it are

    alpha_i - alpha_g inv(A)_ig / inv(A)_gg,

zero at ``g`` itself, and the contributions add up to the leave-one-out prediction. Where a process
has several endpoints, ``A`` is that of the measured cells, and all cells of ``g`` are left out. A
support vector machine, and a Gaussian process with landmarks, have no such form: they use all
coefficients.

A model may be a sum of several expansions over the same views, such as one endpoint of a panel:
what these add for the same pattern, column or node adds up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.explain import _compiled
from treelens.explain.numbers import NumbersEffects, effects_of_numbers
from treelens.gp.posterior import inverse_in_place
from treelens.graphs.collection import GraphCollection
from treelens.kernels.base import Term
from treelens.kernels.gram import interleaved, mirrored, pair_sums
from treelens.kernels.mixture import TanimotoL1
from treelens.models.predictions import CountedPart, KernelExpansion
from treelens.patterns.forest import RefinedGraphs, SeenGraphs
from treelens.patterns.histograms import (
    Features,
    GraphViews,
    PairFeatures,
    SparseRows,
    graph_keys,
)
from treelens.targets import positive_code

_BLOCK, _LEAST_ROWS = 2**23, 64  # pairs of graphs, and graphs, in memory at a time
# Nodes of quadrature. For many pairs of graphs: up to this gamma twelve give ten digits.
_MANY_NODES, _FEW_NODES, _SMALL_GAMMA = 32, 12, 5.0


class KernelSums(NamedTuple):
    """The weighted sums behind kernel values of m graphs with n basis graphs."""

    shared: np.ndarray  # (m, n) <W, Z(G, G_i)>
    own: np.ndarray  # (m,) <W, Z(G, G)>, unseen patterns included
    others: np.ndarray  # (n,) <W, Z(G_i, G_i)>
    offset: float = 0.0  # the constant b of the kernel wwl
    gamma: float = 0.0


class PathSlopes(NamedTuple):
    """Kernel values before and after the patterns enter, and mean slopes on the way: (m, n).

    ``end - start == per_shared * shared + per_own * own`` up to rounding.
    """

    start: np.ndarray  # kernel values without any pattern
    end: np.ndarray  # kernel values of the graphs
    per_shared: np.ndarray  # integral of dk/dS
    per_own: np.ndarray  # integral of dk/dA


def slopes_of(
    part: CountedPart, basis_graphs: Features, graphs: Features, n_jobs: int = 1
) -> PathSlopes:
    """Kernel values of graphs with the basis in one view, and their slopes in the two sums."""
    basis, kernel, rows = basis_graphs.pairs, part.kernel, graphs.pairs.rows
    if len(rows) == 1:  # looks at the patterns of this graph only
        weights = part.weights[rows.indices][None, :] * graphs.pairs.scale
        shared = weights @ shared_patterns(basis, rows.indices, rows.values) * basis.scale
    else:
        shared = pair_sums(graphs.pairs, basis, part.weights, n_jobs=n_jobs)
    sums = KernelSums(shared, graphs.diagonal, basis_graphs.diagonal)
    if isinstance(kernel, Term) and isinstance(kernel.kernel, TanimotoL1):
        return mixture_slopes(sums, kernel.kernel, kernel.amplitude, n_jobs)
    return PATHS[kernel.name](sums._replace(offset=kernel.offset, gamma=kernel.gamma or 0.0))


def shared_patterns(
    basis: PairFeatures, patterns: np.ndarray, values: np.ndarray
) -> sparse.csr_array:
    """What each pattern of a graph has in common with the basis graphs: (n_patterns, n_basis)."""
    shared = basis.lists.to_sparse(basis.n_graphs)[patterns]
    own = np.repeat(values, np.diff(shared.indptr))
    shared.data = np.minimum(own, shared.data) if basis.minimum else own * shared.data
    return shared


def mixture_slopes(
    sums: KernelSums, kernel: TanimotoL1, amplitude: float = 1.0, n_jobs: int = 1
) -> PathSlopes:
    """``amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho (A + B - 2 S)))``."""
    gamma, rho, share = kernel.gamma, kernel.rho, kernel.share
    n = _FEW_NODES if gamma <= _SMALL_GAMMA and len(sums.shared) > 1 else _MANY_NODES
    nodes, weights = np.polynomial.legendre.leggauss(n)  # symmetric: the lower half is enough
    rule = 0.5 * (nodes[: n // 2] + 1.0), 0.5 * weights[: n // 2]
    found = PathSlopes(*(np.empty_like(sums.shared) for _ in range(4)))
    given = (*sums[:3], gamma, rho, amplitude, share, *rule, *found)
    interleaved(lambda k, step: _compiled.mixture_path_rows(k, step, *given), n_jobs)
    return found


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


def _tanimoto(sums: KernelSums) -> PathSlopes:
    """``k = S / (A + B - S)``, where ``dk/dS = (A + B) / (...)^2`` and ``dk/dA = -S / (...)^2``.

    Along the path the denominator is ``p (1 + r t)`` and the numerators are linear in t, so the
    integrals are those of ``1 / (1 + r t)^2`` and ``t / (1 + r t)^2``. The latter by quadrature in
    s with ``1 + r t = exp(s log(1 + r))``, since its closed form loses digits for small r.
    """
    own = sums.own[:, None]
    # A training graph without patterns shares nothing.
    p = np.where(sums.others > 0, sums.others, 1.0)
    ratio = np.maximum((own - sums.shared) / p, 1e-100)
    stretch, tilted = np.log1p(ratio), np.zeros_like(ratio)
    for node, weight in zip(*np.polynomial.legendre.leggauss(_FEW_NODES), strict=True):
        tilted -= 0.5 * weight * np.expm1(-0.5 * (node + 1.0) * stretch)
    tilted *= stretch / (ratio * p) ** 2
    constant = 1.0 / (p * (1.0 + ratio))
    return PathSlopes(
        np.zeros_like(ratio), sums.shared * constant, constant + own * tilted, -sums.shared * tilted
    )


def _cosine(sums: KernelSums) -> PathSlopes:
    """``k = S / sqrt(A B)``: powers of ``A(t)``, which is linear in t."""
    root = np.sqrt(sums.own)[:, None]
    empty = root == 0
    root = np.where(empty, 1.0, root)
    other = np.sqrt(sums.others)
    scale = np.divide(1.0, other, out=np.zeros_like(other), where=other > 0) * ~empty
    end = sums.shared * scale / root
    return PathSlopes(np.zeros_like(end), end, 2.0 * scale / root, -end / root**2)


PATHS: dict[str, Callable[[KernelSums], PathSlopes]] = {
    "wwl": _exponential,
    "laplacian": lambda sums: mixture_slopes(sums, TanimotoL1(0.0, 0.5 * sums.gamma, 0.0)),
    "tanimoto": _tanimoto,
    "tanimoto-rbf": lambda sums: mixture_slopes(sums, TanimotoL1(sums.gamma, 0.0, 1.0)),
    **dict.fromkeys(("wl-oa", "wl-subtree", "wwl-linear"), _linear),
    "wl-subtree-cosine": _cosine,
}


# --- effects of patterns in many graphs --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartEffects:
    """What the patterns of one view add to one output of a model, for many graphs."""

    part: CountedPart
    basis: PairFeatures  # of the basis graphs in this view
    seen: RefinedGraphs
    rows: SparseRows  # by graph: known patterns, from the first level in use on, and their effects
    unseen: np.ndarray  # (n_graphs,) the effect of all patterns that training never saw
    node_offsets: np.ndarray  # of the graphs
    ends: np.ndarray  # (n_graphs, 2) sums over the basis without any pattern, and with them

    def plus(self, other: PartEffects) -> PartEffects:
        """Return the sum with what the same patterns add in another expansion."""
        rows = replace(self.rows, values=self.rows.values + other.rows.values)
        unseen = self.unseen + other.unseen
        return replace(self, rows=rows, unseen=unseen, ends=self.ends + other.ends)

    @cached_property
    def node_shares(self) -> sparse.csr_array:
        """How nodes share the patterns of their graph, shape (n_entries, n_nodes)."""
        ids = replace(self.rows, indices=self.rows.indices + self.part.first_pattern)
        return self.part.source.shares_of_nodes(self.seen.colors, ids)

    @property
    def counts(self) -> np.ndarray:
        """How often the graph has the pattern of each entry of ``rows``."""
        counts = self.seen.histograms.rows
        assert len(counts.values) == len(self.rows.values)
        return counts.values

    @cached_property
    def unseen_shares(self) -> np.ndarray:
        """How nodes share the unseen patterns of their graph, shape (n_nodes,).

        Zeros where no graph has an effect of any.
        """
        if not self.unseen.any():
            return np.zeros(int(self.node_offsets[-1]))
        sizes = np.diff(self.node_offsets)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        times = self.part.source.unseen_at_nodes(self.seen.colors).astype(float)
        total = np.bincount(owner, times, len(sizes))
        alike = 1.0 / np.maximum(sizes, 1)
        return np.where(total[owner] > 0, times / np.maximum(total, 1.0)[owner], alike[owner])

    @property
    def unseen_at_nodes(self) -> np.ndarray:
        """What unseen patterns add at each node, shape (n_nodes,)."""
        return np.repeat(self.unseen, np.diff(self.node_offsets)) * self.unseen_shares

    @cached_property
    def phi(self) -> np.ndarray:
        """What the patterns at each node add, shape (n_nodes,)."""
        return self.rows.values @ self.node_shares + self.unseen_at_nodes


def entries_at_nodes(effects: PartEffects) -> np.ndarray:
    """Return the place in ``rows`` of the pattern of the forest at each node, -1 if unseen.

    The shape is (n_levels, n_nodes).
    """
    part, rows, found = effects.part, effects.rows, effects.seen.colors
    n_patterns, offsets = len(part.weights), found.node_offsets
    graph_of_node = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    colors = found.colors[part.first_level :]
    starts = part.source.level_offsets[part.first_level : -1]
    patterns = colors + (starts - part.first_pattern)[:, None]
    keys = owner * n_patterns + rows.indices  # ascending
    places = np.searchsorted(keys, graph_of_node * n_patterns + patterns)
    return np.where(colors >= 0, places, -1)


@dataclass(frozen=True, eq=False)
class GraphEffects:
    """What patterns and numbers add to one output of a model, for many graphs."""

    expansion: KernelExpansion
    graphs: GraphCollection
    parts: list[PartEffects]  # by view that counts patterns
    numbers: list[NumbersEffects]  # by table
    # (n_graphs,) the prediction for a graph without patterns whose numbers are at their start: one
    # number, but for graphs that are explained without themselves.
    base: np.ndarray
    decisions: np.ndarray  # (n_graphs,) base and all effects: the prediction
    copies: list[tuple[int, ...]]  # the basis graphs that each graph was explained without
    added_up: tuple[GraphEffects, ...] = ()  # those of each expansion, where there are several

    @property
    def terms(self) -> tuple[GraphEffects, ...]:
        """The effects of each expansion that adds up to the model."""
        return self.added_up or (self,)

    def plus(self, other: GraphEffects) -> GraphEffects:
        """Return the sum with the effects of another expansion, whose views are the same."""
        pairs = zip(self.parts, other.parts, strict=True)
        tables = zip(self.numbers, other.numbers, strict=True)
        return replace(
            self,
            parts=[own.plus(more) for own, more in pairs],
            numbers=[own.plus(more) for own, more in tables],
            base=self.base + other.base,
            decisions=self.decisions + other.decisions,
            added_up=(*self.terms, other),
        )

    @property
    def all_parts(self) -> list[PartEffects | NumbersEffects]:
        """What each view adds, those that count patterns first."""
        return [*self.parts, *self.numbers]

    @cached_property
    def phi(self) -> np.ndarray:
        """What all views add at each node, shape (n_nodes,)."""
        return np.sum([part.phi for part in self.all_parts], axis=0)


def outputs_of(classes: np.ndarray | None, class_label: object) -> list[tuple[int, float, Any]]:
    """Outputs to explain: row, sign, and with more than two classes the class."""
    if classes is None:
        if class_label is not None:
            raise ValueError(
                f"class_label={class_label!r}, but this model predicts numbers: leave it out."
            )
        return [(0, 1.0, None)]
    codes = np.arange(len(classes))
    if class_label is None and (code := positive_code(classes)) is not None:
        class_label = classes[code]
    if class_label is not None:
        codes = (
            np.flatnonzero(classes == class_label)
            if np.asarray(class_label).ndim == 0
            else codes[:0]
        )
        if not len(codes):
            raise ValueError(
                f"class_label must be one of the classes {classes.tolist()}, got "
                f"{class_label!r:.80}."
            )
    if len(classes) == 2:
        return [(0, 1.0 if codes[0] == 1 else -1.0, None)]
    return [(code, 1.0, classes[code]) for code in codes.tolist()]


# Inverses that are known, with the factors that they are of, by the identity of these: endpoints
# of a panel have one in common, which takes longest.
KnownInverses = dict[int, tuple[np.ndarray, np.ndarray]]


def inverse_covariances(
    expansion: KernelExpansion, n_jobs: int = 1, known: KnownInverses | None = None
) -> tuple[np.ndarray, ...] | None:
    """``inv(A)`` of each expansion that is added up; None for models without a closed form.

    ``known`` is where inverses are looked up, and kept for the next expansion.
    """
    known = {} if known is None else known
    found = []
    for term in expansion.terms:
        if (factor := term.factor(n_jobs)) is None:
            return None
        if id(factor) not in known:
            inverse = mirrored(inverse_in_place(factor.copy(), n_jobs))
            known[id(factor)] = factor, inverse
        found.append(known[id(factor)][1])
    return tuple(found)


class LeftOut(NamedTuple):
    """What each graph is explained without: the training graphs that it is a copy of."""

    copies: list[tuple[int, ...]]  # basis graphs
    inverse: np.ndarray | None = None  # of the covariance of the observations

    def coefficients(
        self, term: KernelExpansion, output: int, view: int
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return what gives the coefficients in a view that explain graphs, from positions."""
        alpha = term.coefficients[output]
        usual = term.of_graphs(view, alpha[None, :])

        def of(positions: np.ndarray) -> np.ndarray:
            tiled = np.tile(usual, (len(positions), 1))
            for row, position in zip(tiled, positions.tolist(), strict=True):
                copies = self.copies[position]
                if copies and (group := term.members(copies)):
                    row[:] = term.of_graphs(view, self._without(alpha, group))[0]
            return tiled

        return of

    def _without(self, alpha: np.ndarray, group: list[int]) -> np.ndarray:
        """Return coefficients without a group of observations, shape (1, n)."""
        assert self.inverse is not None  # there are copies
        columns = self.inverse[group]
        left = alpha - np.linalg.solve(columns[:, group], alpha[group]) @ columns
        left[group] = 0.0
        return left[None, :]


def effects_of_graphs(
    expansion: KernelExpansion,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    seen: SeenGraphs | None = None,
    inverses: tuple[np.ndarray, ...] | None = None,
) -> GraphEffects:
    """Divide the predictions of many graphs among their patterns and numbers.

    ``output`` is the code of the class with more than two classes; ``seen`` the refined graphs,
    if at hand; with ``inverses`` (:func:`inverse_covariances`) training graphs are explained
    without themselves.
    """
    seen = expansion.refine(graphs, n_jobs=n_jobs) if seen is None else seen
    if inverses is None:
        left_out = [LeftOut([()] * len(graphs))] * len(expansion.terms)
    else:
        copies = _copies(expansion, seen)
        left_out = [LeftOut(copies, inverse) for inverse in inverses]
    first, *others = [
        _effects_of_term(term, graphs, term.shown(seen), output, without, n_jobs)
        for term, without in zip(expansion.terms, left_out, strict=True)
    ]
    for more in others:
        first = first.plus(more)
    return first


def _copies(expansion: KernelExpansion, seen: SeenGraphs) -> list[tuple[int, ...]]:
    """Return the basis graphs that each graph is a copy of."""
    # Replicates are left out together, as in leave-one-out predictions.
    known: dict[bytes, list[int]] = defaultdict(list)
    for index, key in enumerate(graph_keys(expansion.basis)):
        known[key].append(index)
    n_new = seen.patterns.histograms.unseen.sum(axis=1)
    keys = zip(n_new, graph_keys(seen.features), strict=True)
    return [() if n_unseen else tuple(known.get(key, ())) for n_unseen, key in keys]


def _effects_of_term(
    term: KernelExpansion,
    graphs: GraphCollection,
    seen: SeenGraphs,
    output: int,
    left_out: LeftOut,
    n_jobs: int,
) -> GraphEffects:
    """Divide what one expansion adds."""
    parts, numbers = [], []
    for part in term.parts:
        refined = seen.views[part.view]
        features, basis = refined.features, term.basis.counted(part.view)
        coefficients = left_out.coefficients(term, output, part.view)
        values, unseen, ends = _divided(part, basis, features, coefficients, n_jobs)
        own = replace(features.pairs.rows, values=values)
        offsets = graphs.node_offsets
        parts.append(PartEffects(part, basis.pairs, refined, own, unseen, offsets, ends))
    for table in term.numbers:
        rows, of_basis = seen.features.numbers(table.view), term.basis.numbers(table.view)
        coefficients = left_out.coefficients(term, output, table.view)
        blocks = position_blocks(len(graphs), len(of_basis))
        numbers.append(effects_of_numbers(table, graphs, rows, of_basis, coefficients, blocks))
    ends = np.sum([part.ends for part in parts], axis=0)
    ends = np.sum([ends, *(part.ends for part in numbers)], axis=0)
    base, decisions = (float(term.intercepts[output]) + ends).T
    return GraphEffects(term, graphs, parts, numbers, base, decisions, left_out.copies)


def effects_of_patterns(
    expansion: KernelExpansion, views: Sequence[GraphViews], n_jobs: int = 1, place: int = 0
) -> sparse.csr_array:
    """What every pattern of one part adds to predictions: (n_graphs, n_patterns).

    ``views`` are the graphs as each expansion that is added up compares them, ``place`` is that of
    the part among those that count patterns.
    """
    output = np.zeros(views[0].patterns.pairs.n_graphs, dtype=np.int64)
    if len(expansion.coefficients) > 1:  # of several classes, to that of the largest decision value
        kernel = sum(
            part.kernel.matrix(views[0][part.view], expansion.basis[part.view], n_jobs)
            for part in expansion.parts
        )
        output = (kernel @ expansion.coefficients.T + expansion.intercepts).argmax(axis=1)
    total = None
    for term, own in zip(expansion.terms, views, strict=True):
        part = term.parts[place]
        graphs, basis = own.counted(part.view), term.basis.counted(part.view)
        coefficients = term.of_graphs(part.view, term.coefficients)
        values, _, _ = _divided(part, basis, graphs, lambda k, x=coefficients: x[output[k]], n_jobs)
        rows = replace(graphs.pairs.rows, values=values)
        found = rows.to_sparse(graphs.pairs.n_patterns)
        total = found if total is None else total + found
    return total


def _divided(
    part: CountedPart,
    basis_graphs: Features,
    graphs: Features,
    coefficients: Callable[..., np.ndarray],
    n_jobs: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Effects aligned with the graphs' rows; for each graph that of its unseen patterns.

    The last array has the sums over the basis at both ends of the path.
    """
    basis, values = basis_graphs.pairs, [np.empty(0)]
    ends, unseen = np.zeros((graphs.pairs.n_graphs, 2)), unseen_sums(part, graphs)
    for positions, some in feature_blocks(graphs, basis.n_graphs):
        alpha, slopes = coefficients(positions), slopes_of(part, basis_graphs, some, n_jobs)
        ends[positions, 0] = np.einsum("ij,ij->i", alpha, slopes.start)
        ends[positions, 1] = np.einsum("ij,ij->i", alpha, slopes.end)
        pairs, rows = some.pairs, some.pairs.rows
        per_own = np.einsum("ij,ij->i", alpha, slopes.per_own)
        unseen[positions] *= per_own
        per_own *= pairs.scale**2
        factors = slopes.per_shared
        factors *= alpha
        factors *= pairs.scale[:, None] * basis.scale
        matched = np.empty(len(rows.indices))
        arrays = (
            rows.offsets,
            rows.indices,
            rows.values,
            basis.lists.offsets,
            basis.lists.indices,
            basis.lists.values,
            basis.minimum,
            factors,
            matched,
        )
        interleaved(lambda k, n, x=arrays: _compiled.pattern_sums_of_rows(k, n, *x), n_jobs)  # type: ignore[misc]
        own = rows.values if basis.minimum else rows.values**2
        matched += np.repeat(per_own, np.diff(rows.offsets)) * own
        values.append(part.weights[rows.indices] * matched)
    return np.concatenate(values), unseen, ends


def unseen_sums(part: CountedPart, graphs: Features) -> np.ndarray:
    """Return the part of ``<W, Z(G, G)>`` of patterns that training never saw, (n_graphs,)."""
    return np.maximum(graphs.diagonal - graphs.pairs.diagonal(part.weights), 0.0)


def position_blocks(n_graphs: int, n_basis: int) -> Iterator[np.ndarray]:
    """Yield positions of graphs, as many at a time as memory allows."""
    size = max(_LEAST_ROWS, _BLOCK // max(n_basis, 1))
    for start in range(0, n_graphs, size):
        yield np.arange(start, min(start + size, n_graphs))


def feature_blocks(graphs: Features, n_basis: int) -> Iterator[tuple[np.ndarray, Features]]:
    """Positions and features of graphs, as many at a time as memory allows."""
    n = graphs.pairs.n_graphs
    for positions in position_blocks(n, n_basis):
        yield positions, graphs if len(positions) == n else graphs.select(positions)
