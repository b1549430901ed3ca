"""What made the graphs of a collection: enough to read new data alike, or to see that it differs.

Two readings of one molecule (elements, or elements with charges; with or without hydrogens) give
graphs whose labels do not mean the same, and no label says so. The recipe does: it travels with a
collection, is kept in the model that was fitted to it, and is asked whenever graphs come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from treelens.graphs.atoms import AtomLabel, atom_parts, is_known_label, ordered_name
from treelens.graphs.errors import GraphDataError
from treelens.graphs.record import TableRecord
from treelens.graphs.standardize import STEPS, checked_steps
from treelens.json_values import plain

MOLECULE_READERS = ("smiles", "sdf", "rdkit")
BOND_LABELS = ("order", "order+stereo")
_NAMES = {
    "smiles": "SMILES", "sdf": "an SDF", "rdkit": "RDKit molecules", "tudataset": "TU files",
    "networkx": "NetworkX graphs", "igraph": "igraph graphs", "geometric": "PyTorch Geometric data",
    "grakel": "GraKeL tuples",
}  # fmt: skip
_FUNCTION = "function:"
# What two readings of molecules must have in common for their labels to mean the same.
_MATTERS = ("atom_label", "bond_label", "hydrogens", "standardize")


@dataclass(frozen=True)
class GraphRecipe:
    """How the graphs of a collection were made.

    Parameters
    ----------
    reader : str or None
        ``"smiles"``, ``"sdf"``, ``"rdkit"`` (molecules); ``"tudataset"``, ``"networkx"``,
        ``"igraph"``, ``"geometric"``, ``"grakel"``; None: given directly.
    atom_label : str or None
        Of molecules, what the label of a node says, such as ``"element+charge"``;
        ``"function:NAME"`` for a function of the user's.
    hydrogens : bool or None
        Of molecules, whether all hydrogens are nodes. None: some, as the molecules came.
    bond_label : str or None
        Of molecules, what the label of an edge says: ``"order"``, or ``"order+stereo"`` with the
        side of double bonds.
    node_label, edge_label : str or None
        Of NetworkX, igraph and PyTorch Geometric graphs, the attribute that was asked for by name.
    standardize : tuple of str
        Of molecules, the steps that were taken before they were read, in order: of
        ``"fragment"``, ``"uncharge"`` and ``"tautomer"``.
    atom_function : callable or None
        The function behind ``atom_label``. No file keeps it.
    table : TableRecord or None
        The table that they stood in. It does not matter for whether two recipes agree.

    Examples
    --------
    >>> from treelens.graphs.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["C[NH3+]"], atom_label="element+charge")
    >>> graphs.recipe.atom_label, graphs[:0].recipe == graphs.recipe
    ('element+charge', True)
    >>> print(graphs.recipe)
    SMILES with atom_label='element+charge', hydrogens=False
    """

    __derived__ = ("atom_function",)

    reader: str | None = None
    atom_label: str | None = None
    hydrogens: bool | None = None
    bond_label: str | None = None
    node_label: str | None = None
    edge_label: str | None = None
    standardize: tuple[str, ...] = ()
    atom_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    table: TableRecord | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_molecules(
        cls,
        reader: str = "smiles",
        atom_label: AtomLabel = "element",
        hydrogens: bool = False,
        bond_label: str = "order",
        standardize: bool | str | Iterable[str] = False,
    ) -> GraphRecipe:
        """The recipe that these settings are, or a ``ValueError`` where one is not known.

        Examples
        --------
        >>> print(GraphRecipe.of_molecules(atom_label="ring+element", standardize="fragment"))
        SMILES with atom_label='element+ring', hydrogens=False, standardize=('fragment',)
        """
        if bond_label not in BOND_LABELS:
            raise ValueError(
                f"bond_label must be one of {', '.join(map(repr, BOND_LABELS))}; got "
                f"{bond_label!r}."
            )
        own = atom_label if callable(atom_label) else None
        name = label_name(atom_label)
        return cls(
            reader, name, bool(hydrogens), bond_label, standardize=checked_steps(standardize),
            atom_function=own,
        )  # fmt: skip

    @property
    def is_molecular(self) -> bool:
        return self.reader in MOLECULE_READERS

    def __str__(self) -> str:
        source = "graphs given directly" if self.reader is None else _NAMES.get(
            self.reader, self.reader)  # fmt: skip
        settings = self.settings()
        return f"{source} with {settings}" if settings else source

    def settings(self) -> str:
        """The settings as one would write them in a call, such as ``atom_label='element'``."""
        parts = []
        if self.atom_label is not None:
            own = self.atom_label.startswith(_FUNCTION)
            shown = self.atom_label.removeprefix(_FUNCTION) if own else repr(self.atom_label)
            parts.append(f"atom_label={shown}")
        if self.is_molecular:
            hydrogens = "as they came" if self.hydrogens is None else self.hydrogens
            parts.append(f"hydrogens={hydrogens}")
        if self.bond_label not in (None, "order"):
            parts.append(f"bond_label={self.bond_label!r}")
        parts += [
            f"{name}={value!r}"
            for name in ("node_label", "edge_label")
            if (value := getattr(self, name)) is not None
        ]
        if self.standardize:
            parts.append(f"standardize={self.standardize!r}")
        return ", ".join(parts)

    def agrees_with(self, other: GraphRecipe | None) -> bool:
        """Whether labels made by both may be compared; where one does not say, they may.

        Only two readings of molecules can disagree: whoever labels graphs by hand may well have
        given them the same labels.
        """
        if other is None or not (self.is_molecular and other.is_molecular):
            return True
        for name in _MATTERS:
            ours, theirs = getattr(self, name), getattr(other, name)
            if None not in (ours, theirs) and ours != theirs:
                return False
        functions = self.atom_function, other.atom_function
        return None in functions or functions[0] is functions[1]

    # --- reading molecules alike ------------------------------------------------------------

    def for_new_molecules(self, reader: str) -> GraphRecipe:
        """The recipe that reads new molecules alike; the usual one for graphs that are none.

        Raises
        ------
        GraphDataError
            Where the recipe cannot be followed here: it names a function that was lost with the
            process that had it, or something that this version does not know.
        """
        if not self.is_molecular:
            return GraphRecipe.of_molecules(reader)
        label = self.atom_label or "element"
        if self.atom_function is None and label.startswith(_FUNCTION):
            raise self._cannot_follow("a model file does not keep functions")
        known = self.atom_function is not None or is_known_label(label)
        steps_known = set(self.standardize) <= set(STEPS)
        if not known or not steps_known or self.bond_label not in (None, *BOND_LABELS):
            raise self._cannot_follow("this treelens does not know all of that")
        return GraphRecipe.of_molecules(
            reader, self.atom_function or label, bool(self.hydrogens), self.bond_label or "order",
            self.standardize,
        )  # fmt: skip

    def _cannot_follow(self, why: str) -> GraphDataError:
        return GraphDataError(
            f"The molecules would have to be read as the training graphs were, from {self}, but "
            f"{why}. Read them yourself, with treelens.graphs.molecules.smiles_to_collection and "
            "the same settings, and give the collection."
        )

    # --- as JSON ----------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Return the recipe, without its function, as JSON data."""
        record: dict[str, Any] = plain(asdict(replace(self, atom_function=None)))
        del record["atom_function"]
        return record

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> GraphRecipe:
        """Return the recipe of which ``record`` is the :meth:`to_plain`."""
        table = record["table"]
        if table is not None:
            table = TableRecord(**{**table, "ids": tuple(table["ids"])})
        return cls(**{**record, "standardize": tuple(record["standardize"]), "table": table})


def label_name(atom_label: AtomLabel) -> str:
    """How a recipe names what labels atoms; a ``ValueError`` where it is not known."""
    if not callable(atom_label):
        return ordered_name(atom_parts(atom_label))
    return _FUNCTION + getattr(atom_label, "__qualname__", type(atom_label).__name__)


def check_agreement(ours: GraphRecipe | None, given: GraphRecipe | None) -> None:
    """Refuse graphs that were made by another recipe than the training graphs."""
    if ours is None or ours.agrees_with(given):
        return
    raise GraphDataError(
        f"These graphs were made from {given}, the training graphs from {ours}: labels of the one "
        "do not mean what labels of the other mean. Read these molecules with "
        f"{ours.settings()}, or give the SMILES or RDKit molecules themselves: a fitted model "
        "reads them as it read its training graphs."
    )


def common_recipe(recipes: Iterable[GraphRecipe | None]) -> GraphRecipe | None:
    """The recipe of graphs that are put together: None where one of them has none.

    Raises
    ------
    GraphDataError
        Where two disagree.
    """
    found = list({id(recipe): recipe for recipe in recipes}.values())  # mostly one for all
    known = [recipe for recipe in found if recipe is not None]
    for other in known[1:]:
        if not known[0].agrees_with(other):
            raise GraphDataError(
                f"Some of these graphs were made from {known[0]}, others from {other}: their "
                "labels do not mean the same. Read all molecules in one way."
            )
    if len(known) < len(found) or len({recipe.is_molecular for recipe in known}) > 1:
        return None
    return known[0] if known else None
