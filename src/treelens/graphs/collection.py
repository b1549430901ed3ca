"""``GraphCollection``, many graphs as frozen arrays, and ``Graph``, one in plain Python terms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from treelens.array_checks import check_array, check_offsets
from treelens.errors import GraphDataError
from treelens.graphs.kinds import GraphRecipe, picture_of

if TYPE_CHECKING:
    import pandas as pd

# The arrays of a collection: their types, and what they have one row for each of.
_ARRAYS: dict[str, tuple[Any, str]] = {
    "node_offsets": (np.int64, ""),
    "neighbor_offsets": (np.int64, ""),
    "neighbors": (np.int32, "arc"),
    "node_codes": (np.int32, "node"),
    "edge_codes": (np.int32, "arc"),
    "fine_codes": (np.int32, "node"),
    "directions": (np.int8, "arc"),
    "node_attributes": (np.float64, "node"),
    "edge_attributes": (np.float64, "arc"),
    "names": (object, "graph"),
}
_ALPHABETS = {
    "node_codes": "node_alphabet",
    "fine_codes": "fine_alphabet",
    "edge_codes": "edge_alphabet",
}
_MOST_SHOWN = 6  # labels of a graph that is printed
_LARGEST_DRAWN = 400  # nodes


@dataclass(frozen=True, repr=False)
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
    degree_labels : bool
        Whether the node labels are degrees because the graph came without labels.
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
    degree_labels: bool = False

    @property
    def n_nodes(self) -> int:
        return len(self.node_labels)

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        labels = ", ".join(map(str, self.node_labels[:_MOST_SHOWN]))
        labels += ", ..." if self.n_nodes > _MOST_SHOWN else ""
        return f"Graph({self.n_nodes} nodes, {len(self.edges)} edges, labels {labels}{named})"

    def _repr_html_(self) -> str | None:
        return picture_of(self) if 0 < self.n_nodes <= _LARGEST_DRAWN else None

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph`` or ``DiGraph`` with attributes and labels (``label``)."""
        import networkx as nx

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


@dataclass(frozen=True, eq=False, repr=False)
class GraphCollection:
    """Many labelled graphs, with or without direction, in a few immutable arrays.

    Node ``i`` of graph ``g`` is row ``node_offsets[g] + i`` of the node arrays. The neighbours of
    that row are ``neighbors[neighbor_offsets[row]:neighbor_offsets[row + 1]]``, ascending and
    numbered *within the graph*, so that graphs can be picked without renumbering.
    ``len(neighbors)`` is called ``n_arcs``.

    Build one with :func:`treelens.as_graph_collection`, :func:`treelens.read_smiles` or
    :func:`treelens.graphs.build.build_collection` rather than by hand.

    Parameters
    ----------
    node_offsets : array of int, shape (n_graphs + 1,)
    neighbor_offsets : array of int, shape (n_nodes + 1,)
    neighbors : array of int, shape (n_arcs,)
        Every edge is listed at both of its ends; an undirected self-loop once.
    node_codes, edge_codes : array of int, shape (n_nodes,) and (n_arcs,)
        Positions in ``node_alphabet`` and, optionally, in ``edge_alphabet``.
    node_alphabet, edge_alphabet : tuple
        The labels.
    names : sequence, optional
        One per graph.
    graph_data : mapping of str to sequence, optional
        More per-graph facts (for example ``"smiles"``); they are cut along with the graphs.
    degree_labels : bool
        Whether the node labels are degrees because the graphs came without labels.
    recipe : GraphRecipe, optional
        What made the graphs; None where that is not known.
    fine_codes, fine_alphabet : array of int, shape (n_nodes,), and tuple, optional
        Finer labels of the nodes, each of which implies the node label (of molecules, the element
        with its charge, hydrogens and ring).
    node_attributes, edge_attributes : array of float, shape (n_nodes or n_arcs, n_names), optional
        Numbers of the nodes and edges, with NaN where one is missing.
    attribute_names, edge_attribute_names : sequence of str
        One for each column.
    directions : array of int, shape (n_arcs,), optional
        Of directed graphs, 0 where the edge leads to the neighbour and 1 where it comes from it;
        the neighbours of a node are sorted by number, then by this.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> len(graphs), graphs.n_nodes
    (1, 3)
    >>> graphs[0].edges
    ((0, 1), (1, 2))
    """

    node_offsets: np.ndarray
    neighbor_offsets: np.ndarray
    neighbors: np.ndarray
    node_codes: np.ndarray
    node_alphabet: tuple[Any, ...]
    edge_codes: np.ndarray | None = None
    edge_alphabet: tuple[Any, ...] | None = None
    names: np.ndarray | None = None
    graph_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    degree_labels: bool = False
    recipe: GraphRecipe | None = None
    _: KW_ONLY
    fine_codes: np.ndarray | None = None
    fine_alphabet: tuple[Any, ...] | None = None
    node_attributes: np.ndarray | None = None
    attribute_names: tuple[str, ...] = ()
    edge_attributes: np.ndarray | None = None
    edge_attribute_names: tuple[str, ...] = ()
    directions: np.ndarray | None = None
    _known_good: InitVar[bool] = False

    def __post_init__(self, _known_good: bool) -> None:
        for codes, alphabet in _ALPHABETS.items():
            if (getattr(self, codes) is None) != (getattr(self, alphabet) is None):
                raise GraphDataError(f"Give {codes} and {alphabet} together, or neither.")
        values: dict[str, Any] = {
            name: _frozen(getattr(self, name), name, dtype) for name, (dtype, _) in _ARRAYS.items()
        }
        for name in (*_ALPHABETS.values(), "attribute_names", "edge_attribute_names"):
            given = getattr(self, name)
            values[name] = None if given is None else tuple(given)
        data = {key: _frozen(x, key, object) for key, x in (self.graph_data or {}).items()}
        for name, value in {**values, "graph_data": MappingProxyType(data)}.items():
            object.__setattr__(self, name, value)
        if not _known_good:
            self._check_arrays()
            self._check_neighbors()
            self._check_attributes()

    def __reduce__(self) -> Any:
        arguments = {field.name: getattr(self, field.name) for field in fields(self)}
        arguments["graph_data"] = {key: np.array(x) for key, x in self.graph_data.items()}
        return partial(GraphCollection, **arguments), ()

    def _check_arrays(self) -> None:
        """Raise where compiled loops, which do not check bounds, would go wrong."""
        if not len(self.node_offsets):
            raise GraphDataError("node_offsets must ascend from 0 to the number of nodes.")
        n_graphs, n_nodes, n_arcs = len(self), self.n_nodes, len(self.neighbors)
        lengths = {"node": n_nodes, "arc": n_arcs, "graph": n_graphs}
        n_codes = {name: len(getattr(self, labels) or ()) for name, labels in _ALPHABETS.items()}
        n_codes["directions"] = 2
        arrays = [(name, getattr(self, name), lengths.get(of)) for name, (_, of) in _ARRAYS.items()]
        arrays += [(f"graph_data[{key!r}]", x, n_graphs) for key, x in self.graph_data.items()]
        try:
            check_offsets(self.node_offsets, "node_offsets", n_graphs, n_nodes)
            check_offsets(self.neighbor_offsets, "neighbor_offsets", n_nodes, n_arcs)
            for name, array, length in arrays:
                if array is not None:
                    bounds = (0, n_codes[name]) if name in n_codes else ()
                    check_array(array, name, array.dtype, (length, *array.shape[1:]), *bounds)
        except ValueError as error:
            raise GraphDataError(f"{error}.") from error

    def _check_neighbors(self) -> None:
        """Neighbours must be nodes of the same graph, ascending."""
        neighbors, offsets = self.neighbors, self.neighbor_offsets
        n_arcs = np.diff(offsets[self.node_offsets])  # of every graph
        wrong = (neighbors < 0) | (neighbors >= np.repeat(self.sizes, n_arcs))
        keys = neighbors
        if self.directions is not None:
            keys = 2 * neighbors.astype(np.int64) + self.directions
        falls = keys[1:] <= keys[:-1]
        firsts = offsets[1:-1]  # where the neighbours of the next node begin
        falls[firsts[(firsts > 0) & (firsts < len(neighbors))] - 1] = False
        wrong[:-1] |= falls
        if wrong.any():
            graph = int(np.searchsorted(np.cumsum(n_arcs), wrong.argmax(), side="right"))
            raise GraphDataError(
                f"neighbors of graph {graph} must be nodes of that graph, and ascend at each node."
            )

    def _check_attributes(self) -> None:
        """Attributes must have a name each, and no infinite values."""
        for what, table, names, first in (
            ("node", self.node_attributes, self.attribute_names, self.node_offsets),
            (
                "edge",
                self.edge_attributes,
                self.edge_attribute_names,
                self.neighbor_offsets[self.node_offsets],
            ),
        ):
            n_columns = 0 if table is None else table.shape[1]
            if len(names) != n_columns or len(set(names)) < n_columns:
                raise GraphDataError(f"{n_columns} {what} attributes: give each a name of its own.")
            if table is not None and (wrong := np.argwhere(np.isinf(table))).size:
                row, column = wrong[0].tolist()
                raise GraphDataError(
                    f"Graph {np.searchsorted(first, row, side='right') - 1}: the {what} attribute "
                    f"{names[column]!r} has the value {table[row, column]}; NaN is for missing."
                )

    # --- size -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def shape(self) -> tuple[int]:
        """``(n_graphs,)``, as scikit-learn's splitters need it."""
        return (len(self),)

    @property
    def n_nodes(self) -> int:
        """Number of nodes in all graphs together."""
        return int(self.node_offsets[-1])

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.directions is not None

    @property
    def n_edges(self) -> int:
        """Number of edges in all graphs together, a self-loop counted once."""
        return (len(self.neighbors) + (0 if self.directed else self.n_self_loops)) // 2

    @property
    def n_self_loops(self) -> int:
        within = np.arange(self.n_nodes) - np.repeat(self.node_offsets[:-1], self.sizes)
        owner = np.repeat(within, np.diff(self.neighbor_offsets))
        return int(np.count_nonzero(owner == self.neighbors))

    @property
    def sizes(self) -> np.ndarray:
        """Number of nodes of each graph, shape (n_graphs,)."""
        return np.diff(self.node_offsets)

    def __repr__(self) -> str:
        edge = "" if self.edge_alphabet is None else f", {len(self.edge_alphabet)} edge labels"
        counts = [("node", len(self.attribute_names)), ("edge", len(self.edge_attribute_names))]
        more = "".join(f", {n} {what} attributes" for what, n in counts if n)
        return (
            f"GraphCollection({len(self)} graphs, {self.n_nodes} nodes, {self.n_edges} "
            f"{'directed ' if self.directed else ''}edges, "
            f"{len(self.node_alphabet)} node labels{edge}{more})"
        )

    # --- picking graphs -------------------------------------------------------------------

    @overload
    def __getitem__(self, key: int | np.integer) -> Graph: ...
    @overload
    def __getitem__(
        self, key: slice | Sequence[Any] | np.ndarray | pd.Series | pd.Index
    ) -> GraphCollection: ...
    def __getitem__(self, key: object) -> Graph | GraphCollection:
        """A ``Graph`` for an integer, a ``GraphCollection`` for anything that picks several."""
        if isinstance(key, tuple):  # scikit-learn writes X[indices, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("A GraphCollection has one axis: use graphs[indices].")
            key = key[0]
        if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
            if not -len(self) <= key < len(self):
                raise IndexError(f"Graph {key} does not exist: there are {len(self)} graphs.")
            return self._graph(int(key) % len(self))
        if not isinstance(key, slice):
            key = np.asarray(key)
            key = key if key.size else key.astype(np.int64)
            if key.ndim != 1:
                raise IndexError(f"A GraphCollection has one axis; the index is {key.shape}.")
        return self._gather(np.arange(len(self))[key])

    def __iter__(self) -> Iterator[Graph]:
        return (self._graph(i) for i in range(len(self)))

    def _graph(self, index: int) -> Graph:
        first, last = self.node_offsets[index], self.node_offsets[index + 1]
        start, stop = self.neighbor_offsets[first], self.neighbor_offsets[last]
        owner = np.repeat(np.arange(last - first), np.diff(self.neighbor_offsets[first : last + 1]))
        once = owner <= self.neighbors[start:stop]
        once = once if self.directions is None else self.directions[start:stop] == 0
        nodes, edges = slice(first, last), np.arange(start, stop)[once]

        def labels(
            codes: np.ndarray | None, alphabet: Sequence[object] | None, rows: slice | np.ndarray
        ) -> Any:
            return (
                None
                if codes is None or alphabet is None
                else tuple(alphabet[code] for code in codes[rows].tolist())
            )

        def columns(
            table: np.ndarray | None, names: tuple[str, ...], rows: slice | np.ndarray
        ) -> dict[str, Any]:
            values = () if table is None else table[rows].T.tolist()
            return {name: tuple(column) for name, column in zip(names, values, strict=True)}

        return Graph(
            labels(self.node_codes, self.node_alphabet, nodes),
            tuple(zip(owner[once].tolist(), self.neighbors[edges].tolist(), strict=True)),
            labels(self.edge_codes, self.edge_alphabet, edges),
            None if self.names is None else self.names[index],
            {key: x[index] for key, x in self.graph_data.items()},
            labels(self.fine_codes, self.fine_alphabet, nodes),
            self.recipe,
            columns(self.node_attributes, self.attribute_names, nodes),
            columns(self.edge_attributes, self.edge_attribute_names, edges),
            self.directed,
            self.degree_labels,
        )

    def _gather(self, indices: np.ndarray) -> GraphCollection:
        """Return any choice of graphs; their arrays were checked before."""
        node_offsets, nodes = _ranges(self.node_offsets, indices)
        neighbor_offsets, arcs = _ranges(self.neighbor_offsets, nodes)
        rows = {"node": nodes, "arc": arcs, "graph": indices}
        changes: dict[str, Any] = {
            name: values[rows[of]]
            for name, (_, of) in _ARRAYS.items()
            if of and (values := getattr(self, name)) is not None
        }
        changes["graph_data"] = {key: x[indices] for key, x in self.graph_data.items()}
        changes |= {"node_offsets": node_offsets, "neighbor_offsets": neighbor_offsets}
        return replace(self, **changes, _known_good=True)

    def with_names(self, names: Sequence[Any] | np.ndarray | None) -> GraphCollection:
        """Return the same graphs with other names."""
        return replace(self, names=_frozen(names, "names", object))

    def with_data(self, columns: Mapping[Any, Any] | pd.DataFrame) -> GraphCollection:
        """Return the same graphs with more ``graph_data``: a mapping or DataFrame of columns.

        Examples
        --------
        >>> from treelens import as_graph_collection
        >>> graphs = as_graph_collection([([(0, 1)], {0: "C", 1: "O"})])
        >>> graphs.with_data({"temperature": [298.0]}).graph_data["temperature"].tolist()
        [298.0]
        """
        more = {str(name): np.asarray(columns[name], dtype=object) for name in columns}
        return replace(self, graph_data={**self.graph_data, **more})

    def renamed(
        self,
        *,
        node_labels: Mapping[Any, Any] | None = None,
        edge_labels: Mapping[Any, Any] | None = None,
        node_attributes: Sequence[str] | None = None,
        edge_attributes: Sequence[str] | None = None,
    ) -> GraphCollection:
        """Return the same graphs with other names of labels and attributes.

        Patterns, fragments and drawings show these names. Do the same with new graphs before a
        model predicts them, for the labels are what it knows patterns by.

        Parameters
        ----------
        node_labels, edge_labels : mapping, optional
            From labels to their names, such as ``{0: "helix", 1: "sheet"}``. Labels that are not in
            it keep theirs; the names must differ from each other.
        node_attributes, edge_attributes : sequence of str, optional
            A name for each column, in their order. Nodes with attributes ``"x"`` and ``"y"`` are
            drawn there.

        Examples
        --------
        >>> from treelens import as_graph_collection
        >>> graphs = as_graph_collection([([(0, 1)], {0: 6, 1: 8})])
        >>> graphs.renamed(node_labels={6: "C", 7: "N", 8: "O"})[0].node_labels
        ('C', 'O')
        """
        if node_labels and self.degree_labels:
            raise GraphDataError("The node labels are degrees, which have no other names.")
        changes: dict[str, Any] = {}
        of_recipe: dict[str, Any] = {}  # attributes are found by it in new graphs
        for what, names in (("node", node_labels), ("edge", edge_labels)):
            if names:
                known = getattr(self, f"{what}_alphabet") or ()
                changes[f"{what}_alphabet"] = _renamed(known, names, what)
        for what, columns in (("node", node_attributes), ("edge", edge_attributes)):
            if columns is not None:
                changes["attribute_names" if what == "node" else "edge_attribute_names"] = columns
                of_recipe[f"{what}_attributes"] = tuple(columns)
        return replace(self, **changes, recipe=self.recipe and replace(self.recipe, **of_recipe))

    def relabelled(
        self, node_codes: np.ndarray, node_alphabet: Sequence[Any], **changes: Any
    ) -> GraphCollection:
        """Return the same graphs with other node labels, and without fine ones."""
        return replace(
            self,
            node_codes=node_codes,
            node_alphabet=tuple(node_alphabet),
            degree_labels=False,
            fine_codes=None,
            fine_alphabet=None,
            **changes,
        )


def _renamed(labels: Sequence[Any], names: Mapping[Any, Any], what: str) -> tuple[Any, ...]:
    """Return labels with the names of some of them."""
    if not any(label in names for label in labels):
        shown = ", ".join(repr(label) for label in labels[:_MOST_SHOWN]) or "none"
        raise GraphDataError(
            f"No {what} label has a new name: there are {shown}, and names for "
            f"{', '.join(repr(label) for label in [*names][:_MOST_SHOWN])}."
        )
    found = [names.get(label, label) for label in labels]
    twice = next((name for k, name in enumerate(found) if name in found[:k]), None)
    if twice is not None or not all(map(_is_label, found)):
        raise GraphDataError(
            f"The {what} labels would not differ any more, or one would be missing: give each a "
            f"name of its own{'' if twice is None else f' ({twice!r} stands twice)'}."
        )
    return tuple(found)


def _frozen(values: Iterable[Any] | None, name: str, dtype: type) -> np.ndarray | None:
    """Return a read-only array; copies only what the caller could still write to."""
    if values is None:
        return None
    if dtype is not object:
        array, whole = np.asarray(values), dtype is not np.float64
        n_axes, kinds, what = (1, "iu", "integers") if whole else (2, "iufb", "numbers")
        if array.ndim != n_axes or (array.size and array.dtype.kind not in kinds):
            raise GraphDataError(
                f"{name} must be {what} with {n_axes} axes; got {array.dtype}, shape {array.shape}."
            )
        limits = np.iinfo(dtype if whole else np.int64)
        if whole and array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise GraphDataError(f"{name} must fit into {limits.dtype}.")
    elif isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        array = values
    else:  # also of values that are sequences themselves
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
        array = np.fromiter(listed, dtype=object, count=len(listed))
    result: np.ndarray = np.ascontiguousarray(array, dtype=dtype)
    if result.flags.writeable:
        result = result.view() if result is not array else result.copy()
        result.flags.writeable = False
    return result


def _ranges(offsets: np.ndarray, picks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New offsets and the flat positions of ``offsets[p]:offsets[p + 1]`` for each pick."""
    lengths = offsets[picks + 1] - offsets[picks]
    new_offsets = np.zeros(len(picks) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new_offsets[1:])
    flat = np.arange(new_offsets[-1], dtype=np.int64)
    flat += np.repeat(offsets[picks] - new_offsets[:-1], lengths)
    return new_offsets, flat


def encode_labels(
    labels: Sequence[Hashable] | np.ndarray,
    place: Callable[[int], str] = lambda position: f"label {position}",
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return a code for every label, and the different labels; ``place`` is for messages."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iub":
        values, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int32), tuple(values.tolist())
    labels = labels.tolist() if isinstance(labels, np.ndarray) else labels
    with _comparing(labels):
        bad = next((i for i, label in enumerate(labels) if not _is_label(label)), None)
        if bad is not None:
            raise GraphDataError(
                f"{place(bad)} is {labels[bad]!r:.80}, of type {type(labels[bad]).__name__}: "
                "labels must be hashable, and not missing. Turn lists into tuples, None into "
                "'unknown'."
            )
        alphabet = list(dict.fromkeys(labels))
        with suppress(TypeError):  # labels of mixed kinds keep their order of appearance
            alphabet = sorted(alphabet)
        code_of = {label: code for code, label in enumerate(alphabet)}
        return np.array([code_of[label] for label in labels], dtype=np.int32), tuple(alphabet)


@contextmanager
def _comparing(labels: Iterable[Any]) -> Iterator[None]:
    """Say so where labels of a class of the user's cannot be compared or hashed."""
    try:
        yield
    except GraphDataError:
        raise
    except Exception as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise GraphDataError(
            f"Labels of the types {', '.join(kinds)} cannot be compared with each other "
            f"({type(error).__name__}: {error!s:.80}). Turn them into texts or numbers."
        ) from error


def _is_label(value: object) -> bool:
    try:
        hash(value)
        return value is not None and bool(value == value)
    except (TypeError, ValueError):  # unhashable, or == gives no single truth value
        return False


def translate_codes(
    codes: np.ndarray, alphabet: tuple[Any, ...], reference: tuple[Any, ...]
) -> np.ndarray:
    """Translate codes of one alphabet into codes of another; unknown labels become -1."""
    with _comparing((*alphabet, *reference)):
        if alphabet == reference:
            return codes
        position = {label: code for code, label in enumerate(reference)}
        table = np.array([position.get(label, -1) for label in alphabet], dtype=np.int32)
    return table[codes] if len(codes) else codes


def check_attributes(
    graphs: GraphCollection, names: Sequence[str], edge_names: Sequence[str] = ()
) -> GraphCollection:
    """Return the graphs with the attributes of a model only; raise where one of them is missing."""
    changes: dict[str, Any] = {}
    for what, expected, given, table in (
        ("node", tuple(names), graphs.attribute_names, graphs.node_attributes),
        ("edge", tuple(edge_names), graphs.edge_attribute_names, graphs.edge_attributes),
    ):
        missing = [name for name in expected if name not in given]
        if missing:
            listed = ", ".join(map(repr, given)) or "none"
            raise GraphDataError(
                f"These graphs have no {what} attribute {missing[0]!r}, which the model was fitted "
                f"to (they have {listed}): read them with the same {what}_attributes."
            )
        if given != expected:
            picked = None if table is None else table[:, [given.index(name) for name in expected]]
            changes[f"{what}_attributes"] = picked if expected else None
            changes["attribute_names" if what == "node" else "edge_attribute_names"] = expected
    return replace(graphs, **changes) if changes else graphs
