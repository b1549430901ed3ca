"""``treelens serve``: a page for models, on this machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from treelens.cli import options
from treelens.cli.console import InputError, command

LOCAL = "127.0.0.1"
_EVERY_ADDRESS = ("0.0.0.0", "::")


def serve_cli(
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
    )] = LOCAL,
    max_molecules: Annotated[int, options.option(
        "--max-molecules", min=1, help="The most molecules in one request.",
    )] = 5000,
    seconds: Annotated[float, options.option(
        "--seconds", min=1.0, help="The longest time for one request.",
    )] = 60.0,
    jobs: options.Jobs = 1,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Open a local page for MODELs: paste SMILES or upload a table, and see predictions explained.

    The page shows a prediction with its interval or probability, the atoms that raise or lower it,
    the nearest training molecules with measured values, whether the molecule is in the domain, and
    what changes when the molecule is edited. It loads nothing from the network. Programs use the
    same answers as JSON (/docs describes them). Ctrl-C stops it.
    """
    with command(False, debug) as output:
        from treelens.cli.predict import load_models
        from treelens.serve.answers import Limits, Workbench
        from treelens.serve.app import make_app
        from treelens.serve.server import listen, server_of

        loaded = load_models(models, options.checked_jobs(jobs))
        workbench = Workbench(loaded, Limits(molecules=max_molecules, seconds=seconds))
        try:
            names = () if host == LOCAL else (host, socket.gethostname(), socket.getfqdn())
            server, door = server_of(make_app(workbench, names)), listen(host, port)
        except OSError as error:
            raise InputError(
                f"Cannot listen on --host {host} --port {port}: {error.strerror}. Choose another "
                "port (0: any that is free), or an address of this machine."
            ) from None
        if host != LOCAL:
            output.note(f"Listening on {host}: others in the network can use the page.")
        output.progress("Preparing the models ...")
        workbench.warm_up()
        shown = LOCAL if host in _EVERY_ADDRESS else host
        shown = f"[{shown}]" if ":" in shown else shown
        output.line(f"Open http://{shown}:{door.getsockname()[1]}/ in a browser. Ctrl-C stops.")
        server.run(sockets=[door])
