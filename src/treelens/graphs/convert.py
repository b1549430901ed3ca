"""``as_graph_collection``: graphs of any known kind as a ``GraphCollection``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs import foreign
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, NotGraphsError
from treelens.graphs.grakel_tuples import from_grakel
from treelens.graphs.recipe import GraphRecipe, check_agreement

_EXPECTED = (
    "a GraphCollection, or a list of NetworkX graphs, RDKit molecules, SMILES strings, PyTorch "
    "Geometric data, igraph graphs, treelens graphs, GraKeL graphs or tuples (edges, node_labels, "
    "edge_labels) or adjacency matrices, or the Path of an SDF"
)


def as_graph_collection(
    graphs: Any,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    recipe: GraphRecipe | None = None,
) -> GraphCollection:
    """Turn graphs of any known kind into a collection.

    Parameters
    ----------
    graphs : GraphCollection or iterable of graphs, all of one kind
        - a ``GraphCollection`` is returned as it is;
        - *NetworkX*: labels are the attribute ``label`` of nodes and edges;
        - *igraph*: likewise ``vs["label"]`` and ``es["label"]``;
        - *PyTorch Geometric* ``Data``: node labels are ``node_labels``, else ``x``; edge labels
          are ``edge_labels``, else ``edge_attr``. One-hot rows become the position of the one;
          other whole numbers stay, as tuples where there are several columns; other numbers are
          an error;
        - *RDKit* molecules and *SMILES* strings: elements and bond types;
        - *GraKeL* graphs, or ``(edges, node_labels, edge_labels)`` with edges as pairs, triples,
          a dict or an adjacency matrix; nodes that only the labels name are kept;
        - *adjacency matrices* ``A`` or ``(A, node_labels)``: arrays, SciPy's sparse matrices and
          arrays, lists of lists; labels are a list or a dict;
        - :class:`treelens.Graph`, the items of a collection;
        - the ``Path`` of an SDF, whose molecules are read as by :func:`treelens.read_smiles`.
    node_label, edge_label : str, optional
        Another attribute to take the labels from; for NetworkX, igraph and PyTorch Geometric.
    recipe : GraphRecipe, optional
        ``recipe_`` of a fitted model or ``recipe`` of another collection. Molecules are read in
        the same way, and labels taken from the same attributes. A collection with a recipe
        whose labels mean something else is an error.

    Notes
    -----
    Edges are undirected: of a directed graph, each arc counts as an edge, and two arcs in
    opposite directions as one. If no graph has node labels, degrees serve as labels, with a
    warning; if only some have, that is an error. Directions, edge weights and continuous node
    attributes are not used, and a warning says so.

    Examples
    --------
    >>> as_graph_collection([([("a", "b")], {"a": 1, "b": 2})])
    GraphCollection(1 graphs, 2 nodes, 1 edges, 2 node labels)
    >>> as_graph_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    """
    named = {"node_label": node_label, "edge_label": edge_label}
    if isinstance(graphs, GraphCollection):
        _refuse_names(named, "a GraphCollection, which has its labels")
        check_agreement(recipe, graphs.recipe)
        return graphs
    if isinstance(graphs, Path):
        _refuse_names(named, "molecules of a file")
        return _read_file(graphs, recipe)
    items = _listed(graphs)
    kind = kind_of(items[0])
    if kind is None:
        raise NotGraphsError(
            f"Expected {_EXPECTED}; item 0 is {described(items[0])}.{_about_none(items[0])}"
        )
    stray = next((i for i, item in enumerate(items) if not kind.recognises(item)), None)
    if stray is not None:
        raise NotGraphsError(
            f"Expected graphs of one kind; item 0 is {kind.name}, item {stray} is "
            f"{described(items[stray])}.{_about_none(items[stray])}"
        )
    if kind.takes_attributes:
        if recipe is not None:
            node_label = node_label or recipe.node_label
            edge_label = edge_label or recipe.edge_label
        return kind.convert(items, node_label, edge_label)
    _refuse_names(named, kind.name)
    if kind.are_molecules:
        return kind.convert(items, recipe)
    collection = kind.convert(items)
    check_agreement(recipe, collection.recipe)
    return collection


def as_single_graph(graph: Any, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return one graph of any known kind, or a list with one, as a collection of length 1.

    ``recipe`` is that of :func:`as_graph_collection`.

    Examples
    --------
    >>> len(as_single_graph("CCO"))
    1
    """
    listed = [graph] if kind_of(graph) is not None else graph
    collection = as_graph_collection(listed, recipe=recipe)
    if len(collection) != 1:
        raise GraphDataError(f"Expected one graph; got {len(collection)} of them.")
    return collection


# --- the kinds of graphs --------------------------------------------------------------------


class _Kind(NamedTuple):
    name: str
    recognises: Callable[[Any], bool]
    convert: Callable[..., GraphCollection]
    takes_attributes: bool = False
    are_molecules: bool = False


def _molecule_recipe(recipe: GraphRecipe | None, reader: str) -> GraphRecipe:
    return (recipe or GraphRecipe()).for_new_molecules(reader)


def _convert_smiles(items: Sequence[str], recipe: GraphRecipe | None) -> GraphCollection:
    from treelens.graphs.molecules import smiles_by_recipe

    return smiles_by_recipe(items, _molecule_recipe(recipe, "smiles"))


def _convert_molecules(items: Sequence[Any], recipe: GraphRecipe | None) -> GraphCollection:
    """Hydrogens of RDKit molecules are removed where the graphs of the recipe have none."""
    from treelens.graphs.gathering import rdkit
    from treelens.graphs.molecules import molecules_by_recipe
    from treelens.graphs.rdkit_log import quiet

    if recipe is not None and recipe.is_molecular and recipe.hydrogens is False:
        with quiet():
            items = [
                m if m.GetNumHeavyAtoms() == m.GetNumAtoms() else rdkit().RemoveHs(m) for m in items
            ]
    return molecules_by_recipe(items, _molecule_recipe(recipe, "rdkit"))


def _read_file(path: Path, recipe: GraphRecipe | None) -> GraphCollection:
    from treelens.graphs.molecules import molecules_of_table
    from treelens.graphs.sdf import read_sdf
    from treelens.graphs.tables import inner_suffix

    if inner_suffix(path) not in (".sdf", ".sd"):
        raise NotGraphsError(
            f"Expected {_EXPECTED}; got the path {path}. Read tables of molecules with "
            "treelens.read_smiles, which also returns the targets."
        )
    recipe = _molecule_recipe(recipe, "sdf")
    molecules, table = read_sdf(path, keep_hydrogens=bool(recipe.hydrogens))
    read = molecules_of_table(table, {"mol": molecules}, None, recipe=recipe, on_invalid="raise")
    assert read is not None, "only parts of a table may be empty"
    return read[0]


def _has(*attributes: str) -> Callable[[Any], bool]:
    return lambda item: all(hasattr(item, attribute) for attribute in attributes)


def _is_geometric(item: Any) -> bool:
    # A PyTorch Geometric data set also answers to ``edge_index``, through its __getattr__.
    return hasattr(type(item), "edge_index") or "edge_index" in getattr(item, "__dict__", {})


def _is_matrix(item: Any) -> bool:
    """Whether this is a square matrix of numbers."""
    shape: Any = getattr(item, "shape", ())
    kind = getattr(getattr(item, "dtype", None), "kind", "O")
    return len(shape) == 2 and shape[0] == shape[1] > 0 and kind in "iufb"


def _is_grakel(item: Any) -> bool:
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        return False
    structure, *labels = item
    if _is_matrix(structure) and labels and _is_one_axis(labels[0]):
        del labels[0]
    return _is_structure(structure) and all(x is None or isinstance(x, Mapping) for x in labels)


def _is_one_axis(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or len(getattr(value, "shape", ())) == 1


def _is_structure(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    if hasattr(value, "shape"):
        return len(value.shape) == 2
    if not isinstance(value, (list, set, frozenset)):
        return False
    first = next(iter(value), None)
    if isinstance(first, list):
        return all(isinstance(x, (int, float, np.number)) for x in first)
    return first is None or isinstance(first, tuple)


_KINDS = (
    _Kind("a treelens Graph", lambda x: isinstance(x, Graph), foreign.from_treelens),
    _Kind("a SMILES string", lambda x: isinstance(x, str), _convert_smiles, are_molecules=True),
    _Kind(
        "an RDKit molecule", _has("GetAtoms", "GetBonds"), _convert_molecules, are_molecules=True
    ),
    _Kind("a NetworkX graph", _has("nodes", "edges", "adj"), foreign.from_networkx, True),
    _Kind("an igraph graph", _has("vs", "es", "get_edgelist"), foreign.from_igraph, True),
    _Kind("PyTorch Geometric data", _is_geometric, foreign.from_geometric, True),
    _Kind("a GraKeL tuple", _is_grakel, from_grakel),
    _Kind(
        "a GraKeL graph",
        _has("get_vertices", "get_edges", "get_labels"),
        from_grakel,
    ),
    _Kind("an adjacency matrix", _is_matrix, from_grakel),
)


def kind_of(item: Any) -> _Kind | None:
    return next((kind for kind in _KINDS if kind.recognises(item)), None)


# --- what is not a list of graphs -----------------------------------------------------------


def _listed(graphs: Any) -> list[Any]:
    if isinstance(graphs, (set, frozenset)):
        raise NotGraphsError(
            "Expected a list of graphs; got a set, which has no order, so that results could not "
            "be matched with graphs. Pass a list."
        )
    if isinstance(graphs, np.ma.MaskedArray):
        raise NotGraphsError(
            "Expected a list of graphs; got a masked array. Leave the masked entries out: "
            "graphs.compressed()."
        )
    if isinstance(graphs, list) and graphs and all(map(_is_matrix, graphs)):
        return graphs
    single = kind_of(graphs)
    if isinstance(graphs, str):
        _refuse_path(graphs)
    if single is not None:
        raise NotGraphsError(
            f"Expected a list of graphs; got {single.name} by itself ({described(graphs)}). Wrap "
            "it in a list: [graph]."
        )
    from treelens.graphs.blocks import holds_blocks

    not_one_axis = len(getattr(graphs, "shape", (0,))) != 1
    numeric = isinstance(graphs, np.ndarray) and graphs.dtype != object
    text = numeric and graphs.dtype.kind in "UT" and graphs.ndim == 1
    not_a_list = isinstance(graphs, (Mapping, bytes)) or not isinstance(graphs, Iterable)
    not_graphs = not_one_axis or not_a_list or (numeric and not text)
    if hasattr(graphs, "load") or (not not_graphs and holds_blocks(graphs)):
        raise NotGraphsError(
            f"Expected graphs; got blocks of them ({type(graphs).__name__}). Blocks go to fit of "
            "GraphClassifier and GraphRegressor, and to predict, predict_proba and "
            "decision_function. The graphs of a block are part.load().graphs, or the first item of "
            "a pair (graphs, y)."
        )
    if not_graphs:
        raise NotGraphsError(f"Expected {_EXPECTED}; got {described(graphs)}.")
    items = graphs.tolist() if isinstance(graphs, np.ndarray) else list(graphs)
    if not items:
        raise GraphDataError("Expected at least one graph; got none (0 graphs).")
    return items


def _refuse_path(text: str) -> None:
    """Raise where a text is a path rather than a SMILES."""
    from treelens.graphs.sdf import SDF_ENDINGS
    from treelens.graphs.tables import TABLE_ENDINGS, inner_suffix

    endings = (*TABLE_ENDINGS, *SDF_ENDINGS, ".treelens")
    if inner_suffix(Path(text)) in endings or os.path.isfile(text):  # of any length, unlike Path's
        raise NotGraphsError(
            f"Expected a list of graphs; got {described(text)}, which looks like a path. Tables of "
            "molecules are read by treelens.read_smiles, or in parts by treelens.SmilesBlocks; an "
            "SDF is given as a pathlib.Path; treelens.load opens a model."
        )


def _about_none(item: Any) -> str:
    if item is not None:
        return ""
    return " RDKit gives None for a molecule that it cannot read: leave it out."


def described(value: Any) -> str:
    kind = type(value).__name__
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    shown = repr(value)
    return f"{kind} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _refuse_names(named: Mapping[str, str | None], what: str) -> None:
    for parameter, value in named.items():
        if value is not None:
            raise GraphDataError(
                f"{parameter}={value!r} names an attribute of NetworkX, igraph or PyTorch "
                f"Geometric graphs; these graphs are {what}. Leave {parameter} out."
            )


def check_graphs(X: Any, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return graphs of any known kind as a collection, which must not be empty.

    ``recipe`` is that of the training graphs, by which molecules are read; a collection with a
    recipe that does not agree is an error.
    """
    graphs = as_graph_collection(X, recipe=recipe)
    if not len(graphs):
        raise GraphDataError("There are 0 graphs: at least one is needed.")
    return graphs
