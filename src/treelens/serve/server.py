"""The server: a socket that is open before the models are ready, and uvicorn on it."""

from __future__ import annotations

import socket
from typing import Any

_MOST_CONNECTIONS = 1000
_IDLE_SECONDS = 10


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an ``OSError`` where that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def server_of(app: Any) -> Any:
    """Return uvicorn's server of an application; ``run(sockets=[...])`` answers requests."""
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError("The page needs uvicorn: pip install 'treelens[serve]'.") from error

    return uvicorn.Server(uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off",
        limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=_IDLE_SECONDS, ws="none",
    ))  # fmt: skip
