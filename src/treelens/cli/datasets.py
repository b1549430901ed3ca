"""``treelens datasets``: the data sets that are known by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli.console import FAILED, OK, Output, command

app = typer.Typer(
    name="datasets", help="Known data sets: list, describe, fetch, verify.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As 'treelens datasets list' has it.")]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Where to look first.", show_default="TREELENS_DATA")
]


@app.command("list")
@command
def list_cli(output: Output, folder: Folder = None) -> None:
    """List the known data sets, and where each was found on this machine."""
    from treelens.graphs.datasets import list_datasets

    output.finish({"datasets": list_datasets(folder)}, _show_list)


def _show_list(output: Output, result: dict[str, Any]) -> None:
    rows = []
    for row in result["datasets"]:
        absent = "not here; 'fetch' gets it" if row["downloadable"] else "not here"
        rows.append([row["name"], row["kind"], row["n_graphs"], row["description"],
                     str(row["path"] or absent)])  # fmt: skip
    output.table(["name", "kind", "graphs", "what", "where"], rows)


@app.command("describe")
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
            "smallest": int(sizes.min()), "mean": float(sizes.mean()), "largest": int(sizes.max()),
        },
        "node_labels": [str(label) for label in graphs.node_alphabet],
        "edge_labels": None if graphs.edge_alphabet is None else list(graphs.edge_alphabet),
    }  # fmt: skip
    output.finish(facts, _show_facts)


def _show_facts(output: Output, result: dict[str, Any]) -> None:
    for key, value in result.items():
        if isinstance(value, dict):
            short = {k: f"{v:.1f}" if isinstance(v, float) else v for k, v in value.items()}
            value = ", ".join(f"{k}: {v}" for k, v in short.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value[:40])) + (", ..." if len(value) > 40 else "")
        output.line(f"{key.replace('_', ' ')}: {value}")


@app.command("fetch")
@command
def fetch_cli(output: Output, name: Name) -> None:
    """Download a data set into the cache, unless a checked copy is on this machine already."""
    from treelens.graphs.datasets import list_datasets, load_dataset

    load_dataset(name)  # checks every file against its pinned checksum
    path = next(row["path"] for row in list_datasets() if row["name"] == name)
    output.finish({"name": name, "path": str(path)}, _show_facts)


@app.command("verify")
@command
def verify_cli(output: Output, name: Name, folder: Folder = None) -> None:
    """Compare every file of a data set with its pinned checksum; exit code 1 if one differs."""
    from treelens.graphs.datasets import verify_dataset

    rows = verify_dataset(name, folder=folder)
    good = all(row["status"] in ("ok", "unpinned") for row in rows)
    output.finish({"name": name, "ok": good, "files": rows}, _show_files)
    raise typer.Exit(OK if good else FAILED)


def _show_files(output: Output, result: dict[str, Any]) -> None:
    rows = [[row["file"], row["status"], row["found"] or ""] for row in result["files"]]
    title = f"{result['name']}: {result['files'][0]['path']}"
    output.table(["file", "status", "SHA-256"], rows, title)
