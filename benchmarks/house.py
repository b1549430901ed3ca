"""The size of the house, and the way through it: lines, imports, and files that are visited.

    python -m benchmarks.house

prints what ``CONTRIBUTING.md`` quotes, about the treelens that is imported: run it with another
``PYTHONPATH`` to look at another version. With ``--namesakes`` it lists the modules that have no
test of their own name instead, and the tests that import them.
"""

from __future__ import annotations

import ast
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
_FUNCTION = 0x1  # of co_flags: local variables; modules and bodies of classes have none


def main() -> None:
    print("| room | lines | files | imports |\n| --- | --- | --- | --- |")
    for room, files in rooms().items():
        lines = sum(_n_lines(file) for file in files)
        print(f"| {room} | {lines:,} | {len(files)} | {', '.join(imported(files, room))} |")
    everything = [file for files in rooms().values() for file in files]
    print(f"| all | {sum(map(_n_lines, everything)):,} | {len(everything)} | |\n")
    print("| lines of | median | 90 % | 99 % | largest |\n| --- | --- | --- | --- | --- |")
    for what, sizes in (
        ("a file", [_n_lines(file) for file in everything if file.name != "__init__.py"]),
        ("a function", [size for file in everything for size in function_sizes(file)]),
    ):
        at = np.percentile(sizes, [50, 90, 99, 100]).round().astype(int)
        print(f"| {what} | {' | '.join(map(str, at))} |")
    print("\n| files visited by | GraphClassifier | GraphSVC |\n| --- | --- | --- |")
    evidence, svc = (visits(kind) for kind in ("evidence", "svc"))
    for step, n in evidence.items():
        print(f"| {step} | {n} | {svc[step]} |")


def print_namesakes() -> None:
    """Modules with behaviour but without ``tests/ROOM/test_MODULE.py``; compiled ones aside."""
    tests = SOURCE.parents[1] / "tests"
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(tests.rglob("test_*.py"))}
    alone = [file for files in rooms().values() for file in files if lacks_namesake(file, tests)]
    for file in alone:
        inside = file.relative_to(SOURCE).with_suffix("")
        name = f"treelens.{'.'.join(inside.parts)} import"
        users = [str(test.relative_to(tests)) for test, text in texts.items() if name in text]
        print(f"{inside}: {', '.join(users) or '-'}")
    print(f"{len(alone)} modules")


def lacks_namesake(file: Path, tests: Path) -> bool:
    inside = file.relative_to(SOURCE)
    test = tests / inside.parent / f"test_{file.stem}.py"
    return not file.stem.startswith("_") and not test.exists() and any(function_sizes(file))


def rooms() -> dict[str, list[Path]]:
    """Files by the folder they lie in; those at the root come last."""
    found: dict[str, list[Path]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        inside = file.relative_to(SOURCE).parts
        found.setdefault(inside[0] if len(inside) > 1 else "(root)", []).append(file)
    return found


def _n_lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def imported(files: list[Path], room: str) -> list[str]:
    """Other rooms, and modules at the root, that files of a room import anywhere."""
    names = {
        name.split(".")[1]
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in _names_of(node)
        if name.startswith("treelens.")
    }
    return sorted(names - {room})


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def function_sizes(file: Path) -> Iterator[int]:
    """Lines of every function without its docstring and signature."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1


def visits(method: str) -> dict[str, int]:
    """How many files of treelens have a function that runs in each step, imports aside."""
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=0)
    kind = {"evidence": tl.GraphClassifier, "svc": tl.GraphSVC}[method]
    model = kind(depth=2, random_state=0, progress=False)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page, table = Path(folder, "report.html"), Path(folder, "table.csv")
        rows = (f"{'C' * (1 + n % 7)}{'ON'[n % 2]},{n % 2}\n" for n in range(40))
        table.write_text("smiles,active\n" + "".join(rows), encoding="utf-8")
        arguments = ["fit", str(table), "--target", "active", "--method", method, "--depth", "2"]
        steps: dict[str, Callable[[], Any]] = {
            "fit": lambda: model.fit(graphs, y),
            "predict": lambda: model.predict(graphs[:5]),
            "explain": lambda: model.explain(graphs[0]),
            "report": lambda: model.report(page, graphs[:20], y[:20]),
            "treelens fit": lambda: _run([*arguments, "--out", str(Path(folder, "x.treelens"))]),
        }
        return {step: len(files_entered(work)) for step, work in steps.items()}


def _run(arguments: list[str]) -> None:
    from typer.testing import CliRunner

    from treelens.cli.main import app

    done = CliRunner().invoke(app, arguments)
    if done.exit_code:
        raise RuntimeError(done.output)


def files_entered(work: Callable[[], Any]) -> set[str]:
    """Files of treelens with a function that ``work`` calls, in any thread."""
    found: set[str] = set()

    def look(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & _FUNCTION
            and code.co_filename.startswith(str(SOURCE))
        ):
            found.add(code.co_filename)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


if __name__ == "__main__":
    print_namesakes() if "--namesakes" in sys.argv else main()
