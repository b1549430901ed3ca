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

    Parameters
    ----------
    condition : str
        ``"MW < 500 and (logP <= 5 or `Assay type` == 'B')"``; backticks stand around a name with
        blanks in it.
    n_rows : int
    column : callable
        Returns numbers or texts of a column, or None where there is none of this name.

    Examples
    --------
    >>> table = {"MW": np.array([300.0, 600.0, np.nan]), "kind": np.array(["a", "a", "b"])}
    >>> rows_where("MW < 500 and kind == 'a'", 3, table.get).tolist()
    [True, False, False]
    """
    quoted: list[str] = _QUOTED.findall(condition)
    text = _QUOTED.sub(lambda found: f"_quoted_{quoted.index(found[1])}", condition)
    try:
        if len(condition) > _LONGEST:
            raise SyntaxError("it is too long")
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise GraphDataError(
            f"where={condition!r} cannot be read ({error}). Write a condition such as "
            "'MW < 500 and logP <= 5'."
        ) from None

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [value(part) for part in node.values]
            joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return joined.reduce([_truths(part, condition) for part in parts])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~_truths(value(node.operand), condition)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -_numbers(value(node.operand), condition)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            sides = [_numbers(value(side), condition) for side in (node.left, node.right)]
            with np.errstate(all="ignore"):
                return _ARITHMETIC[type(node.op)](*sides)
        if isinstance(node, ast.Compare):
            sides = [value(side) for side in (node.left, *node.comparators)]
            found = np.ones(n_rows, dtype=bool)
            for sign, left, right in zip(node.ops, sides, sides[1:], strict=False):
                found &= _compared(sign, left, right, condition)
            return found
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            return node.value
        if isinstance(node, ast.Name):
            name = quoted[int(node.id[8:])] if node.id.startswith("_quoted_") else node.id
            if (values := column(name)) is None:
                raise GraphDataError(
                    f"where={condition!r}: there is no column {name!r}, and RDKit has no such "
                    f"descriptor. Known without a column: {', '.join(SHORT_NAMES)}."
                )
            return values
        raise GraphDataError(
            f"where={condition!r}: {ast.unparse(node)!r} is not allowed. Use names of columns, "
            "numbers, texts in quotes, comparisons, and, or, not, and + - * /."
        )

    return np.broadcast_to(_truths(value(tree), condition), (n_rows,)).copy()


def _compared(sign: ast.cmpop, left: Any, right: Any, condition: str) -> Any:
    if type(sign) not in _COMPARE:
        raise GraphDataError(f"where={condition!r}: compare with <, <=, >, >=, == or !=.")
    texts = [np.asarray(side).dtype.kind in "OUS" for side in (left, right)]
    if all(texts):
        left, right = (np.asarray(side).astype(str) for side in (left, right))
    elif any(texts):
        left, right = (_numbers(side, condition) for side in (left, right))
    found = _COMPARE[type(sign)](left, right)
    missing = [np.asarray(s).dtype.kind == "f" and np.isnan(s) for s in (left, right)]
    return found & ~np.logical_or(*missing)  # a missing number meets no condition, not even !=


def _numbers(values: Any, condition: str) -> Any:
    if np.asarray(values).dtype.kind in "OUS":
        raise GraphDataError(
            f"where={condition!r} compares a column of text with a number, or calculates with it. "
            "Put the text to compare with in quotes, or make all cells of the column numbers."
        )
    return values


def _truths(values: Any, condition: str) -> np.ndarray:
    if np.asarray(values).dtype.kind != "b":
        raise GraphDataError(
            f"where={condition!r} is no condition: compare something, as in 'MW < 500'."
        )
    return np.asarray(values)


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells], dtype=object)
