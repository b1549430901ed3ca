"""One graph of a collection, in plain Python terms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from treelens.graphs.recipe import GraphRecipe


@dataclass(frozen=True)
class Graph:
    """One graph of a collection, in plain Python terms.

    Attributes
    ----------
    node_labels : tuple
        The label of node 0, 1, ...
    edges : tuple of (int, int)
        Every edge once: (source, target), or of an undirected graph the smaller node first.
    edge_labels : tuple or None
        The label of each edge, in the order of ``edges``.
    name : hashable or None
    data : dict
        Further facts about the graph, such as ``"smiles"``.
    fine_labels : tuple or None
        Finer labels of the nodes, each of which implies the node label.
    recipe : GraphRecipe or None
        How the graph was made; not compared.
    node_attributes, edge_attributes : dict of str to tuple of float
        The numbers of each attribute, in the order of nodes or ``edges``; NaN where missing.
    directed : bool
    """

    node_labels: tuple[Any, ...]
    edges: tuple[tuple[int, int], ...]
    edge_labels: tuple[Any, ...] | None = None
    name: Hashable | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    fine_labels: tuple[Any, ...] | None = None
    recipe: GraphRecipe | None = field(default=None, compare=False, repr=False)
    node_attributes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    edge_attributes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    directed: bool = False

    @property
    def n_nodes(self) -> int:
        return len(self.node_labels)

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph`` or ``DiGraph`` with attributes and labels (``label``)."""
        try:
            import networkx as nx
        except ImportError as error:
            raise ImportError("to_networkx needs NetworkX: pip install networkx.") from error
        kind = nx.DiGraph if self.directed else nx.Graph
        graph = kind(name="" if self.name is None else str(self.name))
        graph.add_nodes_from(range(self.n_nodes))
        graph.add_edges_from(self.edges)
        for name, values in {**self.node_attributes, "label": self.node_labels}.items():
            nx.set_node_attributes(graph, dict(enumerate(values)), name)
        labels = {} if self.edge_labels is None else {"label": self.edge_labels}
        for name, values in {**self.edge_attributes, **labels}.items():
            nx.set_edge_attributes(graph, dict(zip(self.edges, values, strict=True)), name)
        return graph
