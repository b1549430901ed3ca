"""Standard forms of molecules: without counter-ions, neutral, one tautomer; off by default."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

STEPS = ("fragment", "uncharge", "tautomer")
_WORDS = {
    "fragment": "reduced to the largest fragment",
    "uncharge": "neutralised",
    "tautomer": "turned into the canonical tautomer",
}
# RDKit's own limit on tautomers is 1,000, which takes minutes for a peptide.
_MOST_TAUTOMERS = 200


def checked_steps(standardize: bool | str | Iterable[str]) -> tuple[str, ...]:
    """Return the steps in their order: none, all for True, or those named.

    Examples
    --------
    >>> checked_steps(True), checked_steps(False), checked_steps(["uncharge", "fragment"])
    (('fragment', 'uncharge', 'tautomer'), (), ('fragment', 'uncharge'))
    """
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
        makers = {"fragment": _fragment, "uncharge": _uncharge, "tautomer": _tautomer}
        self._steps = [(step, makers[step]()) for step in checked_steps(steps)]

    def __call__(self, molecule: Any) -> tuple[str | None, str]:
        """Return the SMILES of the standard form (None where there is none), and the steps."""
        from rdkit import Chem

        changed = []
        before: str = Chem.MolToSmiles(molecule)
        for name, step in self._steps:
            try:
                molecule = step(molecule)
            except (ValueError, RuntimeError):  # RDKit found no valid molecule on its way
                return None, name
            if molecule is None or not molecule.GetNumAtoms():
                return None, name
            after = Chem.MolToSmiles(molecule)
            if after != before:
                changed.append(name)
            before = after
        return before, "+".join(changed)


def changes_in_words(changes: Iterable[str]) -> dict[str, int]:
    """Return how many molecules each step changed, by a description of the step.

    Examples
    --------
    >>> changes_in_words(["", "fragment", "fragment+uncharge"])
    {'reduced to the largest fragment': 2, 'neutralised': 1}
    """
    taken = [step for text in changes for step in text.split("+")]
    return {_WORDS[step]: n for step in STEPS if (n := taken.count(step))}


def _fragment() -> Callable[[Any], Any]:
    from rdkit import Chem
    from rdkit.Chem.MolStandardize import rdMolStandardize

    choose = rdMolStandardize.LargestFragmentChooser(preferOrganic=True).choose
    return lambda m: choose(m) if len(Chem.GetMolFrags(m)) > 1 else m


def _uncharge() -> Callable[[Any], Any]:
    from rdkit import Chem
    from rdkit.Chem.MolStandardize import rdMolStandardize

    uncharger = rdMolStandardize.Uncharger()

    def neutral(molecule: Any) -> Any:
        if not any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
            return molecule
        molecule = uncharger.uncharge(molecule)
        Chem.SanitizeMol(molecule)
        return molecule

    return neutral


def _tautomer() -> Callable[[Any], Any]:
    from rdkit.Chem.MolStandardize import rdMolStandardize

    enumerator = rdMolStandardize.TautomerEnumerator()
    enumerator.SetMaxTautomers(_MOST_TAUTOMERS)
    return enumerator.Canonicalize
