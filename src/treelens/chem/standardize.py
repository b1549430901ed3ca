"""Standard forms of molecules: the largest fragment, neutral, as the canonical tautomer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_WORDS = {
    "fragment": "reduced to the largest fragment",
    "uncharge": "neutralised",
    "tautomer": "turned into the canonical tautomer",
}
STEPS = tuple(_WORDS)
# RDKit's own limit on tautomers is 1,000, which takes minutes for a peptide.
_MOST_TAUTOMERS = 200


def checked_steps(standardize: bool | str | Iterable[str]) -> tuple[str, ...]:
    """Return the steps in their order: none, all for True, or those named."""
    if isinstance(standardize, bool):
        return STEPS if standardize else ()
    several = isinstance(standardize, Iterable) and not isinstance(standardize, str)
    given = list(standardize) if several else [standardize]  # type: ignore[arg-type]
    unknown = [step for step in given if step not in STEPS]
    if unknown:
        raise ValueError(
            f"standardize must be True, False or some of {', '.join(STEPS)}; got {unknown[0]!r}."
        )
    return tuple(step for step in STEPS if step in given)


def standardizer(steps: tuple[str, ...]) -> Callable[[Any], tuple[str | None, str]]:
    """Return a function from a molecule to its standard SMILES, or None, and what changed it."""
    from rdkit import Chem
    from rdkit.Chem.MolStandardize import rdMolStandardize

    chooser = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
    uncharger = rdMolStandardize.Uncharger()
    enumerator = rdMolStandardize.TautomerEnumerator()
    enumerator.SetMaxTautomers(_MOST_TAUTOMERS)

    def step(name: str, molecule: Mol) -> Any:
        if name == "fragment":
            return chooser.choose(molecule) if len(Chem.GetMolFrags(molecule)) > 1 else molecule
        if name == "tautomer":
            return enumerator.Canonicalize(molecule)
        if any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
            molecule = uncharger.uncharge(molecule)
            Chem.SanitizeMol(molecule)
        return molecule

    def standardize(molecule: Mol) -> tuple[str | None, str]:
        changed, before = [], Chem.MolToSmiles(molecule)
        for name in checked_steps(steps):
            try:
                molecule = step(name, molecule)
            except (ValueError, RuntimeError):  # RDKit found no valid molecule on its way
                return None, name
            if molecule is None or not molecule.GetNumAtoms():
                return None, name
            after = Chem.MolToSmiles(molecule)
            if after != before:
                changed.append(name)
            before = after
        return before, "+".join(changed)

    return standardize


def changes_in_words(changes: Iterable[str]) -> dict[str, int]:
    """Return how many molecules each step changed, by a description of the step."""
    taken = [step for text in changes for step in text.split("+")]
    return {_WORDS[step]: n for step in STEPS if (n := taken.count(step))}
