"""The command ``treelens``, and its ``doctor``, ``demo`` and ``datasets``."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

import treelens as tl
from treelens.cli import console, explain, options
from treelens.cli.console import Output, command
from treelens.cli.evaluate import evaluate_cli
from treelens.cli.fit import SCORES, fit_cli, fit_model, show_fit
from treelens.cli.predict import predict_cli

REQUIRED = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pandas",
    "joblib",
    "psutil",
    "pooch",
    "rich",
    "typer",
    "jinja2",
)
EXTRAS = {  # package: what it is for
    "rdkit": "molecules: SMILES and SDF",
    "pyarrow": "Parquet tables",
    "networkx": "NetworkX graphs",
    "matplotlib": "drawings of graphs",
    "openpyxl": "Excel tables",
    **dict.fromkeys(("fastapi", "uvicorn"), "the page of 'treelens serve'"),
    **dict.fromkeys(("dask", "distributed"), "kernels over several machines"),
}


# Importing libraries makes many objects that stay; to look through them takes as long as an import.
_COLLECTIONS = (200_000, 20, 20)


@command
def doctor_cli(output: Output) -> None:
    """Check this installation: versions, folders, missing extras.

    Learns from a few made-up graphs, too. Exit code 1 if something that is needed does not work.
    """
    import joblib
    import psutil

    from treelens.graphs.datasets import cache_folder, list_datasets

    problems, data = [], os.environ.get("TREELENS_DATA")
    if data and not Path(data).expanduser().is_dir():
        problems.append(f"TREELENS_DATA={data} is not a folder: correct it, or unset it.")
    found = [row["name"] for row in list_datasets() if row["path"] is not None]
    result = {
        "treelens": tl.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: _version(name) for name in REQUIRED},
        "extras": {
            name: {"version": _version(name), "for": use, "get": f"pip install {name}"}
            for name, use in EXTRAS.items()
        },
        "processors": joblib.cpu_count(),  # which a container may limit
        "memory_gigabytes": psutil.virtual_memory().available / 1e9,
        "folders": {
            "TREELENS_DATA": data,
            "downloads": str(cache_folder()),
            "data_sets_here": found,
        },
        "seconds_to_learn": _try_to_learn(problems),
        "problems": problems,
        "healthy": not problems,
    }
    output.finish(result, _show_health)
    raise typer.Exit(console.FAILED if problems else console.OK)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _try_to_learn(problems: list[str]) -> float:
    """Return the seconds of tiny fits, compilation included where it was not done before."""
    start = time.perf_counter()
    graphs, y = tl.make_synthetic(n_per_substructure=4, random_state=0)
    for model in (
        tl.GraphClassifier(depth=2, random_state=0, progress=False),
        tl.GraphSVC("wwl", 2, [0.0, 1.0], 1.0, 10.0, cv=2, random_state=0, progress=False),
    ):
        if model.fit(graphs, y).score(graphs, y) < 0.75:
            name = type(model).__name__
            problems.append(f"A tiny {name} learned nothing: please report it with this output.")
    return time.perf_counter() - start


def _show_health(output: Output, result: dict[str, Any]) -> None:
    folders = result["folders"]
    output.facts(
        {
            **{name: result[name] for name in ("treelens", "python", "platform", "processors")},
            "memory available": f"{result['memory_gigabytes']:.1f} GB",
            "packages": [f"{name} {number}" for name, number in result["versions"].items()],
            "TREELENS_DATA": folders["TREELENS_DATA"] or "not set",
            "downloads": folders["downloads"],
            "data sets here": folders["data_sets_here"] or "none",
            "two tiny fits": f"{result['seconds_to_learn']:.1f} s",
        }
    )
    rows = [
        [name, extra["version"] or f"missing: {extra['get']}", extra["for"]]
        for name, extra in result["extras"].items()
    ]
    output.table(["extra", "version", "for"], rows)
    for problem in result["problems"]:
        output.line(f"PROBLEM: {problem}")
    output.line("All is well." if result["healthy"] else "Something is wrong, see above.")


# --- treelens demo --------------------------------------------------------------------------------


@command
def demo_cli(
    output: Output,
    out: options.Out = Path("treelens-demo.html"),
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
) -> None:
    """Learn on real molecules and write a report.

    Takes the 1,017 molecules with activities that come with RDKit, and leaves their table next to
    the report; without RDKit, made-up graphs of two classes. The report shows those that were held
    out. Needs no network.
    """
    import numpy as np

    from treelens.report.predicted import predict_graphs, scores_of_test_set
    from treelens.storage.files import checked_target

    path = out.with_suffix(".csv")
    checked_target(out)
    if path == out:
        raise ValueError(f"{out}: the report is a page, such as {out.with_suffix('.html')}.")
    data, story = demo_data(path)
    output.progress(f"{story} Every fifth is held out for the report.")
    held_out = np.arange(len(data.graphs)) % 5 == 4
    learned, test = data.pick(np.flatnonzero(~held_out)), data.pick(np.flatnonzero(held_out))
    settings = options.Training(seed=seed, jobs=jobs).gp_settings()
    output.progress(f"Fitting {len(learned.graphs)} of them, and finding fragments ...")
    model, result = fit_model(replace(learned, n_rows=len(learned.graphs)), "gp", settings)
    output.progress(f"Predicting the {len(test.graphs)} others, and writing the report ...")
    model.report(out, test.graphs, test.targets)
    found = scores_of_test_set(model.model_, predict_graphs(model, test.graphs, test.targets)) or {}
    scores = {name: found[name] for name in ("n_graphs", *SCORES) if found.get(name) is not None}
    output.finish({"story": story, **result, "test": scores, "report": str(out)}, _show_demo)


def demo_data(path: Path) -> tuple[tl.MoleculeTable, str]:
    """Return a table of molecules, written to a file, else the synthetic study; and a sentence."""
    import numpy as np

    from treelens.chem.examples import TARGET, example_table, has_examples

    if not has_examples():
        graphs, y = tl.make_synthetic(random_state=0)
        what = "synthetic graphs", graphs, tl.Targets(y), np.arange(len(y)), len(y)
        return tl.MoleculeTable(*what), (
            f"{len(graphs)} made-up graphs (RDKit, which carries molecules, is not installed: pip "
            "install rdkit). Class 1 has the pattern 0(0,1,2) in it, class -1 has not."
        )
    table = tl.read_table(example_table(path), target=TARGET)
    y = np.asarray(table.targets, dtype=float)
    return table, (
        f"{len(y)} molecules with measured activities ({TARGET}, from {y.min():g} to {y.max():g}), "
        f"which come with RDKit (ChEMBL assay 2321810). They are in {path}."
    )


def _show_demo(output: Output, result: dict[str, Any]) -> None:
    show_fit(output, result)
    n, *scores = result["test"].items()
    words = (f"{console.score_title(name)} {console.score_text(name, x)}" for name, x in scores)
    output.line(f"On the {n[1]} {result['noun']} held out: {', '.join(words)}.")
    output.line(f"Report: {result['report']} (open it in a browser)")


# --- treelens datasets ----------------------------------------------------------------------------


datasets = typer.Typer(
    name="datasets", help="Known data sets: list, describe, fetch, verify.", no_args_is_help=True
)

Name = Annotated[str, options.argument("NAME", "As 'treelens datasets list' has it.")]
Folder = Annotated[Path | None, options.option("Where to look first.", default="TREELENS_DATA")]


@datasets.command("list")
@command
def list_cli(output: Output, folder: Folder = None) -> None:
    """List the known data sets, and where each is."""
    from treelens.graphs.datasets import list_datasets

    output.finish({"datasets": list_datasets(folder)}, _show_list)


def _show_list(output: Output, result: dict[str, Any]) -> None:
    absent = {True: "not here; 'fetch' gets it", False: "not here"}
    names = ("name", "kind", "n_graphs", "description")
    rows = [
        [*(row[name] for name in names), str(row["path"] or absent[row["downloadable"]])]
        for row in result["datasets"]
    ]
    output.table(["name", "kind", "graphs", "what", "where"], rows)


@datasets.command("describe")
@command
def describe_cli(output: Output, name: Name, folder: Folder = None) -> None:
    """Load a data set and describe it: graphs, classes, sizes, labels."""
    import numpy as np

    from treelens.graphs.datasets import dataset_info, load_dataset

    graphs, y = load_dataset(name, folder=folder, download=False)
    sizes = graphs.sizes
    classes, counts = np.unique(y, return_counts=True)
    facts = {
        "name": name,
        "description": dataset_info(name).description,
        "n_graphs": len(graphs),
        "classes": dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True)),
        "n_nodes": graphs.n_nodes,
        "n_edges": graphs.n_edges,
        "nodes_per_graph": {
            "smallest": int(sizes.min()),
            "mean": float(sizes.mean()),
            "largest": int(sizes.max()),
        },
        "node_labels": [str(label) for label in graphs.node_alphabet],
        "edge_labels": None if graphs.edge_alphabet is None else list(graphs.edge_alphabet),
    }
    output.finish(facts, Output.facts)


@datasets.command("fetch")
@command
def fetch_cli(output: Output, name: Name) -> None:
    """Download a data set, unless a checked copy is here."""
    from treelens.graphs.datasets import list_datasets, load_dataset

    load_dataset(name)  # checks every file against its pinned checksum
    path = next(row["path"] for row in list_datasets() if row["name"] == name)
    output.finish({"name": name, "path": str(path)}, Output.facts)


@datasets.command("verify")
@command
def verify_cli(output: Output, name: Name, folder: Folder = None) -> None:
    """Compare the files of a data set with their checksums.

    Exit code 1 if one differs.
    """
    from treelens.graphs.datasets import verify_dataset

    rows = verify_dataset(name, folder=folder)
    good = all(row["status"] in ("ok", "unpinned") for row in rows)
    output.finish({"name": name, "ok": good, "files": rows}, _show_files)
    raise typer.Exit(console.OK if good else console.FAILED)


def _show_files(output: Output, result: dict[str, Any]) -> None:
    rows = [[row["file"], row["status"], row["found"] or ""] for row in result["files"]]
    title = f"{result['name']}: {result['files'][0]['path']}"
    output.table(["file", "status", "SHA-256"], rows, title)


app = typer.Typer(  # a traceback with --debug is Python's own; plain help fits a narrow terminal
    name="treelens",
    callback=console.treelens,
    epilog=console.EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
COMMANDS = {
    "fit": fit_cli,
    "predict": predict_cli,
    "explain": explain.explain_cli,
    "info": explain.info_cli,
    "patterns": explain.patterns_cli,
    "fragments": explain.fragments_cli,
    "evaluate": evaluate_cli,
    "suggest": explain.suggest_cli,
    "advise": explain.advise_cli,
    "serve": explain.serve_cli,
    "doctor": doctor_cli,
    "demo": demo_cli,
}
for _name, _function in COMMANDS.items():
    app.command(_name)(_function)
app.add_typer(datasets)


def _pass_interrupts_on() -> None:
    """Turn SIGINT into another signal: RDKit takes it over in every search, and forgets it.

    All threads block it, those started later too, and one waits for it. SIGTERM stops a command in
    the same way, so that it ends its worker processes.
    """
    import signal
    from threading import Thread, get_ident

    def wait(main: int) -> None:
        while True:
            signal.sigwait({signal.SIGINT})
            signal.pthread_kill(main, signal.SIGURG)

    signal.signal(signal.SIGURG, signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    Thread(target=wait, args=[get_ident()], daemon=True).start()


def _print_in_any_encoding() -> None:
    """Let no sign that a console lacks (± in ASCII, ≤ in cp1252) end a command.

    What goes into files and pipes is UTF-8 on Windows too, unless PYTHONIOENCODING says otherwise.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, TextIOWrapper):  # replaced by another program
            continue
        chosen = "PYTHONIOENCODING" in os.environ or stream.isatty()
        utf8 = os.name == "nt" and not chosen
        stream.reconfigure(encoding="utf-8" if utf8 else None, errors="backslashreplace")


def main() -> None:
    """The entry point of a process, which handles signals in its own way from then on."""
    _print_in_any_encoding()
    gc.set_threshold(*_COLLECTIONS)
    if os.name == "posix" and sys.argv[1:2] != ["serve"]:  # which ends in its own way
        _pass_interrupts_on()
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        sys.exit(console.STOPPED)


if __name__ == "__main__":
    main()
