"""Positions of the nodes of a graph in a drawing."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from treelens.graphs.collection import Graph
from treelens.graphs.molecules import molecule_of
from treelens.parallel import one_blas_thread

_LARGEST_REFINED = 300  # nodes; larger components keep the positions of classical scaling
_REFINING_STEPS = 60
_MOST_PIVOTS = 60
_COORDINATES = ("x", "y"), ("pos 1", "pos 2")  # names of attributes
_GAP = 1.0  # between components, in units of an edge


def is_molecule(graph: Graph) -> bool:
    """Whether the graph was read as a molecule, so that RDKit can draw it."""
    return "smiles" in graph.data or "mol" in graph.data


def node_positions(graph: Graph) -> np.ndarray:
    """Coordinates of the nodes, about one unit per edge, shape (n_nodes, 2).

    Molecules get the coordinates that RDKit draws them with. Graphs whose nodes have the attributes
    ``x`` and ``y`` (or ``pos 1`` and ``pos 2``) stay where these put them. Others are laid out so
    that distances in the drawing follow the number of steps between nodes (stress majorisation),
    each component by itself, side by side, the largest first. The same graph always gets the same
    positions.

    Examples
    --------
    >>> left, right = node_positions(Graph(("a", "b"), ((0, 1),)))
    >>> round(float(np.hypot(*(right - left))), 6)
    1.0
    """
    if is_molecule(graph):
        from rdkit.Chem import rdDepictor

        molecule = molecule_of(graph)
        rdDepictor.Compute2DCoords(molecule)
        # RDKit's bonds are 1.5 long and its y axis points up.
        return np.array(molecule.GetConformer().GetPositions())[:, :2] * [1.0, -1.0] / 1.5
    u, v = np.array(graph.edges, dtype=np.int64).reshape(-1, 2).T
    placed = coordinates(graph)
    if placed is not None:
        given = np.array(list(placed.values())).T * [1.0, -1.0]  # y upwards
        lengths = np.hypot(*(given[u] - given[v]).T)
        lengths = lengths[lengths > 0.0]
        return given / (np.median(lengths) if len(lengths) else 1.0)
    shape = (graph.n_nodes, graph.n_nodes)
    arcs = sparse.csr_array((np.ones(len(u)), (u, v)), shape=shape)
    component = csgraph.connected_components(arcs, directed=False)[1]
    positions, left = np.zeros((graph.n_nodes, 2)), 0.0
    for k in np.argsort(-np.bincount(component), kind="stable"):
        members = np.flatnonzero(component == k)
        with one_blas_thread():
            part = _component_positions(arcs, members)
        part -= [part[:, 0].min(), (part[:, 1].min() + part[:, 1].max()) / 2]
        positions[members] = part + np.array([left, 0.0])
        left += part[:, 0].max() + _GAP
    return positions


def coordinates(graph: Graph) -> dict[str, tuple[float, ...]] | None:
    """Attributes that say where nodes are; None where there are none, or one is missing."""
    for names in _COORDINATES:
        if graph.n_nodes and all(name in graph.node_attributes for name in names):
            values = np.array([graph.node_attributes[name] for name in names])  # (2, n_nodes)
            if np.isfinite(values).all() and np.ptp(values, axis=1).any():
                return {name: tuple(row) for name, row in zip(names, values.tolist(), strict=True)}
    return None


def _component_positions(arcs: sparse.csr_array, members: np.ndarray) -> np.ndarray:
    """Positions of the nodes of one component, the long side horizontal."""
    n = len(members)
    if n == 1:
        return np.zeros((1, 2))
    pivots = np.unique(np.linspace(0, n - 1, min(n, _MOST_PIVOTS)).astype(int))
    sources = members if n <= _LARGEST_REFINED else members[pivots]
    steps = csgraph.dijkstra(arcs, directed=False, indices=sources, unweighted=True)[:, members].T
    if n <= _LARGEST_REFINED:
        positions = _refined(_scaled(steps[:, pivots]), steps)
    else:
        positions = _scaled(steps)
    centred = positions - positions.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    farthest = np.abs(turned).argmax(axis=0)
    return turned * np.where(turned[farthest, [0, 1]] > 0, -1.0, 1.0)


def _scaled(steps: np.ndarray) -> np.ndarray:
    """Positions by classical scaling against a few pivots, from ``steps`` (n, n_pivots)."""
    squares = steps**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    left = np.linalg.svd(-0.5 * centred, full_matrices=False)[0]
    axes = np.zeros((len(steps), 2))
    axes[:, : min(2, left.shape[1])] = left[:, :2]
    # The leaves of a star would fall on one point and never part again.
    axes += 1e-2 * np.random.default_rng(0).standard_normal(axes.shape)
    return axes * (steps.max() / (2 * np.linalg.norm(axes, axis=1).max()))


def _refined(positions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Minimise the stress ``sum (|x_i - x_j| - steps_ij)^2 / steps_ij^2`` by majorisation."""
    n = len(steps)
    weights = (steps + np.eye(n)) ** -2.0 - np.eye(n)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / n)
    springs, z = weights * steps, positions @ [1.0, 1.0j]
    for _ in range(_REFINING_STEPS):
        pulls = springs / np.maximum(np.abs(z[:, None] - z), 1e-9)
        z = inverse @ (pulls.sum(axis=1) * z - pulls @ z)
    return np.column_stack([z.real, z.imag])
