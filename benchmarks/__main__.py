"""Run the benchmarks and print one table: ``python -m benchmarks [NAME ...]``."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row

ALONE = ("fit",)  # which needs another checkout
SIGNS = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "[yellow]-[/]"}


def names() -> list[str]:
    """``kernels`` for ``bench_kernels.py``, and so on."""
    files = sorted(Path(__file__).parent.glob("bench_*.py"))
    found = [file.stem.removeprefix("bench_") for file in files]
    return [name for name in found if name not in ALONE]


def rows_of(chosen: list[str], console: Console) -> Iterator[Row]:
    """The rows of the chosen files, each shown as soon as it is known."""
    for name in chosen:
        for row in importlib.import_module(f"benchmarks.bench_{name}").rows():
            console.print(f"[dim]{name}:[/] {row.claim}: {row.measured}")
            yield row


def table_of(rows: list[Row]) -> Table:
    table = Table(title="What is claimed, and what was measured", show_lines=True)
    for heading in ("claim", "measured", "target", "met?"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.claim, row.measured, row.target, SIGNS[row.met])
    return table


def write_rows(path: Path, rows: list[Row]) -> None:
    """Replace or add the rows of these claims in a file of JSON lines."""
    known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    table = {json.loads(line)["claim"]: json.loads(line) for line in known}
    table |= {row.claim: row._asdict() for row in rows}
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.values())
    path.write_text("".join(lines), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(names())}")
    parser.add_argument("--out", type=Path, help="file of JSON lines to put the rows into")
    arguments = parser.parse_args()
    chosen = arguments.names or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(names())}")
    console = Console()
    rows = list(rows_of(chosen, console))
    console.print(table_of(rows))
    if arguments.out is not None:
        write_rows(arguments.out, rows)
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
