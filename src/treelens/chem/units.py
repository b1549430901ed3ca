"""Units of measurements: which column of a table names them, and what converts them.

Units are products of powers, such as ``ug/mL``, ``ug.mL-1`` and ``mL/min/kg``. Amounts and masses
are converted into each other with the molar mass of the molecule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treelens.chem.parsing import molar_mass
from treelens.errors import GraphDataError, first_few
from treelens.graphs.cells import is_missing, read_cell
from treelens.graphs.columns import unit_in
from treelens.graphs.tables import Table, find_column

# What one of each is in moles, grams, litres and seconds: a factor, and exponents by name.
_BASES: dict[str, tuple[float, dict[str, int]]] = {
    "M": (1.0, {"mol": 1, "L": -1}),
    "mol": (1.0, {"mol": 1}),
    "g": (1.0, {"g": 1}),
    "L": (1.0, {"L": 1}),
    "l": (1.0, {"L": 1}),
    "s": (1.0, {"s": 1}),
    "min": (60.0, {"s": 1}),
    "h": (3600.0, {"s": 1}),
    "hr": (3600.0, {"s": 1}),
    "%": (1.0, {"%": 1}),
}
_PREFIXES = {"": 1.0, "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2}
_PREFIXES |= {"d": 1e-1, "k": 1e3}
_FACTOR = re.compile(r"(?:(min|hr|h|%)|([fpnumcdk]?)(mol|M|g|[Ll]|s))(?:\^?([+-]?\d))?")
_LETTER_AND_NUMBER = re.compile(r"[A-Za-z]+\d+")
_BETWEEN = re.compile(r"\s*([/.·*\s])\s*")
# pIC50, logS, log10(x) and logp, but not the pH that something was measured at, nor "login".
_LOGARITHM = re.compile(r"-?\s*(?i:log)[a-z]?(?![a-z])|p(?!H(?![A-Za-z]))(?=[A-Z])|pchembl")
# The last words of names of columns, and what a column with kinds of measurements holds.
_OF_UNITS = {"unit", "units", "uom"}
_OF_VALUES = {"value", "values", "result", "results"}
_OF_KINDS = {"type", "types", "endpoint", "parameter", "measure"}
_KIND = re.compile(r"(?:log ?)?p?(?:(?:IC|EC|AC|CC|ED|GI|LC|LD|TC|SC|XC)\d0|K[adbi]|MIC|MBC)", re.I)


class Unit(NamedTuple):
    """A unit: its size, and the powers of moles, grams, litres and so on that it is made of."""

    size: float
    powers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str) -> Unit:
        """Read a unit; any text that is none is one of its own.

        Examples
        --------
        >>> Unit.of("ug/mL") == Unit.of("mg.L-1"), Unit.of("nM") == Unit.of("uM")
        (True, False)
        """
        size, powers = 1.0, Counter[str]()
        parts = _BETWEEN.split(re.sub("[µμ]", "u", text.strip()))
        for before, part in zip(["", *parts[1::2]], parts[::2], strict=True):
            found = _FACTOR.fullmatch(part)
            if found is None:
                return cls(1.0, ((text.strip(), 1),))
            whole, prefix, base, exponent = found.groups()
            power = int(exponent or 1) * (-1 if before == "/" else 1)
            factor, own = _BASES[whole or base]
            size *= (factor * _PREFIXES[prefix or ""]) ** power
            powers.update({name: n * power for name, n in own.items()})
        return cls(float(f"{size:.12g}"), tuple(sorted((k, n) for k, n in powers.items() if n)))

    @property
    def is_known(self) -> bool:
        return {name for name, _ in self.powers} <= {"mol", "g", "L", "s", "%"}

    def factor_to(self, other: Unit, molar_mass: float = np.nan) -> float:
        """Return what converts values into another unit; NaN where nothing does.

        ``molar_mass``, in grams, is needed between amounts and masses.

        Examples
        --------
        >>> Unit.of("uM").factor_to(Unit.of("nM"))
        1000.0
        >>> Unit.of("ug/mL").factor_to(Unit.of("nM"), molar_mass=200.0)
        5000.0
        """
        rest = Counter(dict(self.powers))
        rest.subtract(dict(other.powers))
        moles = rest.pop("mol", 0)
        if rest.pop("g", 0) != -moles or any(rest.values()):
            return np.nan
        factor = self.size / other.size * (molar_mass**moles if moles else 1.0)
        return float(f"{factor:.12g}")  # 1000, not 1000.0000000000001


def is_same_quantity(one: str, other: str) -> bool:
    """Whether two names of targets may mean the same: one only says more, but not of logarithms.

    Examples
    --------
    >>> is_same_quantity("IC50 (nM)", "IC50_uM (uM)"), is_same_quantity("solubility", "value")
    (True, True)
    >>> is_same_quantity("IC50", "pIC50"), is_same_quantity("solubility", "log solubility")
    (False, False)
    """
    found, others = set(_stem(one, _OF_VALUES)), set(_stem(other, _OF_VALUES))
    logarithms = any(word.startswith("log") for word in found ^ others)
    return (found <= others or others <= found) and not logarithms


def factors_between(unit: str, goal: str, target: str, molecules: Sequence[object]) -> np.ndarray:
    """Return what values of molecules (n_molecules,) are multiplied by to be in another unit.

    ``target`` names the values. Units that nothing converts are an error.
    """
    one, other = Unit.of(unit), Unit.of(goal)
    if one == other:
        return np.ones(len(molecules))
    if not np.isfinite(one.factor_to(other, 1.0)) or _LOGARITHM.match(target):
        raise GraphDataError(
            f"The values of {target!r} are in {unit}, and cannot be converted into {goal}, which "
            f"the model learned in: give them in {goal}."
        )
    factor = one.factor_to(other)
    if np.isfinite(factor):
        return np.full(len(molecules), factor)
    return np.array([one.factor_to(other, molar_mass(molecule)) for molecule in molecules])


# --- columns ------------------------------------------------------------------------------------


def unit_column(table: Table, target: str, wanted: str | None, notes: list[str]) -> str | None:
    """Return the column with the units of a target; None where there is none.

    ``wanted`` names it, or is ``"none"``. Otherwise, a column of units is that of the column which
    it is called after ("Dose Units": "Dose"), and of the target if it is called after none.
    Logarithms have no units: what their column says is noted, and not used.
    """
    if wanted == "none":
        return None
    if wanted is not None:
        return find_column(table.columns, wanted, "unit_column", table.source)
    stem = _stem(target, _OF_VALUES)
    names = [name for name in dict.fromkeys(table.columns) if name != target]
    candidates = {n: _stem(n, _OF_UNITS) for n in names if _holds_units(table, n)}
    others = {_stem(name, _OF_VALUES) for name in names if name not in candidates}
    own = [name for name, called in candidates.items() if called == stem]
    free = [name for name, called in candidates.items() if called not in others]
    found = own or free
    if len(found) > 1:
        notes.append(
            f"columns {first_few(list(map(repr, found)))} hold units, and were not used: where one "
            f"has those of {target!r}, name it by unit_column=COLUMN."
        )
    elif found and _LOGARITHM.match(target):
        notes.append(
            f"column {found[0]!r} holds units, and was not used: {target!r} seems to hold "
            f"logarithms. Where it holds none, use unit_column={found[0]!r}."
        )
        return None
    return found[0] if len(found) == 1 else None


def _holds_units(table: Table, name: str) -> bool:
    """Whether a column is called so, or holds nothing but units, other than single letters.

    Names of molecules and of groups (M1, g2) look like powers of units: where a column is not
    called after units, a letter with a number is none.
    """
    if table.columns.count(name) > 1:
        return False
    if _words(name)[-1:] and _words(name)[-1] in _OF_UNITS:
        return True
    texts = _different(table.column(name, "unit_column"))
    if any(map(_LETTER_AND_NUMBER.fullmatch, texts)):
        return False
    return max(map(len, texts), default=0) > 1 and all(Unit.of(text).is_known for text in texts)


def _different(cells: Sequence[str]) -> list[str]:
    """Return the different texts in cells, without those that say that there is none."""
    return [text for text in dict.fromkeys(cells) if not is_missing(text)]


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without a unit in brackets."""
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]\s*$", "", name)
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", " ", bare).casefold())


def _stem(name: str, endings: set[str]) -> tuple[str, ...]:
    """Return the words of a name without those at its end that say what the column holds."""
    words = _words(name)
    while words and words[-1] in endings:
        words.pop()
    return tuple(words)


def _counted(cells: Sequence[str]) -> str:
    """Return different texts with how often they occur: ``"nM (30), none (2)"``."""
    counts = Counter("none" if is_missing(text) else text for text in cells)
    return first_few([f"{text[:20]} ({n})" for text, n in counts.most_common()])


def note_kinds(
    table: Table, target: str, rows: np.ndarray, covariates: Sequence[str], notes: list[str]
) -> None:
    """Note that a column says of the values that they are of several kinds (IC50 and Ki)."""
    for name in dict.fromkeys(table.columns):
        if name in (target, *covariates) or table.columns.count(name) > 1:
            continue
        every = table.column(name, "column")
        cells = [every[row] for row in rows.tolist()]
        kinds = _different(cells)
        named = bool(_OF_KINDS & set(_words(name)[-1:])) and any(map(_KIND.match, kinds))
        if len(kinds) > 1 and (named or all(map(_KIND.match, kinds))):
            notes.append(
                f"column {name!r} holds {_counted(cells)}: all are learned as one quantity. Keep "
                "the rows of one, or tell them apart by covariates=COLUMN."
            )


# --- values -------------------------------------------------------------------------------------


def factors_to_unit(
    table: Table,
    target: str,
    rows: np.ndarray,
    unit: str | None,
    column: str | None,
    molar_mass: Callable[[int], float],
    notes: list[str],
) -> tuple[str | None, np.ndarray | None]:
    """Return the unit of a target, and what its values in rows are multiplied by; None: by one.

    ``unit`` is asked for: where a value cannot be converted into it, the factor is NaN. If it is
    None, all rows must have the same. ``molar_mass`` returns that of a position in ``rows``.
    """
    cells, found = _units_of_rows(table, target, rows, column, notes)
    if not cells:
        return unit or unit_in(target), None
    units = {text: Unit.of(text) for text in cells}
    if unit is None and len(set(units.values())) > 1:
        raise GraphDataError(
            f"{target!r} has values in different units: {found}. Name the one to learn in by "
            "unit=UNIT, which converts the others, or ignore the column by unit_column='none'."
        )
    if unit is None:
        if column is None and cells[0] != unit_in(target):
            notes.append(f"{found}: the unit of {target!r}, unless unit_column='none'.")
        return cells[0], None
    goal = Unit.of(unit)
    if set(units.values()) == {goal}:
        return unit, None
    if _LOGARITHM.match(target):
        raise GraphDataError(
            f"unit={unit!r}: {found}, and logarithms, which {target!r} seems to hold, are not "
            "converted. Leave it out."
        )
    factors = np.array([units[text].factor_to(goal) for text in cells])
    weighed = [k for k, text in enumerate(cells) if np.isfinite(units[text].factor_to(goal, 1.0))]
    for k in weighed:
        if np.isnan(factors[k]):
            factors[k] = units[cells[k]].factor_to(goal, molar_mass(k))
    if not weighed:
        raise GraphDataError(
            f"unit={unit!r}: {found}, which cannot be converted into it. Name another unit, or "
            "another column by unit_column=COLUMN."
        )
    notes.append(f"{found}: values were converted to {unit}.")
    return unit, factors


def _units_of_rows(
    table: Table, target: str, rows: np.ndarray, column: str | None, notes: list[str]
) -> tuple[list[str], str]:
    """Return the unit of each row ("": not known), or nothing, and what was found in words.

    A unit beside a number counts for that row, whatever the column or its name says.
    """
    named, holder = unit_in(target), unit_column(table, target, column, notes)
    named = named if named and Unit.of(named).is_known else None
    every = [] if holder is None else table.column(holder, "unit_column")
    cells = [every[row] for row in rows.tolist() if every]
    texts = table.column(target, "target")
    beside = ["" if column == "none" else read_cell(texts[row]).unit for row in rows.tolist()]
    if _different(cells):
        found = f"column {holder!r} holds {_counted(cells)}"
        if named and {Unit.of(text) for text in _different(cells)} != {Unit.of(named)}:
            raise GraphDataError(
                f"{found}, but the name of column {target!r} says {named}. Rename that, or ignore "
                "the other column by unit_column='none'."
            )
        cells = [named or "" if is_missing(text) else text for text in cells]
    else:
        found = f"the name of column {target!r} says {named}" if named else ""
        cells = [named] * len(rows) if named else []
    own = [text for text in beside if text]
    pairs = zip(beside, cells or beside, strict=True)
    if not own or (cells and all(Unit.of(x) == Unit.of(y) for x, y in pairs if x)):
        return cells, found
    said = f"cells of column {target!r} say {_counted(own)}"
    rest = cells or (own[:1] if len({*map(Unit.of, own)}) == 1 else [""]) * len(rows)
    cells = [text or other for text, other in zip(beside, rest, strict=True)]
    return cells, f"{found}, and {said}" if found else said
