"""How graphs were made, and of a table: its file and columns.

Labels of graphs read with ``atom_label="element"`` and with ``"element+charge"`` do not mean the
same, and the labels themselves do not show it. The recipe is part of a collection, is kept in a
model that was fitted to it, and is compared whenever graphs come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from treelens.chem.atoms import (
    ATOM_PARTS,
    AtomAttributes,
    AtomLabel,
    atom_parts,
    checked_attributes,
)
from treelens.chem.parsing import MAX_ATOMS
from treelens.chem.standardize import checked_steps
from treelens.errors import GraphDataError, check_choice, check_truth, check_whole
from treelens.json_values import plain

MOLECULE_READERS = ("smiles", "sdf", "rdkit")
BOND_LABELS = ("order", "order+stereo")
_NAMES = {
    "smiles": "SMILES",
    "sdf": "an SDF",
    "rdkit": "RDKit molecules",
    "tudataset": "TU files",
    "networkx": "NetworkX graphs",
    "igraph": "igraph graphs",
    "geometric": "PyTorch Geometric data",
    "grakel": "GraKeL tuples",
}
_FUNCTION = "function:"
# Settings that must be equal for labels of two collections of molecules to mean the same.
_MATTERS = ("atom_label", "bond_label", "hydrogens", "standardize", "atom_function")


@dataclass(frozen=True)
class TableRecord:
    """What a model keeps of the table that molecules were read from."""

    source: str | None = None  # the name of the file, without its folder
    smiles: str | None = None  # columns
    ids: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # what was done, to how many rows


def noun_of(recipe: Any) -> str:
    """Return what graphs are called, by their recipe: molecules or graphs."""
    return "molecules" if recipe is not None and recipe.is_molecular else "graphs"


@dataclass(frozen=True)
class GraphRecipe:
    """How the graphs of a collection were made.

    Examples
    --------
    >>> from treelens.chem.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["C[NH3+]"], atom_label="element+charge")
    >>> graphs.recipe.atom_label, graphs[:0].recipe == graphs.recipe
    ('element+charge', True)
    >>> print(graphs.recipe)
    SMILES with atom_label='element+charge', hydrogens=False
    """

    __derived__ = ("atom_function", "attribute_function", "max_atoms")

    reader: str | None = None  # "smiles", "networkx", "tudataset", ...; None: built directly
    # Of molecules: parts of the node label, such as "element+charge", or "function:NAME"; whether
    # all hydrogens are nodes (None: some are); "order", or "order+stereo" with sides of bonds.
    atom_label: str | None = None
    hydrogens: bool | None = None
    bond_label: str | None = None
    # Of NetworkX, igraph and PyTorch Geometric graphs, the attribute asked for by name.
    node_label: str | None = None
    edge_label: str | None = None
    standardize: tuple[str, ...] = ()  # steps: "fragment", "uncharge", "tautomer"
    # The functions behind atom_label and atom_attributes are not stored in files.
    atom_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    table: TableRecord | None = field(default=None, compare=False, repr=False)
    node_attributes: tuple[str, ...] = ()  # continuous ones, to find them in new graphs
    edge_attributes: tuple[str, ...] = ()
    directed: bool | None = None  # whether new graphs are read as directed; None: as they are
    atom_attributes: tuple[str, ...] = ()  # of molecules; "function:NAME" for a function
    attribute_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    max_atoms: int = field(default=MAX_ATOMS, compare=False, repr=False)  # of text, when read

    @classmethod
    def of_molecules(
        cls,
        reader: str = "smiles",
        atom_label: AtomLabel = "element",
        hydrogens: bool = False,
        bond_label: str = "order",
        standardize: bool | str | Iterable[str] = False,
        atom_attributes: AtomAttributes | None = None,
        max_atoms: int = MAX_ATOMS,
    ) -> GraphRecipe:
        """Return the recipe of these settings; an unknown one is a ``ValueError``."""
        check_choice("bond_label", bond_label, BOND_LABELS)
        check_truth("hydrogens", hydrogens)
        check_whole("max_atoms", max_atoms, 1)
        own: dict[str, Any] = {"standardize": checked_steps(standardize)}
        if callable(atom_label):
            own |= {"atom_function": atom_label, "atom_label": _function_name(atom_label)}
        else:
            parts = atom_parts(atom_label)
            own |= {"atom_label": "+".join(part for part in ATOM_PARTS if part in parts)}
        if callable(atom_attributes):
            own |= {
                "attribute_function": atom_attributes,
                "atom_attributes": (_function_name(atom_attributes),),
            }
        else:
            own |= {"atom_attributes": checked_attributes(atom_attributes)}
        own |= {"hydrogens": bool(hydrogens), "bond_label": bond_label, "max_atoms": max_atoms}
        return cls(reader, **own)

    @property
    def is_molecular(self) -> bool:
        return self.reader in MOLECULE_READERS

    def __str__(self) -> str:
        source = (
            "graphs built directly" if self.reader is None else _NAMES.get(self.reader, self.reader)
        )
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
        for name in (
            "bond_label",
            "node_label",
            "edge_label",
            "standardize",
            "directed",
            "atom_attributes",
        ):
            if (value := getattr(self, name)) not in (None, "order", (), False):
                shown[name] = repr(value)
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    def agrees_with(self, other: GraphRecipe | None) -> bool:
        """Whether labels of both mean the same; only recipes of molecules can disagree."""
        if other is None or not (self.is_molecular and other.is_molecular):
            return True
        pairs = [(getattr(self, name), getattr(other, name)) for name in _MATTERS]
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def for_new_molecules(self, reader: str) -> GraphRecipe:
        """Return the recipe to read new molecules by; the default one where none is known."""
        if self.reader is None:
            return GraphRecipe.of_molecules(reader)
        if not self.is_molecular:
            raise GraphDataError(
                f"These are molecules, and the model was fitted to {self}: labels of atoms mean "
                "nothing to it. Pass graphs of the kind that it was fitted to."
            )
        label, attributes = self.atom_label or "element", self.atom_attributes
        if (self.atom_function is None and label.startswith(_FUNCTION)) or (
            self.attribute_function is None and "".join(attributes).startswith(_FUNCTION)
        ):
            raise GraphDataError(
                f"The training graphs were read from {self}, but a model file does not keep "
                "functions. Read molecules with treelens.chem.smiles_to_collection."
            )
        return GraphRecipe.of_molecules(
            reader,
            self.atom_function or label,
            bool(self.hydrogens),
            self.bond_label or "order",
            self.standardize,
            self.attribute_function or attributes,
        )

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
    if len(known) < len(found) or len({recipe.is_molecular for recipe in known}) > 1:
        return None
    return known[0] if known else None
