"""What the code imports is what ``pyproject.toml`` declares, and nothing private from elsewhere."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import treelens

SOURCE = Path(treelens.__file__).parent
# Where the name to import is not the name to install.
INSTALLED_AS = {
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "lazy_loader": "lazy-loader",
    "dask.distributed": "distributed",
    "cupy": "cupy-cuda12x",
    "cupyx": "cupy-cuda12x",
}
BEHIND_NUMBA = {"numba-cuda"}  # what numba.cuda is made of
OPTIONAL = ("chem", "draw", "networkx", "gpu", "distributed", "excel", "parquet", "serve")


def declared() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 does not read TOML")
    path = Path(__file__).parents[1] / "pyproject.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def names_of(requirements: list[str]) -> set[str]:
    found = {re.match(r"[\w.-]+", line).group().lower() for line in requirements}
    return {re.sub(r"[-_.]+", "-", name) for name in found}


def imports(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Module, imported name and whether it is imported at once, for all imports of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", id(node) in at_once
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.module or "", alias.name, id(node) in at_once


def foreign_packages(*, at_once: bool) -> set[str]:
    """Distributions that ``src`` imports: all, or those that a module needs to be imported."""
    ours = {*sys.stdlib_module_names, "treelens", "typing_extensions"}  # the latter for checkers
    modules = {
        module
        for path in SOURCE.rglob("*.py")
        for module, _, now in imports(path)
        if (now or not at_once) and module.split(".")[0] not in ours
    }
    packages = modules | {module.split(".")[0] for module in modules}
    return {
        INSTALLED_AS.get(name, name) for name in packages if name in INSTALLED_AS or "." not in name
    }


def test_all_that_is_imported_is_declared_with_a_floor_and_the_other_way_round():
    project = declared()
    needed = names_of(project["dependencies"])
    optional = [line for extra in OPTIONAL for line in project["optional-dependencies"][extra]]
    assert foreign_packages(at_once=False) | BEHIND_NUMBA == needed | names_of(optional)
    assert [line for line in [*project["dependencies"], *optional] if ">=" not in line] == []


def test_optional_packages_are_imported_in_functions():
    assert foreign_packages(at_once=True) <= names_of(declared()["dependencies"])


def test_private_names_of_scikit_learn_are_imported_in_one_file():
    private = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for module, name, _ in imports(path)
        if module.split(".")[0] == "sklearn" and re.search(r"(^|\.)_", f"{module}.{name}")
    }
    assert private == {"_sklearn_compat.py"}
