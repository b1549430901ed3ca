"""``treelens serve``: a page for models, on this machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command
from treelens.cli.data import load_models

_LOCAL = "127.0.0.1"


@command
def serve_cli(
    output: Output,
    models: Annotated[list[Path], typer.Argument(
        metavar="MODEL", show_default=False,
        help="Files that 'treelens fit' wrote from molecules, one for each target.",
    )],
    port: Annotated[int, options.option(
        "--port", min=0, max=65535, help="The port to listen on; 0: any that is free.",
    )] = 8765,
    host: Annotated[str, options.option(
        "--host",
        help="The address to listen on. Others than this machine's own, such as 0.0.0.0, let "
        "colleagues in: there is no password.",
    )] = _LOCAL,
    max_molecules: Annotated[int, options.option(
        "--max-molecules", min=1, help="The most molecules in one request.",
    )] = 5000,
    seconds: Annotated[float, options.option(
        "--seconds", min=1.0, help="The longest time for one request.",
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
    from treelens.serve.app import listen, make_app, server_of

    limits = Limits(molecules=max_molecules, seconds=seconds)
    workbench = Workbench(load_models(models, jobs), limits)
    try:
        names = () if host == _LOCAL else (host, socket.gethostname(), socket.getfqdn())
        server, door = server_of(make_app(workbench, names)), listen(host, port)
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
    output.finish({"url": f"http://{shown}:{door.getsockname()[1]}/"}, _show)
    server.run(sockets=[door])


def _show(output: Output, result: dict[str, Any]) -> None:
    output.line(f"Open {result['url']} in a browser. Ctrl-C stops.")
