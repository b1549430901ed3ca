"""How the code of the package is coupled, and which files a call visits.

    python -m benchmarks.structure           print the tables of CONTRIBUTING.md
    python -m benchmarks.structure --check   fail where a measure is above its limit

The limits are in ``structure.toml`` in the same folder. Files visited are counted on ESOL at the
defaults, so they need ``TREELENS_DATA``. The treelens that is imported is measured: set
``PYTHONPATH`` for another one.
"""

from __future__ import annotations

import ast
import os
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
LIMITS = Path(__file__).with_name("structure.toml")
MANY_PARAMETERS = 6  # functions with more count as wide
FUNCTION_FLAG = 0x1  # of co_flags: modules and bodies of classes lack it

TITLES = {
    "statements": "statements",
    "tuple_assignments": "assignments of tuples in 1,000 statements",
    "imports_median": "internal imports of a file, median",
    "imports_90": "internal imports of a file, 90 %",
    "any_percent": "`Any` among annotated parameters, %",
    "wide_percent": "functions with more than six parameters, %",
    "inner_imports": "internal imports inside functions",
    "format_skips": "`fmt: skip`",
    "fitted_isinstance": "`isinstance` on fitted models",
    "long_functions": "functions of more than 60 lines",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def measures(source: Path = SOURCE) -> dict[str, float]:
    """Return every measure of :data:`TITLES`, and the share of docstrings."""
    files = sorted(source.rglob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    trees = [ast.parse(text) for text in texts]
    imports = [
        len(set(internal_imports(tree)))
        for file, tree in zip(files, trees, strict=True)
        if file.name != "__init__.py"
    ]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, Function)]
    annotated = [
        ast.unparse(each.annotation)
        for function in functions
        for each in parameters(function)
        if each.annotation is not None
    ]
    wide = [function for function in functions if len(parameters(function)) > MANY_PARAMETERS]
    everything = "\n".join(texts)
    statements = [x for tree in trees for x in ast.walk(tree) if isinstance(x, ast.stmt)]
    return {
        "statements": len(statements),
        "tuple_assignments": 1000 * sum(map(assigns_tuple, statements)) / len(statements),
        "imports_median": float(np.median(imports)),
        "imports_90": float(np.quantile(imports, 0.9, method="higher")),
        "any_percent": 100 * annotated.count("Any") / max(len(annotated), 1),
        "wide_percent": 100 * len(wide) / max(len(functions), 1),
        "inner_imports": sum(len(list(internal_imports(function))) for function in functions),
        "format_skips": everything.count("fmt: skip"),
        "fitted_isinstance": len(re.findall(r"isinstance\([^)]*Fitted", everything)),
        "long_functions": sum(lines_of_body(function) > 60 for function in functions),
        "docstring_percent": 100 * docstring_lines(trees) / max(everything.count("\n"), 1),
    }


def internal_imports(node: ast.AST) -> Iterator[str]:
    """Yield the modules of treelens that are imported from anywhere below a node."""
    for child in ast.walk(node):
        if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("treelens"):
            yield str(child.module)


def assigns_tuple(statement: ast.stmt) -> bool:
    """Return whether several names are assigned at once: ``a, b = 1, 2``, not a call's result."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Tuple):
        return False
    return isinstance(statement.targets[0], ast.Tuple)


def parameters(function: Function) -> list[ast.arg]:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [each for each in every if each.arg not in ("self", "cls")]


def lines_of_body(function: Function) -> int:
    """Return the lines of a function without its docstring."""
    docstring = ast.get_docstring(function)
    own = 0 if docstring is None else docstring.count("\n") + 1
    return (function.end_lineno or function.lineno) - function.lineno + 1 - own


def docstring_lines(trees: list[ast.Module]) -> int:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (
        ast.get_docstring(node, clean=False)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, documented)
    )
    return sum(text.count("\n") + 1 for text in found if text is not None)


def read_limits() -> dict[str, float]:
    """Return the largest allowed value of every measure and of every step's visits."""
    lines = re.findall(r"^(\w+) = ([\d.]+)", LIMITS.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: float(number) for name, number in lines}


def above(limits: dict[str, float], found: dict[str, float]) -> list[str]:
    """Return a message for every value above its limit; a value without one is not checked."""
    return [
        f"{name} is {in_words(found[name])}, above its limit of {in_words(limits[name])}"
        for name in found
        if name in limits and found[name] > limits[name]
    ]


def in_words(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:,.1f}"


def check() -> int:
    """Print what is above its limit; return the exit code."""
    found = measures()
    esol = esol_table()
    if esol is not None:
        found |= {f"visits_{step.replace(' ', '_')}": n for step, n in visits(esol).items()}
    messages = above(read_limits(), found)
    for message in messages:
        print(f"{message}: simplify, or raise the limit with a reason ({LIMITS.name})")
    return int(bool(messages))


# --- files visited ----------------------------------------------------------------------------


def esol_table() -> Path | None:
    folder = os.environ.get("TREELENS_DATA")
    path = Path(folder or "nowhere", "smiles", "ESOL.csv.gz")
    return path if path.exists() else None


def visits(table: Path) -> dict[str, int]:
    """Return how many files of treelens have a function that runs in each step, at the defaults."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page, saved = str(Path(folder, "r.html")), str(Path(folder, "m.treelens"))
        graphs, y = tl.read_table(table, target="value")
        model = tl.GraphRegressor(progress=False)
        train, new = slice(0, -40), slice(-40, None)
        fit = ["fit", str(table), "--target", "value", "-o", saved, "--jobs", "1"]
        steps: dict[str, Callable[[], Any]] = {
            "fit": lambda: model.fit(graphs[train], y[train]),
            "predict": lambda: model.predict(graphs[new], return_std=True),
            "explain": lambda: model.explain(graphs[-1]),
            "report": lambda: model.report(page, graphs[new], y[new]),
            "treelens fit": lambda: _run(fit),
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
        if event == "call" and code.co_flags & FUNCTION_FLAG and inside:
            found.add(code.co_filename)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def main() -> None:
    limits, found = read_limits(), measures()
    print("| measure | now | limit |\n| --- | --- | --- |")
    for name, title in TITLES.items():
        limit = in_words(limits[name]) if name in limits else ""
        print(f"| {title} | {in_words(found[name])} | {limit} |")
    print(f"| docstrings, % of lines | {found['docstring_percent']:.0f} | |")
    esol = esol_table()
    if esol is not None:
        counted = visits(esol)
        print(f"\n| files visited on ESOL by | {' | '.join(counted)} |")
        print(f"| --- |{' --- |' * len(counted)}")
        print(f"| | {' | '.join(map(str, counted.values()))} |")


if __name__ == "__main__":
    if "--check" in sys.argv:
        raise SystemExit(check())
    main()
