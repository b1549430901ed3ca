"""``python -m treelens.experiments``: make the paper's tables and figures again, and ours."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treelens.experiments.methods import TABLE2_METHODS
from treelens.experiments.table2 import DATASETS, run_table2
from treelens.experiments.tables import write_table2

# target -> module and function ``run(out, quick)`` that returns the files it wrote; imported when
# asked for, since each draws in a good part of the library.
_RUNNERS = {
    "table1": ("table1", "run_table1"),
    "figures": ("figures", "run_figures"),
    "synthetic": ("synthetic_study", "run_synthetic"),
    "patterns": ("pattern_study", "run_patterns"),
    "runtime": ("runtime", "run_runtime"),
    "bounds": ("bounds", "run_bounds"),
    "diagnosis": ("diagnosis", "run_diagnosis"),
    "molecules": ("molecules", "run_molecules"),
}
_ALIASES = {"table3": "runtime"}
# In the order in which "all" makes them: the diagnosis reads the rows of Table 2. Molecules are no
# experiment of the paper, need RDKit and take long, so they run by name only.
_ALL = ("table1", "figures", "synthetic", "patterns", "runtime", "bounds", "table2", "diagnosis")
TARGETS = (*_ALL, *_ALIASES, "molecules", "all")
QUICK_DATASETS = ("MUTAG",)
QUICK_REPETITIONS = 2


def reproduce(
    target: str, out: str | Path = "results", quick: bool = False, **table2_options: Any
) -> list[str]:
    """Make one table or figure, or all of them.

    Parameters
    ----------
    target : str
        One of :data:`TARGETS`.
    out : path
        Folder for rows, tables, pages and figures. Rows that are already there are kept, so a run
        that was stopped goes on where it was.
    quick : bool
        A small part of it: two repetitions, small sets. All of it takes a few minutes.
    **table2_options
        ``datasets``, ``methods``, ``repetitions``, ``n_jobs``, ``seed`` and ``tables_only`` for
        Table 2; the other targets have no options.

    Returns
    -------
    list of str
        The files that were written.
    """
    if target not in TARGETS:
        raise ValueError(f"There is no experiment {target!r}: choose one of {', '.join(TARGETS)}.")
    written: list[str] = []
    for name in _ALL if target == "all" else (_ALIASES.get(target, target),):
        run = _table2(table2_options) if name == "table2" else _runner(name)
        written += [str(path) for path in run(out, quick)]
    return written


def _runner(name: str) -> Callable[[str | Path, bool], Sequence[Path]]:
    module, function = _RUNNERS[name]
    return getattr(importlib.import_module(f"treelens.experiments.{module}"), function)


def _table2(options: dict[str, Any]) -> Callable[[str | Path, bool], Sequence[Path]]:
    """Rows, unless only the tables are wanted, and then the tables."""
    options = {key: value for key, value in options.items() if value is not None}
    tables_only = options.pop("tables_only", False)
    seed = options.get("seed", 0)

    def run(out: str | Path, quick: bool) -> list[Path]:
        usual = (
            {"datasets": QUICK_DATASETS, "repetitions": QUICK_REPETITIONS}
            if quick
            else {"datasets": DATASETS, "repetitions": 10}
        )
        rows = [] if tables_only else [run_table2(out, **{**usual, **options})]
        return [*rows, *write_table2(out, seed)]

    return run


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run one experiment."""
    parser = argparse.ArgumentParser(prog="python -m treelens.experiments", description=__doc__)
    parser.add_argument("experiment", choices=TARGETS)
    parser.add_argument("--out", default="results", help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="a small part of it, in minutes")
    only = parser.add_argument_group("Table 2 only")
    only.add_argument("--tables-only", action="store_true", help="make no rows, only the tables")
    only.add_argument("--datasets", nargs="+", help=f"among {', '.join(DATASETS)}")
    only.add_argument("--methods", nargs="+", choices=TABLE2_METHODS, metavar="METHOD")
    only.add_argument("--repetitions", type=int)
    only.add_argument("--jobs", type=int, help="processes")
    only.add_argument("--seed", type=int)
    options = parser.parse_args(arguments)
    reproduce(
        options.experiment, options.out, options.quick, tables_only=options.tables_only,
        datasets=options.datasets, methods=options.methods, repetitions=options.repetitions,
        n_jobs=options.jobs, seed=options.seed,
    )  # fmt: skip


if __name__ == "__main__":
    main()
