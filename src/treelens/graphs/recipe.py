"""How graphs were made, and of a table: its file and columns.

Labels of graphs read with different settings do not mean the same, and the labels themselves do not
show it. The recipe is part of a collection, is kept in a model that was fitted to it, and is
compared whenever graphs come in. Molecules have a recipe of their own, in ``treelens.chem``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from treelens.errors import GraphDataError
from treelens.graphs.kinds import GraphKind, kind_of_reader
from treelens.json_values import plain

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
