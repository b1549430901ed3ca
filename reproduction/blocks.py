"""Tables in pages that are written by hand: blocks between marks, filled from rows.

A page holds ``<!-- table: NAME -->`` and ``<!-- end -->``, each on a line of its own; what lies
between them is the table of that name, and nobody's to edit. Decimal numbers of the prose around
are those of the page's tables, or published ones, so that rows which change are noticed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

_BEGIN = re.compile(r"<!-- table: (\S+) -->")
_END = "<!-- end -->"
_NO_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
_DECIMAL = re.compile(r"\d+\.\d+")


class PageError(ValueError):
    """A page whose blocks cannot be filled."""


def filled(text: str, table: Callable[[str], str], page: str = "the page") -> str:
    """Return a page with every block holding its table; ``table`` makes that of a name."""
    lines: list[str] = []
    opened = 0  # the line of the mark that waits for its end
    for number, line in enumerate(text.split("\n"), start=1):
        begin = _BEGIN.fullmatch(line.strip())
        if begin and opened:
            raise PageError(f"{page}, line {opened}: no {_END} before the next table.")
        if line.strip() == _END and not opened:
            raise PageError(f"{page}, line {number}: {_END} ends no table.")
        if begin:
            opened = number
            found = table(begin[1])
            if not found:
                raise PageError(f"{page}, line {number}: there are no rows for {begin[1]!r}.")
            lines += [line, found]
        elif line.strip() == _END:
            opened = 0
        if not opened or line.strip() == _END:
            lines.append(line)
    if opened:
        raise PageError(f"{page}, line {opened}: no {_END} after this table.")
    return "\n".join(lines)


def refresh(pages: Iterable[Path], table: Callable[[str], str]) -> list[Path]:
    """Fill the blocks of pages in place; returns those that changed."""
    changed = []
    for path in pages:
        text = path.read_text(encoding="utf-8")
        new = filled(text, table, path.name)
        if new != text:
            part = path.with_suffix(".part")
            part.write_text(new, encoding="utf-8")
            os.replace(part, path)
            changed.append(path)
    return changed


def tables_of(text: str) -> list[str]:
    """Return the names of the tables of a page."""
    return _BEGIN.findall(text)


def prose_of(text: str) -> str:
    """Return a page without its tables, its code and the targets of its links."""
    kept, within = [], False
    for line in text.split("\n"):
        within = (within or bool(_BEGIN.fullmatch(line.strip()))) and line.strip() != _END
        kept += [] if within else [line]
    return _NO_PROSE.sub(" ", "\n".join(kept))


def decimals_in(text: str) -> set[str]:
    """Return the decimal numbers of a text, without signs."""
    return set(_DECIMAL.findall(text))
