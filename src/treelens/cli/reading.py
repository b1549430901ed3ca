"""How the command line reads molecules: as asked for, or as a model's training graphs were read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treelens.cli.console import InputError

if TYPE_CHECKING:
    from treelens.graphs.recipe import GraphRecipe
    from treelens.graphs.record import TableRecord


@dataclass(frozen=True)
class Reading:
    """What was asked for, and the recipe of the model that is to see the molecules.

    Attributes
    ----------
    atom_label, bond_label : str or None
        ``--atom-label``, ``--bond-label``; None: not given.
    hydrogens : bool or None
        ``--hydrogens``; None: not given.
    recipe : GraphRecipe or None
        Of the model; None: there is no model yet, or it does not say.
    standardize : str or None
        ``--standardize``: ``"all"``, ``"none"``, or steps with commas; None: not given.
    """

    atom_label: str | None = None
    hydrogens: bool | None = None
    recipe: GraphRecipe | None = None
    bond_label: str | None = None
    standardize: str | None = None

    @classmethod
    def asked(
        cls,
        atom_label: str | None,
        hydrogens: bool | None,
        bond_label: str | None,
        standardize: bool,
        steps: str | None,
    ) -> Reading:
        """What the options ask for, where there is no model yet."""
        wanted = steps or ("all" if standardize else None)
        return cls(atom_label, hydrogens, None, bond_label, wanted)

    def __post_init__(self) -> None:
        asked = self._asked_recipe("smiles")
        if self.recipe is None or not self.recipe.is_molecular:
            return
        for option, name, given in self._options():
            ours, known = getattr(asked, name), getattr(self.recipe, name)
            if given is not None and known is not None and ours != known:
                raise InputError(
                    f"{_as_written(option, given)}: the model was fitted to graphs made from "
                    f"{self.recipe}, and labels read otherwise would mean something else. Leave "
                    f"{option} out: molecules are read as the model says."
                )

    def _options(self) -> tuple[tuple[str, str, Any], ...]:
        """Options, what a recipe calls them, and what was given."""
        return (
            ("--atom-label", "atom_label", self.atom_label),
            ("--hydrogens", "hydrogens", self.hydrogens),
            ("--bond-label", "bond_label", self.bond_label),
            ("--standardize", "standardize", self.standardize),
        )

    def _asked_recipe(self, reader: str) -> GraphRecipe:
        from treelens.graphs.atoms import ATOM_PARTS, is_known_label
        from treelens.graphs.recipe import BOND_LABELS, GraphRecipe
        from treelens.graphs.standardize import STEPS

        if self.atom_label is not None and not is_known_label(self.atom_label):
            raise InputError(
                f"--atom-label {self.atom_label}: expected parts of {', '.join(ATOM_PARTS)} with + "
                "between, such as element+charge."
            )
        if self.bond_label not in (None, *BOND_LABELS):
            raise InputError(
                f"--bond-label {self.bond_label}: expected one of {', '.join(BOND_LABELS)}."
            )
        steps = {None: (), "none": (), "all": STEPS}.get(self.standardize)
        if steps is None:
            steps = tuple(step.strip() for step in str(self.standardize).split(","))
        if not set(steps) <= set(STEPS):
            raise InputError(
                f"--standardize-steps {self.standardize}: expected some of {', '.join(STEPS)}, "
                "with commas between."
            )
        return GraphRecipe.of_molecules(
            reader, self.atom_label or "element", bool(self.hydrogens), self.bond_label or "order",
            steps,
        )  # fmt: skip

    def recipe_for(self, reader: str) -> GraphRecipe:
        """The recipe that reads molecules from SMILES ("smiles") or an SDF ("sdf")."""
        if self.recipe is not None and self.recipe.is_molecular:
            return self.recipe.for_new_molecules(reader)
        return self._asked_recipe(reader)

    @property
    def table(self) -> TableRecord | None:
        """What the table was that the model was fitted to."""
        return None if self.recipe is None else self.recipe.table

    def check_no_molecules(self, source: str) -> None:
        """For graphs that are no molecules: what was asked for about atoms is an error."""
        for option, _, given in self._options():
            if given is not None:
                raise InputError(
                    f"{option}: {source} holds graphs that bring their labels along, not "
                    "molecules. Leave it out."
                )


def _as_written(option: str, given: Any) -> str:
    if given is False:
        return option.replace("--", "--no-")
    return option if given is True else f"{option} {given}"
