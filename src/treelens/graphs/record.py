"""What a table of molecules was: its columns, the scale of its target, what was done to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_TEXTS = ("source", "smiles", "target", "task", "transform", "units")


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
    >>> TableRecord.from_plain(record.to_plain()) == record
    True
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

    def to_plain(self) -> dict[str, Any]:
        """As what ``json.dumps`` takes."""
        return {**asdict(self), "ids": list(self.ids), "counts": dict(self.counts)}

    @classmethod
    def from_plain(cls, record: Any) -> TableRecord:
        """The record of a file, or a ``ValueError``."""
        if not isinstance(record, Mapping):
            raise ValueError("'table' should be an object or null")
        texts = {name: record.get(name) for name in _TEXTS}
        ids, counts = record.get("ids", []), record.get("counts", {})
        for name, value in texts.items():
            if value is not None and type(value) is not str:
                raise ValueError(f"{name!r} of 'table' should be a text or null")
        if type(ids) is not list or not all(type(x) is str for x in ids):
            raise ValueError("'ids' of 'table' should be a list of texts")
        whole = isinstance(counts, Mapping) and all(type(n) is int for n in counts.values())
        if not whole or not all(type(key) is str for key in counts):
            raise ValueError("'counts' of 'table' should be whole numbers by name")
        return cls(**texts, ids=tuple(ids), counts=dict(counts))
