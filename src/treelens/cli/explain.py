"""``treelens explain``, ``fragments``, ``patterns``, ``info``, ``serve``: look into a model."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from treelens.cli import options
from treelens.cli.console import Output, cell_text, command

_SHARE = "frequency "  # what the columns of classes are called
_LOCAL = "127.0.0.1"


@command
def explain_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    target: options.Truth = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
) -> None:
    """Explain the predictions of a MODEL on DATA in one HTML file that needs nothing else."""
    loaded = options.load_model(model, jobs, [data], [out])
    table = options.read_for_model(output, data, loaded, target, smiles)
    loaded.report(out, table.graphs, table.y, names=table.source)
    output.finish({"n_graphs": len(table.graphs)}, lambda *_: None, out, "Report")


@command
def fragments_cli(
    output: Output,
    model: options.ModelPath,
    data: options.Data,
    top: Annotated[int, typer.Option(help="At most so many.", min=1)] = 40,
    target: options.Truth = None,
    out: Annotated[
        Path | None, typer.Option("--csv", "-o", help="Write the table to this CSV file.")
    ] = None,
    smiles: options.Smiles = None,
    jobs: options.Jobs = -1,
) -> None:
    """Print the fragments of DATA with the largest effects on the predictions of a MODEL.

    Best with the data that the model was trained on: each graph is then explained by the others.
    """
    from treelens.graphs.recipe import noun_of

    loaded = options.load_model(model, jobs, [data], [out])
    rows = options.read_for_model(output, data, loaded, target, smiles)
    y = None if target is None or rows.y is None else rows.learned()[1]
    table = loaded.fragments(rows.graphs, y, n_fragments=top)
    result: dict[str, Any] = {
        "model": str(model),
        "noun": noun_of(rows.graphs.recipe),
        "n_graphs": len(rows.graphs),
        "fragments": [{"rank": k, **row} for k, row in table.to_dict("index").items()],
        **{str(name): value for name, value in table.attrs.items()},
    }
    output.finish(result, _show_fragments, out, table=table, index=True)


def _show_fragments(output: Output, result: dict[str, Any]) -> None:
    if result["none"]:
        output.line(result["none"])
    if not result["fragments"]:
        return
    rows = [
        [
            row["rank"], row["name"] or row["pattern"], row.get("smarts") or "",
            f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"],
        ]
        for row in result["fragments"]
    ]  # fmt: skip
    toward = f" (for {result['toward']})" if result["toward"] is not None else ""
    columns = ["", "fragment", "SMARTS", f"effect{toward}", result["noun"]]
    title = "Fragments: those first that add most beyond the ones above them"
    output.table(columns, rows, title, cut=["fragment", "SMARTS"])
    if "effect" in result["size"]:
        size, node = result["size"], "atom" if result["noun"] == "molecules" else "node"
        output.line(
            f"Size: the mean {node}, whatever it is, adds {size['per_node']:+.4f}; "
            f"{size['mean_nodes']:.1f} {node}s, the mean, add {size['effect']:+.3f}."
        )


@command
def patterns_cli(
    output: Output,
    model: options.ModelPath,
    top: Annotated[int, typer.Option(help="How many to print.", min=0)] = 20,
    sort: Annotated[Literal["auto", "weight", "difference", "support"], options.option(
        help="difference: by its size (two classes: mean share of nodes in the second minus the "
        "first; more: largest minus smallest; numbers: mean of graphs with it minus without); "
        "auto: weight where weights were learned, else difference.",
    )] = "auto",
    out: options.CsvOut = None,
) -> None:  # fmt: skip
    """Print the patterns of a MODEL: weight, support, and the class or values it goes with."""
    from treelens.estimators.fit_summary import pattern_summary

    loaded = options.load_model(model, writes=[out])
    recipe = "graphs from another source" if loaded.recipe_ is None else str(loaded.recipe_)
    result = {
        "model": str(model),
        "method": "svc" if hasattr(loaded, "best_params_") else "gp",
        **pattern_summary(loaded, top, sort),
    }

    def show(output: Output, result: dict[str, Any]) -> None:
        output.line(f"Fitted to: {recipe}")
        show_patterns(output, result)

    table = None if out is None else loaded.patterns_
    output.finish(result, show, out, "All patterns", table, index=True)


def show_patterns(output: Output, result: dict[str, Any]) -> None:
    """Print a table; a pattern reads root(neighbour(...),...), with the bond before a neighbour."""
    patterns = result["patterns"]
    first = patterns[0] if patterns else {}
    classes = [str(name).removeprefix(_SHARE) for name in first if str(name).startswith(_SHARE)]
    side, compared = {"class": "class"}, "largest - smallest"
    if "mean_with" in first:
        side, compared = {"mean with it": "mean_with", "mean without": "mean_without"}, (
            "with - without")  # fmt: skip
    elif len(classes) == 2:
        compared = f"{classes[1]} - {classes[0]}"
    rows = [
        [row["pattern"], row["depth"], float(row["weight"]), row["support"],
         *(row[x] if x != "class" else str(row[x]) for x in side.values()),
         float(row["difference"])]
        for row in patterns
    ]  # fmt: skip
    title = f"Patterns: {len(rows)} of {result['n_patterns']}"
    title += "" if result["learned"] else " (weights are uniform)"
    columns = ["pattern", "depth", "weight", result["noun"], *side, compared]
    output.table(columns, rows, title)


@command
def info_cli(output: Output, model: options.ModelPath) -> None:
    """Show what a MODEL was fitted to, and how: table and columns, recipe, kernel, sizes."""
    from treelens.estimators.fit_summary import model_facts

    facts = model_facts(options.load_model(model))
    output.finish({"model": str(model), "bytes": model.stat().st_size, **facts}, _show_info)


def covariate_list(facts: dict[str, Any]) -> str:
    """Return covariates and descriptors in words."""
    from treelens.graphs.errors import first_few

    names = [name for name in facts["names"] if not name.startswith("rdkit:")]
    n_descriptors = len(facts["names"]) - len(names)
    words = [first_few(names)] if names else []
    words += [f"{n_descriptors} descriptors of the molecules"] if n_descriptors else []
    return " and ".join(words)


def _show_info(output: Output, result: dict[str, Any]) -> None:
    table = (result["recipe"] or {}).get("table") or {}
    sections = {
        f"{result['model']} ({result['bytes']:,} bytes)": {
            "kind": result["kind"],
            "predicts": result["target_in_words"] or result["task"],
            "classes": ", ".join((result["classes"] or [])[:20]),
        },
        "Fitted to": {
            "file": table.get("source"),
            "molecules in column": table.get("smiles"),
            "rows named by": ", ".join(table.get("ids") or []),
            **(table.get("counts") or {}),
            "read from": result["recipe_in_words"],
            "training data": result["training_data"],
        },
        "Kernel": result["kernel"],
        "Sizes": result["sizes"],
        "Weight of levels": result["levels"],
    }
    for title, lines in sections.items():
        rows = {name: value for name, value in lines.items() if value not in (None, "")}
        if rows:
            output.line(title)
        for name, value in rows.items():
            several = isinstance(value, (list, tuple))
            text = ", ".join(map(str, value)) if several else cell_text(value)
            output.line(f"  {name:{max(map(len, rows))}}  {text}")
        if rows:
            output.line()
    if result["learning"]:
        output.line(result["learning"])
    if facts := result.get("covariates"):
        output.line(
            f"Beside the structure: {covariate_list(facts)}. Their part of the fitted values has a "
            f"standard deviation of {facts['spread']:.3g}, that of structure "
            f"{facts['spread_of_structure']:.3g}."
        )


# --- serve ----------------------------------------------------------------------------------------


@command
def serve_cli(
    output: Output,
    models: Annotated[list[Path], typer.Argument(
        metavar="MODEL", show_default=False,
        help="Files that 'treelens fit' wrote from molecules, one for each target.",
    )],
    port: Annotated[int, options.option(
        min=0, max=65535, help="The port to listen on; 0: any that is free.",
    )] = 8765,
    host: Annotated[str, options.option(
        help="The address to listen on. Others than this machine's own, such as 0.0.0.0, let "
        "colleagues in: there is no password.",
    )] = _LOCAL,
    max_molecules: Annotated[int, options.option(
        min=1, help="The most molecules in one request.",
    )] = 5000,
    seconds: Annotated[float, options.option(
        min=1.0, help="The longest time for one request.",
    )] = 60.0,
    jobs: options.Jobs = 1,
) -> None:  # fmt: skip
    """Open a local page for MODELs: paste SMILES or upload a table, and see predictions explained.

    The page shows a prediction with its interval or probability, the atoms that raise or lower it,
    the nearest training molecules with measured values, whether the molecule is in the domain, and
    what changes when the molecule is edited. It loads nothing from the network. Programs use the
    same answers as JSON (/docs describes them). Ctrl-C stops it.
    """
    from treelens.serve.answers import Limits, Workbench
    from treelens.serve.app import make_app, server_of

    workbench = Workbench(options.load_models(models, jobs), Limits(max_molecules, seconds=seconds))
    try:
        names = () if host == _LOCAL else (host, socket.gethostname(), socket.getfqdn())
        server = server_of(make_app(workbench, names))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ValueError(
            f"Cannot listen on --host {host} --port {port}: {error.strerror}. Choose another "
            "port (0: any that is free), or an address of this machine."
        ) from None
    if host != _LOCAL:
        output.note(f"Listening on {host}: others in the network can use the page.")
    output.progress("Preparing the models ...")
    workbench.warm_up()
    shown = _LOCAL if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{door.getsockname()[1]}/"
    output.finish({"url": url}, lambda *_: output.line(f"Open {url} in a browser. Ctrl-C stops."))
    server.run(sockets=[door])
