"""How molecules were read: parts of the labels of atoms, hydrogens, standard forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

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
from treelens.graphs.kinds import GraphRecipe

BOND_LABELS = ("order", "order+stereo")
READERS = {"smiles": "SMILES", "sdf": "an SDF", "rdkit": "RDKit molecules"}
_FUNCTION = "function:"
# Settings that must be equal for labels of two collections of molecules to mean the same.
_MATTERS = ("atom_label", "bond_label", "hydrogens", "standardize", "atom_function")


@dataclass(frozen=True)
class MoleculeRecipe(GraphRecipe):
    """How the molecules of a collection were read.

    Examples
    --------
    >>> from treelens.chem import smiles_to_collection
    >>> graphs = smiles_to_collection(["C[NH3+]"], atom_label="element+charge")
    >>> graphs.recipe.atom_label, graphs[:0].recipe == graphs.recipe
    ('element+charge', True)
    >>> print(graphs.recipe)
    SMILES with atom_label='element+charge', hydrogens=False
    """

    __derived__: ClassVar[tuple[str, ...]] = ("atom_function", "attribute_function", "max_atoms")

    # Parts of the label of an atom, such as "element+charge", or "function:NAME"; whether all
    # hydrogens are nodes (None: some are); "order", or "order+stereo" with sides of bonds.
    atom_label: str = "element"
    hydrogens: bool | None = False
    bond_label: str = "order"
    standardize: tuple[str, ...] = ()  # steps: "fragment", "uncharge", "tautomer"
    atom_attributes: tuple[str, ...] = ()  # "function:NAME" for a function
    # The functions behind atom_label and atom_attributes are not stored in files.
    atom_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    attribute_function: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    max_atoms: int = field(default=MAX_ATOMS, compare=False, repr=False)  # of text, when read

    @classmethod
    def of(
        cls,
        reader: str = "smiles",
        atom_label: AtomLabel = "element",
        hydrogens: bool = False,
        bond_label: str = "order",
        standardize: bool | str | Iterable[str] = False,
        atom_attributes: AtomAttributes | None = None,
        max_atoms: int = MAX_ATOMS,
    ) -> MoleculeRecipe:
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
    def edges_tell_more(self) -> bool:
        return self.bond_label == "order+stereo"

    @property
    def tells_stereo(self) -> bool:
        """Whether labels of atoms or bonds depend on stereochemistry or isotopes."""
        own = self.atom_function is not None or self.edges_tell_more
        return own or not {"chirality", "isotope"}.isdisjoint(self.atom_label.split("+"))

    def settings(self) -> str:
        """Return the settings as in a call, such as ``atom_label='element'``."""
        own = self.atom_label.startswith(_FUNCTION)
        label = self.atom_label.removeprefix(_FUNCTION) if own else repr(self.atom_label)
        hydrogens = "as they came" if self.hydrogens is None else self.hydrogens
        shown = {"atom_label": label, "hydrogens": hydrogens}
        if self.bond_label != "order":
            shown["bond_label"] = repr(self.bond_label)
        for name in ("standardize", "atom_attributes"):
            if value := getattr(self, name):
                shown[name] = repr(value)
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    def agrees_with(self, other: GraphRecipe | None) -> bool:
        """Whether labels of both mean the same, or the others are no molecules."""
        if not isinstance(other, MoleculeRecipe):
            return True
        pairs = [(getattr(self, name), getattr(other, name)) for name in _MATTERS]
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


def recipe_for_molecules(known: GraphRecipe | None, reader: str) -> MoleculeRecipe:
    """Return the recipe to read new molecules by: as ``known`` ones, or the default one."""
    if known is None or known.reader is None:
        return MoleculeRecipe.of(reader)
    if not isinstance(known, MoleculeRecipe):
        raise GraphDataError(
            f"These are molecules, and the model was fitted to {known}: labels of atoms mean "
            "nothing to it. Pass graphs of the kind that it was fitted to."
        )
    label, attributes = known.atom_label, known.atom_attributes
    if (known.atom_function is None and label.startswith(_FUNCTION)) or (
        known.attribute_function is None and "".join(attributes).startswith(_FUNCTION)
    ):
        raise GraphDataError(
            f"The training graphs were read from {known}, but a model file does not keep "
            "functions. Read molecules with treelens.chem.smiles_to_collection."
        )
    return MoleculeRecipe.of(
        reader,
        known.atom_function or label,
        bool(known.hydrogens),
        known.bond_label,
        known.standardize,
        known.attribute_function or attributes,
    )


def _function_name(function: Callable[..., Any]) -> str:
    return _FUNCTION + getattr(function, "__qualname__", type(function).__name__)
