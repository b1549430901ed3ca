"""The experiments of the paper, and what was added to them: which there are, and making one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reproduction.methods import OTHER_METHODS, TABLE2_METHODS
from reproduction.table2 import DATASETS, run_table2
from reproduction.tables import write_table2

# target -> module and function ``run(out, quick)`` that returns the files it wrote; imported when
# asked for, since each draws in a good part of the library.
_RUNNERS = {
    "table1": ("table1", "run_table1"),
    "figures": ("figures", "run_figures"),
    "synthetic": ("synthetic_study", "run_synthetic"),
    "patterns": ("pattern_study", "run_patterns"),
    "runtime": ("runtime", "run_runtime"),
    "bounds": ("bounds", "run_bounds"),
    "molecules": ("molecules", "run_molecules"),
    "claims": ("claims", "run_claims"),
}
_ALIASES = {"table3": "runtime"}
_METHODS = (*TABLE2_METHODS, *OTHER_METHODS)
# In the order in which "all" makes them. Molecules are no experiment of the paper, need RDKit and
# take long, so they run by name only; so does the table of claims, which reads the rows of all and
# writes into the page about the paper.
_ALL = ("table1", "figures", "synthetic", "patterns", "runtime", "bounds", "table2")
TARGETS = (*_ALL, *_ALIASES, "molecules", "claims", "all")
# What an experiment can be told, alone and as one of all: its own seed and folds are its own.
_SHARED = ("datasets", "repetitions", "n_jobs", "seed", "tables_only")
_OPTIONS = {
    "table2": (*_SHARED, "methods"),
    "molecules": ("datasets", "n_jobs", "seed"),
}
_ALL_OPTIONS = {"table2": _OPTIONS["table2"]}
QUICK_DATASETS = ("MUTAG",)
QUICK_REPETITIONS = 2


def reproduce(
    target: str, out: str | Path = "results", quick: bool = False, **options: Any
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
    **options
        ``datasets``, ``repetitions``, ``n_jobs``, ``seed``, ``tables_only`` and ``methods`` for
        Table 2; ``datasets``, ``n_jobs`` and ``seed`` for the molecules. With ``all`` they reach
        Table 2. The other targets have no options. None stands for the default.

    Returns
    -------
    list of str
        The files that were written.
    """
    if target not in TARGETS:
        raise ValueError(f"There is no experiment {target!r}: choose one of {', '.join(TARGETS)}.")
    given = {k: value for k, value in options.items() if value is not None and value is not False}
    _check_options(target, given)
    Path(out).mkdir(parents=True, exist_ok=True)  # before hours of work, not after
    written: list[str] = []
    for name in _ALL if target == "all" else (_ALIASES.get(target, target),):
        chosen = _options_of(name, target, given)
        if name == "table2":
            paths = _table2(chosen)(out, quick)
        else:
            paths = _runner(name)(out, quick, **chosen)
        written += [str(path) for path in paths]
    return written


def _check_options(target: str, given: dict[str, Any]) -> None:
    """An error for what the experiment would pass over."""
    known = _OPTIONS["table2"] if target == "all" else _OPTIONS.get(_ALIASES.get(target, target))
    for key in given:
        if key not in (known or ()):
            raise ValueError(
                f"The experiment {target!r} has no option {key!r}; it takes "
                f"{', '.join(known) if known else 'none'}."
            )
    unknown = [m for m in given.get("methods", ()) if m not in _METHODS]
    if unknown:
        raise ValueError(f"There is no method {unknown[0]!r}: choose among {', '.join(_METHODS)}.")
    if given.get("repetitions", 1) < 1:
        raise ValueError(f"repetitions must be at least 1, got {given['repetitions']}.")


def _options_of(name: str, target: str, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the options given that one experiment takes."""
    taken = _ALL_OPTIONS if target == "all" else _OPTIONS
    known = taken.get(name, ())
    return {key: value for key, value in given.items() if key in known}


def _runner(name: str) -> Callable[..., Sequence[Path]]:
    module, function = _RUNNERS[name]
    return getattr(importlib.import_module(f"reproduction.{module}"), function)


def _table2(options: dict[str, Any]) -> Callable[[str | Path, bool], Sequence[Path]]:
    """Rows, unless only the tables are wanted, and then the tables."""
    options = dict(options)
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
