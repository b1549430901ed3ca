"""What tables of pages are made of: rows, means, paired tests, numbers in words, figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.rows import read_rows
from treelens.evaluation.statistics import (
    PairedTest,
    compare_means,
    corrected_t_test,
    holm,
    size_ratio,
)

Rows = Sequence[Mapping[str, Any]]
EARLIER = "auto_3"  # our default in version 0.1


class FromRows(NamedTuple):
    """A table or a figure of a page: what makes it, and the studies whose rows it takes."""

    make: Callable[..., Any]
    studies: tuple[str, ...]


def from_rows(make: Callable[..., Any], *studies: str) -> FromRows:
    """Return what is made from the rows of some studies, each of them an argument."""
    return FromRows(make, studies)


def rows_of(out: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a study in a folder of results."""
    return read_rows(out / "rows" / f"{name}.jsonl")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of the given cells, in which no line breaks at a plus-minus."""
    lines = [header, ["---"] * len(header), *rows]
    text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def save_figure(figure: Any, folder: Path, name: str) -> Path:
    """Write a matplotlib figure, without dates or versions inside."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


# --- numbers in words -------------------------------------------------------------------------


def plus_minus(mean: float, error: float | None, digits: int = 2) -> str:
    """Return a mean with its standard deviation or error, if there is one."""
    return f"{mean:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def p_text(p_value: float | None) -> str:
    """Return a p-value as a table shows it; nothing where there is none."""
    if p_value is None:
        return ""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def difference_text(test: PairedTest, digits: int = 3, times: float = 1.0) -> str:
    """Return a difference with its sign and standard error."""
    error = None if test.standard_error is None else times * test.standard_error
    after = "" if error is None else f" ± {error:.{digits}f}"
    return signed(round(times * test.difference, digits) + 0.0, digits) + after


# --- statistics -------------------------------------------------------------------------------


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float | None]:
    """Return the mean and its standard error; None for the error of one value."""
    values = np.asarray(values, dtype=float)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return float(values.mean()), error


def grouped(rows: Rows, *fields: str) -> dict[Any, list[Mapping[str, Any]]]:
    """Group rows by the values of fields, in order of first appearance."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = tuple(row[field] for field in fields)
        groups.setdefault(key if len(fields) > 1 else key[0], []).append(row)
    return groups


def at_earlier_defaults(rows: Rows) -> list[Mapping[str, Any]]:
    """Return rows with our default as it was in version 0.1, beside which other rows were made."""
    before = {(row["set"], row["kind"], row["split"]) for row in rows if row["method"] == EARLIER}
    kept = [
        row
        for row in rows
        if row["method"] != "auto" or (row["set"], row["kind"], row["split"]) not in before
    ]
    return [{**row, "method": "auto"} if row["method"] == EARLIER else row for row in kept]


def common_rows(rows: Rows, within: Sequence[str], split: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows of the splits that every method has, set by set."""
    # `within` names the fields of a comparison, `split` those that identify a split in it.
    kept: list[Mapping[str, Any]] = []
    for members in grouped(rows, *within).values() if within else [list(rows)]:
        methods = {row["method"] for row in members}
        for found in grouped(members, *split).values():
            if {row["method"] for row in found} == methods:
                kept += found
    return kept


def paired(
    rows: Rows, ours: str, theirs: str, score: str, split: Sequence[str]
) -> PairedTest | None:
    """Return the corrected test of two methods on the splits of both; None of fewer than two."""
    first, second = (
        {tuple(r[k] for k in split): r for r in rows if r["method"] == m} for m in (ours, theirs)
    )
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return None
    scores = ([own[key][score] for key in shared] for own in (first, second))
    return corrected_t_test(*scores, ratio_of([first[key] for key in shared]))


def ratio_of(rows: Rows) -> float:
    """Return the size of test parts divided by that of training parts, over a row per split."""
    return size_ratio([row["n_test"] for row in rows], [row["n_train"] for row in rows])


def holm_of(tests: Mapping[Any, PairedTest | None]) -> dict[Any, float | None]:
    """Return the p-values of the tests of a table, corrected for their number."""
    p_values = [None if test is None else test.p_value for test in tests.values()]
    return dict(zip(tests, holm(p_values), strict=True))


def ties(rows: Rows, score: str, smaller: bool) -> tuple[str, ...]:
    """Return the best of the methods with all splits of a set, and all that are level with it."""
    by_method = grouped(rows, "method")
    n_splits = max(map(len, by_method.values()))
    whole = {m: sorted(own, key=_split_of) for m, own in by_method.items() if len(own) == n_splits}
    if len(whole) < 2 or n_splits < 2:
        return ()
    scores = {method: [row[score] for row in own] for method, own in whole.items()}
    return compare_means(scores, not smaller, ratio_of(next(iter(whole.values())))).ties


def _split_of(row: Mapping[str, Any]) -> Any:
    return row["split"]
