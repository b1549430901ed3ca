"""Conditions on candidates: comparisons of columns and descriptors, in a text."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import pandas as pd

from treelens.errors import GraphDataError

# Names that chemists use, and RDKit's.
SHORT_NAMES = {
    "MW": "MolWt",
    "logP": "MolLogP",
    "clogP": "MolLogP",
    "HBD": "NumHDonors",
    "HBA": "NumHAcceptors",
    "RotB": "NumRotatableBonds",
    "rings": "RingCount",
    "heavy_atoms": "HeavyAtomCount",
}
_OPERATORS: dict[type, Any] = {
    ast.And: operator.and_,
    ast.Or: operator.or_,
    ast.Not: operator.invert,
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_QUOTED = re.compile(r"`([^`]+)`")
_LONGEST = 1000  # characters: deeper nesting would exhaust the parser


def rows_where(condition: str, column: Callable[[str], np.ndarray | None]) -> np.ndarray:
    """Return which rows meet a condition, shape (n_rows,).

    Rows where it cannot be computed, as a number is missing or divided by 0, do not meet it: a
    warning counts them. ``column`` returns the numbers or texts of a column, or None where there is
    none of this name. Backticks stand around a name with blanks in it.
    """
    text, quoted = _as_python(condition)

    def given(part: str) -> str:
        """Return a part of the text as it was in the condition."""
        return reduce(lambda x, name: x.replace(name, f"`{quoted[name]}`"), quoted, part)

    def computed(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            return given(node.value) if isinstance(node.value, str) else node.value
        if isinstance(node, ast.Name):
            name = quoted.get(node.id, node.id)
            if (values := column(name)) is None:
                known = ", ".join(SHORT_NAMES)
                raise ValueError(f"there is no column or descriptor {name!r}; some are {known}")
            return values if values.dtype.kind in "OU" else pd.array(values, dtype="Float64")
        marks = node.ops if isinstance(node, ast.Compare) else [getattr(node, "op", None)]
        if not {type(mark) for mark in marks} <= set(_OPERATORS):
            raise ValueError(
                "use names of columns, numbers, texts in quotes, <, <=, >, >=, ==, !=, and, or, "
                "not, + - * / only"
            )
        sides = [computed(x) for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
        kinds, operators = set(map(_kind, sides)), [_OPERATORS[type(x)] for x in marks]
        if isinstance(node, ast.Compare):
            steps = list(zip(operators, sides[:-1], sides[1:], strict=True))
            if len(kinds) > 1 or any(np.isscalar(a) and np.isscalar(b) for _, a, b in steps):
                raise ValueError("compare a column with numbers, or with a text in quotes")
            compared = [pd.array(compare(a, b), dtype="boolean") for compare, a, b in steps]
            return reduce(operator.and_, compared)
        logical = isinstance(marks[0], (ast.And, ast.Or, ast.Not))
        if kinds != {"truth" if logical else "number"}:
            raise ValueError(f"the parts of {given(ast.unparse(node))!r} do not fit together")
        result = reduce(operators[0], sides) if len(sides) > 1 else operators[0](sides[0])
        return result if logical or np.isscalar(result) else _finite(result)

    try:
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        found = computed(ast.parse(text, mode="eval").body)
        if _kind(found) != "truth":
            raise ValueError("compare something, as in 'MW < 500 and logP <= 5'")
    except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError) as error:
        words = {
            SyntaxError: "write it like 'MW < 500 and logP <= 5'",
            RecursionError: "it is nested too deeply",
        }
        why = words.get(type(error), error)
        raise GraphDataError(f"The condition {condition[:200]!r} cannot be used: {why}.") from None
    if unknown := int(found.isna().sum()):
        warnings.warn(
            f"{unknown} of {len(found)} candidates left out: the condition {condition!r} cannot be "
            "computed for them, as a number is missing or divided by 0."
        )
    return found.to_numpy(dtype=bool, na_value=False)


def _as_python(condition: str) -> tuple[str, dict[str, str]]:
    """Return a condition with plain names for those in backticks, and what they stand for."""
    stand_in = "quoted_"
    while stand_in in condition:
        stand_in += "_"
    pieces = _QUOTED.split(condition)  # every second one stood in backticks
    quoted = {f"{stand_in}{k}_": name for k, name in enumerate(pieces[1::2])}
    return "".join(chain(*zip_longest(pieces[::2], quoted, fillvalue=""))).strip(), quoted


def _kind(value: object) -> str:
    letter = getattr(value, "dtype", np.asarray(value).dtype).kind
    return "truth" if letter == "b" else "text" if letter in "OU" else "number"


def _finite(numbers: pd.api.extensions.ExtensionArray) -> pd.api.extensions.ExtensionArray:
    """Return computed numbers; those that cannot be computed count as missing."""
    known = numbers.to_numpy(dtype=float, na_value=np.nan)
    return pd.array(np.where(np.isfinite(known), known, np.nan), dtype="Float64")


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
