"""Conditions on the rows of a table, such as ``MW < 500 and logP <= 5``.

They are written as Python writes them, but never run as Python, nor by ``DataFrame.query``, which
can reach any function: the text is parsed, and only comparisons, ``and``, ``or``, ``not``,
arithmetic, numbers, texts and names of columns are evaluated; all else is an error.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError

# Names that chemists use, and RDKit's.
SHORT_NAMES = {
    "MW": "MolWt", "logP": "MolLogP", "clogP": "MolLogP", "HBD": "NumHDonors",
    "HBA": "NumHAcceptors", "RotB": "NumRotatableBonds", "rings": "RingCount",
    "heavy_atoms": "HeavyAtomCount",
}  # fmt: skip
_COMPARE: dict[type, Callable[..., Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_ARITHMETIC: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: np.divide,
}  # fmt: skip
_QUOTED = re.compile(r"`([^`]+)`")
_LONGEST = 1000  # characters: deeper nesting would exhaust the parser


def rows_where(
    condition: str, n_rows: int, column: Callable[[str], np.ndarray | None]
) -> np.ndarray:
    """Return which rows meet a condition, shape (n_rows,); a row with a missing number does not.

    ``column`` returns the numbers or texts of a column, or None where there is none of this name.
    Backticks stand around a name with blanks in it.

    Examples
    --------
    >>> table = {"MW": np.array([300.0, 600.0, np.nan]), "kind": np.array(["a", "a", "b"])}
    >>> rows_where("MW < 500 and kind == 'a'", 3, table.get).tolist()
    [True, False, False]
    """
    quoted: list[str] = _QUOTED.findall(condition)
    text = _QUOTED.sub(lambda found: f"_quoted_{quoted.index(found[1])}", condition)
    reader = _Condition(condition, quoted, column)
    try:
        tree = ast.parse(text[: _LONGEST + 1].strip(), mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or len(text) > _LONGEST:
        raise reader.refused("it cannot be read; write one such as 'MW < 500 and logP <= 5'")
    return np.broadcast_to(reader.truths(tree), (n_rows,)).copy()


@dataclass(frozen=True)
class _Condition:
    """Evaluates the parts of a parsed condition; ``quoted`` are the names in backticks."""

    text: str
    quoted: list[str]
    column: Callable[[str], np.ndarray | None]

    def refused(self, why: str) -> GraphDataError:
        return GraphDataError(f"The condition {self.text[:200]!r} cannot be used: {why}.")

    def truths(self, node: ast.AST) -> np.ndarray:
        if _kind(found := self.value(node)) != "truths":
            raise self.refused("compare something, as in 'MW < 500'")
        return np.asarray(found)

    def numbers(self, node: ast.AST) -> Any:
        if _kind(found := self.value(node)):
            raise self.refused(f"{ast.unparse(node)!r} is no number")
        return found

    def compared(self, sign: ast.cmpop, left: ast.AST, right: ast.AST) -> Any:
        if type(sign) not in _COMPARE:
            raise self.refused("compare with <, <=, >, >=, == or !=")
        sides = self.value(left), self.value(right)
        if _kind(sides[0]) != _kind(sides[1]):
            raise self.refused("it compares text with numbers; put a text in quotes")
        found = _COMPARE[type(sign)](*sides)
        for side in sides:  # a missing number is not even different
            if np.asarray(side).dtype.kind == "f":
                found = found & ~np.isnan(side)
        return found

    def named(self, name: str) -> np.ndarray:
        if name.startswith("_quoted_"):
            name = self.quoted[int(name[8:])]
        if (values := self.column(name)) is None:
            known = ", ".join(SHORT_NAMES)
            raise self.refused(
                f"no column and no descriptor of RDKit is called {name!r}; without a column there "
                f"are {known}"
            )
        return values

    def value(self, node: ast.AST) -> Any:
        match node:
            case ast.BoolOp():
                joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return joined.reduce([self.truths(part) for part in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return ~self.truths(node.operand)
            case ast.UnaryOp(op=ast.USub()):
                return -self.numbers(node.operand)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                sides = self.numbers(node.left), self.numbers(node.right)
                with np.errstate(all="ignore"):
                    return _ARITHMETIC[type(node.op)](*sides)
            case ast.Compare():
                ends = (node.left, *node.comparators)
                parts = zip(node.ops, ends, ends[1:], strict=False)
                return np.logical_and.reduce([self.compared(*part) for part in parts])
            case ast.Constant() if type(node.value) in (int, float, str):
                return node.value
            case ast.Name():
                return self.named(node.id)
        raise self.refused(
            f"{ast.unparse(node)!r} is not allowed; use names of columns, numbers, texts in "
            "quotes, comparisons, and, or, not, + - * /"
        )


def _kind(values: Any) -> str:
    """What values are: "truths", "texts", or empty for numbers."""
    return {"b": "truths", "O": "texts", "U": "texts"}.get(np.asarray(values).dtype.kind, "")


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
