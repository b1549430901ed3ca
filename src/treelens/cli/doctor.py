"""``treelens doctor``: is everything here that treelens needs, and how to get the rest."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

from treelens.cli.console import FAILED, OK, Output, command

REQUIRED = (
    "numpy", "scipy", "scikit-learn", "numba", "pandas", "joblib", "psutil", "pooch", "rich",
    "typer", "jinja2",
)  # fmt: skip
# Package: (what it is for, how to get it).
EXTRAS = {
    "rdkit": ("molecules: SMILES and SDF", "pip install rdkit"),
    "pyarrow": ("Parquet tables", "pip install pyarrow"),
    "networkx": ("NetworkX graphs, drawings of graphs", "pip install networkx"),
    "matplotlib": ("drawings of graphs", "pip install matplotlib"),
    "openpyxl": ("Excel tables", "pip install openpyxl"),
    "fastapi": ("the page of 'treelens serve'", "pip install fastapi uvicorn"),
    "uvicorn": ("the page of 'treelens serve'", "pip install fastapi uvicorn"),
    "dask": ("kernels over several machines", "pip install dask distributed"),
    "distributed": ("kernels over several machines", "pip install dask distributed"),
}


@command
def doctor_cli(output: Output) -> None:
    """Check this installation: versions, threads, folders, what extras are missing.

    Learns from a few made-up graphs, too. Exit code 1 if something that is needed does not work.
    """
    result = examine()
    output.finish(result, _show)
    raise typer.Exit(OK if result["healthy"] else FAILED)


def examine() -> dict[str, Any]:
    """Return the state of this installation as plain data."""
    import treelens

    versions = {name: _version(name) for name in REQUIRED}
    problems = [f"{name} is missing: pip install {name}" for name in REQUIRED if not versions[name]]
    found: dict[str, Any] = {
        "treelens": treelens.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "extras": {
            name: {"version": _version(name), "for": use, "get": how}
            for name, (use, how) in EXTRAS.items()
        },
        "processors": None, "memory_gigabytes": None, "folders": {}, "seconds_to_learn": None,
    }  # fmt: skip
    if not problems:
        import joblib
        import psutil

        found["processors"] = joblib.cpu_count()  # which a container may limit
        found["memory_gigabytes"] = psutil.virtual_memory().available / 1e9
        found["folders"] = _folders(problems)
        found["seconds_to_learn"] = _try_to_learn(problems)
    return {"healthy": not problems, "problems": problems, **found}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _folders(problems: list[str]) -> dict[str, Any]:
    """Return where data is kept."""
    from treelens.graphs.datasets import cache_folder, list_datasets

    data = os.environ.get("TREELENS_DATA")
    if data and not Path(data).expanduser().is_dir():
        problems.append(f"TREELENS_DATA={data} is not a folder: correct it, or unset it.")
    known = [row["name"] for row in list_datasets() if row["path"] is not None]
    return {"TREELENS_DATA": data, "downloads": str(cache_folder()), "data_sets_here": known}


def _try_to_learn(problems: list[str]) -> float:
    """Return the seconds of tiny fits, compilation included where it was not done before."""
    from treelens import GraphClassifier, GraphSVC, make_synthetic

    start = time.perf_counter()
    graphs, y = make_synthetic(n_per_substructure=4, random_state=0)
    for model in (
        GraphClassifier(depth=2, random_state=0, progress=False),
        GraphSVC("wwl", 2, [0.0, 1.0], 1.0, 10.0, cv=2, random_state=0, progress=False),
    ):
        if model.fit(graphs, y).score(graphs, y) < 0.75:
            name = type(model).__name__
            problems.append(f"A tiny {name} learned nothing: please report it with this output.")
    return time.perf_counter() - start


def _show(output: Output, result: dict[str, Any]) -> None:
    output.line(f"treelens {result['treelens']}, Python {result['python']}, {result['platform']}")
    if result["memory_gigabytes"] is not None:
        output.line(
            f"Processors: {result['processors']}; memory available: "
            f"{result['memory_gigabytes']:.1f} GB"
        )
    output.line(", ".join(f"{name} {v or 'MISSING'}" for name, v in result["versions"].items()))
    rows = [
        [name, extra["version"] or "missing", extra["for"], "" if extra["version"] else
         extra["get"]] for name, extra in result["extras"].items()
    ]  # fmt: skip
    output.table(["extra", "version", "for", "get it with"], rows)
    for name, value in result["folders"].items():
        shown = ", ".join(value) or "none" if isinstance(value, list) else value
        title = name if name.isupper() else name.replace("_", " ")  # not of a variable
        output.line(f"{title}: {'not set' if shown is None else shown}")
    if result["seconds_to_learn"] is not None:
        output.line(f"Two tiny models took {result['seconds_to_learn']:.1f} s.")
    for problem in result["problems"]:
        output.line(f"PROBLEM: {problem}")
    output.line("All is well." if result["healthy"] else "Something is wrong, see above.")
