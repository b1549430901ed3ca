"""The outermost layer of the server: who may ask, how much, and with which headers it answers."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

# Scripts and styles come from this server only; drawings have style attributes.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """Refuse requests of other sites and large ones, and add the headers to every answer.

    The name in the Host header must be an address or one of ``hosts``: a page of another site whose
    name is made to point to this machine (DNS rebinding) sends its own name. A request with an
    Origin must come from the page itself.
    """

    def __init__(self, app: Any, hosts: Collection[str], largest_body: int, seconds: float) -> None:
        self.app, self.hosts = app, {name.casefold() for name in hosts}
        self.largest_body, self.seconds = largest_body, seconds
        self.too_large = f"The request is larger than {largest_body / 1e6:g} MB."

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        refusal = self._refusal(scope["headers"])
        if refusal is not None:
            from fastapi.responses import JSONResponse

            status, text = refusal
            answer = JSONResponse({"detail": text}, status, {"connection": "close"})
            await answer(scope, receive, send_with_headers)
            return
        await self.app(scope, self._bounded(receive), send_with_headers)

    def _refusal(self, headers: Any) -> tuple[int, str] | None:
        found = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in headers}
        host = found.get("host", "")
        if not self._is_known(host):
            return 421, "The Host header names another machine."
        origin = found.get("origin")
        if origin is not None and urlsplit(origin).netloc.casefold() != host.casefold():
            return 403, "The request comes from another site."
        length = found.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > self.largest_body:
            return 413, self.too_large
        return None

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _bounded(self, receive: Any) -> Any:
        """Count what arrives, which need not be what Content-Length promised."""
        n_bytes = 0

        async def counted() -> Any:
            nonlocal n_bytes
            from fastapi import HTTPException

            try:
                message = await asyncio.wait_for(receive(), self.seconds)
            except (asyncio.TimeoutError, TimeoutError):
                raise HTTPException(408, "The request did not arrive in time.") from None
            if message["type"] == "http.request":
                n_bytes += len(message.get("body", b""))
                if n_bytes > self.largest_body:
                    raise HTTPException(413, self.too_large)
            return message

        return counted
