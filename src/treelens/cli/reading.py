"""How the command line reads molecules: as asked for, or as a model's training graphs were read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError

if TYPE_CHECKING:
    from treelens.graphs.recipe import GraphRecipe


@dataclass(frozen=True)
class Reading:
    """What was asked for, and the recipe of the model that is to see the molecules.

    Attributes
    ----------
    atom_label : str or None
        ``--atom-label``; None: not given.
    hydrogens : bool or None
        ``--hydrogens``; None: not given.
    recipe : GraphRecipe or None
        Of the model; None: there is no model yet, or it does not say.
    """

    atom_label: str | None = None
    hydrogens: bool | None = None
    recipe: GraphRecipe | None = None

    def __post_init__(self) -> None:
        from treelens.graphs.molecules import ATOM_LABELS

        if self.atom_label is not None and self.atom_label not in ATOM_LABELS:
            raise InputError(
                f"--atom-label {self.atom_label}: expected one of {', '.join(ATOM_LABELS)}."
            )
        if self.recipe is not None and self.recipe.is_molecular:
            self._check_option("--atom-label", self.atom_label, self.recipe.atom_label)
            self._check_option("--hydrogens", self.hydrogens, self.recipe.hydrogens)

    def _check_option(self, option: str, asked: Any, known: Any) -> None:
        if asked is not None and known is not None and asked != known:
            given = option if asked is True else f"{option} {asked}"
            given = "--no-hydrogens" if asked is False else given
            raise InputError(
                f"{given}: the model was fitted to graphs made from {self.recipe}, and labels read "
                f"otherwise would mean something else. Leave {option} out: molecules are read as "
                "the model says."
            )

    def settings(self) -> dict[str, Any]:
        """Arguments for a reader of molecules."""
        from treelens.graphs.molecules import ATOM_LABELS

        of_model = {} if self.recipe is None else self.recipe.molecule_settings(ATOM_LABELS)
        return of_model or {
            "atom_label": self.atom_label or "element",
            "hydrogens": bool(self.hydrogens),
        }

    def check_no_molecules(self, source: str) -> None:
        """For graphs that are no molecules: what was asked for about atoms is an error."""
        if self.atom_label is not None or self.hydrogens is not None:
            option = "--hydrogens" if self.atom_label is None else "--atom-label"
            raise InputError(
                f"{option}: {source} holds graphs that bring their labels along, not molecules. "
                "Leave it out."
            )
