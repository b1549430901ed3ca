"""How graphs were made: enough to read new molecules in the same way, or to see that they differ.

Labels of graphs read with ``atom_label="element"`` and with ``"element+charge"`` do not mean the
same, and the labels themselves do not show it. The recipe is part of a collection, is kept in a
model that was fitted to it, and is compared whenever graphs come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from treelens.graphs.atom_attributes import ATOM_ATTRIBUTES, AtomAttributes, checked_attributes
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
# Settings that must be equal for labels of two collections of molecules to mean the same.
_MATTERS = ("atom_label", "bond_label", "hydrogens", "standardize")


@dataclass(frozen=True)
class GraphRecipe:
    """How the graphs of a collection were made.

    Parameters
    ----------
    reader : str or None
        ``"smiles"``, ``"sdf"``, ``"rdkit"`` (molecules); ``"tudataset"``, ``"networkx"``,
        ``"igraph"``, ``"geometric"``, ``"grakel"``; None: built directly.
    atom_label : str or None
        Of molecules, the parts of a node label, such as ``"element+charge"``;
        ``"function:NAME"`` for a function of the user's.
    hydrogens : bool or None
        Of molecules, whether all hydrogens are nodes. None: some are.
    bond_label : str or None
        Of molecules, ``"order"``, or ``"order+stereo"`` with the side of double bonds.
    node_label, edge_label : str or None
        Of NetworkX, igraph and PyTorch Geometric graphs, the attribute asked for by name.
    node_attributes, edge_attributes : tuple of str
        Names of the continuous attributes, to find them in new graphs.
    directed : bool or None
        Whether new graphs are read as directed; None: as they are.
    atom_attributes : tuple of str
        Of molecules, what numbers the atoms have; ``"function:NAME"`` for a function.
    standardize : tuple of str
        Of molecules, steps before reading: of ``"fragment"``, ``"uncharge"`` and ``"tautomer"``.
    atom_function, attribute_function : callable or None
        The functions behind ``atom_label`` and ``atom_attributes``, which are not stored in files.
    table : TableRecord or None
        The table of the molecules; not compared.

    Examples
    --------
    >>> from treelens.graphs.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["C[NH3+]"], atom_label="element+charge")
    >>> graphs.recipe.atom_label, graphs[:0].recipe == graphs.recipe
    ('element+charge', True)
    >>> print(graphs.recipe)
    SMILES with atom_label='element+charge', hydrogens=False
    """

    __derived__ = ("atom_function", "attribute_function")

    reader: str | None = None
    atom_label: str | None = None
    hydrogens: bool | None = None
    bond_label: str | None = None
    node_label: str | None = None
    edge_label: str | None = None
    standardize: tuple[str, ...] = ()
    atom_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    table: TableRecord | None = field(default=None, compare=False, repr=False)
    node_attributes: tuple[str, ...] = ()
    edge_attributes: tuple[str, ...] = ()
    directed: bool | None = None
    atom_attributes: tuple[str, ...] = ()
    attribute_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_molecules(
        cls,
        reader: str = "smiles",
        atom_label: AtomLabel = "element",
        hydrogens: bool = False,
        bond_label: str = "order",
        standardize: bool | str | Iterable[str] = False,
        atom_attributes: AtomAttributes | None = None,
    ) -> GraphRecipe:
        """Return the recipe of these settings; an unknown one is a ``ValueError``."""
        if bond_label not in BOND_LABELS:
            names = ", ".join(map(repr, BOND_LABELS))
            raise ValueError(f"bond_label must be one of {names}; got {bond_label!r}.")
        steps, own, numbers = checked_steps(standardize), None, None
        if callable(atom_label):
            own, name = atom_label, _function_name(atom_label)
        else:
            name = ordered_name(atom_parts(atom_label))
        if callable(atom_attributes):
            numbers = atom_attributes
        attributes = (
            checked_attributes(atom_attributes) if numbers is None else (_function_name(numbers),)
        )
        return cls(
            reader, name, bool(hydrogens), bond_label, standardize=steps, atom_function=own,
            atom_attributes=attributes, attribute_function=numbers,
        )  # fmt: skip

    @property
    def is_molecular(self) -> bool:
        return self.reader in MOLECULE_READERS

    def __str__(self) -> str:
        source = "graphs built directly" if self.reader is None else _NAMES.get(
            self.reader, self.reader)  # fmt: skip
        settings = self.settings()
        return f"{source} with {settings}" if settings else source

    def settings(self) -> str:
        """Return the settings as in a call, such as ``atom_label='element'``."""
        shown: dict[str, Any] = {}
        if self.atom_label is not None:
            own = self.atom_label.startswith(_FUNCTION)
            label = self.atom_label.removeprefix(_FUNCTION) if own else repr(self.atom_label)
            shown["atom_label"] = label
        if self.is_molecular:
            shown["hydrogens"] = "as they came" if self.hydrogens is None else self.hydrogens
        for name in ("bond_label", "node_label", "edge_label", "standardize", "directed",
                     "atom_attributes"):  # fmt: skip
            if (value := getattr(self, name)) not in (None, "order", (), False):
                shown[name] = repr(value)
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    def agrees_with(self, other: GraphRecipe | None) -> bool:
        """Whether labels of both mean the same; only recipes of molecules can disagree."""
        if other is None or not (self.is_molecular and other.is_molecular):
            return True
        for name in _MATTERS:
            ours, theirs = getattr(self, name), getattr(other, name)
            if None not in (ours, theirs) and ours != theirs:
                return False
        functions = self.atom_function, other.atom_function
        return None in functions or functions[0] is functions[1]

    def for_new_molecules(self, reader: str) -> GraphRecipe:
        """Return the recipe to read new molecules by; the default one if this is not molecular."""
        if not self.is_molecular:
            return GraphRecipe.of_molecules(reader)
        label = self.atom_label or "element"
        why = None
        attributes = self.attribute_function or self.atom_attributes
        if (self.atom_function is None and label.startswith(_FUNCTION)) or (
            self.attribute_function is None and "".join(self.atom_attributes).startswith(_FUNCTION)
        ):
            why = "a model file does not keep functions"
        elif (
            (self.atom_function is None and not is_known_label(label))
            or not set(self.standardize) <= set(STEPS)
            or (
                self.attribute_function is None
                and not set(self.atom_attributes) <= set(ATOM_ATTRIBUTES)
            )
            or self.bond_label not in (None, *BOND_LABELS)
        ):
            why = "this treelens does not know all of that"
        if why is not None:
            raise GraphDataError(
                f"The training graphs were read from {self}, but {why}. Read new molecules with "
                "treelens.graphs.molecules.smiles_to_collection and the same settings."
            )
        return GraphRecipe.of_molecules(
            reader, self.atom_function or label, bool(self.hydrogens), self.bond_label or "order",
            self.standardize, attributes,
        )  # fmt: skip

    # --- as JSON ----------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Return the recipe, without its functions, as JSON data."""
        without = replace(self, atom_function=None, attribute_function=None)
        record: dict[str, Any] = plain(asdict(without))
        return {name: value for name, value in record.items() if name not in self.__derived__}

    @classmethod
    def from_plain(cls, record: Mapping[str, Any]) -> GraphRecipe:
        """Return the recipe of which ``record`` is the :meth:`to_plain`."""
        table = record["table"]
        if table is not None:
            table = TableRecord(**{**table, "ids": tuple(table["ids"])})
        lists = ("standardize", "node_attributes", "edge_attributes", "atom_attributes")
        tuples = {name: tuple(record[name]) for name in lists}
        return cls(**{**record, **tuples, "table": table})


def _function_name(function: Callable[..., Any]) -> str:
    return _FUNCTION + getattr(function, "__qualname__", type(function).__name__)


def check_agreement(ours: GraphRecipe | None, given: GraphRecipe | None) -> None:
    """Raise where graphs have a recipe that does not agree with that of the training graphs."""
    if ours is None or ours.agrees_with(given):
        return
    raise GraphDataError(
        f"These graphs were made from {given}, the training graphs from {ours}: labels of the one "
        f"do not mean what labels of the other mean. Read these molecules with {ours.settings()}, "
        "or pass the SMILES or RDKit molecules themselves."
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
    if len(known) < len(found) or len({recipe.is_molecular for recipe in known}) > 1:
        return None
    return known[0] if known else None
