"""Conditions on the rows of a table, such as ``MW < 500 and logP <= 5``.

``DataFrame.eval`` computes them, but could call any function: so a condition is parsed first, and
all but comparisons, ``and``, ``or``, ``not``, arithmetic, numbers, texts and names is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from treelens.graphs.errors import GraphDataError

# Names that chemists use, and RDKit's.
SHORT_NAMES = {
    "MW": "MolWt", "logP": "MolLogP", "clogP": "MolLogP", "HBD": "NumHDonors",
    "HBA": "NumHAcceptors", "RotB": "NumRotatableBonds", "rings": "RingCount",
    "heavy_atoms": "HeavyAtomCount",
}  # fmt: skip
_ALLOWED = (
    ast.BoolOp, ast.And, ast.Or, ast.Not, ast.UnaryOp, ast.USub, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.Div, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Name,
    ast.Load, ast.Constant,
)  # fmt: skip
_QUOTED = re.compile(r"`([^`]+)`")
_LONGEST = 1000  # characters: deeper nesting would exhaust the parser


def rows_where(condition: str, column: Callable[[str], np.ndarray | None]) -> np.ndarray:
    """Return which rows meet a condition, shape (n_rows,); unknown because of a missing number: no.

    ``column`` returns the numbers or texts of a column, or None where there is none of this name.
    Backticks stand around a name with blanks in it.

    Examples
    --------
    >>> table = {"MW": np.array([300.0, 600.0, np.nan]), "kind": np.array(["a", "a", "b"])}
    >>> rows_where("MW < 500 and kind == 'a'", table.get).tolist()
    [True, False, False]
    """

    def refused(why: str) -> GraphDataError:
        return GraphDataError(f"The condition {condition[:200]!r} cannot be used: {why}.")

    quoted: list[str] = _QUOTED.findall(condition)
    text = _QUOTED.sub(lambda found: f"_quoted_{quoted.index(found[1])}", condition).strip()
    try:
        tree = ast.parse(text[: _LONGEST + 1], mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if tree is None or len(text) > _LONGEST:
        raise refused("it cannot be read; write one such as 'MW < 500 and logP <= 5'")
    nodes, columns = list(ast.walk(tree)), {}
    for node in nodes:
        odd = isinstance(node, ast.Constant) and type(node.value) not in (int, float, str)
        if odd or not isinstance(node, _ALLOWED):
            raise refused(
                "use names of columns, numbers, texts in quotes, <, <=, >, >=, ==, !=, and, or, "
                "not, + - * / only"
            )
        if isinstance(node, ast.Name):
            name = quoted[int(node.id[8:])] if node.id.startswith("_quoted_") else node.id
            if (values := column(name)) is None:
                raise refused(
                    f"no column and no descriptor of RDKit is called {name!r}; without a column "
                    f"there are {', '.join(SHORT_NAMES)}"
                )
            is_text = values.dtype.kind in "OU"
            columns[node.id] = values if is_text else pd.array(values, dtype="Float64")

    def kind(node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return "text" if isinstance(columns[node.id], np.ndarray) else "number"
        if isinstance(node, ast.Constant):
            return "text" if isinstance(node.value, str) else "number"
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        return "truth" if negated or isinstance(node, (ast.Compare, ast.BoolOp)) else "number"

    for node in nodes:
        sides = {kind(side) for side in ast.iter_child_nodes(node) if isinstance(side, ast.expr)}
        if isinstance(node, ast.Compare) and len(sides) > 1:
            raise refused("it compares text with numbers; put a text in quotes")
        if isinstance(node, ast.BinOp) and sides != {"number"}:
            raise refused(f"{ast.unparse(node)!r} is no number")
        if kind(node) == "truth" and not isinstance(node, ast.Compare) and sides != {"truth"}:
            raise refused("compare something, as in 'MW < 500'")
    if kind(tree) != "truth" or not columns:
        raise refused("compare something, as in 'MW < 500'")
    found: Any = pd.DataFrame(columns).eval(text, engine="python")
    return found.astype("boolean").fillna(False).to_numpy(dtype=bool)


def column_of_cells(cells: Sequence[str]) -> np.ndarray:
    """Return the cells of a table as numbers where all that are not empty are, else as texts."""
    try:
        return np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
