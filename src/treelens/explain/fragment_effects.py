"""What patterns and nodes add to the predictions of many graphs, all at once.

The numbers are those of :func:`treelens.explain.contributions.explain_decision`, for thousands of
graphs in seconds. A graph that the model was trained on speaks for itself: the largest term of its
prediction is its own. So training graphs are explained *left out*: by the coefficients that the
process would have without the graph, which have a closed form. With ``A`` the covariance of the
targets and ``alpha = inv(A) y``, the others' coefficients without graph ``g`` are

    alpha_i - alpha_g inv(A)_ig / inv(A)_gg,

zero at ``g`` itself, and the contributions add up to the leave-one-out prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from treelens.explain import _compiled_fragments
from treelens.explain.gaussian import GaussianDecision
from treelens.explain.paths import unit_interval_rule
from treelens.gp.linalg import inverse_in_place, symmetric
from treelens.gp.posterior import ExactPosterior
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import interleaved, pair_sums
from treelens.patterns.features import Features, SeenGraphs
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.vocabulary import NodeColors

# Of quadrature, for all pairs of graphs: up to this gamma twelve nodes give ten digits.
_FEW_NODES, _SMALL_GAMMA = 12, 5.0


@dataclass(frozen=True, eq=False)
class GraphEffects:
    """What patterns add to the predictions of some graphs.

    Attributes
    ----------
    colors : NodeColors
        Of the graphs, a row per level of the forest.
    rows : SparseRows
        By graph: the known patterns and what each adds, over all its nodes.
    counts : ndarray
        Aligned with ``rows``: how many nodes of the graph carry the pattern.
    base : ndarray, shape (n_graphs,)
        The prediction before any known pattern is counted.
    decisions : ndarray, shape (n_graphs,)
        The prediction: ``base`` and all effects of a graph together.
    left_out : bool
        Whether each graph was explained by the other graphs alone.
    """

    colors: NodeColors
    rows: SparseRows
    counts: np.ndarray
    base: np.ndarray
    decisions: np.ndarray
    left_out: bool

    def node_shares(self, level_offsets: np.ndarray) -> np.ndarray:
        """What the pattern at each node adds, shape (n_levels, n_nodes); 0 where it is unseen.

        A pattern's effect is divided equally among the nodes of the graph that carry it.
        """
        colors, offsets = self.colors.colors, self.colors.node_offsets
        n_patterns = int(level_offsets[-1])
        graph_of_node = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        graph_of_entry = np.repeat(np.arange(len(self.rows)), np.diff(self.rows.offsets))
        keys = graph_of_entry * n_patterns + self.rows.indices  # ascending
        per_node = self.rows.values / self.counts
        shares = np.zeros(colors.shape)
        for level, row in enumerate(colors):
            seen = np.flatnonzero(row >= 0)
            wanted = graph_of_node[seen] * n_patterns + level_offsets[level] + row[seen]
            shares[level, seen] = per_node[np.searchsorted(keys, wanted)]
        return shares


def effects_of_graphs(
    decision: GaussianDecision,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    looked_at: SeenGraphs | None = None,
) -> GraphEffects:
    """Divide the predictions of many graphs among their patterns.

    Parameters
    ----------
    decision : GaussianDecision
    graphs : GraphCollection
        If these are the very graphs that predictions are sums over, each is left out in turn.
    output : int
        Which column of the targets: of more than two classes, the code of one.
    n_jobs : int
    looked_at : SeenGraphs, optional
        The graphs as the model sees them, where they were refined before.
    """
    model = decision.model
    seen = model.weighted.look_at(graphs, n_jobs) if looked_at is None else looked_at
    colors, weighed = seen.colors, seen.features
    alpha, left_out = decision.coefficients[output], False
    coefficients = np.broadcast_to(alpha, (len(graphs), len(alpha)))
    if same_counts(seen.histograms, model.basis):
        posterior = model._full_posterior(n_jobs)
        if isinstance(posterior, ExactPosterior):  # landmarks are few, and speak for many others
            coefficients, left_out = _left_out_coefficients(posterior, alpha, n_jobs), True
    values, ends = _divided(decision, weighed, coefficients, n_jobs)
    rows = weighed.pairs.rows
    intercept = float(decision.intercepts[output])
    return GraphEffects(
        colors, SparseRows(rows.offsets, rows.indices, values), rows.values.astype(np.int64),
        intercept + ends[:, 0], intercept + ends[:, 1], left_out,
    )  # fmt: skip


def effects_of_patterns(
    decision: GaussianDecision, graphs: Features, n_jobs: int = 1
) -> sparse.csr_array:
    """What every pattern adds to the predictions of some graphs: (n_graphs, n_patterns).

    The contributions of ``explain`` without the rest: of more than two classes, those to the class
    that is predicted for the graph.
    """
    model, coefficients = decision.model, decision.coefficients
    output = np.zeros(graphs.pairs.n_graphs, dtype=np.int64)
    if len(coefficients) > 1:
        said = model.kernel_rows(graphs, n_jobs) @ coefficients.T + decision.intercepts
        output = said.argmax(axis=1)
    values, _ = _divided(decision, graphs, coefficients[output], n_jobs)
    rows = graphs.pairs.rows
    shape = (graphs.pairs.n_graphs, graphs.pairs.n_patterns)
    return sparse.csr_array((values, rows.indices, rows.offsets), shape=shape)


def same_counts(one: PatternHistograms, other: PatternHistograms) -> bool:
    """Whether two collections hold the same patterns, each graph by graph."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("n_nodes", "offsets", "graphs", "counts", "unseen")
    )


def _left_out_coefficients(posterior: ExactPosterior, alpha: np.ndarray, n_jobs: int) -> np.ndarray:
    """Row ``g``: every graph's coefficient in the process without graph ``g``, (n, n).

    ``alpha`` (n,) are the coefficients of one column with all graphs.
    """
    inverse = symmetric(inverse_in_place(posterior.factor.copy(), n_jobs))
    inverse *= -(alpha / np.diagonal(inverse))[:, None]
    inverse += alpha
    np.fill_diagonal(inverse, 0.0)
    return inverse


def _divided(
    decision: GaussianDecision, graphs: Features, coefficients: np.ndarray, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Effects aligned with the graphs' rows, and for each graph (base, decision, own slope)."""
    weights, basis, rows = decision.weights, decision.pairs, graphs.pairs.rows
    sums = pair_sums(graphs.pairs, basis, weights, n_jobs=n_jobs)
    known = graphs.pairs.diagonal(weights)
    unseen = np.maximum(graphs.diagonal - known, 0.0)
    ends = np.empty((len(sums), 3))
    rule = unit_interval_rule(_FEW_NODES if decision.model.scales.gamma <= _SMALL_GAMMA else 32)
    interleaved(
        lambda k, step: _compiled_fragments.mixture_path_rows(
            k, step, sums, known, unseen, decision.diagonal, coefficients,
            *decision.model.scales.as_tuple(), *rule, sums, ends,
        ),
        n_jobs,
    )  # fmt: skip
    values = np.empty(len(rows.indices))
    interleaved(
        lambda k, step: _compiled_fragments.pattern_sums_of_rows(
            k, step, rows.offsets, rows.indices, rows.values, basis.lists.offsets,
            basis.lists.indices, basis.lists.values, sums, values,
        ),
        n_jobs,
    )  # fmt: skip
    own = np.repeat(ends[:, 2], np.diff(rows.offsets)) * rows.values
    return weights[rows.indices] * (values + own), ends
