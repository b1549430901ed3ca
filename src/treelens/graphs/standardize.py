"""Standard forms of molecules: without counter-ions, neutral, one tautomer; off by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    given = [standardize] if isinstance(standardize, str) else list(standardize)
    unknown = [step for step in given if step not in STEPS]
    if unknown:
        raise ValueError(
            f"standardize must be True, False or some of {', '.join(map(repr, STEPS))}; got "
            f"{unknown[0]!r}."
        )
    return tuple(step for step in STEPS if step in given)


class Standardizer:
    """Applies the steps to a molecule, and returns which of them changed it.

    Examples
    --------
    >>> from rdkit import Chem
    >>> salt = Chem.MolFromSmiles("CC(=O)[O-].[Na+]")
    >>> Standardizer(("fragment", "uncharge"))(salt)
    ('CC(=O)O', 'fragment+uncharge')
    """

    def __init__(self, steps: tuple[str, ...]) -> None:
        from rdkit.Chem.MolStandardize import rdMolStandardize

        self._names = checked_steps(steps)
        self._chooser = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
        self._uncharger = rdMolStandardize.Uncharger()
        self._enumerator = rdMolStandardize.TautomerEnumerator()
        self._enumerator.SetMaxTautomers(_MOST_TAUTOMERS)

    def __call__(self, molecule: Any) -> tuple[str | None, str]:
        """Return the SMILES of the standard form (None where there is none), and the steps."""
        from rdkit import Chem

        changed = []
        before: str = Chem.MolToSmiles(molecule)
        for name in self._names:
            try:
                molecule = getattr(self, f"_{name}")(molecule)
            except (ValueError, RuntimeError):  # RDKit found no valid molecule on its way
                return None, name
            if molecule is None or not molecule.GetNumAtoms():
                return None, name
            after = Chem.MolToSmiles(molecule)
            if after != before:
                changed.append(name)
            before = after
        return before, "+".join(changed)

    def _fragment(self, molecule: Any) -> Any:
        from rdkit import Chem

        return self._chooser.choose(molecule) if len(Chem.GetMolFrags(molecule)) > 1 else molecule

    def _uncharge(self, molecule: Any) -> Any:
        from rdkit import Chem

        if any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
            molecule = self._uncharger.uncharge(molecule)
            Chem.SanitizeMol(molecule)
        return molecule

    def _tautomer(self, molecule: Any) -> Any:
        return self._enumerator.Canonicalize(molecule)


def changes_in_words(changes: Iterable[str]) -> dict[str, int]:
    """Return how many molecules each step changed, by a description of the step."""
    taken = [step for text in changes for step in text.split("+")]
    return {_WORDS[step]: n for step in STEPS if (n := taken.count(step))}
