"""The web application: a page, its JSON interface, an OpenAPI page that works offline; a server.

FastAPI reads the annotations of the functions below when they are defined: this file must not
postpone their evaluation.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from treelens import __version__
from treelens.report.render import asset, plain_summary, templates
from treelens.serve.answers import (
    SMALL_BODY,
    Deadline,
    Limits,
    TooMuchError,
    Workbench,
    is_large,
    is_large_body,
)
from treelens.storage.files import csv_text

if TYPE_CHECKING:
    import pandas as pd
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError

_THREADS = 8  # of each pool, that wait for the models; these answer one after the other
_IDLE_SECONDS = 10
_RETRY_AFTER = "10"  # seconds
_LONGEST_NAME = 200
Output = Literal["json", "csv"]
Message = MutableMapping[str, Any]  # these three as ASGI has them
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# What OpenAPI says about a body that is a file.
_FILE = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def make_app(workbench: Workbench, hosts: tuple[str, ...] = ()) -> Any:
    """Return the ASGI application; requests may use localhost, addresses and these names."""
    try:
        import uvicorn  # noqa: F401  # of server_of
        from fastapi import FastAPI
        from fastapi.exceptions import RequestValidationError
    except ImportError as error:
        raise ImportError("The page needs FastAPI: pip install fastapi uvicorn.") from error

    app = FastAPI(
        title="treelens",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        description="Predictions and compound cards of fitted models.",
    )
    app.exception_handler(RequestValidationError)(_invalid)
    _add_interface(app, workbench)
    _add_page(app, workbench)
    return Guard(app, ("localhost", *hosts), workbench.limits)


async def _invalid(request: "Request", error: "RequestValidationError") -> Any:
    """Answer a request of the wrong form in one sentence, without repeating what it sent."""
    from fastapi.responses import JSONResponse

    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse(plain_summary({"detail": f"{place}: {first['msg']}"}), 422)


async def _answer(
    pool: ThreadPoolExecutor, seconds: float, work: Callable[..., Any], *given: Any
) -> Any:
    """Do the work in a thread within a time limit; errors become answers."""
    from fastapi import HTTPException

    deadline = Deadline(seconds)

    def answered() -> Any:
        deadline.works()
        return work(*given, deadline)

    try:
        return await asyncio.wait_for(asyncio.wrap_future(pool.submit(answered)), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        if deadline.waited > seconds / 2:
            text = "Other requests are being answered: try again later."
            raise HTTPException(503, text, {"Retry-After": _RETRY_AFTER}) from None
        text = f"This took longer than {seconds:g} s. Send fewer molecules."
        raise HTTPException(503, text) from None
    except TooMuchError as error:
        raise HTTPException(413, str(error)) from None
    except ValueError as error:
        raise HTTPException(422, str(error)) from None


def _add_interface(app: "FastAPI", workbench: Workbench) -> None:
    """Add what other programs call."""
    from fastapi import Request
    from fastapi.responses import JSONResponse, Response
    from pydantic import BaseModel, Field, StringConstraints

    limits = workbench.limits
    small, large = (ThreadPoolExecutor(_THREADS, f"treelens-{kind}") for kind in ("small", "large"))
    answer, answer_large = (partial(_answer, pool, limits.seconds) for pool in (small, large))
    longest = limits.smiles + _LONGEST_NAME
    Smiles = Annotated[str, StringConstraints(min_length=1, max_length=longest)]
    Values = Annotated[dict[str, str], Field(description="Values of the models' covariates")]

    class Molecules(BaseModel):
        smiles: list[Smiles] = Field(
            min_length=1,
            max_length=limits.molecules,
            examples=[["CCO ethanol", "c1ccccc1"]],
            description="SMILES, each with a name after a blank where it has one",
        )
        covariates: Values = {}

    class Molecule(BaseModel):
        smiles: Smiles = Field(examples=["CCO"])
        previous: Smiles | None = Field(None, description="A molecule to compare with")
        covariates: Values = {}
        targets: list[str] | None = Field(None, description="Those to explain; without it, all")

    def response(frame: "pd.DataFrame", output: str) -> Response:
        if output == "csv":
            return Response(csv_text(frame, index=False), media_type="text/csv; charset=utf-8")
        return JSONResponse(plain_summary({"rows": frame.to_dict("records")}))

    @app.get("/api/models")
    async def models() -> list[dict[str, Any]]:
        """What the models predict."""
        return workbench.facts()

    @app.post("/api/predict")
    async def predict(molecules: Molecules, output: Output = "json") -> Any:
        """Predict SMILES: the columns that 'treelens predict' writes, as JSON or CSV."""
        chosen = answer_large if is_large(len(molecules.smiles)) else answer
        given = molecules.smiles, molecules.covariates
        found = await chosen(workbench.predict_smiles, *given)
        return await asyncio.to_thread(response, found, output)

    @app.post("/api/table", openapi_extra=_FILE)
    async def table(
        request: Request, format: Literal["csv", "smi", "sdf"], output: Output = "json"
    ) -> Any:
        """Predict a file: a CSV or TSV with a column of SMILES, a SMI or an SDF."""
        given = format, await request.body()
        chosen = answer_large if is_large_body(len(given[1])) else answer
        found = await chosen(workbench.predict_file, *given)
        return await asyncio.to_thread(response, found, output)

    @app.post("/api/cards")
    async def cards(molecule: Molecule) -> list[dict[str, Any]]:
        """One card per model: prediction, atom map, neighbours, domain, groups, difference."""
        cards = partial(workbench.cards, molecule.smiles, molecule.previous, molecule.covariates)
        return await answer(partial(cards, targets=molecule.targets))


def _add_page(app: "FastAPI", workbench: Workbench) -> None:
    """Add the page for people, and one that shows the interface."""
    from fastapi.responses import HTMLResponse, Response

    def show(path: str, kind: str, text: str) -> None:
        async def shown() -> Response:
            return Response(text, media_type=kind)

        app.get(path, include_in_schema=False, response_class=HTMLResponse)(shown)

    pages = templates("serve")
    facts = {
        "models": workbench.facts(),
        "covariates": workbench.covariates,
        "cells": workbench.as_cells,
        "profile": workbench.profile,
    }
    page = {"page": facts, "version": __version__, "limits": workbench.limits}
    show("/", "text/html", pages.get_template("page.html").render(**page))
    show("/docs", "text/html", pages.get_template("docs.html").render(schema=app.openapi()))
    show("/page.css", "text/css", asset("report", "report.css") + asset("serve", "page.css"))
    show("/page.js", "text/javascript", asset("serve", "page.js"))


def server_of(app: Any) -> Any:
    """Return uvicorn's server of an application; ``run(sockets=[...])`` answers requests."""
    import uvicorn

    from treelens.serve.connections import connections_within

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=connections_within(app.limits),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_keep_alive=_IDLE_SECONDS,
            ws="none",
        )
    )


# --- the outermost layer: who may ask, how much, and with which headers it answers ----------------


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
    """Refuse requests of other sites and large ones; add the headers to every answer.

    The name in the Host header must be an address or one of ``hosts``: a page of another site whose
    name is made to point to this machine (DNS rebinding) sends its own name. A request with an
    Origin must come from the page itself. The bodies of all large requests that are being read or
    answered have a common limit.
    """

    def __init__(self, app: "FastAPI", hosts: Collection[str], limits: Limits) -> None:
        self.app, self.hosts = app, {name.casefold() for name in hosts}
        self.limits, self.n_held = limits, 0
        self.too_large = f"The request is larger than {limits.bytes / 1e6:g} MB."

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        from fastapi.responses import JSONResponse

        if scope["type"] != "http":  # there are no web sockets here
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *own]}
            await send(message)

        if refusal := self._refusal(scope["headers"]):
            answer = JSONResponse({"detail": refusal[1]}, refusal[0], {"connection": "close"})
            await answer(scope, receive, send_with_headers)
            return
        body = _Body(self, receive)
        try:
            await self.app(scope, body.receive, send_with_headers)
        except Exception:
            if not body.is_lost:  # else there is nobody to answer
                raise
        finally:
            self.n_held -= body.n_held

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        found = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in headers}
        host = found.get("host", "")
        if not self._is_known(host):
            return 421, "The Host header names another machine."
        origin = found.get("origin")
        if origin is not None and urlsplit(origin).netloc.casefold() != host.casefold():
            return 403, "The request comes from another site."
        length = found.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > self.limits.bytes:
            return 413, self.too_large
        return None

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False


class _Body:
    """Counts what arrives of a request, which need not be what Content-Length promised."""

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self._guard, self._receive = guard, receive
        self.n_bytes = self.n_held = 0
        self.is_lost = False

    async def receive(self) -> Any:
        from fastapi import HTTPException

        message = await self._receive()
        self.is_lost = message["type"] == "http.disconnect"
        self.n_bytes += len(message.get("body", b""))
        held, guard = max(self.n_bytes - SMALL_BODY, 0), self._guard
        guard.n_held += held - self.n_held
        self.n_held = held
        if self.n_bytes > guard.limits.bytes:
            raise HTTPException(413, guard.too_large)
        if held and guard.n_held > guard.limits.bytes_at_once:
            text = "Other large requests are being answered: try again later."
            raise HTTPException(503, text, {"Retry-After": _RETRY_AFTER})
        return message
