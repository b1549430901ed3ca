"""The constants that the bounds need: how steep, how curved and how large the pair loss can be.

The paper's Lemma 3 names two of them the wrong way round. As its own proof shows, the gradient of a
pair's loss is at most ``max ||Z||`` (the Lipschitz constant), and its second derivative at most
``max ||Z||² / sigma`` (the smoothness).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.pairwise.losses import smooth_hinge_different, smooth_hinge_same
from treelens.pairwise.objective import Margins, largest_pair_norm, pair_weights
from treelens.patterns.pairs import PairFeatures


@dataclass(frozen=True)
class LossConstants:
    """What is known of the loss of one pair as a function of the weights.

    Attributes
    ----------
    pair_norm : float
        ``max ||Z(i, j)||_2`` over all pairs, a graph with itself included.
    lipschitz : float
        No gradient is longer.
    smoothness : float
        No second derivative is larger.
    loss_bound : float
        No loss is larger; none is below 0.
    """

    pair_norm: float
    lipschitz: float
    smoothness: float
    loss_bound: float

    @property
    def largest_step(self) -> float:
        """The largest step that cannot drive two runs apart: ``2 / smoothness``."""
        return 2.0 / self.smoothness if self.smoothness > 0 else np.inf


def loss_constants(
    pair_norm: float,
    margins: Margins,
    *,
    largest_similarity: float | None = None,
    pair_factor: float = 1.0,
) -> LossConstants:
    """The constants of the pair loss.

    Parameters
    ----------
    pair_norm : float
        ``max ||Z(i, j)||_2``; see :func:`treelens.pairwise.objective.largest_pair_norm`.
    margins : Margins
    largest_similarity : float, optional
        The largest ``<W, Z>`` that occurs. By default at most ``b``, as the paper demands, so that
        distances lie in ``[0, b]``; with more they reach below 0, and the loss above the paper's
        ``M = max(b - sigma / 2 - alpha2, alpha1 - sigma / 2)``.
    pair_factor : float
        The largest factor of a pair in the objective; see :func:`largest_pair_factor`.

    Examples
    --------
    >>> constants = loss_constants(0.5, Margins(alpha1=1.0, alpha2=0.5, sigma=0.1))
    >>> constants.lipschitz, constants.smoothness, round(constants.loss_bound, 3)
    (0.5, 2.5, 0.95)
    """
    nearest = min(0.0, margins.b - largest_similarity) if largest_similarity is not None else 0.0
    # Where the margins are wider than sigma these are the linear pieces that M is made of.
    bound = max(
        float(smooth_hinge_same(np.array(margins.b), margins.alpha2, margins.sigma)),
        float(smooth_hinge_different(np.array(nearest), margins.alpha1, margins.sigma)),
    )
    return LossConstants(
        pair_norm=pair_norm,
        lipschitz=pair_factor * pair_norm,
        smoothness=pair_factor * pair_norm**2 / margins.sigma,
        loss_bound=pair_factor * bound,
    )


def constants_of(
    features: PairFeatures,
    margins: Margins,
    radii: np.ndarray,
    *,
    box: bool = False,
    pair_factor: float = 1.0,
) -> LossConstants:
    """The constants for given graphs, with all weights that the constraint allows.

    Parameters
    ----------
    features : PairFeatures
    margins : Margins
    radii : ndarray, shape (n_depths,)
    box : bool
        Whether the constraint is the box instead of the ball.
    pair_factor : float
    """
    return loss_constants(
        largest_pair_norm(features),
        margins,
        largest_similarity=reachable_similarity(features, radii, box=box),
        pair_factor=pair_factor,
    )


def reachable_similarity(features: PairFeatures, radii: np.ndarray, *, box: bool = False) -> float:
    """The most that ``<W, Z>`` can be for these graphs, over all weights of the constraint.

    For weights that are not negative ``<W, Z>`` is a kernel, so no pair exceeds the largest
    ``<W, Z(i, i)>``; and per depth ``<w, z> <= ||z||_1 + radius ||z||_2`` in the ball,
    ``(1 + radius) ||z||_1`` in the box.
    """
    n_depths = len(features.level_offsets) - 1
    rows = features.rows
    graph = np.repeat(np.arange(features.n_graphs), np.diff(rows.offsets))
    diagonal = rows.values if features.minimum else rows.values**2
    diagonal = diagonal * features.scale[graph] ** 2
    depth = np.searchsorted(features.level_offsets, rows.indices, side="right") - 1
    cell, n_cells = graph * n_depths + depth, features.n_graphs * n_depths
    sums = np.bincount(cell, weights=diagonal, minlength=n_cells).reshape(-1, n_depths)
    if box:
        return float((sums @ (1.0 + radii)).max(initial=0.0))
    squares = np.bincount(cell, weights=diagonal**2, minlength=n_cells).reshape(-1, n_depths)
    return float((sums.sum(axis=1) + np.sqrt(squares) @ radii).max(initial=0.0))


def largest_pair_factor(codes: np.ndarray, balance: bool) -> float:
    """How much more than in the plain mean over ordered pairs a pair can count.

    1 without balancing; with it the rarer kind of pair counts more.

    Examples
    --------
    >>> largest_pair_factor(np.array([0, 0, 0, 1]), balance=False)
    1.0
    >>> round(largest_pair_factor(np.array([0, 0, 0, 1]), balance=True), 3)  # 6 of 16 differ
    1.333
    """
    return 0.5 * float(len(codes)) ** 2 * max(pair_weights(codes, balance))
