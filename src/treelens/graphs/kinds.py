"""What is known of some graphs beyond their nodes and edges, and who knows it.

The core learns from graphs of any kind. What else can be said of a kind of graphs (how they are
read, told apart, drawn and named) is a :class:`GraphKind` that a package registers. That for
molecules, ``treelens.chem``, is imported when the first graphs come in; no module of the core
imports it. How graphs were read is a :class:`GraphRecipe`, so that new ones are read alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from treelens.errors import GraphDataError
from treelens.json_values import plain

if TYPE_CHECKING:
    from treelens.explain.fragment_search import ExplainedGraphs, Fragment
    from treelens.graphs.collection import Graph, GraphCollection
    from treelens.graphs.tables import Table

# Modules that register a kind of graphs when they are imported. They import no large library.
PLUGINS = ("treelens.chem.kind",)

_PICTURES = "treelens.explain.draw"  # imported when the first graph is shown in a notebook

# Names of columns that are computed from graphs begin with it, as in "rdkit:MolLogP".
DESCRIPTOR_PREFIX = "rdkit:"

Color = tuple[float, float, float]


class InputKind(NamedTuple):
    """One kind of objects that graphs are read from."""

    name: str
    recognises: Callable[[Any], bool]
    convert: Callable[[Any, Any], Any]  # of graphs and a recipe
    source: str | None = None  # in the recipe; convert returns plain graphs
    takes: tuple[str, ...] = ()  # arguments of as_graph_collection


class Painted(NamedTuple):
    """Colours of some nodes and edges, for a drawing of a graph."""

    nodes: Mapping[int, Color]
    edges: Mapping[tuple[int, int], Color]


class FragmentWriter:
    """Names and texts of the fragments of some graphs; of plain graphs there are none."""

    column: str | None = None  # of the table of fragments that has the texts

    def __init__(self, explained: ExplainedGraphs) -> None:
        self.explained = explained

    def name(self, fragment: Fragment) -> str:
        """Return the well-known name of a fragment, or an empty text."""
        return ""

    def text(self, fragment: Fragment) -> str | None:
        """Return a query that matches the fragment's nodes and no others; None: there is none."""
        return None


class GraphKind:
    """Graphs of which nothing else is known: the base of all kinds."""

    noun = "graph"
    readers: ClassVar[Mapping[str, str]] = {}  # of recipes, with the name of each in sentences
    inputs: ClassVar[tuple[InputKind, ...]] = ()  # objects that such graphs are read from

    def holds(self, facts: Iterable[str]) -> bool:
        """Whether graphs with these facts (names in ``graph_data``) are of this kind."""
        return False

    def stored_classes(self) -> dict[str, str]:
        """Return the classes that model files may hold objects of, besides those of the core.

        They are names with blanks between them, by the modules of treelens that define them.
        """
        return {}

    # --- reading --------------------------------------------------------------------------------

    def read_file(self, path: Path, recipe: GraphRecipe | None) -> GraphCollection | None:
        """Return the graphs of a file; None where files with this ending are of another kind."""
        return None

    def read_labelled(
        self, table: Table, target: str, recipe: GraphRecipe | None
    ) -> tuple[GraphCollection, np.ndarray]:
        """Return the graphs of a table, and their classes from the column ``target``."""
        raise NotImplementedError

    # --- telling graphs apart -------------------------------------------------------------------

    def texts(self, graphs: GraphCollection) -> tuple[str, ...] | None:
        """Return graphs as text that can be read again; None where they have none."""
        return None

    def writer_of_same(self, graphs: GraphCollection) -> Callable[[str], str]:
        """Return a function from a text to one that all texts of the same graph have in common."""
        return str

    def copy_keys(self, graphs: GraphCollection) -> np.ndarray:
        """Return a key for each graph, shape (n_graphs,), that copies of a graph share."""
        return np.arange(len(graphs))

    def families(self, graphs: GraphCollection) -> list[str] | None:
        """Return what related graphs share (the scaffold of a molecule), empty where there is none.

        None: this kind of graphs has no families.
        """
        return None

    def fingerprints(self, graphs: GraphCollection) -> Any:
        """Return counts, sparse (n_graphs, n_columns), to compare graphs by; None: patterns do."""
        return None

    # --- numbers --------------------------------------------------------------------------------

    def numbers(self, graphs: GraphCollection, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns of computed numbers, such as descriptors, by name."""
        raise NotImplementedError

    def number_names(self, wanted: str) -> list[str]:
        """Return the names of a set of them: ``"compact"``, ``"fast"`` or ``"all"``."""
        return []

    def summed_names(self) -> frozenset[str]:
        """Return the names of the computed numbers that are sums over nodes."""
        return frozenset()

    def node_terms(self, graphs: GraphCollection, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return what each node adds to computed numbers that are sums, shape (n_nodes,) each.

        Those that are not (:meth:`summed_names`) are left out.
        """
        return {}

    def even_shares(self, graphs: GraphCollection) -> np.ndarray:
        """Return how nodes share what belongs to all of them alike, one together: (n_nodes,)."""
        return 1.0 / np.repeat(graphs.sizes, graphs.sizes)

    # --- pictures and words ---------------------------------------------------------------------

    def draw(
        self, graph: Graph, painted: Painted, size: tuple[int, int], format: str
    ) -> str | bytes | None:
        """Return a drawing as SVG text or PNG bytes; None: as circles and lines."""
        return None

    def fragment_writer(self, explained: ExplainedGraphs) -> FragmentWriter:
        """Return what names fragments."""
        return FragmentWriter(explained)

    def text_of_part(self, graph: Graph, nodes: Sequence[int]) -> str | None:
        """Return some nodes of a graph as text; None where there is no such text."""
        return None


PLAIN = GraphKind()
_registered: list[GraphKind] = []


def register(kind: GraphKind) -> None:
    """Make a kind of graphs known; called by the module that defines it."""
    _registered.append(kind)


def registered_kinds() -> tuple[GraphKind, ...]:
    """Return all kinds but the plain one."""
    _import_plugins()
    return tuple(_registered)


@cache
def _import_plugins() -> None:
    for name in PLUGINS:
        import_module(name)


def kind_of_facts(facts: Iterable[str]) -> GraphKind:
    """Return the kind of graphs that have these facts, such as ``"smiles"``."""
    names = set(facts)
    return (
        next((kind for kind in registered_kinds() if kind.holds(names)), PLAIN) if names else PLAIN
    )


def summed_numbers(names: Iterable[str]) -> set[str]:
    """Return those among the names of computed numbers that are sums over nodes."""
    wanted = {name for name in names if name.startswith(DESCRIPTOR_PREFIX)}
    if not wanted:
        return set()
    known = frozenset().union(*(kind.summed_names() for kind in registered_kinds()))
    return wanted & known


def kind_of_reader(reader: str | None) -> GraphKind:
    """Return the kind of graphs that a reader makes."""
    if reader is None:
        return PLAIN
    return next((kind for kind in registered_kinds() if reader in kind.readers), PLAIN)


def picture_of(graph: Graph) -> str:
    """Return a drawing of a graph as SVG text."""
    return import_module(_PICTURES).draw_graph(graph)


_NAMES = {
    "tudataset": "TU files",
    "networkx": "NetworkX graphs",
    "igraph": "igraph graphs",
    "geometric": "PyTorch Geometric data",
    "grakel": "GraKeL tuples",
}


@dataclass(frozen=True)
class TableRecord:
    """What a model keeps of the table that its graphs were read from."""

    source: str | None = None  # the name of the file, without its folder
    smiles: str | None = None  # columns
    ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # what was done, to how many rows


def noun_of(recipe: GraphRecipe | None) -> str:
    """Return what graphs are called, by their recipe: molecules or graphs."""
    return "graphs" if recipe is None else f"{recipe.kind.noun}s"


@dataclass(frozen=True)
class GraphRecipe:
    """How the graphs of a collection were made.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([("a", "b")], {"a": 1, "b": 2})], directed=True)
    >>> print(graphs.recipe)
    GraKeL tuples with directed=True
    """

    __derived__: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[tuple[str, ...]] = ("node_label", "edge_label", "directed")

    reader: str | None = None  # "smiles", "networkx", "tudataset", ...; None: built directly
    # Of NetworkX, igraph and PyTorch Geometric graphs, the attribute asked for by name.
    node_label: str | None = None
    edge_label: str | None = None
    table: TableRecord | None = field(default=None, compare=False, repr=False)
    node_attributes: tuple[str, ...] = ()  # continuous ones, to find them in new graphs
    edge_attributes: tuple[str, ...] = ()
    directed: bool | None = None  # whether new graphs are read as directed; None: as they are

    @property
    def edges_tell_more(self) -> bool:
        """Whether edge labels tell more than fine labels of the nodes do."""
        return False

    @property
    def kind(self) -> GraphKind:
        """What else is known of graphs that were made like this."""
        return kind_of_reader(self.reader)

    def __str__(self) -> str:
        names = {**_NAMES, **self.kind.readers}
        source = "graphs built directly" if self.reader is None else names.get(self.reader)
        settings = self.settings()
        return f"{source or self.reader}{f' with {settings}' if settings else ''}"

    def settings(self) -> str:
        """Return the settings as in a call, such as ``node_label='kind'``."""
        values = ((name, getattr(self, name)) for name in self._shown)
        return ", ".join(f"{name}={value!r}" for name, value in values if value not in (None, ()))

    def agrees_with(self, other: GraphRecipe | None) -> bool:
        """Whether labels of both mean the same; only recipes of one special kind can disagree."""
        return True

    def to_plain(self) -> dict[str, Any]:
        """Return the recipe, without its functions, as JSON data."""
        values = {name: x for name, x in vars(self).items() if name not in self.__derived__}
        table = None if self.table is None else asdict(self.table)
        return plain({**values, "table": table})  # type: ignore[no-any-return]


def check_agreement(ours: GraphRecipe | None, given: GraphRecipe | None) -> None:
    """Raise where graphs have a recipe that does not agree with that of the training graphs."""
    if ours is None or ours.agrees_with(given):
        return
    raise GraphDataError(
        f"These graphs were made from {given}, the training graphs from {ours}: labels of the one "
        f"do not mean the same. Pass SMILES, or read them with {ours.settings()}."
    )


def common_recipe(recipes: Iterable[GraphRecipe | None]) -> GraphRecipe | None:
    """Return the recipe of graphs that are joined: None where one of them has none."""
    found = list({id(recipe): recipe for recipe in recipes}.values())  # mostly one for all
    known = [recipe for recipe in found if recipe is not None]
    for other in known[1:]:
        if not known[0].agrees_with(other):
            raise GraphDataError(
                f"Some of these graphs were made from {known[0]}, others from {other}: their "
                "labels do not mean the same. Read all molecules in one way."
            )
    if len(known) < len(found) or len({recipe.kind for recipe in known}) > 1:
        return None
    return known[0] if known else None
