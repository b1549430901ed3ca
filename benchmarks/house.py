"""The size of the code by room, and the files that a call visits.

    python -m benchmarks.house           print the tables of CONTRIBUTING.md
    python -m benchmarks.house --check   fail where a room is above its budget of lines
    python -m benchmarks.house --lines   only the table of lines

The budgets are in ``budgets.toml`` beside this file. The treelens that is imported is measured: set
``PYTHONPATH`` for another one.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl

SOURCE = Path(tl.__file__).parent
BUDGETS = Path(__file__).with_name("budgets.toml")
_FUNCTION = 0x1  # of co_flags: modules and bodies of classes lack it


def rooms() -> dict[str, list[Path]]:
    """Return the files of every folder; those at the root last."""
    found: dict[str, list[Path]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        inside = file.relative_to(SOURCE).parts
        found.setdefault(inside[0] if len(inside) > 1 else "root", []).append(file)
    return found


def lines_of(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def read_budgets() -> dict[str, int]:
    """Return the largest number of lines of every room."""
    lines = re.findall(r"^(\w+) = (\d+)$", BUDGETS.read_text(encoding="utf-8"), re.MULTILINE)
    return {room: int(n) for room, n in lines}


def over_budget(budgets: dict[str, int], lines: dict[str, int]) -> list[str]:
    """Return a message for every room without a budget or above it."""
    messages = []
    for room, n in lines.items():
        if room not in budgets:
            messages.append(f"{room} has {n:,} lines and no budget")
        elif n > budgets[room]:
            over = n - budgets[room]
            messages.append(
                f"{room} has {n:,} lines, {over:,} above its budget of {budgets[room]:,}"
            )
    return messages


def check() -> int:
    """Print rooms above their budget; return the exit code."""
    found = {room: sum(map(lines_of, files)) for room, files in rooms().items()}
    messages = over_budget(read_budgets(), found)
    for message in messages:
        print(f"{message}: delete something, or raise the budget with a reason ({BUDGETS.name})")
    return int(bool(messages))


def function_sizes(file: Path) -> Iterator[int]:
    """Yield the lines of every function without signature and docstring."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def print_lines() -> None:
    print("| room | lines | files |\n| --- | --- | --- |")
    everything = []
    for room, files in rooms().items():
        print(f"| {room} | {sum(map(lines_of, files)):,} | {len(files)} |")
        everything += files
    print(f"| all | {sum(map(lines_of, everything)):,} | {len(everything)} |\n")
    print("| lines of | median | 90 % | 99 % | largest |\n| --- | --- | --- | --- | --- |")
    for what, sizes in (
        ("a file", [lines_of(file) for file in everything if file.name != "__init__.py"]),
        ("a function", [size for file in everything for size in function_sizes(file)]),
    ):
        at = np.percentile(sizes, [50, 90, 99, 100]).round().astype(int)
        print(f"| {what} | {' | '.join(map(str, at))} |")


# --- files visited --------------------------------------------------------------------------


def print_visits() -> None:
    columns = {"GraphRegressor": "numbers", "GraphClassifier": "classes", "GraphSVC": "svc"}
    print(f"\n| files visited by | {' | '.join(columns)} |\n| --- | --- | --- | --- |")
    found = [visits(kind) for kind in columns.values()]
    for step in found[0]:
        print(f"| {step} | {' | '.join(str(column[step]) for column in found)} |")


def visits(kind: str) -> dict[str, int]:
    """Return how many files of treelens have a function that runs in each step."""
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=0)
    y = y + np.linspace(0, 0.1, len(y)) if kind == "numbers" else y
    estimator = {"numbers": tl.GraphRegressor, "classes": tl.GraphClassifier, "svc": tl.GraphSVC}
    model = estimator[kind](depth=2, random_state=0, progress=False)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page, table, saved = (str(Path(folder, name)) for name in ("r.html", "t.csv", "m.treelens"))
        values = (n % 2 if kind != "numbers" else n / 7 for n in range(40))
        rows = (f"{'C' * (1 + n % 7)}{'ON'[n % 2]},{value}\n" for n, value in enumerate(values))
        Path(table).write_text("smiles,value\n" + "".join(rows), encoding="utf-8")
        method = "svc" if kind == "svc" else "gp"
        fit = ["fit", table, "--target", "value", "--method", method, "--depth", "2", "-o", saved]
        steps: dict[str, Callable[[], Any]] = {
            "fit": lambda: model.fit(graphs, y),
            "predict": lambda: model.predict(graphs[:5]),
            "explain": lambda: model.explain(graphs[0]),
            "report": lambda: model.report(page, graphs[:20], y[:20]),
            "treelens fit": lambda: _run(fit),
            "treelens predict": lambda: _run(["predict", saved, table]),
        }
        return {step: len(files_entered(work)) for step, work in steps.items()}


def _run(arguments: list[str]) -> None:
    from typer.testing import CliRunner

    from treelens.cli.main import app

    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        raise RuntimeError(done.output)


def files_entered(work: Callable[[], Any]) -> set[str]:
    """Return the files of treelens with a function that ``work`` calls, in any thread."""
    found: set[str] = set()

    def record(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        inside = code.co_filename.startswith(str(SOURCE))
        if event == "call" and code.co_flags & _FUNCTION and inside:
            found.add(code.co_filename)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


if __name__ == "__main__":
    if "--check" in sys.argv:
        raise SystemExit(check())
    print_lines()
    if "--lines" not in sys.argv:
        print_visits()
