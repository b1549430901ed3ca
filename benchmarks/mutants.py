"""Mutation testing: change one operator or number at a time, and see whether a test notices.

``python -m benchmarks.mutants --per-room 40 --seed 0`` draws mutants of every room of ``ROOMS``,
runs the room's tests against each, those named after the file first, and prints the survivors;
``--files report/render.py`` takes other files. Nothing is written: a mutant lives in a forked
process, where its module is compiled from the changed text, without a cache of compiled loops.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np

SOURCES = Path(__file__).parents[1] / "src" / "treelens"
ROOMS = ("patterns", "kernels", "pairwise", "svm", "explain", "decisions")
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """One change of one file."""

    path: Path
    place: int  # among the changes the file allows
    line: int
    before: str
    after: str


# --- changes ----------------------------------------------------------------------------------


def candidates(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The nodes of a module that can be changed, and how; annotations and messages are left."""
    skipped = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.keyword) and node.arg == "strict":
                continue  # of zip: it guards against mistakes in other places
            if isinstance(node, ast.AST) and not isinstance(node, skipped):
                yield from ((node, how) for how in _ways(node))
                yield from candidates(node)


def _ways(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Compare, ast.BinOp, ast.BoolOp, ast.AugAssign)):
        operator = node.ops[0] if isinstance(node, ast.Compare) else node.op
        if type(operator) in SWAPS:
            yield "operator"
    elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        yield "constant"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "sign"
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield "condition"


def change(node: ast.AST, how: str) -> None:
    """Change a node of a tree in place."""
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if how == "sign" and isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)


def mutants_of(path: Path) -> list[Mutant]:
    tree = ast.parse(path.read_text())
    found = []
    for place, (node, how) in enumerate(candidates(tree)):
        shown = node.test if how == "condition" else node
        before = ast.unparse(shown)
        changed = copy.deepcopy(node)
        change(changed, how)
        after = ast.unparse(changed.test if how == "condition" else changed)
        found.append(Mutant(path, place, node.lineno, before, after))
    return found


def mutated_source(mutant: Mutant) -> str:
    tree = ast.parse(mutant.path.read_text())
    change(*list(candidates(tree))[mutant.place])
    return ast.unparse(ast.fix_missing_locations(tree)).replace("cache=True", "cache=False")


# --- running ----------------------------------------------------------------------------------


class _MutantFinder(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module from changed text."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.relative_to(SOURCES.parent).with_suffix("").parts
        super().__init__(".".join(parts), str(mutant.path))
        self.code = compile(mutated_source(mutant), str(mutant.path), "exec")

    def find_spec(self, fullname, path=None, target=None):
        if fullname == self.name:
            return importlib.util.spec_from_file_location(fullname, self.path, loader=self)
        return None

    def get_code(self, fullname):
        return self.code


def tests_of(path: Path) -> list[str]:
    """The tests of the file's room; the one that is named after the file comes first."""
    inside, tests = path.relative_to(SOURCES), SOURCES.parents[1] / "tests"
    named = tests / inside.with_name(f"test_{inside.name.lstrip('_')}")
    return [str(each) for each in (named, tests / inside.parts[0]) if each.exists()]


def survives(mutant: Mutant, tests: list[str], seconds: int) -> bool:
    """Whether the tests pass against a mutant, in a forked process."""
    child = os.fork()
    if child == 0:
        # A loop without end is killed, and so is the mutant; on a busy machine the clock would lie.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os._exit(_run(mutant, tests))
    return os.waitpid(child, 0)[1] == 0


def _run(mutant: Mutant, tests: list[str]) -> int:
    import hypothesis
    import pytest

    sys.meta_path.insert(0, _MutantFinder(mutant))
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, max_examples=30, deadline=None
    )
    hypothesis.settings.load_profile("mutants")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return int(
            pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", *tests])
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    every = [f"{room}/*.py" for room in ROOMS]
    parser.add_argument("--files", nargs="*", default=every, help="patterns below src/treelens")
    parser.add_argument("--per-room", type=int, default=20, help="mutants for each pattern")
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for a test run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    tried = survived = 0
    seen: set[Path] = set()
    for pattern in options.files:
        files = [path for path in sorted(SOURCES.glob(pattern)) if path not in seen]
        seen.update(files)
        every = [mutant for path in files for mutant in mutants_of(path)]
        for k in sorted(rng.permutation(len(every))[: options.per_room]):
            mutant, start = every[k], time.monotonic()
            alive = survives(mutant, tests_of(mutant.path), options.seconds)
            tried, survived = tried + 1, survived + alive
            print(
                "SURVIVED" if alive else "killed  ",
                f"{time.monotonic() - start:5.0f} s",
                f"{mutant.path.relative_to(SOURCES)}:{mutant.line}",
                f"{mutant.before}  ->  {mutant.after}",
                flush=True,
            )
    print(f"{tried} mutants, {survived} survived")
    return int(survived > 0)


if __name__ == "__main__":
    for module in ("numba", "scipy.sparse", "sklearn.svm", "pytest", "hypothesis"):
        importlib.import_module(module)  # once, for all the processes that are forked from here
    raise SystemExit(main())
