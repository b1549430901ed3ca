"""Markdown pages and JSON files of results: one way to write them all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from treelens.json_values import unpacked


def command_line(target: str, extra: str = "") -> str:
    """The command that makes a page.

    Examples
    --------
    >>> command_line("table1")
    'python -m reproduction table1 --out docs/results'
    """
    return " ".join(["python -m reproduction", target, *extra.split(), "--out docs/results"])


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of the given cells.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [[1, 2.5]]))
    | a | b |
    | --- | --- |
    | 1 | 2.5 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write_page(path: Path, title: str, command: str, parts: Iterable[str]) -> Path:
    """A page: its title, the command that made it, and paragraphs, tables and headings."""
    intro = f"Written by `{command}`."
    text = "\n\n".join([f"# {title}", intro, *(part.strip("\n") for part in parts)])
    return _write_whole(path, text + "\n")


def write_json(path: Path, data: Any) -> Path:
    """Indented JSON with keys in the order given; numpy numbers are welcome."""
    return _write_whole(path, json.dumps(data, indent=1, default=unpacked) + "\n")


def _write_whole(path: Path, text: str) -> Path:
    """All of a file or nothing: a run that is killed leaves no half of one behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return path


def plus_minus(mean: float, std: float | None, digits: int = 2) -> str:
    """Mean and standard deviation, as far as there is one.

    Examples
    --------
    >>> plus_minus(88.371, 1.824), plus_minus(88.371, None)
    ('88.37 ± 1.82', '88.37')
    """
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")


def p_text(p_value: float) -> str:
    """A p-value as a table shows it.

    Examples
    --------
    >>> p_text(0.0312), p_text(0.00002)
    ('0.031', '<0.001')
    """
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def counts_text(values: Iterable[Any]) -> str:
    """How often each value occurs, the most frequent first.

    Examples
    --------
    >>> counts_text([3, 1, 3])
    '3: 2, 1: 1'
    """
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return ", ".join(f"{_short(value)}: {count}" for value, count in ordered)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
