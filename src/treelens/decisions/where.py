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

    def refused(why: str) -> GraphDataError:
        return GraphDataError(f"The condition {condition[:200]!r} cannot be used: {why}.")

    def kind(values: Any) -> str:
        return {"b": "truths", "O": "texts", "U": "texts"}.get(np.asarray(values).dtype.kind, "")

    def truths(node: ast.AST) -> np.ndarray:
        if kind(found := value(node)) != "truths":
            raise refused("compare something, as in 'MW < 500'")
        return np.asarray(found)

    def numbers(node: ast.AST) -> Any:
        if kind(found := value(node)):
            raise refused(f"{ast.unparse(node)!r} is no number")
        return found

    def compared(sign: ast.cmpop, left: ast.AST, right: ast.AST) -> Any:
        if type(sign) not in _COMPARE:
            raise refused("compare with <, <=, >, >=, == or !=")
        sides = value(left), value(right)
        if kind(sides[0]) != kind(sides[1]):
            raise refused("it compares text with numbers; put a text in quotes")
        found = _COMPARE[type(sign)](*sides)
        for side in sides:  # a missing number is not even different
            if np.asarray(side).dtype.kind == "f":
                found = found & ~np.isnan(side)
        return found

    def value(node: ast.AST) -> Any:
        match node:
            case ast.BoolOp():
                joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return joined.reduce([truths(part) for part in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return ~truths(node.operand)
            case ast.UnaryOp(op=ast.USub()):
                return -numbers(node.operand)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                with np.errstate(all="ignore"):
                    return _ARITHMETIC[type(node.op)](numbers(node.left), numbers(node.right))
            case ast.Compare():
                sides = (node.left, *node.comparators)
                parts = zip(node.ops, sides, sides[1:], strict=False)
                return np.logical_and.reduce([compared(*part) for part in parts])
            case ast.Constant() if type(node.value) in (int, float, str):
                return node.value
            case ast.Name():
                name = quoted[int(node.id[8:])] if node.id.startswith("_quoted_") else node.id
                if (values := column(name)) is None:
                    known = ", ".join(SHORT_NAMES)
                    raise refused(f"no column and no descriptor of RDKit is called {name!r}; "
                                  f"without a column there are {known}")  # fmt: skip
                return values
        raise refused(f"{ast.unparse(node)!r} is not allowed; use names of columns, numbers, texts "
                      "in quotes, comparisons, and, or, not, + - * /")  # fmt: skip

    quoted: list[str] = _QUOTED.findall(condition)
    text = _QUOTED.sub(lambda found: f"_quoted_{quoted.index(found[1])}", condition)
    try:
        tree = ast.parse(text[: _LONGEST + 1].strip(), mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or len(text) > _LONGEST:
        raise refused("it cannot be read; write one such as 'MW < 500 and logP <= 5'")
    return np.broadcast_to(truths(tree), (n_rows,)).copy()


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
