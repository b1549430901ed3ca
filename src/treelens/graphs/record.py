"""What a table of molecules was: its columns, the scale of its target, what was done to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableRecord:
    """Where molecules and their targets were read from.

    Parameters
    ----------
    source : str or None
        The name of the file, without its folder.
    smiles, target : str or None
        Columns.
    ids : tuple of str
        Columns that name the rows.
    task : str or None
        ``"regression"`` or ``"classification"``.
    transform : str or None
        What targets went through before a model saw them: ``"log10"`` or ``"ln"``.
    units : str or None
        Of the target, as its column has it.
    counts : mapping of str to int
        What was done about rows, in words, and to how many.

    Examples
    --------
    >>> record = TableRecord("x.csv", "Structure", "IC50", transform="log10", units="nM")
    >>> record.target_in_words
    "log10 of 'IC50' (nM)"
    """

    source: str | None = None
    smiles: str | None = None
    target: str | None = None
    ids: tuple[str, ...] = ()
    task: str | None = None
    transform: str | None = None
    units: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def target_in_words(self) -> str:
        told = self.units is None or self.units in (self.target or "")
        words = f"{self.target!r}" + ("" if told else f" ({self.units})")
        return words if self.transform is None else f"{self.transform} of {words}"
