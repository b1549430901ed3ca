"""Where to draw the nodes of a graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from treelens.explain import _compiled
from treelens.graphs.collection import Graph
from treelens.graphs.molecules import molecule_of

# Up to this size the positions are refined; the start alone must do for larger components.
_LARGEST_REFINED = 300
_REFINING_STEPS = 60
_MOST_PIVOTS = 60
_GAP = 1.0  # between components, in units of an edge


def node_positions(graph: Graph) -> np.ndarray:
    """Coordinates of the nodes, about one unit per edge, shape (n_nodes, 2).

    Molecules get the coordinates that RDKit draws them with. Other graphs are laid out so that
    distances on paper follow the number of steps between nodes (stress majorisation), each
    component by itself, side by side. The same graph always gets the same picture.

    Examples
    --------
    >>> left, right = node_positions(Graph(("a", "b"), ((0, 1),)))
    >>> round(float(np.hypot(*(right - left))), 6)
    1.0
    """
    if is_molecule(graph):
        return _molecule_positions(graph)
    return _pack(graph)


def is_molecule(graph: Graph) -> bool:
    """Whether the graph was read as a molecule, so that RDKit can draw it."""
    return "smiles" in graph.data or "mol" in graph.data


def _molecule_positions(graph: Graph) -> np.ndarray:
    from rdkit.Chem import rdDepictor

    molecule = molecule_of(graph)
    rdDepictor.Compute2DCoords(molecule)
    positions = np.array(molecule.GetConformer().GetPositions())[:, :2]
    # RDKit's bonds are 1.5 long and its y axis points up.
    return positions * [1.0, -1.0] / 1.5


def _pack(graph: Graph) -> np.ndarray:
    """Components side by side, the largest first."""
    u, v = np.array(graph.edges, dtype=np.int64).reshape(-1, 2).T
    shape = (graph.n_nodes, graph.n_nodes)
    arcs = sparse.csr_array((np.ones(len(u)), (u, v)), shape=shape)
    component = csgraph.connected_components(arcs, directed=False)[1]
    positions = np.zeros((graph.n_nodes, 2))
    left = 0.0
    for k in np.argsort(-np.bincount(component), kind="stable"):
        members = np.flatnonzero(component == k)
        placed = _component_positions(arcs, members)
        placed = placed - [placed[:, 0].min(), (placed[:, 1].min() + placed[:, 1].max()) / 2]
        positions[members] = placed + np.array([left, 0.0])
        left += placed[:, 0].max() + _GAP
    return positions


def _component_positions(arcs: sparse.csr_array, members: np.ndarray) -> np.ndarray:
    n = len(members)
    if n == 1:
        return np.zeros((1, 2))
    pivots = np.unique(np.linspace(0, n - 1, min(n, _MOST_PIVOTS)).astype(int))
    if n > _LARGEST_REFINED:
        return _upright(_scaled(_steps(arcs, members[pivots])[:, members].T))
    steps = _steps(arcs, members)[:, members]
    return _upright(_refined(_scaled(steps[:, pivots]), steps))


def _steps(arcs: sparse.csr_array, sources: np.ndarray) -> np.ndarray:
    """Steps along edges from some nodes to all, shape (n_sources, n_nodes)."""
    return csgraph.dijkstra(arcs, directed=False, indices=sources, unweighted=True)


def _scaled(steps: np.ndarray) -> np.ndarray:
    """Classical scaling against a few pivots: positions from ``steps`` (n, n_pivots)."""
    squares = steps**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    left, _, _ = np.linalg.svd(-0.5 * centred, full_matrices=False)
    axes = np.zeros((len(steps), 2))
    axes[:, : min(2, left.shape[1])] = left[:, :2]
    # Twins (such as the leaves of a star) would fall on one point and never part again.
    axes += 1e-2 * np.random.default_rng(0).standard_normal(axes.shape)
    spread = np.linalg.norm(axes, axis=1).max()
    return axes * (steps.max() / (2 * spread))


def _refined(positions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Minimise the stress ``sum (|x_i - x_j| - steps_ij)^2 / steps_ij^2`` by majorisation."""
    n = len(steps)
    with_self = steps + np.eye(n)  # avoids a division by zero; the diagonal counts for nothing
    weights = with_self**-2.0 - np.eye(n)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1.0 / n)
    return _compiled.majorised(positions.copy(), inverse, weights * steps, _REFINING_STEPS)


def _upright(positions: np.ndarray) -> np.ndarray:
    """Turn the long side to the horizontal, and take the same side up every time."""
    centred = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    first = np.abs(turned).argmax(axis=0)
    return turned * np.where(turned[first, [0, 1]] > 0, -1.0, 1.0)
